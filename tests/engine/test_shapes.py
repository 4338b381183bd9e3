"""Whatever order joins are made in, the solutions are the same; and the order that rates ask for is the one that is taken."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.entries import Entry, Events, Facts, Register
from engine.facts import FactIndex
from engine.network import Network
from engine.planning import plan, shapes
from engine.rewrite import rewritten
from engine.run import Engine
from engine.terms import TermTable
from epsparql import algebra as a
from epsparql import parse
from epsparql.terms import XSD
from tests.feeds import EXAMPLE, PREFIXES, parse_feed
from tests.oracle import Occurrence
from tests.running import block

CHAIN = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y FILTER(?y > 1)} SEQ {?s :C ?z} FILTER(?x < ?z) }"
CHAINS = [
    CHAIN,
    "SELECT DISTINCT ?x WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?x} SEQ {?s :A ?z} }",
    'SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?r :C ?y} FILTER(getDURATION() < "PT4S"^^xsd:duration) }',
    'SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} WITHIN "PT3S"^^xsd:duration }',
]
GROUPS = [
    "SELECT * WHERE { ?s :A ?x . ?s :B ?y . ?r :C ?y }",
    'SELECT * WHERE { ?s :A ?x . ?s :C ?y . ?s :B ?z FILTER(getDURATION() < "PT4S"^^xsd:duration) }',
]


def rates(**counts: int) -> shapes.Rates:
    return shapes.rates_given({EXAMPLE + name: n for name, n in counts.items()})


class Run:
    """An engine; `common` says how often A, B, C came before any query."""

    def __init__(self, common: str = "") -> None:
        self.engine = Engine()
        self.put(Register(0, "first", PREFIXES + "SELECT * WHERE { ?s :A ?x . ?s :B ?x . ?s :C ?x . ?s :Z ?x }"))
        if common:
            self.send(" ".join(f"{name}(w,{k})@0" for k, name in enumerate(common)))

    def put(self, entry: Entry, occurrences: Sequence[Occurrence] = ()) -> list[tuple[object, ...]]:
        outcome = self.engine.feed(block([(dataclasses.replace(entry, offset=self.engine.position), tuple(occurrences))]))
        assert not [change.reason for change in outcome.changes]
        return [(row["start"], row["end"], *row["values"]) for row in outcome.solutions.to_pylist() if row["query"] != "first"]

    def register(self, text: str) -> None:
        self.put(Register(0, "q", PREFIXES + text))

    def send(self, feed: str) -> list[tuple[object, ...]]:
        occurrences = parse_feed(feed)
        return self.put(Events(0, "default", len(occurrences), max(o.end for o in occurrences)), occurrences)

    @property
    def turned(self) -> bool:
        return any(planned.turned for member in self.engine.members for planned in member.network.planned.values())


EVENTS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 1), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=14)


def feeds(events: Sequence[tuple[str, int, int, int]]) -> list[str]:
    """One occurrence an entry, at instants that do not fall."""
    found, now = [], 1
    for name, subject, value, step in events:
        now += step
        found.append(f"{name}(s{subject},{value})@{now}")
    return found


@settings(deadline=None)
@given(st.sampled_from(CHAINS + GROUPS), EVENTS, st.integers(0, 14), st.booleans())
def test_the_shape_makes_no_difference(text: str, events: list[tuple[str, int, int, int]], stop: int, restored: bool) -> None:
    plain, shaped = Run(), Run("A" * 50 + "B" * 10 + "C")
    for run in (plain, shaped):
        run.register(text)
    assert shaped.turned == (text in CHAINS)
    assert not plain.turned
    for k, feed in enumerate(feeds(events)):
        assert shaped.send(feed) == plain.send(feed)
        if restored and k == stop:
            shaped.engine = Engine.restore(shaped.engine.snapshot())


@settings(deadline=None)
@given(st.sampled_from(CHAINS), EVENTS, st.integers(0, 14), st.sampled_from("ABC"), st.booleans(), st.booleans())
def test_a_background_that_makes_an_operand_timeless_changes_the_shape_and_nothing_else(
    text: str, events: list[tuple[str, int, int, int]], stop: int, predicate: str, before: bool, after: bool
) -> None:
    """The joins of what came before follow from the goals of the operands; after the first such change there may be others."""
    plain, shaped = Run(), Run("A" * 50 + "B" * 10 + "C")
    for run in (plain, shaped):
        run.register(text)
    for k, feed in enumerate(feeds(events)):
        if k == stop:
            if before:
                shaped.engine = Engine.restore(shaped.engine.snapshot())
            for number, graph in enumerate(("one", "two")):
                fact = f'<{EXAMPLE}s{number}> <{EXAMPLE}{predicate}> "2"^^<{XSD}integer> .\n'
                assert shaped.put(Facts(0, EXAMPLE + graph, fact)) == plain.put(Facts(0, EXAMPLE + graph, fact))
            if after:
                shaped.engine = Engine.restore(shaped.engine.snapshot())
        assert shaped.send(feed) == plain.send(feed)


ORDERS = [
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", {}, "ABC", id="as written where nothing is known"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", {"A": 9, "B": 5, "C": 1}, "CBA", id="rare ones first"),
    pytest.param("?s :A ?x . ?x :B ?y . ?y :C ?z", {"A": 5, "B": 9, "C": 1}, "CBA", id="but only what shares a variable"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C 7", {"A": 2, "B": 5, "C": 10}, "CAB", id="a constant selects"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", {"A": 9, "C": 1}, "CBA", id="what is not known is as common as the others"),
]


@pytest.mark.parametrize(("group", "counts", "order"), ORDERS)
def test_the_order_of_a_group(group: str, counts: dict[str, int], order: str) -> None:
    pattern = parse(f"{PREFIXES} SELECT * WHERE {{ {group} }}").query.pattern
    assert isinstance(pattern, a.Bgp)
    found = shapes.in_order(pattern.triples, rates(**counts))
    assert "".join(str(triple.predicate)[-2] for triple in found) == order


TURNS = [
    pytest.param(CHAIN, {"A": 50, "B": 10, "C": 1}, True, id="the first is the most common"),
    pytest.param(CHAIN, {"A": 1, "B": 10, "C": 50}, False, id="the first is the rarest"),
    pytest.param(CHAIN, {"A": 3, "B": 10, "C": 2}, False, id="the gain is small"),
    pytest.param(CHAIN, {}, False, id="nothing is known"),
    pytest.param("SELECT * WHERE { {?s :A ?x} SEQ {?s :C ?z} }", {"A": 50, "C": 1}, False, id="two operands"),
    pytest.param(
        "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y . ?s :D ?d} SEQ {?s :C ?z} }", {"A": 50, "B": 9, "C": 1}, False, id="an operand with goals"
    ),
    pytest.param("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} MINUS {?s :D ?d} }", {"A": 50, "C": 1}, False, id="part of a query"),
]


@pytest.mark.parametrize(("text", "counts", "turned"), TURNS)
def test_a_chain_is_planned_from_its_end_where_that_gains(text: str, counts: dict[str, int], turned: bool) -> None:
    network = Network(TermTable())
    query = rewritten(parse(PREFIXES + text).query, "all")
    assert plan(query, network.names(FactIndex(), rates=rates(**counts))).turned == turned
