"""Rows for the placing of queries: which sets there are, how each is dealt out, and what moves when a query, a
background or a stream changes.
"""

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.messages import NO_END, NO_ROWS, Block, Drop, Events, Facts, MessageKey, Register, Tick
from engine.native.entries import join_crcs
from engine.partitioning import NoKey, Part, PartitionShare, Route, Sets, events_of, keys_of, partition_of
from engine.partitioning.hash_partitioner import find_partitions
from engine.partitioning.one_key import NOTHING_ALIKE, OneKey, find_one_key
from engine.partitioning.placement import Settled
from engine.partitioning.plain_rows import PlainRows, find_latest_ends
from engine.runtime.partition_filter import cut_at_controls, route_rows
from engine.triples.quads import quads_of
from epsparql import algebra as a
from epsparql import parse
from epsparql.terms import Iri, Variable
from tests.support.feeds import SECOND, parse_feed
from tests.support.run_both import block

PREFIXES = "PREFIX : <http://e/> "
KEYED = "SELECT * { ?s :a ?x . ?s :b ?y }"
KEYLESS = "SELECT * { ?s :a ?x . ?t :b ?y }"
BY_OBJECT = "SELECT * { ?s :a ?x . ?t :b ?x }"
RULE = "CONSTRUCT { ?s :c ?x } INTO STREAM <r> { ?s :a ?x . ?s :b ?y }"
TURNED = "CONSTRUCT { ?x :c ?s } INTO STREAM <r> { ?s :a ?x }"
READER = "SELECT * FROM STREAM <r> { ?s :c ?x }"
BOTH = "SELECT * FROM STREAM <r> { ?s :c ?x . ?x :c ?s }"
PARTITIONS = 4
NOTHING = FactIndex()


def home(registered: int) -> Route:
    return Route(None, partition_of(str(registered), PARTITIONS))


BY_SUBJECT, BY_ITS_OBJECT = Route(Part.SUBJECT), Route(Part.OBJECT)


class Placed:
    """The sets of a log, whose queries are registered at offsets from 1 on."""

    def __init__(self, *texts: str) -> None:
        self.sets, self.moves = Sets(PARTITIONS), list[tuple[int, Route, Route]]()
        for offset, text in enumerate(texts, 1):
            self.register(Register(offset, f"q{offset}", PREFIXES + text))

    def register(self, entry: Register, declared: MessageKey | None = None) -> None:
        query = parse(entry.text).query
        assert not isinstance(query, a.BackgroundRule)
        moved = self.sets.add(entry, query, NOTHING, {} if declared is None else {"default": declared})
        self.moves += [(each.earliest, each.before, each.route) for each in moved]

    def routes(self, *registered: int) -> list[Route | None]:
        return [self.sets.route(each) for each in registered]


PLACES = [
    pytest.param([KEYED], [BY_SUBJECT], [], id="a key"),
    pytest.param([BY_OBJECT], [BY_ITS_OBJECT], [], id="a key at the object"),
    pytest.param([KEYLESS], [home(1)], [], id="none"),
    pytest.param([KEYED, KEYLESS], [BY_SUBJECT, home(2)], [], id="queries that share no events"),
    pytest.param([RULE, READER], [BY_SUBJECT, BY_SUBJECT], [], id="a rule and its reader"),
    pytest.param([READER, RULE], [BY_SUBJECT, BY_SUBJECT], [], id="a reader and its rule"),
    pytest.param([READER, TURNED], [home(2), home(2)], [(1, BY_SUBJECT, home(2))], id="a rule that turns its triples"),
    pytest.param([TURNED, READER], [home(2), home(2)], [(1, BY_SUBJECT, home(2))], id="and its reader later"),
    pytest.param([RULE, BOTH], [home(2), home(2)], [(1, BY_SUBJECT, home(2))], id="a reader without a key"),
    pytest.param([BOTH, RULE], [home(1), home(1)], [], id="what joins a set at home goes there"),
    pytest.param([KEYED, RULE, READER, BOTH], [BY_SUBJECT, home(4), home(4), home(4)], [(2, BY_SUBJECT, home(4))], id="others stay"),
]


@pytest.mark.parametrize(("texts", "routes", "moves"), PLACES)
def test_where_queries_live(texts: Sequence[str], routes: Sequence[Route], moves: Sequence[tuple[int, Route, Route]]) -> None:
    placed = Placed(*texts)
    assert placed.routes(*range(1, len(texts) + 1)) == routes
    assert placed.moves == moves
    restored = Sets.restored(PARTITIONS, placed.sets.to_json())
    assert [restored.route(k + 1) for k in range(len(texts))] == routes
    assert restored.to_json() == placed.sets.to_json()
    assert placed.sets.route(99) is None


def test_a_query_of_the_past_has_no_key_and_joins_what_it_waits_for() -> None:
    placed = Placed(KEYED)
    placed.register(Register(2, "late", PREFIXES + KEYED, reads_from=0))
    placed.register(Register(3, "behind", PREFIXES + KEYED, waits_for=2))
    assert placed.routes(1, 2, 3) == [BY_SUBJECT, home(2), home(2)]
    assert [sorted(each.members) for each in placed.sets.list_sets()] == [[1], [2, 3]]


def test_a_set_ends_with_its_last_query() -> None:
    placed = Placed(RULE, READER)
    placed.sets.drop(1, 3)
    (only,) = placed.sets.list_sets()
    assert only.gone == only.rules == {1}
    assert (only.streams, sorted(only.members)) == (frozenset({"default", "r"}), [1, 2])
    assert placed.routes(1, 2) == [BY_SUBJECT, BY_SUBJECT]
    assert Sets.restored(PARTITIONS, placed.sets.to_json()).list_sets()[0].gone == {1}
    placed.sets.drop(2, 4)
    assert placed.sets.list_sets() == []
    assert placed.routes(1, 2) == [None, None]
    placed.sets.drop(2, 5)


def test_with_a_query_goes_what_was_to_take_its_place() -> None:
    placed = Placed(KEYED)
    placed.register(Register(2, "again", PREFIXES + KEYED, reads_from=0, waits_for=1))
    placed.sets.drop(1, 3)
    assert placed.sets.list_sets() == []


def test_what_the_log_says_twice_is_done_once() -> None:
    placed = Placed(KEYED)
    placed.register(Register(1, "q1", PREFIXES + KEYLESS))
    assert placed.routes(1) == [BY_SUBJECT]
    settled = placed.sets.settled(9)
    query = parse(PREFIXES + KEYLESS).query
    assert not isinstance(query, a.BackgroundRule)
    assert settled.add(Register(8, "q8", PREFIXES + KEYLESS), query, NOTHING) == []
    assert settled.route(8) is None
    settled.drop(1, 8)
    assert (settled.learn(8, NOTHING, {}), settled.keep_home(8, 1), settled.forget_message_key(8, "default")) == ([], [], [])
    assert settled.route(1) == BY_SUBJECT
    assert settled.add(Register(9, "q9", PREFIXES + KEYLESS), query, NOTHING) == []
    assert settled.route(9) == home(9)


def test_a_query_that_stays_behind_has_a_home() -> None:
    placed = Placed(KEYED, KEYED)
    (moved,) = placed.sets.keep_home(7, 2)
    assert (moved.earliest, moved.before, moved.route) == (2, BY_SUBJECT, home(2))
    assert placed.routes(1, 2) == [BY_SUBJECT, home(2)]
    assert placed.sets.keep_home(8, 2) == []
    assert placed.sets.keep_home(8, 99) == []


def test_a_schema_may_take_a_key_away() -> None:
    inverse = "<http://e/c> <http://www.w3.org/2002/07/owl#inverseOf> <http://e/a> .\n"
    known = FactIndex.from_quads(quads_of(inverse), NOTHING.terms, "owl-rl")
    placed = Placed(KEYED, "SELECT * { ?s :b ?x }")
    assert placed.sets.learn(7, NOTHING, {}) == []
    (moved,) = placed.sets.learn(8, known, {})
    assert (moved.earliest, moved.route) == (1, home(1))
    assert placed.routes(1, 2) == [home(1), BY_SUBJECT]
    assert placed.sets.learn(9, NOTHING, {}) == [], "what has a home keeps it"


def test_a_message_key_may_be_forgotten() -> None:
    message = MessageKey("http://e/key", ("http://e/part",))
    placed = Placed()
    placed.register(Register(1, "q1", PREFIXES + "SELECT * { ?m :key ?k . ?m :part ?n }"), message)
    assert placed.routes(1) == [Route(Part.MESSAGE)]
    assert placed.sets.forget_message_key(2, "another") == []
    assert placed.routes(1) == [Route(Part.MESSAGE)]
    (moved,) = placed.sets.forget_message_key(2, "default")
    assert moved.route == home(1)


def test_sets_are_dealt_out_anew() -> None:
    placed = Placed(KEYED, KEYLESS)
    placed.sets.drop(2, 3)
    found = placed.sets.dealt_anew(2, 9, [Route(None, 1)])
    assert (found.until, found.route(1), found.route(2)) == (9, Route(None, 1), None)
    found.drop(1, 9)
    assert (found.route(1), placed.sets.route(1)) == (None, BY_SUBJECT)


# ---------------------------------------------------------------- shares
@pytest.mark.parametrize(("one", "other", "overlaps", "contains"), [
    ((0, 1), (3, 7), True, True), ((3, 7), (0, 1), True, False), ((0, 2), (0, 4), True, True), ((0, 2), (1, 4), True, True),
    ((0, 2), (2, 4), False, False), ((1, 2), (1, 4), False, False), ((0, 2), (1, 3), True, False), ((1, 3), (0, 2), True, False),
    ((0, 3), (1, 2), False, False), ((1, 4), (1, 4), True, True), ((1, 2), (2, 3), True, True),
])  # fmt: skip
def test_shares_of_hashes(one: tuple[int, int], other: tuple[int, int], overlaps: bool, contains: bool) -> None:
    assert PartitionShare(*one).overlaps(PartitionShare(*other)) is overlaps
    assert PartitionShare(*one).contains(PartitionShare(*other)) is contains
    assert PartitionShare(*one).whole is (one[1] == 1)


def test_the_part_of_a_triple_of_the_background() -> None:
    quad = Iri("s"), Iri("p"), Iri("o"), Iri("g")
    assert {part: part.read_part(quad) for part in Part} == {Part.MESSAGE: "<s>", Part.SUBJECT: "<s>", Part.OBJECT: "<o>", Part.GRAPH: "<g>"}
    assert Part.GRAPH.read_part((*quad[:3], None)) == ""
    assert [part.column for part in (Part.SUBJECT, Part.OBJECT, Part.GRAPH)] == ["s", "o", "g"]


def test_partitions_of_a_column() -> None:
    texts = ["<http://e/1>", "<http://e/2>", "<http://e/3>"]
    column = pa.array([*texts, None, *texts]).dictionary_encode()
    expected = [partition_of(text, 5) for text in texts]
    assert find_partitions(column, 5).tolist() == [*expected, -1, *expected]
    assert find_partitions(column.slice(1), 5).tolist() == [*expected[1:], -1, *expected]
    sliced = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(texts).slice(1))
    assert find_partitions(sliced, 5).tolist() == expected[1:]
    nothing = pa.array([None, None], pa.utf8()).dictionary_encode()
    assert find_partitions(nothing, 5).tolist() == [-1, -1]


def test_checksums_of_parts_are_joined() -> None:
    for first, second in ((b"", b""), (b"abc", b""), (b"", b"x"), (b"abc", b"defghijkl" * 40)):
        assert join_crcs(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


# ---------------------------------------------------------------- what has one message key
K, M, N, O_, P = (Variable(name) for name in "kmnop")
MESSAGE = MessageKey("http://e/key", ("http://e/part",))
ALIKE = [
    ("?m :key ?k . ?m :part ?n . ?o :other ?p", {frozenset({K, M, N})}, {K}),
    ("?m :part ?n . ?o :part ?p", {frozenset({M, N}), frozenset({O_, P})}, set()),
    ("{ ?m :part ?n } SEQ { ?n :key ?k }", {frozenset({K, M, N})}, {K}),
    ("{ ?m :part ?n } SEQ { ?m :part ?o } WITHOUT { ?m :part ?p }", {frozenset({M, N, O_})}, set()),
    ("{ ?m :part ?n } OPTIONAL { ?m :part ?o }", {frozenset({M, N})}, set()),
    ("{ ?m :part ?n } OPTIONALSEQ { ?m :part ?o }", {frozenset({M, O_})}, set()),
    ("{ ?m :part ?n } UNION { ?m :part ?n }", set(), set()),
    ("?m :part ?n MINUS { ?m :part ?o }", {frozenset({M, N})}, set()),
    ("{ { ?m :part ?n } WITHIN 5 } FILTER(?m != ?n)", {frozenset({M, N})}, set()),
    ("GRAPH ?g { ?m :part ?n } BIND(1 AS ?x)", {frozenset({M, N})}, set()),
    ("{ SELECT ?m ?o { ?m :part ?n . ?n :part ?o } }", {frozenset({M, O_})}, set()),
    ("{ SELECT ?m { ?m :key ?k } }", set(), set()),
    ("{ SELECT ?m ?n (COUNT(*) AS ?x) { ?m :part ?n . ?n :part ?o } GROUP BY ?m ?n }", {frozenset({M, N})}, set()),
    ("?m :part :c . :c :key ?k", {frozenset({M, Iri("http://e/c"), K})}, {K}),
]


@pytest.mark.parametrize(("pattern", "sets", "keys"), ALIKE)
def test_nodes_of_one_key(pattern: str, sets: set[frozenset[Variable]], keys: set[Variable]) -> None:
    query = parse(f"{PREFIXES} SELECT * {{ {pattern} }}").query
    assert isinstance(query, a.Select)
    assert find_one_key(query.pattern, MESSAGE) == OneKey(frozenset(sets), frozenset(keys))


def test_what_is_alike() -> None:
    one, other = OneKey(frozenset({frozenset({M, N}), frozenset({O_, P})}), frozenset({N})), OneKey(frozenset({frozenset({N, O_})}), frozenset({K}))
    assert one.joined(other) == OneKey(frozenset({frozenset({M, N, O_, P})}), frozenset({K, N}))
    assert one.alike(M) == {M, N}
    assert one.alike(K) == {K}
    assert one.covers(NOTHING_ALIKE)
    assert one.covers(OneKey(frozenset({frozenset({M, N})}), frozenset({N})))
    assert not one.covers(other)
    assert not one.covers(OneKey(frozenset(), frozenset({K})))
    assert not one.covers(OneKey(frozenset({frozenset({M, N}), frozenset({N, O_})})))
    assert one.among({M, N, O_}) == OneKey(frozenset({frozenset({M, N})}), frozenset({N}))


def test_the_best_key_comes_first() -> None:
    query = parse(PREFIXES + "SELECT * { ?s :key ?k . ?s :key ?k FILTER(?k > 1) }").query
    assert [(key.part, key.variable.name) for key in keys_of(query)] == [(Part.SUBJECT, "s"), (Part.OBJECT, "k")]
    found = keys_of(query, declared={"default": MESSAGE})
    assert [(key.part, key.variable.name) for key in found] == [(Part.MESSAGE, "k"), (Part.SUBJECT, "s"), (Part.OBJECT, "k")]


MESSAGES = "SELECT * { ?n :key ?k ; :part ?p . ?p :b ?x }"
BELOW = "<http://e/c> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <http://e/{}> ."
TYPED, TYPES = "SELECT * { ?s a :T . ?s :b ?y }", "<http://e/c> <http://www.w3.org/2000/01/rdf-schema#range> <http://e/T> ."
SCHEMAS = [
    pytest.param(KEYED, BELOW.format("a"), Part.SUBJECT, id="a property below keeps the subject"),
    pytest.param(BY_OBJECT, BELOW.format("a"), Part.OBJECT, id="and the object"),
    pytest.param(TYPED, TYPES, "have it elsewhere", id="a range types objects"),
    pytest.param(MESSAGES, "", Part.MESSAGE, id="a part of a message"),
    pytest.param(MESSAGES, BELOW.format("part"), "belongs to a message", id="a part that is entailed"),
]


@pytest.mark.parametrize(("text", "schema", "expected"), SCHEMAS)
def test_a_schema_ends_the_keys_that_it_moves(text: str, schema: str, expected: Part | str) -> None:
    query, known = parse(PREFIXES + text).query, FactIndex.from_quads(quads_of(schema), TermTable())
    declared = {"default": MESSAGE} if text is MESSAGES else {}
    if isinstance(expected, Part):
        assert expected in [key.part for key in keys_of(query, known=known, declared=declared)]
    else:
        with pytest.raises(NoKey, match=expected):
            keys_of(query, known=known, declared=declared)


def test_what_a_rule_writes_comes_with_no_message() -> None:
    query = parse(PREFIXES + "CONSTRUCT { ?n :c ?k } INTO STREAM <r> { ?n :key ?k ; :b ?x }").query
    assert isinstance(query, a.Construct)
    rule = Settled(Register(1, "rule", ""), query, {Part.MESSAGE: K, Part.SUBJECT: N, Part.OBJECT: K, Part.GRAPH: M})
    assert rule.parts({"default"}) == {*rule.keys}
    assert rule.parts({"r"}) == {Part.SUBJECT, Part.OBJECT, Part.GRAPH}


# ---------------------------------------------------------------- blocks
def test_a_block_is_cut_behind_what_changes_who_is_dealt_to() -> None:
    entries = Events(0, "a", 2, 5), Tick(1, "a", 6), Facts(2, "", ""), Events(3, "a", 0, 7), Drop(4, 1, "q"), Tick(5, "a", 8)
    rows = pa.RecordBatch.from_arrays([pa.array([7, 8])], names=["n"])
    parts = cut_at_controls(Block(entries, rows))
    assert [tuple(entry.offset for entry in part.entries) for part in parts] == [(0, 1, 2), (3, 4), (5,)]
    assert [part.rows.column(0).to_pylist() for part in parts] == [[7, 8], [], []]
    plain = Block(entries[:2], NO_ROWS)
    assert cut_at_controls(plain) == [plain]
    assert [event.offset for event in events_of(Block(entries, NO_ROWS))] == [0, 3]


@pytest.mark.parametrize(
    ("passed", "marked", "others"), [(9, False, set[int]()), (2, False, {3, 4}), (9, True, {1, 2, 3, 4}), (None, False, {1, 2, 3, 4})]
)
def test_instants_of_other_partitions_are_marked_once_where_they_wait(passed: int | None, marked: bool, others: set[int]) -> None:
    occurrences = parse_feed(" ".join(f"A(s{k},{k})@{1 + k // 8}" for k in range(32)))
    share, events = PartitionShare(1, 3), Events(0, "default", len(occurrences), None if passed is None else passed * SECOND)
    found, latest = route_rows(block([(events, tuple(occurrences))]), {"default": {Part.SUBJECT}}, share, TermTable(), {}, marked=marked)
    own = [occurrence.end // SECOND for occurrence in occurrences if share.has(str(occurrence.triple[0]))]
    assert set(own) == {1, 2, 3, 4}
    assert sorted((found["default", Part.SUBJECT].end // SECOND).tolist()) == sorted([*own, *others])
    assert latest == {0: 4 * SECOND}


class WholeFrame(PlainRows):
    """Rows of a frame that tells the latest ends of all its entries, of which the block has some."""

    def find_latest_ends(self, events: Sequence[Events]) -> dict[int, int]:
        return {**super().find_latest_ends(events), 99: 9 * SECOND}


def test_entries_that_a_block_does_not_have_mark_nothing() -> None:
    occurrences, events = parse_feed(" ".join(f"A(s{k},{k})@1" for k in range(8))), Events(0, "default", 8, SECOND)
    whole = Block((events,), WholeFrame(block([(events, tuple(occurrences))]).rows))
    share = PartitionShare(1, 3)
    found, latest = route_rows(whole, {"default": {Part.SUBJECT}}, share, TermTable(), {}, marked=False)
    assert len(found["default", Part.SUBJECT]) == sum(share.has(str(occurrence.triple[0])) for occurrence in occurrences)
    assert latest == {0: SECOND, 99: 9 * SECOND}


def test_latest_ends_of_entries() -> None:
    events = [Events(0, "a", 2, 5), Events(1, "a", 0, 5), Events(2, "a", 1, 5), Events(3, "a", 2, 5)]
    assert find_latest_ends(np.array([4, 9, NO_END, 3, 2]), events) == {0: 9, 3: 3}
    assert find_latest_ends(np.array([], np.int64), events[1:2]) == {}


def test_late_rows_have_no_end() -> None:
    rows = block([(Events(0, "default", 3, 5), tuple(parse_feed("A@1 A@2 A@3")))]).rows
    late = rows.set_column(rows.schema.get_field_index("late"), rows.schema.field("late"), pa.array([False, True, False]))
    assert PlainRows(rows).read_ends().tolist() == [SECOND, 2 * SECOND, 3 * SECOND]
    assert PlainRows(late).read_ends().tolist() == [SECOND, NO_END, 3 * SECOND]
