"""The operands of a chain, their words, and the query of the first of them
(docs/decisions/0080-partial-matches-in-words.md).
"""

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.explain.operand_words import name_operands
from engine.rewrite.operands import select_first_operands
from epsparql.algebra import DEFAULT_STREAM
from epsparql.etalis.translator import query_text
from epsparql.renderer.queries import render
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support import query_strategies
from tests.support.run_both import run_engine


def parsed(where: str, head: str = "SELECT *") -> epsparql.ParsedQuery:
    return epsparql.parse(f"PREFIX : <http://e/> {head} WHERE {{ {where} }}")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("{ ?s :a ?x } SEQ { ?s :b ?y FILTER(?y > 1) } SEQ { ?s :c ?z ; :d ?w }", [("?s :a ?x", "?s :b ?y", "?s :c ?z ; :d ?w")]),
        (
            "{ { ?s :a ?x } SEQ { ?s :b ?y } WITHIN 'PT5S' } AND { { ?s :c ?z } UNION { ?s :d ?z } }",
            [("?s :a ?x", "?s :b ?y", "{ ?s :c ?z } UNION { ?s :d ?z }")],
        ),
        ("{ ?s :a ?x } SEQ { ?s :b ?y } WITHOUT { ?s :c ?z }", [("?s :a ?x", "?s :b ?y")]),
        ("{ ?s :a ?x } WITHOUT { ?s :c ?z } FOR 'PT5S'", [("?s :a ?x",)]),
        (
            "{ { ?s :a ?x } SEQ { ?s :b ?y } } UNION { ?s :c ?x } UNION { { ?s :d ?x } AND { ?s :e ?y } } FILTER(?x < 3)",
            [("?s :a ?x", "?s :b ?y"), ("?s :c ?x",), ("?s :d ?x", "?s :e ?y")],
        ),
        ("{ ?s :a ?x } UNION { ?s :b ?x }", [("{ ?s :a ?x } UNION { ?s :b ?x }",)]),
    ],
)
def test_operands_are_named_by_the_text(where: str, words: list[tuple[str, ...]]) -> None:
    assert name_operands(parsed(where)) == tuple(words)


PROGRAM = """print_trigger(e/1). print_trigger(f/0).
d(X, f(Y, ')'), Z) <- (a(X) seq b(Y, Z)).5 where Y < Z.
e(X) <- (d(X, _, Z) seq c([X, 1])) cnot b(X, Z).
f <- (7 seq e(_)) or (a(_) equals d(_, _, _) par c(f(_, %
")"))).
"""


def test_operands_of_a_program_are_its_events() -> None:
    text, _ = query_text(PROGRAM)
    joined = [chain for chain in name_operands(epsparql.parse(text)) if len(chain) > 1]
    assert joined == [
        ("a(X)", "b(Y, Z)"),
        ("d(X, _, Z)", "c([X, 1])"),
        ("7", "e(_)"),
        ("a(_)", "d(_, _, _)", 'c(f(_, % ")"))'),
    ]


@pytest.mark.parametrize(
    ("where", "n", "first"),
    [
        ("{ ?s :a ?x } SEQ { ?s :b ?y } SEQ { ?s :c ?z } FILTER(?x < ?y && ?z < 2)", 2, "{ { ?s :a ?x } SEQ { ?s :b ?y } FILTER(?x < ?y) }"),
        ("{ ?s :a ?x } SEQ { ?s :b ?y } WITHIN 'PT5S' SEQ { ?s :c ?z } WITHIN 'PT9S'", 1, "?s :a ?x WITHIN 'PT9S'"),
        ("{ ?s :a ?x } SEQ { ?s :b ?y } WITHIN 'PT5S'", 2, None),
        (
            "{ ?s :a ?x } SEQ { { ?s :b ?y } SEQ { ?s :c ?z } FILTER(?y > 1) } WITHIN 'PT9S'",
            2,
            "{ ?s :a ?x } SEQ { ?s :b ?y FILTER(?y > 1) } WITHIN 'PT9S'",
        ),
        ("{ ?s :a ?x } DURING { { ?s :b ?y } SEQ { ?s :c ?z } }", 2, None),
        (
            "{ { { ?s :a ?x } SEQ { ?s :b ?y } } UNION { ?s :c ?x } UNION { { ?s :d ?x } AND { ?s :e ?y } } FILTER(?x < 3) }",
            1,
            "{ { ?s :a ?x FILTER(?x < 3) } UNION { ?s :d ?x FILTER(?x < 3) } }",
        ),
        ("{ { ?s :a ?x } SEQ { ?s :b ?y } SEQ { ?s :c ?z } } UNION { { ?s :d ?x } SEQ { ?s :e ?y } }", 2, "{ { ?s :a ?x } SEQ { ?s :b ?y } }"),
    ],
)
def test_first_operands_have_what_decides_them(where: str, n: int, first: str | None) -> None:
    found = select_first_operands(parsed(where).query, n)
    wanted = None if first is None else first.replace("?s :a ?x WITHIN 'PT9S'", "{ ?s :a ?x } WITHIN 'PT5S'")
    assert found == (None if wanted is None else parsed(wanted).query)


OPERANDS = st.sampled_from(
    [
        "{ ?s :p ?v }",
        "{ ?s :q ?w FILTER(?w = 1) }",
        "{ ?t :p ?u }",
        "{ ?s :r ?v . ?s :p ?t }",
        "{ { ?s :p ?v } SEQ { ?s :q ?w } }",
        "{ { ?s :q ?x } UNION { ?s :r ?x } }",
    ]
)
CHAINS = st.tuples(
    *[OPERANDS] * 3,
    *[st.sampled_from(["SEQ", "SEQ", "AND", "EQUALS", "DURING"])] * 2,
    st.sampled_from(
        ["", "WITHIN 'PT3S'", "WITHOUT { ?s :r 2 }", "FILTER(getDURATION() < 'PT2S'^^<http://www.w3.org/2001/XMLSchema#duration>)", "FILTER(?v = 1)"]
    ),
)


@given(CHAINS, st.integers(1, 2), query_strategies.feeds())
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_each_solution_begins_with_one_of_the_first_operands(chain: tuple[str, ...], n: int, fed: list[Occurrence]) -> None:
    one, two, three, before, after, end = chain
    text = f"PREFIX : <http://example.org/> SELECT * WHERE {{ {one} {before} {two} {after} {three} {end} }}"
    assume(end != "WITHOUT { ?s :r 2 }" or after in ("SEQ", "AND"))
    first = select_first_operands(epsparql.parse(text).query, n)
    assume(first is not None)
    assert first is not None
    note(f"{text}\n{render(first)}")
    assert epsparql.parse(render(first)).query == first
    found = run_engine({"whole": text, "first": render(first)}, {DEFAULT_STREAM: fed})
    for bindings, (start, end_) in found["whole"]:
        known = frozenset(bindings)
        assert any(start <= began and ended <= end_ and known >= frozenset(beginning) for beginning, (began, ended) in found["first"])
