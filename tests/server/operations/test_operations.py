"""These tests check what an operator relies on: figures, ids of requests, lines of the log, the audit, a stop under
load.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from epsparql.client import Client, Solution, Unreachable, segment
from server.child_server import Child
from server.http.audit import Audit
from server.observability.middleware import SECURE
from server.settings import Settings
from tests.server.conftest import COMPILING_S, DEADLINE_S, event, serving, until, values
from tests.server.operations.test_restart import port
from tests.server.operations.test_security import digest

__all__ = ["port"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operated")


@pytest.fixture(scope="module")
def operated(data: Path) -> Iterator[str]:
    """Serve with tokens, so that the audit has somebody to name."""
    tokens = data / "tokens"
    tokens.write_text(f"{digest('root')} admin\n{digest('monitor')} metrics\n")
    with serving(data, token_file=tokens) as url:
        yield url


@pytest.fixture
def root(operated: str) -> Client:
    return Client(operated, "root")


def figures(url: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = httpx.get(f"{url}/metrics", headers={"Authorization": "Bearer monitor"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(answer.text))
    assert all(family.name.startswith("epsparql_") for family in families)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for family in families for sample in family.samples}


def test_metrics(operated: str, root: Client, name: str, stream: str) -> None:
    root.register(name, values(stream))
    with root.follow(name) as subscription:
        root.send(stream, event(3) + "\n" + event(4))
        for _ in range(2):
            while not isinstance(subscription.next(DEADLINE_S), Solution):
                pass
        root.send(stream, event(1))
        found = figures(operated)
    of_stream, of_query = frozenset({("stream", stream)}), frozenset({("query", name)})
    assert found["epsparql_stream_occurrences_total", of_stream] == 3
    assert found["epsparql_stream_late_occurrences_total", of_stream] == 1
    assert found["epsparql_stream_watermark_seconds", of_stream] == 1767225604
    assert found["epsparql_query_solutions_total", of_query] == 2
    assert found["epsparql_queries", frozenset({("state", "running")})] >= 1
    assert found["epsparql_subscribers", frozenset({("class", "websocket")})] == 1
    assert found["epsparql_deliveries_total", frozenset({("class", "websocket")})] == 2
    assert found["epsparql_runner_ready", frozenset()] == 1
    assert found["epsparql_runner_lag_entries", frozenset()] >= 0
    posted = frozenset({("method", "POST"), ("route", "/streams/{name}/events"), ("status", "202")})
    assert found["epsparql_http_requests_total", posted] >= 2
    assert ("epsparql_process_resident_memory_bytes", frozenset()) in found


def test_partial_matches_are_counted_under_both_names(operated: str, root: Client, name: str, stream: str) -> None:
    root.register(name, f"PREFIX : <http://example.org/> SELECT ?v ?w FROM STREAM <{stream}> WHERE {{ {{ ?s :value ?v }} SEQ {{ ?s :other ?w }} }}")
    root.send(stream, event(3) + "\n" + event(4))
    of_query = frozenset({("query", name)})
    until(lambda: figures(operated).get(("epsparql_query_partial_matches", of_query)) == 2, "the runner has reported the query's state")
    found = figures(operated)
    assert found["epsparql_query_goals", of_query] == found["epsparql_query_partial_matches", of_query]


def test_what_clients_make_up_makes_no_series(operated: str) -> None:
    for number in range(5):
        httpx.request(f"MADE{number}", f"{operated}/made/up/{number}")
    labels = [dict(labels) for name, labels in figures(operated) if name == "epsparql_http_requests_total"]
    assert not [each for each in labels if "up" in each["route"] or "MADE" in each["method"]]


def test_metrics_need_their_scope(operated: str) -> None:
    assert httpx.get(f"{operated}/metrics").status_code == 401
    assert httpx.get(f"{operated}/queries", headers={"Authorization": "Bearer monitor"}).status_code == 403


def test_request_ids(operated: str) -> None:
    assert httpx.get(f"{operated}/livez", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = [httpx.get(f"{operated}/livez", headers={"X-Request-Id": given}).headers["x-request-id"] for given in ("", "a b", "x" * 200, "<")]
    assert len({each for each in made if re.fullmatch("[0-9a-f]{32}", each)}) == 4


@pytest.mark.parametrize("path", ["/livez", "/queries", "/nothing/here", "/openapi.json", "/metrics"])
def test_every_answer_keeps_browsers_careful(operated: str, path: str) -> None:
    headers = httpx.get(operated + path).headers
    assert {name: headers[name] for name in SECURE} == SECURE
    assert "unsafe" not in headers["content-security-policy"]
    assert "server" not in headers


def test_the_audit_names_who_what_when_and_from_where(operated: str, root: Client, data: Path, name: str, stream: str) -> None:
    root.request("PUT", f"/queries/{segment(name)}", values(stream).encode(), Content_Type="application/sparql-query", X_Request_Id="r1")
    root.send(stream, event(1))
    httpx.delete(f"{operated}/queries/other")
    lines = [json.loads(line) for line in (data / "audit.ndjson").read_text().splitlines()]
    (line,) = [line for line in lines if line["request_id"] == "r1"]
    assert (line["method"], line["status"], line["client"]) == ("PUT", 201, "127.0.0.1")
    assert line["who"] == f"token {digest('root')[:12]}"
    assert line["time"].endswith("Z")
    assert not [line for line in lines if line["path"].endswith("/events") or line["status"] >= 400]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "told"),
    [
        ((), "203.0.113.5, 198.51.100.9, 192.0.2.7", "127.0.0.1"),
        (("192.0.2.0/24",), "203.0.113.5, 198.51.100.9, 192.0.2.7", "127.0.0.1"),
        (("127.0.0.1/32", "192.0.2.7/32"), "203.0.113.5, 198.51.100.9, 192.0.2.7", "198.51.100.9"),
        (("127.0.0.1/32",), "[2001:DB8::0:1]:99", "2001:db8::1"),
        (("127.0.0.1/32",), "203.0.113.5, <script>x</script> token 0123", None),
        (("127.0.0.1/32",), "x" * 5_000, None),
    ],
)
def test_only_a_proxy_that_is_named_tells_who_asks(proxies: tuple[str, ...], forwarded: str, told: str | None, tmp_path: Path) -> None:
    with serving(tmp_path, proxies=proxies) as url:
        httpx.put(f"{url}/streams/a", headers={"X-Forwarded-For": forwarded}).raise_for_status()
    assert [json.loads(line)["client"] for line in (tmp_path / "audit.ndjson").read_text().splitlines()] == [told]


def test_the_audit_is_bounded(tmp_path: Path) -> None:
    audit = Audit(tmp_path, 1_000)
    for number in range(100):
        audit.record_change(number, {"path": f"/{number}"})
    kept = [json.loads(line)["path"] for name in ("audit.1.ndjson", "audit.ndjson") for line in (tmp_path / name).read_text().splitlines()]
    assert kept[-1] == "/99"
    assert kept == [f"/{number}" for number in range(100 - len(kept), 100)]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2_200


def test_a_disk_that_takes_no_audit_does_not_undo_the_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Audit(tmp_path / "missing", Settings().audit_bytes).record_change(0, {"path": "/x"})
    assert '"/x"' in caplog.text


@pytest.mark.slow
def test_a_stop_under_load_loses_nothing(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are sent over both ways while the server is told to stop and started again; each is there once, and each
    solution was seen once.
    """
    monkeypatch.setenv("EPSPARQL_LOG_FORMAT", "json")
    log = tmp_path / "log"
    client, n = Client(f"http://127.0.0.1:{port}", patience_s=COMPILING_S), 3_000
    sent, failures = [0], list[BaseException]()

    def feed() -> None:
        try:
            with client.feed("default", window=32) as connection:
                for number in range(n):
                    connection.send(event(number))
                    sent[0] = number
                connection.flush()
        except BaseException as failure:  # noqa: BLE001 - told by the test
            failures.append(failure)

    def post() -> None:
        for number in range(n // 10):

            def attempt(number: int = number) -> None:
                client.send("posted", event(number), key=str(number))

            try:
                client.retry(attempt)
            except Unreachable as failure:
                failures.append(failure)

    threads = [threading.Thread(target=work) for work in (feed, post)]
    seen: list[Solution] = []
    with Child(tmp_path / "data", "inprocess", log, port) as child:
        client.wait_ready(COMPILING_S)
        client.create_stream("posted")
        client.register("q", values("default"))
        client.register("p", values("posted"))
        for thread in threads:
            thread.start()
        until(lambda: sent[0] > n // 3, "a third is sent")
        assert child.stop() == 0, log.read_text()
    with Child(tmp_path / "data", "inprocess", log, port):
        client.wait_ready(COMPILING_S)
        for thread in threads:
            thread.join(COMPILING_S)
        assert failures == []
        client.finish("default")
        with client.follow("q") as subscription:
            seen += subscription
        until(lambda: client.query("p")["solutions"] == n // 10, "the posted ones")
        assert client.stream("posted")["accepted"] == n // 10
    assert [each.binding["v"]["value"] for each in seen if each.binding] == [str(number) for number in range(n)]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert not [line for line in lines if line["level"] == "error"]
    requests = [line for line in lines if line["logger"] == "epsparql.requests"]
    assert {"PUT", "WEBSOCKET", "POST"} <= {line["method"] for line in requests}
    assert all(line["request_id"] and line["seconds"] >= 0 for line in requests)


@pytest.mark.slow
def test_a_text_that_is_no_utf_8_closes_its_socket_and_is_one_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    with Child(tmp_path / "data", "inprocess", log) as child:
        with connect(child.url.replace("http", "ws") + "/streams/default/feed", proxy=None) as socket:
            socket.send(b"\xff{}", text=True)
            with suppress(ConnectionClosed):
                while True:
                    socket.recv(DEADLINE_S)
            assert socket.close_code == 1007
        (line,) = [line for line in log.read_text().splitlines() if "UTF-8" in line]
        assert "WARNING" in line
        assert "Traceback" not in log.read_text()
