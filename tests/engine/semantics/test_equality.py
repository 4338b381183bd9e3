"""`=` and `!=` between terms: the kernel decides what it can, and what the exact expressions say is what comes out."""

from itertools import product

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.expressions.evaluator import parse_term, truth
from engine.kernel.state import layout as c
from engine.messages import OCCURRENCES, Block, Events, Register
from epsparql import algebra as a
from epsparql.terms import Term, Variable

XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = (
    "<http://e/a>", "<http://e/b>", "_:a", "_:b", '"a"', '"b"', '"1"', '"a"@en', '"a"@de', f'"1"^^<{XSD}integer>', f'"01"^^<{XSD}integer>', f'"1.0"^^<{XSD}decimal>',
    f'"2"^^<{XSD}double>', f'"NaN"^^<{XSD}double>', f'"x"^^<{XSD}integer>', f'"true"^^<{XSD}boolean>', f'"1"^^<{XSD}boolean>', '"a"^^<http://e/t>', '"b"^^<http://e/t>',
    f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>', f'"2026-01-01T01:00:00+01:00"^^<{XSD}dateTime>', f'"9007199254740993"^^<{XSD}integer>', f'"9007199254740992"^^<{XSD}integer>',
)  # fmt: skip
X, Y = Variable("x"), Variable("y")
OPERATORS = [pytest.param(a.Comparison.EQUAL, id="="), pytest.param(a.Comparison.UNEQUAL, id="!=")]
PAIRS = list(product(TERMS, TERMS))


def feed(engine: Engine, text: str, pairs: list[tuple[str, str]]) -> set[str]:
    """The subjects of the pairs, numbered, that a query finds."""
    engine.feed(Block((Register(0, "q", text),), pa.RecordBatch.from_pylist([], schema=OCCURRENCES)))
    rows = [
        {"s": f"<http://e/{k}>", "p": f"<http://e/{p}>", "o": term, "g": None, "start": 1, "end": 1, "late": False}
        for k, pair in enumerate(pairs)
        for p, term in zip("pq", pair, strict=True)
    ]
    found = engine.feed(Block((Events(1, "default", len(rows), 2),), pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES)))
    return {row["values"][0] for row in found.solutions.to_pylist()}


def holds(op: a.Comparison, left: Term, right: Term) -> bool:
    return truth(a.Compare(op, a.Var(X), a.Var(Y)), {X: left, Y: right}.get, 1, 1) is True


@pytest.mark.parametrize("op", OPERATORS)
def test_two_variables(op: a.Comparison) -> None:
    found = feed(Engine(), f"SELECT ?n {{ ?n <http://e/p> ?x ; <http://e/q> ?y FILTER(?x {op.value} ?y) }}", PAIRS)
    assert found == {f"<http://e/{k}>" for k, (left, right) in enumerate(PAIRS) if holds(op, parse_term(left), parse_term(right))}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("constant", [term for term in TERMS if not term.startswith("_")])
def test_a_constant(op: a.Comparison, constant: str) -> None:
    found = feed(Engine(), f"SELECT ?n {{ ?n <http://e/p> ?x FILTER(?x {op.value} {constant}) }}", [(term, term) for term in TERMS])
    assert found == {f"<http://e/{k}>" for k, term in enumerate(TERMS) if holds(op, parse_term(term), parse_term(constant))}


def test_what_the_kernel_decides_itself() -> None:
    """No question is asked about two terms that are no literals with values, nor about an IRI or a blank node and any
    other.
    """
    engine = Engine()
    decided = [(x, y) for x, y in PAIRS if {x[0], y[0]} != {'"'} or x[-1] == y[-1] == '"']
    feed(engine, "SELECT ?n { ?n <http://e/p> ?x ; <http://e/q> ?y FILTER(?x != ?y) }", decided)
    assert engine.registry.members[0].network.net.at[c.ASKED] == 0
