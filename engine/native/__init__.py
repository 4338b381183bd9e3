"""Holds the compiled code: C in `source`, built into one module of Python's stable ABI, whose functions `entries`
gives by name.
"""
