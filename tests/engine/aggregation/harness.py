"""A host for collectors by themselves, and the notation of their tables.

A feed is a list of solutions, `cells@start-end`, given at the instant `end`; `cells@` is timeless, given at instant 0.
"""

import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from engine.aggregation import Collector, GroupCollector, Moments, Passage, RowBatch
from engine.aggregation.row_batch import no_rows, rows_of
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from epsparql import algebra as a
from epsparql.algebra import Aggregate, AggregateFunction, RangeWindow, RowsWindow
from epsparql.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, Variable

K, V, W, G = (Variable(name) for name in "kvwg")
RANK = Variable("_:rank")
NO_TIME = Passage(np.zeros(0, np.int64), np.zeros(0, np.int64))
Given = tuple[tuple[int, int] | None, list[str]]


def term(text: str) -> Term:
    """A number by its form, `'text'`, `'text'@en`, `'lexical'^type`, `_:b`, `true`, else an IRI."""
    if text.startswith("_:"):
        return BlankNode(text[2:])
    if text.startswith("'"):
        lexical, _, rest = text[1:].rpartition("'")
        if rest.startswith("@"):
            return Literal(lexical, RDF_LANG_STRING, rest[1:])
        return Literal(lexical, XSD + rest[1:]) if rest else Literal(lexical)
    if text == "true":
        return Literal(text, XSD + "boolean")
    if text[0] in "-0123456789" or text in ("NaN", "INF"):
        kind = "double" if "e" in text or text[-3:] in ("NaN", "INF") else "decimal" if "." in text else "integer"
        return Literal(text, XSD + kind)
    return Iri(text)


def shown(number: int, terms: TermTable) -> str:
    found = terms.term(number)
    if found is None:
        return "?"
    if isinstance(found, Literal):
        return found.lexical if found.datatype in (XSD + "integer", XSD + "decimal", XSD + "double", XSD + "boolean") else f"'{found.lexical}'"
    return found.value if isinstance(found, Iri) else str(found)


def solutions(feed: str) -> list[Given]:
    found: list[Given] = []
    for line in feed.split(","):
        cells, _, times = line.strip().rpartition("@")
        interval = re.fullmatch(r"(-?\d+)(?:-(-?\d+))?", times)
        found.append(((int(interval[1]), int(interval[2] or interval[1])) if interval else None, cells.split()))
    return found


def rows(part: Sequence[Given], width: int, terms: TermTable) -> RowBatch:
    cells = [[0 if text == "?" else terms.intern(str(term(text))) for text in texts] for _, texts in part]
    times = [(c.BIG, -c.BIG) if interval is None else interval for interval, _ in part]
    return rows_of([start for start, _ in times], [end for _, end in times], cells, width)


class Host:
    """Calls a collector as the engine does: at each instant of the feed, and when it is due; `cut` restores it anew
    before each call.
    """

    def __init__(self, make: Callable[[], Collector], cut: bool) -> None:
        self.make, self.cut = make, cut
        self.collector = make()
        self.terms = TermTable()
        self.found: list[str] = []

    def call(self, now: int, given: RowBatch, wakes: RowBatch, horizon: int | None) -> None:
        if self.cut:
            state = json.loads(json.dumps(self.collector.state()))
            self.collector = self.make()
            self.collector.restore(state)
        written = self.collector.decide(now, given, wakes, horizon, self.terms)
        ranked = RANK in self.collector.writes
        for start, end, cells in zip(written.start.tolist(), written.end.tolist(), written.cells.tolist(), strict=True):
            values = [shown(n, self.terms) for n in (cells[:-1] if ranked else cells)]
            self.found.append(" ".join(values + ([f"#{cells[-1]}"] if ranked else [])) + ("@" if start > end else f"@{start}-{end}"))

    def run(self, feed: str, wakes: dict[int, list[str]], finished: bool) -> list[str]:
        """Wakes come with the cells of the graph column last; a finished stream runs on until nothing is due."""
        width = len(self.collector.reads)
        none = no_rows(width)
        instants = {now: list(part) for now, part in groupby(solutions(feed) if feed else [], key=lambda s: s[0][1] if s[0] else 0)}
        last = max([*instants, *wakes], default=0)
        for now in sorted({*instants, *wakes}):
            while self.collector.due() < min(now, c.FOREVER - 1):
                self.call(self.collector.due(), none, none, None)
            awake = rows([(None, ["?"] * (width - 1) + [graph]) for graph in wakes.get(now, [])], width, self.terms)
            self.call(now, rows(instants.get(now, []), width, self.terms), awake, None)
        while finished and self.collector.due() < c.FOREVER:
            due = self.collector.due()
            self.call(last if due == c.FOREVER - 1 else due, none, none, last)
        return self.found


class Later(Host):
    """Notes the calls, and has a collector that is deferred decide on several at once: as many as `cuts` say, the
    rest at last.
    """

    def __init__(self, make: Callable[[], Collector], cuts: Sequence[int] = (), restored: bool = False) -> None:
        super().__init__(make, False)
        self.cuts, self.restored = cuts, restored
        self.noted: list[tuple[int, int, RowBatch]] = []
        self.finished: int | None = None

    def call(self, now: int, given: RowBatch, wakes: RowBatch, horizon: int | None) -> None:
        self.finished = horizon
        due = rows_of([c.BIG], [-c.BIG], [[0] * len(self.collector.reads)], len(self.collector.reads))
        self.noted += [(now, side, part) for side, part in ((c.LEFT, given), (c.BLOCKER, wakes), (c.RIGHT, due)) if len(part)]
        self.collector.decide(now, given, wakes, horizon, self.terms)

    def run(self, feed: str, wakes: dict[int, list[str]], finished: bool) -> list[str]:
        super().run(feed, wakes, finished)
        deferred = self._made()
        instants = sorted({now for now, _, _ in self.noted})
        for after in [*sorted(self.cuts), len(instants)]:
            part, instants = instants[:after], instants[after:]
            if part:
                self._decide(deferred, [note for note in self.noted if note[0] in part])
            if self.restored:
                deferred = self._restored(deferred)
        return self.found

    def _made(self) -> GroupCollector:
        made = self.make()
        assert isinstance(made, GroupCollector)
        made.defer()
        return made

    def _restored(self, old: GroupCollector) -> GroupCollector:
        new = self._made()
        new.restore(json.loads(json.dumps(old.state())))
        new.restore_tables({name: array.copy() for name, array in old.tables().items()})
        return new

    def _decide(self, deferred: GroupCollector, notes: list[tuple[int, int, RowBatch]]) -> None:
        now, side = (np.concatenate([np.full(len(note[2]), note[k], np.int64) for note in notes]) for k in (0, 1))
        start, end, cells = (np.concatenate([getattr(part, name) for _, _, part in notes]) for name in ("start", "end", "cells"))
        given = deferred.decide_all(Moments(now, now + 7, side, RowBatch(start, end, cells)), NO_TIME, self.finished, self.terms)
        assert (given.entry == given.rows.end + 7).all()
        for first, last, numbers in zip(given.rows.start.tolist(), given.rows.end.tolist(), given.rows.cells.tolist(), strict=True):
            self.found.append(" ".join(shown(n, self.terms) for n in numbers) + f"@{first}-{last}")


def run(make: Callable[[], Collector], feed: str, cut: bool, wakes: dict[int, list[str]] | None = None, finished: bool = True) -> list[str]:
    return Host(make, cut).run(feed, wakes or {}, finished)


def aggregate(text: str) -> Aggregate:
    """`SUM`, `SUM DISTINCT`, of ?v; `COUNT *`."""
    name, *rest = text.split()
    return Aggregate(AggregateFunction(name), None if "*" in rest else a.Var(V), "DISTINCT" in rest, "|")


def grouping(text: str, window: RangeWindow | RowsWindow | None, keys: tuple[Variable, ...] = (K,)) -> Callable[[], Collector]:
    aggregates = tuple((Variable(f"_:agg#{k}"), aggregate(one)) for k, one in enumerate(text.split(",")))
    return lambda: GroupCollector(keys, aggregates, window, (K, V))
