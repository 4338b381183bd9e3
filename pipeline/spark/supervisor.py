"""This module runs the Spark runner as a supervised child process: a dead JVM, driver or worker never reaches the
server.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.object_store.backends import STORE
from pipeline.partition_count import SNAPSHOT_WEIGHT
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.spark_conf import SPARK_CONF

FRUITLESS_STARTS = 5  # starts without a commit, one after the other, before giving up
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
STOP_PATIENCE_S = 15.0
REASON_LINES = 12
LOG_LIMIT = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Says how a Spark job runs.

    With a `store`, which keeps the data directory, tasks read that. `partitions`: None for as many as the data
    directory has, one if it is new. `conf` has Spark's settings as KEY=VALUE.
    """

    partitions: int | None = None
    snapshot_weight: int = SNAPSHOT_WEIGHT
    store: str | None = None
    conf: tuple[str, ...] = ()


class SparkRunner:
    """Runs the queries of a data directory on Spark. The interface is `InProcessRunner`'s.

    `heartbeat` appends an entry to the log that means nothing (`LogWriter.heartbeat`). It is called when the child is
    up, so that `ready` comes after a first commit with everything warm.
    """

    def __init__(
        self,
        data_dir: Path | str,
        master: str = "local[*,4]",
        heartbeat: Callable[[], object] | None = None,
        options: SparkOptions = SparkOptions(),  # it is frozen
    ) -> None:
        self._data, self._master, self._heartbeat, self._options = Path(data_dir).absolute(), master, heartbeat, options
        self._log = self._data / "spark.log"
        self._callbacks: list[Callable[[int], None]] = []
        self._lock = threading.Lock()  # over the fields below
        self._child: subprocess.Popen[str] | None = None
        self._state, self._ready, self._position = "stopped", False, 0
        self._progress, self._refusal = False, ""
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------ what the server sees
    @property
    def ready(self) -> bool:
        return self._ready

    @property
    def position(self) -> int:
        """Return the input-log position up to which solutions are committed."""
        return self._position

    @property
    def state(self) -> str:
        """Return `starting`, `running`, `restarting: <reason>`, `stopped` or `failed: <reason>`."""
        return self._state

    @property
    def pid(self) -> int | None:
        """Return the child's process id."""
        child = self._child
        return None if child is None else child.pid

    def on_commit(self, callback: Callable[[int], None]) -> None:
        """Call `callback(position)` after each commit, from the runner's thread; it must not block."""
        self._callbacks.append(callback)

    def start(self) -> None:
        """Start the child, and return at once; see `ready`."""
        assert not self._threads, "a runner starts once"
        self._data.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(SolutionReader(self._data)) as solutions:
            self._position = solutions.position
        self._state = "starting"
        self._threads = [threading.Thread(target=self._supervise, name="spark-runner", daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        """End the child, in an orderly way if possible, and wait for it.

        The next start does what the child has not committed.
        """
        self._stopping.set()
        with self._lock:
            child = self._child
        if child is not None:
            _end(child)
        for thread in self._threads:
            thread.join()
        self._ready = False
        if not self._state.startswith("failed"):
            self._state = "stopped"

    # ------------------------------------------------------------ supervision
    def _supervise(self) -> None:
        try:
            self._restart_until_stopped()
        except Exception as fault:  # noqa: BLE001  # whatever it was, it must be seen: the server shows the state
            self._ready, self._state = False, f"failed: {type(fault).__name__}: {fault}"
            child = self._child
            if child is not None:
                _end(child)

    def _restart_until_stopped(self) -> None:
        fruitless, pause = 0, FIRST_PAUSE_S
        while not self._stopping.is_set():
            self._progress = False
            status = self._run_child()
            self._ready = False
            if self._stopping.is_set():
                return
            fruitless, pause = (0, FIRST_PAUSE_S) if self._progress else (fruitless + 1, min(pause * 2, LONGEST_PAUSE_S))
            if self._refusal:
                self._state = f"failed: {self._refusal}"
                return
            reason = f"the Spark process ended with status {status}"
            if fruitless >= FRUITLESS_STARTS:
                self._state = f"failed: {reason}, {fruitless} times without progress; the last lines of {self._log}:\n{self._last_lines()}"
                return
            self._state = f"restarting: {reason}"
            self._stopping.wait(pause)

    def _run_child(self) -> int:
        """Start the child and hear it until it ends; return its exit status."""
        self._shorten_log()
        with self._log.open("ab") as log:
            child = self._launch(log)
        with self._lock:
            self._child = child
            stopping = self._stopping.is_set()
        if stopping:
            _end(child)
        assert child.stdout is not None
        for line in child.stdout:
            self._hear(line)
        status = child.wait()
        _kill_group(child)  # a JVM that outlived its driver would do so for some seconds; nobody needs it
        with self._lock:
            self._child = None
        _close(child)
        return status

    def _launch(self, log: IO[bytes]) -> "subprocess.Popen[str]":
        options, root = self._options, str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])}
        command = [sys.executable, "-m", "pipeline.spark", "--data", str(self._data), "--master", self._master]
        command += ["--snapshot-weight", str(options.snapshot_weight)]
        command += [] if options.partitions is None else ["--partitions", str(options.partitions)]
        if options.store is not None:
            command.append("--stored")
            environment[STORE] = options.store  # no flag, for those are shown, and it may hold credentials
        if options.conf:
            environment[SPARK_CONF] = shlex.join(options.conf)  # likewise
        # A session of its own: an interrupt from the terminal is the server's to handle. It ends with its standard input, however we end.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True
        )

    def _hear(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:  # not ours: something printed
            return
        if message.get("state") == "ready":
            self._up()
        elif "refused" in message:
            self._refusal = str(message["refused"])
        elif "position" in message:
            self._committed(int(message["position"]))

    def _up(self) -> None:
        """Note that the job runs; the first heartbeat's commit makes it ready."""
        self._state = "running"
        if self._heartbeat is None or not self._beat():
            self._ready = True

    def _committed(self, position: int) -> None:
        self._position, self._progress, self._ready = position, True, True
        for callback in self._callbacks:
            callback(position)

    def _beat(self) -> bool:
        assert self._heartbeat is not None
        try:
            self._heartbeat()
        except Exception:  # noqa: BLE001  # the log's faults are its writer's to report
            return False
        return True

    # ------------------------------------------------------------ the child's log
    def _last_lines(self) -> str:
        try:
            text = self._log.read_bytes()[-20_000:].decode(errors="replace")
        except OSError:
            return ""
        return "\n".join([line for line in text.splitlines() if line.strip()][-REASON_LINES:])

    def _shorten_log(self) -> None:
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_LIMIT:
                self._log.write_bytes(self._log.read_bytes()[-LOG_LIMIT // 4 :])


def _end(child: "subprocess.Popen[str]") -> None:
    """Ask the child to end by closing its standard input, then insist."""
    assert child.stdin is not None
    with contextlib.suppress(OSError):
        child.stdin.close()
    try:
        child.wait(STOP_PATIENCE_S)
    except subprocess.TimeoutExpired:
        _kill_group(child)
        child.wait()


def _kill_group(child: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _close(child: "subprocess.Popen[str]") -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
