"""Small frames are read as they come."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from tests.server.conftest import DEADLINE_S

LINE = b'{"s":"<x:s>","p":"<x:p>","o":"<x:o>","at":"2026-01-01T00:00:00Z"}'


def frame(payload: bytes, kind: int = 0x81) -> bytes:
    size, mask = len(payload), b"\x01\x7f\x80\xfe"
    length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes((kind,)) + length + mask + bytes(each ^ mask[k % 4] for k, each in enumerate(payload))


@pytest.mark.parametrize("piece", [1, 5, 64, 10_000])
def test_frames_are_read_whatever_they_are_and_wherever_they_are_cut(url: str, piece: int) -> None:
    """There are two lengths of text, a ping, a text in two frames, and one after that."""
    sent = frame(LINE) + frame(b"hi", 0x89) + frame(LINE + b"\n" + LINE) + frame(LINE[:10], 0x01) + frame(LINE[10:], 0x80) + frame(LINE)
    assert len(LINE) < 126 < 2 * len(LINE)
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), DEADLINE_S) as connection:
        connection.sendall(
            b"GET /streams/cut/feed HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        found = b""
        while b"\r\n\r\n" not in found:
            found += connection.recv(65536)
        for begin in range(0, len(sent), piece):
            connection.sendall(sent[begin : begin + piece])
        while found.count(b'"ack"') < 4 or b"\x8a\x02hi" not in found:
            part = connection.recv(65536)
            assert part, found
            found += part
    assert re.findall(rb'"accepted":(\d+)', found) == [b"1", b"2", b"1", b"1"]
