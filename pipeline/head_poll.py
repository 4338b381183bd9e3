"""This module waits for positions that other processes publish in files.

Linux tells at once that a process of this machine has written to a file. Where it does not tell, because another
machine writes, the files are looked at often, and less often after a silence.
"""

import ctypes
import os
import select
import time
import weakref
from collections.abc import Callable
from pathlib import Path

_POLL_S, _SILENT_POLL_S, _SILENCE_S = 0.002, 0.01, 1.0
"""A look every 2 ms costs a hundredth of a core for each process that waits."""
_MISSES = 3
"""After so many writes that were not told of, one after the other, the files are looked at."""
_IN_MODIFY = 2


class HeadPoll:
    """Waits until one of some files is written to. One thread at a time."""

    def __init__(self, *files: Path) -> None:
        self._files, self._missed, self._news_s = files, 0, time.monotonic()
        self._notices: int | None = None

    def wait(self, head: Callable[[], int], position: int, timeout: float) -> int:
        """Return the head, as soon as it is beyond `position` or `timeout` seconds have passed."""
        deadline, told = time.monotonic() + timeout, True
        while (reached := head()) <= position and (left := deadline - (now := time.monotonic())) > 0:
            if self._has_notices():
                told = self._wait_for_notice(left)
            else:
                time.sleep(min(_SILENT_POLL_S if now - self._news_s > _SILENCE_S else _POLL_S, left))
        if reached > position:
            self._news_s = time.monotonic()
            self._missed = 0 if told or self._wait_for_notice(0.0) else self._missed + 1
        return reached

    def _has_notices(self) -> bool:
        """Return whether the system is to tell of writes, and have it do so once all files are there."""
        if self._missed >= _MISSES:
            return False
        if self._notices is None and (opened := _open_notices(self._files)) is not None:
            self._notices = opened
            weakref.finalize(self, os.close, opened)
            return self._wait_for_notice(0.0)  # what was written before the files were watched is looked at first
        return self._notices is not None

    def _wait_for_notice(self, timeout: float) -> bool:
        """Return whether a file was written to since the last notice, as soon as that is so or `timeout` seconds have
        passed.
        """
        assert self._notices is not None
        poll = select.poll()  # `select` refuses descriptors from 1024 on
        poll.register(self._notices, select.POLLIN)
        if not poll.poll(timeout * 1000):
            return False
        os.read(self._notices, 65536)
        return True


def _open_notices(files: tuple[Path, ...]) -> int | None:
    """Return a descriptor that can be read when a file was written to; None where the system has none, or a file is
    not there.
    """
    try:
        libc = ctypes.CDLL(None)
        opened = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return None
    if opened < 0:
        return None
    if any(libc.inotify_add_watch(opened, os.fsencode(file), _IN_MODIFY) < 0 for file in files):
        os.close(opened)
        return None
    return opened
