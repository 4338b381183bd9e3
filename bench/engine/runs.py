"""This bench runs sessions and WHILE runs over groups whose elements take turns.

The cost of an event is to depend neither on how many groups there are nor on how long runs are.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.measurement import WrongCount, line, one_core, peak_rss_mb
from bench.workloads import BATCH, BEGIN, EVERY, TermColumn, engine_with, make_block
from engine.messages import Block

_QUERIES = {
    "session": "SELECT ?s (COUNT(*) AS ?n) (MAX(?v) AS ?most) WHERE {{ ?s :price ?v }} GROUP BY ?s WINDOW [SESSION PT{gap}S {report}]",
    "while": """SELECT ?s (FIRST(?v) AS ?from) (LAST(?v) AS ?to) WHERE {{ ?s :price ?v }} GROUP BY ?s HAVING (COUNT(*) >= 2)
WINDOW [RUN WHILE (?v > PREV(?v)) {report}]""",
}
_REPORTS = ("CLOSED", "EACH")
_PAUSES = 4  # turns without an element between two runs of a group; a session ends after two


@dataclass(frozen=True, slots=True)
class Turns:
    """Describes a feed: each of the groups has `runs` runs of `length` elements, one event a millisecond, all groups
    in turn.
    """

    groups: int
    length: int
    runs: int

    @classmethod
    def about(cls, n: int, groups: int, length: int) -> "Turns":
        """Return a feed of about n events, at least two runs a group."""
        return cls(groups, length, max(2, n // (groups * length)))

    @property
    def events(self) -> int:
        return self.groups * self.length * self.runs

    def count_reports(self, kind: str, report: str) -> int:
        """Return how many reports must come out: the last runs stay open, and so does the last instant."""
        if report == "CLOSED":
            return self.groups * (self.runs - 1)
        return self.events - 1 if kind == "session" else self.groups * self.runs * (self.length - 1) - 1


SHAPES = ((1_000, 10), (1_000, 100), (100, 1_000), (5, 100_000), (10_000, 10), (100_000, 10), (1_000_000, 10))
"""Groups, and elements of a run: first runs become longer, then there are more groups of runs of 10."""


def measure(n: int, shapes: Sequence[tuple[int, int]] = SHAPES) -> Iterator[str]:
    """Yield one JSON line for each query, report and shape; the time is the engine's, from blocks of events to blocks
    of solutions.

    Raises: WrongCount.
    """
    one_core()
    for kind in _QUERIES:
        for report in _REPORTS:
            _run(kind, report, Turns(10, 2, 2))  # compiled code is loaded
            for groups, length in shapes:
                turns = Turns.about(n, groups, length)
                solutions, wall_s, cpu_s = _run(kind, report, turns)
                if solutions != turns.count_reports(kind, report):
                    raise WrongCount(f"{kind} {report} of {groups} groups and {length} elements", solutions, turns.count_reports(kind, report))
                what = {"query": kind, "report": report, "groups": groups, "length": length, "n": turns.events, "solutions": solutions}
                rates = {"events_per_s": round(turns.events / wall_s), "events_per_cpu_s": round(turns.events / cpu_s)}
                yield line("runs", **what, **rates, peak_rss_mb=peak_rss_mb())


def turn_blocks(turns: Turns) -> Iterator[Block]:
    """Yield the events; a value is its element's place in its run, and a pause stands between runs."""
    for offset, first in enumerate(range(0, turns.events, BATCH), 1):
        event = np.arange(first, min(first + BATCH, turns.events), dtype=np.int64)
        n, turn = len(event), event // turns.groups
        subjects, which = np.unique(event % turns.groups, return_inverse=True)
        values, value = np.unique(turn % turns.length, return_inverse=True)
        times = (event + _PAUSES * turns.groups * (turn // turns.length)) * EVERY + BEGIN
        subject = TermColumn(which, [f"<http://example.org/id/{k}>" for k in subjects.tolist()])
        price = TermColumn(value, [f'"{k}"^^<http://www.w3.org/2001/XMLSchema#integer>' for k in values.tolist()])
        yield make_block(offset, (subject, TermColumn(np.zeros(n, np.int64), ["<http://example.org/price>"]), price), times)


def _run(kind: str, report: str, turns: Turns) -> tuple[int, float, float]:
    """Return the solutions, and the seconds of the clock and of the CPU that they took."""
    gap_s = 2 * turns.groups * EVERY / 1_000_000
    engine, solutions, wall_s, cpu_s = engine_with(_QUERIES[kind].format(report=report, gap=gap_s)), 0, 0.0, 0.0
    for block in turn_blocks(turns):
        wall, cpu = time.perf_counter(), time.process_time()
        solutions += engine.feed(block).solutions.num_rows
        wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
    return solutions, wall_s, cpu_s
