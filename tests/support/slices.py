"""Logs on disk that tests evaluate by one engine and in slices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa

from engine.engine import Engine
from engine.messages import Facts, Finish, Register, SetStream
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogReader, LogWriter, Queueing
from pipeline.slices.execution import SlicedLog, SliceWork, run_slice
from pipeline.slices.plan import SlicePlanner
from tests.reference.evaluator import Occurrence
from tests.support.feeds import Body


class SliceSolution(NamedTuple):
    """A solution as it was emitted."""

    entry: int
    query: str
    start: int
    end: int
    values: tuple[str | None, ...]


@contextmanager
def written_log(
    queries: Mapping[str, str], bodies: Sequence[Body], streams: Sequence[str], facts: Mapping[str, str] | None = None, max_delay: int = 0
) -> Iterator[tuple[Path, list[Register], int]]:
    """Write background, queries, events and the end of all streams.

    Give the directory, the registrations and the position where the queries begin.
    """
    with TemporaryDirectory() as directory, LogWriter(directory, lambda: 0) as log:
        for graph, text in (facts or {}).items():
            log.submit_entry(lambda offset, graph=graph, text=text: Facts(offset, graph, text), queueing=Queueing.WAIT)  # type: ignore[misc]
        registrations: list[Register] = []
        for name, text in queries.items():
            log.append(_registering(name, text, registrations))
        first = log.head()
        for stream in streams:
            log.submit_entry(lambda offset, stream=stream: SetStream(offset, stream, max_delay), queueing=Queueing.WAIT)  # type: ignore[misc]
        for body in bodies:
            log.submit(body.stream, rows_of(body.occurrences), queueing=Queueing.WAIT).result()
        for stream in streams:
            log.append(lambda offset, stream=stream: Finish(offset, stream))  # type: ignore[misc]
        yield Path(directory), registrations, first


def _registering(name: str, text: str, registrations: list[Register]) -> Callable[[int], Register]:
    def build(offset: int) -> Register:
        registrations.append(Register(offset, name, text))
        return registrations[-1]

    return build


def rows_of(occurrences: Sequence[Occurrence]) -> pa.RecordBatch:
    s, p, o = ([str(each.triple[k]) for each in occurrences] for k in range(3))
    graphs = [None if each.graph is None else str(each.graph) for each in occurrences]
    return batch_of(s, p, o, graphs, [each.start for each in occurrences], [each.end for each in occurrences])


def by_one_engine(data: Path) -> tuple[list[SliceSolution], set[str]]:
    """The solutions of one engine over a whole log, in order, and the queries that it refused."""
    engine, found, refused = Engine(), list[SliceSolution](), set[str]()
    with closing(LogReader(data)) as reader:
        for block in reader.blocks(0, 1000):
            outcome = engine.feed(block)
            refused |= {change.name for change in outcome.changes}
            found += list_solutions(outcome.solutions)
    return found, refused


def in_slices(works: Sequence[SliceWork]) -> list[SliceSolution]:
    """The solutions of slices, one slice after the other."""
    return [
        solution
        for work in works
        for piece in run_slice(work)
        if piece is not None
        for outcome in piece.outcomes
        for solution in list_solutions(outcome.solutions)
    ]


def plan_of(data: Path, registrations: Sequence[Register], first: int) -> tuple[SlicedLog, SlicePlanner]:
    with closing(LogReader(data)) as reader:
        log = SlicedLog(data, [registrations], reader.head())
    return log, log.plan(first, log.find_reaches())


def list_solutions(solutions: pa.RecordBatch) -> list[SliceSolution]:
    start, end = (solutions.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    columns = (solutions.column(name).to_pylist() for name in ("entry", "query", "values"))
    return [SliceSolution(at, query, s, e, tuple(values)) for at, query, values, s, e in zip(*columns, start, end, strict=True)]
