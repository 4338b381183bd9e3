"""What goals cost: memory of many, memory over a long stream, saving and restoring them."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from bench.line import line, one_core, peak_rss_mb, rss_mb
from bench.workloads import WORKLOADS, blocks, drawn, engine_with, moved
from engine.run import Engine

_WAITING = "SELECT * WHERE { {?s ?p ?o} SEQ {?s :never ?z} }"  # each event is a goal of three variables for good
_REPEATED = 100_000
"""Events whose terms come again and again: what is measured is goals, not terms."""
_IDS = 1_000
_SECOND = 1_000
"""Events of one second."""


def measure(goals: int, saved: int, seconds: int) -> Iterator[str]:
    """Three lines: memory of `goals` live goals, time to save and restore `saved` ones, memory over a stream of `seconds` with a window of 10 s."""
    yield _apart(_live, goals)
    yield _apart(_saved, saved)
    yield _apart(_long, seconds)


def _apart(part: Callable[[int], str], n: int) -> str:
    """In a process of its own, whose memory nothing else has touched."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(part, n).result()


def _live(goals: int) -> str:
    one_core()
    before, began = rss_mb(), time.perf_counter()
    engine = with_goals(goals)
    seconds = time.perf_counter() - began
    held = rss_mb()
    return line(
        "goals", part="live", goals=goals, rss_mb=held, peak_rss_mb=peak_rss_mb(), rss_before_mb=before,
        bytes_a_goal=round((held - before) * 2**20 / goals), goals_per_s=round(goals / seconds), position=engine.position,
    )  # fmt: skip


def _saved(goals: int) -> str:
    one_core()
    Engine.restore(with_goals(_IDS).snapshot())  # compiled code is loaded
    engine = with_goals(goals)
    began = time.perf_counter()
    data = engine.snapshot()
    saved = time.perf_counter()
    restored = Engine.restore(data)
    done = time.perf_counter()
    assert restored.position == engine.position
    return line("goals", part="saved", goals=goals, snapshot_s=round(saved - began, 3), restore_s=round(done - saved, 3), bytes=len(data))


def _long(seconds: int) -> str:
    """Every object is a new term, every second a block."""
    one_core()
    engine, matches, rss, hour = engine_with(WORKLOADS["W1"]), 0, dict[str, int](), drawn(seconds * _SECOND, _IDS)
    marks = {"after_10_s": 10, "after_1_min": 60, "after_10_min": 600, "end": seconds}
    for second, block in enumerate(blocks(hour, _SECOND), 1):
        matches += engine.feed(block).solutions.num_rows
        rss |= {f"rss_{name}_mb": rss_mb() for name, at in marks.items() if at == second}
    return line("goals", part="long", seconds=seconds, n=seconds * _SECOND, matches=matches, **rss)


def with_goals(goals: int) -> Engine:
    """An engine that has stored so many."""
    engine = engine_with(_WAITING)
    log = list(blocks(drawn(min(goals, _REPEATED), _IDS)))
    fed = 0
    while fed < goals:
        for block in log:
            if fed < goals:
                engine.feed(moved(block, engine.position, fed))
                fed += block.rows.num_rows
    return engine
