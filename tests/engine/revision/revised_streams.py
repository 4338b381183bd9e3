"""Revision by brute force (semantics.md section 14): what is present, and the solutions that it gives, computed anew
each time it is asked for.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.messages import ADD, DROP, Entry, Events, Facts, Finish, Register
from epsparql import algebra
from epsparql.algebra import Query
from epsparql.terms import Iri
from tests.reference.evaluator import Fact, solutions
from tests.reference.reasoning import background_changes
from tests.support.run_both import block, results, run
from verification.definitions.model import Micros, Occurrence

KNOWN = "urn:known"
"""This graph of the background changes."""


@dataclass(frozen=True, slots=True)
class BackgroundChange:
    """Represents a change of the background, with the watermarks that the streams had when it came."""

    kind: str
    facts: tuple[Fact, ...]
    watermarks: Mapping[str, Micros]

    @property
    def text(self) -> str:
        return "".join("{} {} {} .\n".format(*fact.triple) for fact in self.facts)

    def applied(self, known: frozenset[Fact]) -> frozenset[Fact]:
        new = frozenset(Fact(fact.triple, Iri(KNOWN)) for fact in self.facts)
        return known | new if self.kind == ADD else frozenset() if self.kind == DROP else new

    def find_begun(self, streams: Collection[str]) -> Micros | None:
        """Return the last instant that has begun without the change for readers of these streams; None if none has."""
        return min(self.watermarks[name] for name in streams) if self.watermarks.keys() >= set(streams) else None


@dataclass(slots=True)
class RevisedStreams:
    """Holds the occurrences of revisable streams that are present, with one horizon for all, and the changes of the
    background.
    """

    horizon: Micros
    present: dict[str, list[Occurrence]] = field(default_factory=dict)
    latest: dict[str, Micros] = field(default_factory=dict)
    changes: list[BackgroundChange] = field(default_factory=list)

    def watermark(self, stream: str) -> Micros | None:
        return None if stream not in self.latest else self.latest[stream] - self.horizon

    def send(self, stream: str, occurrence: Occurrence) -> bool:
        """Return whether the occurrence was in time."""
        self.latest.setdefault(stream, occurrence.end)
        if occurrence.end < self.latest[stream] - self.horizon:
            return False
        self.latest[stream] = max(self.latest[stream], occurrence.end)
        if occurrence not in self.present.setdefault(stream, []):
            self.present[stream].append(occurrence)
        return True

    def take_back(self, stream: str, occurrence: Occurrence) -> bool:
        """Return whether the occurrence was present, and within the horizon."""
        watermark = self.watermark(stream)
        if watermark is None or occurrence.end <= watermark or occurrence not in self.present.get(stream, []):
            return False
        self.present[stream].remove(occurrence)
        return True

    def learn(self, kind: str, facts: Sequence[Fact]) -> BackgroundChange:
        """Change the background."""
        change = BackgroundChange(kind, tuple(facts), {name: latest - self.horizon for name, latest in self.latest.items()})
        self.changes.append(change)
        return change

    # ------------------------------------------------------------ what stands
    def standing(self, queries: Mapping[str, Query], name: str, before: Micros | None = None) -> Counter[Any]:
        """Return the solutions of a query that end before an instant; None for all that the streams give if they are
        finished.
        """
        assert not self.changes
        return _before(before, Counter(solutions(queries, self.present, reached=self.latest)[name]))

    def standing_over_changes(self, query: algebra.Select, stream: str, before: Micros | None = None) -> Counter[Any]:
        """Return what `standing` does, of a query without rules, windows by time and timers, over a background that
        changes.
        """
        versions = [(-1, frozenset[Fact]())]
        for change in self.changes:
            begun = change.find_begun([stream])
            versions.append((-1 if begun is None else begun, change.applied(versions[-1][1])))
        return _before(before, background_changes.solutions(query, self.present.get(stream, []), versions))

    def replay(self, queries: Mapping[str, str], name: str, streams: Collection[str], before: Micros | None = None) -> Counter[Any]:
        """Return what `standing` does, by an engine that reads what is present in order, with each change where it
        takes effect.
        """
        log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Register(k, each, text), ()) for k, (each, text) in enumerate(queries.items())]
        changes = [(change.find_begun(streams), change) for change in self.changes]

        def bring(occurrences: Mapping[str, tuple[Occurrence, ...]], time: Micros) -> None:
            for stream in streams:
                own = occurrences.get(stream, ())
                log.append((Events(len(log), stream, len(own), time), own))

        def learn(until: Micros | None) -> None:
            while changes and (until is None or changes[0][0] is None or changes[0][0] < until):
                begun, change = changes.pop(0)
                if begun is not None:
                    bring({}, begun)
                log.append((Facts(len(log), KNOWN, change.text, change.kind), ()))

        for instant in sorted({each.end for stream in streams for each in self.present.get(stream, [])}):
            learn(instant)
            bring({stream: tuple(each for each in self.present.get(stream, []) if each.end == instant) for stream in streams}, instant)
        learn(None)
        if latest := [self.latest[stream] for stream in streams if stream in self.latest]:
            bring({}, max(latest))
        log += [(Finish(len(log) + k, stream), ()) for k, stream in enumerate(streams)]
        emitted = run([block(log)]).emitted
        found = results({name: queries[name]}, [each for each in emitted if each[0] == name])[name]
        assert isinstance(found, Counter)
        return _before(before, found)


def _before(instant: Micros | None, rows: Counter[Any]) -> Counter[Any]:
    return rows if instant is None else Counter({row: count for row, count in rows.items() if row[1][1] < instant})
