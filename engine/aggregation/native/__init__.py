"""GROUP BY in tables: many instants of one node at once, by compiled functions."""

from pathlib import Path

from engine.jit import Native

native = Native.of(Path(__file__).parent)
