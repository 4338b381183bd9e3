"""docs/tutorial.md as a newcomer goes through it: its commands in a shell, in their order, and what they print."""

import re
import subprocess
from pathlib import Path

from pipeline.registrations.query_cache import check_registration

PAGE = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE = "http://127.0.0.1:8080"
LEFT_OUT = "…"


def steps() -> list[tuple[str, str | None]]:
    """Each command with what the page says that it prints, if it does."""
    blocks = BLOCK.findall(PAGE)
    following = [*blocks[1:], ("bash", "")]
    return [
        (text, shown if kind != "bash" else None) for (language, text), (kind, shown) in zip(blocks, following, strict=True) if language == "bash"
    ]


def test_every_command_prints_what_the_page_says(url: str, tmp_path: Path) -> None:
    shown = 0
    for command, expected in steps():
        script = "set -eu\n" + command.replace(BASE, url)
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if expected is not None:
            pattern = ".*?".join(map(re.escape, expected.strip().split(LEFT_OUT)))
            assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{command}\n{done.stdout}"
            shown += 1
    assert shown == 5


def test_the_file_holds_the_query_that_was_written_in_the_browser() -> None:
    (query,) = (text for language, text in BLOCK.findall(PAGE) if language == "sparql")
    assert any(f"<<'END'\n{query}END\n" in command for command, _ in steps())
    assert check_registration(query) == ()
