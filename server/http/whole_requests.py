"""Reads short requests whole, for whoever answers them without ASGI, whose layers take longer than all else that is done for one event."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import h11
from starlette.datastructures import Headers
from starlette.responses import Response

RawHeaders = list[tuple[bytes, bytes]]
_OTHERWISE = frozenset((b"content-encoding", b"expect", b"origin", b"transfer-encoding", b"upgrade", b"x-forwarded-for"))
"""Requests with such a header go through all layers."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeRequest:
    """Holds a request that came whole. `path` is as it was sent; `answer` sends the answer, once, with more headers."""

    path: str
    headers: Headers
    body: bytes
    client: str | None
    answer: Callable[[Response, RawHeaders], None]


class WholeRequests(Protocol):
    """Answers requests without ASGI. `longest` is the greatest size of their bodies, in bytes."""

    @property
    def longest(self) -> int: ...
    def wants(self, request: h11.Request) -> bool: ...
    def take(self, request: WholeRequest) -> None:
        """Answer the request, at once or later, on the event loop. Nothing may be raised."""


class WholeConnection(h11.Connection):
    """Reads as h11 does, but gives requests that `wanted` takes to `take` with their bodies, and not to whoever asks for events.

    A request is `held` until its body is complete, or until `let_go`.
    """

    def __init__(self, wanted: WholeRequests, take: Callable[[h11.Request, bytes], None]) -> None:
        super().__init__(h11.SERVER)
        self._wanted, self._take = wanted, take
        self.held: h11.Request | None = None
        self._let_go: h11.Request | None = None
        self.taken = False
        """A request was taken, and has to be answered; then this connection is replaced."""
        self._size = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self._let_go is not None:
            request, self._let_go = self._let_go, None
            return request
        if self.held is None:
            event = super().next_event()
            if not isinstance(event, h11.Request) or not self._is_wanted(event):
                return event
            self.held = event
        if len(self.trailing_data[0]) < self._size:
            return h11.NEED_DATA
        request, self.held, self.taken, body = self.held, None, True, b""
        while isinstance(part := super().next_event(), h11.Data):
            body += part.data
        self._take(request, body)
        return h11.NEED_DATA

    def let_go(self) -> None:
        """Give the request that is held to whoever asks for the next event."""
        self._let_go, self.held = self.held, None

    def _is_wanted(self, request: h11.Request) -> bool:
        headers = dict(request.headers)
        size, kept = headers.get(b"content-length", b"0"), headers.get(b"connection", b"keep-alive")
        self._size = int(size)
        return (
            0 < self._size <= self._wanted.longest
            and kept.lower() == b"keep-alive"
            and request.http_version == b"1.1"
            and _OTHERWISE.isdisjoint(headers)
            and self._wanted.wants(request)
        )


def write_answer(response: Response, headers: RawHeaders) -> bytes:
    """Return the bytes of an answer with these headers before and beside its own."""
    phrase = HTTPStatus(response.status_code).phrase.encode()
    lines = b"".join([b"%b: %b\r\n" % header for header in (*headers, *response.raw_headers)])
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (response.status_code, phrase, lines, bytes(response.body))
