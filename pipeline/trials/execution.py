"""This module runs a trial: engines that begin empty read the log's past in slices, with the background as the log
changed it.

An engine here heeds no entry about queries. Its own stand from the trial's beginning, as one that is registered now
to read from there would (docs/decisions/0083-slices.md).
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.engine import Engine
from engine.messages import Micros, Outcome, Register, int64s
from engine.planner.reach import Reach
from engine.query_lifecycle.catch_up import fork
from engine.runtime.watermarks import NO_MARK, NO_TIME
from epsparql.deferred_methods import dataclass
from pipeline.errors import Gone, PipelineError
from pipeline.formats.batches.timestamps import iso
from pipeline.log.segments import oldest
from pipeline.registrations.query_cache import get_shape
from pipeline.slices.execution import SlicedLog
from pipeline.slices.live_work import LiveWork
from pipeline.slices.workers import SliceThreads
from pipeline.trials.comparison import Comparison
from pipeline.trials.plan import EnginePlan, TrialPlan, TrialRange, find_earliest, snapshots_of


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

    `first` is the position at which its queries begin; `position` is how far it has read, and `rows` counts the rows
    since `first`. Counts are in the order of KINDS, in all of them. `slots` are those of the timeline, by number, of
    `width` µs each.
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
    unbounded: dict[str, str] = field(default_factory=dict)
    """These queries look back without a bound, for this reason, so that the trial was run on one core."""


class _Side:
    """Follows the queries of one engine, which every slice has anew."""

    def __init__(self, plan: EnginePlan) -> None:
        self._names = {entry.offset: entry.name for entry in plan.registrations}
        self._watched = {watched.registered: watched for watched in plan.watched}
        self._default = plan.watched[0].side
        self.ended: dict[int, Ended] = {}
        self.time: Micros = NO_TIME
        """Before this instant the watched queries bring no more solutions."""

    def take_piece(self, outcome: Outcome, times: Mapping[int, Micros], comparison: Comparison) -> None:
        """Take what a piece of the log brought. A query that has ended brings nothing in later slices."""
        ended = set(self.ended)
        for change in outcome.changes:
            watched = self._watched.get(change.registered)
            side = watched.side if watched is not None else self._default
            self.ended.setdefault(change.registered, Ended(self._names[change.registered], side, change.state, change.reason))
        if outcome.solutions.num_rows:
            registered = int64s(outcome.solutions.column("registered"))
            for number in np.unique(registered).tolist():
                if number in self._watched and number not in ended:
                    mask = registered == number
                    comparison.add(self._watched[number], outcome.solutions if mask.all() else outcome.solutions.filter(pa.array(mask)))
        self.time = max(self.time, min((times[each] for each in self._watched if each in times), default=NO_MARK))


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
    begun = _engine_at(data, plan.range)
    log = SlicedLog(data, [engine.registrations for engine in plan.engines], plan.range.until, begun)
    first = _find_first(log, plan, begun)
    reaches = log.find_reaches()
    planner = log.plan(first, reaches)
    works = log.list_work(planner.plan_for(plan.threads))
    sides = [_Side(engine) for engine in plan.engines]
    status, rows = TrialStatus(first, first, plan.range.until, unbounded=_list_unbounded(plan, reaches)), 0
    threads = SliceThreads(plan.threads, LiveWork(data, plan.threads).count_threads)
    with Comparison(Path(plan.directory), plan.kept, plan.range, forms) as comparison, closing(threads.evaluate_slices(works)) as pieces:
        for piece in pieces:
            for side, outcome, times in zip(sides, piece.outcomes, piece.times, strict=True):
                side.take_piece(outcome, times, comparison)
            time, rows = min(side.time for side in sides), rows + piece.rows
            comparison.compare_until(time)
            status = replace(_status(comparison, sides, status), position=piece.hi, rows=rows)
            tell(status)
            if plan.range.before is not None and time >= plan.range.before:
                break
        comparison.compare_until(NO_MARK)
        return replace(_status(comparison, sides, status), position=plan.range.until)


def _text_of(registrations: tuple[Register, ...], registered: int) -> str:
    return next(entry.text for entry in registrations if entry.offset == registered)


def _status(comparison: Comparison, sides: list[_Side], before: TrialStatus) -> TrialStatus:
    counts = {name: list(found) for name, found in comparison.counts.items()}
    slots = sorted((slot, list(found)) for slot, found in comparison.timeline.slots.items())
    ended = list(dict.fromkeys(each for side in sides for each in side.ended.values()))
    return replace(before, counts=counts, kept=dict(comparison.written), width=comparison.timeline.width, slots=slots, ended=ended)


def _engine_at(data: Path, bounds: TrialRange) -> Engine:
    """Return an engine without queries that knows background and watermarks, at or before the beginning.

    Raises: TrialRefused.
    """
    begin = oldest(data / "log")
    if not begin:
        return Engine()
    restored = snapshots_of(data).newest(bounds.first)
    if restored is None or restored.position < begin:
        raise TrialRefused(describe_earliest(begin, find_earliest(data, begin)))
    return restored.make_beside(fork(restored.registry, ()), restored.position)


def describe_earliest(begin: int, earliest: int | None) -> str:
    """Return why a trial cannot read from before a position, and from where it can."""
    known = f"a trial can begin at offset {earliest} or later" if earliest is not None else "no snapshot is there yet: try again later"
    return f"the log begins at offset {begin}, and background and watermarks before it are gone; {known}"


def _find_first(log: SlicedLog, plan: TrialPlan, begun: Engine) -> int:
    """Return the position of the first entry that the queries read.

    Raises: TrialRefused where it may have been removed.
    """
    since = plan.range.since
    if since is None:
        return plan.range.first
    known = max((begun.registry.streams[name].latest for name in plan.streams if name in begun.registry.streams), default=NO_TIME)
    if begun.position and known >= since:
        raise TrialRefused(f"events from {iso(since)} on were removed from the log in part; begin after {iso(known)}, or at offset {begun.position}")
    found = log.outline.find_first(since, plan.streams)
    return plan.range.until if found is None else found


def _list_unbounded(plan: TrialPlan, reaches: Mapping[int, Reach]) -> dict[str, str]:
    """Return why queries look back without a bound, by name."""
    entries = (entry for engine in plan.engines for entry in engine.registrations)
    return {entry.name: reaches[entry.offset].reason for entry in entries if reaches[entry.offset].micros is None}
