"""The pages of docs/cookbook that need no broker: their commands in a shell, in their order, and what they print."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import serving, until
from tests.support.webhook_receiver import WORDS, receiving

COOKBOOK = Path(__file__).parents[3] / "docs" / "cookbook"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE, LEFT_OUT, MOST_COMMANDS = "http://127.0.0.1:8080", "…", 5
SLACK = "https://hooks.slack.com/services/T000/B000/XXXX"


def run_commands(text: str, directory: Path, places: dict[str, str]) -> int:
    """Run a page's commands, with other places for some of its texts, and return how many outputs were as the page says."""
    blocks = BLOCK.findall(text)
    shown = 0
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for (language, command), (kind, expected) in zip(blocks, [*blocks[1:], ("bash", "")], strict=True):
        if language == "bash":
            script = "set -eu\n" + command
            for place, other in places.items():
                script = script.replace(place, other)
            done = subprocess.run(
                ["bash", "-c", script], cwd=directory, capture_output=True, text=True, timeout=90, check=False, env={**os.environ, "PATH": path}
            )
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            if kind == "":
                pattern = ".*?".join(map(re.escape, expected.strip().split(LEFT_OUT)))
                assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{command}\n{done.stdout}\n{done.stderr}"
                shown += 1
    assert max(len(re.findall(r"^(?:epsparql|curl) ", part, re.MULTILINE)) for part in text.split("\n## ")) <= MOST_COMMANDS
    return shown


@pytest.mark.parametrize("page", ["csv.md", "json.md"])
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
