"""docs/w3c.md, made from the suites and the list of tests passed over: `python -m tests.w3c.page`."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from tests.w3c.passed_over import BY_OWL_RL, BY_VALUE, PASSED_OVER, RDF_PASSED_OVER
from tests.w3c.rdf_cases import RdfCase, rdf_cases
from tests.w3c.suite import Kind, SuiteCase, beyond_rdfs, cases

PAGE = Path(__file__).parents[2] / "docs" / "w3c.md"

HEAD = """# The W3C's test suites

This page lists which tests of the W3C's SPARQL 1.0, 1.1 and 1.2 suites, and of its RDF 1.2 suites, pass: `python -m pytest tests/w3c`. Each query is registered with
`default_graph: unnamed`, over a stream of one message. All triples of the message have one instant *t*. The query must have SPARQL's solutions, each on [*t*, *t*].

- **Evaluation.** The default graph and the named graphs are one message. The tests compare the solutions, their number and their intervals.
  If the query has ORDER BY, they compare the order. A CONSTRUCT query writes into a stream that it does not read.
- **Entailment.** Tests for the RDF and RDFS regimes have their data as background. Tests for other regimes are listed below,
  with the result under `--entailment owl-rl`.
- **Syntax.** Positive tests parse, and negative tests are refused. Each parsed query is also rendered as text and parsed again.
  The queries of `syntax-fed` parse, and are then refused because they contain SERVICE.
- **RDF 1.2.** Files of Turtle, TriG, N-Triples, N-Quads and RDF/XML are read as background. The triples must be those expected,
  wrong files must be refused, and terms must have their canonical text. Files of N-Triples and N-Quads are read as events too.
- **Left out** are the tests of updates, evaluation of SERVICE, the protocols, the service description and RDF 1.2 semantics.

`python -m tests.w3c.page` writes this page, and a test compares it with the results.
"""


def page(tests: Sequence[SuiteCase]) -> str:
    return "\n".join([HEAD, *_table(tests), "", *_rdf_table(), "", *_passed_over(), "", *_beyond_rdfs(), "", *_by_value(), ""])


def _beyond_rdfs() -> list[str]:
    text = (
        "These are tests of entailment regimes other than RDF and RDFS. They are not counted above. OWL Direct and OWL RDF-Based semantics entail more than the OWL 2 RL\n"
        "profile, which `--entailment owl-rl` applies. RIF is a language for rules, which the server does not read."
    )
    rows = [f"| `{case.id}` | {', '.join(sorted(case.regimes))} | {'yes' if case.id in BY_OWL_RL else 'no'} |" for case in beyond_rdfs()]
    return ["## Tests of other regimes", "", text, "", "| test | regime | answered under owl-rl |", "|---|---|---|", *rows]


def _table(tests: Sequence[SuiteCase]) -> list[str]:
    rows = ["| suite | group | tests | passed | not passed |", "|---|---|---:|---:|---:|"]
    rows += [_row(suite, group, list(own)) for (suite, group), own in groupby(tests, key=lambda case: (case.suite, case.group))]
    evaluated = [case for case in tests if case.kind is Kind.EVALUATION]
    syntax = [case for case in tests if case.kind is not Kind.EVALUATION]
    return [*rows, _row("all", "evaluation", evaluated), _row("all", "syntax", syntax), _row("all", "all", tests)]


def _rdf_table() -> list[str]:
    rows = ["## Reading RDF 1.2", "", "| suite | group | tests | passed | not passed |", "|---|---|---:|---:|---:|"]
    rows += [_row("rdf12", folder, list(own)) for folder, own in groupby(rdf_cases(), key=lambda case: case.folder)]
    return [*rows, _row("rdf12", "all", rdf_cases())]


def _row(suite: str, group: str, tests: Sequence[SuiteCase | RdfCase]) -> str:
    left_out = sum(case.id in PASSED_OVER or case.id in RDF_PASSED_OVER for case in tests)
    return f"| {suite} | {group} | {len(tests)} | {len(tests) - left_out} | {left_out or ''} |"


def _passed_over() -> list[str]:
    rows = [f"| `{name}` | {reason} |" for name, reason in sorted((PASSED_OVER | RDF_PASSED_OVER).items())]
    return ["## Tests not passed", "", "| test | reason |", "|---|---|", *rows]


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
