"""Runs the commands of a page in a shell, in their order, and compares what they print with what the page says."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"


def commands_of(page: str) -> list[tuple[str, str | None]]:
    """Each command with what the page says that it prints, if it does: a block that follows and is no command."""
    blocks = BLOCK.findall(page)
    following = [*blocks[1:], ("bash", "")]
    return [
        (text, shown if kind != "bash" else None) for (language, text), (kind, shown) in zip(blocks, following, strict=True) if language == "bash"
    ]


def run_page(page: str, directory: Path, replaced: Mapping[str, str]) -> int:
    """Run the commands, with texts such as addresses `replaced`; return how many outputs were compared."""
    shown = 0
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command, expected in commands_of(page):
        script = "set -eu\n" + command
        for text, other in replaced.items():
            script = script.replace(text, other)
        done = subprocess.run(
            ["bash", "-c", script], cwd=directory, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        if expected is not None:
            pattern = ".*?".join(map(re.escape, expected.strip().split(LEFT_OUT)))
            assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{command}\n{done.stdout}"
            shown += 1
    return shown
