"""Writes frames that are encoded once for many subscribers straight to their WebSockets, and reads frames by turns."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Scope
from starlette.websockets import WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

_EXTENSION = "epsparql.writer"
_AHEAD, _SMALL = 128, 4 << 10
"""So many messages of at most so many bytes may wait for the app before nothing more is read."""


class MessageQueue:
    """Holds the messages of a connection for its one reader.

    It has what uvicorn calls of asyncio's queue, which takes twenty calls for each message.
    """

    def __init__(self) -> None:
        self._messages = deque[Any]()
        self._news: asyncio.Future[None] | None = None

    def put_nowait(self, message: Any) -> None:
        self._messages.append(message)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def get(self) -> Any:
        while not self._messages:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        return self._messages.popleft()

    def get_nowait(self) -> Any:
        return self._messages.popleft()

    def empty(self) -> bool:
        return not self._messages

    def qsize(self) -> int:
        return len(self._messages)


class WebSocketWriter(WebSocketsSansIOProtocol):
    """Lets the app write to uvicorn's WebSocket without an ASGI message for each frame; `find_writer` finds it in the
    scope.

    `on_lost`, if set, is called when the connection is lost.
    """

    on_lost: Callable[[], None] | None = None
    _ignores_messages = False
    _whole: bytearray | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = cast("asyncio.Queue[Any]", MessageQueue())

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[_EXTENSION] = self  # the task of the app has not begun yet

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment to its message, in one buffer: a client may send millions of fragments, empty ones too."""
        if self._whole is None:
            self._whole = bytearray(self.frames[0])
        self._whole += event.data
        if event.fin:
            self.frames, self._whole = [bytes(self._whole)], None
            self.send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer a ping, unless the client does not take what was written before: answers that nobody reads would
        take memory without end.
        """
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

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
        self._read_on()
        return found

    async def rest(self, seconds: float) -> None:
        """Read nothing for a time, so that what comes meanwhile is read at once."""
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._read_on()

    def _read_on(self) -> None:
        if self.read_paused and self.queue.empty() and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

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
        """Send whole frames on an open connection.

        Returns False where the client is behind: await `wait_for_room` before the next frame.
        """
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


def find_writer(scope: Scope) -> WebSocketWriter:
    """Return the writer in a WebSocket's scope, which this package's server put there."""
    extensions: dict[str, Any] = scope["extensions"]
    writer: WebSocketWriter = extensions[_EXTENSION]
    return writer
