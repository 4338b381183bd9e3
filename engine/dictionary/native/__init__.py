"""Compiled functions intern terms' texts, read numbers in literals, write texts out and mark the terms that are still in use."""

from functools import partial
from pathlib import Path

from engine.jit import Native

_native = Native.of(Path(__file__).parent)
jit, entry_point = _native.jit, _native.entry_point
borrowing = partial(_native.jit, counts=False)
"""It compiles functions that neither make arrays nor return any but those at addresses, which nobody counts."""
inlined = partial(borrowing, inline=True)
"""It compiles such functions into their callers."""
