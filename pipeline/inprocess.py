"""The runner without Spark: a thread that follows the log."""

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

from pipeline.buckets import Host, host_for
from pipeline.errors import OutOfOrder
from pipeline.hosting import MAX_ROWS, Advance
from pipeline.log import LogReader
from pipeline.sharing import SNAPSHOT_WEIGHT, settle
from pipeline.solutions import SolutionWriter

_WAKE_S = 0.2  # how late it may notice that it is to stop
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 15.0  # before it tries again; twice as long each time that nothing was gained
_log = logging.getLogger(__name__)


class InProcessRunner:
    """`reader` may be `LogWriter.reader()` of this process, which wakes the runner at once; without one the log's head file is polled.

    `buckets`: None for as many as the data directory has, one if it is new.
    """

    def __init__(
        self,
        data_dir: Path | str,
        reader: LogReader | None = None,
        *,
        buckets: int | None = None,
        max_rows: int = MAX_ROWS,
        snapshot_weight: int = SNAPSHOT_WEIGHT,
    ) -> None:
        self._buckets = buckets
        self._data, self._reader, self._max_rows, self._snapshot_weight = Path(data_dir), reader or LogReader(data_dir), max_rows, snapshot_weight
        self._callbacks: list[Callable[[int], None]] = []
        self._stopping = Event()
        self._thread: Thread | None = None
        self._position = 0
        self._state = "stopped"

    def start(self) -> None:
        """Raises: Locked, Corrupt."""
        assert self._thread is None, "a runner is started once"
        solutions = SolutionWriter(self._data)
        self._position, self._state = solutions.position, "starting"
        self._thread = Thread(target=self._run, args=(solutions,), name="runner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the piece at work, save the engine, release the solution log."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def ready(self) -> bool:
        return self._state == "running"

    @property
    def position(self) -> int:
        """The input-log position up to which solutions are committed."""
        return self._position

    @property
    def lag(self) -> int:
        """Entries that are in the log and not yet answered."""
        return max(self._reader.head() - self._position, 0)

    @property
    def state(self) -> str:
        """`starting`, `running`, `waiting: <reason>`, `stopped` or `failed: <reason>`."""
        return self._state

    def on_commit(self, callback: Callable[[int], None]) -> None:
        """`callback(position)` after each commit, from the runner's thread; it must not block."""
        self._callbacks.append(callback)

    def _run(self, first: SolutionWriter) -> None:
        """Work until stopped. What the system refuses (a full disk, say) is waited out; any other fault is the end."""
        solutions: SolutionWriter | None = first
        pause = 0.0
        try:
            while solutions is not None or not self._stopping.wait(pause):
                begun = self._position
                try:
                    with closing(solutions or self._reopened()) as writer:
                        self._work(writer)
                except OSError as fault:
                    pause = min(max(_FIRST_PAUSE_S, 2 * pause if self._position == begun else 0.0), _LONGEST_PAUSE_S)
                    self._state = f"waiting: {type(fault).__name__}: {fault}; the next try comes in {pause:g} s"
                    _log.warning("the runner at position %d tries again in %g s", self._position, pause, exc_info=True)
                solutions = None
            self._state = "stopped"
        except Exception as fault:  # noqa: BLE001  # whatever it was, it must be seen: the server shows the state
            self._state = f"failed: {type(fault).__name__}: {fault}"
            _log.exception("the runner stopped at position %d", self._position)

    def _work(self, solutions: SolutionWriter) -> None:
        """Follow the log until stopped, with an engine brought anew to the committed position: one that failed half-way is of no use."""
        number = settle(self._data, self._buckets)
        with closing(host_for(self._data, number, reader=self._reader, snapshot_weight=self._snapshot_weight)) as host:
            for _ in host.run(self._position, self._position, self._max_rows):
                raise AssertionError("an empty range brings nothing")
            self._state = "running"
            while not self._stopping.is_set():
                head = self._reader.wait(self._position, _WAKE_S)
                if head > self._position:
                    self._follow(host, solutions, head)
                else:
                    host.tell()
            host.save()

    def _reopened(self) -> SolutionWriter:
        """The solution log as it is on disk: a commit that failed may be there or not. Raises: Locked, Corrupt, OutOfOrder, OSError."""
        solutions = SolutionWriter(self._data)
        if solutions.position < self._position:
            solutions.close()
            raise OutOfOrder(f"the solutions end at {solutions.position}, before {self._position}, to which they were committed")
        if solutions.position > self._position:
            self._reached(solutions.position)
        return solutions

    def _follow(self, host: Host, solutions: SolutionWriter, head: int) -> None:
        for piece in host.run(self._position, head, self._max_rows):
            self._commit(solutions, piece)
            if self._stopping.is_set():
                break
        if host.unswept:
            solutions.sync()  # snapshots may go only where solutions are there to stay
            host.sweep(self._position)

    def _commit(self, solutions: SolutionWriter, piece: Advance) -> None:
        solutions.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
        self._reached(piece.hi)

    def _reached(self, position: int) -> None:
        self._position = position
        for callback in self._callbacks:
            callback(position)
