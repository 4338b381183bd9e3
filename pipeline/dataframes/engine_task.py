"""This module runs an engine over tables of occurrences instead of a log, for `pipeline.dataframes.api` in Spark's
tasks. It imports no Spark.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

import epsparql
from engine.dictionary.arrow_encoding import plain
from engine.engine import Engine
from engine.messages import END_OF_TIME, INSTANT, NO_ROWS, SOLUTIONS, Block, Entry, Events, Finish, Micros, Outcome, Tick, int64s
from epsparql.algebra import Ask, Query, Select, written_stream
from pipeline.dataframes.asked import Asked
from pipeline.errors import FormatError, SolveFailed
from pipeline.formats.arrow import terms_of
from pipeline.formats.batches.fast_path import batch_of_columns
from pipeline.formats.etalis import check_event_nodes
from pipeline.solutions.formats import TRUE

STREAM = "default"
SOLVED = pa.schema(
    [
        pa.field("query", pa.utf8(), nullable=False),
        pa.field("start", INSTANT, nullable=False),
        pa.field("end", INSTANT, nullable=False),
        ("binding", pa.map_(pa.utf8(), pa.utf8())),
        ("triples", pa.list_(pa.utf8())),
        ("boolean", pa.bool_()),
    ]
)
"""A row is one solution: a SELECT fills `binding` (without its unbound variables), a CONSTRUCT or DESCRIBE `triples`,
an ASK `boolean`.
"""

NO_SOLUTIONS = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)
NO_EVENTS = pa.table(
    {name: pa.array([], pa.utf8()) for name in ("s", "p", "o", "g", "stream")} | {name: pa.array([], pa.int64()) for name in ("start", "end")}
)
"""These are the columns that events come in."""


def parse_queries(asked: Asked) -> dict[str, Query]:
    """Return the queries by name."""
    return {name: epsparql.parse(text).query for name, text, _ in asked.queries}


class Solver:
    """Holds the engine of one partition. All streams share one time, and each call of `feed` says how far it has come."""

    def __init__(self, asked: Asked, snapshot: bytes | None = None) -> None:
        """Begin anew or restore a snapshot.

        Raises: SolveFailed; SnapshotMismatch for a snapshot of a version that plans otherwise.
        """
        self.queries = parse_queries(asked)
        into = {written_stream(query) for query in self.queries.values()}
        self._streams = sorted({stream for query in self.queries.values() for stream in query.streams} - into)
        if snapshot is None:
            self._engine = Engine()
            self._found(self._engine.feed(Block(tuple(asked.entries()), NO_ROWS)))
        else:
            self._engine = Engine.restore(snapshot)

    def feed(self, rows: pa.RecordBatch, streams: Sequence[str | None] | None, time: Micros) -> pa.RecordBatch:
        """Return the SOLUTIONS that OCCURRENCES bring, after which no end before `time` follows; `streams` names
        their streams.

        Raises: SolveFailed.
        """
        entries: list[Entry] = []
        parts = []
        for stream, part in _apart(rows, streams, self._streams):
            offset = self._engine.position + len(entries)
            entries.append(Events(offset, stream, part.num_rows, time) if part.num_rows else Tick(offset, stream, time))
            parts.append(part)
        return self._solutions(entries, parts)

    def finish(self) -> pa.RecordBatch:
        """Return the solutions that come when every stream ends."""
        return self._solutions([Finish(self._engine.position + k, stream) for k, stream in enumerate(self._streams)], [])

    @property
    def goals(self) -> int:
        return self._engine.goals

    def snapshot(self) -> bytes:
        return self._engine.snapshot()

    def _solutions(self, entries: list[Entry], parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        if not entries:
            return NO_SOLUTIONS
        filled = [part for part in parts if part.num_rows]
        rows = NO_ROWS if not filled else filled[0] if len(filled) == 1 else pa.concat_batches(filled)
        return self._found(self._engine.feed(Block(tuple(entries), rows)))

    def _found(self, outcome: Outcome) -> pa.RecordBatch:
        for change in outcome.changes:
            if change.state == "failed":
                raise SolveFailed(f"the query {change.name!r} failed: {change.reason}")
        return outcome.solutions


def occurrences(table: pa.Table) -> pa.RecordBatch:
    """Return OCCURRENCES from columns s, p, o, g (text) and start, end (µs).

    Blank nodes keep their labels, for a frame is one document. Raises: SolveFailed.
    """
    start, end = (table.column(name).combine_chunks() for name in ("start", "end"))
    try:
        if start.null_count or end.null_count:
            raise FormatError("time", "start or end is null", expected="filter such rows out, or give them a time")
        times = int64s(start), int64s(end)
        if bool(np.any(times[0] > times[1])):
            raise FormatError("interval", "start is after end", expected="start <= end")
        if len(start) and not -END_OF_TIME < times[0].min() <= times[1].max() < END_OF_TIME:
            raise FormatError("time", "a time is beyond the years that instants reach")
        found = batch_of_columns([terms_of(table, name, "_:{}".format) for name in "spog"], *times)
        check_event_nodes((found,))
        return found
    except FormatError as fault:
        raise SolveFailed(f"the DataFrame of events has a row that is no occurrence: {fault}") from None


def streams_of(table: pa.Table) -> list[str | None] | None:
    """Return the stream of each row, or None where no row names one."""
    column = table.column("stream")
    return None if column.null_count == len(column) else column.to_pylist()


def _apart(rows: pa.RecordBatch, streams: Sequence[str | None] | None, wanted: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield each wanted stream with its rows; a stream without rows is there too, for its time passes all the same."""
    if streams is None:
        yield from ((stream, rows if stream == STREAM else NO_ROWS) for stream in wanted)
        return
    named = np.array([STREAM if stream is None else stream for stream in streams], object)
    for stream in wanted:
        mask = named == stream
        yield stream, rows if bool(mask.all()) else rows.filter(pa.array(mask, pa.bool_()))


# ---------------------------------------------------------------- solutions
def solved(solutions: pa.RecordBatch, queries: Mapping[str, Query]) -> Iterator[pa.RecordBatch]:
    """Yield SOLUTIONS as SOLVED, each query's in their order."""
    if not solutions.num_rows:
        return
    names = solutions.column("query")
    texts = names.dictionary.to_pylist()
    which = np.array([texts.index(text) for text in texts])[names.indices.to_numpy()]  # a name may be there twice
    for k in [0] if len(texts) == 1 else np.unique(which).tolist():
        mine = plain(solutions if len(texts) == 1 else solutions.filter(pa.array(which == k)))
        n = mine.num_rows
        binding, triples, boolean = (pa.nulls(n, SOLVED.field(column).type) for column in ("binding", "triples", "boolean"))
        match queries[texts[k]]:
            case Select(projection=projection, parameters=parameters):
                names = ["instance"] if parameters else []
                binding = _bindings(mine.column("values"), [*names, *(variable.name for variable in projection)])
            case Ask():
                boolean = pa.array([value == TRUE for value in mine.column("values").flatten().to_pylist()])
            case _:
                triples = mine.column("values").cast(SOLVED.field("triples").type)
        yield pa.RecordBatch.from_arrays([pa.repeat(texts[k], n), mine.column("start"), mine.column("end"), binding, triples, boolean], schema=SOLVED)


def _bindings(values: pa.ListArray, variables: Sequence[str]) -> pa.MapArray:
    """Return a map per row; an unbound variable has no entry."""
    terms, n = values.flatten(), len(values)
    if not terms.null_count:
        offsets = np.arange(n + 1, dtype=np.int32) * len(variables)
        return pa.MapArray.from_arrays(pa.array(offsets), _names(tuple(variables), n), terms)
    bound = terms.is_valid().to_numpy(zero_copy_only=False)
    keys = _names(tuple(variables), n).filter(pa.array(bound))
    offsets = np.concatenate(([0], np.cumsum(bound)[len(variables) - 1 :: len(variables)])).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, terms.drop_null())


def _names(variables: tuple[str, ...], n: int) -> pa.StringArray:
    """Return all names, `n` times."""
    return _names_often(variables, 1 << max(n - 1, 0).bit_length()).slice(0, n * len(variables))


@lru_cache(maxsize=16)
def _names_often(variables: tuple[str, ...], n: int) -> pa.StringArray:
    return pa.array(variables, pa.utf8()).take(pa.array(np.tile(np.arange(len(variables), dtype=np.int32), n)))
