"""Functions of the solution that asks: BNODE, NOW, RAND, STRUUID, UUID."""

import re

import pytest

from engine.expressions.evaluator import ExpressionError, evaluate, parse_number, parse_term, truth
from engine.expressions.nondeterministic import Identity
from engine.expressions.values import NumericType
from epsparql import algebra
from epsparql.algebra import Comparison, Operator
from tests.engine.semantics.test_expressions import ERROR, HOUR, const, lit, nothing, shown, value


def individual(expression: algebra.Expression, site: str = "x", solution: tuple[str, ...] = ("<a>",), query: str = "q") -> str:
    return str(evaluate(expression, nothing, None, None, Identity(query, site, solution)))


RAND, UUID, NODE = (algebra.Call(name, ()) for name in ("RAND", "UUID", "BNODE"))
INDIVIDUAL = [RAND, UUID, NODE, algebra.Call("STRUUID", ())]


@pytest.mark.parametrize("call", INDIVIDUAL)
def test_individual_values(call: algebra.Expression) -> None:
    """One for each query, place and solution, and the same whenever it is asked for."""
    values = [
        individual(call),
        individual(call, "y"),
        individual(call, solution=("<b>",)),
        individual(call, query="r"),
        individual(algebra.Coalesce((ERROR, call))),
        individual(algebra.If(const("false^b"), ERROR, call)),
    ]
    assert len(set(values)) == len(values)
    assert individual(call) == values[0]
    assert value(call) is None


TWICE = [
    algebra.Compare(Comparison.EQUAL, RAND, RAND),
    algebra.Compare(Comparison.EQUAL, algebra.Arithmetic(Operator.ADD, RAND, RAND), algebra.Arithmetic(Operator.MULTIPLY, RAND, const("2^i"))),
    algebra.Call("SAMETERM", (NODE, NODE)),
    algebra.In(UUID, (UUID, UUID)),
    algebra.Not(
        algebra.And(algebra.Compare(Comparison.UNEQUAL, UUID, UUID), algebra.Or(const("false^b"), algebra.Compare(Comparison.UNEQUAL, UUID, UUID)))
    ),
]


@pytest.mark.parametrize("expression", TWICE)
def test_two_calls_in_one_expression_differ(expression: algebra.Expression) -> None:
    assert individual(expression) == str(lit("false^b"))


def test_labelled_nodes_are_one_in_a_solution() -> None:
    def labelled(text: str) -> algebra.Expression:
        return algebra.Call("BNODE", (const(text),))

    assert individual(labelled("a")) == individual(algebra.Coalesce((ERROR, labelled("a"))), "elsewhere")
    assert individual(labelled("a")) != individual(labelled("b"))
    assert individual(labelled("a")) != individual(labelled("a"), solution=("<b>",))
    assert truth(algebra.Call("ISBLANK", (labelled("a"),)), nothing, None, None, Identity("q", "x", ())) is True
    for bad in (labelled("a@en"), labelled("1^i"), algebra.Call("BNODE", (const("a"), const("b"))), algebra.Call("RAND", (const("a"),))):
        with pytest.raises(ExpressionError):
            individual(bad)


def test_random_numbers_and_uuids_have_their_form() -> None:
    numbers = [parse_number(parse_term(individual(RAND, str(k)))) for k in range(100)]
    assert all(n is not None and n.kind is NumericType.DOUBLE and 0 <= n.value < 1 for n in numbers)
    assert re.fullmatch(r"<urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}>", individual(UUID))


def test_now_is_the_end_of_the_solution() -> None:
    now = algebra.Call("NOW", ())
    assert value(now, 0, 3 * HOUR) == "1970-01-01T03:00:00Z^t"
    assert value(now) is None
    assert shown(evaluate(now, nothing, None, None, Identity("q", "x", (), now=HOUR))) == "1970-01-01T01:00:00Z^t"
