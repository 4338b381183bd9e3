"""Serves HTTP connections: a request's head must come in time, and input that is no HTTP is answered with a problem.

Short requests that come whole may be answered without uvicorn's cycle and ASGI (`server/http/whole_requests.py`).
"""

import asyncio
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from server.http.problem_details import MEDIA_TYPE, Problem, phrase
from server.http.whole_requests import WholeRequest, WholeRequests, read_head, write_answer, write_headers
from server.observability.middleware import SECURE

_HELD_S = 0.05
"""The body of a request that may be answered without ASGI is waited for so long; then h11 and the layers, with their limits, have it."""


class WholeAnswers(asyncio.Transport):
    """Holds the head of an answer of known length back until its body comes, so that both are one write: each lets other threads go first."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self.plain, self._head = transport, b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data[:9] == b"HTTP/1.1 " and b"\r\ncontent-length: " in data:
            self._head = bytes(data)
            return
        self.plain.write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self.plain.close()

    def abort(self) -> None:
        self.plain.abort()

    def is_closing(self) -> bool:
        return self.plain.is_closing()

    def pause_reading(self) -> None:
        self.plain.pause_reading()

    def resume_reading(self) -> None:
        self.plain.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.plain.get_extra_info(name, default)


class Timely(H11Protocol):
    """Ends connections that are too slow. `header_s` counts from a connection's beginning, or a request's first byte, to the end of its head."""

    header_s = 10.0
    wanted: WholeRequests
    _deadline: asyncio.TimerHandle | None = None
    _kept = b""
    """These bytes wait for the answer to the request before them, or for the rest of their request."""
    _holding: asyncio.TimerHandle | None = None
    _taken = _ends = False
    """A request waits for its answer, which is not h11's; then the connection is to end."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(WholeAnswers(transport))
        self._begin()

    def data_received(self, data: bytes) -> None:
        if self._kept:
            data, self._kept = self._kept + data, b""
        if self._taken:
            self._kept = data
            self.flow.pause_reading()
        elif self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0] or not self._take_post(data):
            self._read_by_h11(data)

    def shutdown(self) -> None:
        self._ends = self._taken
        if not self._ends:
            self._let_go()
            super().shutdown()

    def _read_by_h11(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._begin()
        else:
            self._cancel_deadline()

    # ------------------------------------------------------------ requests that are answered without ASGI
    def _take_post(self, data: bytes) -> bool:
        """Take the request at the begin of `data`, or wait for its body. Return False if it is h11's."""
        head = read_head(data)
        if head is None or not self.wanted.wants(head):
            return False
        self._cancel_deadline()
        self._unset_keepalive_if_required()
        end = head.length + head.size
        if len(data) < end:
            self._kept = data
            if self._holding is None:
                self._holding = self.loop.call_later(_HELD_S, self._let_go)
            return True
        self._stop_holding()
        self._taken, self._kept = True, data[end:]
        client = self.client[0] if self.client else None
        self.wanted.take_request(WholeRequest(head.target.decode(), head.headers, data[head.length : end], client, self._send_answer))
        return True

    def _send_answer(self, response: Response, lines: bytes) -> None:
        self._taken = False
        if self.transport.is_closing():
            return
        assert isinstance(self.transport, WholeAnswers)
        self.transport.plain.write(write_answer(response, write_headers(self.server_state.default_headers) + lines))
        if self._ends or (b"connection", b"close") in response.raw_headers:
            self.transport.close()
        elif self._kept:
            self.loop.call_soon(self._read_on)
        self.on_response_complete()

    def _read_on(self) -> None:
        if self._kept and not self._taken:
            self.data_received(b"")

    def _let_go(self) -> None:
        """Give h11 a request whose rest has not come, if there is one."""
        self._stop_holding()
        if self._kept and not self._taken:
            kept, self._kept = self._kept, b""
            self._read_by_h11(kept)

    def _stop_holding(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._let_go()  # the layers tell who hangs up within a body
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._cancel_deadline()
        assert isinstance(self.transport, WholeAnswers)
        self.transport = self.transport.plain
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(HTTPStatus.BAD_REQUEST, "malformed-http", "this is no HTTP/1.1 request, or its head is too long"))

    def _begin(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.header_s, self._late)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if self.conn.our_state is h11.IDLE:
            self._refuse(Problem(HTTPStatus.REQUEST_TIMEOUT, "slow-head", f"the request's head was not complete after {self.header_s:g} s"))

    def _refuse(self, problem: Problem) -> None:
        """Answer for the app, which has not been asked, and close."""
        if not self.transport.is_closing():
            body = problem.response().body
            fields = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close"} | SECURE
            head = f"HTTP/1.1 {int(problem.status)} {phrase(problem.status)}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            self.transport.write(head.encode() + b"\r\n" + bytes(body))
            self.transport.close()


def timely(header_s: float, wanted: WholeRequests) -> type[H11Protocol]:
    return type("Timely", (Timely,), {"header_s": header_s, "wanted": wanted})


def prepare(listener: socket.socket, after_s: float) -> None:
    """Set the options of this listener's connections.

    They send at once what is written. They end after `after_s` seconds in which the other side acknowledges nothing, and by keep-alive if its machine
    is gone.
    """
    options: tuple[tuple[int, str, Any], ...] = (
        (
            socket.IPPROTO_TCP,
            "TCP_NODELAY",
            1,
        ),  # asyncio sets it only for sockets with a named protocol; without it a second write waits up to 40 ms for the first one's ACK
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 60),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", round(after_s * 1000)),
    )
    for level, name, value in options:
        with suppress(AttributeError, OSError):  # not every system has all of them
            listener.setsockopt(level, getattr(socket, name), value)
