"""The kernel interprets operator networks held in arrays of integers (docs/ARCHITECTURE.md).

It is compiled code: engine/native/source/kernel.
"""
