"""This module is the runner without Spark: a thread that follows the log."""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from pipeline.errors import Corrupt, PipelineError
from pipeline.log import LogReader
from pipeline.partition_count import SNAPSHOT_WEIGHT
from pipeline.runners.engine_host import MAX_ROWS
from pipeline.runners.log_follower import Callbacks, Following, WholeWork
from pipeline.solutions.query_index import RecentFrames

_log = logging.getLogger(__name__)


class InProcessRunner:
    """Runs the queries of a data directory in this process. `reader` may be `LogWriter.reader()` of this process,
    which wakes the runner at once.

    Without a reader the log's head file is polled. `partitions`: None for as many as the data directory has, one if
    it is new. `recent` is that of a reader of solutions in this process.
    """

    def __init__(
        self,
        data_dir: Path | str,
        reader: LogReader | None = None,
        *,
        partitions: int | None = None,
        max_rows: int = MAX_ROWS,
        snapshot_weight: int = SNAPSHOT_WEIGHT,
        recent: RecentFrames | None = None,
    ) -> None:
        self._reader = reader or LogReader(data_dir)
        self._callbacks: list[Callable[[int], None]] = []
        self._stopping = Event()
        work = WholeWork(Path(data_dir), self._reader, partitions, snapshot_weight, recent)
        self._following = Following(work, self._stopping, Callbacks(self._committed, repair=self._repair), max_rows)
        self._thread: Thread | None = None
        self._failure = ""

    def start(self) -> None:
        """Open the solution log and start the thread. Raises: Locked, Corrupt."""
        assert self._thread is None, "a runner is started once"
        self._following.open()
        self._thread = Thread(target=self._run, name="runner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the piece at work, save the engine, release the solution log."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def ready(self) -> bool:
        return self.state == "running"

    @property
    def position(self) -> int:
        """Return the input-log position up to which solutions are committed."""
        return self._following.position

    @property
    def lag(self) -> int:
        """Return the number of entries that are in the log and not yet answered."""
        return max(self._reader.head() - self.position, 0)

    @property
    def state(self) -> str:
        """Return `starting`, `running`, `waiting: <reason>`, `stopped` or `failed: <reason>`."""
        return self._failure or self._following.state

    def on_commit(self, callback: Callable[[int], None]) -> None:
        """Call `callback(position)` after each commit, from the runner's thread; it must not block."""
        self._callbacks.append(callback)

    def _committed(self, _: int, hi: int, __: float) -> None:
        for callback in self._callbacks:
            callback(hi)

    def _repair(self, fault: Corrupt) -> bool:
        return self._reader.published is not None and self._reader.published.repair(fault)

    def _run(self) -> None:
        try:
            self._following.run()
        except PipelineError as fault:
            self._failure = f"failed: {type(fault).__name__}: {fault}"
            _log.error("the runner stopped at position %d: %s: %s", self.position, type(fault).__name__, fault)
        except Exception as fault:  # noqa: BLE001  # whatever it was, it must be seen: the server shows the state
            self._failure = f"failed: {type(fault).__name__}: {fault}"
            _log.exception("the runner stopped at position %d", self.position)
