"""This bench measures a query with PARAMETERS and many instances: loading, changing, restarting, and events."""

import json
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, median, one_core, rss_mb
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, ChangeInstances, Events, Register
from epsparql.terms import XSD

E = "http://example.org/"
_HEAD = f"PREFIX : <{E}> SELECT ?user ?v FROM STREAM <s> PARAMETERS (?user ?room ?limit) WHERE"
TEXTS = {
    "threshold": f"{_HEAD} {{ ?room :temp ?v FILTER (?v > ?limit) }}",
    "sequence": f"{_HEAD} {{ {{ ?room :temp ?before }} SEQ {{ ?room :temp ?v }} WITHIN PT1S FILTER (?v > ?limit) }}",
    "limit alone": f"{_HEAD} {{ ?any :temp ?v FILTER (?v > ?limit) }}",
}
_BULK, _EVENTS, _SINGLES = 10_000, 100_000, 200
_NO_ROWS = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
_STEP_US = 2_000_000  # of time from one event to the next, so that no sequence spans two of `answered`


def measure(n: int) -> Iterator[str]:
    """Yield a line for each query: n instances, each with a room and a limit of its own.

    An event of `answered` has exactly one instance, one of `silent` has none: its room has an instance whose limit it
    does not reach.
    """
    one_core()
    for name, text in TEXTS.items():
        engine, base_mb = _register_query(text), rss_mb()
        loaded = _load_instances(engine, n)
        memory = rss_mb() - base_mb
        answered = _feed(engine, np.arange(_EVENTS) % n, _reached(name, n), name)
        silent = _feed(engine, np.arange(_EVENTS) % n, -1, name)
        singles = [_change_instances(engine, {f"u{k % n}": _list_values(k % n, n + 1 + k)}) for k in range(_SINGLES)]
        began = time.process_time()
        data = engine.snapshot()
        kept = time.process_time() - began
        began = time.process_time()
        Engine.restore(data)
        yield line(
            "instances",
            query=name,
            instances=n,
            load_cpu_s=round(loaded, 2),
            memory_mb=memory,
            answered_us=round(1e6 * answered / _EVENTS, 2),
            silent_us=round(1e6 * silent / _EVENTS, 2),
            change_ms=round(1000 * median(singles), 2),
            change_most_ms=round(1000 * max(singles), 2),
            snapshot_cpu_s=round(kept, 2),
            restart_cpu_s=round(time.process_time() - began, 2),
            snapshot_mb=round(len(data) / 2**20, 1),
        )


def _reached(name: str, n: int) -> int:
    """Return the value that the limit of one instance, and of no other, is below."""
    return 1 if name == "limit alone" else n + 1


def _register_query(text: str) -> Engine:
    engine = Engine()
    changes = engine.feed(Block((Register(0, "q", text),), _NO_ROWS)).changes
    assert not changes, changes
    return engine


def _list_values(k: int, limit: int) -> list[str]:
    return [f'"user {k}"', f"<{E}room{k}>", f'"{limit}"^^<{XSD}integer>']


def _change_instances(engine: Engine, changes: dict[str, list[str]]) -> float:
    """Return the CPU seconds of one entry."""
    entry = ChangeInstances(engine.position, 0, "q", json.dumps(changes))
    began = time.process_time()
    engine.feed(Block((entry,), _NO_ROWS))
    return time.process_time() - began


def _load_instances(engine: Engine, n: int) -> float:
    return sum(_change_instances(engine, {f"u{k}": _list_values(k, k) for k in range(first, min(first + _BULK, n))}) for first in range(0, n, _BULK))


def _feed(engine: Engine, rooms: Sequence[int] | np.ndarray, value: int, name: str) -> float:
    """Feed a block of readings, and return its CPU seconds."""
    n = len(rooms)
    if name == "limit alone":
        rooms = np.zeros(n, np.int64)
    pairs = 2 if name == "sequence" else 1  # the second reading of a room is answered
    ends = (np.arange(n) // pairs * _STEP_US + np.arange(n) % pairs) + engine.position * _STEP_US * n
    rooms = np.asarray(rooms) // pairs
    names, numbers = np.unique(rooms, return_inverse=True)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array([f"<{E}room{k}>" for k in names])),
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(n), pa.int32()), pa.array([f"<{E}temp>"])),
            pa.DictionaryArray.from_arrays(pa.array(np.zeros(n), pa.int32()), pa.array([f'"{value}"^^<{XSD}integer>'])),
            pa.nulls(n, OCCURRENCES.field("g").type),
            pa.array(ends, OCCURRENCES.field("start").type),
            pa.array(ends, OCCURRENCES.field("end").type),
            pa.array(np.zeros(n, np.bool_)),
        ],
        schema=OCCURRENCES,
    )
    block = Block((Events(engine.position, "s", n, int(ends[-1])),), rows)
    began = time.process_time()
    found = engine.feed(block).solutions.num_rows
    took = time.process_time() - began
    wanted = 0 if value < 0 else n // pairs
    if found != wanted:
        raise WrongCount(name, found, wanted)
    return took
