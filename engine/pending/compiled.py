"""The compile cache of this package."""

from pathlib import Path

from engine.kernel.compile import Native

native = Native.of(Path(__file__).parent)
