"""This module makes room on the stack for walks over nested queries."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.RLock()
_FRAMES = 20_000


@contextmanager
def deep_stack() -> Iterator[None]:
    """Make room for 100 open brackets, each at most forty frames of the parser, and for 200 operators above one
    another, wherever the caller stands.

    The limit is the process's, hence the lock.
    """
    with _LOCK:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _FRAMES))
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)
