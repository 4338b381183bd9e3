"""Each step that a query could do without: what it makes of a query, and that the solutions are the same without it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.messages import Events, Register
from engine.planner import CHOICES
from engine.rewrite import CONCERNED, SIMPLIFICATIONS, rewrite_query
from engine.rewrite.equivalence import have_one_plan
from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.renderer.queries import render
from epsparql.trees import walk_nodes
from server.cli.commands import _OPTIONAL_STEPS
from tests.support.feeds import PREFIXES, SECOND, parse_feed
from tests.support.run_both import block

PAIR = "{?s :A ?x} SEQ {?t :B ?y}"
PAIRS = [
    pytest.param("constants", "?s :A ?x FILTER(?x > 1 + 1)", "?s :A ?x FILTER(?x > 2)", id="arithmetic"),
    pytest.param("constants", "?s :A ?x FILTER(1 < 2)", "?s :A ?x", id="what always holds"),
    pytest.param("constants", "?s :A ?x FILTER(?x > 1 && (1 < 2))", "?s :A ?x FILTER(?x > 1)", id="a part that always holds"),
    pytest.param("constants", "?s :A ?x FILTER((1 > 2 && ?x > 1) || ?x < 3)", "?s :A ?x FILTER(false || ?x < 3)", id="what never holds"),
    pytest.param("constants", "?s :A ?x BIND(IF(1 < 2, ?x, ?s) AS ?z)", "?s :A ?x BIND(?x AS ?z)", id="a choice"),
    pytest.param("constants", "?s :A ?x BIND(1 / 0 AS ?z)", "?s :A ?x BIND(1 / 0 AS ?z)", id="an error stays"),
    pytest.param("constants", "?s :A ?x FILTER(RAND() > 0.1 + 0.1)", "?s :A ?x FILTER(RAND() > 0.1 + 0.1)", id="where its place counts, nothing moves"),
    pytest.param("equalities", f"{PAIR} FILTER(sameTerm(?x, ?y))", "{?s :A ?x} SEQ {?t :B ?x} BIND(?x AS ?y)", id="one term"),
    pytest.param("equalities", f"{PAIR} FILTER(?x = ?y)", f"{PAIR} FILTER(?x = ?y)", id="equal values are not one term"),
    pytest.param("equalities", f"{PAIR} FILTER(sameTerm(?x, ?y) || ?x > 1)", f"{PAIR} FILTER(sameTerm(?x, ?y) || ?x > 1)", id="not in an OR"),
    pytest.param(
        "equalities", "{?s :A ?x} OPTIONAL {?t :B ?y} FILTER(sameTerm(?x, ?y))", "{?s :A ?x} OPTIONAL {?t :B ?y} FILTER(sameTerm(?x, ?y))",
        id="not of what may be unbound",
    ),
    pytest.param("unused", "?s :A ?x BIND(?x + 1 AS ?y)", "?s :A ?x", id="a BIND that nobody looks at"),
    pytest.param("unused", "?s :A ?x BIND(?x + 1 AS ?y) BIND(?y + 1 AS ?z)", "?s :A ?x", id="one for another"),
    pytest.param("unused", "?s :A ?x BIND(?x + 1 AS ?y) FILTER(?y > 1)", "?s :A ?x BIND(?x + 1 AS ?y) FILTER(?y > 1)", id="one of a condition"),
    pytest.param("unused", "{?s :A ?x BIND(?x AS ?y)} SEQ {?s :B ?y}", "{?s :A ?x BIND(?x AS ?y)} SEQ {?s :B ?y}", id="one that a join looks at"),
    pytest.param("unused", "{?s :A ?x BIND(1 AS ?y)} UNION {?s :A ?x BIND(2 AS ?y)}", "{?s :A ?x BIND(1 AS ?y)} UNION {?s :A ?x BIND(2 AS ?y)}", id="not under UNION"),
    pytest.param("unused", "{?s :A ?x BIND(getSTARTTIME() AS ?y)} AND {?s :B ?z}", "{?s :A ?x BIND(getSTARTTIME() AS ?y)} AND {?s :B ?z}", id="not of the interval"),
    pytest.param(
        "unused", "{?s :A ?x OPTIONAL {?s :B ?z} BIND(STR(?z) AS ?y)} AND {?s :C ?w}", "{?s :A ?x OPTIONAL {?s :B ?z} BIND(STR(?z) AS ?y)} AND {?s :C ?w}",
        id="not of what may be missing",
    ),
    pytest.param("unused", "{SELECT ?s ?y {?s :A ?x BIND(?x + 1 AS ?y)}} SEQ {?s :B ?z}", "{SELECT ?s {?s :A ?x}} SEQ {?s :B ?z}", id="one that a sub-SELECT hands on"),
    pytest.param(
        "unused", "{SELECT DISTINCT ?s ?y {?s :A ?x BIND(?x + 1 AS ?y)}} SEQ {?s :B ?z}", "{SELECT DISTINCT ?s ?y {?s :A ?x BIND(?x + 1 AS ?y)}} SEQ {?s :B ?z}",
        id="not where it tells rows apart",
    ),
]  # fmt: skip


def parsed(pattern: str) -> a.Query:
    return epsparql.parse(f"{PREFIXES}SELECT ?s WHERE {{ {pattern} }}").query


@pytest.mark.parametrize(("name", "before", "after"), PAIRS)
def test_what_a_step_makes_of_a_query(name: str, before: str, after: str) -> None:
    others = SIMPLIFICATIONS.keys() - {name}
    assert render(rewrite_query(parsed(before), without=others)) == render(rewrite_query(parsed(after), without=SIMPLIFICATIONS))
    assert rewrite_query(parsed(before), without=SIMPLIFICATIONS) == rewrite_query(parsed(before), without=[*SIMPLIFICATIONS])


def test_what_no_change_concerns_is_not_made_anew() -> None:
    query = parsed("{ ?s :A ?x FILTER EXISTS { ?s :B ?x } } SEQ { ?s :C ?x }")
    assert replace_patterns(query, lambda pattern: pattern) is query


def test_a_policy_chooses_by_key_so_its_keys_stay() -> None:
    query = parsed(f"{PAIR} FILTER(sameTerm(?x, ?y))")
    assert rewrite_query(query, policy="recent") == rewrite_query(query, without=["equalities"])


@pytest.mark.parametrize("text", [
    "SELECT (COUNT(*) AS ?n) WHERE { ?s :A ?x BIND(?x + 1 AS ?y) } WINDOW [ROWS 2]",
    "SELECT ?s WHERE { ?s :A ?x BIND(?x + 1 AS ?y) } LIMIT 2",
    "REGISTER ISTREAM <out> AS SELECT ?s FROM NAMED WINDOW <w> ON <in> [RANGE PT2S STEP PT1S] WHERE { WINDOW <w> { ?s :A ?x BIND(?x + 1 AS ?y) } }",
])  # fmt: skip
def test_where_solutions_are_chosen_between_all_that_they_bind_has_a_say(text: str) -> None:
    query = epsparql.parse(PREFIXES + text).query
    assert rewrite_query(query) == rewrite_query(query, without=["unused"])


def test_a_step_leaves_a_query_as_it_is_that_has_no_node_which_concerns_it() -> None:
    skipped = 0
    for query in [parsed(pair.values[k]) for pair in PAIRS for k in (1, 2)]:  # type: ignore[arg-type]  # a parameter may be anything
        kinds = set(map(type, walk_nodes(query)))
        for step in (step for step, concerned in CONCERNED.items() if kinds.isdisjoint(concerned)):
            assert step(query) == query, step
            skipped += 1
    assert skipped > 100


def test_the_command_line_offers_all() -> None:
    assert (*SIMPLIFICATIONS, *CHOICES) == _OPTIONAL_STEPS


QUERIES = [
    f"{PAIR} FILTER(sameTerm(?x, ?y) && ?x > 0)",
    f"{PAIR} FILTER(sameTerm(?s, ?t) && getDURATION() < 'PT4S'^^xsd:duration)",
    "{?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} FILTER(?x < ?z && ?y > 1 + 0 && getDURATION() <= 'PT3S'^^xsd:duration)",
    "?s :A ?x . ?t :B ?y . ?s :C ?z FILTER(sameTerm(?s, ?t)) FILTER(?z * 2 > 1 + 1)",
    "{ ?s :A ?x OPTIONAL { ?t :B ?y FILTER(sameTerm(?x, ?y) && getDURATION() < 'PT2S'^^xsd:duration) } FILTER(?x >= 1 || 1 > 2) } WITHIN 5",
    "{{?s :A ?x} UNION {?s :B ?x}} SEQ {?t :C ?y FILTER(sameTerm(?t, ?t))} FILTER(sameTerm(?x, ?y) && COALESCE(1/0, true))",
    "?s :A ?x FILTER EXISTS { {?s :B ?y} SEQ {?t :C ?z} FILTER(sameTerm(?y, ?z) && ?y > ?x) }",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?t :C ?z FILTER(sameTerm(?t, ?z) || ?z > 1 - 1)} WITHIN 4",
    "{?s :A ?x} EQUALSOPTIONAL {{?s :A ?x . ?t :B ?y} SEQ {?s :A ?x}} WITHIN 3",
    "{{?s :A ?x} SEQ {?s :B ?y}} EQUALSOPTIONAL {{?s :A ?z} SEQ {?t :C ?w} SEQ {?s :B ?y}} FILTER(!BOUND(?t) && getDURATION() < 'PT4S'^^xsd:duration)",
    "{{?s :A ?x} SEQ {?s :B ?y}} EQUALSOPTIONAL {{?s :A ?x} SEQ {?t :C ?w} SEQ {?s :B ?y}} FILTER(!BOUND(?w) && ?x < ?y && getDURATION() < 'PT4S'^^xsd:duration)",
    "{SELECT DISTINCT ?s {{?s :A ?x} SEQ {?s :B ?y}}} WITHIN 3",
    "{{?s :A ?x} SEQ {?s :B ?y}} OVERLAPS {{?t :C ?z} SEQ {?t :A ?w} WITHIN 4}",
    "{?s :A ?x} SEQ {{?s :B ?y . ?t :C ?z} SEQ {?t :A ?w}}",
    "GRAPH ?g { ?s :A ?x . ?t :B ?y FILTER(sameTerm(?s, ?t)) }",
    "?s :A ?x MINUS { {?s :B ?y} SEQ {?t :C ?z} FILTER(sameTerm(?s, ?t) && getDURATION() = 'PT1S'^^xsd:duration) } BIND(1 + 1 AS ?w)",
    "{?s :A ?x BIND(STR(?x) AS ?a)} AND {SELECT ?s ?b {?s :B ?y OPTIONAL {?t :C ?y BIND(?y + 1 AS ?c)} BIND(CONCAT(STR(?s), STR(?y)) AS ?b)}}",
    "{{?s :A ?x BIND(?x + 1 AS ?b)} UNION {?s :A ?y BIND(?y + 2 AS ?c)}} EQUALS {?s ?p ?x BIND(STR(?p) AS ?d)} FILTER EXISTS {?s :B ?z BIND(?z AS ?e)}",
    "{?s :A ?x BIND(getENDTIME() AS ?e)} AND {?t :B ?y BIND(getSTARTTIME() AS ?f)} FILTER(?e < ?f && ?f - ?e < 'PT3S'^^xsd:duration)",
]
FEEDS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)), min_size=3, max_size=14)


@settings(deadline=None)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(["*", "*", "?s", "?x"]),
    FEEDS,
    st.sampled_from(["unrestricted", "unrestricted", "recent", "chronological"]),
)
def test_without_each_step_the_solutions_are_the_same(pattern: str, shown: str, events: list[tuple[str, int, int, int]], policy: str) -> None:
    expected, *others = (found(pattern, shown, events, policy, without) for without in ([], *([name] for name in _OPTIONAL_STEPS), _OPTIONAL_STEPS))
    for without, solutions in zip((*_OPTIONAL_STEPS, "all"), others, strict=True):
        assert solutions == expected, without


def found(pattern: str, shown: str, events: list[tuple[str, int, int, int]], policy: str, without: Sequence[str]) -> list[object]:
    """The first half of the events is known when the query comes, so that there are rates."""
    engine, solutions, now = Engine(), list[object](), 1
    engine.registry.without = frozenset(without)
    engine.feed(block([(Register(0, "other", f"{PREFIXES}SELECT * WHERE {{ ?s :A ?x . ?s :Z ?y }}"), ())]))
    for k, (name, subject, value, step) in enumerate(events):
        if k == len(events) // 2:
            text = f"{PREFIXES}SELECT {shown} WHERE {{ {pattern} }}"
            outcome = engine.feed(block([(replace(Register(0, "q", text, policy), offset=engine.position), ())]))
            assert not outcome.changes
        now += step
        entry = Events(engine.position, "default", 1, now * SECOND)
        solutions += engine.feed(block([(entry, tuple(parse_feed(f"{name}(s{subject},{value})@{now}")))])).solutions.to_pylist()
    return solutions


# ---------------------------------------------------------------- queries that one plan answers
ALIKE = [
    pytest.param("SELECT ?s { ?s :A ?x . ?s :B ?y }", "SELECT ?s { ?s :B ?y . ?s :A ?x }", True, id="the order of triples"),
    pytest.param("SELECT ?s { ?s :A ?x }", "SELECT ?s { ?s :A ?y }", True, id="a name that nobody is shown"),
    pytest.param("SELECT ?s { ?s :A ?x }", "SELECT ?t { ?t :A ?x }", False, id="a name that is shown"),
    pytest.param("SELECT ?s { ?s :A ?x . ?s :B ?y }", "SELECT ?s { ?s :A ?y . ?s :B ?x }", False, id="names in another order"),
    pytest.param("CONSTRUCT { ?s :C ?x } { ?s :A ?x }", "CONSTRUCT { ?s :C ?y } { ?s :A ?y }", True, id="names of a rule"),
    pytest.param("SELECT * { ?s :A 1 }", "SELECT * { ?s :A 2 }", False, id="a constant"),
    pytest.param("SELECT * { ?s :A ?x FILTER(?x > 1 + 1) }", "SELECT * { ?s :A ?x FILTER(?x > 2) }", True, id="what simplifying removes"),
    pytest.param("SELECT * { ?s :A ?x FILTER(?x > STRLEN('ab')) }", "SELECT * { ?s :A ?x FILTER(?x > 2) }", True, id="a function of constants"),
    pytest.param("SELECT * { ?s :A ?x FILTER(RAND() < 1) }", "SELECT * { ?s :A ?x FILTER(RAND() < 1) }", True, id="RAND in one text"),
    pytest.param("SELECT ?s { ?s :A ?x . ?s :B ?y FILTER(RAND() < 1) }", "SELECT ?s { ?s :B ?y . ?s :A ?x FILTER(RAND() < 1) }", False, id="RAND in two"),
    pytest.param("SELECT * { ?s :A ?x }", "ASK { ?s :A ?x }", False, id="another form"),
    pytest.param("SELECT ?s { ?s :A ?x { SELECT ?s { ?s :B ?x } } }", "SELECT ?s { ?s :A ?y { SELECT ?s { ?s :B ?z } } }", True, id="names of a sub-SELECT"),
    pytest.param("SELECT ?s { ?s :A [ :B ?x ] }", "SELECT ?s { ?s :A [ :B ?y ] }", True, id="blank nodes"),
    pytest.param("SELECT ?s { ?s :A ?x VALUES ?x { 1 2 } }", "SELECT ?s { ?s :A ?x VALUES ?x { 2 1 } }", False, id="the order of VALUES"),
    pytest.param("SELECT ?s { ?s :A << ?x :B 1 >> }", "SELECT ?s { ?s :A << ?y :B 1 >> }", True, id="triple terms"),
    pytest.param("SELECT ?s { ?s :A ?x } LIMIT 1", "SELECT ?s { ?s :A ?x } LIMIT 2", False, id="how many are shown"),
    pytest.param("SELECT ?s { ?s :A ?x FILTER(?x < 1) }", "SELECT ?s { ?s :A ?x FILTER(?x > 1) }", False, id="another comparison"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "alike"), ALIKE)
def test_queries_of_one_plan(one: str, other: str, alike: bool) -> None:
    first, second = (rewrite_query(epsparql.parse(PREFIXES + text).query) for text in (one, other))
    assert have_one_plan(first, second) is alike
    assert have_one_plan(second, first) is alike
