"""Runs a server in another process, for the demo and for benchmarks."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_STOP_S = 30


class ChildFailed(Exception):
    """Reports that the server did not start; the message ends with the server's own output."""


class Child:
    """Runs `epsparql serve` on a port of this machine (0: any free one) with `extra` flags, until the block is left.

    `command` is the module that has the command line, with arguments before those of the server.
    """

    def __init__(
        self, data: Path, runner: str, log: Path, port: int = 0, extra: Sequence[str] = (), command: Sequence[str] = ("server.cli",)
    ) -> None:  # fmt: skip
        self._command = [sys.executable, "-m", *command, "serve", "--port", str(port), "--data", str(data), "--runner", runner, *extra]
        self._log = log
        self.url = ""

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if " on http" not in line:
            self._end_process()
            raise ChildFailed(f"the server did not start:\n{self._log.read_text(errors='replace')[-2000:]}")
        self.url = line.rpartition(" on ")[2].strip()
        return self

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self, patience_s: float = _STOP_S) -> int:
        """Stop the server in an orderly way, by force after `patience_s`, and return its exit code."""
        self._end_process(patience_s)
        return self._process.returncode

    def kill(self) -> None:
        """Kill the server, with no chance to clean up."""
        self._process.kill()
        self._process.wait()

    def _end_process(self, patience_s: float = _STOP_S) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end_process()
