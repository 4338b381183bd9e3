"""Serves HTTP connections: heads of requests have bounds and must come in time, and input that is no HTTP is answered
with a problem.

uvicorn's protocol over httptools reads the requests. `tests/server/access/test_connections.py` names its private
parts that are used here.
"""

import asyncio
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.http.problem_details import MEDIA_TYPE, Problem, phrase
from server.observability.middleware import SECURE

LONGEST_HEAD = 64 << 10
"""The line, headers and trailers of a request have at most so many bytes.

The longest legal header, of a source, has 52,412.
"""
_SLICE = 16 << 10
"""So many bytes are parsed at once: some hundred requests may stand in them, which wait for their turn."""
_VERSIONS = "1.0", "1.1"
_OF_UPGRADES = b"connection", b"upgrade", b"http2-settings"


class WholeAnswers(asyncio.Transport):
    """Holds the head of an answer of known length back until its body comes, so that both are one write: each lets
    other threads go first.
    """

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

    def flush(self) -> None:
        """Write the head of an answer that has no body."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
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


class _Malformed(Exception):
    """Reports a request that the parser takes, and this server does not."""


class _Flow(FlowControl):
    """Reads nothing more while requests wait for the answer to one before them.

    uvicorn's reads on after each answer, so that ever more would wait.
    """

    def __init__(self, transport: asyncio.Transport, connection: "Connection") -> None:
        super().__init__(transport)
        self._connection = connection

    def resume_reading(self) -> None:
        if not self._connection.requests_wait:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """Reads requests in slices, each after the one before it has no request left that waits.

    `header_s` counts from a connection's beginning, or a request's first byte, to the end of its head.
    """

    header_s = 10.0
    _deadline: asyncio.TimerHandle | None = None
    _unparsed: bytes | memoryview = b""
    _in_head = _in_body = _over = False
    """A head, or a body, has begun and not ended.

    After input that is no HTTP, or is a WebSocket's, nothing more is parsed.
    """
    _head_bytes = _idle_bytes = 0
    """Counts the bytes of the present head, and those that came since the last part of a message."""

    # ------------------------------------------------------------ bytes
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(WholeAnswers(transport))
        self.flow = _Flow(self.transport, self)
        self._begin()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unparsed = memoryview(bytes(self._unparsed) + data) if self._unparsed else data
        self._parse_kept()

    @property
    def requests_wait(self) -> bool:
        return bool(self.pipeline or self._unparsed)

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _parse_kept(self) -> None:
        """Parse what came, slice by slice, until a request must wait for the answer to another one."""
        while self._unparsed and not (self.pipeline or self._over or self.transport.is_closing()):
            part, self._unparsed = self._unparsed[:_SLICE], self._unparsed[_SLICE:]
            self._idle_bytes += len(part)
            try:
                self._feed_parser(part)
                if self._idle_bytes > LONGEST_HEAD:
                    raise _Malformed
            except (httptools.HttpParserError, _Malformed):
                self._spoil()
        if not (self._answering or self._over):
            self._begin()  # bytes have come, and no whole head

    def _feed_parser(self, data: bytes | memoryview) -> None:
        """Parse bytes. Raises: HttpParserError, _Malformed."""
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    self._upgrade()
                    return
                # An offer of another protocol is ignored, but this parser has left HTTP and its body is unread.
                data = self._write_plain_head() + bytes(data[upgrade.args[0] :])
                self.parser = httptools.HttpRequestParser(self)

    def _write_plain_head(self) -> bytes:
        """Return the head of the present request without what offers another protocol."""
        lines = [b"%b: %b" % header for header in self.headers if header[0] not in _OF_UPGRADES]
        if any(name == b"connection" and b"close" in value.lower() for name, value in self.headers):
            lines.append(b"connection: close")
        return b"\r\n".join((b"%b %b HTTP/1.1" % (self.scope["method"].encode(), self.url), *lines, b"", b""))

    def _upgrade(self) -> None:
        if self._answering:
            raise _Malformed  # its frames would be mixed with the answer to a request before it
        self._cancel_deadline()
        self._over, self._unparsed = True, b""
        assert isinstance(self.transport, WholeAnswers)
        self.transport = self.transport.plain
        self.handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._unparsed = b""
        super().connection_lost(exc)

    # ------------------------------------------------------------ parts of messages, which the parser reports
    @property
    def _read_again(self) -> bool:
        """Return whether the parser reports a request that offers another protocol than WebSocket; without the offer,
        it is parsed once more.
        """
        return bool(self.parser.should_upgrade()) and not self._should_upgrade()

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        if self._in_head:  # trailers say nothing here
            super().on_header(name, value)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > LONGEST_HEAD:
            raise _Malformed

    def on_headers_complete(self) -> None:
        hosts, version = sum(name == b"host" for name, _ in self.headers), self.parser.get_http_version()
        target = self.url[:1] == b"/" or self.url == b"*"
        if version not in _VERSIONS or hosts > 1 or (not hosts and version == "1.1") or not target or b"#" in self.url:
            raise _Malformed
        self._idle_bytes, self._in_head, self._in_body = 0, False, True
        if self._read_again:
            self.scope["method"] = self.parser.get_method().decode("ascii")
        else:
            self._cancel_deadline()
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._idle_bytes, self._in_body = 0, False
        if not self._read_again:
            super().on_message_complete()

    # ------------------------------------------------------------ answers
    def on_response_complete(self) -> None:
        assert isinstance(self.transport, WholeAnswers)
        self.transport.flush()
        is_last = not self.pipeline
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if is_last and self._over:
            self._refuse_malformed()
        elif self._unparsed and not self.pipeline:
            self._parse_kept()
        elif is_last and self._in_head:
            self._unset_keepalive_if_required()
            self._begin()

    def _spoil(self) -> None:
        """Parse nothing more. Answer at once, or after the answers to the requests before."""
        self._over, self._unparsed = True, b""
        if self._in_body and self.pipeline:
            self.pipeline.popleft()  # its body will not end
        elif self._in_body and self._answering and self.cycle.response_started:
            self.transport.close()
        elif self._in_body or not self._answering:
            self._refuse_malformed()

    def send_400_response(self, msg: str) -> None:
        self._refuse_malformed()

    def _refuse_malformed(self) -> None:
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
        if self._in_body and not self._answering:
            self.transport.close()  # it was answered before its body ended
        elif not self._answering:
            self._refuse(Problem(HTTPStatus.REQUEST_TIMEOUT, "slow-head", f"the request's head was not complete after {self.header_s:g} s"))

    def _refuse(self, problem: Problem) -> None:
        """Answer for the app, which has not been asked, and close."""
        if not self.transport.is_closing():
            body = problem.response().body
            fields = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close"} | SECURE
            head = f"HTTP/1.1 {int(problem.status)} {phrase(problem.status)}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            self.transport.write(head.encode() + b"\r\n" + bytes(body))
            self.transport.close()


def create_protocol(header_s: float) -> type[Connection]:
    return type("Connection", (Connection,), {"header_s": header_s})


def prepare(listener: socket.socket, after_s: float) -> None:
    """Set the options of this listener's connections.

    They send at once what is written. They end after `after_s` seconds in which the other side acknowledges nothing,
    and by keep-alive if its machine is gone.
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
