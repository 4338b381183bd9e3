"""A network plans its queries by rates, and a change of the background concerns those whose plans it may change."""

from collections.abc import Sequence

import numpy as np
import pytest

import epsparql
from engine.background.fact_store import FactIndex
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import ADD, DROP, REPLACE, Facts, Register
from engine.network.network import Network
from engine.network.placed_query import describe_plan
from engine.planner import PlanOptions
from engine.planner.builder.join_order import EVERYTHING, KNOWN, OVER
from epsparql.algebra import Select
from epsparql.etalis.parser.vocabulary import OWN
from epsparql.terms import Iri
from tests.engine.runtime.test_engine import Log
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND

IRI = {name: f"<{EXAMPLE}{name}>" for name in "ABCDKL"}


def network_of(log: Log) -> Network:
    (member,) = log.engine.registry.members
    return member.network


# ---------------------------------------------------------------- rates
def estimated(log: Log, pattern: str) -> dict[str, float]:
    query = epsparql.parse(f"{PREFIXES} SELECT * WHERE {{ {pattern} }}").query
    assert isinstance(query, Select)
    return dict(network_of(log).planning.estimate_rates(query))


def test_rates_are_what_has_occurred_since_occurrences_are_counted() -> None:
    log = Log(Engine())
    log.register("q", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} }")
    assert estimated(log, "?s :A ?x . ?s :B ?y") == {}
    log.send("A(1)@3 A(2)@5")
    assert estimated(log, "?s :A ?x . ?s :B ?y") == {OVER: 2 * SECOND, EVERYTHING: 2, IRI["A"]: 2, IRI["B"]: 0}
    log.send("B(1)@9 A(2)@9 D(2)@9")
    assert estimated(log, "?s :B ?x . ?s :A ?y") == {OVER: 6 * SECOND, EVERYTHING: 5, IRI["A"]: 3, IRI["B"]: 1}
    assert estimated(log, "?s ?p ?x") == {OVER: 6 * SECOND, EVERYTHING: 5}
    network_of(log).arrays.began = None  # as of a snapshot that does not say it
    assert estimated(log, "?s :A ?x") == {EVERYTHING: 5, IRI["A"]: 3}


def test_of_a_predicate_that_no_query_asks_for_nothing_is_known() -> None:
    log = Log(Engine())
    log.register("q", "SELECT * WHERE { ?s :A ?x }")
    log.send(" ".join(f"A({k})@1" for k in range(40)))
    assert estimated(log, "?s :new ?x") == {OVER: 0, EVERYTHING: 40}


@pytest.mark.parametrize(("n", "told"), [(2, False), (3, True)])
def test_rates_tell_of_what_the_background_has_many(n: int, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.network.placed_query.FEW", 2)
    log = Log(Engine())
    log.put(Facts(0, "", "".join(f"<{EXAMPLE}s{k}> {IRI['K']} <{EXAMPLE}k> .\n" for k in range(n)) + f"<{EXAMPLE}s> {IRI['L']} <{EXAMPLE}k> .\n"))
    log.register("q", "SELECT * WHERE { ?s :A ?x . ?s :K ?k }")
    known = {f"{KNOWN}{IRI['K']}": n} if told else {}
    assert estimated(log, "?s :A ?x . ?s :K ?k . ?s :L ?l") == known
    log.send("A(1)@3")
    assert estimated(log, "?s :A ?x . ?s :K ?k") == known | {OVER: 0, EVERYTHING: 1, IRI["A"]: 1, IRI["K"]: 0}


# ---------------------------------------------------------------- whom a change concerns
PATTERNS = {
    "K": "?s :A ?a . ?s :K ?k",
    "two": "?s :K ?k . ?s :L ?l",
    "graphs": "GRAPH ?g { ?s :B ?a }",
    "named": "GRAPH :g { ?s :K ?k . ?s :B ?a }",
    "any": "GRAPH :g { } ?s :B ?a",
    "none": "?s :C ?a",
}
START = [("", "s K k"), ("", "s L l"), ("h", "s K k")]
CHANGES = [
    pytest.param([], set[str](), id="nothing"),
    pytest.param([("", "s K k", ADD)], set[str](), id="what is there"),
    pytest.param([("", "s K k . s L l", REPLACE)], set[str](), id="replaced by itself"),
    pytest.param([("", "s K x . s L l", REPLACE)], {"K", "two"}, id="as many others"),
    pytest.param([("", "s K x", ADD)], {"K", "two"}, id="one more"),
    pytest.param([("", "s L x", ADD)], {"two"}, id="of the second of two"),
    pytest.param([("", "s C x", ADD)], {"none"}, id="of what has been of streams alone"),
    pytest.param([("", "s D x", ADD)], set[str](), id="of what nobody asks for"),
    pytest.param([("h", "s D x", ADD)], set[str](), id="in a graph that is there"),
    pytest.param([("h", "s D x", REPLACE)], set[str](), id="in a graph that stays, and in no graph too"),
    pytest.param([("i", "s D x", ADD)], {"graphs"}, id="in a new graph"),
    pytest.param([("g", "s D x", ADD)], {"graphs", "any", "named"}, id="in a graph that is named, and was empty"),
    pytest.param([("g", "s K k", ADD)], {"graphs", "any", "named"}, id="of a graph's own"),
    pytest.param([("h", "", DROP)], {"graphs"}, id="a graph goes"),
    pytest.param([("g", "s D x", ADD), ("g", "", DROP)], set[str](), id="there and back"),
]


def changed(known: FactIndex, changes: Sequence[tuple[str, str, str]]) -> FactIndex:
    for graph, text, kind in changes:
        triples = [[str(Iri(EXAMPLE + part)) for part in triple.split()] for triple in text.split(" . ") if triple]
        numbers = known.terms.intern_all([part for triple in triples for part in triple]).reshape(-1, 3)
        known = known.with_change(EXAMPLE + graph if graph else "", numbers, kind)
    return known


@pytest.mark.parametrize(("changes", "concerned"), CHANGES)
def test_whom_a_change_concerns(changes: Sequence[tuple[str, str, str]], concerned: set[str]) -> None:
    log = Log(Engine())
    for graph, fact in START:
        text = " ".join(f"<{EXAMPLE}{part}>" for part in fact.split())
        log.put(Facts(0, EXAMPLE + graph if graph else "", f"{text} .\n"))
    names = {log.register(name, f"SELECT * WHERE {{ {pattern} }}"): name for name, pattern in PATTERNS.items()}
    network = network_of(log)
    found = network.planning.find_changing(network.planned, changed(log.engine.registry.known, changes))
    assert {names[registered] for registered in found} == concerned


def test_the_same_background_may_take_the_place_of_one() -> None:
    log = Log(Engine())
    query = log.register("q", "SELECT * WHERE { ?s :K ?k }")
    network, before = network_of(log), log.engine.registry.known
    log.send("A@1")
    log.put(Facts(0, "", f"<{EXAMPLE}s> {IRI['K']} <{EXAMPLE}k> .\n"))
    coming, other, again = log.engine.registry.known, FactIndex(log.engine.registry.terms), FactIndex(log.engine.registry.terms)
    assert (network.planning.known, network.background.coming, network.planning.knows) == (before, coming, {query: before})
    network.background.replace_known(before, other)
    assert (network.planning.known, network.background.coming, network.planning.knows) == (other, coming, {query: other})
    network.background.replace_known(coming, again)
    assert (network.planning.known, network.background.coming, network.planning.knows) == (other, again, {query: other})


# ---------------------------------------------------------------- where queries stand
def test_rows_found_are_theirs_whose_query_moved_meanwhile() -> None:
    log = Log(Engine())
    first, second = (log.register(name, f"SELECT * WHERE {{ ?s :{name} ?x }}") for name in "AB")
    network = network_of(log)
    a, b = (network.planned[registered].out for registered in (first, second))
    found = np.zeros((6, c.OUT_VAR), np.int64)
    found[:, c.OUT_NODE] = [70, b, 80, a, 70, 99]
    network._rename_moved(found, {70: first, b: second, 80: second, 99: 1234})  # which has failed
    assert found[:, c.OUT_NODE].tolist() == [a, b, b, a, a, 99]
    found[:, c.OUT_NODE] = [a, b, a, b, 99, a]
    network._rename_moved(found, {a: second, b: first})
    assert found[:, c.OUT_NODE].tolist() == [b, a, b, a, 99, b]


DESCRIBED = [
    pytest.param("SELECT ?x ?s WHERE { ?s :A ?x }", (1, 0), 2, False, id="not by name"),
    pytest.param("SELECT ?s ?x WHERE { ?s :A ?x }", (), 2, False, id="by name"),
    pytest.param("SELECT ?x WHERE { ?s :A ?x }", (), 1, False, id="one"),
    pytest.param("SELECT ?x ?s ?a WHERE { ?s :A ?x }", (2, 1, 0), 3, False, id="one that is never bound"),
    pytest.param("SELECT * WHERE { GRAPH ?g { ?s :A ?x } }", (), 3, True, id="in which graph"),
    pytest.param("SELECT * WHERE { GRAPH :g { ?s :A ?x } ?s :B ?y }", (), 3, True, id="in a graph, and beside it"),
    pytest.param("ASK { ?s :A ?x }", (), 0, False, id="ASK"),
    pytest.param("CONSTRUCT { ?s :C ?x } INTO STREAM <c> WHERE { ?s :A ?x }", (), 0, False, id="a rule"),
]


@pytest.mark.parametrize(("text", "by_name", "shown", "graphs"), DESCRIBED)
def test_what_is_said_of_a_query_at_its_place(text: str, by_name: tuple[int, ...], shown: int, graphs: bool) -> None:
    log = Log(Engine())
    log.register("before", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }")
    query = log.register("q", text)
    planned = network_of(log).planned[query]
    assert (planned.shown, planned.graphs, planned.writes) == (shown, graphs, "c" if "INTO" in text else None)
    assert planned.name_order == by_name
    assert (planned.last is not None) == text.startswith("ASK")
    if planned.last is not None:
        assert planned.last in network_of(log).collectors.placed
    fragment = network_of(log).planning.plan_anew(planned)
    again = describe_plan(planned.source, planned.number, fragment, planned.at)
    assert (again.after, again.columns, again.form, again.emitted.tolist()) == (
        planned.after,
        planned.columns,
        planned.form,
        planned.emitted.tolist(),
    )


def test_a_program_writes_some_events_for_others_and_some_for_itself() -> None:
    log = Log(Engine())
    log.put(Register(0, "q", "#!etalis unrestricted\ninto_stream('urn:t:out'). print_trigger(e/1). d(X) <- a(X). e(X) <- d(X) seq d(_)."))
    (planned,) = network_of(log).planned.values()
    assert {rule.into for rule in planned.written.values()} == {planned.writes} == {"urn:t:out"}
    assert {rule.into for rule in planned.silent.values()} == {f"{OWN}{planned.registered}"}
    assert sorted([*planned.written, *planned.silent]) == sorted(planned.rules)


def test_a_partition_copies_its_own_triples_of_the_background() -> None:
    """Others have the others."""
    known = changed(FactIndex(Engine().registry.terms), [("", "s K k . t K k . u K k", ADD)])
    rows = known.numbers
    network = Network(known.terms, known=known, owns=lambda quad: quad[0] == Iri(EXAMPLE + "t"))
    assert [known.terms.text(row[0]) for row in network.planning.make_names(known, PlanOptions()).own(rows).tolist()] == [str(Iri(EXAMPLE + "t"))]
    assert len(Network(known.terms, known=known).planning.make_names(known, PlanOptions()).own(rows)) == 3
