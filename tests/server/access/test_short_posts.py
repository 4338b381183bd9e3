"""Short POSTs of events are answered without the layers: as these would, and also in pieces, and one after the other."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

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

    def rest(self) -> bytes:
        """Return what comes until the connection ends."""
        found, self._seen = self._seen, b""
        with suppress(ConnectionResetError):  # the server had not read all that was sent
            while part := self.plain.recv(1 << 16):
                found += part
        return found

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
