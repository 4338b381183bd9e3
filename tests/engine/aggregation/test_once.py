"""ONCE PER lets one solution of a key through: within a time, or until something has come (semantics.md section 15)."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.messages import Facts
from epsparql.algebra import DEFAULT_STREAM
from tests.engine.runtime.test_partitioning import has_key, inserted, keyed, same
from tests.engine.semantics.test_equivalence import RANDOM, accepted
from tests.reference.evaluator import Fact, Occurrence
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import PREFIXES, parse_facts, parse_feed, shown
from tests.support.run_both import Emitted, Runner, _facts, blocks, entries, run, run_engine, run_oracle

ALERTS = "A(s,1)@1 A(s,2)@2 A(t,1)@2 A(s,3)@5 A(s,4)@6 A(t,9)@9 A(s,5)@9 A(s,6)@9 B(s,1)@5.5 B(x,1)@7-8"
HOT = "SELECT ?s ?a { ?s :A ?a }"
ROWS = [
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 4", ALERTS, "", "a=1,s=s@1 a=1,s=t@2 a=3,s=s@5 a=5,s=s@9 a=9,s=t@9", id="again when exactly so long has passed"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 5", ALERTS, "", "a=1,s=s@1 a=1,s=t@2 a=4,s=s@6 a=9,s=t@9", id="not before"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?s :B ?b }}", ALERTS, "", "a=1,s=s@1 a=1,s=t@2 a=4,s=s@6", id="until its own key is reset"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?z :B 1 }}", ALERTS, "", "a=1,s=s@1 a=1,s=t@2 a=4,s=s@6 a=5,s=s@9 a=9,s=t@9", id="until all keys are"),
    pytest.param(f"{HOT} ONCE PER (?s ?a) UNTIL {{ ?s :B ?a }}", "A(s,1)@1 A(s,2)@2 A(s,1)@3 B(s,1)@4 A(s,1)@5 A(s,2)@5", "",
                 "a=1,s=s@1 a=1,s=s@5 a=2,s=s@2", id="a key of two variables"),
    pytest.param(f"{HOT} ONCE PER (?s ?a) UNTIL {{ ?s :B ?x }}", "A(s,1)@1 A(s,2)@2 B(s,7)@4 A(s,1)@5 A(s,2)@5", "",
                 "a=1,s=s@1 a=1,s=s@5 a=2,s=s@2 a=2,s=s@5", id="UNTIL agrees with what it shares of the key"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?s :B ?a }}", "A(s,1)@1 B(s,7)@2 A(s,2)@3", "", "a=1,s=s@1 a=2,s=s@3", id="UNTIL's other variables are its own"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?s :B ?b }}", "A(s,1)@1 B(s,1)@1 A(s,2)@2", "", "a=1,s=s@1", id="a reset at the same instant is no reset"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?s :B ?b }}", "A(s,1)@1 B(s,1)@2 A(s,2)@2 A(s,3)@3", "", "a=1,s=s@1 a=3,s=s@3", id="a reset counts for later instants"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?s :B ?b }}", "A(s,1)@2 B(s,1)@1-3 A(s,2)@4", "", "a=1,s=s@2", id="a reset that began before is none"),
    pytest.param(f"{HOT} ONCE PER ?s UNTIL {{ ?s :B ?b }}", "A(s,1)@1 A(s,2)@2 A(t,1)@2 A(t,2)@3", "B(s,1)", "a=1,s=s@1 a=1,s=t@2 a=2,s=s@2", id="a timeless reset"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 3", "X@1 A(s,1)@2 A(t,1)@4", "A(s,9) A(t,9)", "a=1,s=t@4 a=9,s=s@1 a=9,s=t@1", id="a timeless solution stands at t0"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 9", "A(s,3)@2 A(s,1)@1-2 A(s,2)@2", "", "a=1,s=s@1-2", id="at one instant the earlier start"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 9", "A(s,3)@2 A(s,10)@2 A(s,2)@2", "", "a=10,s=s@2", id="and then the terms' texts"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 9 ORDER BY DESC(?a)", "A(s,3)@2 A(s,10)@2 A(s,2)@2", "", "a=10,s=s@2", id="or ORDER BY"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 9 ORDER BY DESC(?a)", "A(s,3)@1-2 A(s,5)@2", "", "a=5,s=s@2", id="ORDER BY before the start"),
    pytest.param(f"{HOT} ONCE PER ?s WITHIN 2 LIMIT 2", "A(s,1)@1 A(s,2)@2 A(s,3)@3 A(s,4)@5", "", "a=1,s=s@1 a=3,s=s@3", id="LIMIT counts what is left"),
    pytest.param("SELECT ?a { ?s :A ?a } ONCE PER ?s WITHIN 2", "A(s,1)@1 A(s,1)@2 A(t,1)@2", "", "a=1@1 a=1@2", id="a key that is not shown"),
    pytest.param("SELECT ?s (?a > 2 AS ?high) { ?s :A ?a } ONCE PER (?s ?high) WITHIN 9", "A(s,1)@1 A(s,2)@2 A(s,3)@3", "",
                 "high=false,s=s@1 high=true,s=s@3", id="a key that SELECT calculates"),
    pytest.param("SELECT * { ?s :A ?a OPTIONAL { ?s :B ?b } } ONCE PER ?b WITHIN 9", "A(s,1)@1 A(t,1)@2 B(t,5)@3 A(t,2)@4 A(s,2)@5", "",
                 "a=1,s=s@1 a=2,b=5,s=t@3-4", id="unbound is a key of its own"),
    pytest.param("SELECT ?s (COUNT(*) AS ?n) { ?s :A ?a } GROUP BY ?s HAVING (COUNT(*) > 1) ONCE PER ?s WITHIN 4", ALERTS, "",
                 "n=2,s=s@1-2 n=2,s=t@2-9 n=4,s=s@1-6", id="after HAVING"),
    pytest.param("CONSTRUCT { ?s :C ?a } { ?s :A ?a } ONCE PER ?s WITHIN 4", ALERTS, "", "C(s,1)@1 C(s,3)@5 C(s,5)@9 C(t,1)@2 C(t,9)@9", id="of a rule"),
    pytest.param("SELECT ?a { { SELECT ?s ?a { ?s :A ?a } ONCE PER ?s WITHIN 4 } SEQ { ?s :B ?b } }", ALERTS, "", "a=1@1-5.5 a=3@5-5.5", id="of a sub-SELECT"),
    pytest.param("SELECT ?a { GRAPH ?g { SELECT ?s ?a { ?s :A ?a } ONCE PER ?s WITHIN 4 } }", "g/A(s,1)@1 h/A(s,2)@2 g/A(s,3)@3", "", "a=1@1 a=2@2", id="of each graph"),
    pytest.param("SELECT ?a { GRAPH ?g { SELECT ?s ?a { ?s :A ?a } ONCE PER ?s UNTIL { ?s :B ?b } } }",
                 "g/A(s,1)@1 h/A(s,2)@2 g/B(s,1)@3 g/A(s,3)@4 h/A(s,4)@4", "", "a=1@1 a=2@2 a=3@4", id="and reset in it"),
]  # fmt: skip


@pytest.mark.parametrize("runner", [run_engine, run_oracle])
@pytest.mark.parametrize(("query", "feed", "facts", "expected"), ROWS)
def test_rows(runner: Runner, query: str, feed: str, facts: str, expected: str) -> None:
    found = runner({"q": PREFIXES + query}, {DEFAULT_STREAM: parse_feed(feed)}, parse_facts(facts))["q"]
    assert sorted(shown(found)) == sorted(expected.split())


@settings(RANDOM, max_examples=examples(300))
@given(
    body=query_strategies.once_bodies(),
    once=query_strategies.once_clauses(),
    order=st.sampled_from(("", "", " ORDER BY DESC(?v)", " ORDER BY ?w LIMIT 3")),
    fed=query_strategies.feeds() | query_strategies.run_feeds(),
    background=query_strategies.facts(),
)
def test_the_engine_and_the_definition_agree(body: str, once: str, order: str, fed: list[Occurrence], background: list[Fact]) -> None:
    queries = {"q": query_strategies.PROLOGUE + query_strategies._numbered(f"SELECT * WHERE {body} {once}{order}")}
    assume(accepted(queries))
    note(queries["q"])
    assert run_engine(queries, {DEFAULT_STREAM: fed}, background) == run_oracle(queries, {DEFAULT_STREAM: fed}, background)


def let_through(text: str, emitted: Sequence[Emitted]) -> list[Emitted]:
    """Return what ONCE PER leaves of the solutions of `all`, in the order of their emission; those of `until` reset
    keys.
    """
    query = epsparql.parse(text).query
    assert isinstance(query, epsparql.algebra.Select)
    once, names = query.modifiers.once, query.projection
    assert once is not None
    shared = [] if once.until is None else [v for v in epsparql.algebra.in_scope_variables.visible_variables(once.until) if not v.hidden]
    resets = [(dict(zip(shared, values, strict=True)), start, end) for name, _, start, end, values in emitted if name == "until"]
    found, latest = list[Emitted](), dict[tuple[str | None, ...], int]()
    for name, entry, start, end, values in emitted:
        if name != "all":
            continue
        row = dict(zip(names, values, strict=True))
        key, last = tuple(map(row.get, once.keys)), latest.get(tuple(map(row.get, once.keys)))
        if once.within is not None:
            passes = last is None or last <= end - once.within
        else:
            agreeing = [
                (begin, over) for z, begin, over in resets if all(z.get(v) is None or row.get(v) is None or z[v] == row[v] for v in once.keys)
            ]
            passes = last is None or any(last < begin and over < end for begin, over in agreeing)
        if passes:
            latest[key] = end
            found.append(("q", entry, start, end, values))
    return found


@settings(RANDOM, max_examples=examples(300))
@given(
    body=query_strategies.once_bodies() | query_strategies.shaped("G UNION { G OPTIONAL G }", query_strategies.shared()),
    once=query_strategies.once_clauses(),
    fed=query_strategies.feeds() | query_strategies.run_feeds(),
    later=query_strategies.facts(),
    at=st.integers(3, 20),
    data=st.data(),
)
def test_of_solutions_in_the_order_of_emission_one_passes(
    body: str, once: str, fed: list[Occurrence], later: list[Fact], at: int, data: st.DataObject
) -> None:
    """Nothing is delayed: each solution comes at the entry at which it would without ONCE PER, whatever the order of
    arrival and restores.
    """
    numbered = query_strategies._numbered(f"{body} {once}")
    until = numbered.partition(" UNTIL ")[2]
    texts = {"q": f"SELECT * WHERE {numbered}", "all": f"SELECT * WHERE {numbered.partition(' ONCE PER ')[0]}"}
    queries = {name: query_strategies.PROLOGUE + text for name, text in (texts | ({"until": f"SELECT * WHERE {until}"} if until else {})).items()}
    assume(accepted(queries))
    arrival = data.draw(query_strategies.arrivals({DEFAULT_STREAM: fed}))
    log = entries(queries, {DEFAULT_STREAM: fed}, arrival.bodies, [], query_strategies.MAX_DELAY)
    if not until:  # a timeless reset is none of an instant
        log = inserted(log, [(min(at, len(log) - 1), Facts(0, graph, text)) for graph, text in _facts(later)])
    for each in (*queries.values(), *log):
        note(str(each))
    emitted = run(blocks(log, arrival.cuts), restore_before=arrival.restores).emitted
    assert [each for each in emitted if each[0] == "q"] == let_through(queries["q"], emitted)


@settings(RANDOM, max_examples=examples(60))
@given(
    body=query_strategies.once_bodies(),
    once=query_strategies.once_clauses(),
    fed=query_strategies.feeds() | query_strategies.run_feeds(),
    background=query_strategies.facts(),
    later=query_strategies.facts(),
    at=st.integers(2, 20),
    data=st.data(),
)
def test_partitions(body: str, once: str, fed: list[Occurrence], background: list[Fact], later: list[Fact], at: int, data: st.DataObject) -> None:
    query = keyed(query_strategies.PROLOGUE + query_strategies._numbered(f"SELECT * WHERE {body} {once}"))
    assume(accepted({"q": query}) and has_key(query))
    arrival = data.draw(query_strategies.arrivals({DEFAULT_STREAM: fed}))
    log = entries({"q": query}, {DEFAULT_STREAM: fed}, arrival.bodies, background, query_strategies.MAX_DELAY)
    log = inserted(log, [(min(at, len(log) - 1), Facts(0, graph, text)) for graph, text in _facts(later)])
    same({"q": query}, log, arrival.cuts, arrival.restores, 2)
