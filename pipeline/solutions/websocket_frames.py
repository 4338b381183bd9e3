"""This module writes WebSocket frames as a server sends them: unmasked, so the same bytes serve every client (RFC
6455 section 5.2).
"""

_TEXT = 0x81  # one whole text message


def encode_text_frame(payload: bytes | memoryview) -> bytes:
    """Return a text message, given in UTF-8, as a frame."""
    size = len(payload)
    if size < 126:
        return bytes((_TEXT, size)) + payload
    if size < 1 << 16:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big") + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big") + payload
