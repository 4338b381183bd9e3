"""Reads short requests that come whole, for whoever answers them without ASGI: h11 and the layers take longer than all else that is done for one event.

Only what is written as nearly all clients write it is read here. Anything else is h11's to read, and to judge.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES

RawHeaders = list[tuple[bytes, bytes]]
LONGEST_HEAD = 16 << 10
"""A head has at most so many bytes, as h11 has it."""
_TOKEN = rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+"
_HEAD = re.compile(rb"POST ([!-~]+) HTTP/1\.1\r\n((?:%b:[\t -~]*\r\n)+)\r\n" % _TOKEN)
_SIZE = re.compile(rb"[0-9]{1,9}")
_OTHERWISE = frozenset((b"content-encoding", b"expect", b"origin", b"transfer-encoding", b"upgrade", b"x-forwarded-for"))
"""Requests with such a header are h11's, and go through all layers."""


class SingleHeaders(Headers):
    """Finds a header at once, because each name stands there once."""

    def __init__(self, raw: RawHeaders) -> None:
        super().__init__(raw=raw)
        self._values = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}

    def __getitem__(self, key: str) -> str:
        return self._values[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._values


class Head(NamedTuple):
    """Holds the head of a POST: its target, its headers, its own bytes, and those of its body."""

    target: bytes
    headers: SingleHeaders
    length: int
    size: int


def read_head(data: bytes) -> Head | None:
    """Return the head of a POST at the begin of `data`, with the names of headers in lower case; None if h11 has to read it, or more is to come."""
    end = data.find(b"\r\n\r\n", 0, LONGEST_HEAD)
    return None if end < 0 else _parse_head(data[: end + 4])


@lru_cache(maxsize=256)
def _parse_head(head: bytes) -> Head | None:
    """Return what a head says. A client sends the same head for many bodies."""
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    headers: RawHeaders = []
    for line in found[2].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        headers.append((name.lower(), value.strip(b"\t ")))
    named = dict(headers)
    size = named.get(b"content-length", b"")
    plain = len(named) == len(headers) and b"host" in named and _OTHERWISE.isdisjoint(named)
    if not plain or not _SIZE.fullmatch(size) or named.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    return Head(found[1], SingleHeaders(headers), len(head), int(size))


@dataclass(frozen=True, slots=True, eq=False)
class WholeRequest:
    """Holds a request that came whole. `path` is as it was sent; `answer` sends the answer, once, with more lines of headers."""

    path: str
    headers: Headers
    body: bytes
    client: str | None
    answer: Callable[[Response, bytes], None]


class WholeRequests(Protocol):
    """Answers requests without ASGI."""

    def wants(self, head: Head) -> bool: ...
    def take_request(self, request: WholeRequest) -> None:
        """Answer the request, at once or later, on the event loop. Nothing may be raised."""


def write_headers(headers: RawHeaders) -> bytes:
    """Return the lines of headers."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def write_answer(response: Response, lines: bytes) -> bytes:
    """Return the bytes of an answer with these lines of headers before its own."""
    head, own = b"HTTP/1.1 %d %b\r\n" % (response.status_code, STATUS_PHRASES[response.status_code]), write_headers(response.raw_headers)
    return b"".join((head, lines, own, b"\r\n", response.body))
