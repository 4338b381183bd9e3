"""This module writes WebSocket frames as a server sends them: unmasked, so the same bytes serve every client (RFC 6455 section 5.2)."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TEXT = 0x81  # one whole text message


def encode_text_frame(payload: bytes | memoryview) -> bytes:
    """Return a text message, given in UTF-8, as a frame."""
    return _head(len(payload)) + payload


def _head(size: int) -> bytes:
    if size < 126:
        return bytes((_TEXT, size))
    if size < 1 << 16:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big")
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big")


def begin_text_frames(parts: Sequence[pa.BinaryArray | bytes]) -> list[pa.BinaryArray | bytes]:
    """Return the parts of text messages, in UTF-8, with the heads of their frames before them. Parts are columns, or bytes that all messages have."""
    lengths = [len(part) if isinstance(part, bytes) else pc.binary_length(part).to_numpy() for part in parts]
    sizes, which = np.unique(sum(lengths), return_inverse=True)
    return [pa.array([_head(size) for size in sizes.tolist()], pa.binary()).take(pa.array(which)), *parts]
