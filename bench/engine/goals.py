"""This bench measures what goals cost: memory of many, memory over a long stream, saving and restoring them, a server
that starts with many.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, one_core, peak_rss_mb, rss_mb
from bench.server.load import ARROW, post
from bench.server.processes import read_cpu_s, read_resident_mib
from bench.workloads import PREFIXES, WORKLOADS, Drawn, blocks, drawn, engine_with, moved
from engine.engine import Engine
from engine.messages import Block
from epsparql.client import Client
from pipeline.formats.batches.timestamps import iso
from pipeline.log.encoding.arrow_ipc import stream_of
from server.child_server import Child
from server.process import give_back_memory

_WAITING = "SELECT * WHERE { {?s ?p ?o} SEQ {?s :never ?z} }"  # each event is a goal of three variables for good
_ONCE = {"within": 'WITHIN "P30D"', "until": "UNTIL { ?s :never ?z }"}
_REPEATED = 100_000
"""This many events have terms that come again and again: then only goals take memory, and no terms."""
_IDS = 1_000
_STOP_S = 600.0
_NO_LIMIT = ("--max-partial-matches", "0")  # the event after the restart is a goal as well
_SECOND = 1_000
"""One second has this many events."""


def measure(goals: int, saved: int, seconds: int) -> Iterator[str]:
    """Yield seven lines about what goals cost.

    They are: memory of `goals` live goals, whose terms recur and whose subjects are new; a server that starts with
    these; time to save and restore `saved` goals; memory over a stream of `seconds` with a window of 10 s; ONCE PER
    with `saved` keys, both ways.
    """
    yield _apart(_live, goals)
    yield _apart(_live_new, goals)
    yield _restarted(goals)
    yield _apart(_saved, saved)
    yield _apart(_long, seconds)
    yield _apart(_once_within, saved)
    yield _apart(_once_until, saved)


def _apart(part: Callable[[int], str], n: int) -> str:
    """Run a part in a process of its own, whose memory nothing else has touched."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(part, n).result()


def _live(goals: int) -> str:
    return _held("live", goals, new=False)


def _live_new(goals: int) -> str:
    """Measure live goals, each of whose subjects is a term that no other goal has."""
    return _held("live, subjects new", goals, new=True)


def _held(part: str, goals: int, *, new: bool) -> str:
    one_core()
    before, began = rss_mb(), time.perf_counter()
    engine = with_goals(goals, new=new)
    seconds = time.perf_counter() - began
    fed = rss_mb()
    give_back_memory()  # as a server does each minute
    held = rss_mb()
    return line(
        "goals", part=part, goals=goals, rss_mb=held, rss_fed_mb=fed, peak_rss_mb=peak_rss_mb(), rss_before_mb=before,
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
    """Measure a long stream: every object is a new term, every second a block."""
    one_core()
    engine, matches, rss, hour = engine_with(WORKLOADS["W1"]), 0, dict[str, int](), drawn(seconds * _SECOND, _IDS)
    marks = {"after_10_s": 10, "after_1_min": 60, "after_10_min": 600, "end": seconds}
    for second, block in enumerate(blocks(hour, _SECOND), 1):
        matches += engine.feed(block).solutions.num_rows
        rss |= {f"rss_{name}_mb": rss_mb() for name, at in marks.items() if at == second}
    return line("goals", part="long", seconds=seconds, n=seconds * _SECOND, matches=matches, **rss)


def _once_within(keys: int) -> str:
    return _once("within", keys)


def _once_until(keys: int) -> str:
    return _once("until", keys)


def _once(part: str, keys: int) -> str:
    """Measure a ONCE PER of so many keys: each key's first event passes, and its second one does not."""
    one_core()
    engine, fed = engine_with(f"SELECT * WHERE {{ ?s ?p ?o }} ONCE PER ?s {_ONCE[part]}"), 0
    before, spent_s, passed = rss_mb(), [0.0, 0.0], [0, 0]
    for turn in range(2):
        for block in _events(keys, new=True):
            due = moved(block, engine.position, fed)
            began = time.process_time()
            passed[turn] += engine.feed(due).solutions.num_rows
            spent_s[turn] += time.process_time() - began
            fed += block.rows.num_rows
    if passed != [keys, 0]:
        raise WrongCount(f"ONCE PER {keys} keys", sum(passed), keys)
    give_back_memory()
    held, first_s, again_s = rss_mb(), *spent_s
    return line(
        "goals", part=f"once {part}", goals=keys, rss_mb=held, rss_before_mb=before, bytes_a_goal=round((held - before) * 2**20 / keys),
        cpu_us_first=round(first_s / keys * 1e6, 2), cpu_us_again=round(again_s / keys * 1e6, 2),
    )  # fmt: skip


def with_goals(goals: int, *, new: bool = False) -> Engine:
    """Return an engine that has stored so many goals; with `new` each has a subject of its own."""
    engine = engine_with(_WAITING)
    fed = 0
    for block in _events(goals, new=new):
        engine.feed(moved(block, engine.position, fed))
        fed += block.rows.num_rows
    return engine


def _events(goals: int, *, new: bool) -> Iterator[Block]:
    """Yield so many events in blocks, whose times are the caller's to move."""
    events = drawn(min(goals, _REPEATED), _IDS)
    for first in range(0, goals, len(events)):
        n = min(len(events), goals - first)
        ids = np.arange(first, first + n) if new else events.ids[:n]
        yield from blocks(Drawn(events.types[:n], ids, events.values[:n]))


def _restarted(goals: int) -> str:
    """Stop a server in order and start it again; measure the time until it is ready, and until an event's solution is
    there.
    """
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
        data, log = Path(directory) / "data", Path(directory) / "log"
        with Child(data, "inprocess", log, extra=_NO_LIMIT) as child:
            client = Client(child.url)
            client.wait_ready(300)
            client.create_stream("default", max_ahead=None)  # the last event is after all others, wherever their times lie
            client.register("q", PREFIXES + _WAITING)
            fed = 0
            for block in _events(goals, new=True):
                post(child, "default", ARROW, [_body(moved(block, 0, fed).rows)])
                fed += block.rows.num_rows
            _caught_up(client)
            held_mb, stopping = read_resident_mib(child.pid), time.perf_counter()
            child.stop(_STOP_S)
            stopped_s, began = time.perf_counter() - stopping, time.perf_counter()
        with Child(data, "inprocess", log, extra=_NO_LIMIT) as child:
            client = Client(child.url)
            client.wait_ready(300)
            ready_s = time.perf_counter() - began
            late = iso(int(time.time() * 1e6) + 10**15)  # after all of them
            client.send("default", f'{{"s":"<http://example.org/id/{goals - 1}>","p":"<http://example.org/never>","o":"\\"1\\"","at":"{late}"}}')
            found = client.solutions("q", wait_s=60)
            answered_s = time.perf_counter() - began
            if (state := client.query("q")["state"]) != "running":
                raise RuntimeError(f"the query is {state}")
            if len(found) != 1:
                raise WrongCount("goals after a restart", len(found), 1)
            return line("goals", part="restart", goals=goals, rss_mb=round(held_mb), stopped_s=round(stopped_s, 1), ready_s=round(ready_s, 1),
                        answered_s=round(answered_s, 1), start_cpu_s=round(read_cpu_s(child.pid), 1),
                        rss_after_mb=round(read_resident_mib(child.pid)))  # fmt: skip


def _body(rows: pa.RecordBatch) -> bytes:
    """Return the rows as an Arrow stream."""
    table = pa.Table.from_batches([rows]).select(["s", "p", "o", "start", "end"])
    return bytes(stream_of(table))


def _caught_up(client: Client) -> None:
    while client.query("q")["lag"]:
        time.sleep(0.1)
