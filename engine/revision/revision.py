"""This module evaluates revised queries ahead of the horizon (semantics.md section 14,
docs/decisions/0081-revision.md).

    log ──▶ settled networks: time is the streams' watermark, H behind ──▶ nothing is told
     │            │ copied, with what waits, at an entry `Revise`
     └──────▶ engine ahead: time is what the streams have reached ──▶ changelog

The engine ahead reads what comes in order. An entry that changes the past, or what is registered, ends it. Until the
next `Revise`, what the settled networks find is kept. There a new engine ahead is made out of them, and the
difference is told. So what is told depends on the log alone, and entries between share one run over the past. If the
queries look back for a bounded time, the run reads only what lies so near to a change, or to the latest end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import Entry, Events, Finish, Micros, Register, StateChange, Tick, int64s
from engine.network.placed_query import Planned
from engine.planner.reach import Reach
from engine.revision.change_rows import write_changes
from engine.revision.changed_past import ChangedPast, Ints
from engine.revision.standing_set import StandingSet
from engine.runtime.dispatch import Listener
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached
from engine.runtime.partition_filter import Feed
from engine.runtime.query_registry import Registry
from engine.runtime.span_evaluator import SpanEvaluator
from engine.runtime.watermarks import NO_TIME, Arrivals, NetworkTime, StreamTime, advance_stream
from epsparql import algebra as a
from epsparql import parse

_NO_INSTANTS = np.empty(0, np.int64)
Settled = Mapping[int, Micros | NDArray[np.int64]]
"""By registration of a revised query, the instant that its settled network has reached: after all entries of a span,
or after each.
"""


class Revision:
    """Runs an engine ahead of another one, and keeps the standing sets of the revised queries."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.ahead: SpanEvaluator | None = None
        """The engine ahead, while the past stands as it knows it."""
        self._ends: Mapping[int, Micros] = {}  # the latest ends of what `translate` was last given
        self._failed: dict[int, int] | None = None  # the revised queries that have failed in the span since `translate`, and their last entries
        self.standing: dict[int, StandingSet] = {}
        """These are the standing sets, by registration."""
        self._settling: dict[int, StandingSet] = {}  # what the settled networks found while no engine ran ahead
        self._since: dict[int, Micros] = {}  # the instants that they had reached before
        self._stood: dict[int, Micros] = {}  # the instants that the engine ahead had reached, by query, if occurrences alone have ended it
        self._changed: list[Ints] = []  # the ends of these occurrences
        self._reaches: tuple[Reach, ...] | None = None  # of the queries that run ahead

    def add_query(self, entry: Register) -> None:
        self.interrupt()
        self.standing[entry.offset] = StandingSet()
        self._note_settling()

    def forget_query(self, registered: int) -> None:
        """Forget a query that was dropped, or has failed."""
        self._reaches = None
        if self.standing.pop(registered, None) is not None and self.ahead is not None:
            self.ahead.registry.drop_query(registered)
        self._settling.pop(registered, None)

    def note_failure(self, registered: int, entry: int) -> None:
        """Forget a query that has failed at an entry.

        What the engine ahead finds for it in the span before that entry is told first.
        """
        if self._failed is None:
            self.forget_query(registered)
        elif registered in self.standing:
            self._failed[registered] = entry

    def is_upset_by(self, entry: Events) -> bool:
        """Return whether an entry changes the past that the engine ahead has seen, or would have."""
        return entry.revises and (bool(self._stood) if self.ahead is None else entry.stream in self.ahead.registry.layout.by_stream)

    def interrupt(self) -> None:
        """Run ahead no more until the next entry `Revise`, which then reads all that waits. Call this between spans."""
        self.ahead, self._reaches = None, None
        self._stood, self._changed = {}, []
        if self.standing:
            self._note_settling()

    def upset(self, ends: Ints) -> None:
        """Run ahead no more until the next entry `Revise`, because occurrences with these ends came late or went.

        Call this between spans.
        """
        if self.ahead is not None:
            members = self.ahead.registry.members
            self._stood = {registered: each.time for each in members for registered in each.network.planned if registered in self.standing}
            self.ahead, self._changed = None, []
            self._note_settling()
        if self._stood:
            self._changed.append(np.unique(ends[ends < max(self._stood.values())]))

    def _note_settling(self) -> None:
        for member in self._settled_members():
            member.silent = False
            for registered in member.network.planned:
                if registered not in self._settling:
                    self._settling[registered], self._since[registered] = StandingSet(), member.time
        self._registry.forget_layout()

    def _settled_members(self) -> list[ScheduledNetwork]:
        return [member for member in self._registry.members if member.revised]

    def keep(self, found: Iterable[pa.RecordBatch]) -> None:
        """Keep what a settled network finds while no engine runs ahead.

        A side engine, which tells nothing of it, lets it go.
        """
        for registered, own in _by_query(found):
            if registered in self._settling:
                self._settling[registered].add(own)

    # ------------------------------------------------------------ what comes in order
    def translate(self, entries: Sequence[Entry], ends: Mapping[int, Micros]) -> list[Entry]:
        """Return the entries that the engine ahead may read, with what the streams reach as their watermarks.

        Call this before time passes.
        """
        if self.ahead is None:
            return []
        self._ends, self._failed = ends, {}
        found, streams = list[Entry](), dict[str, StreamTime]()
        for entry in entries:
            if isinstance(entry, Events | Tick | Finish) and entry.stream is not None and entry.stream not in streams:
                streams[entry.stream] = replace(self._registry.streams.get(entry.stream, StreamTime()))
            name = advance_stream(streams, entry, ends)
            if name is not None and isinstance(entry, Events | Tick):
                reached = streams[name].reached
                entry = replace(entry, watermark=None if reached == NO_TIME else reached)
            found.append(entry)
        return found

    def follow_span(
        self, read: Sequence[Entry], new: Mapping[Feed, Arrivals], settled: Settled, changes: list[StateChange]
    ) -> Iterator[pa.RecordBatch]:
        """Let the engine ahead read the entries of a span, which `translate` gave, and yield the changes that they
        bring.

        Of a query that fails there or in its settled network, these are the changes before the first such entry.
        """
        if self.ahead is None:
            return
        found, ended = self.ahead.read_span(read, new, self._ends)
        last = self._fail_queries(ended, changes)
        for registered, own in _by_query(found):
            if registered in last:
                own = own.filter(pa.array(int64s(own.column("entry")) < last[registered]))
            known = self.standing.get(registered)
            if known is not None and own.num_rows:
                after_each, came = np.broadcast_to(settled[registered], len(read)), known.add(own)
                yield write_changes(self._find_entry(registered).name, registered, came, after_each[came.entries - read[0].offset])
                known.forget_settled(int(after_each[-1]))
        self._forget_queries(last)

    def _find_entry(self, registered: int) -> Register:
        """Return the registration of a query, which may have failed."""
        return self._registry.registered.get(registered) or self._registry.fallen[registered]

    def _fail_queries(self, ended: Iterable[StateChange], changes: list[StateChange]) -> dict[int, int]:
        """Fail the revised queries that failed ahead, and those that rest on a rule which did.

        The first failure counts: an entry is read by the settled networks before it is read ahead. Return the entries
        at which queries failed.
        """
        last, self._failed = self._failed or {}, None
        for change in sorted((each for each in ended if each.state == "failed"), key=lambda each: each.entry):
            written = a.written_stream(parse(self._find_entry(change.registered).text).query)
            for registered in self.standing:
                entry = self._find_entry(registered)
                if registered == change.registered:
                    reason = change.reason
                elif written is not None and written in find_reached(parse(entry.text).query.streams, self._registry.rules):
                    reason = f"the rule {change.name!r}, on which it rests, failed ahead of the horizon: {change.reason}"
                else:
                    continue
                if registered in self._registry.registered:
                    changes.append(self._registry.fail_query(registered, change.entry, reason))
                elif change.entry < last[registered]:  # its settled network failed at a later entry of the span
                    changes[:] = [each for each in changes if (each.registered, each.state) != (registered, "failed")]
                    changes.append(StateChange(registered, entry.name, change.entry, "failed", reason))
                else:
                    continue
                last[registered] = change.entry
        return last

    def _forget_queries(self, queries: Iterable[int]) -> None:
        for registered in queries:
            self.forget_query(registered)

    # ------------------------------------------------------------ what changes the past
    def revise(self, entry: int, changes: list[StateChange]) -> Iterator[pa.RecordBatch]:
        """Run ahead anew, if the past has changed, and yield the changes of the sets that stand."""
        if self.ahead is not None:
            return
        past = self._find_changed_past()
        for registered, own in _by_query(self._run_ahead(entry, past, changes)):
            if registered in self._settling:
                self._settling[registered].add(own)
        for member in self._settled_members():
            for registered in [each for each in member.network.planned if each in self.standing]:
                came = self.standing[registered].replace(
                    self._settling[registered], partial(past.touches, registered), self._since[registered], entry
                )
                if came:
                    settled = np.full(len(came), self._since[registered])
                    settled[-1] = member.time
                    yield write_changes(self._registry.registered[registered].name, registered, came, settled)
        self._settling, self._since, self._stood, self._changed = {}, {}, {}, []

    def _find_changed_past(self) -> ChangedPast:
        """Return what has changed since an engine ran ahead.

        All has, if a query stands before its first instant, which what came may have moved.
        """
        members = self._settled_members()
        if not self._stood or any(member.network.slots.find_unopened() for member in members):
            return ChangedPast(_NO_INSTANTS, {}, None)
        if self._reaches is None:
            self._reaches = tuple(
                self._registry.find_reaches([self._registry.registered[each.registered] for _, own in self._list_ahead() for each in own])
            )
        bounds = [reach.micros for reach in self._reaches]
        reach = None if None in bounds else max(bound for bound in bounds if bound is not None)
        return ChangedPast(np.unique(np.concatenate([_NO_INSTANTS, *self._changed])), self._stood, reach)

    # ------------------------------------------------------------ snapshots
    def snapshot(self, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Return the part of the state that is fit for JSON, and add the standing sets to `arrays`."""
        arrays |= {f"standing_set.{registered}": found.to_bytes() for registered, found in self.standing.items()}
        arrays |= {f"settling_set.{registered}": found.to_bytes() for registered, found in self._settling.items()}
        since = [(registered, self._since[registered]) for registered in self._settling]
        changed = np.concatenate([_NO_INSTANTS, *self._changed]).tolist()
        return {
            "standing": list(self.standing),
            "ahead": self.ahead is not None,
            "since": since,
            "stood": list(self._stood.items()),
            "changed": changed,
        }

    def restore(self, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], position: int) -> None:
        """Take over what `snapshot` gave at a position, once the engine has its networks.

        What the engine ahead finds again stands already.
        """
        self.standing = {registered: StandingSet.from_bytes(arrays[f"standing_set.{registered}"]) for registered in meta["standing"]}
        if meta["ahead"]:
            self._run_ahead(position, self._find_changed_past(), [])
        else:
            self._since, self._stood, self._changed = dict(meta["since"]), dict(meta["stood"]), [np.array(meta["changed"], np.int64)]
            self._settling = {registered: StandingSet.from_bytes(arrays[f"settling_set.{registered}"]) for registered in self._since}
            self._note_settling()

    def _list_ahead(self) -> list[tuple[ScheduledNetwork, list[Planned]]]:
        """Return what an engine ahead has copies of: the revised queries, and the rules on which they rest, each with
        its network.
        """
        registry = self._registry
        rests_on = find_reached({name for member in self._settled_members() for name in member.network.reads}, registry.rules)
        found = [
            (member, [each for each in member.network.planned.values() if member.revised or each.writes in rests_on]) for member in registry.members
        ]
        return [(member, wanted) for member, wanted in found if wanted]

    def _run_ahead(self, entry: int, past: ChangedPast, changes: list[StateChange]) -> Sequence[pa.RecordBatch]:
        """Make the engine ahead from the settled networks.

        Return what it finds in the waiting entries, as far as a change of the past needs that.
        """
        registry, ahead = self._registry, self._registry.make_beside()
        ahead.known, ahead.fallen = registry.known, dict(registry.fallen)
        ahead.streams = {name: replace(stream, watermark=stream.reached) for name, stream in registry.streams.items()}
        for member, wanted in self._list_ahead():
            ahead.registered |= {each.registered: registry.registered[each.registered] for each in wanted}
            readers = list(member.network.planned) if member.revised else list(self.standing)
            side = ahead.copy_network(member, wanted, partial(past.needs, readers))
            side.revised, side.silent = False, not member.revised
            ahead.members.append(side)
        self.ahead = SpanEvaluator(ahead)
        for member in self._settled_members():
            member.silent = True
        registry.forget_layout()
        name = next((name for name in ahead.layout.by_stream if name in ahead.streams and ahead.streams[name].fed), None)
        if name is None:
            return ()
        reached = ahead.streams[name].reached
        ahead.forget_layout()  # so that all networks take up the time, and not those of this stream alone
        found, ended = self.ahead.read_span([Events(entry, name, 0, None if reached == NO_TIME else reached)], {}, {})
        self._forget_queries(self._fail_queries(ended, changes))
        return found


def _by_query(found: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the solutions of each query."""
    for part in found:
        numbers = int64s(part.column("registered")) if part.num_rows else _NO_INSTANTS
        for registered in sorted(set(numbers.tolist())):
            yield registered, part if bool((numbers == registered).all()) else part.filter(pa.array(numbers == registered))


def span_times(courses: Mapping[Listener, NetworkTime], order: Sequence[Listener]) -> Settled:
    """Return the times of the revised queries' networks after each entry of a span."""
    return {
        registered: courses[listener].time if listener in courses else listener.member.time
        for listener in order
        if listener.member.revised
        for registered in listener.member.network.planned
    }
