"""Events that each look up one of many triples of the background: what loading them, registering, an event and a change cost."""

import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bench.line import WrongCount, line, one_core, peak_rss_mb, rss_mb
from engine.entries import INSTANT, OCCURRENCES, Block, Entry, Events, Facts, Micros, Register
from engine.run import Engine

FACTS_AN_EVENT = 10
_ENTRY_ROWS = 10_000
_BEGIN: Micros = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
_EXAMPLE = "http://example.org/"
_QUERY = f"PREFIX : <{_EXAMPLE}> SELECT ?s ?v ?room WHERE {{ ?s :in ?room . ?s :reading ?v }}"
_NOTHING = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)


def measure(n: int) -> Iterator[str]:
    """One JSON line: `n` events beside ten times as many triples; each event finds one of them."""
    one_core()
    _run(2_000)  # compiled code is loaded
    yield line("lookup", **_run(n))


def _run(n: int) -> dict[str, object]:
    engine, facts = Engine(), FACTS_AN_EVENT * n
    text = "".join(f"<{_EXAMPLE}s{k}> <{_EXAMPLE}in> <{_EXAMPLE}room{k % 1000}> .\n" for k in range(facts))
    before = rss_mb()
    load_s = _timed(engine, [Facts(0, "", text)])
    register_s = _timed(engine, [Register(1, "lookup", _QUERY)])
    del text
    keys = np.random.default_rng(42).permutation(facts)[: n + 1]
    feed = list(blocks(keys[:n], 2))
    solutions, begun = 0, time.perf_counter()
    for block in feed:
        solutions += engine.feed(block).solutions.num_rows
    wall_s = time.perf_counter() - begun
    if solutions != n:
        raise WrongCount(f"lookup of {facts} triples", solutions, n)
    figures: dict[str, object] = {"n": n, "facts": facts, "load_s": load_s, "register_s": register_s, "events_per_s": round(n / wall_s)}
    return figures | {"change_ms": _change(engine, int(keys[n])), "facts_mb": rss_mb() - before, "peak_rss_mb": peak_rss_mb()}


def _timed(engine: Engine, entries: Sequence[Entry]) -> float:
    begun = time.perf_counter()
    engine.feed(Block(tuple(entries), _NOTHING))
    return round(time.perf_counter() - begun, 3)


def _change(engine: Engine, key: int) -> float:
    """Milliseconds until an event has looked up what a change of one triple has brought."""
    begun, offset = time.perf_counter(), engine.position
    engine.feed(Block((Facts(offset, f"{_EXAMPLE}moves", f"<{_EXAMPLE}s{key}> <{_EXAMPLE}in> <{_EXAMPLE}hall> .\n"),), _NOTHING))
    (block,) = blocks(np.array([key]), offset + 1, _BEGIN + 10**12)
    found = engine.feed(block).solutions.num_rows
    if found != 2:
        raise WrongCount("lookup of a triple that has been added beside one", found, 2)
    return round((time.perf_counter() - begun) * 1000, 1)


def blocks(keys: np.ndarray[tuple[int], np.dtype[np.int64]], offset: int, begin: Micros = _BEGIN) -> Iterator[Block]:
    """An event a millisecond, of the thing with each key."""
    for first in range(0, len(keys), _ENTRY_ROWS):
        part = keys[first : first + _ENTRY_ROWS].tolist()
        n = len(part)
        at = pa.array(np.arange(first, first + n, dtype=np.int64) * 1000 + begin).cast(INSTANT)
        one, each = pa.array(np.zeros(n, np.int32)), pa.array(np.arange(n, dtype=np.int32))
        rows = pa.RecordBatch.from_arrays(
            [
                pa.DictionaryArray.from_arrays(each, pa.array([f"<{_EXAMPLE}s{key}>" for key in part])),
                pa.DictionaryArray.from_arrays(one, pa.array([f"<{_EXAMPLE}reading>"])),
                pa.DictionaryArray.from_arrays(one, pa.array(['"21.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'])),
                pa.DictionaryArray.from_arrays(pa.nulls(n, pa.int32()), pa.array([], pa.utf8())),
                at,
                at,
                pa.array(np.zeros(n, np.bool_)),
            ],
            schema=OCCURRENCES,
        )
        yield Block((Events(offset, "default", n, begin + (first + n - 1) * 1000),), rows)
        offset += 1
