"""Each claim of speed in the documentation stands beside the command that measures it, or a link to the page of such
commands.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURE = re.compile(r"\d ?(µs|ms)\b|\bevents?(/s\b| per (CPU )?second)|\bcore-seconds")
MEASURED = re.compile(r"(epsparql |`)bench [a-z]|`make (bench|demo)|\bbenchmarks\.md")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ONE_COMMAND = {"docs/paper-experiments.md"}
"""The figures of these pages are all from the command in their first lines."""
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions")]


def unmeasured(text: str, *, whole: bool = False) -> list[str]:
    """Return the headings of the sections whose figures stand beside no command, with the first figure of each."""
    sections = [text] if whole else re.split(r"^(?=#+ )", text, flags=re.MULTILINE)
    claims = {each: FIGURE.search(FENCED.sub("", each)) for each in sections if not MEASURED.search(each)}
    return [f"{each.partition(chr(10))[0]}: {found[0]}" for each, found in claims.items() if found]


@pytest.mark.parametrize("page", PAGES)
def test_claims_of_speed_name_what_measures_them(page: str) -> None:
    assert unmeasured((ROOT / page).read_text(encoding="utf-8"), whole=page in ONE_COMMAND) == []


def test_the_console_claims_nothing() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "console" / "src").rglob("*.tsx")}
    assert len(texts) > 5
    assert {name for name, text in texts.items() if re.search(r"events/s\b|events per second|µs", text)} == set()


def test_a_claim_without_a_command_is_found() -> None:
    assert unmeasured("# A\nIt takes 5 µs (`epsparql bench engine`).\n## B\nA million events/s.\n") == ["## B: events/s"]
