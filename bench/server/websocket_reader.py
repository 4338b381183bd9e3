"""This module is a WebSocket client that costs its process little: it upgrades a connection and hands on the payloads
of the server's frames.
"""

import asyncio
import base64
import os
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

_TEXT, _WHOLE_TEXT, _MASKED = 1, 0x81, 0x80


class Frames(asyncio.Protocol):
    """Calls `take` with each text frame; `ready` is set once the server has accepted.

    Nothing is sent by itself, not even answers to pings.
    """

    def __init__(self, path: str, take: Callable[[bytes], None], subprotocol: str = "") -> None:
        self._path, self._take, self._subprotocol = path, take, subprotocol
        self.ready, self.closed = asyncio.Event(), asyncio.Event()
        self._buffer = bytearray()
        self._open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        key = base64.b64encode(os.urandom(16)).decode()
        fields = ("Host: localhost", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
        offered = (f"Sec-WebSocket-Protocol: {self._subprotocol}",) if self._subprotocol else ()
        self.transport.write("\r\n".join((f"GET {self._path} HTTP/1.1", *fields, *offered, "", "")).encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._open:
            head, end, _ = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            assert head.startswith(b"HTTP/1.1 101 "), bytes(head)
            del self._buffer[: len(head) + 4]
            self._open = True
            self.ready.set()
        self._frames()

    def _frames(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            length, begin = buffer[at + 1], at + 2
            if length == 126:
                length, begin = int.from_bytes(buffer[at + 2 : at + 4], "big"), at + 4
            elif length == 127:
                length, begin = int.from_bytes(buffer[at + 2 : at + 10], "big"), at + 10
            if len(buffer) < begin + length or len(buffer) < begin:
                break
            if buffer[at] & 15 == _TEXT:
                self._take(bytes(buffer[begin : begin + length]))
            at = begin + length
        del buffer[:at]

    def send(self, text: bytes) -> None:
        """Send a text frame, masked with zeros, which leave it as it is."""
        size = len(text)
        length = bytes((_MASKED | size,)) if size < 126 else bytes((_MASKED | 126,)) + size.to_bytes(2, "big")
        self.transport.write(bytes((_WHOLE_TEXT,)) + length + bytes(4) + text)

    def pause(self) -> None:
        """Read nothing more."""
        self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    async def end(self) -> None:
        """End at once; return when the connection is gone."""
        self.transport.abort()
        await self.closed.wait()


async def open_socket(url: str, path: str, take: Callable[[bytes], None], subprotocol: str = "") -> Frames:
    """Open a WebSocket of the server at `url`."""
    parts, loop = urlsplit(url), asyncio.get_running_loop()
    _, frames = await loop.create_connection(lambda: Frames(path, take, subprotocol), str(parts.hostname), int(parts.port or 80))
    await asyncio.wait_for(frames.ready.wait(), 30)
    return frames
