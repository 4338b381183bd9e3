"""The pages' queries are registered, and those with a timeline below them are run: what is drawn is what comes out."""

import re
from pathlib import Path

import pytest

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
