"""This module holds the workloads that other engines were measured on: type sequences per id within 10 s, all matches.

Event i is `ids[i] type x` at i ms, x an xsd:double in its shortest exact form.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.measurement import WrongCount
from engine.dictionary.term_dictionary import TermTable
from engine.engine import Engine
from engine.messages import INSTANT, OCCURRENCES, Block, Events, Micros, Register
from engine.runtime.query_registry import Registry
from epsparql.solutions.policies import UNRESTRICTED

Ints = NDArray[np.int64]
BEGIN: Micros = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
EVERY: Micros = 1_000  # one event a millisecond
BATCH = 10_000
PREFIXES = "PREFIX : <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
WITHIN = 'FILTER(getDURATION() < "PT10S"^^xsd:duration)'
WORKLOADS = {
    "W1": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} SEQ {{?s :c ?z}} {WITHIN} }}",
    "W2": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} WITHOUT {{?s :c ?z}} {WITHIN} }}",
    "W3": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} SEQ {{?s :c ?z}} {WITHIN} FILTER(?x * 1.05 < ?y && ?y * 1.05 < ?z) }}",
    "W4": f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{ {{?s :b ?y}} UNION {{?s :c ?y}} }} {WITHIN} }}",
}
MATCHES = {
    (1_000_000, 1_000): {"W1": 1_840_189, "W2": 322_008, "W3": 262_793, "W4": 2_213_668},
    (200_000, 1_000): {"W1": 359_537, "W2": 63_328, "W3": 51_773, "W4": 433_397},
    (1_000_000, 100_000): {"W1": 196, "W2": 11_072, "W3": 30, "W4": 22_249},
}
"""So many matches must come out, by events and ids: other engines and a search by brute force agree on it."""


class TermColumn(NamedTuple):
    """Holds the terms of a column: for each row the number of a text."""

    codes: Ints
    texts: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Represents events as they are drawn: which of the types, which id, which value."""

    types: Ints
    ids: Ints
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.types)


def drawn(n: int, k: int, types: int = 3) -> Drawn:
    rng = np.random.default_rng(42)
    return Drawn(rng.integers(0, types, n), rng.integers(0, k, n), rng.random(n) * 100)


def texts_of(values: NDArray[np.float64]) -> list[str]:
    return [f'"{value!r}"^^<http://www.w3.org/2001/XMLSchema#double>' for value in values.tolist()]


def times_of(first: int, after: int) -> Ints:
    """Return when the events [first, after) happen, in µs."""
    return np.arange(first, after, dtype=np.int64) * EVERY + BEGIN


def blocks(events: Drawn, batch: int = BATCH, names: Sequence[str] = "abc", first_offset: int = 1) -> Iterator[Block]:
    """Yield entries of `batch` events each, as the log gives them."""
    predicates = [f"<http://example.org/{name}>" for name in names]
    for offset, first in enumerate(range(0, len(events), batch), first_offset):
        after = min(first + batch, len(events))
        yield _make_drawn_block(offset, events, first, after, predicates)


def _make_drawn_block(offset: int, events: Drawn, first: int, after: int, predicates: Sequence[str]) -> Block:
    keys, subjects = np.unique(events.ids[first:after], return_inverse=True)
    used, which = np.unique(events.types[first:after], return_inverse=True)
    subject = TermColumn(subjects, [f"<http://example.org/id/{key}>" for key in keys.tolist()])
    predicate = TermColumn(which, [predicates[k] for k in used.tolist()])
    value = TermColumn(np.arange(after - first), texts_of(events.values[first:after]))
    return make_block(offset, (subject, predicate, value), times_of(first, after))


def make_block(offset: int, triples: tuple[TermColumn, TermColumn, TermColumn], times: Ints) -> Block:
    """Return an entry of events in one graph, at these times (µs) in order."""
    terms = [pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts, pa.utf8())) for codes, texts in triples]
    graph = pa.DictionaryArray.from_arrays(pa.nulls(len(times), pa.int32()), pa.array([], pa.utf8()))
    at, late = pa.array(times).cast(INSTANT), pa.array(np.zeros(len(times), np.bool_))
    rows = pa.RecordBatch.from_arrays([*terms, graph, at, at, late], schema=OCCURRENCES)
    return Block((Events(offset, "default", len(times), int(times[-1])),), rows)


def moved(block: Block, offset: int, first: int) -> Block:
    """Return the same triples as the entry `offset`, as the events from `first` on."""
    rows = block.rows
    at = pa.array(times_of(first, first + rows.num_rows)).cast(INSTANT)
    rows = pa.RecordBatch.from_arrays([*rows.columns[:4], at, at, rows.column("late")], schema=OCCURRENCES)
    return Block((Events(offset, "default", rows.num_rows, int(times_of(first + rows.num_rows - 1, first + rows.num_rows)[0])),), rows)


def registration(text: str, offset: int = 0, name: str = "q", policy: str = UNRESTRICTED) -> Block:
    """Return the registration of `text`, which is given without the prefixes."""
    return Block((Register(offset, name, PREFIXES + text, policy),), pa.RecordBatch.from_pylist([], schema=OCCURRENCES))


def engine_with(text: str, policy: str = UNRESTRICTED, terms: TermTable | None = None) -> Engine:
    """Return an engine with one query, which may find its terms numbered; its next entry is number 1."""
    engine = Engine(Registry(terms=terms))
    changes = engine.feed(registration(text, policy=policy)).changes
    assert not changes, changes
    return engine


def check(workload: str, n: int, k: int, matches: int) -> None:
    """Compare the matches with the known number. Raises WrongCount where another number must come out."""
    expected = MATCHES.get((n, k), {}).get(workload, matches)
    if matches != expected:
        raise WrongCount(f"{workload} with {n} events of {k} ids", matches, expected)
