"""This module is the loop that follows the log: read on, feed the engines, append their solutions.

The loop has two homes: a thread of the server, and a task on Spark.
"""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline.errors import OutOfOrder
from pipeline.log import LogReader
from pipeline.log.lock import Over
from pipeline.partition_count import SNAPSHOT_WEIGHT, settle
from pipeline.runners.engine_host import MAX_ROWS
from pipeline.runners.host_messages import Advance
from pipeline.runners.partitions import Host, host_for
from pipeline.solutions.solution_log import SolutionWriter

_WAKE_S = 0.2  # how late it may notice that it is to stop
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 15.0  # before it tries again; twice as long each time that nothing was gained
_log = logging.getLogger(__name__)


class LogRunner(Protocol):
    """Evaluates the log, in this process or on Spark."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def ready(self) -> bool: ...
    @property
    def position(self) -> int: ...
    @property
    def state(self) -> str: ...
    def on_commit(self, callback: Callable[[int], None]) -> None: ...


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Holds what the loop calls.

    `committed(lo, hi, seconds)` is told that the solutions of the entries [lo, hi) are published, `seconds` after they were taken up; `idle` that all is
    read. What `before_commit` raises ends the loop, and nothing is committed.
    """

    committed: Callable[[int, int, float], None]
    before_commit: Callable[[], None] = _nothing
    idle: Callable[[], None] = _nothing


class Following:
    """Follows the log: `open` it, then `run`. `buckets`: None for as many as the data directory has, one if it is new."""

    def __init__(
        self,
        data_dir: Path | str,
        reader: LogReader,
        over: Over,
        calls: Callbacks,
        *,
        buckets: int | None = None,
        max_rows: int = MAX_ROWS,
        snapshot_weight: int = SNAPSHOT_WEIGHT,
    ) -> None:
        self._data, self._reader, self._over, self._calls = Path(data_dir), reader, over, calls
        self._buckets, self._max_rows, self._snapshot_weight = buckets, max_rows, snapshot_weight
        self._solutions: SolutionWriter | None = None
        self.position = 0
        """Solutions are committed up to this input-log position."""
        self.state = "stopped"
        """The state is `starting`, `running`, `waiting: <reason>` or `stopped`."""

    def open(self) -> None:
        """Take the solution log. Raises: Locked, Corrupt."""
        self._solutions = SolutionWriter(self._data)
        self.position, self.state = self._solutions.position, "starting"

    def run(self) -> None:
        """Work until it is over, then release the solution log.

        The system's refusals (a full disk, say) are waited out; any other fault is raised.
        """
        solutions, self._solutions = self._solutions, None
        pause = 0.0
        while solutions is not None or not self._over.wait(pause):
            begun = self.position
            try:
                with closing(solutions or self._reopened()) as writer:
                    self._work(writer)
            except OSError as fault:
                pause = min(max(_FIRST_PAUSE_S, 2 * pause if self.position == begun else 0.0), _LONGEST_PAUSE_S)
                self.state = f"waiting: {type(fault).__name__}: {fault}; the next try comes in {pause:g} s"
                _log.warning("the runner at position %d tries again in %g s: %s: %s", self.position, pause, type(fault).__name__, fault)
            solutions = None
        self.state = "stopped"

    def _work(self, solutions: SolutionWriter) -> None:
        """Follow the log until it is over, with an engine brought anew to the committed position: an engine that failed half-way is of no use."""
        if self._reader.head() < self.position:
            raise OutOfOrder(
                f"the log ends at {self._reader.head()}, before {self.position}, to which there are solutions: it is not the log they came from"
            )
        number = settle(self._data, self._buckets)
        with closing(host_for(self._data, number, reader=self._reader, snapshot_weight=self._snapshot_weight)) as host:
            for _ in host.run(self.position, self.position, self._max_rows):
                raise AssertionError("an empty range brings nothing")
            self.state = "running"
            while not self._over.is_set():
                head = self._reader.wait(self.position, _WAKE_S)
                if head > self.position:
                    self._follow(host, solutions, head)
                else:
                    host.tell()
                    self._calls.idle()
            host.save()

    def _reopened(self) -> SolutionWriter:
        """Open the solution log as it is on disk: a commit that failed may be there or not. Raises: Locked, Corrupt, OutOfOrder, OSError."""
        solutions = SolutionWriter(self._data)
        if solutions.position < self.position:
            solutions.close()
            raise OutOfOrder(f"the solutions end at {solutions.position}, before {self.position}, to which they were committed")
        if solutions.position > self.position:
            self._reached(solutions.position, 0.0)
        return solutions

    def _follow(self, host: Host, solutions: SolutionWriter, head: int) -> None:
        began = time.perf_counter()
        for piece in host.run(self.position, head, self._max_rows):
            self._commit(solutions, piece)
            now = time.perf_counter()
            self._reached(piece.hi, now - began)
            began = now
            if self._over.is_set():
                break
        if host.unswept:
            solutions.sync()  # snapshots may go only where solutions are there to stay
            host.sweep(self.position)

    def _commit(self, solutions: SolutionWriter, piece: Advance) -> None:
        self._calls.before_commit()
        solutions.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)

    def _reached(self, position: int, seconds: float) -> None:
        begun, self.position = self.position, position
        self._calls.committed(begun, position, seconds)
