"""The conformance cases, each through the reference evaluator and through `epsparql replay`.

A case whose operators this version refuses is skipped, and the reason names them: `-ra` counts the skips by it.
"""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import epsparql
from engine.check import check
from epsparql import algebra
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import XSD_STRING, BlankNode, Iri, Literal, Term, Variable
from server import cli
from tests import oracle
from tests.oracle import Occurrence, SelectRow
from tests.oracle_terms import parse_statements, parse_term

CASES = sorted((Path(__file__).resolve().parents[3] / "shared/conformance/random").glob("case*"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COVERED = {
    algebra.Bgp, algebra.Join, algebra.Union, algebra.Filter, algebra.Extend, algebra.SeqJoin, algebra.EqJoin, algebra.LeftJoin,
    algebra.SeqRightJoin, algebra.EqLeftJoin, algebra.Within,
}  # fmt: skip
"""Patterns that every version evaluates; what a refused query has besides names its skip."""


@dataclass(frozen=True, slots=True)
class Case:
    """One directory of the suite, read."""

    text: str
    stream: tuple[Occurrence, ...]
    background: tuple[oracle.Triple, ...]
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


def refusal(text: str) -> str | None:
    """The operators for which this version refuses the query; None if it evaluates it."""
    try:
        check(epsparql.parse(text).query, text)
    except epsparql.QueryError as fault:
        if fault.code == "unsupported":
            return missing(text) or str(fault)
        raise
    return None


def missing(text: str) -> str:
    try:
        used = nodes(epsparql.parse(text).query.pattern)
    except epsparql.QueryError as fault:
        return fault.message
    return ", ".join(sorted(node.__name__ for node in used - COVERED if node in PATTERNS or node is algebra.Exists))


PATTERNS = {
    algebra.RelationJoin, algebra.Minus, algebra.SeqWithout, algebra.WithoutFor,
}  # fmt: skip


def nodes(node: object) -> set[type]:
    """The classes of all nodes of an algebra term."""
    parts = node if isinstance(node, tuple) else [getattr(node, name) for name in getattr(node, "__dataclass_fields__", ())]
    return {type(node)}.union(*(nodes(part) for part in parts))


def test_the_suite_is_there() -> None:
    assert len(CASES) == 200


@pytest.mark.parametrize("directory", CASES, ids=lambda path: path.name)
def test_oracle(directory: Path) -> None:
    case = read(directory)
    try:
        query = epsparql.parse(case.text).query
    except epsparql.QueryError as fault:
        if fault.code != "unsupported":
            raise
        pytest.skip(f"unsupported: {fault.message}")
    found = oracle.solutions({"query": query}, {DEFAULT_STREAM: case.stream}, case.background)["query"]
    assert isinstance(found, Counter)
    assert set(found) == case.expected
    assert set(found.values()) <= {1}


@pytest.mark.parametrize("directory", CASES, ids=lambda path: path.name)
def test_replay(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = read(directory)
    if operators := refusal(case.text):
        pytest.skip(f"unsupported: {operators}")
    files = {"--query": "query.rq", "--stream": "stream.ndjson", "--background": "background.nt"}
    status = cli.main(["replay", *(part for flag, name in files.items() for part in (flag, str(directory / name))), "--format", "ndjson"])
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
