"""Several engines, each with its share of the events, against one that sees all: the same solutions, in the same order."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.engine_state import Past
from engine.messages import Block, Drop, Entry, Facts, Promote, Register, StateChange
from engine.partitioning import NoKey, PartitionShare, keys_of, partition_of
from engine.partitioning.hash_partitioner import Part
from engine.runtime.query_registry import Registry
from epsparql.algebra import DEFAULT_STREAM
from epsparql.solutions.policies import CHRONOLOGICAL, RECENT, RECENT_LONGEST, UNRESTRICTED
from epsparql.trees import replace_fields
from pipeline.runners.merge import Merger
from tests.engine.semantics.test_equivalence import RANDOM, accepted
from tests.reference.evaluator import Fact, Occurrence, Settings
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import parse_facts, parse_feed
from tests.support.run_both import Emitted, _emitted, _facts, blocks, entries, in_order, past_of

Log = list[tuple[Entry, tuple[Occurrence, ...]]]


class Partition:
    """One partition's engine. `begins` has the positions from which it read a log again."""

    def __init__(self, share: PartitionShare, past: Past) -> None:
        self.begins, self._past = list[int](), past
        self.engine = Engine(Registry(share), self._read)

    def _read(self, first: int, after: int) -> Iterable[Block]:
        self.begins.append(first)
        return self._past(first, after)

    def restored(self) -> None:
        self.engine = Engine.restore(self.engine.snapshot(), share=self.engine.registry.share)
        self.engine.look_back_by(self._read)


def whole(log: Sequence[Block]) -> tuple[list[Emitted], list[StateChange]]:
    engine, found, changes = Engine(past=partial(past_of, log)), list[Emitted](), list[StateChange]()
    for block in log:
        outcome = engine.feed(block)
        found += _emitted(outcome.solutions)
        changes += outcome.changes
    return found, changes


def shared_out(log: Sequence[Block], partitions: int, restores: frozenset[int] = frozenset()) -> tuple[list[Emitted], list[StateChange], list[int]]:
    """Return the merged solutions and state changes of the partitions, and the positions from which they read the log
    again.
    """
    engines, merger = [Partition(PartitionShare(number, partitions), partial(past_of, log)) for number in range(partitions)], Merger()
    found, changes = list[Emitted](), list[StateChange]()
    for number, block in enumerate(log):
        if number in restores:
            for engine in engines:
                engine.restored()
        outcome = merger.merged(block.first, [each.engine.feed(block) for each in engines])
        found += _emitted(outcome.solutions)
        changes += outcome.changes
    assert all(each.engine.registry.sets.to_json() == engines[0].engine.registry.sets.to_json() for each in engines), (
        "all partitions come to the same sets"
    )
    return found, changes, [begin for each in engines for begin in each.begins]


def inserted(log: Log, extra: Sequence[tuple[int, Entry]]) -> Log:
    """The log with entries put in before the given positions."""
    parts = sorted([(k + 0.5, item) for k, item in enumerate(log)] + [(float(at), (entry, ())) for at, entry in extra], key=lambda part: part[0])
    return [(replace_fields(entry, offset=k), rows) for k, (_, (entry, rows)) in enumerate(parts)]


def keyed(text: str) -> str:
    """The query with one subject, and no variable for a predicate, in its triple patterns."""
    return re.sub(r"(?:\?[st]|:a|_:b\d*) (:[pqrkd]|\?p) (?=[?:_1])", lambda m: f"?s {':q' if m[1] == '?p' else m[1]} ", text)


def has_key(text: str, policy: str = UNRESTRICTED) -> bool:
    try:
        return bool(keys_of(epsparql.parse(text).query, policy))
    except NoKey:
        return False


def same(queries: Mapping[str, str], log: Log, cuts: frozenset[int], restores: frozenset[int], partitions: int) -> None:
    for name, text in queries.items():
        note(f"{name}: {text}")
    for entry, rows in log:
        note(f"{entry} {rows}")
    cut = blocks(log, cuts)
    found, changes, _ = shared_out(cut, partitions, restores)
    assert (found, changes) == whole(cut)


FEW = settings(RANDOM, max_examples=examples(60))


@FEW
@given(
    query=st.one_of(query_strategies.queries(), query_strategies.groupings(), query_strategies.run_queries()).map(keyed),
    fed=query_strategies.feeds(12) | query_strategies.run_feeds(),
    background=query_strategies.facts(),
    later=query_strategies.facts(),
    at=st.integers(2, 20),
    setting=st.tuples(
        st.sampled_from((2, 2, 3, 4)), st.sampled_from((UNRESTRICTED, UNRESTRICTED, RECENT, RECENT_LONGEST, "recent-by ?v", CHRONOLOGICAL))
    ),
    data=st.data(),
)
def test_a_keyed_query(
    query: str, fed: list[Occurrence], background: list[Fact], later: list[Fact], at: int, setting: tuple[int, str], data: st.DataObject
) -> None:
    queries, (partitions, policy) = {"q": query}, setting
    assume(accepted(queries) and has_key(query, policy))
    arrival = data.draw(query_strategies.arrivals({DEFAULT_STREAM: fed}))
    log = entries(queries, {DEFAULT_STREAM: fed}, arrival.bodies, background, query_strategies.MAX_DELAY, {"q": Settings(policy)})
    log = inserted(log, [(min(at, len(log) - 1), Facts(0, graph, text)) for graph, text in _facts(later)])
    same(queries, log, arrival.cuts, arrival.restores, partitions)


@FEW
@given(
    texts=st.lists(query_strategies.rules().map(keyed), min_size=1, max_size=2),
    query=query_strategies.queries() | query_strategies.queries().map(keyed),
    fed=st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.feeds(6), query_strategies.OTHER: query_strategies.feeds(3)}),
    background=query_strategies.facts(),
    at=st.integers(0, 12),
    dropped=st.integers(0, 20),
    data=st.data(),
)
def test_sets_of_queries(
    texts: list[str], query: str, fed: dict[str, list[Occurrence]], background: list[Fact], at: int, dropped: int, data: st.DataObject
) -> None:
    """Rules, and a query that comes while the stream runs; then one goes."""
    queries = {f"rule{number}": text for number, text in enumerate(texts)}
    assume(accepted(queries | {"q": query}))
    arrival = data.draw(query_strategies.arrivals(fed))
    log = entries(queries, fed, arrival.bodies, background, query_strategies.MAX_DELAY)
    first = next(k for k, (entry, _) in enumerate(log) if isinstance(entry, Register))
    extra: list[tuple[int, Entry]] = [(min(len(queries) + first + at, len(log)), Register(0, "q", query))]
    if dropped < len(log) and dropped > first + len(queries) + at:
        extra.append((dropped, Drop(0, first, "rule0")))
    same(queries | {"q": query}, inserted(log, extra), arrival.cuts, arrival.restores, 2)


# ---------------------------------------------------------------- by hand
PREFIX = "PREFIX : <http://example.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
RISING = PREFIX + "CONSTRUCT { ?s :up ?w } INTO STREAM <up> { { ?s :p ?v } SEQ { ?s :p ?w } }"
READ_BY_SUBJECT = PREFIX + "SELECT ?s ?w FROM STREAM <up> { ?s :up ?w }"
READ_BY_ALL = PREFIX + "SELECT ?s ?t FROM STREAM <up> { { ?s :up ?v } SEQ { ?t :up ?w } }"
FEED = "P(a,1)@1 P(b,1)@2 P(a,2)@3 P(b,2)@4 P(a,2)@5 P(c,7)@6 P(b,1)@7 P(c,2)@8 P(d,1)@9 P(d,2)@10".replace("P(", "p(")


def logged(queries: Mapping[str, str], extra: Sequence[tuple[int, Entry]] = ()) -> list[Block]:
    fed = {DEFAULT_STREAM: parse_feed(FEED)}
    return blocks(inserted(entries(queries, fed, in_order(fed), []), extra), ())


def test_sets_that_are_joined_move_to_one_partition() -> None:
    """A query that has no key comes to read what a rule with a key writes: the rule's state is made anew where that
    query lives.
    """
    log = logged({"rule": RISING, "by subject": READ_BY_SUBJECT}, [(7, Register(0, "by all", READ_BY_ALL))])
    found, changes, begins = shared_out(log, 2)
    assert len(begins) == 1
    assert (found, changes) == whole(log)
    assert {name for name, *_ in found} == {"rule", "by subject", "by all"}


def test_a_set_without_a_key_takes_in_what_joins_it() -> None:
    log = logged({"by all": READ_BY_ALL, "rule": RISING}, [(7, Register(0, "by subject", READ_BY_SUBJECT))])
    found, changes, begins = shared_out(log, 2)
    assert not begins
    assert (found, changes) == whole(log)


def test_solutions_of_several_partitions_that_tie_stand_in_the_order_of_their_terms() -> None:
    fed = {DEFAULT_STREAM: parse_feed(" ".join(f"p(s{k},{v})@{at}" for v, at in ((1, 1), (2, 3)) for k in range(9)) + " p(z,0)@5")}
    log = blocks(entries({"rule": RISING}, fed, in_order(fed), []), ())
    found, changes, _ = shared_out(log, 2)
    assert (found, changes) == whole(log)
    assert len(found) == 9


def test_what_comes_on_streams_that_nobody_reads_is_left_out() -> None:
    fed = {"a": parse_feed("p(a,1)@1 p(b,1)@3"), "b": parse_feed("p(c,1)@2 p(a,2)@4")}
    log = blocks(entries({"q": PREFIX + "SELECT * FROM STREAM <a> { ?s :p ?v }"}, fed, in_order(fed), []), ())
    found, changes, _ = shared_out(log, 2)
    assert (found, changes) == whole(log)
    assert len(found) == 2


def test_a_schema_that_turns_triples_round_ends_a_key() -> None:
    """An rdfs:range types the object of the event, which another partition may have."""
    typed = PREFIX + "SELECT ?s ?v { ?s a :Thing . ?s :p ?v }"
    schema = "<http://example.org/q> <http://www.w3.org/2000/01/rdf-schema#range> <http://example.org/Thing> .\n"
    fed = {DEFAULT_STREAM: parse_feed("p(a,1)@1 q(z,a)@2 p(b,1)@3 q(z,b)@4 p(c,1)@5 q(a,c)@6 q(b,d)@7 p(d,4)@8")}
    log = blocks(inserted(entries({"q": typed}, fed, in_order(fed), []), [(4, Facts(0, "", schema))]), ())
    found, changes, begins = shared_out(log, 2)
    assert len(begins) == 1
    assert (found, changes) == whole(log)
    assert len(found) >= 2


@pytest.mark.parametrize("partitions", [2, 3, 4])
def test_what_needs_no_events_comes_once(partitions: int) -> None:
    """Timeless solutions stand at the first instant of the stream, whichever partition has its occurrence."""
    query = PREFIX + "SELECT ?s ?v { ?s :k ?v OPTIONAL { ?s :p ?w FILTER(?w > 1) } }"
    fed = {DEFAULT_STREAM: parse_feed(FEED)}
    log = blocks(entries({"q": query}, fed, in_order(fed), parse_facts(" ".join(f"k({s},{v})" for s in "abcdefgh" for v in "12"))), ())
    found, changes, _ = shared_out(log, partitions)
    assert (found, changes) == whole(log)
    assert len(found) == 16
    assert {end for _, _, _, end, _ in found} == {1_000_000}


def test_each_partition_reads_its_own_events_alone() -> None:
    fed = {DEFAULT_STREAM: parse_feed(" ".join(f"p(s{k},o{k})@{k}" for k in range(1, 41)))}
    log = blocks(entries({"q": PREFIX + "SELECT * { { ?s :p ?v } SEQ { ?s :p ?w } }"}, fed, in_order(fed), []), ())
    engines = [Engine(Registry(PartitionShare(number, 2))) for number in range(2)]
    for engine in engines:
        engine.feed(log[0])
    objects = [{k for k in range(1, 41) if _knows(engine, f"<http://example.org/o{k}>")} for engine in engines]
    assert objects[0] | objects[1] == set(range(1, 41))
    assert not objects[0] & objects[1]


def _knows(engine: Engine, text: str) -> bool:
    before = len(engine.registry.terms)
    engine.registry.terms.intern(text)
    return len(engine.registry.terms) == before


TIES = [
    pytest.param(["SELECT ?w ?s ?v"], id="not in order of names"),
    pytest.param(["SELECT ?s ?v ?w"], id="in order of names"),
    pytest.param(["SELECT ?w ?z ?s"], id="one that is never bound"),
    pytest.param(["SELECT ?w ?s", "SELECT ?v ?w ?s", "CONSTRUCT { ?w :r ?v . ?s :r ?w }"], id="several"),
]


@pytest.mark.parametrize("forms", TIES)
@pytest.mark.parametrize("together", [1, 3])
def test_solutions_of_one_instant_stand_in_order_of_their_variables_names(forms: list[str], together: int) -> None:
    """Solutions of several partitions at one instant are sorted by texts that they may not show in this order."""
    feed = [f"p({s},{v})@{at}" for at in (1, 3) for k, s in enumerate("gcaebfd") for v in (k % 3, 7 - k)]
    fed = {DEFAULT_STREAM: parse_feed(" ".join(feed))}
    queries = {f"q{k}": f"{PREFIX}{form} {{ {{ ?s :p ?v }} SEQ {{ ?s :p ?w }} }}" for k, form in enumerate(forms)}
    log = blocks(entries(queries, fed, in_order(fed), []), range(1, 30, together))
    found, _, _ = shared_out(log, 3)
    assert len(found) > 20
    assert found == whole(log)[0]


@pytest.mark.parametrize(
    ("before", "after"), [("?s", "?w ?s ?v"), ("?w ?s ?v", "?s"), ("?s ?v ?w", "?w ?s ?v"), ("?w ?s ?v", "?s ?v ?w"), ("?v ?s", "?s ?v")]
)
@pytest.mark.parametrize("together", [1, 30])
def test_a_promotion_to_other_columns_may_stand_among_the_events_of_a_block(before: str, after: str, together: int) -> None:
    """Both texts have one registration. Solutions of each are sorted by the names of its own variables."""
    feed = [f"p({s},{v})@{at}" for at in (1, 3, 5, 7) for k, s in enumerate("gcaebfd") for v in (k % 3, 7 - k)]
    fed = {DEFAULT_STREAM: parse_feed(" ".join(feed))}
    old, new = (f"{PREFIX}SELECT {shown} {{ {{ ?s :p ?v }} SEQ {{ ?s :p ?w }} }}" for shown in (before, after))
    log = entries({"q": old}, fed, in_order(fed), [])
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register))
    promoted = blocks(inserted(log, [(len(log) // 2 + 1, Promote(0, registered, "q", new))]), range(1, 60, together))
    found, changes, _ = shared_out(promoted, 3)
    assert (found, changes) == whole(promoted)
    assert [change.state for change in changes] == ["promoted"]
    assert len({len(solution[-1]) for solution in found}) == len({before.count("?"), after.count("?")}), "there are solutions of both texts"


def test_a_query_that_fails_in_one_partition_fails_in_all() -> None:
    """It has as many goals as it may in the partition that has most; what the others find afterwards is nobody's any
    more.
    """
    text = PREFIX + "SELECT * { { ?s :p ?v } SEQ { ?s :p ?w } }"
    fed = {DEFAULT_STREAM: parse_feed(" ".join(f"p(s{k % 7},{k})@{k}" for k in range(1, 60)))}
    log = entries({"q": text}, fed, in_order(fed), [])
    limited = [(replace_fields(entry, max_goals=20) if isinstance(entry, Register) else entry, rows) for entry, rows in log]
    found, changes, _ = shared_out(blocks(limited, range(1, len(limited), 7)), 2)
    assert [change.state for change in changes] == ["failed"]
    assert found
    assert max(entry for _, entry, *_ in found) <= changes[0].entry


def test_hashes_stay() -> None:
    """State lies where they say."""
    texts = ["<http://example.org/a>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "_:b0", "<http://example.org/ü>"]
    assert [partition_of(text, 1000) for text in texts] == [212, 808, 217, 752]
    spread = [sum(partition_of(f"<http://example.org/id/{k}>", 4) == partition for k in range(1000)) for partition in range(4)]
    assert min(spread) > 200


@given(st.lists(st.text(max_size=40)), st.data())
def test_a_share_has_the_rows_whose_hash_is_its_own(texts: list[str], data: st.DataObject) -> None:
    """The column may be a part of another, and have texts twice, texts that no row has, and rows without one."""
    partitions, skipped = data.draw(st.integers(1, 64)), data.draw(st.integers(0, len(texts)))
    places = st.integers(0, len(texts) - skipped - 1) if skipped < len(texts) else st.nothing()
    rows = data.draw(st.lists(st.none() | places if skipped < len(texts) else st.none()))
    whole = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array(texts, pa.utf8())[skipped:])
    column = whole.slice(data.draw(st.integers(0, len(rows))))
    for partition in {0, partitions - 1}:
        found = PartitionShare(partition, partitions).select_rows(column)
        assert found.tolist() == [text is not None and partition_of(text, partitions) == partition for text in column.to_pylist()]


@pytest.mark.parametrize(("pattern", "parts"), [
    ("{ ?s :p ?v } AND { ?s :q ?w } WITHOUT { ?s :r ?x }", {Part.SUBJECT}),
    ("{ ?s :p ?v } SEQ { ?s :q ?v } WITHOUT { ?s :r ?v }", {Part.SUBJECT, Part.OBJECT}),
    ("GRAPH ?g { ?s :p ?v . ?t :q ?w }", {Part.GRAPH}),
    ("GRAPH ?g { ?s :p ?v . ?s :q ?w }", {Part.SUBJECT, Part.GRAPH}),
    ("GRAPH ?g { ?s :p ?v } ?s :q ?w", {Part.SUBJECT}),
    ("{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s }", {Part.SUBJECT}),
])  # fmt: skip
def test_a_key_stands_at_one_part_of_all_patterns(pattern: str, parts: set[Part]) -> None:
    assert {key.part for key in keys_of(epsparql.parse(f"{PREFIX}SELECT * {{ {pattern} }}").query)} == parts


@pytest.mark.parametrize("operator", ["SEQ", "AND"])
@pytest.mark.parametrize(("policy", "part"), [("unrestricted", Part.SUBJECT), ("recent", None), ("chronological", None)])
def test_a_policy_chooses_among_goals_of_one_key(policy: str, part: Part | None, operator: str) -> None:
    query = epsparql.parse(f"{PREFIX}SELECT * {{ {{ VALUES ?v {{ 1 2 }} }} {operator} {{ ?s :p ?w }} }}").query
    if part is not None:
        assert keys_of(query, policy)[0].part is part
        return
    with pytest.raises(NoKey, match="a policy chooses among"):
        keys_of(query, policy)
