"""The wrapper around numba for this package."""

from pathlib import Path

from engine.kernel.compile import Native

_native = Native.of(Path(__file__).parent)
jit, inlined, entry_point = _native.jit, _native.inlined, _native.entry_point
