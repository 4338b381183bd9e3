"""Another number of partitions while events come: what is found is what one engine finds, and no more is read again
than queries look back.
"""

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from engine.engine import Engine
from engine.errors import OnePartitionOnly
from engine.messages import REVISED, Block, CatchUp, Drop, Entry, Facts, Outcome, Pause, Register, Resume, StateChange
from engine.partitioning import PartitionShare
from engine.query_lifecycle.moves import Renumbering, change_share, list_names, renumber, survey
from engine.runtime import time_course
from engine.runtime.query_registry import Registry
from epsparql.algebra import DEFAULT_STREAM
from pipeline.runners.merge import Merger
from tests.engine.partitioning.test_moves import ALL, COUNT, QUERIES, readings
from tests.engine.runtime.test_partitioning import FEW, Log, has_key, inserted, keyed, whole
from tests.engine.semantics.test_equivalence import accepted
from tests.pipeline.slices.test_reach import feeds, programs
from tests.soak import is_full
from tests.support.feeds import PREFIXES
from tests.support.query_strategies import MAX_DELAY, OTHER, arrivals
from tests.support.run_both import Emitted, _emitted, blocks, entries, past_of

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _every_entry_is_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_course, "_STEP", -1000)


class Partitions:
    """Holds the engines of some partitions, one after the other in different numbers.

    `begins` has the positions from which they read a log again.
    """

    def __init__(self, log: Sequence[Block], number: int) -> None:
        self.begins, self._log, self._merger = list[int](), log, Merger()
        self.engines = [self._made(PartitionShare(partition, number)) for partition in range(number)]

    def _made(self, share: PartitionShare, state: bytes | None = None) -> Engine:
        engine = Engine(Registry(share)) if state is None else Engine.restore(state, share=share)
        engine.look_back_by(self._read)
        return engine

    def _read(self, first: int, after: int) -> Iterable[Block]:
        self.begins.append(first)
        return past_of(self._log, first, after)

    def restore(self) -> None:
        self.engines = [self._made(engine.registry.share, engine.snapshot()) for engine in self.engines]

    def plan(self, number: int, begin: int = 0) -> Renumbering:
        return renumber([survey(engine, number, begin) for engine in self.engines], number, begin)

    def unread(self, number: int, begin: int) -> list[str]:
        return list_names(self.plan(number, begin).list_unread(begin))

    def change(self, number: int, begin: int = 0) -> None:
        renumbering, states = self.plan(number, begin), [engine.snapshot() for engine in self.engines]
        assert not renumbering.list_unread(begin)
        earlier, self.engines = len(self.engines), []
        for partition, source in enumerate(renumbering.sources):
            engine = self._made(PartitionShare(source, earlier), states[source])
            assert not change_share(engine, renumbering, PartitionShare(partition, number))
            self.engines.append(engine)

    def feed(self, block: Block) -> Outcome:
        outcomes = [engine.feed(block) for engine in self.engines]
        return outcomes[0] if len(outcomes) == 1 else self._merger.merged(block.first, outcomes)


def renumbered(
    log: Sequence[Block], first: int, changes: Mapping[int, int], restores: Iterable[int] = ()
) -> tuple[list[Emitted], list[StateChange], list[int]]:
    """Return solutions and changes of state where the number of partitions changes before some blocks, and the
    positions from which the log was read again.
    """
    partitions, found, told = Partitions(log, first), list[Emitted](), list[StateChange]()
    for k, block in enumerate(log):
        if k in changes and changes[k] != len(partitions.engines):
            partitions.change(changes[k])
        if k in restores:
            partitions.restore()
        outcome = partitions.feed(block)
        found += _emitted(outcome.solutions)
        told += outcome.changes
    return found, told, partitions.begins


TRIPLES = [f"<http://example.org/{s}> <http://example.org/{p}> <http://example.org/a> .\n" for s in "ab" for p in "pqk"]


@FEW
@given(queries=programs(), data=st.data())
def test_random_queries(queries: Mapping[str, str], data: st.DataObject) -> None:
    """The number changes up to three times, among pauses and changes of the background."""
    if data.draw(st.sampled_from((True, True, True, False)), "keyed"):
        queries = {name: keyed(text) for name, text in queries.items()}
        assume(all(map(has_key, queries.values())))
    assume(accepted(queries))
    streams = {DEFAULT_STREAM: data.draw(feeds(), "default"), OTHER: [] if "r" in queries else data.draw(feeds(), "other")}
    arrival = data.draw(arrivals(streams), "arrivals")
    log = entries(queries, streams, arrival.bodies, [], MAX_DELAY)
    for kind in data.draw(st.lists(st.sampled_from(("pause", "resume", "facts", "drop")), max_size=3), "changes"):
        at = data.draw(st.integers(len(queries) + 1, len(log) - 1), "at")
        reader = next(entry for entry, _ in log if isinstance(entry, Register) and entry.name == "q")
        named = reader.offset, reader.name
        extra: dict[str, list[Entry]] = {
            "pause": [Pause(0, *named)],
            "resume": [Resume(0, *named), CatchUp(0, reader.offset, ALL)],
            "facts": [Facts(0, "", data.draw(st.sampled_from(TRIPLES), "fact"))],
            "drop": [Drop(0, *named)],
        }
        log = inserted(log, [(at, entry) for entry in extra[kind]])
    for entry, rows in log:
        note(f"{entry} {rows}")
    cut = blocks(log, arrival.cuts | set(range(0, len(log), 3)))
    first = data.draw(st.integers(1, 3), "first")
    changes = data.draw(st.dictionaries(st.integers(1, len(cut) - 1), st.integers(1, 4), min_size=1, max_size=3), "numbers")
    found, told, begins = renumbered(cut, first, changes, arrival.restores)
    event(f"read again: {bool(begins)}, from the beginning: {0 in begins}, solutions: {bool(found)}")
    assert (found, told) == whole(cut)


# ---------------------------------------------------------------- by hand
AT, BLOCK = 350, 6
EVER = PREFIXES + "SELECT ?s ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :B ?b FILTER(?b = ?a) } }"
ALL_PAIRS = PREFIXES + "SELECT ?s ?t ?a WHERE { { ?s :A ?a } SEQ { ?t :B ?b } WITHIN 10 FILTER(?a = ?b) }"
ALL_EVER = PREFIXES + "SELECT ?s ?t ?a WHERE { { ?s :A ?a FILTER(?a = 7) } SEQ { ?t :B ?b FILTER(?b = 7) } }"


def begins_of(log: Log, first: int, changes: Mapping[int, int]) -> list[int]:
    """The positions from which engines read the log again, six entries in a block; they find what one engine finds."""
    cut = blocks(log, range(0, len(log), BLOCK))
    found, told, begins = renumbered(cut, first, {at // BLOCK: number for at, number in changes.items()}, restores=[AT // BLOCK + 10])
    assert (found, told) == whole(cut)
    assert {"rule", *QUERIES} <= {name for name, *_ in found}
    return begins


def paused(log: Log, name: str, at: int, until: int) -> Log:
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == name)
    return inserted(log, [(at, Pause(0, registered, name)), (until, Resume(0, registered, name)), (until, CatchUp(0, registered, ALL))])


@pytest.mark.parametrize(("first", "number"), [(1, 4), (2, 4), (2, 3), (4, 2), (3, 1)] if is_full() else [(1, 4), (2, 3), (4, 2)])
def test_no_more_is_read_than_queries_look_back(first: int, number: int) -> None:
    """Queries without a key are among them."""
    begins = begins_of(readings([(20, Register(0, "all pairs", ALL_PAIRS))]), first, {AT: number})
    assert begins
    assert min(begins) > AT - 120, "places are sparse further back"


def test_a_query_without_a_bound_is_read_for_from_the_beginning() -> None:
    begins = begins_of(readings([(40, Register(0, "ever", EVER))]), 2, {AT: 3})
    assert min(begins) <= 40


def test_what_lives_in_one_partition_moves_as_it_is() -> None:
    """It looks back without a bound, is paused or has read the past, and nothing is read for it."""
    log = readings([(30, Register(0, "all ever", ALL_EVER)), (200, Register(0, "past", EVER, reads_from=0))])
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == "past")
    log = paused(inserted(log, [(registered + 1, CatchUp(0, registered, ALL))]), "chain", AT - 200, AT + 30)
    no_changes = dict[int, int]()
    for first, changes in ((1, {AT: 3}), (2, {AT: 4, AT + 60: 5})):
        still, moving = (sorted(begin for begin in begins_of(log, first, each) if begin < AT - 230) for each in (no_changes, changes))
        assert moving == still


def test_a_changed_background_keeps_a_query_without_a_bound_in_one_partition() -> None:
    fact = "<http://example.org/s1> <http://example.org/A> <http://example.org/5> .\n"
    log = readings([(40, Register(0, "ever", EVER)), (100, Facts(0, "", fact))])
    assert min(begins_of(log, 1, {AT: 3})) > 100


def test_a_rule_that_was_dropped_is_not_forgotten() -> None:
    log = readings()
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == "rule")
    begins_of(inserted(log, [(AT - 4, Drop(0, registered, "rule"))]), 1, {AT: 3})


def cut_at(extra: Sequence[tuple[int, Register]], numbers: Sequence[int], begin: int) -> Partitions:
    """Partitions that have read up to an entry in the last of some numbers, of a log that begins later.

    The change to the last one came there.
    """
    log = blocks(readings(extra), range(0, COUNT, 5))
    partitions = Partitions(log, numbers[0])
    for block in log[: AT // 5]:
        partitions.feed(block)
    for number in numbers[1:]:
        partitions.change(number, begin)
    assert all(position >= begin for position in partitions.begins)
    return partitions


def test_where_the_log_was_cut_bounded_queries_still_move() -> None:
    cut_at([], [2, 4, 3, 1, 2], AT - 120)


def test_where_the_log_was_cut_a_query_without_a_bound_is_named() -> None:
    """One that one engine has whole goes on in one partition, and a later change takes its state along."""
    assert cut_at([(40, Register(0, "ever", EVER))], [2], AT - 120).unread(3, AT - 120) == ["ever"]
    route = cut_at([(40, Register(0, "ever", EVER))], [1, 2, 3], AT - 120).engines[0].registry.sets.route(40)
    assert route is not None
    assert route.part is None


def test_a_revised_query_needs_one_partition() -> None:
    partitions = cut_at([(40, Register(0, "ever", EVER, emit=REVISED))], [1], 0)
    with pytest.raises(OnePartitionOnly, match="ever is a revised query: run it with one partition"):
        partitions.plan(2)


def test_a_query_that_failed_in_one_partition_is_gone_in_all() -> None:
    """No entry of the log has ended it yet."""
    partitions = cut_at([(40, Register(0, "ever", EVER, max_goals=9))], [2], 0)
    fallen = {registered for engine in partitions.engines for registered in engine.registry.fallen}
    assert len(fallen) == 1
    partitions.change(3)
    assert not any(fallen & engine.registry.registered.keys() for engine in partitions.engines)
