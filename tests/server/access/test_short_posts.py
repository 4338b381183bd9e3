"""Short POSTs of events are read and answered by their connection: as h11 and the layers would, and also in pieces, and one after the other."""

import json
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import h11
import pytest

from server.http.whole_requests import read_head
from tests.server.conftest import serving

LINE = b'{"s":"<x:s>","p":"<x:p>","o":"\\"1\\"","at":"2026-01-01T00:00:00Z"}'
HEAD = b"POST /streams/%b/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n%bContent-Length: %d\r\n\r\n"


def post(name: bytes, body: bytes = LINE, more: bytes = b"") -> bytes:
    return HEAD % (name, more, len(body)) + body


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with serving(tmp_path_factory.mktemp("short") / "data") as url:
        parts = urlsplit(url)
        yield str(parts.hostname), int(parts.port or 80)


class Connection:
    """A client that reads answers of known length."""

    def __init__(self, plain: socket.socket) -> None:
        self.plain, self._seen = plain, b""

    def read(self) -> tuple[int, dict[str, str], bytes]:
        while b"\r\n\r\n" not in self._seen:
            self._more()
        head, _, self._seen = self._seen.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(self._seen) < int(headers["content-length"]):
            self._more()
        size = int(headers["content-length"])
        body, self._seen = self._seen[:size], self._seen[size:]
        return int(first.split()[1]), headers, body

    def _more(self) -> None:
        data = self.plain.recv(1 << 16)
        assert data, "the connection ended"
        self._seen += data


@contextmanager
def connected(server: tuple[str, int]) -> Iterator[Connection]:
    with socket.create_connection(server, timeout=30) as plain:
        yield Connection(plain)


def test_an_answer_has_the_same_headers_as_that_of_the_route(server: tuple[str, int]) -> None:
    with connected(server) as client:
        answers = []
        for more in (b"X-Request-Id: mine\r\n", b"X-Request-Id: mine\r\nIdempotency-Key: k\r\n"):  # a parameter is the route's
            client.plain.sendall(post(b"headers", more=more))
            answers.append(client.read())
        assert [status for status, _, _ in answers] == [202, 202]
        short, route = ({name: value for name, value in headers.items() if name != "date"} for _, headers, _ in answers)
        assert short == route
        assert [json.loads(body)["accepted"] for _, _, body in answers] == [1, 1]


def test_requests_that_come_at_once_and_in_pieces_are_answered_in_order(server: tuple[str, int]) -> None:
    with connected(server) as client:
        bad, get = post(b"order", b'{"s":1}'), b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client.plain.sendall(post(b"order") * 3 + bad + get + post(b"order"))
        found = [client.read() for _ in range(6)]
        assert [status for status, _, _ in found] == [202, 202, 202, 400, 200, 202]
        assert [json.loads(found[k][2])["offset"] for k in (0, 1, 2, 5)] == list(range(*((first := json.loads(found[0][2])["offset"]), first + 4)))
        whole = post(b"order")
        for cut in (1, 20, whole.index(b"\r\n\r\n") + 4, len(whole) - 1):
            for piece in (whole[:cut], whole[cut:]):
                client.plain.sendall(piece)
            assert client.read()[0] == 202


def test_a_fault_is_told_as_the_route_tells_it(server: tuple[str, int]) -> None:
    with connected(server) as client:
        bodies = []
        for name, body, more in ((b"fault", b"{", b""), (b"%FF", LINE, b""), (b"fault", LINE, b"Content-Encoding: gzip\r\n")):
            for parameter in (b"", b"Idempotency-Key: other\r\n"):
                client.plain.sendall(post(name, body, more + parameter))
                status, headers, told = client.read()
                assert (status >= 400, headers["content-type"]) == (True, "application/problem+json")
                bodies.append(told)
        assert bodies[::2] == bodies[1::2]


def read_by_h11(data: bytes) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes] | None:
    """Return method, target, headers and body of the request at the begin of `data`; None where h11 refuses it or wants more."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    try:
        request, body = connection.next_event(), b""
        if not isinstance(request, h11.Request) or request.http_version != b"1.1":
            return None
        while isinstance(part := connection.next_event(), h11.Data):
            body += part.data
    except h11.RemoteProtocolError:
        return None
    return (request.method, request.target, list(request.headers), body) if isinstance(part, h11.EndOfMessage) else None


def test_what_is_read_here_is_what_h11_reads() -> None:
    """Requests that were changed at random: whatever is taken for a head here, is the same head to h11."""
    draw = random.Random(20261127)
    pieces = [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"Host: b\r\n",
        b"Content-Length: 3\r\n",
        b"\x00",
        b"\xff",
        b"HTTP/1.0",
        b"x y",
        b"chunked",
        b"1",
    ]
    taken = 0
    for _ in range(4_000):
        data = post(b"a", b"x" * 70, draw.choice([b"", b"A:\t b \r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: Keep-Alive\r\n"]))
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(data) - 70)
            data = data[:at] + draw.choice(pieces) + data[at + draw.randrange(3) :]
        head = read_head(data)
        if head is not None and len(data) >= head.length + head.size:
            taken += 1
            assert read_by_h11(data) == (b"POST", head.target, head.headers.raw, data[head.length : head.length + head.size]), data
    assert taken > 1_000
