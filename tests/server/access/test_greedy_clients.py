"""A client that takes all it can get, of each protocol, reading answers or not, beside a polite one: what the server
holds, and how long others wait.
"""

import base64
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from bench.measurement import percentile
from bench.server.processes import read_resident_mib
from epsparql.client import Client
from server.child_server import Child
from server.query_output import answer_spool
from tests.server.conftest import COMPILING_S, DEADLINE_S, event, serving, until, values
from tests.soak import budget_s

TYPICAL_S, LONGEST_S = 0.5, 3.0
"""Half of the polite client's answers, and nine tenths of them, may take so long on a machine with other work."""
REQUESTS_MB, ANSWERS_MB = 30, 130
"""The server may grow by so much: for what it has not answered, and for answers that nobody reads."""
LINE = event(1).encode()
GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /streams/greedy/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%b" % (
    len(LINE),
    LINE,
)
LONG = b"POST /streams/greedy/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 40000\r\n\r\n" + b" " * 40_000
SOLUTIONS = 2_000


def upgrade(path: bytes) -> bytes:
    key = base64.b64encode(bytes(16))
    return (
        b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\n\r\n"
        % (path, key)
    )


def frame(first: int, content: bytes) -> bytes:
    """A frame that is masked with zeros, which leave it as it is."""
    size = bytes((0x80 | len(content),)) if len(content) < 126 else b"\xfe" + len(content).to_bytes(2, "big")
    return bytes((first,)) + size + bytes(4) + content


FEED, FOLLOW = upgrade(b"/streams/greedy/feed"), upgrade(b"/queries/followed/feed?after=")
BEGIN = frame(0x01, b"x")
ATTACKS = [
    pytest.param(b"", GET, 1, REQUESTS_MB, id="GETs"),
    pytest.param(b"", POST, 1, REQUESTS_MB, id="short POSTs"),
    pytest.param(b"", POST, 8, REQUESTS_MB, id="short POSTs over many connections"),
    pytest.param(b"", LONG, 1, REQUESTS_MB, id="long POSTs"),
    pytest.param(FEED, frame(0x81, LINE), 1, REQUESTS_MB, id="frames of events"),
    pytest.param(FEED, frame(0x89, b"x" * 125), 1, REQUESTS_MB, id="pings"),
    pytest.param(FEED + BEGIN, frame(0x00, b""), 1, REQUESTS_MB, id="a message in empty fragments without end"),
    pytest.param(FOLLOW, b"", 20, ANSWERS_MB, id="followers by WebSocket"),
    pytest.param(
        b"GET /queries/followed/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: \r\n\r\n", b"", 20, ANSWERS_MB, id="followers by event stream"
    ),
    pytest.param(b"", b"GET /queries/followed/solutions?limit=500 HTTP/1.1\r\nHost: localhost\r\n\r\n", 2, ANSWERS_MB, id="pulls of all solutions"),
    pytest.param(
        b"GET /queries/followed/solutions?limit=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"",
        20,
        ANSWERS_MB,
        id="one large pull over each connection",
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A server in a process of its own, with a query whose solutions are there."""
    directory = tmp_path_factory.mktemp("greedy")
    with Child(directory / "data", "inprocess", directory / "log", extra=("--stall-s", "3", "--retain-bytes", "50000000")) as child:
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        client.register("followed", values("followed"))
        client.create_stream("greedy")
        client.send("followed", "\n".join(event(number, "x" * 2_000) for number in range(SOLUTIONS)))
        until(lambda: client.query("followed")["solutions"] == SOLUTIONS, "all solutions")
        yield child


class Greedy:
    """Sends as fast as the server takes it over one connection, and opens another one where that ends."""

    def __init__(self, address: tuple[str, int], opening: bytes, repeated: bytes, *, reads: bool) -> None:
        self._address, self._opening, self._reads = address, opening, reads
        self._repeated = repeated * max((1 << 20) // max(len(repeated), 1), 1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with socket.create_connection(self._address, DEADLINE_S) as connection:
                    self._attack(connection)
            except OSError:
                self._over.wait(0.05)

    def _attack(self, connection: socket.socket) -> None:
        connection.sendall(self._opening)
        connection.setblocking(False)
        rest = memoryview(self._repeated)
        while not self._over.is_set():
            readable, writable, _ = select.select([connection] if self._reads else [], [connection] if self._repeated else [], [], 0.05)
            if readable and not connection.recv(1 << 20):
                return
            if writable:
                rest = rest[connection.send(rest) :] or memoryview(self._repeated)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


@contextmanager
def attacked(child: Child, opening: bytes, repeated: bytes, connections: int) -> Iterator[None]:
    """Attack over twice as many connections, every other of which reads."""
    address = str(urlsplit(child.url).hostname), int(urlsplit(child.url).port or 80)
    with ExitStack() as stack:
        for reads in [True, False] * connections:
            stack.callback(Greedy(address, opening, repeated, reads=reads).close)
        yield


def ask_politely(child: Child, until_s: float, watch: Callable[[], None]) -> list[float]:
    """Return what each answer took to a client that asks some times a second, and now and then sends an event."""
    connection = HTTPConnection(urlsplit(child.url).netloc, timeout=DEADLINE_S)
    took_s = list[float]()
    while time.monotonic() < until_s or len(took_s) < 20:  # so that one slow write to the disk is no tenth of them
        began = time.monotonic()
        if len(took_s) % 5 == 4:
            connection.request("POST", "/streams/polite/events", LINE, {"Content-Type": "application/x-ndjson"})
        else:
            connection.request("GET", "/livez")
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 202)
        took_s.append(time.monotonic() - began)
        watch()
        time.sleep(0.02)
    connection.close()
    return took_s


@pytest.mark.slow
@pytest.mark.parametrize(("opening", "repeated", "connections", "growth_mb"), ATTACKS)
def test_a_greedy_client_takes_nothing_from_a_polite_one(server: Child, opening: bytes, repeated: bytes, connections: int, growth_mb: int) -> None:
    before_mb, most_mb = read_resident_mib(server.pid), [0.0]

    def watch() -> None:
        most_mb[0] = max(most_mb[0], read_resident_mib(server.pid))

    with attacked(server, opening, repeated, connections):
        took_s = ask_politely(server, time.monotonic() + budget_s() * 0.8 / len(ATTACKS), watch)
    figures = json.dumps(
        {"grown_mb": round(most_mb[0] - before_mb), "p50_s": percentile(took_s, 50), "p90_s": percentile(took_s, 90), "n": len(took_s)}
    )
    print(figures)
    assert most_mb[0] - before_mb < growth_mb, figures
    assert percentile(took_s, 50) < TYPICAL_S, figures
    assert percentile(took_s, 90) < LONGEST_S, figures


def test_large_answers_share_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as url:
        client = Client(url)
        client.register("q", values("a"))
        client.send("a", "\n".join(event(number, f"{number}".zfill(2_000)) for number in range(200)))
        until(lambda: client.query("q")["solutions"] == 200, "all solutions")
        found = httpx.get(f"{url}/queries/q/solutions", timeout=DEADLINE_S)
        assert int(found.headers["content-length"]) == len(found.content) > 400_000
        assert [int(row["v"]["value"]) for row in found.json()["results"]["bindings"]] == [*range(200)]
        monkeypatch.setattr(answer_spool, "_MOST", 200_000)
        problem = httpx.get(f"{url}/queries/q/solutions", timeout=DEADLINE_S)
        assert (problem.status_code, problem.json()["code"]) == (429, "too-many-answers")
        assert httpx.get(f"{url}/queries/q/solutions?limit=70", timeout=DEADLINE_S).status_code == 200


@pytest.mark.slow
def test_the_server_said_nothing_of_all_that(server: Child, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Clients cannot fill the log with traces."""
    log = next(Path(tmp_path_factory.getbasetemp()).glob("greedy*/log"))
    assert "Traceback" not in log.read_text()
