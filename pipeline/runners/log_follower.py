"""This module is the loop that follows the log: read on, feed the engines, append their solutions.

The loop has several homes: a thread of the server, and tasks on Spark. With a task for each partition, the driver
follows the logs of these.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from engine.messages import StateChange
from engine.partitioning import PartitionShare
from epsparql.deferred_methods import dataclass
from pipeline.errors import Corrupt, OutOfOrder
from pipeline.log import LogReader
from pipeline.log.lock import Over
from pipeline.partition_count import SNAPSHOT_WEIGHT
from pipeline.runners.engine_host import MAX_ROWS, EngineHost
from pipeline.runners.host_messages import Advance
from pipeline.runners.partitions import Host, host_for
from pipeline.runners.renumbering import settle
from pipeline.solutions.partition_log import PartitionLogs, PartitionWriter
from pipeline.solutions.query_index import RecentFrames
from pipeline.solutions.solution_log import SolutionWriter

_WAKE_S = 0.2  # how late it may notice that it is to stop
_FEW = 256  # so many solutions may be committed by the log's writer, between two frames of the log
_TURN_S = 0.0025  # between the beginnings of two evaluations: what comes meanwhile shares the second one, with its commit and its delivery
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

    `committed(lo, hi, seconds)` is told that the solutions of the entries [lo, hi) are published, `seconds` after
    they were taken up; `idle` that all is read. What `before_commit` raises ends the loop, and nothing is committed.
    `repair` may repair a damaged segment, and returns whether it did.
    """

    committed: Callable[[int, int, float], None]
    before_commit: Callable[[], None] = _nothing
    idle: Callable[[], None] = _nothing
    repair: Callable[[Corrupt], bool] = lambda _: False


class Output(Protocol):
    """Takes what engines find of one range of entries after the other."""

    @property
    def position(self) -> int: ...
    def commit(self, lo: int, hi: int, solutions: pa.RecordBatch, changes: Sequence[StateChange] = ()) -> object: ...
    def sync(self) -> int:
        """Return the position up to which solutions outlive a crash of the machine."""

    def close(self) -> None: ...


class Work(Protocol):
    """Says which log is followed, who evaluates it, and where that goes."""

    def head(self) -> int: ...
    def wait(self, position: int, timeout: float) -> int:
        """Return the head, as soon as it is beyond `position` or `timeout` seconds have passed."""

    def open_output(self) -> Output:
        """Raises: Locked, Corrupt, OSError."""

    def open_host(self, output: Output) -> Host:
        """Open the engines for an output that this work opened."""


@dataclass(frozen=True, slots=True)
class WholeWork:
    """Evaluates the input log for all partitions into the solution log.

    `partitions`: None for as many as the data directory has, one if it is new.
    """

    data: Path
    reader: LogReader
    partitions: int | None = None
    snapshot_weight: int = SNAPSHOT_WEIGHT
    recent: RecentFrames | None = None

    def head(self) -> int:
        return self.reader.head()

    def wait(self, position: int, timeout: float) -> int:
        return self.reader.wait(position, timeout)

    def open_output(self) -> SolutionWriter:
        return SolutionWriter(self.data, recent=self.recent, published=self.reader.published)

    def open_host(self, output: Output) -> Host:
        return host_for(self.data, settle(self.data, self.partitions, output.sync), reader=self.reader, snapshot_weight=self.snapshot_weight)


@dataclass(frozen=True, slots=True)
class PartitionWork:
    """Evaluates the input log for one partition into that partition's own log."""

    data: Path
    reader: LogReader
    share: PartitionShare
    logs: PartitionLogs
    snapshot_weight: int = SNAPSHOT_WEIGHT

    def head(self) -> int:
        return self.reader.head()

    def wait(self, position: int, timeout: float) -> int:
        return self.reader.wait(position, timeout)

    def open_output(self) -> PartitionWriter:
        return PartitionWriter(self.logs, self.share.partition)

    def open_host(self, output: Output) -> Host:
        return EngineHost(self.data, self.share, reader=self.reader, snapshot_weight=self.snapshot_weight)


class Following:
    """Follows a log: `open` it, then `run`."""

    def __init__(self, work: Work, over: Over, calls: Callbacks, max_rows: int = MAX_ROWS) -> None:
        self._work, self._over, self._calls, self._max_rows = work, over, calls, max_rows
        self._output: Output | None = None
        self.position = 0
        """Solutions are committed up to this input-log position."""
        self.state = "stopped"
        """The state is `starting`, `running`, `waiting: <reason>` or `stopped`."""

    def open(self) -> None:
        """Take the output. Raises: Locked, Corrupt."""
        self._output = self._work.open_output()
        self.position, self.state = self._output.position, "starting"

    def run(self) -> None:
        """Work until it is over, then release the output.

        The system's refusals (a full disk, say) are waited out, and a damaged segment may be repaired; any other
        fault is raised.
        """
        output, self._output = self._output, None
        pause = 0.0
        while output is not None or not self._over.wait(pause):
            begun = self.position
            try:
                with closing(output or self._reopened()) as writer:
                    self._follow(writer)
            except OSError as fault:
                pause = min(max(_FIRST_PAUSE_S, 2 * pause if self.position == begun else 0.0), _LONGEST_PAUSE_S)
                self.state = f"waiting: {type(fault).__name__}: {fault}; the next try comes in {pause:g} s"
                _log.warning("the runner at position %d tries again in %g s: %s: %s", self.position, pause, type(fault).__name__, fault)
            except Corrupt as fault:
                if not self._calls.repair(fault):
                    raise
            output = None
        self.state = "stopped"

    def _follow(self, output: Output) -> None:
        """Follow the log until it is over, with an engine brought anew to the committed position: an engine that
        failed half-way is of no use.
        """
        if self._work.head() < self.position:
            raise OutOfOrder(
                f"the log ends at {self._work.head()}, before {self.position}, to which there are solutions: it is not the log they came from"
            )
        with closing(self._work.open_host(output)) as host:
            for _ in host.run(self.position, self.position, self._max_rows):
                raise AssertionError("an empty range brings nothing")
            self.state, turn_s = "running", 0.0
            while not self._over.is_set():
                wait = self._work.wait if host.published is None else host.published.wait_ahead
                head = wait(self.position, _WAKE_S)
                if head > self.position:
                    if (early_s := turn_s - time.monotonic()) > 0:
                        self._over.wait(early_s)
                        head = wait(self.position, 0.0)
                    turn_s = time.monotonic() + _TURN_S
                    self._advance(host, output, head)
                else:
                    host.tell()
                    self._calls.idle()
            host.save()

    def _reopened(self) -> Output:
        """Open the output as it is on disk: a commit that failed may be there or not.

        Raises: Locked, Corrupt, OutOfOrder, OSError.
        """
        output = self._work.open_output()
        if output.position < self.position:
            output.close()
            raise OutOfOrder(f"the solutions end at {output.position}, before {self.position}, to which they were committed")
        if output.position > self.position:
            self._reached(output.position, 0.0)
        return output

    def _advance(self, host: Host, output: Output, head: int) -> None:
        began = time.perf_counter()
        try:
            for piece in host.run(self.position, head, self._max_rows):
                commit = partial(self._commit, output, piece, began)
                if host.published is None:
                    commit()
                else:
                    host.published.conclude(piece.hi, commit, briefly=piece.outcome.solutions.num_rows <= _FEW)
                began = time.perf_counter()
                if self._over.is_set():
                    break
        except OutOfOrder:
            if host.published is not None:
                host.published.check_withdrawn()
            raise
        if host.unswept:
            host.sweep(output.sync())  # snapshots may go only where solutions are there to stay

    def _commit(self, output: Output, piece: Advance, began: float) -> None:
        self._calls.before_commit()
        output.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
        self._reached(piece.hi, time.perf_counter() - began)

    def _reached(self, position: int, seconds: float) -> None:
        begun, self.position = self.position, position
        self._calls.committed(begun, position, seconds)
