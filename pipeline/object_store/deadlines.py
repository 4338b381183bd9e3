"""Threads that wait for a store. What waits in a client of pyarrow cannot be interrupted, and at exit pyarrow waits for it too; so such a thread may be left behind."""

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
    """To be started."""
    return threading.Thread(target=run, name=_NAME, daemon=True)


def within(seconds: float, work: Callable[[], _Given]) -> _Given:
    """What `work` gives. Raises: StoreFailed if it has given nothing by then; whatever `work` raises."""
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
    """The exit code; where a thread was left behind, the process ends here."""
    if any(thread.name == _NAME for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
