"""This module is the runner for a log that is whole: it evaluates the log in slices, and writes the same solutions
with the same ids as any other.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa

from engine.background.changes import read_static_rule
from engine.messages import Register, int64s
from pipeline.log import LogReader
from pipeline.log.codec import count_triples
from pipeline.slices import plan
from pipeline.slices.execution import SlicedLog, SlicePiece, SliceWork
from pipeline.solutions.solution_log import SolutionWriter

Evaluate = Callable[[], Generator[SlicePiece, None, None]]
"""It evaluates slices, and yields what they bring in the order of the log."""
_log = logging.getLogger(__name__)


def plan_log(data: Path, workers: int, slices: int | None = None) -> tuple[list[SliceWork], dict[str, str]]:
    """Cut a whole log, whose queries are registered before its first event, for some workers, or into this many slices.

    Return the work, and why there can be one slice alone: by name, what has no bound on its reach. There is no work
    where the events are too few for two slices, or fewer than the background's triples, which each slice loads.
    Raises: Gone, Corrupt.
    """
    with closing(LogReader(data)) as reader:
        head = reader.head()
        rows = reader.rows(0, head)
        if slices is None and rows < 2 * plan.SLICE_EVENTS:
            return [], {}
        triples, entries = 0, list[Register]()
        for record in reader.records(0, head):
            triples += count_triples(record.entry)
            if isinstance(record.entry, Register):
                entries.append(record.entry)
    if slices is None and rows < triples:
        return [], {}
    queries = [entry for entry in entries if read_static_rule(entry) is None]
    first = max((entry.offset + 1 for entry in entries), default=0)
    log = SlicedLog(data, [queries], head)
    reaches = log.find_reaches()
    planner = log.plan(first, reaches)
    works = log.list_work(planner.plan_for(workers) if slices is None else planner.plan_exactly(slices))
    return works, {query.name: reaches[query.offset].reason for query in queries if reaches[query.offset].micros is None}


class SliceRunner:
    """Evaluates what a finished log holds, from its beginning to its head, in slices."""

    def __init__(self, data: Path, evaluate: Evaluate) -> None:
        self._data, self._evaluate = data, evaluate
        self._callbacks: list[Callable[[int], None]] = []
        self._stopping = Event()
        self._thread: Thread | None = None
        self.position = 0
        """Solutions are committed up to this input-log position."""
        self.state = "stopped"

    @property
    def ready(self) -> bool:
        return self.state == "running"

    def on_commit(self, callback: Callable[[int], None]) -> None:
        """Call `callback(position)` after each commit, from the runner's thread; it must not block."""
        self._callbacks.append(callback)

    def start(self) -> None:
        """Open the solution log and start the thread. Raises: Locked, Corrupt."""
        writer, self.state = SolutionWriter(self._data), "running"
        self._thread = Thread(target=self._commit_all, args=(writer,), name="slices", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _commit_all(self, writer: SolutionWriter) -> None:
        try:
            with closing(writer), closing(self._evaluate()) as pieces:
                self._commit_pieces(writer, pieces)
        except Exception as fault:  # noqa: BLE001  # whatever it was, it must be seen
            self.state = f"failed: {type(fault).__name__}: {fault}"
            _log.exception("the runner stopped at position %d", self.position)

    def _commit_pieces(self, writer: SolutionWriter, pieces: Generator[SlicePiece, None, None]) -> None:
        """Write what the pieces brought. A query that has ended brings nothing in later slices."""
        ended = set[int]()
        for piece in pieces:
            (outcome,) = piece.outcomes
            changes = [change for change in outcome.changes if change.registered not in ended]
            writer.commit(self.position, piece.hi, _without(outcome.solutions, ended), changes)
            ended |= {change.registered for change in changes}
            self.position = piece.hi
            for callback in self._callbacks:
                callback(piece.hi)
            if self._stopping.is_set():
                return


def _without(solutions: pa.RecordBatch, ended: set[int]) -> pa.RecordBatch:
    """Return the solutions of queries that have not ended."""
    if not ended or not solutions.num_rows:
        return solutions
    return solutions.filter(pa.array(~np.isin(int64s(solutions.column("registered")), list(ended))))
