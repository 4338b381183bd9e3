"""The pages of docs/cookbook that need no broker: their commands in a shell, in their order, and what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import serving

COOKBOOK = Path(__file__).parents[3] / "docs" / "cookbook"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE, LEFT_OUT, MOST_COMMANDS = "http://127.0.0.1:8080", "…", 5


@pytest.mark.parametrize("page", ["csv.md", "json.md"])
def test_every_command_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    text = (COOKBOOK / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    shown = 0
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with serving(tmp_path / "data") as url:
        for (language, command), (kind, expected) in zip(blocks, [*blocks[1:], ("bash", "")], strict=True):
            if language == "bash":
                script = "set -eu\n" + command.replace(BASE, url)
                done = subprocess.run(
                    ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False, env={**os.environ, "PATH": path}
                )
                assert done.returncode == 0, f"{command}\n{done.stderr}"
                if kind == "":
                    pattern = ".*?".join(map(re.escape, expected.strip().split(LEFT_OUT)))
                    assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{command}\n{done.stdout}\n{done.stderr}"
                    shown += 1
    assert shown >= 2
    assert max(len(re.findall(r"^(?:epsparql|curl) ", part, re.MULTILINE)) for part in text.split("\n## ")) <= MOST_COMMANDS
