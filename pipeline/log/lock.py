"""This module lets one writer at a time into a directory."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from pipeline.errors import Locked

PATIENCE_S = 30.0  # the holder of a killed server's lock goes within seconds
_LOOK_S = 0.1
_Held = TypeVar("_Held")


class Over(Protocol):
    """Says when to end. A `threading.Event` is one."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> bool: ...


class DirectoryLock:
    """Holds an advisory lock that the system releases with its process. Raises: Locked, OSError."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise Locked(path, f"process {holder}" if holder else "another process") from None
        try:
            self._sign(f"{os.getpid()}\n".encode())
        except OSError:  # a full disk: who tries again must not meet a lock of his own
            self.close()
            raise

    def _sign(self, name: bytes) -> None:
        """Write the holder's name, unless it is there: a process that takes its lock again needs no room on the disk."""
        if os.pread(self._fd, 32, 0) != name:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, name, 0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def take_when_free(take: Callable[[], _Held], over: Over) -> _Held | None:
    """Return what `take` gives once `take` no longer raises Locked, or None if it is over before.

    Raises: Locked after `PATIENCE_S`; any other error of `take`.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not over.is_set():
        try:
            return take()
        except Locked:
            if time.monotonic() > deadline:
                raise
        over.wait(_LOOK_S)
    return None
