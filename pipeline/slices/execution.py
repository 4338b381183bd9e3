"""This module evaluates slices: engines that begin with the streams' times and the background, and first read what
the queries reach back to.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from engine.engine import Engine
from engine.engine_state import Beginning, SideEngine
from engine.errors import LogGap
from engine.messages import NO_ROWS, Block, Micros, Outcome, Register
from engine.planner.reach import Reach
from engine.runtime.event_scheduler import find_reached
from engine.runtime.result_assembly import NOTHING
from engine.runtime.watermarks import StreamTime
from epsparql import algebra as a
from epsparql import parse
from epsparql.deferred_methods import dataclass
from pipeline.errors import Gone
from pipeline.log import LogReader
from pipeline.slices.outline import LogOutline
from pipeline.slices.plan import Slice, SlicedQuery, SlicePlanner

BLOCK_ROWS = 50_000
Registrations = tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class SliceWork:
    """Says what is evaluated over a slice of the log of a data directory.

    Each of the engines has its own registrations, and begins as the snapshot `base`, which knows the background alone.
    """

    data: str
    engines: tuple[Registrations, ...]
    base: bytes
    part: Slice


@dataclass(frozen=True, slots=True, eq=False)
class SlicePiece:
    """Holds what the entries [lo, hi) brought in each engine, and the instants before which registrations bring no
    more, by offset.

    `rows` counts all rows of the entries.
    """

    lo: int
    hi: int
    rows: int
    outcomes: tuple[Outcome, ...]
    times: tuple[Mapping[int, Micros], ...]

    @property
    def nbytes(self) -> int:
        return sum(outcome.solutions.nbytes for outcome in self.outcomes)


# ---------------------------------------------------------------- what is sliced
class SlicedLog:
    """Knows the log of a data directory up to a position, as far as queries need it that run in one engine or in
    several.
    """

    def __init__(self, data: Path, engines: Sequence[Sequence[Register]], until: int, known: Engine | None = None) -> None:
        """Read the outline of the log.

        `known` is an engine without queries, with which it begins. Raises: Gone, Corrupt, QueryError.
        """
        self._data, self._engines = data, tuple(map(tuple, engines))
        self._known = known or Engine()
        self._texts = {entry.offset: parse(entry.text).query for entries in engines for entry in entries}
        streams = {stream for query in self._texts.values() for stream in query.streams}
        rules = [rule.registered for rule in self._known.registry.known.rules]
        self.outline = LogOutline(data, (self._known.position, until), streams, self._known.registry.streams, rules)
        self._until = until
        self._base: tuple[int, bytes] = -1, b""

    def find_reaches(self) -> dict[int, Reach]:
        """Return the reach of each query by registration, over the background as it stands at the end."""
        registry = Engine.restore(self._base_at(self._until)).registry
        return {entry.offset: reach for entries in self._engines for entry, reach in zip(entries, registry.find_reaches(entries), strict=True)}

    def plan(self, first: int, reaches: Mapping[int, Reach]) -> SlicePlanner:
        """Return what cuts the entries from a position on."""
        queries, written = list[SlicedQuery](), set[str]()
        for entries in self._engines:
            parsed = [self._texts[entry.offset] for entry in entries]
            rules = [rule for query in parsed for rule in a.writing_rules(query)]
            written |= {rule.into for rule in rules}
            for entry, query in zip(entries, parsed, strict=True):
                queries.append(SlicedQuery(frozenset(query.streams), frozenset(find_reached(query.streams, rules)), reaches[entry.offset]))
        return SlicePlanner(self.outline, queries, written, first, self._until)

    def list_work(self, slices: Iterable[Slice]) -> list[SliceWork]:
        return [SliceWork(str(self._data), self._engines, self._base_at(part.first), part) for part in slices]

    def _base_at(self, position: int) -> bytes:
        """Return a snapshot of an engine without queries, with the background as it stands at a position."""
        changes = [change for change in self.outline.changes if change < position]
        if self._base[0] != len(changes):
            engine = Engine.restore(self._known.snapshot())
            with closing(LogReader(self._data)) as reader:
                for change in changes:
                    engine.position = change
                    engine.apply_block(Block((reader.entry(change),), NO_ROWS))
            self._base = len(changes), engine.snapshot()
        return self._base[1]


# ---------------------------------------------------------------- the evaluation
def run_slice(work: SliceWork) -> Iterator[SlicePiece | None]:
    """Evaluate a slice, and yield what each block of the entries that count brings, in order; None for a block before
    them.

    A query that fails before them is told as failing at the first of them. Raises: Gone, Corrupt.
    """
    part = work.part
    with closing(LogReader(work.data)) as reader:
        sides = [_begin_side(work, entries) for entries in work.engines]
        early = [list(side.begin().changes) for side in sides]
        engines = [side.engine for side in sides]
        for block in reader.blocks(part.first, BLOCK_ROWS, part.keep):
            for engine, changes in zip(engines, early, strict=True):
                changes += engine.feed(block).changes
            yield None
        told = [tuple(replace(change, entry=part.keep) for change in changes) for changes in early]
        if part.keep == part.until:
            ended = tuple(Outcome(NOTHING, changes) for changes in told)
            yield SlicePiece(part.keep, part.keep, 0, ended, tuple(engine.registry.times for engine in engines))
        for block in reader.blocks(part.keep, BLOCK_ROWS, part.until):
            found = [engine.feed(block) for engine in engines]
            outcomes = tuple(Outcome(each.solutions, (*changes, *each.changes)) for each, changes in zip(found, told, strict=True))
            told = [()] * len(engines)
            yield SlicePiece(block.first, block.after, block.num_rows, outcomes, tuple(engine.registry.times for engine in engines))


def _begin_side(work: SliceWork, entries: Registrations) -> SideEngine:
    """Return a side engine where a slice begins to read. It heeds no entry about queries: its own begin there."""

    def past(lo: int, hi: int) -> Iterator[Block]:
        with closing(LogReader(work.data)) as log:
            try:
                yield from log.blocks(lo, BLOCK_ROWS, hi)
            except Gone as gone:
                raise LogGap(str(gone)) from gone

    engine, first = Engine.restore(work.base), work.part.first
    engine.registry.streams = {mark.stream: StreamTime(mark.watermark, mark.latest, mark.fed) for mark in work.part.marks}
    engine.position, engine.past = first, past
    beginning = Beginning(first, tuple(replace(entry, reads_from=first) for entry in entries))
    return SideEngine(engine, set(), deque([beginning]), registers=lambda _: False)
