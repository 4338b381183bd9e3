"""Compiled functions intern terms' texts, read numbers in literals, write texts out and mark the terms that are still in use."""

from functools import partial
from pathlib import Path

from engine.jit import Native

_native = Native.of(Path(__file__).parent)
jit, inlined, entry_point = _native.jit, _native.inlined, _native.entry_point
borrowing = partial(_native.jit, counts=False)
"""It compiles functions that neither make arrays nor return any."""
