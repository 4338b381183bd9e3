"""docs/tutorial.md as a newcomer goes through it: its commands in a shell, in their order, and what they print."""

from pathlib import Path

from pipeline.registrations.query_cache import check_registration
from tests.support.shell_pages import BLOCK, commands_of, run_page

PAGE = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BASE = "http://127.0.0.1:8080"


def test_every_command_prints_what_the_page_says(url: str, tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path, {BASE: url}) == 4


def test_the_file_holds_the_query_that_was_written_in_the_browser() -> None:
    (query,) = (text for language, text in BLOCK.findall(PAGE) if language == "sparql")
    assert any(f"<<'END'\n{query}END\n" in command for command, _ in commands_of(PAGE))
    assert check_registration(query) == ()
