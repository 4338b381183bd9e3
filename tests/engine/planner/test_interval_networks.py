"""Conditions on start and end times bound what joins keep: the closure of bounds, what is kept, and the answers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.explain import explain
from engine.kernel.state import layout as c
from engine.messages import ADD, DROP, REPLACE
from engine.planner import CHOICES
from engine.planner.builder.difference_bounds import Contradiction, DifferenceBounds
from engine.validation.validate import check
from tests.engine.background.test_background_update import Change, agree
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.feeds import PREFIXES, parse_facts, parse_feed, show
from tests.support.run_both import block, blocks, entries, in_order, results, run, run_oracle

FURTHEST = 9
VALUES = np.array(list(product(range(-FURTHEST, FURTHEST + 1), repeat=3)))
MODELS = np.concatenate([np.zeros((len(VALUES), 1), int), VALUES], axis=1)
"""Values of four variables, the first of which is 0."""


# ---------------------------------------------------------------- the closure
@settings(max_examples=examples(300))
@given(limits=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-3, 3)), max_size=8))
def test_closure_is_the_least(limits: list[tuple[int, int, int]]) -> None:
    """Whole numbers attain each closed bound, and there are none exactly if the bounds contradict each other."""
    bounds, models = DifferenceBounds(4), MODELS
    for x, y, most in limits:
        bounds.limit(x, y, most)
        models = models[models[:, x] - models[:, y] <= most]
    try:
        bounds.close()
    except Contradiction:
        assert len(models) == 0
        return
    for x, y in product(range(4), repeat=2):
        found = bounds.find_most(x, y)
        assert found == c.FOREVER or found == (models[:, x] - models[:, y]).max()


@settings(max_examples=examples(300))
@given(limits=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-2, 4)), max_size=8))
def test_closure_with_a_hull_admits_each_model(limits: list[tuple[int, int, int]]) -> None:
    """Variables 4 and 5 are the hull of the intervals (0, 1) and (2, 3)."""
    models = MODELS[(MODELS[:, 0] <= MODELS[:, 1]) & (MODELS[:, 2] <= MODELS[:, 3])]
    models = np.column_stack([models, models[:, [0, 2]].min(axis=1), models[:, [1, 3]].max(axis=1)])
    bounds = DifferenceBounds(6)
    bounds.add_hull(4, 5, [(0, 1), (2, 3)])
    for x, y, most in [(0, 1, 0), (2, 3, 0), *limits]:
        bounds.limit(x, y, most)
        models = models[models[:, x] - models[:, y] <= most]
    try:
        bounds.close()
    except Contradiction:
        assert len(models) == 0
        return
    if len(models):
        assert all((models[:, x] - models[:, y]).max() <= bounds.find_most(x, y) for x, y in product(range(6), repeat=2))


# ---------------------------------------------------------------- what is kept
def operand(n: int, predicate: str, more: str = "") -> str:
    return f"{{ ?k :{predicate} ?o{n} {more} BIND(getSTARTTIME() AS ?s{n}) BIND(getENDTIME() AS ?e{n}) }}"


def seconds(n: int) -> str:
    return f'"{"-" * (n < 0)}PT{abs(n)}S"^^xsd:duration'


A, B, C = operand(1, "A"), operand(2, "B"), operand(3, "C")
LIFE = [
    pytest.param(f"{A} {B} FILTER(?e1 < ?e2 && ?e2 - ?e1 <= {seconds(10)})", [("kept until PT10S after its end", "not stored")], id="a difference"),
    pytest.param(f"{A} {B} FILTER(?e1 < ?s2 && ?s2 - ?e1 < {seconds(10)})", [("kept for ever", "not stored")], id="the right side may last"),
    pytest.param(
        f"{A} {operand(2, 'B', f'FILTER(getDURATION() <= {seconds(5)})')} FILTER(?e1 < ?s2 && ?s2 - ?e1 <= {seconds(10)})",
        [("kept until PT15S after its end", "not stored")],
        id="a right side that lasts no longer",
    ),
    pytest.param(
        f"{A} {B} FILTER(?e2 >= ?e1) FILTER(!(?e1 + {seconds(10)} < ?e2))",
        [("kept until PT10S after its end", "kept for the instant")],
        id="sums and negation",
    ),
    pytest.param(f"{A} {B} FILTER(?e1 = ?e2)", [("kept for the instant", "kept for the instant")], id="equality"),
    pytest.param(
        f"{operand(1, 'A', f'BIND(getENDTIME() - {seconds(60)} AS ?from)')} {B} FILTER(?from <= ?s2 && ?e2 <= ?e1)",
        [("kept for the instant", "kept until PT1M after its end")],
        id="an interval extended backward",
    ),
    pytest.param(
        f"{A} {B} {C} FILTER(?e1 < ?e3 && ?e3 <= ?e2 + {seconds(2)} && ?e2 <= ?e1 + {seconds(3)})",
        [
            ("kept until PT2S after its end", "kept less than PT3S after its end"),
            ("kept until PT3S after its end", "kept less than PT2S after its end"),
        ],
        id="through a third operand",
    ),
    pytest.param(
        f"{A} {{ {B} SEQ {C} BIND(getSTARTTIME() AS ?s4) BIND(getENDTIME() AS ?e4) }} FILTER(?s4 >= ?e1 && ?e4 <= ?e1 + {seconds(9)})",
        [("kept until PT9S after its end", "kept for the instant"), ("kept until PT9S after its end", "not stored")],
        id="inside a chain",
    ),
    pytest.param(
        f"{A} OPTIONAL {{ {B} {C} FILTER(?e3 <= ?e1 + {seconds(1)}) }}", [("kept for ever", "kept for ever")], id="not between two below OPTIONAL"
    ),
    pytest.param(f"{{ {A} UNION {{ ?k :D ?e1 }} }} {B} FILTER(?e1 < ?e2 && ?e2 < ?e1 + {seconds(1)})", [("kept for ever",) * 2], id="not from UNION"),
    pytest.param(f"{A} {B} {{ ?k :D ?e1 }} FILTER(?e2 < ?e1)", [("kept for ever",) * 2] * 2, id="a variable that is bound elsewhere"),
]


@pytest.mark.parametrize(("pattern", "kept"), LIFE)
def test_how_long_joins_keep(pattern: str, kept: list[tuple[str, str]]) -> None:
    plan = explain(epsparql.parse(f"{PREFIXES}SELECT * WHERE {{ {pattern} }}").query).plan
    assert [tuple(each.time for each in step.keeps) for step in plan if step.operator in ("AND", "SEQ")] == kept


@pytest.mark.parametrize("pattern", [row.values[0] for row in LIFE], ids=[row.id for row in LIFE])
def test_check_warns_of_what_is_kept_for_ever(pattern: str) -> None:
    query = f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"
    warned = {warning.code for warning in check(epsparql.parse(query))}
    joins = [step for step in explain(epsparql.parse(query).query).plan if step.operator in ("AND", "SEQ")]
    assert ("unbounded-state" in warned) == any(step.unbounded for step in joins)


DECIDING = [
    pytest.param(
        f"{A} OPTIONAL {{ {B} FILTER(?e1 - ?e2 < {seconds(9)}) }}", "OPTIONAL", ("not stored", "kept less than PT9S after its end"), id="OPTIONAL"
    ),
    pytest.param(f"{A} OPTIONAL {{ {B} FILTER(?e1 >= ?e2) }}", "OPTIONAL", ("not stored", "kept for ever"), id="OPTIONAL, no bound"),
    pytest.param(f"{A} FILTER EXISTS {{ {B} FILTER(?e1 - ?e2 < {seconds(9)}) }}", "EXISTS", ("kept less than PT9S after its end",), id="EXISTS"),
    pytest.param(
        f"{A} FILTER(?o1 = 7 || NOT EXISTS {{ {B} FILTER(?e2 > ?e1 - {seconds(9)}) }})",
        "EXISTS",
        ("kept less than PT9S after its end",),
        id="NOT EXISTS",
    ),
    pytest.param(
        f"{A} SEQ {B} WITHOUT {{ ?k :C ?x }} FILTER(?e2 - ?e1 < {seconds(9)})",
        "SEQ ... WITHOUT",
        ("kept less than PT9S after its end",) * 2,
        id="WITHOUT",
    ),
    pytest.param(
        f"{A} AND {B} WITHOUT {{ ?k :C ?x }} FILTER(?e1 <= ?e2 && ?e2 - ?s1 < {seconds(9)} && ?s1 <= ?s2)",
        "AND ... WITHOUT",
        ("kept less than PT9S after its end", "kept for the instant", "kept less than PT9S after its end"),
        id="AND ... WITHOUT",
    ),
]


@pytest.mark.parametrize(("pattern", "operator", "kept"), DECIDING)
def test_how_long_what_decides_on_absence_is_kept(pattern: str, operator: str, kept: tuple[str, ...]) -> None:
    plan = explain(epsparql.parse(f"{PREFIXES}SELECT * WHERE {{ {pattern} }}").query).plan
    assert [tuple(each.time for each in step.keeps) for step in plan if step.operator == operator] == [kept]


CONTRADICTIONS = [
    pytest.param(f"{A} {B} FILTER(?e1 < ?s2 && ?e2 <= ?s1)", f"{A} {B} FILTER(?e1 < ?s2 && ?e2 > ?s1)", id="two conditions"),
    pytest.param(f"{A} SEQ {B} FILTER(?e2 < ?e1)", f"{A} SEQ {B} FILTER(?e2 > ?e1)", id="SEQ"),
    pytest.param(f"{A} {B} FILTER(?e1 - ?s2 > {seconds(9)}) WITHIN 8", f"{A} {B} FILTER(?e1 - ?s2 > {seconds(9)})", id="WITHIN"),
]


@pytest.mark.parametrize(("impossible", "near"), CONTRADICTIONS)
def test_contradictions_never_match(impossible: str, near: str) -> None:
    for pattern, codes in ((impossible, ["never-matches"]), (near, [])):
        wrapped = f"{{ {pattern.removesuffix(' WITHIN 8')} }}{' WITHIN 8' * pattern.endswith(' WITHIN 8')}"
        found = check(epsparql.parse(f"{PREFIXES}SELECT * WHERE {{ {wrapped} }}"))
        assert [warning.code for warning in found if warning.code == "never-matches"] == codes


@pytest.mark.parametrize(("pattern", "kept"), [LIFE[0].values, LIFE[5].values, LIFE[6].values])
def test_what_is_stored_does_not_grow(pattern: str, kept: object) -> None:
    fed = {"default": parse_feed(" ".join(f"{'ABC'[n % 3]}(k,{n})@{n * 3}" for n in range(1200)))}
    log = entries({"q": f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"}, fed, in_order(fed), [])[:-1]
    engine, counts = Engine(), []
    for part in blocks(log, range(1, len(log), 300)):
        engine.feed(part)
        counts.append(sum(int(member.network.net.stores[:, c.COUNT].sum()) for member in engine.registry.members))
    assert 0 < max(counts[2:]) <= 25


# ---------------------------------------------------------------- the answers
RELATIONS = (*["AND"] * 16, "SEQ", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR")


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Two to five operands, joined in any way, with comparisons of their times, and of times of joined parts."""
    n = draw(st.integers(2, 5))
    limits = st.sampled_from(("", "", "", f"FILTER(getDURATION() <= {seconds(2)})"))
    predicates = st.sampled_from(("?k :A", "?k :B", "?l :B", "?m :C", "?n :A", "?o :C"))
    parts = [(f"{{ {draw(predicates)} ?o{i} {draw(limits)} BIND(getSTARTTIME() AS ?s{i}) BIND(getENDTIME() AS ?e{i}) }}", [i]) for i in range(n)]
    while len(parts) > 1:
        at = draw(st.integers(0, len(parts) - 2))
        (left, some), (right, others) = parts[at : at + 2]
        joined, names = f"{left} {draw(st.sampled_from(RELATIONS))} {right}", [*some, *others]
        joined += f" WITHIN {draw(st.integers(4, 8))}" if draw(st.integers(0, 7)) == 0 else ""
        if draw(st.booleans()):
            number = 10 + n + len(parts)
            joined, names = f"{joined} BIND(getSTARTTIME() AS ?s{number}) BIND(getENDTIME() AS ?e{number})", [*names, number]
        conditions = draw(st.lists(comparisons(names), max_size=3))
        joined += f" FILTER({' && '.join(conditions)})" if conditions else ""
        parts[at : at + 2] = [(f"{{ {joined} }}", names)]
    return f"{PREFIXES}SELECT * WHERE {parts[0][0]}"


def comparisons(names: list[int]) -> st.SearchStrategy[str]:
    times = st.builds("?{}{}".format, st.sampled_from("see"), st.sampled_from(names))
    texts = st.sampled_from(("{0} - {1} {2} {3}", "{3} {4} {0} - {1}", "{1} + {3} {4} {0}", "!({0} - {3} {4} {1})", "{0} {2} {1} + {3}"))
    lower = st.tuples(st.sampled_from(((">=", "<="), (">", "<"))), st.integers(-5, 1))
    upper = st.tuples(st.sampled_from((("<=", ">="), ("<", ">"))), st.integers(0, 5))
    equal = st.tuples(st.just(("=", "=")), st.integers(-2, 2))
    return st.builds(
        lambda text, first, second, said: text.format(first, second, said[0][0], seconds(said[1]), said[0][1]),
        texts,
        times,
        times,
        lower | upper | upper | equal,
    )


def feeds() -> st.SearchStrategy[list[Occurrence]]:
    events = st.builds(
        lambda name, key, value, start, lasts: f"{name}({key},{value})@{start}-{start + lasts}",
        st.sampled_from("ABC"), st.sampled_from("xy"), st.integers(0, 1), st.integers(0, 8), st.sampled_from((0, 0, 0, 1, 2, 4)),
    )  # fmt: skip
    return st.lists(events, min_size=5, max_size=14).map(lambda found: parse_feed(" ".join(found)))


@settings(max_examples=examples(10_000, 100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(query=networks(), fed=feeds(), facts=st.sampled_from(("", "", "", "A(x,0)", "C(x,1) B(y,0)")))
def test_networks_find_what_the_definitions_say(query: str, fed: list[Occurrence], facts: str) -> None:
    assert_agrees(query, fed, facts)


def assert_agrees(query: str, fed: list[Occurrence], facts: str) -> None:
    """Planned and unplanned, a query finds what the reference evaluator finds."""
    queries, streams, background = {"q": query}, {"default": fed}, parse_facts(facts)
    note(query)
    note(show(fed))
    log = [block(entries(queries, streams, in_order(streams), background))]
    expected = run_oracle(queries, streams, background)
    assert results(queries, run(log).emitted) == expected
    assert results(queries, run(log, unplanned=CHOICES).emitted) == expected


@st.composite
def decided(draw: st.DrawFn) -> str:
    """Draw a part that decides on a solution by its absence or presence, with comparisons of the times of both."""
    left, right, other = (draw(st.sampled_from(("?k :A", "?k :B", "?l :B", "?k :C", "?m :C"))) for _ in range(3))
    limits = st.sampled_from(("", "", f"FILTER(getDURATION() <= {seconds(2)})"))
    first, second = (
        f"{predicate} ?o{n} {draw(limits)} BIND(getSTARTTIME() AS ?s{n}) BIND(getENDTIME() AS ?e{n})" for n, predicate in ((1, left), (2, right))
    )
    conditions = " && ".join(draw(st.lists(comparisons([1, 2]), min_size=1, max_size=3)))
    return draw(
        st.sampled_from(
            (
                f"{first} OPTIONAL {{ {second} FILTER({conditions}) }}",
                f"{first} OPTIONAL {{ {second} {{ {other} ?o3 }} FILTER({conditions}) }}",
                f"{{ {first} }} EQUALSOPTIONAL {{ {second} FILTER({conditions}) }}",
                f"{{ {second} FILTER({conditions}) }} OPTIONALSEQ {{ {first} }}",
                f"{first} FILTER NOT EXISTS {{ {second} FILTER({conditions}) }}",
                f"{first} FILTER EXISTS {{ {{ {second} }} SEQ {{ {other} ?o3 }} FILTER({conditions}) }}",
                f"{first} FILTER(?o1 = 1 || EXISTS {{ {second} FILTER({conditions}) }})",
                f"{first} BIND(EXISTS {{ {second} FILTER({conditions}) }} AS ?found)",
                f"{{ {first} }} SEQ {{ {second} }} WITHOUT {{ {other} ?o3 }} FILTER({conditions})",
                f"{{ {first} }} AND {{ {second} }} WITHOUT {{ {other} ?o3 }} FILTER({conditions})",
            )
        )
    )


def changes() -> st.SearchStrategy[list[Change]]:
    triples = st.builds("{}({},{})".format, st.sampled_from("ABC"), st.sampled_from("xy"), st.integers(0, 1))
    facts = st.lists(triples, min_size=1, max_size=2, unique=True).map(lambda found: tuple(parse_facts(" ".join(found))))
    kinds = st.tuples(st.sampled_from((ADD, ADD, REPLACE)), facts) | st.just((DROP, ()))
    return st.lists(st.builds(lambda before, kind: Change(before, "", *kind), st.integers(0, 8), kinds), max_size=3)


@settings(max_examples=examples(3_000, 20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(pattern=decided(), fed=feeds(), changing=changes(), cuts=st.frozensets(st.integers(1, 10), max_size=2))
def test_what_decides_finds_what_the_definitions_say(pattern: str, fed: list[Occurrence], changing: list[Change], cuts: frozenset[int]) -> None:
    """The background may change, and the engine may be restored, at any entry."""
    query = f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"
    if not changing:
        assert_agrees(query, fed, "")
        return
    note(query)
    note(show(fed))
    note(str(changing))
    agree(query, list(dict.fromkeys(fed)), changing, cuts)
