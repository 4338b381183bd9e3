"""The conformance cases through `epsparql replay`, those of runs through the engine.

test_oracle.py has the reference evaluator solve them.
"""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import XSD_STRING, BlankNode, Iri, Literal, Term, Variable
from server.cli import commands
from tests.reference import evaluator
from tests.reference.evaluator import Occurrence, SelectRow
from tests.support.ntriples import parse_statements, parse_term
from tests.support.run_both import run_engine

SUITES = Path(__file__).resolve().parents[4] / "shared/conformance"
CASES = sorted((SUITES / "random").glob("case*"))
RUNS = sorted((SUITES / "runs").glob("case*"))
"""These cases are of section 13. They give solutions as a set, since equal ones of two groups are two."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Case:
    """One directory of the suite, read."""

    text: str
    stream: tuple[Occurrence, ...]
    background: tuple[evaluator.Triple, ...]
    expected: frozenset[SelectRow]


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def read(directory: Path) -> Case:
    events = [json.loads(line) for line in (directory / "stream.ndjson").read_text().splitlines()]
    rows = [json.loads(line) for line in (directory / "expected.ndjson").read_text().splitlines()]
    return Case(
        text=(directory / "query.rq").read_text(),
        stream=tuple(Occurrence((parse_term(e["s"]), parse_term(e["p"]), parse_term(e["o"])), micros(e["start"]), micros(e["end"])) for e in events),
        background=tuple(parse_statements((directory / "background.nt").read_text())),
        expected=frozenset(
            (frozenset((Variable(name), parse_term(value)) for name, value in row["binding"].items()), (micros(row["start"]), micros(row["end"])))
            for row in rows
        ),
    )


def test_the_suite_is_there() -> None:
    assert len(CASES) == 200
    assert len(RUNS) == 150


@pytest.mark.parametrize("directory", RUNS, ids=lambda path: path.name)
def test_runs(directory: Path) -> None:
    case = read(directory)
    assert set(run_engine({"query": case.text}, {DEFAULT_STREAM: case.stream}, case.background)["query"]) == case.expected


@pytest.mark.parametrize("directory", CASES, ids=lambda path: path.name)
def test_replay(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = read(directory)
    files = {"--query": "query.rq", "--stream": "stream.ndjson", "--background": "background.nt"}
    status = commands.main(["replay", *(part for flag, name in files.items() for part in (flag, str(directory / name))), "--format", "ndjson"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert Counter(map(row, printed.out.splitlines())) == Counter(case.expected)


def row(line: str) -> SelectRow:
    solution = json.loads(line)
    bindings = frozenset((Variable(name), term(value)) for name, value in solution["binding"].items())
    return bindings, (micros(solution["start"]), micros(solution["end"]))


def term(value: dict[str, str]) -> Term:
    """A term of SPARQL's JSON results."""
    match value["type"]:
        case "uri":
            return Iri(value["value"])
        case "bnode":
            return BlankNode(value["value"])
        case _:
            return Literal(value["value"], value.get("datatype", XSD_STRING), value.get("xml:lang"))
