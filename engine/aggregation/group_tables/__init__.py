"""Compiled functions run GROUP BY in tables, many instants of one node at once."""

from pathlib import Path

from engine.jit import Native

native = Native.of(Path(__file__).parent)
