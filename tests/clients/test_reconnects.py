"""Feeds and subscriptions of the JavaScript package while the server is killed and the network cut: each event and
each solution is there once.
"""

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.clients.conftest import NODE, TOKEN, serve_files
from tests.clients.sabotage import Saboteur
from tests.server.operations.test_restart import port as port
from tests.server.operations.test_security import digest
from tests.soak import is_full

pytestmark = pytest.mark.slow
STRIKES, EVENTS = (20, 100_000) if is_full() else (4, 10_000)
"""Half of the strikes kill the server, the others cut the network."""
RUNS = int(os.environ.get("EPSPARQL_RECONNECTS", "1"))
"""`make soak` runs each test so many times."""
PATIENCE_S = 900.0


@pytest.fixture(params=range(RUNS), autouse=True)
def run(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    found = tmp_path / "tokens"
    found.write_text(f"{digest(TOKEN)} admin\n")
    return found


def wish(url: str) -> dict[str, Any]:
    return {"url": url, "token": TOKEN, "events": EVENTS, "reports": STRIKES}


def check(found: dict[str, Any], saboteur: Saboteur) -> None:
    assert saboteur.kills == saboteur.cuts == STRIKES // 2
    assert found["values"] == [*range(EVENTS)]
    assert found["ids"] == sorted(set(found["ids"]))
    assert found["others"] == [*range(EVENTS // 10)]
    assert found["accepted"] == EVENTS // 10
    assert found["lost"] >= 1  # strikes may come while the client connects again, and are no further loss


@pytest.mark.parametrize("options", [(), ("--no-experimental-websocket",)], ids=["WebSocket", "HTTP"])
def test_in_node(package: Path, tmp_path: Path, port: int, tokens: Path, options: tuple[str, ...]) -> None:
    with Saboteur(tmp_path, port, "--token-file", str(tokens)) as saboteur:
        command = [str(NODE), *options, "tests/chaos_in_node.mjs", json.dumps(wish(saboteur.url))]
        with subprocess.Popen(command, cwd=package, stdout=subprocess.PIPE, text=True) as process:
            timer = threading.Timer(PATIENCE_S, process.kill)
            timer.start()
            assert process.stdout is not None
            last = ""
            for last in process.stdout:
                if last.strip().isdigit():
                    saboteur.strike(int(last))
            timer.cancel()
        assert process.returncode == 0
    check(json.loads(last), saboteur)


def test_in_a_page_of_another_origin(browser: Browser, package: Path, tmp_path: Path, port: int, tokens: Path) -> None:
    with serve_files(package) as elsewhere, Saboteur(tmp_path, port, "--token-file", str(tokens), "--origins", elsewhere) as saboteur:
        page = browser.new_page()
        page.expose_function("report", saboteur.strike)
        page.goto(f"{elsewhere}/README.md")
        script = """async (wish) => {
            const [{ Client }, { run }] = await Promise.all([import("/dist/index.js"), import("/tests/chaos.mjs")]);
            return run({ Client, ...wish, report: window.report });
        }"""
        found = page.evaluate(script, wish(saboteur.url))
        page.close()
    check(found, saboteur)
