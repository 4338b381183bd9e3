"""This bench feeds events that each look something up in a large background.

It measures what loading the background, registering, an event and a change cost, for each way to ask.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, one_core, peak_rss_mb, rss_mb
from bench.workloads import TermColumn, make_block
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, Entry, Facts, Micros, Register

FACTS_AN_EVENT = 10
_ENTRY_ROWS = 10_000
_BEGIN: Micros = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
_EXAMPLE = "http://example.org/"
_NOTHING = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
_BRANCHES = 4
"""The tree that paths go up has this many branches at each node: a million things are ten levels."""


@dataclass(frozen=True, slots=True)
class Way:
    """Describes a pattern beside an event's, and how many solutions it must have.

    `solutions` is their number for all things with these numbers, `added` how many more one triple more brings,
    `beside` what else is known.
    """

    pattern: str
    object: Callable[[int], str]  # the object in the triple of a thing
    solutions: Callable[[Sequence[int]], int]
    added: int
    beside: str = ""


_ON_FLOORS = "".join(f"<{_EXAMPLE}room{k}> <{_EXAMPLE}on> <{_EXAMPLE}floor{k % 10}> .\n" for k in range(1000))
WAYS = {
    "lookup": Way("?s :in ?room .", lambda k: f"room{k % 1000}", len, 1),
    "lookup-optional": Way("OPTIONAL { ?s :in ?room }", lambda k: f"room{k % 1000}", len, 1),
    "lookup-not-exists": Way("FILTER NOT EXISTS { ?s :in :room7 }", lambda k: f"room{k % 10}", lambda keys: sum(key % 10 != 7 for key in keys), 0),
    "lookup-optional-group": Way("OPTIONAL { ?s :in ?room . ?room :on ?floor }", lambda k: f"room{k % 1000}", len, 0, _ON_FLOORS),
    "lookup-not-exists-group": Way(
        "FILTER NOT EXISTS { ?s :in ?room . ?room :on :floor7 }",
        lambda k: f"room{k % 1000}",
        lambda keys: sum(key % 10 != 7 for key in keys),
        0,
        _ON_FLOORS,
    ),
    "lookup-path": Way("?s :in+ :all .", lambda k: f"s{k // _BRANCHES}" if k else "all", len, 0),
}


def measure(n: int) -> Iterator[str]:
    """Yield a JSON line for each way to ask: `n` events beside ten times as many triples."""
    for name in WAYS:  # each has a process, and so memory, of its own
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield pool.submit(_line, name, n).result()


def _line(name: str, n: int) -> str:
    one_core()
    _run(WAYS[name], 2_000)  # compiled code is loaded
    return line(name, **_run(WAYS[name], n))


def _run(way: Way, n: int) -> dict[str, object]:
    engine, facts = Engine(), FACTS_AN_EVENT * n
    text = "".join(f"<{_EXAMPLE}s{k}> <{_EXAMPLE}in> <{_EXAMPLE}{way.object(k)}> .\n" for k in range(facts)) + way.beside
    before = rss_mb()
    load_s = _timed(engine, [Facts(0, "", text)])
    query = f"PREFIX : <{_EXAMPLE}> SELECT * WHERE {{ ?s :reading ?v . {way.pattern} }}"
    register_s = _timed(engine, [Register(1, "lookup", query)])
    del text
    keys = np.random.default_rng(42).permutation(facts)[: n + 1]
    feed = [*blocks(keys[:n], 2)]
    feed.append(_later(feed[-1].entries[-1].offset + 1, _BEGIN + n * 1000))
    solutions, begun, worked = 0, time.perf_counter(), time.process_time()
    for block in feed:
        solutions += engine.feed(block).solutions.num_rows
    wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - worked
    if solutions != way.solutions(keys[:n].tolist()):
        raise WrongCount(f"{way.pattern} of {facts} triples", solutions, way.solutions(keys[:n].tolist()))
    figures: dict[str, object] = {"n": n, "facts": facts, "load_s": load_s, "register_s": register_s}
    figures |= {"solutions": solutions, "events_per_s": round(n / wall_s), "events_per_cpu_s": round(n / cpu_s)}
    return figures | {"change_ms": _change(engine, way, int(keys[n])), "facts_mb": rss_mb() - before, "peak_rss_mb": peak_rss_mb()}


def _timed(engine: Engine, entries: Sequence[Entry]) -> float:
    begun = time.perf_counter()
    engine.feed(Block(tuple(entries), _NOTHING))
    return round(time.perf_counter() - begun, 3)


def _change(engine: Engine, way: Way, key: int) -> float:
    """Return the milliseconds until an event has looked up the result of a change of one triple."""
    begun, offset = time.perf_counter(), engine.position
    engine.feed(Block((Facts(offset, f"{_EXAMPLE}moves", f"<{_EXAMPLE}s{key}> <{_EXAMPLE}in> <{_EXAMPLE}hall> .\n"),), _NOTHING))
    at = _BEGIN + 10**12
    (block,) = blocks(np.array([key]), offset + 1, at)
    found = engine.feed(block).solutions.num_rows + engine.feed(_later(offset + 2, at + 1)).solutions.num_rows
    took = round((time.perf_counter() - begun) * 1000, 1)
    if found != way.solutions([key]) + way.added:
        raise WrongCount("lookup of a triple that has been added beside one", found, way.solutions([key]) + way.added)
    return took


def _later(offset: int, at: Micros) -> Block:
    """Return an event that no query asks for, after which all events before it are decided."""
    (block,) = blocks(np.array([0]), offset, at, "passing")
    return block


def blocks(keys: np.ndarray[tuple[int], np.dtype[np.int64]], offset: int, begin: Micros = _BEGIN, verb: str = "reading") -> Iterator[Block]:
    """Yield an event a millisecond, of the thing with each key."""
    for first in range(0, len(keys), _ENTRY_ROWS):
        part = keys[first : first + _ENTRY_ROWS].tolist()
        n = len(part)
        subject = TermColumn(np.arange(n), [f"<{_EXAMPLE}s{key}>" for key in part])
        one = np.zeros(n, np.int64)
        predicate, value = TermColumn(one, [f"<{_EXAMPLE}{verb}>"]), TermColumn(one, ['"21.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'])
        yield make_block(offset, (subject, predicate, value), np.arange(first, first + n) * 1000 + begin)
        offset += 1
