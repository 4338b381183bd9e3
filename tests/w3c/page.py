"""docs/w3c.md, made from the suites and the list of tests passed over: `python -m tests.w3c.page`."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.w3c.passed_over import BY_OWL_RL, BY_VALUE, PASSED_OVER, RDF_PASSED_OVER
from tests.w3c.rdf_cases import RdfCase, rdf_cases
from tests.w3c.suite import Kind, SuiteCase, beyond_rdfs, cases

PAGE = Path(__file__).parents[2] / "docs" / "w3c.md"

HEAD = """# The W3C's test suites

This page counts which tests of the W3C's SPARQL 1.0, 1.1 and 1.2 suites, and of its RDF 1.2 suites, pass: `python -m pytest tests/w3c`.

- **Evaluation.** Each query is registered with `default_graph: unnamed`, over a stream of one message, whose triples have one instant *t*. The tests compare the solutions, their number and their intervals [*t*, *t*], and the order of ORDER BY. {by_value} tests expect a number in another form of XML Schema, so they compare numbers by value and datatype.
- **Entailment.** Tests for the RDF and RDFS regimes have their data as background.
- **Syntax.** Positive tests parse, and negative tests are refused.
- **RDF 1.2.** Files of Turtle, TriG, N-Triples, N-Quads and RDF/XML are read as background.
- **Left out** are the tests of updates, evaluation of SERVICE, the protocols, the service description and RDF 1.2 semantics.
"""


def page(tests: Sequence[SuiteCase]) -> str:
    return "\n".join([HEAD.format(by_value=len(BY_VALUE)), *_table(tests), "", *_passed_over(), "", *_beyond_rdfs(), ""])


def _beyond_rdfs() -> list[str]:
    others = beyond_rdfs()
    answered = ", ".join(f"`{case.id.rpartition('/')[2]}`" for case in others if case.id in BY_OWL_RL)
    text = (
        f"{len(others)} tests of the regimes D, OWL Direct, OWL RDF-Based and RIF are not counted above. "
        f"Under `--entailment owl-rl`, {answered} are answered."
    )
    return ["## Tests of other regimes", "", text]


def _table(tests: Sequence[SuiteCase]) -> list[str]:
    rows = ["| suite | tests | passed | not passed |", "|---|---:|---:|---:|"]
    rows += [_row(suite, list(own)) for suite, own in groupby(tests, key=lambda case: case.suite)]
    evaluated = [case for case in tests if case.kind is Kind.EVALUATION]
    syntax = [case for case in tests if case.kind is not Kind.EVALUATION]
    return [*rows, _row("SPARQL, evaluation", evaluated), _row("SPARQL, syntax", syntax), _row("SPARQL, all", tests), _row("rdf12", rdf_cases())]


def _row(title: str, tests: Sequence[SuiteCase | RdfCase]) -> str:
    left_out = sum(case.id in PASSED_OVER or case.id in RDF_PASSED_OVER for case in tests)
    return f"| {title} | {len(tests)} | {len(tests) - left_out} | {left_out or ''} |"


def _passed_over() -> list[str]:
    names: dict[str, list[str]] = {}
    for name, reason in sorted((PASSED_OVER | RDF_PASSED_OVER).items()):
        names.setdefault(reason, []).append(f"`{name}`")
    return ["## Tests not passed", "", "| tests | reason |", "|---|---|", *(f"| {', '.join(own)} | {reason} |" for reason, own in names.items())]


if __name__ == "__main__":
    PAGE.write_text(page(cases()))
