"""The engine alone, on the workloads that other engines were measured on: type sequences per id within 10 s, all matches."""

import json
import resource
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.entries import INSTANT, OCCURRENCES, Block, Events, Micros, Register
from engine.run import Engine

_ENTRY_ROWS = 10_000
_BEGIN: Micros = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
_PREFIXES = "PREFIX : <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
_WITHIN = 'FILTER(getDURATION() < "PT10S"^^xsd:duration)'
WORKLOADS = {
    "W1": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} SEQ {{?s :c ?z}} {_WITHIN} }}",
    "W2": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} WITHOUT {{?s :c ?z}} {_WITHIN} }}",
    "W3": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} SEQ {{?s :c ?z}} {_WITHIN} FILTER(?x * 1.05 < ?y && ?y * 1.05 < ?z) }}",
    "W4": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{ {{?s :b ?y}} UNION {{?s :c ?y}} }} {_WITHIN} }}",
}


def blocks(n: int, k: int) -> Iterator[Block]:
    """Event i is `ids[i] type x` at i ms; x is an xsd:double in its shortest exact form."""
    rng = np.random.default_rng(42)
    types, ids, values = rng.integers(0, 3, n), rng.integers(0, k, n), rng.random(n) * 100
    predicates = pa.array([f"<http://example.org/{name}>" for name in "abc"])
    for offset, first in enumerate(range(0, n, _ENTRY_ROWS), 1):
        part = slice(first, min(first + _ENTRY_ROWS, n))
        rows = _rows(types[part], ids[part], values[part], predicates, first)
        yield Block((Events(offset, "default", rows.num_rows, int(rows.column("end").cast(pa.int64())[-1].as_py())),), rows)


def _rows(types: NDArray[np.int64], ids: NDArray[np.int64], values: NDArray[np.float64], predicates: pa.Array, first: int) -> pa.RecordBatch:
    n = len(types)
    keys, subjects = np.unique(ids, return_inverse=True)
    terms = pa.array([f'"{value!r}"^^<http://www.w3.org/2001/XMLSchema#double>' for value in values.tolist()])
    at = pa.array((np.arange(first, first + n, dtype=np.int64)) * 1000 + _BEGIN).cast(INSTANT)
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(subjects.astype(np.int32)), pa.array([f"<http://example.org/id/{key}>" for key in keys.tolist()])),
        pa.DictionaryArray.from_arrays(pa.array(types.astype(np.int32)), predicates),
        pa.DictionaryArray.from_arrays(pa.array(np.arange(n, dtype=np.int32)), terms),
        pa.DictionaryArray.from_arrays(pa.nulls(n, pa.int32()), pa.array([], pa.utf8())),
        at,
        at,
        pa.array(np.zeros(n, np.bool_)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=OCCURRENCES)


def measure(workload: str, n: int, k: int) -> str:
    """One JSON line. The time is the engine's: generating the events is not in it, materialising the solutions is."""
    _count(Engine(), workload, list(blocks(20_000, 100)))  # compiled code is loaded, caches are warm
    engine, matches, wall_s, cpu_s = Engine(), 0, 0.0, 0.0
    engine.feed(_registration(workload))
    for block in blocks(n, k):
        wall, cpu = time.perf_counter(), time.process_time()
        matches += engine.feed(block).solutions.num_rows
        wall_s += time.perf_counter() - wall
        cpu_s += time.process_time() - cpu
    return json.dumps(
        {
            "bench": "engine",
            "workload": workload,
            "n": n,
            "k": k,
            "matches": matches,
            "events_per_s": round(n / wall_s),
            "cpu_s": round(cpu_s, 3),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
    )


def _registration(workload: str) -> Block:
    empty = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
    return Block((Register(0, workload, _PREFIXES + WORKLOADS[workload]),), empty)


def _count(engine: Engine, workload: str, feed: list[Block]) -> int:
    engine.feed(_registration(workload))
    return sum(engine.feed(block).solutions.num_rows for block in feed)
