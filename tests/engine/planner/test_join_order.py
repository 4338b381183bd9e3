"""Whatever order joins are made in, the solutions are the same; and the order that rates ask for is the one that is
taken.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import Entry, Events, Facts, Register, int64s
from engine.network.network import Network
from engine.physical_plan.join_trees import Linear, Pairing, Shape, Tree, least, shape_of, tree_of, work
from engine.planner import PlanOptions, plan_query
from engine.planner.builder import join_order
from engine.rewrite import rewrite_query
from engine.snapshot.format import pack, unpack
from epsparql import algebra as a
from epsparql import parse
from epsparql.terms import XSD, Iri, Variable
from tests.reference.evaluator import Occurrence, solutions
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND, parse_feed
from tests.support.run_both import block

CHAIN = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y FILTER(?y > 1)} SEQ {?s :C ?z} FILTER(?x < ?z) }"
CHAINS = [
    CHAIN,
    "SELECT DISTINCT ?x WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?x} SEQ {?s :A ?z} }",
    'SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?r :C ?y} FILTER(getDURATION() < "PT4S"^^xsd:duration) }',
    'SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} WITHIN "PT3S"^^xsd:duration }',
    "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?x} SEQ {?t :A ?y} FILTER(?x <= ?y) }",
    'SELECT * WHERE { {?s :A ?x} SEQ {?r :B ?x} SEQ {?s :C ?z FILTER(?z > 0)} SEQ {?r :B ?w} SEQ {?s :A ?v} WITHIN "PT9S"^^xsd:duration FILTER(?x != ?w) }',
    "SELECT ?s WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} SEQ {?s :B ?w} SEQ {?s :A ?v} SEQ {?s :C ?u} FILTER(?y = ?w || ?x < ?v) FILTER(?z <= ?u) }",
]
GROUPS = [
    "SELECT * WHERE { ?s :A ?x . ?s :B ?y . ?r :C ?y }",
    'SELECT * WHERE { ?s :A ?x . ?s :C ?y . ?s :B ?z FILTER(getDURATION() < "PT4S"^^xsd:duration) }',
]


def rates(**counts: int) -> join_order.Rates:
    return join_order.rates_given({EXAMPLE + name: n for name, n in counts.items()})


def test_a_predicate_that_never_came_counts_as_much_as_the_others_on_average() -> None:
    triple = a.TriplePattern(Variable("s"), Iri(EXAMPLE + "Z"), Variable("x"))
    assert join_order.rate(triple, rates(A=2, B=4)) == 3
    assert join_order.rate(triple, {}) == 1


@pytest.mark.parametrize(("triple", "expected"), [
    ("?s :A ?x", 200), (":s :A ?x", 20), ("?s :A 1", 20), (":s :A 1", 2), ("?s ?p ?x", 600), ("?s ?p 1", 60), ("?s :Z ?x", 300),
])  # fmt: skip
def test_how_often_a_pattern_matches(triple: str, expected: float) -> None:
    pattern = parse(f"{PREFIXES} SELECT * WHERE {{ {triple} }}").query.pattern
    assert isinstance(pattern, a.Bgp)
    assert join_order.rate(pattern.triples[0], {**rates(A=200, B=400), join_order.OVER: 7, f"{join_order.KNOWN}<p>": 5}) == expected


def test_the_predicates_of_a_query() -> None:
    query = parse(f"{PREFIXES} SELECT * WHERE {{ ?s :A ?x ; ?p 1 FILTER EXISTS {{ ?s :B ?y }} OPTIONAL {{ ?s (:C|:D)+ ?z . ?z :A 5 }} }}").query
    assert join_order.predicates_of(query) == {f"<{EXAMPLE}{name}>" for name in "AB"}


class JoinOrderRun:
    """An engine; `common` says how often A, B, C came before any query."""

    def __init__(self, common: str = "") -> None:
        self.engine = Engine()
        self.put(Register(0, "first", PREFIXES + "SELECT * WHERE { ?s :A ?x . ?s :B ?x . ?s :C ?x . ?s :Z ?x }"))
        if common:
            self.send(" ".join(f"{name}(w,{k})@0" for k, name in enumerate(common)))

    def put(self, entry: Entry, occurrences: Sequence[Occurrence] = ()) -> list[tuple[object, ...]]:
        outcome = self.engine.feed(block([(dataclasses.replace(entry, offset=self.engine.position), tuple(occurrences))]))
        assert not [change.reason for change in outcome.changes]
        found = outcome.solutions.filter(pc.field("query") != "first")
        times = zip(*(int64s(found.column(name)).tolist() for name in ("start", "end")), strict=True)
        return [(start, end, *values) for (start, end), values in zip(times, found.column("values").to_pylist(), strict=True)]

    def register(self, text: str, shape: Shape | None = None) -> None:
        """Register a query in the given shape, or in the one that rates ask for."""
        entry = Register(self.engine.position, "q", PREFIXES + text)
        self.put(entry)
        if shape is not None:
            (network,) = (member.network for member in self.engine.registry.members)
            network.drop_query(entry.offset)
            self.engine.registry.restore_query(network, entry, {}, shape)

    def send(self, feed: str) -> list[tuple[object, ...]]:
        occurrences = parse_feed(feed)
        return self.put(Events(0, "default", len(occurrences), max(o.end for o in occurrences)), occurrences)

    @property
    def shape(self) -> Shape | None:
        (planned,) = (p for member in self.engine.registry.members for p in member.network.planned.values() if p.source.name == "q")
        assert not isinstance(planned.shape, Pairing)
        return planned.shape


EVENTS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 1), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=18)


def trees(first: int, after: int) -> st.SearchStrategy[Tree]:
    """Return a strategy for the trees of the operands [first, after)."""
    if after - first == 1:
        return st.just(first)
    return st.integers(first + 1, after - 1).flatmap(lambda middle: st.tuples(trees(first, middle), trees(middle, after)))


CHAINS_SHAPED = st.sampled_from(CHAINS).flatmap(lambda text: st.tuples(st.just(text), trees(0, text.count("SEQ") + 1)))


def feeds(events: Sequence[tuple[str, int, int, int]]) -> list[str]:
    """One occurrence an entry, at instants that do not fall."""
    found, now = [], 1
    for name, subject, value, step in events:
        now += step
        found.append(f"{name}(s{subject},{value})@{now}")
    return found


@settings(deadline=None)
@given(CHAINS_SHAPED, EVENTS, st.integers(0, 18), st.booleans())
def test_the_shape_makes_no_difference(chain: tuple[str, Tree], events: list[tuple[str, int, int, int]], stop: int, restored: bool) -> None:
    """Solutions, their entries and their order are those of the chain as written, and of the definition."""
    text, tree = chain
    n = text.count("SEQ") + 1
    plain, shaped = JoinOrderRun(), JoinOrderRun()
    plain.register(text, Linear.WRITTEN)
    shaped.register(text, shape_of(tree, n))
    assert tree_of(plain.shape or Linear.FROM_END, n) == tree_of(Linear.WRITTEN, n)
    assert tree_of(shaped.shape or Linear.WRITTEN, n) == tree
    found = []
    for k, feed in enumerate(feeds(events)):
        rows = shaped.send(feed)
        assert rows == plain.send(feed)
        found += rows
        if restored and k == stop:
            shaped.engine = Engine.restore(shaped.engine.snapshot())
    occurrences = [occurrence for feed in feeds(events) for occurrence in parse_feed(feed)]
    expected = solutions({"q": parse(PREFIXES + text).query}, {"default": occurrences})["q"]
    assert isinstance(expected, Counter)
    named = Counter((start, end, *sorted(str(term) for _, term in bindings)) for bindings, (start, end) in expected.elements())
    assert Counter((start, end, *sorted(map(str, values))) for start, end, *values in found) == named


@settings(deadline=None)
@given(CHAINS_SHAPED, EVENTS, st.lists(st.tuples(st.integers(0, 18), st.sampled_from("ABCD"), st.booleans()), min_size=1, max_size=2), st.booleans())
def test_a_background_that_makes_an_operand_timeless_changes_the_shape_and_nothing_else(
    chain: tuple[str, Tree], events: list[tuple[str, int, int, int]], changes: list[tuple[int, str, bool]], before: bool
) -> None:
    """The joins of what came before follow from the goals that there are; after the first such change there may be
    others.
    """
    text, tree = chain
    plain, shaped = JoinOrderRun(), JoinOrderRun()
    plain.register(text, Linear.WRITTEN)
    shaped.register(text, shape_of(tree, text.count("SEQ") + 1))
    for k, feed in enumerate(feeds(events)):
        for stop, predicate, after in changes:
            if k != stop:
                continue
            if before:
                shaped.engine = Engine.restore(shaped.engine.snapshot())
            for number, graph in enumerate(("one", "two")):
                fact = f'<{EXAMPLE}s{number}> <{EXAMPLE}{predicate}> "2"^^<{XSD}integer> .\n'
                assert shaped.put(Facts(0, EXAMPLE + graph, fact)) == plain.put(Facts(0, EXAMPLE + graph, fact))
            if after:
                shaped.engine = Engine.restore(shaped.engine.snapshot())
        assert shaped.send(feed) == plain.send(feed)


def test_the_goals_that_are_left_are_those_of_the_chain_as_written() -> None:
    """Whatever the chain was joined like."""
    text = CHAINS[-1]
    for tree in (((0, 1), ((2, 3), (4, 5))), (0, (((1, 2), 3), (4, 5))), ((0, (1, (2, 3))), (4, 5))):
        plain, shaped = JoinOrderRun(), JoinOrderRun()
        plain.register(text, Linear.WRITTEN)
        shaped.register(text, tree)
        for run in (plain, shaped):
            for name, at in zip("ABCBABBCA", range(1, 10), strict=True):
                run.send(f"{name}(s0,{at % 3})@{at}")
            run.put(Facts(0, EXAMPLE + "g", f'<{EXAMPLE}s1> <{EXAMPLE}B> "2"^^<{XSD}integer> .\n'))
            run.send("Z(s0,0)@10")
        assert shaped.shape is Linear.WRITTEN
        assert sorted(goals(shaped)) == sorted(goals(plain))
        assert not any(member.network.net.streams[:, c.S_PENDING].any() for member in shaped.engine.registry.members), "all queries have begun"


def goals(run: JoinOrderRun) -> list[tuple[object, ...]]:
    """Return the goals that the query keeps, by store, in terms."""
    (network,) = (member.network for member in run.engine.registry.members)
    (planned,) = (p for p in network.planned.values() if p.source.name == "q")
    first = c.SIDES * planned.at.node
    kept = network.arrays.read_goals(first, c.SIDES * planned.after.node)
    return [
        (store - first, *row[[c.START, c.END]].tolist(), *map(network.arrays.terms.text, filter(None, row[c.VAR :].tolist())))
        for store, at in kept.items()
        for row in at.timed
    ]


ORDERS = [
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", {}, "ABC", id="as written where nothing is known"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", {"A": 9, "B": 5, "C": 1}, "CBA", id="rare ones first"),
    pytest.param("?s :A ?x . ?x :B ?y . ?y :C ?z", {"A": 5, "B": 9, "C": 1}, "CBA", id="but only what shares a variable"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C 7", {"A": 2, "B": 5, "C": 10}, "CAB", id="a constant selects"),
    pytest.param("?s :A ?x . ?s :B 7", {"A": 2, "B": 21}, "AB", id="but not so much"),
    pytest.param("?s :A ?x . ?s :B 7", {"A": 2, "B": 19}, "BA", id="or just enough"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", {"A": 9, "C": 1}, "CBA", id="what is not known is as common as the others"),
]


@pytest.mark.parametrize(("group", "counts", "order"), ORDERS)
def test_the_order_of_a_group(group: str, counts: dict[str, int], order: str) -> None:
    pattern = parse(f"{PREFIXES} SELECT * WHERE {{ {group} }}").query.pattern
    assert isinstance(pattern, a.Bgp)
    found = join_order.order_triples(pattern.triples, rates(**counts))
    assert "".join(str(triple.predicate)[-2] for triple in found) == order


LONG = "SELECT * WHERE { {?s :A ?a} SEQ {?s :B ?b} SEQ {?s :C ?c} SEQ {?s :D ?d} }"
SIX = "SELECT * WHERE { {?s :A ?a} SEQ {?s :B ?b} SEQ {?s :C ?c} SEQ {?s :D ?d} SEQ {?s :E ?e} SEQ {?s :F ?f} }"
TURNS = [
    pytest.param(CHAIN, {"A": 50_000, "B": 10_000, "C": 1_000}, Linear.FROM_END, id="the first is the most common"),
    pytest.param(CHAIN, {"A": 1_000, "B": 10_000, "C": 50_000}, Linear.WRITTEN, id="the first is the rarest"),
    pytest.param(CHAIN, {"A": 30_000, "B": 100_000, "C": 20_000}, Linear.WRITTEN, id="the gain is small"),
    pytest.param(CHAIN, {"A": 50, "B": 10, "C": 1}, Linear.WRITTEN, id="there are few of all"),
    pytest.param(CHAIN, {}, Linear.WRITTEN, id="nothing is known"),
    pytest.param("SELECT * WHERE { {?s :A ?x} SEQ {?s :C ?z} }", {"A": 50_000, "C": 1}, None, id="two operands"),
    pytest.param(
        "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y . ?s :D ?d} SEQ {?s :C ?z} }", {"A": 50_000, "B": 9, "C": 1}, None, id="an operand with goals"
    ),
    pytest.param("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} MINUS {?s :D ?d} }", {"A": 50_000, "C": 1}, None, id="part of a query"),
    pytest.param(LONG, {"A": 10_000, "B": 10_000, "C": 10_000, "D": 10_000}, ((0, 1), (2, 3)), id="as many of each"),
    pytest.param(SIX, dict.fromkeys("ABCDEF", 10_000), ((0, (1, 2)), (3, (4, 5))), id="a longer one"),
    pytest.param(
        LONG.replace("?s :C", "?r :C").replace("?s :D", "?r :D"),
        {"A": 900, "B": 900, "C": 900, "D": 900},
        ((0, 1), (2, 3)),
        id="two that share nothing",
    ),
]


@pytest.mark.parametrize(("text", "counts", "shape"), TURNS)
def test_the_shape_that_rates_ask_for(text: str, counts: dict[str, int], shape: Shape | None) -> None:
    network = Network(TermTable())
    query = rewrite_query(parse(PREFIXES + text).query, "all")
    assert plan_query(query, network.planning.make_names(FactIndex(), PlanOptions(rates=rates(**counts)))).shape == shape


def test_no_tree_is_cheaper_than_the_one_that_is_found() -> None:
    def all_trees(first: int, last: int) -> list[Tree]:
        if first == last:
            return [first]
        return [(x, y) for k in range(first, last) for x in all_trees(first, k) for y in all_trees(k + 1, last)]

    counts = [7.0, 0.5, 30.0, 2.0, 0.1, 9.0]

    def sizes(segment: tuple[int, int]) -> float:
        return math.prod(counts[segment[0] : segment[1] + 1])

    assert work(least(6, sizes), sizes) == min(work(tree, sizes) for tree in all_trees(0, 5))


def test_only_the_occurrences_of_a_window_count() -> None:
    """A thousand times as many, seen over a thousand windows, ask for nothing else."""
    text = LONG[:-1] + "WITHIN 10 }"
    query = rewrite_query(parse(PREFIXES + text).query, "all")
    found = []
    for n, windows in ((10_000, 1), (10_000, 1_000), (10_000_000, 1_000)):
        given_rates = {**rates(A=n, B=n, C=n, D=n), join_order.OVER: windows * 10 * SECOND}
        found.append(plan_query(query, Network(TermTable()).planning.make_names(FactIndex(), PlanOptions(rates=given_rates))).shape)
    assert found == [((0, 1), (2, 3)), Linear.WRITTEN, ((0, 1), (2, 3))]


def test_a_long_chain_is_joined_from_an_end_and_a_very_long_one_as_written() -> None:
    for n, shape in ((join_order.LONGEST, Linear.FROM_END), (join_order.LONGEST + 1, Linear.WRITTEN)):
        text = "SELECT * WHERE { " + " SEQ ".join(f"{{?s :P{k} ?v{k}}}" for k in range(n)) + " }"
        query = rewrite_query(parse(PREFIXES + text).query, "all")
        falling = rates(**{f"P{k}": 10 * 2 ** (n - k) for k in range(n)})
        assert plan_query(query, Network(TermTable()).planning.make_names(FactIndex(), PlanOptions(rates=falling))).shape is shape


def test_what_is_registered_goes_by_the_occurrences_of_a_window() -> None:
    """The same number of occurrences spans one window, or a thousand.

    A snapshot remembers since when they have been counted.
    """
    for windows, shape in ((1, ((0, 1), (2, 3))), (1_000, Linear.WRITTEN)):
        run = JoinOrderRun()
        (one,) = parse_feed("A(w,1)@0")
        for part in range(2):
            numbers = range(1_000 * part, 1_000 * (part + 1))
            occurrences = [
                Occurrence((Iri(f"{EXAMPLE}s{k}"), Iri(EXAMPLE + name), one.triple[2]), end, end)
                for k in numbers
                for end in [windows * 10 * SECOND * k // 2_000]
                for name in "ABCD"
            ]
            run.put(Events(0, "default", len(occurrences), occurrences[-1].end), occurrences)
            run.engine = Engine.restore(run.engine.snapshot())
        run.register(LONG[:-1] + "WITHIN 10 }")
        assert run.shape == shape


@pytest.mark.parametrize("shape", [Linear.FROM_END, (0, (1, 2))])
def test_a_snapshot_keeps_the_shape(shape: Shape) -> None:
    run = JoinOrderRun()
    run.register(CHAIN, shape)
    run.engine = Engine.restore(run.engine.snapshot())
    assert run.shape == shape


def test_a_snapshot_of_a_version_with_two_shapes_is_taken() -> None:
    run, other = JoinOrderRun(), JoinOrderRun()
    for each in (run, other):
        each.register(CHAIN, Linear.FROM_END)
        each.send("A(s0,0)@1 B(s0,2)@2")
    meta, arrays = unpack(run.engine.snapshot())
    for query in meta["members"][0]["network"]["queries"]:
        query["turned"] = query.pop("shape") == "from its end"
    run.engine = Engine.restore(pack(meta, arrays))
    assert run.shape is Linear.FROM_END
    assert run.send("C(s0,1)@3") == other.send("C(s0,1)@3") != []
