"""This module starts threads that wait for a store.

A call that waits in a client of pyarrow cannot be interrupted, and at exit pyarrow waits for it too; so such a thread may be left behind.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from pipeline.errors import StoreFailed

_NAME = "export"
_Given = TypeVar("_Given")


def waiting(run: Callable[[], None]) -> threading.Thread:
    """Return a thread that is to be started."""
    return threading.Thread(target=run, name=_NAME, daemon=True)


def within(seconds: float, work: Callable[[], _Given]) -> _Given:
    """Return what `work` gives. Raises: StoreFailed if it has given nothing within `seconds`; whatever `work` raises."""
    given: Future[_Given] = Future()

    def run() -> None:
        try:
            given.set_result(work())
        except BaseException as fault:  # noqa: BLE001 - raised again below
            given.set_exception(fault)

    thread = waiting(run)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise StoreFailed(f"it does not answer within {seconds:g} s")
    return given.result()


def leave(code: int) -> int:
    """Return the exit code; where a thread was left behind, end the process here."""
    if any(thread.name == _NAME for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
