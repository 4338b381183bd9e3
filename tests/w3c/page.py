"""docs/w3c.md, made from the suites and the list of tests passed over: `python -m tests.w3c.page`."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from tests.w3c.passed_over import BY_OWL_RL, BY_VALUE, PASSED_OVER
from tests.w3c.suite import Kind, SuiteCase, beyond_rdfs, cases

PAGE = Path(__file__).parents[2] / "docs" / "w3c.md"

HEAD = """# The W3C's SPARQL test suites

The query tests of the SPARQL 1.0 and 1.1 suites run through the engine: `python -m pytest tests/w3c`. Each plain SPARQL query is registered with
`default_graph: unnamed`, over a stream of one message. All triples of the message carry one instant *t*. The query has SPARQL's solutions, each on [*t*, *t*].

- **Evaluation.** The default graph and the named graphs are one message at one instant. The tests compare the solutions, their multiplicity and their intervals.
  They compare the order where the query has ORDER BY, and blank nodes up to one renaming of the whole answer. A CONSTRUCT query writes into a stream that it does
  not read. `test_replay.py` runs some of the tests with `epsparql replay`, in the result formats that they are about.
- **Entailment.** Tests for the RDF and RDFS regimes have their data as background. Tests for other regimes alone are listed below,
  with the result under `--entailment owl-rl`.
- **Syntax.** Positive tests parse, and negative tests are refused. Every query that parses is the same again after it has been rendered.
  The queries of `syntax-fed` parse in full and are then refused by name, because SERVICE is refused.
- **Left out** are the groups about updates, SERVICE's evaluation, the protocols and the service description.

This page is made by `python -m tests.w3c.page`. A test fails when the page is not current, when a listed test passes, or when another one fails.
"""


def page(tests: Sequence[SuiteCase]) -> str:
    return "\n".join([HEAD, *_table(tests), "", *_passed_over(), "", *_beyond_rdfs(), "", *_by_value(), ""])


def _beyond_rdfs() -> list[str]:
    text = (
        "These are tests of entailment regimes other than RDF and RDFS. They are not counted above. OWL Direct and OWL RDF-Based semantics entail more than the OWL 2 RL\n"
        "profile, which `--entailment owl-rl` applies. RIF brings rules of its own."
    )
    rows = [f"| `{case.id}` | {', '.join(sorted(case.regimes))} | {'yes' if case.id in BY_OWL_RL else 'no'} |" for case in beyond_rdfs()]
    return ["## Tests of other regimes", "", text, "", "| test | regime | answered under owl-rl |", "|---|---|---|", *rows]


def _table(tests: Sequence[SuiteCase]) -> list[str]:
    rows = ["| suite | group | tests | passed | passed over |", "|---|---|---:|---:|---:|"]
    rows += [_row(suite, group, list(own)) for (suite, group), own in groupby(tests, key=lambda case: (case.suite, case.group))]
    evaluated = [case for case in tests if case.kind is Kind.EVALUATION]
    syntax = [case for case in tests if case.kind is not Kind.EVALUATION]
    return [*rows, _row("both", "evaluation", evaluated), _row("both", "syntax", syntax), _row("both", "all", tests)]


def _row(suite: str, group: str, tests: Sequence[SuiteCase]) -> str:
    left_out = sum(case.id in PASSED_OVER for case in tests)
    return f"| {suite} | {group} | {len(tests)} | {len(tests) - left_out} | {left_out or ''} |"


def _passed_over() -> list[str]:
    rows = [f"| `{name}` | {reason} |" for name, reason in sorted(PASSED_OVER.items())]
    return ["## Tests passed over", "", "| test | reason |", "|---|---|", *rows]


def _by_value() -> list[str]:
    text = (
        "A computed number is printed in the canonical form of XML Schema 1.0 (`6.0`, `6.0E0`). A number that is passed on is printed as in the data. These tests\n"
        "expect the same number in another form, so they compare numbers by value and datatype. All other tests compare numbers as they are written."
    )
    return ["## Numbers compared by value", "", text, "", *_bullets(BY_VALUE)]


def _bullets(names: Iterable[str]) -> list[str]:
    return [f"- `{name}`" for name in sorted(names)]


if __name__ == "__main__":
    PAGE.write_text(page(cases()))
