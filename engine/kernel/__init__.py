"""The native kernel: an interpreter of operator networks held in arrays of integers, compiled by numba (architecture.md)."""

from pathlib import Path

from engine.jit import Native

_native = Native.of(Path(__file__).parent)
jit, inlined, entry_point = _native.jit, _native.inlined, _native.entry_point
