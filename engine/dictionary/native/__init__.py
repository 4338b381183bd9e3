"""Compiled functions over terms' texts: interning, numbers in literals, texts out, and what terms are still in use."""

from pathlib import Path

from engine.jit import Native

_native = Native.of(Path(__file__).parent)
jit, inlined, entry_point = _native.jit, _native.inlined, _native.entry_point
