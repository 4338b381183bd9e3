"""The pages' queries are registered, and those with a timeline below them are run: what is drawn is what comes out.

So is the sheet of operators in docs/language/time.md.
"""

import json
import re
from pathlib import Path

import pytest

import epsparql
from pipeline.query_tests.cases import Case, examples_in, find_cases
from pipeline.query_tests.execution import run_case
from pipeline.query_tests.timelines import declare_prefixes
from pipeline.registrations.query_cache import check_registration

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [(f"{page.name}:{example.line}", example.query) for page in PAGES for example in examples_in(page.read_text(encoding="utf-8"))]
RUN = find_cases(PAGES)


def fenced(page: str, language: str) -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_pages_have_examples() -> None:
    assert len(RUN) > 50
    assert {page.name for page in PAGES} >= {"README.md", "time.md"}


@pytest.mark.parametrize(("place", "query"), EXAMPLES, ids=[place for place, _ in EXAMPLES])
def test_every_query_can_be_registered(place: str, query: str) -> None:
    check_registration(declare_prefixes(query))


@pytest.mark.parametrize("case", RUN, ids=lambda case: Path(case.name).name)
def test_every_timeline_is_what_comes_out(case: Case) -> None:
    result = run_case(case)
    assert result.passed, "\n".join([result.headline(), *result.details()])


(SHEET,) = fenced("language/time.md", "operators")
PICTURES = [(title, lines.splitlines()) for title, lines in re.findall(r"^(\S.*?)   +\S.*\n((?:   .*\n)+)", SHEET, re.MULTILINE)]
EVENTS = {"x": "a", "y": "b", "z": "c"}


def times(bar: str) -> tuple[int, int]:
    """Return the seconds at which a bar starts and ends, by its columns."""
    start = len(bar) - len(bar.lstrip())
    return start, len(bar.rstrip()) - 1


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def test_there_is_a_picture_of_each_operator() -> None:
    assert len(PICTURES) == SHEET.count("=>") == 16


@pytest.mark.parametrize(("operator", "lines"), PICTURES, ids=[title for title, _ in PICTURES])
def test_the_picture_is_what_is_found(operator: str, lines: list[str], tmp_path: Path) -> None:
    bars = {line[3:5].strip(): times(line[6:]) for line in lines}
    pattern = re.sub(r"\b([ABC])\b", lambda name: f"{{ ?d <urn:{name[1].lower()}> ?{name[1].lower()} }}", operator)
    feed = [
        {"s": "<urn:d>", "p": f"<urn:{EVENTS[name]}>", "o": 1, "start": at(start), "end": at(end)}
        for name, (start, end) in bars.items()
        if name != "=>"
    ]
    stream = tmp_path / "events.ndjson"
    stream.write_text("\n".join(map(json.dumps, sorted(feed, key=lambda event: str(event["end"])))), encoding="utf-8")
    found = epsparql.run(f"SELECT * WHERE {{ {pattern} }}", {"default": stream})["query"]
    start, end = bars["=>"]
    assert [(solution.start, solution.end) for solution in found] == [(at(start), at(end))]
