"""Liveness and readiness."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from pipeline.log import LogWriter
from pipeline.spark.supervisor import SparkRunner
from server.app import create_app
from server.cli.standby import Loading, answering
from server.http.auth import Gate
from server.process import clock
from server.service import Service, running
from server.settings import Settings
from tests.server.routes.test_streams import assert_problem


def test_live_and_ready(http: httpx.Client) -> None:
    assert http.get("/livez").json() == {"status": "ok"}
    ready = http.get("/readyz").json()
    assert (ready["status"], ready["runner"], ready["state"]) == ("ready", "inprocess", "running")
    assert ready["lag"] >= 0
    assert ready["standbys"] is None


async def _answers(data: Path, log: LogWriter) -> list[httpx.Response]:
    """Return the answers of a service whose runner was never started, and of one whose runner could not be."""
    settings, gate = Settings(data=data, runner="inprocess"), Gate(None)
    app = create_app(lambda: running(settings, clock, gate, log))
    service = app.state.service = Service(settings, clock, gate, log)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answers = [await client.get("/readyz")]
        service.lifecycle.failure = "no Java"
        answers.append(await client.get("/readyz"))
    service.close()
    return answers


def test_a_server_that_stands_by_answers_with_how_far_it_is(tmp_path: Path) -> None:
    settings, listener = Settings(data=tmp_path, runner="inprocess"), socket.create_server(("127.0.0.1", 0))
    loading, port = Loading(settings), listener.getsockname()[1]
    with answering(settings, listener, loading), httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        assert http.get("/livez").json() == {"status": "ok"}
        assert "is loading its code" in str(assert_problem(http.get("/readyz"), 503, "standby-loading")["detail"])
        loading.begin_loading()
        loading.wait()
        assert "has loaded its code" in str(assert_problem(http.post("/streams/s/events"), 503, "standby-loaded")["detail"])
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://127.0.0.1:{port}/streams/s/feed")
        assert refused.value.response.status_code == 503
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_spark_that_starts_is_told(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock) as log:
        lifecycle = Service(Settings(data=tmp_path, runner="spark"), clock, Gate(None), log).lifecycle
        assert isinstance(lifecycle.runner, SparkRunner)
        lifecycle.runner._state = "starting"
        assert lifecycle.describe_state() == "starting: the processes of Spark come up, which takes ten seconds or more"


def test_not_ready_while_the_runner_is_not(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock) as log:
        stopped, failed = asyncio.run(_answers(tmp_path, log))
    assert "stopped" in str(assert_problem(stopped, 503, "not-ready")["detail"])
    assert stopped.headers["retry-after"] == "1"
    assert "no Java" in str(assert_problem(failed, 503)["detail"])
