"""Functions of the solution that asks: BNODE, NOW, RAND, STRUUID, UUID."""

import re
from random import Random

import pytest

from engine.expressions.evaluator import ExpressionError, evaluate, parse_number, parse_term, truth
from engine.expressions.nondeterministic import Identity, Naming
from engine.expressions.values import NumericType
from engine.messages import NODE_NAMES, Finish, Promote, Register
from epsparql import algebra
from epsparql.algebra import Comparison, Operator
from epsparql.terms import XSD
from tests.engine.runtime.test_catch_up import CatchUpLog, Found, found
from tests.engine.semantics.test_expressions import ERROR, HOUR, const, lit, nothing, shown, value


def individual(
    expression: algebra.Expression, site: str = "x", solution: tuple[str, ...] = ("<a>",), query: str = "q", form: int = NODE_NAMES
) -> str:
    return str(evaluate(expression, nothing, None, None, Identity(Naming(query, form), site, solution)))


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
    assert truth(algebra.Call("ISBLANK", (labelled("a"),)), nothing, None, None, Identity(Naming("q", NODE_NAMES), "x", ())) is True
    for bad in (labelled("a@en"), labelled("1^i"), algebra.Call("BNODE", (const("a"), const("b"))), algebra.Call("RAND", (const("a"),))):
        with pytest.raises(ExpressionError):
            individual(bad)


def test_random_numbers_and_uuids_have_their_form() -> None:
    numbers = [parse_number(parse_term(individual(RAND, str(k)))) for k in range(100)]
    assert all(n is not None and n.kind is NumericType.DOUBLE and 0 <= n.value < 1 for n in numbers)
    assert re.fullmatch(r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>", individual(UUID))


@pytest.mark.parametrize(
    ("call", "first", "present"),
    [
        (NODE, "_:n9c7710ee3310580928e8d277", "_:n9c7710ee3310580928e8d277fd2aaa38"),
        (algebra.Call("BNODE", (const("a"),)), "_:ld239c5f88bf2ff7a23cf93ed", "_:ld239c5f88bf2ff7a23cf93ed3a5cee6f"),
        (UUID, "<urn:uuid:d6b6879f-a5d3-5ec2-9688-4f5a359bbbe8>", "<urn:uuid:9c7710ee-3310-8809-a8e8-d277fd2aaa38>"),
        (RAND, *2 * [f'"6.111918050328893E-1"^^<{XSD}double>']),
    ],
)
def test_names_have_the_form_of_their_registration(call: algebra.Expression, first: str, present: str) -> None:
    assert (individual(call, form=1), individual(call)) == (first, present)


def test_now_is_the_end_of_the_solution() -> None:
    now = algebra.Call("NOW", ())
    assert value(now, 0, 3 * HOUR) == "1970-01-01T03:00:00Z^t"
    assert value(now) is None
    assert shown(evaluate(now, nothing, None, None, Identity(Naming("q", NODE_NAMES), "x", (), now=HOUR))) == "1970-01-01T01:00:00Z^t"


NODES = "SELECT ?a ?n ?l WHERE { ?x <http://e/p> ?a BIND(BNODE() AS ?n) BIND(BNODE('l') AS ?l) }"
NAMED = {
    "nodes": NODES,
    "template": "CONSTRUCT { [] <http://e/of> ?a } WHERE { { ?x <http://e/p> ?a } SEQ { ?x <http://e/q> ?b } }",
    "groups": "SELECT ?x (MIN(BNODE()) AS ?n) WHERE { ?x <http://e/p> ?a } GROUP BY ?x WINDOW [RANGE 'PT0.000005S']",
    "runs": "SELECT ?x (MAX(BNODE('r')) AS ?n) WHERE { ?x <http://e/p> ?a } GROUP BY ?x WINDOW [SESSION 'PT0.000003S' CLOSED]",
}


def run_named(forms: dict[str, int], random: Random | None = None, partitions: int = 0, promote: str = "") -> dict[str, list[Found]]:
    """Return what each query of `NAMED` finds, whose registration has this form of names."""
    log, seeded = CatchUpLog(), Random(7)
    for name, text in NAMED.items():
        log.add(Register(0, name, text, by_time=True, node_names=forms[name]))
    log.feed(seeded, 10, 30, delay=2)
    if promote:
        log.add(Promote(0, list(NAMED).index(promote), promote, NAMED[promote] + " # as before"))
    log.feed(seeded, 30, 60, delay=2)
    log.add(Finish(0, "default"))
    outcomes = log.run_shared(Random(3), partitions) if partitions else log.run(random)
    return {name: found(outcomes, name) for name in NAMED}


def cut_names(rows: list[Found]) -> list[Found]:
    """Return solutions with the names that they had in the form 1, which are the beginnings of those in the form 2."""
    return [(*row[:3], tuple(value and re.sub(r"(_:[cln][0-9a-f]{24})[0-9a-f]{8}\b", r"\1", value) for value in row[3])) for row in rows]


def test_a_registration_keeps_the_form_of_its_names() -> None:
    """Each query's form is its own, across snapshots, partitions, and promotions, whose entries have none."""
    first, present = (run_named(dict.fromkeys(NAMED, form)) for form in (1, 2))
    for name in NAMED:
        mixed = run_named(dict.fromkeys(NAMED, 1) | {name: 2}, Random(1))
        assert mixed == first | {name: present[name]}
        digits = {len(digit) for row in present[name] for value in row[3] for digit in re.findall(r"_:[cln]([0-9a-f]+)", value or "")}
        assert digits == {32}
        assert cut_names(present[name]) == first[name] != present[name] or name in ("groups", "runs"), "the least of names may be another one"
    for partitions in (2, 3):
        assert {name: sorted(rows) for name, rows in run_named(dict.fromkeys(NAMED, 2), partitions=partitions).items()} == {
            name: sorted(rows) for name, rows in present.items()
        }
    for form, expected in ((1, first), (2, present)):
        promoted = run_named(dict.fromkeys(NAMED, form), promote="nodes")["nodes"]  # it reads nothing of before
        assert set(promoted) < set(expected["nodes"])
        assert promoted[-1] == expected["nodes"][-1]


def test_nodes_of_windows_are_their_querys() -> None:
    """Equal solutions of two queries over RSP-QL's windows had one node in the form 1."""
    text = """PREFIX : <http://e/> SELECT ?a ?n FROM NAMED WINDOW :w ON <default> [RANGE 'PT0.000005S' STEP 'PT0.000005S']
        WHERE { WINDOW :w { ?x :p ?a } BIND(BNODE() AS ?n) }"""
    for form, are_shared in ((1, True), (2, False)):
        log = CatchUpLog()
        for name in "qr":
            log.add(Register(0, name, text, node_names=form))
        log.feed(Random(7), 10, 60)
        log.add(Finish(0, "default"))
        nodes = [{row[3][1] for row in found(log.run(), name)} for name in "qr"]
        assert all(nodes)
        assert bool(nodes[0] & nodes[1]) is are_shared
