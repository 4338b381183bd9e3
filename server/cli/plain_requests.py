"""Reads and answers small POSTs of events without h11, which takes ten times as long to read one."""

import asyncio
import re
from typing import Any

from h11 import Connection
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, RequestResponseCycle

_HEAD = re.compile(
    rb"POST (/streams/(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2}){1,512}/events) HTTP/1\.1\r\n((?:[A-Za-z-]{1,64}: [\x21-\x7e][\x20-\x7e]{0,1024}\r\n){2,16})\r\n"
)
_PLAIN = frozenset(
    (b"host", b"content-type", b"content-length", b"user-agent", b"accept", b"accept-encoding", b"authorization", b"connection", b"x-request-id")
)
_LONGEST_SIZE = 9  # digits

Headers = list[tuple[bytes, bytes]]


def read_plain_post(data: bytes) -> tuple[bytes, Headers, bytes] | None:
    """Return path, headers and body of bytes that are one whole POST of events; None for h11.

    Nothing is judged here: a request is taken only where it has headers that everybody reads alike, each once, and a body of just the stated length.
    """
    found = _HEAD.match(data)
    if found is None:
        return None
    lines = (line.partition(b": ") for line in found[2].split(b"\r\n")[:-1])
    headers = [(name.lower(), value.rstrip(b" ")) for name, _, value in lines]
    named = dict(headers)
    size = named.get(b"content-length", b"")
    plain = (
        len(named) == len(headers)
        and named.keys() <= _PLAIN
        and b"host" in named
        and named.get(b"connection", b"keep-alive").lower() == b"keep-alive"
    )
    if not plain or not size.isdigit() or len(size) > _LONGEST_SIZE or len(data) - found.end() != int(size):
        return None
    return found[1], headers, data[found.end() :]


class PlainCycle(RequestResponseCycle):
    """Answers such a request: the answer is sent once it is whole."""

    conn: Connection
    tasks: set[asyncio.Task[None]]
    task: asyncio.Task[None]

    def take_body(self, body: bytes) -> None:
        """Take the request's body, which is whole."""
        self.body, self.more_body = bytearray(body), False
        self.message_event.set()
        self._status, self._headers, self._parts = 0, Headers(), list[bytes]()

    async def run_asgi(self, app: Any) -> None:
        """Answer by the app, without uvicorn's callback for the end of its task, which takes a turn of the event loop."""
        try:
            await super().run_asgi(app)
        finally:
            self.tasks.remove(self.task)

    async def send(self, message: Any) -> None:
        """Take the start of the answer, or a part of its body, and write all of it with the last part."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self.response_started = True
            self._status, self._headers = message["status"], [*self.default_headers, *message.get("headers", ())]
            return
        self._parts.append(message.get("body", b""))
        if message.get("more_body", False):
            return
        body, named = b"".join(self._parts), dict(self._headers)
        if b"content-length" not in named:
            self._headers.append((b"content-length", b"%d" % len(body)))
        head = b"".join([b"%b: %b\r\n" % field for field in self._headers])
        self.transport.write(b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (self._status, STATUS_PHRASES[self._status], head, body))
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive or named.get(b"connection") == b"close":
            self.transport.close()
        self.on_response()
