"""This module runs a trial: engines that begin empty read the log's past, with the background as the log changed it.

An engine here heeds no entry about queries. Its own stand from the trial's beginning, as one that is registered now to read from there would
(docs/decisions/0067-trials.md).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.background.changes import is_change
from engine.catch_up import EngineState, fork
from engine.engine import Engine
from engine.errors import LogGap
from engine.messages import Block, DropStream, Events, Micros, Register, StateChange, int64s
from engine.runtime.watermarks import NO_MARK, NO_TIME
from pipeline.errors import Gone, PipelineError
from pipeline.formats.batches.timestamps import iso
from pipeline.log import LogReader
from pipeline.log.segments import oldest
from pipeline.registrations.query_cache import get_shape
from pipeline.trials.comparison import Comparison
from pipeline.trials.plan import EnginePlan, TrialPlan, TrialRange, find_earliest, snapshots_of

BLOCK_ROWS = 50_000


class TrialRefused(PipelineError):
    """A trial cannot begin where it was asked to."""

    code = "trial-refused"


@dataclass(frozen=True, slots=True)
class Ended:
    """Tells that a query of a trial failed or completed before its end; `sides` are those on which it did."""

    query: str
    side: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class TrialStatus:
    """Reports how far a trial is, and what it has found so far.

    `first` is the position at which its queries begin; `position` is how far it has read, and `rows` counts the rows since `first`. Counts are in
    the order of KINDS, in all of them. `slots` are those of the timeline, by number, of `width` µs each.
    """

    first: int
    position: int
    until: int
    rows: int = 0
    counts: dict[str, list[int]] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    width: Micros = 0
    slots: list[tuple[int, list[int]]] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)


class _Side:
    """Runs the queries of one engine."""

    def __init__(self, data: Path, plan: EnginePlan, engine: EngineState) -> None:
        self._plan, self._data, self.engine = plan, data, engine
        self._watched = {watched.registered: watched for watched in plan.watched}
        engine.heeds = lambda entry: isinstance(entry, DropStream) or is_change(entry, engine.known)
        engine.past = self._past
        self.ended: list[Ended] = []

    def begin(self, first: int) -> None:
        """Let the queries read from here on."""
        changes: list[StateChange] = []
        for entry in self._plan.registrations:
            self.engine.enrol_query(replace(entry, reads_from=first), changes)
        self._note(changes)

    def feed(self, block: Block, comparison: Comparison) -> None:
        assert isinstance(self.engine, Engine)
        outcome = self.engine.feed(block)
        self._note(outcome.changes)
        if outcome.solutions.num_rows:
            registered = int64s(outcome.solutions.column("registered"))
            for number in np.unique(registered).tolist():
                if number in self._watched:
                    mask = registered == number
                    comparison.add(self._watched[number], outcome.solutions if mask.all() else outcome.solutions.filter(pa.array(mask)))

    @property
    def time(self) -> Micros:
        """Return the instant before which the watched queries bring no more solutions."""
        times = [m.time for m in self.engine.members if any(registered in self._watched for registered in m.network.planned)]
        return min(times, default=NO_MARK)

    def _note(self, changes: Iterable[StateChange]) -> None:
        names = {entry.offset: entry.name for entry in self._plan.registrations}
        for change in changes:
            watched = self._watched.get(change.registered)
            side = watched.side if watched is not None else self._plan.watched[0].side
            self.ended.append(Ended(names[change.registered], side, change.state, change.reason))

    def _past(self, lo: int, hi: int) -> Iterator[Block]:
        with closing(LogReader(self._data)) as reader:
            try:
                yield from reader.blocks(lo, BLOCK_ROWS, hi)
            except Gone as gone:
                raise LogGap(str(gone)) from gone


def run_trial(plan: TrialPlan, tell: Callable[[TrialStatus], None]) -> TrialStatus:
    """Run a trial to its end and return its last status; `tell` is told the others, one a block.

    Raises: TrialRefused, Corrupt.
    """
    try:
        return _read_log(plan, tell)
    except Gone as gone:
        begin = oldest(Path(plan.data) / "log")
        raise TrialRefused(f"retention was faster: {describe_earliest(begin, find_earliest(Path(plan.data), begin))}") from gone


def _read_log(plan: TrialPlan, tell: Callable[[TrialStatus], None]) -> TrialStatus:
    """Run a trial. Raises: TrialRefused, Gone, Corrupt."""
    data = Path(plan.data)
    forms = {watched: get_shape(_text_of(engine.registrations, watched.registered)).form for engine in plan.engines for watched in engine.watched}
    with closing(LogReader(data)) as reader, Comparison(Path(plan.directory), plan.kept, plan.range, forms) as comparison:
        sides = [_Side(data, engine, _engine_at(data, plan.range)) for engine in plan.engines]
        first = _find_first(reader, plan, sides[0].engine)
        status = TrialStatus(first, first, plan.range.until)
        for side in sides:
            for block in reader.blocks(side.engine.position, BLOCK_ROWS, first):
                side.engine.apply_block(block)
            side.begin(first)
        rows = 0
        for block in reader.blocks(first, BLOCK_ROWS, plan.range.until):
            for side in sides:
                side.feed(block, comparison)
            time, rows = min(side.time for side in sides), rows + block.rows.num_rows
            comparison.compare_until(time)
            status = replace(_status(comparison, sides), first=first, position=block.after, until=plan.range.until, rows=rows)
            tell(status)
            if plan.range.before is not None and time >= plan.range.before:
                break
        comparison.compare_until(NO_MARK)
        return replace(_status(comparison, sides), first=first, position=plan.range.until, until=plan.range.until, rows=rows)


def _text_of(registrations: tuple[Register, ...], registered: int) -> str:
    return next(entry.text for entry in registrations if entry.offset == registered)


def _status(comparison: Comparison, sides: list[_Side]) -> TrialStatus:
    counts = {name: list(found) for name, found in comparison.counts.items()}
    slots = sorted((slot, list(found)) for slot, found in comparison.timeline.slots.items())
    ended = list(dict.fromkeys(each for side in sides for each in side.ended))
    return TrialStatus(0, 0, 0, 0, counts, dict(comparison.written), comparison.timeline.width, slots, ended)


def _engine_at(data: Path, bounds: TrialRange) -> EngineState:
    """Return an engine without queries that knows background and watermarks, at or before the beginning. Raises: TrialRefused."""
    begin = oldest(data / "log")
    if not begin:
        return Engine()
    restored = snapshots_of(data).newest(bounds.first)
    if restored is None or restored.position < begin:
        raise TrialRefused(describe_earliest(begin, find_earliest(data, begin)))
    return fork(restored, restored.position, set())


def describe_earliest(begin: int, earliest: int | None) -> str:
    """Return why a trial cannot read from before a position, and from where it can."""
    known = f"a trial can begin at offset {earliest} or later" if earliest is not None else "no snapshot is there yet: try again later"
    return f"the log begins at offset {begin}, and background and watermarks before it are gone; {known}"


def _find_first(reader: LogReader, plan: TrialPlan, engine: EngineState) -> int:
    """Return the position of the first entry that the queries read. Raises: TrialRefused where it may have been removed."""
    since = plan.range.since
    if since is None:
        return plan.range.first
    known = max((engine.streams[name].latest for name in plan.streams if name in engine.streams), default=NO_TIME)
    if engine.position and known >= since:
        raise TrialRefused(f"events from {iso(since)} on were removed from the log in part; begin after {iso(known)}, or at offset {engine.position}")
    for block in reader.blocks(engine.position, BLOCK_ROWS, plan.range.until):
        found = _first_in(block, since, plan.streams)
        if found is not None:
            return found
    return plan.range.until


def _first_in(block: Block, since: Micros, streams: tuple[str, ...]) -> int | None:
    """Return the offset of the first entry in a block that brings an occurrence of these streams which ends at `since` or later."""
    ends = int64s(block.rows.column("end"))
    if not len(ends) or int(ends.max()) < since:
        return None
    good = (ends >= since) & ~np.asarray(block.rows.column("late").to_numpy(zero_copy_only=False), bool)
    row = 0
    for entry in block.entries:
        if isinstance(entry, Events):
            if entry.stream in streams and good[row : row + entry.rows].any():
                return entry.offset
            row += entry.rows
    return None
