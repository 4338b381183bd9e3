"""This module runs a network's clock: what has arrived waits for time, and goes to the kernel in order."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from itertools import pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, Entry, Finish, Tick
from engine.network.network import Network
from engine.partitioning import Division
from engine.runtime.event_queue import Key, Waiting
from engine.runtime.watermarks import NO_ARRIVALS, NO_TIME, Arrivals, Ints, NetworkTime
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass

_FEW_MARKS = 512  # with more, a table is put together by a mask, whose time does not depend on their number
Mark = tuple[int, int, int, int, int]
"""A mark is what the feed has beside occurrences: (place, kind, query, end, entry)."""


@dataclass(slots=True, eq=False)
class ScheduledNetwork:
    """Holds a network with its clock: `time` is the query time in µs, `pending` has arrived and waits for it. Events
    are dealt out by `part`.

    If its queries are `revised`, what ends at the query time itself waits, so that all solutions that end later are
    yet to be found. What the queries of a `silent` network find is not told. Another network may reach the same
    streams as one that stands `apart`, until both are made one.
    """

    network: Network
    time: int = NO_TIME
    pending: Waiting = field(default_factory=Waiting)
    part: Division | None = None
    revised: bool = False
    silent: bool = False
    apart: bool = False

    @property
    def rules(self) -> list[a.Construct]:
        return [rule for p in self.network.rules.values() for rule in p.written.values()]

    @property
    def passed(self) -> int:
        """Return the instant before which nothing comes any more; NO_TIME after the end of all streams, which ends no
        partial match.
        """
        return self.time if self.time < END_OF_TIME else NO_TIME

    def share_query(self, registered: int) -> None:
        """Let a query that has just come share what it has in common with others."""
        waiting = self.pending
        self.network.share_query(registered, int(waiting.since.max(initial=-1)), int(waiting.end.max(initial=NO_TIME)))

    def retract(self, stream: str, keys: Set[Key]) -> None:
        """Take back occurrences of a stream, which all wait still."""
        if self.pending and stream in self.network.reads:
            self.pending.retract(self.network.slots.streams.numbers[stream], keys)

    def forget_unread(self) -> None:
        """Let go of what waits on streams that no query reads any more."""
        if self.pending:
            streams = self.network.slots.streams
            self.pending.keep_streams([streams.numbers[name] for name in streams.reads])

    def feed_one(self, offset: int, time: int, new: Sequence[tuple[str, Arrivals]]) -> Ints:
        """Return the kernel's feed as `feed` does, over one entry that brings occurrences and leaves `time` before
        the end.

        Most entries of a live stream come alone.
        """
        before, self.time = self.time, time
        table = drop_late(self._number_streams(new), before)
        n, released_until = table.shape[1], time - self.revised
        if n > 1:
            table = sort_by_end(table)
        latest = table.item(c.IN_END, n - 1) if n else NO_TIME
        if latest > released_until:
            released = int(table[c.IN_END].searchsorted(released_until, "right"))
            self.pending.add_rows(table[:, released:])
            table = table[:, :released].copy()
        if self.pending:
            table = sort_by_end(np.concatenate([self.pending.take_until(released_until), table], axis=1))
        table = self._without_idle_graphs(table)
        table[c.IN_ENTRY] = offset
        if self.network.slots.with_instants:
            table = insert_marks(table, self._open_at_instants(table, before, time, offset))
        if time > before and (not table.shape[1] or time > table.item(c.IN_END, -1)):
            return insert_marks(table, [(table.shape[1], c.TICK, 0, time, offset)])
        return table

    def feed(self, entries: Sequence[Entry], course: NetworkTime, new: Sequence[tuple[str, Arrivals]]) -> Ints:
        """Return what the kernel is to take in over these entries.

        Each occurrence goes in at the first entry at which its instant is released; where that leaves time further
        on, a tick follows.
        """
        first, time = entries[0].offset, course.time
        table = self._number_streams(new)
        table = drop_late(table, np.concatenate([[self.time], time])[table[c.IN_SINCE] - first])
        if self.pending:
            table = np.concatenate([self.pending.take_until(int(time[-1]) - self.revised), table], axis=1)
        accepted = table[c.IN_SINCE] - first
        release = np.maximum(np.searchsorted(time, table[c.IN_END] + self.revised), accepted)
        openings = self._find_openings(entries, course, table, accepted)
        out = release < len(entries)
        if not out.all():
            self.pending.add_rows(table[:, ~out])
            table, release = table[:, out], release[out]
        if not is_in_order(release, table[c.IN_END]):
            order = np.lexsort((table[c.IN_END], release))
            table, release = table[:, order], release[order]
        table = self._without_idle_graphs(table)
        marks = [*self._mark_last_instant(entries, course, release), *self._make_marks(entries, time, release, table[c.IN_END], openings)]
        table[c.IN_ENTRY] = release + first
        if self.network.slots.with_instants:
            marks += self._open_at_instants(table, self.time, int(time[-1]), entries[-1].offset)
        marks.sort(key=lambda mark: mark[4])  # At one place too, the first entry that passes an instant closes it.
        self.time = int(time[-1])
        return insert_marks(np.ascontiguousarray(table), marks)

    def _open_at_instants(self, table: Ints, before: int, time: int, offset: int) -> list[Mark]:
        """Return the marks that open queries at the first instant that is a pattern of theirs, where that comes
        before any occurrence they read.
        """
        slots = self.network.slots
        found = []
        for planned in slots.with_instants.values():
            at = next((instant for instant in planned.instants if instant > before), None)
            if at is None or slots.arrays.net.queries[planned.number, c.Q_OPEN]:
                continue
            place = int(np.searchsorted(table[c.IN_END], at))
            streams = [slots.streams.numbers[name] for name in planned.source.query.streams]
            passed = place < table.shape[1] or time >= at
            if passed and not find_read(table[:, :place], streams, planned.source.reads_after).any():
                entry = int(table[c.IN_ENTRY, place]) if place < table.shape[1] else offset
                found.append((place, c.OPENING, planned.number, at, entry))
        return found

    def _find_openings(self, entries: Sequence[Entry], course: NetworkTime, table: Ints, accepted: Ints) -> dict[int, list[tuple[int, int]]]:
        """Return, by place of the entry, (query, t0) of the queries whose streams end or fall silent there without an
        occurrence.
        """
        time = course.time
        silent = [k for k, entry in enumerate(entries) if isinstance(entry, Tick | Finish)]
        unopened = self.network.slots.find_unopened() if silent else []
        found: dict[int, list[tuple[int, int]]] = {}
        later = self.pending.table if unopened else table[:, :0]  # occurrences later than all of these entries
        opened = set[int]()
        for k in silent if unopened else ():
            before = self.time if k == 0 else int(time[k - 1])
            if time[k] < END_OF_TIME and (time[k] <= before or isinstance(entries[k], Finish)):
                continue
            t0 = int(time[k]) if time[k] < END_OF_TIME else find_last_instant(before, course.latest[k])
            for planned in (planned for planned in unopened if planned.number not in opened):
                streams = [self.network.slots.streams.numbers[name] for name in planned.source.query.streams]
                here = (accepted <= k) & find_read(table, streams, planned.source.reads_after)
                if here.any() or find_read(later, streams, planned.source.reads_after).any():  # one of these opens it, or has
                    continue
                opened.add(planned.number)
                found.setdefault(k, []).append((planned.number, t0))
        return found

    def _number_streams(self, new: Sequence[tuple[str, Arrivals]]) -> Ints:
        """Return the new occurrences of the streams that the network reads, by its numbers of streams, in the order
        of the entries that bring them.
        """
        for name, part in new:
            part.table[c.IN_STREAM] = self.network.slots.streams.numbers[name]
        table = new[0][1].table if len(new) == 1 else np.concatenate([NO_ARRIVALS.table, *(part.table for _, part in new)], axis=1)
        since = table[c.IN_SINCE]
        if len(since) < 2 or bool((since[1:] >= since[:-1]).all()):
            return table
        return table.take(np.argsort(since, kind="stable"), axis=1)

    def _without_idle_graphs(self, table: Ints) -> Ints:
        """Return a feed without the graphs that no query asks for.

        So occurrences that only graphs tell apart are one, whatever the block told of them.
        """
        after, n = self.network.slots.graphs_after, table.shape[1]
        if n == 0 or (table.item(c.IN_G, 0) == 0 if n == 1 else not table[c.IN_G].any()):
            return table
        idle = table[c.IN_SINCE] <= after
        if not idle.any():
            return table
        table = table.copy()  # other networks may ask
        table[c.IN_G, idle] = 0
        return table

    def _mark_last_instant(self, entries: Sequence[Entry], course: NetworkTime, release: Ints) -> list[Mark]:
        """Return the mark of the last instant, before what the entry releases that finishes the last of the streams."""
        time = course.time
        if time[-1] < END_OF_TIME or self.network.net.at[c.HORIZON] < c.FOREVER:
            return []
        k = int(np.searchsorted(time, END_OF_TIME))
        before = self.time if k == 0 else int(time[k - 1])
        return [(int(np.searchsorted(release, k)), c.LAST, 0, find_last_instant(before, course.latest[k]), entries[k].offset)]

    def _make_marks(
        self, entries: Sequence[Entry], time: Ints, release: Ints, end: Ints, openings: Mapping[int, Sequence[tuple[int, int]]]
    ) -> list[Mark]:
        """Return (place, kind, query, end, entry) of the openings and ticks."""
        before = np.concatenate([[self.time], time[:-1]])
        last_row = np.searchsorted(release, np.arange(len(entries)), "right") - 1
        last_end = np.where(last_row >= 0, end[np.maximum(last_row, 0)], NO_TIME) if len(end) else np.full(len(entries), NO_TIME)
        marks = []
        for k in sorted({*np.flatnonzero((time > before) & (time > last_end)).tolist(), *openings}):
            place, offset = int(last_row[k]) + 1, entries[k].offset
            for number, t0 in openings.get(k, ()):
                marks.append((place, c.OPENING, number, max(t0, int(last_end[k]), int(self.network.net.at[c.NOW])), offset))
            marks.append((place, c.TICK, 0, int(time[k]), offset))
        return marks


def find_last_instant(before: int, latest: int) -> int:
    """Return the last instant of streams that have finished: the time they had reached, or their latest end; 1970 if
    there was none.
    """
    return max(before if before < END_OF_TIME else NO_TIME, latest, 0 if latest == NO_TIME else NO_TIME)


def is_in_order(release: Ints, end: Ints) -> bool:
    steps = np.diff(release)
    return bool(((steps > 0) | ((steps == 0) & (np.diff(end) >= 0))).all())


def drop_late(table: Ints, before: Ints | int) -> Ints:
    """Return new occurrences without those that end before the network's time, as it was `before` each came.

    Only what rules write can be late here: a new rule may rest on a stream that stands further back. Whether other
    queries have moved the network's instant on makes no difference.
    """
    late = table[c.IN_END] < before
    return table.take(np.flatnonzero(~late), axis=1) if late.any() else table


def sort_by_end(table: Ints) -> Ints:
    """Return a feed sorted by end; what ends together stays as it stood."""
    if table.shape[1] <= 1:
        return table
    end = table[c.IN_END]
    if bool((end[1:] >= end[:-1]).all()):
        return table
    return table.take(np.argsort(end, kind="stable"), axis=1)


def find_read(table: Ints, streams: Sequence[int], after: int) -> NDArray[np.bool_]:
    """Return which occurrences are for a query that reads these streams, and only what comes after an entry."""
    found: NDArray[np.bool_] = np.isin(table[c.IN_STREAM], streams) & (table[c.IN_SINCE] > after)
    return found


def insert_marks(table: Ints, marks: Sequence[Mark]) -> Ints:
    """Return the kernel's feed: arrivals in order with the marks at their places."""
    if not marks:
        return table
    added = np.zeros((c.FEED_HEIGHT, len(marks)), np.int64)
    places, added[c.IN_KIND], added[c.IN_S], added[c.IN_END], added[c.IN_ENTRY] = np.array(sorted(marks, key=itemgetter(0)), np.int64).T
    if len(marks) > _FEW_MARKS:
        return np.ascontiguousarray(np.insert(table, places, added, axis=1))
    bounds = [0, *places.tolist(), table.shape[1]]
    parts = [part for k, (begin, end) in enumerate(pairwise(bounds)) for part in (table[:, begin:end], added[:, k : k + 1])]
    return np.concatenate(parts, axis=1)


def find_reached(streams: Iterable[str], rules: Sequence[a.Construct], *, onwards: bool = False) -> set[str]:
    """Return the streams that these rest on through rules, themselves included; `onwards`: those that rest on these."""
    found, pending = set(streams), True
    while pending:
        pending = False
        for rule in rules:
            sources, targets = ({rule.into}, set(rule.streams)) if not onwards else (set(rule.streams), {rule.into})
            if sources & found and not targets <= found:
                found |= targets
                pending = True
    return found


def sort_by_rules(members: Sequence[ScheduledNetwork]) -> list[ScheduledNetwork]:
    """Order members so that each comes after those whose rules write what it reads."""
    rest, ordered = list(members), list[ScheduledNetwork]()
    while rest:
        following = next((m for m in rest if not any(is_fed_by(other, m) for other in rest if other is not m)), rest[0])
        rest.remove(following)
        ordered.append(following)
    return ordered


def is_fed_by(member: ScheduledNetwork, other: ScheduledNetwork) -> bool:
    reads = other.network.reads
    return any(rule.into in reads for rule in member.rules)
