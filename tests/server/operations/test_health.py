"""Liveness and readiness."""

import asyncio
from pathlib import Path

import httpx

from pipeline.log import LogWriter
from server.app import create_app
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


async def _answers(data: Path, log: LogWriter) -> list[httpx.Response]:
    """Return the answers of a service that is being compiled, of one whose runner was never started, and of one whose runner could not be."""
    settings, gate = Settings(data=data, runner="inprocess"), Gate(None)
    app = create_app(lambda: running(settings, clock, gate, log))
    service = app.state.service = Service(settings, clock, gate, log)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answers = [await client.get("/readyz")]
        service.lifecycle.preparing = False
        answers.append(await client.get("/readyz"))
        service.lifecycle.failure = "no Java"
        answers.append(await client.get("/readyz"))
    service.close()
    return answers


def test_not_ready_while_the_runner_is_not(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock) as log:
        compiling, stopped, failed = asyncio.run(_answers(tmp_path, log))
    assert "compiled" in str(assert_problem(compiling, 503, "not-ready")["detail"])
    assert "stopped" in str(assert_problem(stopped, 503, "not-ready")["detail"])
    assert stopped.headers["retry-after"] == "1"
    assert "no Java" in str(assert_problem(failed, 503)["detail"])
