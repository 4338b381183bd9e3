"""This module evaluates spans of the log: entries without controls, which move time and bring occurrences.

1. Each entry moves the times of streams, and so of the networks that wait for them.
2. Networks on whose rules others rest come first. Each takes in its new occurrences with its new times.
3. What rules derived goes to the networks that read their streams. The other rows become solutions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import IRI, LITERAL
from engine.kernel.state import layout as c
from engine.messages import Entry, Events, Finish, Micros, StateChange, Tick
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.partitioning import TimeSlices
from engine.runtime.dispatch import Layout, Listener
from engine.runtime.partition_filter import Feed
from engine.runtime.query_registry import Registry
from engine.runtime.result_assembly import assemble_solutions, list_parts, make_outlets, read_part
from engine.runtime.watermarks import (
    NO_TIME,
    Arrivals,
    NetworkTime,
    advance_stream,
    advance_to,
    concatenate_arrivals,
    find_latest,
    find_query_time,
    make_arrivals,
)
from epsparql import algebra as a

Ints = NDArray[np.int64]
Courses = Mapping[Listener, NetworkTime]
"""It says how a span moves the time of each network that it concerns."""


class SpanEvaluator:
    """Lets the networks of a registry take in spans of the log, and collects what they find."""

    def __init__(
        self,
        registry: Registry,
        keep_settled: Callable[[Iterable[pa.RecordBatch]], None] = lambda _: None,
        note_failure: Callable[[int, int], None] = lambda _registered, _entry: None,
    ) -> None:
        """Begin with nothing found.

        `keep_settled` is given what settled networks of revised queries find, which is no solution yet.
        `note_failure` is given each query that fails, by its registration, and the entry at which it does.
        """
        self.registry = registry
        self._keep_settled, self._note_failure = keep_settled, note_failure
        self.found: list[pa.RecordBatch] = []
        """These solutions were found since `take_found`."""
        self.changes: list[StateChange] = []
        """These queries have changed their state since then."""
        self._together: dict[Listener, list[Ints]] | None = None  # while a few entries are applied: what was found, to be made into solutions at once

    def take_found(self) -> tuple[list[pa.RecordBatch], list[StateChange]]:
        """Return what has been found since the last call, and which queries have changed their state."""
        taken = self.found, self.changes
        self.found, self.changes = [], []
        return taken

    # ------------------------------------------------------------ one entry
    def pass_entry(self, layout: Layout, entry: Events, latest: Micros, new: dict[Feed, Arrivals]) -> None:
        """Let the networks take in one entry that brings occurrences, whose latest end is given."""
        streams = self.registry.streams
        advance_to(streams, entry.stream, entry.watermark, latest)
        for listener in layout.by_stream.get(entry.stream, ()):
            member = listener.member
            time = find_query_time(listener.gate, layout.sources, streams, member.time)
            self._run(layout, listener, member.feed_one(entry.offset, time, listener.select_feeds(new)), new)

    def begin_together(self) -> None:
        """Begin to keep the rows that entries bring, to make them into solutions at once."""
        self._together = {}

    def end_together(self, layout: Layout) -> None:
        """Make solutions of all rows since `begin_together`."""
        together, self._together = self._together or {}, None
        for listener, parts in together.items():
            rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
            self._collect(layout, listener, rows, listener.member.network.planning.known, {})

    # ------------------------------------------------------------ a span of entries
    def read_span(
        self, entries: Sequence[Entry], arrived: Mapping[Feed, Arrivals], ends: Mapping[int, int]
    ) -> tuple[list[pa.RecordBatch], list[StateChange]]:
        """Let the networks take in a span, and return what it brings.

        Its occurrences are given by stream, their latest ends by offset.
        """
        layout, first = self.registry.settled_layout, entries[0] if entries else None
        if len(entries) == 1 and isinstance(first, Events) and layout is not None:
            self.pass_entry(layout, first, ends.get(first.offset, NO_TIME), dict(arrived))
        elif entries:
            self.run_courses(entries, self.find_courses(entries, ends), dict(arrived))
        return self.take_found()

    def find_courses(self, entries: Sequence[Entry], ends: Mapping[int, int]) -> Courses:
        """Move the times of streams by entries, and return how that moves the time of each network.

        Only occurrences on streams that a network does not wait for surely leave its time unchanged.
        """
        registry, courses = self.registry, dict[Listener, NetworkTime]()
        settled, layout, streams = registry.settled_layout is not None, registry.layout, registry.streams
        for k, entry in enumerate(entries):
            stream = advance_stream(streams, entry, ends)
            everyone = isinstance(entry, Tick | Finish) or (k == 0 and not settled)
            for listener in layout.order if everyone else layout.by_stream.get(stream or "", ()):
                if listener not in courses:
                    courses[listener] = NetworkTime.from_time(listener.member.time, len(entries))
                course = courses[listener]
                course.reach(k, find_query_time(listener.gate, layout.sources, streams, course.now))
                if everyone:
                    course.latest[k] = find_latest(listener.gate, streams)
        return courses

    def run_courses(self, entries: Sequence[Entry], courses: Courses, new: dict[Feed, Arrivals]) -> None:
        """Let the networks take in entries that move their times so, with the occurrences of these entries by stream.

        Networks on whose rules others rest come first.
        """
        layout = self.registry.layout
        for listener in layout.order:
            if listener in courses:
                feed = listener.member.feed(entries, courses[listener], listener.select_feeds(new))
                self._run(layout, listener, feed, new)

    def _run(self, layout: Layout, listener: Listener, feed: Ints, new: dict[Feed, Arrivals]) -> None:
        """Let a network's kernel take in a feed.

        Sort the rows found to its queries, and hand what rules derived to the networks that read it.
        """
        network = listener.member.network
        before = list(network.planned.values()) if network.background.coming is not None else []
        known, begun = network.planning.known, network.begun
        rows = network.feed(feed)
        if before:  # they may have been placed elsewhere
            outs = {planned.out: planned for planned in (*before, *network.planned.values())}
            self.registry.forget_layout()
            listener = replace(listener, outlets=make_outlets(outs.values(), silent=listener.member.silent))
            old = rows[:, c.OUT_END] <= begun
            for part, background in ((rows[old], known), (rows[~old], network.planning.known)):
                if len(part):
                    self._collect(layout, listener, part, background, new)
        elif len(rows) and self._together is not None and not (listener.member.revised or layout.sources):
            self._together.setdefault(listener, []).append(rows)
        elif len(rows):
            self._collect(layout, listener, rows, known, new)
        if network.host.failures or network.collectors.completions:
            self.note_ends(network)

    def note_ends(self, network: Network) -> None:
        """Note queries of a network that failed or completed meanwhile.

        A completed rule stays, silent: its stream's time goes on resting on what it reads.
        """
        registry = self.registry
        for failure in network.host.failures:
            entry = registry.registered.pop(failure.planned.registered)
            self._note_failure(entry.offset, failure.entry)
            registry.fallen[entry.offset] = entry
            registry.forget_layout()
            self.changes.append(StateChange(failure.planned.registered, failure.planned.source.name, failure.entry, "failed", failure.reason))
        for completion in network.collectors.completions:
            planned = completion.planned
            self.changes.append(StateChange(planned.registered, planned.source.name, completion.entry, "completed", completion.reason))
            if planned.writes is None and planned.registered in network.planned:
                del registry.registered[planned.registered]
                network.drop_query(planned.registered)
        if network.collectors.completions:
            registry.forget_layout()
            registry.members = [member for member in registry.members if member.network.planned]
        network.host.failures.clear()
        network.collectors.completions.clear()

    def _collect(self, layout: Layout, listener: Listener, rows: Ints, known: FactIndex, new: dict[Feed, Arrivals]) -> None:
        """Make solutions of rows of a network. `known` is the background at their instants."""
        registry, outlets, part = self.registry, listener.outlets, listener.member.part
        if isinstance(part, TimeSlices):
            rows = rows[part.select_solutions(rows[:, c.OUT_END], registry.share)]
        told = assemble_solutions(outlets, rows, registry.terms, known, tied=not registry.share.whole)
        if not listener.member.revised:
            self.found += told
        elif not listener.member.silent:
            self._keep_settled(told)
        for node, (planned, rule) in outlets.rules.items() if layout.sources else ():
            if any(rule.into in other.reads for other in layout.order if other.member is not listener.member):
                own = rows[rows[:, c.OUT_NODE] == node]
                if len(own):
                    feed = rule.into, part  # its readers are dealt out as it is
                    others = [new[feed]] if feed in new else []
                    new[feed] = concatenate_arrivals([*others, self._derive(planned, rule, own)])

    def _derive(self, planned: Planned, rule: a.Construct, rows: Ints) -> Arrivals:
        """Return a rule's triples as occurrences for the networks that read its stream; the rule's own network has
        them already.
        """
        terms, parts = self.registry.terms, []
        for triple in rule.template:
            s, p, o = (read_part(planned, rows, part, terms) for part in list_parts(triple))
            good = (s > 0) & (p > 0) & (o > 0) & (terms.kinds[s] < LITERAL) & (abs(terms.kinds[p]) == IRI)
            graph = np.zeros(len(rows), np.int64)
            parts.append(make_arrivals(s, p, o, graph, rows[:, c.OUT_START], rows[:, c.OUT_END], rows[:, c.OUT_ENTRY]).where(good))
        return concatenate_arrivals(parts)
