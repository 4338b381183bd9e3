"""These tests check what clients may not do.

They try every route without the right token, tricks with names, bodies and connections that never end, and more than
there is room for.
"""

import asyncio
import gzip
import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from epsparql.client import ApiError, Client
from pipeline.formats.body_parser import parse_frame
from pipeline.log import LogWriter
from server.app import create_app, document
from server.cli.openapi_doc import _never
from server.http.auth import Gate
from server.http.problem_details import Fault
from server.process import clock
from server.routes import websockets
from server.service import Service, running
from server.settings import Settings
from tests.server.conftest import DEADLINE_S, event, serving, until, values
from tests.server.operations.test_security import digest
from tests.server.routes.test_streams import assert_problem
from tests.server.subscriptions.test_websockets import closing, dial

PUBLIC = {("GET", "/livez"), ("GET", "/readyz")}
OPERATIONS = [
    (method.upper(), path)
    for path, operations in document(create_app(_never))["paths"].items()
    for method in operations
    if (method.upper(), path) not in PUBLIC
]


LISTS = ("/queries", "/streams", "/trials", "/trials/{id}", "/trials/{id}/solutions")
"""Whoever may read or feed something is given a list of what they may.

A trial is looked for before its queries are known.
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("guarded")
    tokens = directory / "tokens"
    tokens.write_text(f"{digest('root')} admin\n{digest('other')} ingest:other read:other\n{digest('monitor')} metrics\n")
    with serving(directory / "data", token_file=tokens, max_wait_s=0.1) as url:
        yield url


def asked(url: str, method: str, path: str, token: str | None) -> int:
    """The status; of what streams for ever, as soon as it is known."""
    made = path.replace("{name}", "thing").replace("{id}", "1")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.stream(method, url + made, headers=headers, timeout=DEADLINE_S) as answer:
        return answer.status_code


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_asks_for_its_scope(guarded: str, method: str, path: str) -> None:
    """New routes are in the document, and so in here."""
    assert asked(guarded, method, path, None) == 401
    assert asked(guarded, method, path, "nobody") == 401
    stranger = "monitor" if path in LISTS else "other"
    assert asked(guarded, method, path, stranger) == 403
    assert asked(guarded, method, path, "root") not in (401, 403)


@pytest.mark.parametrize("path", ["/streams/thing/feed", "/queries/thing/feed"])
def test_the_sockets_ask_for_their_scope(guarded: str, path: str) -> None:
    for token, code in ((None, 4001), ("other", 4003)):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with dial(guarded, path, additional_headers=headers) as connection:
            assert closing(connection)[0] == code


@pytest.mark.parametrize(
    "segment",
    [
        "..%2F..%2Fetc%2Fpasswd",
        "%2e%2e%2f%2e%2e%2fcatalogue.json",
        "..%5C..%5Ca",
        "%252e%252e",
        "a%3Fb%23c",
        "%E2%80%AE",
        "C%3A%5Ca",
        "x" * 3000,
        "~root",
        "%7E",
    ],
)
def test_names_are_names_whatever_they_look_like(url: str, client: Client, segment: str, tmp_path: Path) -> None:
    created = httpx.put(f"{url}/streams/{segment}", json={})
    assert created.status_code in (200, 201), created.text
    name = created.json()["name"]
    assert client.send(name, event(1)).accepted == 1
    assert client.stream(name)["accepted"] == 1
    assert client.register(name, values("a"))["name"] == name
    assert httpx.delete(f"{url}/queries/{segment}").status_code == 204


@pytest.mark.parametrize("segment", ["", "%00", "a%0Ab", "%FF", "%C0%AF", "%2e", "%2E%2e"])
def test_what_is_no_name(url: str, segment: str) -> None:
    assert httpx.put(f"{url}/streams/{segment}", json={}).status_code in (400, 404)


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/streams/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/.git/config"])
def test_paths_lead_nowhere_else(url: str, path: str) -> None:
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), DEADLINE_S) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        assert b" 404 " in everything(connection).splitlines()[0]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "x"])
def test_encoded_bodies_are_not_taken(url: str, stream: str, encoding: str) -> None:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/x-ndjson"}
    bomb = gzip.compress(b" " * 10_000_000)
    assert_problem(httpx.post(f"{url}/streams/{stream[-1]}/events", content=bomb, headers=headers), 415, "content-encoding")
    assert_problem(httpx.put(f"{url}/streams/a", content=bomb, headers=headers), 415, "content-encoding")


@pytest.mark.parametrize(("opening", "column"), [("[", 65), ('{"a":', 5 * 64 + 1), ('"[[" \n[', None)])
def test_deep_json_is_refused_with_its_place(url: str, opening: str, column: int | None) -> None:
    for path in ("/streams/deep", "/queries/deep"):
        problem = assert_problem(httpx.put(url + path, content=opening * 1_000, headers={"Content-Type": "application/json"}), 400, "too-deep")
        assert (problem["line"], problem["column"]) == ((1, column) if column else (66, 1))


def everything(connection: socket.socket) -> bytes:
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with serving(tmp_path_factory.mktemp("hurried"), header_s=0.5, body_s=0.5, body_total_s=2.0) as url:
        parts = urlsplit(url)
        yield str(parts.hostname), parts.port or 0


class TestConnections:
    def talk(self, address: tuple[str, int], first: bytes, drip: bytes = b"") -> bytes:
        """Return what comes back after `first`, and then a byte of `drip` each tenth of a second."""
        with socket.create_connection(address, DEADLINE_S) as connection:
            connection.sendall(first)
            connection.settimeout(0.1)
            found, began = b"", time.monotonic()
            while time.monotonic() - began < DEADLINE_S:
                try:
                    part = connection.recv(65536)
                    if not part:
                        return found
                    found += part
                except TimeoutError:
                    if drip:
                        connection.sendall(drip[:1])
                        drip = drip[1:]
        raise AssertionError("the connection stays open")

    @pytest.mark.parametrize(
        ("first", "drip"),
        [
            pytest.param(b"", b"", id="nothing"),
            pytest.param(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n", b"", id="half a head"),
            pytest.param(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", b"a" * 1000, id="a head that never ends"),
            pytest.param(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nX: ", b"aaa", id="the second one"),
        ],
    )
    def test_slow_heads(self, hurried: tuple[str, int], first: bytes, drip: bytes) -> None:
        found = self.talk(hurried, first, drip)
        assert b"HTTP/1.1 408 Request Timeout" in found
        assert json.loads(found.rpartition(b"\r\n\r\n")[2])["code"] == "slow-head"

    @pytest.mark.parametrize(("length", "drip"), [pytest.param(100, b"", id="silent"), pytest.param(1000, b" " * 1000, id="dripping")])
    def test_slow_bodies(self, hurried: tuple[str, int], length: int, drip: bytes) -> None:
        head = f"POST /streams/a/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n"
        found = self.talk(hurried, head.encode(), drip)
        assert b"HTTP/1.1 408 Request Timeout" in found
        assert json.loads(found.rpartition(b"\r\n\r\n")[2])["code"] == "slow-body"

    def test_who_hangs_up_within_a_body_leaves_a_line_and_no_fault(self, hurried: tuple[str, int], caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "epsparql.requests")
        with socket.create_connection(hurried) as connection:
            connection.sendall(
                b"POST /streams/left/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 99\r\n\r\n{"
            )
        until(lambda: "POST /streams/left/events 400" in caplog.text, "the request is told of")
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

    @pytest.mark.parametrize("nonsense", [b"\x16\x03\x01\x02\x00\x01\x00", b"HELO there\r\n\r\n", b"GET /" + b"a" * 100_000])
    def test_what_is_no_http(self, hurried: tuple[str, int], nonsense: bytes) -> None:
        found = self.talk(hurried, nonsense)
        assert b"HTTP/1.1 400 Bad Request" in found or b"HTTP/1.1 408" in found
        assert b"content-security-policy" in found.lower()

    def test_a_request_in_time_is_not_hurried(self, hurried: tuple[str, int]) -> None:
        """An answer may take longer than a head."""
        with httpx.Client(base_url=f"http://{hurried[0]}:{hurried[1]}") as client:
            client.put("/queries/q", content=values("a"), headers={"Content-Type": "application/sparql-query"})
            assert client.get("/queries/q/solutions?wait=1.5").status_code == 200


def test_there_are_limits(tmp_path: Path) -> None:
    chosen = {"max_queries": 2, "max_subscribers": 3, "max_subscribers_per_query": 2, "max_feeds": 1}
    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path, **chosen))
        client = Client(url)
        client.register("a", values("a"))
        client.register("b", values("a"))
        client.register("b", values("b"), replace=True)
        with pytest.raises(ApiError) as refused:
            client.register("c", values("a"))
        assert (refused.value.status, refused.value.code) == (429, "too-many-queries")
        followers = [stack.enter_context(dial(url, f"/queries/{query}/feed")) for query in "aab"]
        for connection in followers:
            connection.ping().wait(DEADLINE_S)
        for query in "ab":
            with dial(url, f"/queries/{query}/feed") as connection:
                assert closing(connection)[0] == 1013
            assert_problem(httpx.get(f"{url}/queries/{query}/events"), 429, "too-many-subscribers")
        stack.enter_context(dial(url, "/streams/a/feed")).ping().wait(DEADLINE_S)
        with dial(url, "/streams/a/feed") as connection:
            assert closing(connection)[0] == 1013
        followers[0].close()
        until(lambda: httpx.get(f"{url}/metrics").text.count('epsparql_subscribers{class="websocket"} 2.0') == 1, "the seat is free")
        with dial(url, "/queries/a/feed") as connection:
            connection.ping().wait(DEADLINE_S)


def test_an_unknown_policy(url: str, client: Client, name: str, stream: str) -> None:
    client.register("policies", values(stream))
    with dial(url, "/queries/policies/feed?policy=x") as connection:
        assert closing(connection) == (1008, "policy cannot be 'x'; expected disconnect or drop-oldest")


async def _fed_without_a_runner(data: Path, log: LogWriter, **limits: Any) -> list[httpx.Response]:
    settings, gate = Settings(data=data, runner="inprocess", **limits), Gate(None)
    app = create_app(lambda: running(settings, clock, gate, log))
    service = app.state.service = Service(settings, clock, gate, log)
    headers = {"Content-Type": "application/x-ndjson"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        answers = [await client.post("/streams/a/events", content=f"{event(number)}\n{event(number)}", headers=headers) for number in range(5)]
    service.close()
    return answers


@pytest.mark.parametrize("limits", [{"max_lag": 2}, {"max_lag_rows": 5}])
def test_events_wait_for_a_runner_that_is_behind(tmp_path: Path, limits: dict[str, int]) -> None:
    with LogWriter(tmp_path, clock) as log:
        answers = asyncio.run(_fed_without_a_runner(tmp_path, log, **limits))
    assert [answer.status_code for answer in answers] == [202, 202, 202, 429, 429]
    assert f"more than {next(iter(limits))}=" in str(assert_problem(answers[-1], 429, "runner-behind")["detail"])
    assert answers[-1].headers["retry-after"] == "1"


def _unfinished(url: str, size: int) -> socket.socket:
    """A connection that has sent so many bytes of a body, in one chunk, and goes on with it never."""
    parts = urlsplit(url)
    connection = socket.create_connection((str(parts.hostname), parts.port or 0), DEADLINE_S)
    head = "POST /streams/a/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(head.encode() + b"%x\r\n%s\r\n" % (size, b" " * size))
    return connection


def _leaves_no_room(url: str, size: int) -> bool:
    """Return whether a body is refused by its announced length. None of it is sent, so it takes no room from others."""
    parts = urlsplit(url)
    head = f"POST /streams/a/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection((str(parts.hostname), parts.port or 0), 0.5) as connection:
        connection.sendall(head.encode())
        try:
            return b" 429 " in connection.recv(4096)
        except TimeoutError:
            return False


def pad(size: int) -> bytes:
    """Return a body of so many bytes that brings no triples."""
    return b'{"triples":""}'.ljust(size)


def _post_padding(url: str, size: int) -> httpx.Response:
    return httpx.post(f"{url}/streams/a/events", headers={"Content-Type": "application/x-ndjson"}, timeout=DEADLINE_S, content=pad(size))


def test_unfinished_bodies_share_one_bound(tmp_path: Path) -> None:
    def refused(**sent: Any) -> httpx.Response:
        return httpx.post(f"{url}/streams/a/events", headers={"Content-Type": "application/x-ndjson"}, timeout=DEADLINE_S, **sent)

    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path, max_bodies=1_000_000, max_body=400_000, max_background=500_000))
        client = Client(url)
        client.create_stream("a")
        held = [stack.enter_context(_unfinished(url, 300_000)) for _ in range(3)]
        until(lambda: _leaves_no_room(url, 350_000), "three bodies are held")
        for sent in ({"content": b" " * 350_000}, {"content": iter([b" " * 200_000, b" " * 150_000])}):
            answer = refused(**sent)
            detail = str(assert_problem(answer, 429, "too-many-bodies")["detail"])
            assert "max_bodies=1000000" in detail
            assert answer.headers["retry-after"] == "1"
        assert client.send("a", event(1)).accepted == 1  # for which there is room
        held.pop().close()
        until(lambda: refused(content=pad(350_000)).status_code == 202, "what one held is free again")
        for connection in held:
            connection.close()
        until(lambda: refused(content=pad(400_000)).status_code == 202, "all of it is free again")
        for _ in range(4):  # what was answered holds nothing
            assert refused(content=pad(400_000)).status_code == 202


def test_frames_share_the_bound_of_bodies(tmp_path: Path) -> None:
    """A frame waits for room, and nothing more is read from its connection meanwhile."""
    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path, max_bodies=1_000_000, max_body=400_000, max_background=400_000, max_frame=400_000))
        Client(url).create_stream("a")
        held = [stack.enter_context(_unfinished(url, 300_000)) for _ in range(3)]
        until(lambda: _leaves_no_room(url, 350_000), "three bodies are held")
        connection = stack.enter_context(dial(url, "/streams/a/feed"))
        connection.send(event(1))  # for which there is room
        assert json.loads(connection.recv(DEADLINE_S))["accepted"] == 1
        connection.send(pad(350_000).decode())
        with pytest.raises(TimeoutError):
            connection.recv(0.5)
        held.pop().close()
        assert json.loads(connection.recv(DEADLINE_S))["accepted"] == 0
        for other in held:
            other.close()
        for _ in range(4):  # what was answered holds nothing
            connection.send(pad(400_000).decode())
            assert json.loads(connection.recv(DEADLINE_S))["accepted"] == 0
        until(lambda: _post_padding(url, 400_000).status_code == 202, "all of it is free again")


async def _refused_beside_a_frame(data: Path, log: LogWriter) -> tuple[int, int]:
    """Return the status of a body beside a frame that is not answered yet, and once that connection has gone."""
    settings, gate = (
        Settings(data=data, runner="inprocess", max_lag=1, max_bodies=1000, max_body=1000, max_background=1000, max_frame=1000),
        Gate(None),
    )
    service = Service(settings, clock, gate, log)
    await asyncio.wrap_future(log.submit("a", parse_frame(event(1).encode(), arrived=clock())[0], None, arrived=clock()))
    await asyncio.wrap_future(log.submit("a", parse_frame(event(2).encode(), arrived=clock())[0], None, arrived=clock()))
    assert service.admission.backlog
    found = []
    frame = asyncio.create_task(websockets.accept_frame(service, "a", b" " * 700, binary=False))
    await asyncio.sleep(0)  # the frame waits for the runner, which there is none of
    for _ in range(2):
        try:
            service.admission.bodies.check_room(600)
            found.append(202)
        except Fault as fault:
            found.append(int(fault.problem.status))
        frame.cancel()
        await asyncio.wait([frame])
    service.close()
    return found[0], found[1]


def test_a_frame_that_waits_takes_room_from_bodies(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock) as log:
        assert asyncio.run(_refused_beside_a_frame(tmp_path, log)) == (429, 202)


def test_a_small_body_that_expands_is_too_large(url: str, stream: str) -> None:
    body = f"@prefix p: <http://e/{'x' * 80_000}> .\n" + "".join(f"p:a{k} p:b p:c .\n" for k in range(1_000))
    for method, path in (("POST", f"/streams/{stream[-1]}/events"), ("PUT", "/ontologies/http%3A%2F%2Fe%2Fg")):
        answer = httpx.request(method, url + path, content=body, headers={"Content-Type": "text/turtle"}, timeout=DEADLINE_S)
        assert "shorten its prefixes" in str(assert_problem(answer, 413, "expansion")["detail"])
