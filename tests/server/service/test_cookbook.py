"""The pages of docs/cookbook that need no broker: their commands in a shell, in their order, and what they print."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from epsparql.client import Client
from tests.server.conftest import serving, until
from tests.support.webhook_receiver import WORDS, receiving

COOKBOOK = Path(__file__).parents[3] / "docs" / "cookbook"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE, LEFT_OUT, MOST_COMMANDS = "http://127.0.0.1:8080", "…", 5
SLACK = "https://hooks.slack.com/services/T000/B000/XXXX"


def run_commands(text: str, directory: Path, places: dict[str, str]) -> int:
    """Run a page's commands, with other places for some of its texts, and return how many outputs were as the page
    says.
    """
    blocks = BLOCK.findall(text)
    shown = 0
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "EPSPARQL_SERVER": places.get(BASE, "")}
    for (language, command), (kind, expected) in zip(blocks, [*blocks[1:], ("bash", "")], strict=True):
        if language == "bash":
            script = "set -eu\n" + command
            for place, other in places.items():
                script = script.replace(place, other)
            done = subprocess.run(["bash", "-c", script], cwd=directory, capture_output=True, text=True, timeout=90, check=False, env=environment)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            if kind == "":
                pattern = ".*?".join(map(re.escape, expected.strip().split(LEFT_OUT)))
                assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{command}\n{done.stdout}\n{done.stderr}"
                shown += 1
    assert max(len(re.findall(r"^(?:epsparql|curl) ", part, re.MULTILINE)) for part in text.split("\n## ")) <= MOST_COMMANDS
    return shown


@pytest.mark.parametrize("page", ["csv.md", "json.md", "terminal.md", "alerts.md"])
def test_every_command_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    with serving(tmp_path / "data") as url:
        assert run_commands((COOKBOOK / page).read_text(encoding="utf-8"), tmp_path, {BASE: url}) >= 2


def test_a_channel_gets_what_the_page_says(tmp_path: Path) -> None:
    text = (COOKBOOK / "slack.md").read_text(encoding="utf-8")
    with receiving(lambda _number, _delivery: (200, {WORDS: "ok"})) as receiver, serving(tmp_path / "data", allow_hosts=("127.0.0.1",)) as url:
        assert run_commands(text, tmp_path, {BASE: url, SLACK: receiver.url}) == 2
        until(lambda: len(receiver.taken) == 2, "the test message and the solution")
    test, message = (json.loads(delivery.body)["text"] for delivery in receiver.taken)
    assert test.startswith("*[test] hot*")
    assert message in [block.strip() for kind, block in BLOCK.findall(text) if kind == "text"]


ACCEPT = {"json": "application/json;q=0.9,text/plain", "csv": "text/csv; charset=utf-8"}
"""What the plugin sends for each type of query (its pkg/infinity/headers.go)."""
TIMES = {"${__from:date:iso}": "2026-01-01T09:00:00.000Z", "${__to:date:iso}": "2026-01-01T12:00:00.000Z"}


def test_the_dashboards_requests_find_their_columns(tmp_path: Path) -> None:
    """The plugin encodes the query string anew, as httpx does here."""
    hot = BLOCK.findall((COOKBOOK / "slack.md").read_text(encoding="utf-8"))
    with serving(tmp_path / "data") as url:
        for kind, command in hot:
            if kind == "bash" and "observers" not in command:
                subprocess.run(["bash", "-c", command.replace(BASE, url)], check=True, timeout=60)
        client = Client(url)
        until(lambda: client.query("hot")["solutions"] == 1, "the solution")
        for panel in json.loads((COOKBOOK / "grafana.json").read_text(encoding="utf-8"))["panels"]:
            (target,) = panel["targets"]
            where, _, query = target["url"].replace(BASE, url).partition("?")
            parameters = {name: TIMES.get(value, value) for name, value in parse_qsl(query)}
            answer = httpx.get(where, params=parameters, headers={"Accept": ACCEPT[target["type"]], "User-Agent": "Grafana"})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"].startswith(ACCEPT[target["type"]].partition(";")[0])
            found: Any = answer.json() if target["type"] == "json" else list(csv.DictReader(io.StringIO(answer.text)))
            for member in filter(None, target["root_selector"].split(".")):
                found = found[member]
            (row,) = found
            values = {column["text"]: reduce(getitem, column["selector"].split("."), row) for column in target["columns"]}
            assert values["Value"] == "31.5"
            assert values.get("Time", values.get("End", "2026-01-01T10:00:00Z")) == "2026-01-01T10:00:00Z"
        page = (COOKBOOK / "grafana.md").read_text(encoding="utf-8")
        assert all(panel["targets"][0]["url"].partition("?")[2] in page for panel in json.loads((COOKBOOK / "grafana.json").read_text())["panels"])
        assert run_commands(page, tmp_path, {BASE: url}) == 1
