"""This bench runs aggregates over sliding, hopping and count windows of 100 to 50,000 events, after test 1 of the EP-SPARQL paper.

The test itself is in bench/papers.

The cost of an event is not to depend on the size.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, one_core
from engine.engine import Engine
from engine.messages import INSTANT, OCCURRENCES, Block, Events, Micros, Register

SIZES = (100, 1_000, 10_000, 50_000)
_ENTRY_ROWS = 10_000
_BEGIN: Micros = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
_QUERY = """PREFIX : <http://example.org/>
SELECT (COUNT(?v) AS ?n) (SUM(?v) AS ?sum) (AVG(?v) AS ?mean) (MIN(?v) AS ?least) (MAX(?v) AS ?most) WHERE {{ ?s :price ?v }} WINDOW [{window}]"""
WINDOWS: dict[str, Callable[[int], str]] = {
    "time": lambda size: f"RANGE PT{size / 1000}S",
    "hopping": lambda size: f"RANGE PT{size / 1000}S STEP PT{size / 10_000}S",
    "count": lambda size: f"ROWS {size}",
}
"""Maps each kind of window to its text, by the events that it holds: there is one a millisecond."""
VALUES: dict[str, Callable[[np.random.Generator, int], list[str]]] = {
    "integer": lambda rng, n: [str(value) for value in rng.integers(1, 1_000_000, n).tolist()],
    "decimal": lambda rng, n: [f"{value / 100:.2f}" for value in rng.integers(1, 100_000_000, n).tolist()],
    "double": lambda rng, n: [repr(value) for value in (rng.random(n) * 100).tolist()],
}


def measure(n: int, sizes: Sequence[int] = SIZES) -> Iterator[str]:
    """Yield one JSON line for each window, type of value and size; the time is the engine's, from blocks of events to blocks of solutions."""
    one_core()
    for name, values in VALUES.items():
        feed = list(blocks(values(np.random.default_rng(42), n), name))
        for window, written in WINDOWS.items():
            _run(written(sizes[0]), feed[:2])  # compiled code is loaded
            for size in sizes:
                solutions, wall_s, cpu_s = _run(written(size), feed)
                expected = (
                    (n - 2) // (size // 10) + 1 if window == "hopping" else n - 1
                )  # the first is a multiple of the step; the last instant is still open
                if solutions != expected:
                    raise WrongCount(f"windows, {window} of {size} {name}s", solutions, expected)
                what = {"window": window, "values": name, "size": size, "n": n, "solutions": solutions}
                yield line("windows", **what, events_per_s=round(n / wall_s), cpu_s=round(cpu_s, 3))


def blocks(lexical: Sequence[str], datatype: str) -> Iterator[Block]:
    """Yield an event a millisecond, whose object is the value."""
    for offset, first in enumerate(range(0, len(lexical), _ENTRY_ROWS), 1):
        part = lexical[first : first + _ENTRY_ROWS]
        n, end = len(part), f'"^^<http://www.w3.org/2001/XMLSchema#{datatype}>'
        at = pa.array(np.arange(first, first + n, dtype=np.int64) * 1000 + _BEGIN).cast(INSTANT)
        one = pa.array(np.zeros(n, np.int32))
        rows = pa.RecordBatch.from_arrays(
            [
                pa.DictionaryArray.from_arrays(one, pa.array(["<http://example.org/share>"])),
                pa.DictionaryArray.from_arrays(one, pa.array(["<http://example.org/price>"])),
                pa.DictionaryArray.from_arrays(pa.array(np.arange(n, dtype=np.int32)), pa.array([f'"{text}{end}' for text in part])),
                pa.DictionaryArray.from_arrays(pa.nulls(n, pa.int32()), pa.array([], pa.utf8())),
                at,
                at,
                pa.array(np.zeros(n, np.bool_)),
            ],
            schema=OCCURRENCES,
        )
        yield Block((Events(offset, "default", n, _BEGIN + (first + n - 1) * 1000),), rows)


def _run(window: str, feed: Sequence[Block]) -> tuple[int, float, float]:
    """Return the solutions, and the seconds of the clock and of the CPU that they took."""
    engine, solutions = Engine(), 0
    engine.feed(Block((Register(0, "windows", _QUERY.format(window=window)),), pa.RecordBatch.from_pylist([], schema=OCCURRENCES)))
    wall, cpu = time.perf_counter(), time.process_time()
    for block in feed:
        solutions += engine.feed(block).solutions.num_rows
    return solutions, time.perf_counter() - wall, time.process_time() - cpu
