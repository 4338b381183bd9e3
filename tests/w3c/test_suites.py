"""The W3C's SPARQL suites through the language and the engine; the table of passes stands at the end of pytest's
output.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

import epsparql
from epsparql.errors import Unsupported
from tests.soak import is_full
from tests.w3c.evaluate import difference, text_of
from tests.w3c.page import PAGE, page
from tests.w3c.passed_over import BY_OWL_RL, BY_VALUE, PASSED_OVER
from tests.w3c.suite import ROOT, Kind, SuiteCase, beyond_rdfs, cases

CASES = cases()

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not ROOT.exists(), reason="the W3C suites are not beside the project")]


def refusal(case: SuiteCase) -> epsparql.QueryError | None:
    try:
        epsparql.parse(case.text)
    except epsparql.QueryError as fault:
        return fault
    return None


def fault(case: SuiteCase) -> str | None:
    """Return what is wrong with the answer, or None if it is the one that the suite asks for."""
    refused = refusal(case)
    match case.kind:
        case Kind.EVALUATION:
            return difference(case, numbers_by_value=case.id in BY_VALUE)
        case Kind.NEGATIVE:
            return None if refused else "accepted"
        case Kind.POSITIVE:
            # SERVICE is read in full, and then refused by name
            return None if refused is None or (case.group == "syntax-fed" and isinstance(refused, Unsupported)) else f"refused: {refused}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: SuiteCase, record_property: Callable[[str, object], None]) -> None:
    found = fault(case)
    record_property("w3c", f"{case.suite} {case.group} {'passed' if found is None else 'failed'}")
    if case.id in PASSED_OVER:
        assert found is not None, f"{case.id} passes now: take it off the list in passed_over.py"
    else:
        assert found is None, found


@pytest.mark.parametrize("case", [case for case in CASES if case.id in BY_VALUE], ids=lambda case: case.id)
def test_only_where_needed_by_value(case: SuiteCase) -> None:
    assert difference(case) is not None, f"{case.id} passes as it is: take it off BY_VALUE in passed_over.py"


@pytest.mark.parametrize("case", beyond_rdfs(), ids=lambda case: case.id)
def test_regimes_beyond_rdfs(case: SuiteCase) -> None:
    found = difference(case)
    assert (found is None) == (case.id in BY_OWL_RL), found or f"{case.id} passes now: put it on BY_OWL_RL in passed_over.py"


def test_every_query_renders() -> None:
    """`make soak` renders all, other runs each third one."""
    for case in CASES[:: 1 if is_full() else 3]:
        if case.kind is Kind.NEGATIVE:
            continue
        with suppress(epsparql.QueryError):  # test_case says which may be refused
            query = epsparql.parse(text_of(case)).query
            assert epsparql.parse(epsparql.render(query)).query == query, case.id


def test_the_lists_name_tests() -> None:
    assert {*PASSED_OVER, *BY_VALUE} <= {case.id for case in CASES}
    assert {case.id for case in beyond_rdfs()} >= BY_OWL_RL


def test_enough_pass() -> None:
    evaluated = [case for case in CASES if case.kind is Kind.EVALUATION]
    assert sum(case.id not in PASSED_OVER for case in evaluated) >= 0.98 * len(evaluated)
    assert all(case.kind is Kind.EVALUATION for case in CASES if case.id in PASSED_OVER)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(CASES), "run: python -m tests.w3c.page"
