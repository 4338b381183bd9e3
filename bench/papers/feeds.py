"""This module runs queries over events that are all there, and says what they found and what it took."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bench.measurement import rss_mb
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, Events, Facts, Finish, Micros, Register
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.formats.batches.batch_builder import batch_of

SECOND: Micros = 1_000_000
BEGIN: Micros = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
EXAMPLE = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX : <{EXAMPLE}>\nPREFIX xsd: <{XSD}>\nPREFIX ep: <urn:epsparql:function:>\n"
ENTRY_ROWS = 10_000
_NOTHING = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)


class Event(NamedTuple):
    """Represents a triple, in N-Triples text, at an instant."""

    s: str
    p: str
    o: str
    at: Micros


class Solution(NamedTuple):
    """Represents a solution, with its values in N-Triples text; None stands for a variable without a value."""

    query: str
    start: Micros
    end: Micros
    values: tuple[str | None, ...]


class QueryFailed(Exception):
    """Reports a query that the engine stopped."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Holds how many solutions each query gave, the engine's CPU and elapsed seconds, the bytes of its queries'
    state, and the growth of resident memory. `batches` are the solutions, if the run was to keep them."""

    counts: Counter[str]
    batches: Sequence[pa.RecordBatch] | None
    cpu_s: float
    wall_s: float
    state_bytes: int
    grown_mb: int

    def list_solutions(self, query: str) -> Iterator[Solution]:
        assert self.batches is not None, "run with keep=True"
        for batch in self.batches:
            columns = [batch.column("query").to_pylist(), *(batch.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))]
            for name, start, end, values in zip(*columns, batch.column("values").to_pylist(), strict=True):
                if name == query:
                    yield Solution(name, start, end, tuple(values))


def run(
    queries: Mapping[str, str], feed: Iterable[pa.RecordBatch], background: str = "", policy: str = UNRESTRICTED, *, keep: bool = False
) -> Result:
    """Run queries, given without the prefixes, over a feed of the stream `default` to its end. `keep` keeps the
    solutions, to list them.

    The background is N-Triples text. What is timed goes from blocks of events to blocks of solutions. Raises:
    QueryFailed.
    """
    engine = Engine()
    if background:
        engine.feed(Block((Facts(engine.position, "", background),), _NOTHING))
    registered = [engine.position + k for k in range(len(queries))]
    for name, text in queries.items():
        whole = text if text.startswith("#!") else PREFIXES + text
        _apply(engine, Block((Register(engine.position, name, whole, policy),), _NOTHING))
    before_mb, counts, batches, cpu_s, wall_s = rss_mb(), Counter[str](), list[pa.RecordBatch](), 0.0, 0.0

    def count_solutions(solutions: pa.RecordBatch) -> None:
        names = solutions.column("query")
        for name, count in zip(names.dictionary.to_pylist(), np.bincount(names.indices, minlength=len(names.dictionary)).tolist(), strict=True):
            counts[name] += count
        if keep:
            batches.append(solutions)

    for rows in feed:
        last = int(rows.column("end")[-1].cast(pa.int64()).as_py())
        block = Block((Events(engine.position, "default", rows.num_rows, last),), rows)
        wall, cpu = time.perf_counter(), time.process_time()
        found = _apply(engine, block)
        wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
        count_solutions(found)
        del found  # its memory is free for the next block, as it is in a server that has written it
    state_bytes = sum(engine.registry.usage(each).state_bytes for each in registered)
    count_solutions(engine.feed(Block((Finish(engine.position, "default"),), _NOTHING)).solutions)
    return Result(counts, batches if keep else None, cpu_s, wall_s, state_bytes, rss_mb() - before_mb)


def _apply(engine: Engine, block: Block) -> pa.RecordBatch:
    outcome = engine.feed(block)
    for change in outcome.changes:
        raise QueryFailed(f"{change.name}: {change.reason}")
    return outcome.solutions


def batches(events: Iterable[Event], most: int = ENTRY_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield events, which are in order of time, in batches of whole instants and about `most` rows."""
    part: list[Event] = []
    for _, instant in groupby(events, key=lambda event: event.at):
        part += instant
        if len(part) >= most:
            yield batch(part)
            part = []
    if part:
        yield batch(part)


def batch(events: Sequence[Event]) -> pa.RecordBatch:
    s, p, o, at = zip(*events, strict=True)
    return batch_of(s, p, o, None, at, at)


def iri(name: str) -> str:
    return f"<{EXAMPLE}{name}>"


def number_term(value: float | str) -> str:
    """Return a number as it is written, as xsd:integer or xsd:decimal."""
    return f'"{value}"^^<{XSD}{"decimal" if "." in str(value) else "integer"}>'


def value_of(term: str) -> str:
    """Return the lexical form of a literal, or an IRI's last part."""
    return term[1 : term.rindex('"')] if term.startswith('"') else term.strip("<>").rpartition("/")[2]


def rate(events: int, seconds: float) -> int:
    return round(events / max(seconds, 1e-9))
