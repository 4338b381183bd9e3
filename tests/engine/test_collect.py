"""Groups, solution modifiers and ASK by themselves: tables with answers derived by hand from semantics.md section 7.

A feed is a list of solutions, `cells@start-end`, given at the instant `end`; `cells@` is timeless, given at instant 0.
"""

import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.collect import AskCollector, Collector, GroupCollector, ModifiersCollector, Moments, Rows
from engine.collect.aggregates import folding
from engine.collect.order import sort_key
from engine.collect.rows import no_rows, rows_of
from engine.groups.native import fits
from engine.kernel import columns as c
from engine.terms import TermTable
from epsparql import algebra as a
from epsparql.algebra import Aggregate, AggregateFunction, Modifiers, OrderKey, RangeWindow, RowsWindow
from epsparql.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, Variable
from tests.oracle_groups import reports
from tests.oracle_solutions import Solution

K, V, W, G = (Variable(name) for name in "kvwg")
RANK = Variable("_:rank")
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


def rows(part: Sequence[Given], width: int, terms: TermTable) -> Rows:
    cells = [[0 if text == "?" else terms.intern(str(term(text))) for text in texts] for _, texts in part]
    times = [(c.BIG, -c.BIG) if interval is None else interval for interval, _ in part]
    return rows_of([start for start, _ in times], [end for _, end in times], cells, width)


class Host:
    """Calls a collector as the engine does: at each instant of the feed, and when it is due; `cut` restores it anew before each call."""

    def __init__(self, make: Callable[[], Collector], cut: bool) -> None:
        self.make, self.cut = make, cut
        self.collector = make()
        self.terms = TermTable()
        self.found: list[str] = []

    def call(self, now: int, given: Rows, wakes: Rows, horizon: int | None) -> None:
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
    """Notes the calls, and has a collector that is deferred decide on several at once: as many as `cuts` say, the rest at last."""

    def __init__(self, make: Callable[[], Collector], cuts: Sequence[int] = (), restored: bool = False) -> None:
        super().__init__(make, False)
        self.cuts, self.restored = cuts, restored
        self.noted: list[tuple[int, int, Rows]] = []
        self.finished: int | None = None

    def call(self, now: int, given: Rows, wakes: Rows, horizon: int | None) -> None:
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

    def _decide(self, deferred: GroupCollector, notes: list[tuple[int, int, Rows]]) -> None:
        now, side = (np.concatenate([np.full(len(note[2]), note[k], np.int64) for note in notes]) for k in (0, 1))
        start, end, cells = (np.concatenate([getattr(part, name) for _, _, part in notes]) for name in ("start", "end", "cells"))
        given = deferred.decide_all(Moments(now, now + 7, side, Rows(start, end, cells)), self.finished, self.terms)
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


EVER = [
    ("COUNT", "a 1@1, a 2@2, b 5@2, a ?@3", "a 1@1-1, a 2@1-2, b 1@2-2, a 2@1-3"),
    ("COUNT *", "a 1@1, a ?@2", "a 1@1-1, a 2@1-2"),
    ("COUNT DISTINCT", "a 1@1, a 1@2, a 2@3", "a 1@1-1, a 1@1-2, a 2@1-3"),
    ("COUNT DISTINCT *", "a 1@1, a 1@2, a 2@3, a ?@4", "a 1@1-1, a 1@1-2, a 2@1-3, a 3@1-4"),
    ("SUM", "a 1@1, a 2.5@2, a 1e0@3, a 1@4", "a 1@1-1, a 3.5@1-2, a 4.5E0@1-3, a 5.5E0@1-4"),
    ("SUM", "a 1@1, a x@2, a 1@3", "a 1@1-1, a ?@1-2, a ?@1-3"),
    ("SUM", "a 0.1@1, a 0.2@2", "a 0.1@1-1, a 0.3@1-2"),
    ("SUM", "a 0.1e0@1, a 0.2e0@1, a 0.3e0@1", "a 6.0E-1@1-1"),  # exact, and rounded once: not (0.1 + 0.2) + 0.3
    ("SUM", "a 1e0@1, a 1e100@2, a -1e100@3", "a 1.0E0@1-1, a 1.0E100@1-2, a 1.0E0@1-3"),
    ("SUM", "a 1e308@1, a 1.1e308@2, a -1e308@3", "a 1.0E308@1-1, a INF@1-2, a 1.1E308@1-3"),
    ("SUM", "a INF@1, a 1@2, a '-INF'^double@3", "a INF@1-1, a INF@1-2, a NaN@1-3"),
    ("SUM", "a '-0.0'^double@1, a '-0.0'^double@2", "a 0.0E0@1-1, a 0.0E0@1-2"),
    ("SUM", "a 0.1@1, a 1e0@2, a 4.9e-324@3", "a 0.1@1-1, a 1.1E0@1-2, a 1.1E0@1-3"),
    ("SUM", "a '1.5'^float@1, a 16777216@2, a 1e0@3", "a '1.5E0'@1-1, a '1.6777218E7'@1-2, a 1.67772185E7@1-3"),
    (
        "SUM",
        "a 9223372036854775807@1, a 9223372036854775807@2, a 0.5@3",
        "a 9223372036854775807@1-1, a 18446744073709551614@1-2, a 18446744073709551614.5@1-3",
    ),
    ("SUM DISTINCT", "a 1@1, a 1@2, a 1.0@3", "a 1@1-1, a 1@1-2, a 2.0@1-3"),
    ("AVG", "a 1@1, a 2@2, a 2@3", "a 1.0@1-1, a 1.5@1-2, a 1.666666666666666666666666666666667@1-3"),
    ("AVG", "a 1e0@1, a 2@2, a ?@3", "a 1.0E0@1-1, a 1.5E0@1-2, a ?@1-3"),
    ("AVG DISTINCT", "a 1@1, a 1@2, a 4@3", "a 1.0@1-1, a 1.0@1-2, a 2.5@1-3"),
    ("MIN", "a 3@1, a 1.0@2, a 1@3, a ?@4, a x@5", "a 3@1-1, a 1.0@1-2, a 1.0@1-3, a 1.0@1-4, a x@1-5"),
    ("MAX", "a 3@1, a 'z'@2, a 7@3", "a 3@1-1, a 'z'@1-2, a 'z'@1-3"),
    ("SAMPLE", "a ?@1, a 2@2, a 1@2, a 0@3", "a ?@1-1, a 1@1-2, a 1@1-3"),
    ("GROUP_CONCAT", "a 'x'@1, a 'y'@en@2, a 1@3, a i@4", "a 'x'@1-1, a 'x|y'@1-2, a 'x|y|1'@1-3, a 'x|y|1|i'@1-4"),
    ("GROUP_CONCAT", "a 'x'@1, a _:b@2, a 'x'@3", "a 'x'@1-1, a ?@1-2, a ?@1-3"),
    ("GROUP_CONCAT DISTINCT", "a 'x'@1, a 'y'@2, a 'x'@3", "a 'x'@1-1, a 'x|y'@1-2, a 'x|y'@1-3"),
    ("COUNT,SUM", "a 1@0-3, a 2@2-3, a 2@1-3, ? 1@4", "a 3 5@0-3, ? 1 1@4-4"),
    ("COUNT", "a 1@, a 2@0, a 3@-5-0", "a 3@-5-0"),  # a timeless solution stands where it is given
    ("COUNT", "a 1@, a 1@0", "a 1@0-0"),  # where an equal timed solution is the same one
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("aggregates", "feed", "found"), EVER)
def test_groups_without_window(aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, None), feed, cut) == found.split(", ")
    assert sorted(Later(grouping(aggregates, None), [1], cut).run(feed, {}, True)) == sorted(found.split(", "))


RANGE = [
    ("COUNT", "a 1@1, a 2@5, a 3@11, a 4@15", "a 1@1-1, a 2@1-5, a 2@5-11, a 2@11-15"),  # (t - 10, t]
    ("COUNT", "a 1@1, b 2@20, a 3@21", "a 1@1-1, b 1@20-20, a 1@21-21"),
    ("COUNT *", "a 1@0-9, a 2@3-10, a 3@1-12, a 4@19, a 5@25", "a 1@0-9, a 2@0-10, a 3@0-12, a 3@1-19, a 2@19-25"),
    ("COUNT DISTINCT", "a 1@1, a 1@2, a 2@3, a 2@11, a 2@12", "a 1@1-1, a 1@1-2, a 2@1-3, a 2@2-11, a 1@3-12"),
    ("SUM", "a 1@1, a 2.5@2, a 3@11, a 4@12", "a 1@1-1, a 3.5@1-2, a 5.5@2-11, a 7@11-12"),
    ("SUM", "a 1@1, a x@2, a 3@11, a 4@12", "a 1@1-1, a ?@1-2, a ?@2-11, a 7@11-12"),
    ("SUM", "a 0.1e0@1, a 1e20@2, a -1e20@3, a 0.1@11, a 1@12", "a 1.0E-1@1-1, a 1.0E20@1-2, a 1.0E-1@1-3, a 1.0E-1@2-11, a -1.0E20@3-12"),
    ("SUM DISTINCT", "a 1@1, a 2@2, a 1@3, a 0@11, a 0@12, a 0@13", "a 1@1-1, a 3@1-2, a 3@1-3, a 3@2-11, a 1@3-12, a 0@11-13"),
    ("AVG", "a 1@1, a 2@5, a 6@11", "a 1.0@1-1, a 1.5@1-5, a 4.0@5-11"),
    ("AVG DISTINCT", "a 1e0@1, a 1e0@2, a 4e0@3, a 4e0@12", "a 1.0E0@1-1, a 1.0E0@1-2, a 2.5E0@1-3, a 4.0E0@3-12"),
    ("MIN", "a 1@1, a 3@2, a 2@3, a 1.0@4, a 5@11, a 6@14", "a 1@1-1, a 1@1-2, a 1@1-3, a 1@1-4, a 1.0@2-11, a 5@11-14"),
    ("MAX", "a 9@1, a 3@2, a 5@3, a ?@11, a 1@13", "a 9@1-1, a 9@1-2, a 9@1-3, a 5@2-11, a 1@11-13"),
    ("MAX DISTINCT", "a 9@1, a 3@2, a 9@3, a 3@11, a 2@12, a 2@13", "a 9@1-1, a 9@1-2, a 9@1-3, a 9@2-11, a 9@3-12, a 3@11-13"),
    ("SAMPLE", "a ?@1, a 2@2, a 1@3, a 1@12, a ?@24", "a ?@1-1, a 2@1-2, a 2@1-3, a 1@3-12, a ?@24-24"),
    ("SAMPLE DISTINCT", "a 2@1, a 1@2, a 2@3, a 1@11", "a 2@1-1, a 2@1-2, a 2@1-3, a 1@2-11"),
    ("GROUP_CONCAT", "a 'x'@1, a _:b@2, a 'y'@11, a 'z'@12", "a 'x'@1-1, a ?@1-2, a ?@2-11, a 'y|z'@11-12"),
    ("GROUP_CONCAT DISTINCT", "a 'x'@1, a 'y'@2, a 'x'@3, a 'z'@11", "a 'x'@1-1, a 'x|y'@1-2, a 'x|y'@1-3, a 'y|x|z'@2-11"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("aggregates", "feed", "found"), RANGE)
def test_range(aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, RangeWindow(10)), feed, cut) == found.split(", ")


ROWS = [
    (1, "COUNT,SAMPLE", "a 1@1, a 2@2, b 1@2", "a 1 1@1-1, a 1 2@2-2, b 1 1@2-2"),
    (2, "SUM", "a 1@0-1, a 2@2, b 9@3, a 3@3, a 4@3", "a 1@0-1, a 3@0-2, a 7@3-3, b 9@3-3"),
    (2, "GROUP_CONCAT", "a 3@5-9, a 1@6-9, a 2@5-9", "a '3|1'@5-9"),  # the last two by end, start, terms
    (3, "COUNT *", "a 1@1, a 2@1, a 3@1, a 4@1, a 5@2", "a 3@1-1, a 3@1-2"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("count", "aggregates", "feed", "found"), ROWS)
def test_rows(count: int, aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, RowsWindow(count)), feed, cut) == found.split(", ")


STEP = [
    (10, 5, "COUNT", "a 1@1, a 2@5, b 3@6", "a 2@-5-5, a 2@0-10, b 1@0-10, b 1@5-15"),
    (10, 5, "SUM", "a 1@0, a 2@1", "a 1@-10-0, a 3@-5-5, a 2@0-10"),
    (4, 10, "COUNT", "a 1@3, a 2@6, a 3@7, b 4@20", "a 1@6-10, b 1@16-20"),  # what lies between the windows is never seen
    (10, 5, "COUNT", "a 1@-7, a 2@-5", "a 2@-15--5, a 2@-10-0"),
    (10, 5, "MAX", "a 1@", "a 1@-10-0, a 1@-5-5"),
    (10, 10, "COUNT", "a 1@0-2, a 2@1-30", "a 1@0-10, a 1@20-30"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("length", "step", "aggregates", "feed", "found"), STEP)
def test_steps(length: int, step: int, aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, RangeWindow(length, step)), feed, cut) == found.split(", ")


def test_steps_wait_while_the_stream_runs() -> None:
    assert run(grouping("COUNT", RangeWindow(10, 5)), "a 1@1, a 2@5, b 3@6", False, finished=False) == ["a 2@-5-5"]


def test_what_timers_bring_after_the_end_schedules_nothing() -> None:
    collector, terms = grouping("COUNT", RangeWindow(10, 5))(), TermTable()
    none = no_rows(2)

    def decide(now: int, feed: str, horizon: int | None) -> int:
        return len(collector.decide(now, rows(solutions(feed), 2, terms) if feed else none, none, horizon, terms))

    assert decide(1, "a 1@1", None) == 0
    assert collector.due() == 5
    assert [decide(5, "", 3), collector.due()] == [1, 10]
    assert [decide(8, "b 1@1-8", 3), collector.due()] == [0, 10]
    assert [decide(10, "", 3), collector.due()] == [2, c.FOREVER]
    assert decide(15, "c 1@15", 3) == 0


ALL_OF_NOTHING = "COUNT,COUNT *,SUM,AVG,GROUP_CONCAT,MIN,MAX,SAMPLE,COUNT DISTINCT"
IMPLICIT = [
    (None, ALL_OF_NOTHING, "", "0 0 0 0 '' ? ? ? 0@0-0"),
    (RangeWindow(10), ALL_OF_NOTHING, "", "0 0 0 0 '' ? ? ? 0@0-0"),
    (RowsWindow(3), ALL_OF_NOTHING, "", "0 0 0 0 '' ? ? ? 0@0-0"),
    (None, "COUNT", "a 1@5, b 2@6", "0@0-0, 1@5-5, 2@5-6"),
    (None, "COUNT", "a 1@-3-0, b 2@6", "1@-3-0, 2@-3-6"),
    (None, "COUNT,SUM", "a 1@, b 2@6", "1 1@0-0, 2 3@0-6"),
    (RangeWindow(10), "COUNT", "a 1@5, b 2@20", "0@0-0, 1@5-5, 1@20-20"),
    (RowsWindow(1), "SUM", "a 1@5, b 2@20", "0@0-0, 1@5-5, 2@20-20"),
    (RangeWindow(10, 5), "COUNT", "a 1@3", "1@-5-5, 1@0-10"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("window", "aggregates", "feed", "found"), IMPLICIT)
def test_the_implicit_group(window: RangeWindow | RowsWindow | None, aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, window, ()), feed, cut, {0: ["?"]}) == found.split(", ")


@pytest.mark.parametrize("cut", [False, True])
def test_each_graph_has_an_implicit_group(cut: bool) -> None:
    def make() -> Collector:
        return GroupCollector((G,), ((V, Aggregate(AggregateFunction.COUNT, None)),), None, (K, G), G)

    assert run(make, "a g@1, a g@3", cut, {0: ["h"], 1: ["g"], 2: ["i"]}) == ["h 0@0-0", "g 1@1-1", "i 0@2-2", "g 2@1-3"]


def test_wakes_are_not_for_groups_by_key() -> None:
    assert run(grouping("COUNT", None), "a 1@1", False, {0: ["?"]}) == ["a 1@1-1"]


def test_keys_and_arguments_that_nothing_binds() -> None:
    def make() -> Collector:
        return GroupCollector((W,), ((V, Aggregate(AggregateFunction.COUNT, a.Var(W))),), None, (K, V))

    assert run(make, "a 1@1, b 1@1", False) == ["? 0@1-1"]


def test_groups_without_aggregates() -> None:
    def make() -> Collector:
        return GroupCollector((K,), (), None, (K, V))

    assert run(make, "a 1@1, a 2@1, b 1@2", False) == ["a@1-1", "b@2-2"]


ARGUMENTS = [
    (a.Arithmetic(a.Operator.MULTIPLY, a.Var(V), a.Constant(term("2"))), "a 1@1, a 2@2", "a 2@1-1, a 6@1-2"),
    (a.Call("SECONDS", (a.Time(a.TimeFunction.END),)), "a 1@1000000, a 1@2000000", "a 1.0@1000000-1000000, a 3.0@1000000-2000000"),
    (a.Call("SECONDS", (a.Call("NOW", ()),)), "a 1@, a 1@2000000", "a 0.0@0-0, a 2.0@0-2000000"),
    (a.Call("SECONDS", (a.Time(a.TimeFunction.END),)), "a 1@, b 1@0, b 1@", "a ?@0-0, b 0.0@0-0"),  # a timeless solution has no times
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("argument", "feed", "found"), ARGUMENTS)
def test_arguments(argument: a.Expression, feed: str, found: str, cut: bool) -> None:
    def make() -> Collector:
        return GroupCollector((K,), ((W, Aggregate(AggregateFunction.SUM, argument)),), None, (K, V))

    assert run(make, feed, cut) == found.split(", ")


def test_random_arguments_differ_by_solution_and_not_by_run() -> None:
    def make() -> Collector:
        return GroupCollector((K,), ((W, Aggregate(AggregateFunction.COUNT, a.Call("BNODE", ()), True)),), None, (K, V), query="q")

    assert run(make, "a 1@1, a 2@1, a 1@2", False) == ["a 2@1-1", "a 3@1-2"]

    def sample() -> Collector:
        return GroupCollector((K,), ((W, Aggregate(AggregateFunction.SAMPLE, a.Call("UUID", ()))),), None, (K, V), query="q")

    assert run(sample, "a 1@1", False) == run(sample, "a 1@1", True)


# ---------------------------------------------------------------- the definition, as the reference evaluator has it
ALL = tuple(
    (Variable(f"_:agg#{k}"), Aggregate(function, a.Var(V), distinct, "|"))
    for k, (function, distinct) in enumerate((function, distinct) for function in AggregateFunction for distinct in (False, True))
)
WINDOWS = st.one_of(
    st.none(),
    st.builds(RowsWindow, st.integers(1, 4)),
    st.builds(RangeWindow, st.integers(1, 8)),
    st.builds(RangeWindow, st.integers(1, 8), st.integers(1, 5)),
)
VALUES = st.sampled_from(["?", "1", "2", "1.0", "0.5", "1.5e0", "0.1e0", "NaN", "x", "_:b", "'s'", "'PT1H'^duration"])
SOLUTIONS = st.lists(st.tuples(st.sampled_from("ab?"), VALUES, st.integers(0, 5), st.integers(0, 12)), max_size=14)


NATIVE = tuple((variable, aggregate) for variable, aggregate in ALL if fits(folding([aggregate]).held))
WORTHS = st.one_of(
    VALUES,
    st.sampled_from(["-1", "01", "1e0", "-0.0e0", "2.50", "-0.125", "1e308", "-1e308", "4.9e-324", "INF", "'-INF'^double", "0.1e0", "1e16", "true"]),
    st.sampled_from(
        ["9007199254740993", "9007199254740992e0", "4611686018427387903", "4611686018427387904", "-4611686018427387903", "99999999999999999999"]
    ),
    st.sampled_from(
        ["0.1", "0.123456789012345678", "0.1234567890123456789", "1000000000000.5", "'1.5'^float", "'7'^int", "'2013-01-01T00:00:00Z'^dateTime"]
    ),
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: f"'{x!r}'^double"),
)


@given(
    WINDOWS,
    st.sampled_from([(K,), ()]),
    st.lists(st.tuples(st.sampled_from("ab?"), WORTHS, st.integers(0, 5), st.integers(0, 12)), max_size=14),
    st.lists(st.sampled_from(NATIVE), max_size=3),
    st.lists(st.integers(0, 4), max_size=3),
    st.booleans(),
)
def test_deferred_groups_report_the_same(
    window: RangeWindow | RowsWindow | None,
    keys: tuple[Variable, ...],
    rows_: list[tuple[str, str, int, int]],
    aggregates: list[tuple[Variable, Aggregate]],
    cuts: list[int],
    restored: bool,
) -> None:
    def make() -> Collector:
        return GroupCollector(keys, tuple(dict(aggregates).items()), window, (K, V))

    feed = ", ".join(sorted({f"{k} {v}@{end - length}-{end}" for k, v, length, end in rows_}, key=lambda text: int(text.rpartition("-")[2])))
    wakes = {} if keys else {0: ["?"]}
    assert sorted(Later(make, cuts, restored).run(feed, wakes, True)) == sorted(Host(make, False).run(feed, wakes, True))


@given(WINDOWS, st.sampled_from([(K,), ()]), SOLUTIONS, st.booleans())
def test_groups_agree_with_the_definition(
    window: RangeWindow | RowsWindow | None, keys: tuple[Variable, ...], rows_: list[tuple[str, str, int, int]], cut: bool
) -> None:
    group = a.Group(a.Bgp(()), keys, ALL, window)
    feed = ", ".join(sorted({f"{k} {v}@{end - length}-{end}" for k, v, length, end in rows_}, key=lambda text: int(text.rpartition("-")[2])))
    host = Host(lambda: GroupCollector(keys, ALL, window, (K, V)), cut)
    host.run(feed, {} if keys else {0: ["?"]}, True)
    found = {oracle(cells, interval) for interval, cells in solutions(feed)} if feed else set()
    horizon = max((x.end for x in found if x.end is not None), default=0)
    expected = reports(group, found, 0, horizon, lambda e, x: x.lookup(e.variable) if isinstance(e, a.Var) else None)
    assert sorted(host.found) == sorted(written(x, (*keys, *(v for v, _ in ALL))) for x in expected)


def oracle(cells: list[str], interval: tuple[int, int] | None) -> Solution:
    start, end = interval or (None, None)
    return Solution(frozenset((v, term(text)) for v, text in zip((K, V), cells, strict=True) if text != "?"), start, end)


def written(x: Solution, variables: Sequence[Variable]) -> str:
    terms = TermTable()
    return " ".join(shown(terms.intern(str(x.lookup(v))) if x.lookup(v) else 0, terms) for v in variables) + f"@{x.start}-{x.end}"


# ---------------------------------------------------------------- the order
IN_ORDER = [
    "?", "_:a", "_:b", "a", "a/b", "b", "NaN", "-INF", "-1", "0.5", "1", "1.5e0", "'9007199254740992'^double", "9007199254740993", "INF",
    "''", "'a'", "'\uffff'", "'\U00010000'", "'false'^boolean", "true",
    "'2013-01-01T00:00:00Z'^dateTime", "'2013-01-01T00:00:00-01:00'^dateTime", "'-PT1S'^duration", "'PT59M'^dayTimeDuration", "'PT1H'^duration",
    "'P1M'^duration", "'a'@en", "'a'@fr", "'x'^integer",
]  # fmt: skip
EQUALS = [("1", "1.0"), ("0e0", "'-0.0'^double"), ("true", "'1'^boolean"), ("'PT1H'^duration", "'PT60M'^dayTimeDuration")]


def test_the_order_is_total() -> None:
    keys = [sort_key(None if text == "?" else term(text)) for text in IN_ORDER]
    for k, key in enumerate(keys):
        assert all(other < key for other in keys[:k])
        assert all(key < other for other in keys[k + 1 :])


@pytest.mark.parametrize(("left", "right"), EQUALS)
def test_equals_of_the_order(left: str, right: str) -> None:
    assert sort_key(term(left)) == sort_key(term(right))


def order(*keys: str) -> tuple[OrderKey, ...]:
    return tuple(OrderKey(a.Var(Variable(key.lstrip("-"))), key.startswith("-")) for key in keys)


MODIFIERS = [
    (Modifiers(), "b 1@0-1, a 2@1, a 1@0-1, a 1@2", "a 1 #1@0-1, b 1 #2@0-1, a 2 #3@1-1, a 1 #1@2-2"),
    (Modifiers(order("v")), "a 2@1, b ?@1, c 1@1, d _:x@1", "b ? #1@1-1, d _:x #2@1-1, c 1 #3@1-1, a 2 #4@1-1"),
    (Modifiers(order("-v")), "a 1@1, b 2@1, c 1.0@1", "b 2 #1@1-1, a 1 #2@1-1, c 1.0 #3@1-1"),  # equals stay in the order of terms
    (Modifiers(order("v", "-k")), "a 1@1, c 1@1, b 0@1", "b 0 #1@1-1, c 1 #2@1-1, a 1 #3@1-1"),
    (Modifiers(order("v"), offset=1, limit=2), "a 3@1, b 1@1, c 2@1, a 0@2, b 1@3", "c 2 #1@1-1, a 3 #2@1-1"),
    (Modifiers(offset=3), "a 1@1, b 1@1, a 1@2, b 1@2, c 1@2", "b 1 #1@2-2, c 1 #2@2-2"),
    (Modifiers(limit=3), "a 1@1, b 1@1, a 1@2, b 1@2, c 1@3", "a 1 #1@1-1, b 1 #2@1-1, a 1 #1@2-2"),
    (Modifiers(limit=0), "a 1@1", ""),
    (Modifiers(), "b 1@, a 1@0, a 2@-1-0", "a 2 #1@-1-0, a 1 #2@0-0, b 1 #3@"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("modifiers", "feed", "found"), MODIFIERS)
def test_modifiers(modifiers: Modifiers, feed: str, found: str, cut: bool) -> None:
    assert run(lambda: ModifiersCollector(modifiers, (K, V), False, False, (K, V), RANK), feed, cut) == [*filter(None, found.split(", "))]


PER_REPORT = [
    (Modifiers(order("v"), limit=1), "a 3@1, b 1@1, a 0@2, b 1@2", "b 1 #1@1-1, a 0 #1@2-2"),
    (Modifiers(order("v"), offset=1), "a 3@1, b 1@1, a 0@2", "a 3 #1@1-1"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("modifiers", "feed", "found"), PER_REPORT)
def test_modifiers_count_per_report(modifiers: Modifiers, feed: str, found: str, cut: bool) -> None:
    assert run(lambda: ModifiersCollector(modifiers, (K, V), False, True, (K, V), RANK), feed, cut) == found.split(", ")


DISTINCT = [
    (Modifiers(), "a 1@1, a 2@1, b 1@1, a 1@0-1, a 1@2", "a@0-1, a@1-1, b@1-1, a@2-2"),
    (Modifiers(order("-v")), "a 1@1, a 3@1, b 2@1", "a@1-1, b@1-1"),
    (Modifiers(order("v"), limit=2), "b 1@1, b 2@1, a 3@1, c 4@1", "b@1-1, a@1-1"),
    (Modifiers(), "a 1@0, a 1@, a 2@", "a@, a@0-0"),  # a timeless solution stays timeless
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("modifiers", "feed", "found"), DISTINCT)
def test_distinct(modifiers: Modifiers, feed: str, found: str, cut: bool) -> None:
    assert run(lambda: ModifiersCollector(modifiers, (K,), True, False, (K, V)), feed, cut) == found.split(", ")


def test_of_a_query_timeless_solutions_stand() -> None:
    def make() -> Collector:
        return ModifiersCollector(Modifiers(limit=2), (K, V), False, False, (K, V), stands=True)

    assert run(make, "b 1@, a 1@, a 1@0, c 1@0", False) == ["a 1@0-0", "b 1@0-0"]


def test_projected_variables_that_nothing_binds() -> None:
    assert run(lambda: ModifiersCollector(Modifiers(), (W, K), True, False, (K, V)), "a 1@1, a 2@1", False) == ["a@1-1"]


@pytest.mark.parametrize("cut", [False, True])
def test_graphs_are_counted_apart(cut: bool) -> None:
    def make() -> Collector:
        return ModifiersCollector(Modifiers(order("-k"), limit=1), (K,), True, False, (K, G), graph=G)

    host = Host(make, cut)
    assert host.run("a g@1, b g@1, a h@1, c g@2, c i@2", {}, True) == ["b g@1-1", "a h@1-1", "c i@2-2"]
    assert not host.collector.done


def test_done() -> None:
    def done_after(feed: str) -> bool:
        host = Host(lambda: ModifiersCollector(Modifiers(limit=2), (K, V), False, False, (K, V)), cut=False)
        host.run(feed, {}, False)
        return host.collector.done

    assert not done_after("a 1@1")
    assert done_after("a 1@1, a 1@2, b 1@2")
    assert ModifiersCollector(Modifiers(limit=0), (K,), False, True, (K,)).done
    assert not ModifiersCollector(Modifiers(limit=1), (K,), False, True, (K,)).done


def test_a_key_that_is_an_error_comes_first() -> None:
    key = OrderKey(a.Arithmetic(a.Operator.MULTIPLY, a.Var(V), a.Constant(term("-1"))))
    assert run(lambda: ModifiersCollector(Modifiers((key,)), (K,), True, False, (K, V)), "a 1@1, b 2@1, c x@1", False) == ["c@1-1", "b@1-1", "a@1-1"]


ASKED = [
    ("a 1@3-5, b 1@1-5, c 1@7", {}, True, "true@1-5"),
    ("a 1@, b 1@5", {}, True, "true@0-0"),
    ("", {4: ["?"]}, True, "false@4-4"),
    ("", {4: ["?"]}, False, ""),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("feed", "wakes", "finished", "found"), ASKED)
def test_ask(feed: str, wakes: dict[int, list[str]], finished: bool, found: str, cut: bool) -> None:
    host = Host(lambda: AskCollector((K, V)), cut)
    assert host.run(feed, wakes, finished) == [*filter(None, [found])]
    assert host.collector.done is bool(found)


def test_ask_may_still_be_true_after_the_end() -> None:
    collector, terms = AskCollector((K,)), TermTable()
    assert len(collector.decide(1, no_rows(1), rows([(None, ["?"])], 1, terms), 1, terms)) == 0
    assert collector.due() == c.FOREVER - 1
    found = collector.decide(9, rows([((1, 9), ["a"])], 1, terms), no_rows(1), 1, terms)
    assert [shown(int(n), terms) for n in found.cells[0]] == ["true"]
    assert collector.due() == c.FOREVER


def test_windows_forget_groups() -> None:
    collector, terms = GroupCollector((K,), ((W, Aggregate(AggregateFunction.COUNT, a.Var(V))),), RangeWindow(10), (K, V)), TermTable()
    cells = np.array([[terms.intern(f"<{n}>"), terms.intern('"1"')] for n in range(100)], np.int64)
    for n in range(100):
        at = np.array([n], np.int64)
        collector.decide(n, Rows(at, at, cells[n : n + 1]), no_rows(2), None, terms)
    kept = collector.state()
    assert isinstance(kept, list)
    assert len(kept[2]) == 10
