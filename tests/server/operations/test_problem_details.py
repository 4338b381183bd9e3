"""These tests check that unforeseen errors are logged, and told without a trace."""

import asyncio
import logging
import time
from typing import Any

import httpx
import pytest

from pipeline.errors import LogFailed, Overloaded
from server.http.problem_details import ErrorMiddleware, describe_exception, unknown_fault
from tests.server.routes.test_streams import assert_problem

Sent = list[dict[str, Any]]


async def _broken(scope: Any, receive: Any, send: Any) -> None:
    if scope.get("begun"):
        await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("secret")


async def _call(scope: dict[str, Any]) -> Sent:
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> Any:
        return {"type": "http.request"}

    await ErrorMiddleware(_broken)(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    ("scope", "answer"),
    [
        pytest.param({"type": "http"}, ["http.response.start", "http.response.body"], id="request"),
        pytest.param({"type": "http", "begun": True}, ["http.response.start"], id="response that had begun"),
        pytest.param({"type": "websocket"}, ["websocket.close"], id="socket"),
    ],
)
def test_the_last_resort(scope: dict[str, Any], answer: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        sent = asyncio.run(_call(scope))
    assert [message["type"] for message in sent] == answer
    assert "secret" not in str(sent)
    assert "RuntimeError: secret" in caplog.text
    if scope == {"type": "http"}:
        assert sent[0]["status"] == 500
        assert_problem(httpx.Response(500, headers=sent[0]["headers"], content=sent[1]["body"]), 500, "internal")


NAMES = [
    ("query", "overheting", ["overheating", "q-5d1"], "the nearest known name is 'overheating'", "overheating"),
    ("query", "OverHeating", ["overheating"], "the nearest known name is 'overheating'", "overheating"),
    ("query", "alerts", ["q-5d1", "rooms"], "GET /queries lists the 2 that there are", None),
    ("stream", "alerts", ["q-5d1"], "GET /streams lists the only one", None),
    ("ontology", "a", ["http://example.org/units"], "GET /ontologies lists the only one", None),
    ("observer", "alerts", ["1", "2"], "GET /queries/a%2Fb/observers lists the 2 that there are", None),
    ("stream", "alerts", [], "there is no stream yet", None),
]


@pytest.mark.parametrize(("kind", "name", "known", "remedy", "expected"), NAMES)
def test_a_known_name_is_told_if_it_is_near(kind: str, name: str, known: list[str], remedy: str, expected: str | None) -> None:
    problem = unknown_fault(kind, name, known, query="a/b").problem
    assert problem.detail.partition("; ")[2] == remedy
    assert problem.expected == expected


def test_the_nearest_of_very_many_names() -> None:
    """Comparing each in full would hold up everyone else for a second."""
    known = {f"http://example.org/streams/sensor-{number:05d}/temperature": None for number in range(20_000)}
    began = time.thread_time()
    near = unknown_fault("stream", "http://example.org/streams/sensor-12345/temprature", known).problem.expected
    assert near == "http://example.org/streams/sensor-12345/temperature"
    unknown_fault("stream", "".join(map(chr, range(0x4E00, 0x4E00 + 200))) * 100, known)
    assert time.thread_time() - began < 0.5


def test_faults_of_the_log() -> None:
    assert describe_exception(Overloaded("full")).document()["status"] == 429
    failed = describe_exception(LogFailed("disk"))
    assert failed.document()["status"] == 503
    assert failed.headers["Retry-After"] == "1"
