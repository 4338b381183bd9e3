"""The feeds of both clients, in one run: the JavaScript client takes no more CPU time for an event than the Python client."""

import json
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import NODE, ROOT, run_process
from tests.server.conftest import serving

pytestmark = [pytest.mark.slow, pytest.mark.soak]
EVENTS, TRIES = 50_000, 3
IN_PYTHON = """
import json, sys, time
from datetime import UTC, datetime, timedelta
from epsparql.client import Client

url, stream, count = sys.argv[1:]
start, integer = datetime(2026, 1, 1, tzinfo=UTC), "http://www.w3.org/2001/XMLSchema#integer"
with Client(url).feed(stream) as feed:
    cpu, began, lines = time.process_time(), time.perf_counter(), []
    for number in range(int(count)):
        at = (start + timedelta(milliseconds=number)).isoformat()
        lines.append(json.dumps({"s": "<http://example.org/s>", "p": "<http://example.org/value>", "o": f'"{number}"^^<{integer}>', "at": at}))
        if len(lines) == 500:
            feed.send("\\n".join(lines))
            lines.clear()
    feed.send("\\n".join(lines) or "")
    feed.flush()
    print(json.dumps({"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - began}))
"""


def test_a_feed_in_javascript_costs_no_more(package: Path, tmp_path: Path) -> None:
    """The least of some tries counts. Each client writes its events as texts, and sends frames of 500."""
    commands = {"javascript": (str(NODE), "tests/feed_cost.mjs"), "python": (sys.executable, "-c", IN_PYTHON)}
    cost = dict.fromkeys(commands, float("inf"))
    with serving(tmp_path / "data") as url:
        for attempt in range(TRIES):
            for name, command in commands.items():
                cwd = package if name == "javascript" else ROOT
                found = json.loads(run_process(*command, url, f"{name} {attempt}", str(EVENTS), cwd=cwd))
                print(name, found)
                cost[name] = min(cost[name], found["cpu_s"])
    assert cost["javascript"] <= cost["python"], cost
