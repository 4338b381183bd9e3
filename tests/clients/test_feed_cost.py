"""The feeds of both clients, in one run: the JavaScript client takes no more time for an event than the Python
client, of CPU and in all.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import NODE, ROOT, run_process
from tests.server.conftest import serving

pytestmark = [pytest.mark.slow, pytest.mark.soak]  # it compares times, which other suites would disturb
EVENTS, TURNS = 50_000, 8
IN_PYTHON = """
import json, sys, time
from datetime import UTC, datetime, timedelta
from epsparql.client import Client

url, stream, count = sys.argv[1:]
start, integer = datetime(2026, 1, 1, tzinfo=UTC), "http://www.w3.org/2001/XMLSchema#integer"
with Client(url).feed(stream) as feed:
    feed.send(json.dumps({"s": "<http://example.org/s>", "p": "<http://example.org/value>", "o": '"0"', "at": start.isoformat()}))
    feed.flush()
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
    """Each client writes its events as texts, in frames of about 500, by turns over one server.

    Its least seconds count, of CPU and in all.
    """
    commands = {"javascript": (str(NODE), "tests/feed_cost.mjs"), "python": (sys.executable, "-c", IN_PYTHON)}
    best = {name: {"cpu_s": float("inf"), "wall_s": float("inf")} for name in commands}
    with serving(tmp_path / "data") as url:
        for turn in range(TURNS):
            for name, command in commands.items():
                cwd = package if name == "javascript" else ROOT
                found = json.loads(run_process(*command, url, f"{name} {turn}", str(EVENTS), cwd=cwd))
                print(name, found)
                best[name] = {unit: min(least, found[unit]) for unit, least in best[name].items()}
            if all(best["javascript"][unit] <= least for unit, least in best["python"].items()):
                return
    pytest.fail(f"the least of {TURNS} turns: {best}")
