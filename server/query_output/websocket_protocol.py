"""Writes frames that are encoded once for many subscribers straight to their WebSockets."""

from collections.abc import Callable
from typing import Any

from starlette.types import Scope
from starlette.websockets import WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

_EXTENSION = "epsparql.writer"
_AHEAD, _SMALL = 128, 4 << 10
"""So many messages of at most so many bytes may wait for the app before nothing more is read."""
_TEXT, _WHOLE = 0x81, (0x81, 0x89, 0x8A)
"""These are the first bytes of frames: a whole text, and with it pings and pongs."""
_MASKED, _TWO_BYTES, _EIGHT_BYTES, _HEAD = 0x80, 126, 127, 6


class WebSocketWriter(WebSocketsSansIOProtocol):
    """Lets the app write to uvicorn's WebSocket without an ASGI message for each frame; `find_writer` finds it in the scope.

    `on_lost`, if set, is called when the connection is lost.
    """

    on_lost: Callable[[], None] | None = None
    _ignores_messages = False
    _reads_small, _rest = True, b""
    """Whether all frames so far were small and whole ones, and the beginning of the next one."""

    def data_received(self, data: bytes) -> None:
        if not self.handshake_complete:
            self._reads_small = not self.handshake_initiated  # frames that come so early may be cut anywhere
        elif self._reads_small:
            data = self._read_small(self._rest + data)
            if not data:
                return
        super().data_received(data)

    def _read_small(self, data: bytes) -> bytes:
        """Read small text frames, in a fifth of the time that the library takes. Return what the library is to read: from then on, that is all."""
        at, size = 0, len(data)
        while size - at >= _HEAD:
            kind, length, begin = data[at], data[at + 1] - _MASKED, at + _HEAD
            if length == _TWO_BYTES and size - at >= _HEAD + 2:
                length, begin = int.from_bytes(data[at + 2 : at + 4], "big"), begin + 2
            elif length == _EIGHT_BYTES:
                length = _SMALL + 1
            end = begin + length
            if kind not in _WHOLE or not 0 <= length <= _SMALL or self._ignores_messages:
                self._reads_small, self._rest = False, b""
                return data[at:]
            if end > size:
                break
            if kind == _TEXT:
                self.curr_msg_data_type, self.frames = "text", [_unmask(data[begin:end], data[begin - 4 : begin])]
                self.send_receive_event_to_app()
            else:
                super().data_received(data[at:end])
            at = end
        self._rest = data[at:]
        return b""

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[_EXTENSION] = self  # the task of the app has not begun yet

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def send_receive_event_to_app(self) -> None:
        if self._ignores_messages:
            self.frames = []
            return
        paused, reads_on = self.read_paused, self.queue.qsize() < _AHEAD and sum(map(len, self.frames)) <= _SMALL
        self.read_paused = paused or reads_on  # uvicorn would pause for each message, at the cost of two system calls
        super().send_receive_event_to_app()
        if reads_on:
            self.read_paused = paused

    def take_received(self, most: int) -> list[Any]:
        """Return up to `most` ASGI messages that came already, for one who has just received the one before them."""
        found = list[Any]()
        while len(found) < most and not self.queue.empty():
            found.append(self.queue.get_nowait())
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self.transport.resume_reading()
        return found

    def ignore_messages(self) -> None:
        """Ignore the client's messages from now on, but still notice when the client leaves."""
        self._ignores_messages = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    @property
    def open(self) -> bool:
        return self.handshake_complete and not (self.disconnected or self.close_sent or self.transport.is_closing())

    def write_frames(self, frames: bytes | memoryview) -> bool:
        """Send whole frames on an open connection. Returns False where the client is behind: await `wait_for_room` before the next frame."""
        self.transport.write(frames)
        return self.writable.is_set()

    async def wait_for_room(self) -> None:
        """Wait until the client has taken most of what was written. Raises: WebSocketDisconnect."""
        await self.writable.wait()
        if not self.open:
            raise WebSocketDisconnect(1006)

    def abort(self) -> None:
        """End the connection at once, with whatever has not been taken."""
        self.transport.abort()


def _unmask(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")


def find_writer(scope: Scope) -> WebSocketWriter:
    """Return the writer in a WebSocket's scope, which this package's server put there."""
    extensions: dict[str, Any] = scope["extensions"]
    writer: WebSocketWriter = extensions[_EXTENSION]
    return writer
