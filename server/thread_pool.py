"""Defines the threads in which the server runs what would hold up its event loop."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


def _finished(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return work(*args, **kwargs)
    except StopIteration as fault:
        raise RuntimeError(f"{work} ran out of what it reads") from fault


class Threads(ThreadPoolExecutor):
    """Runs work for an event loop, with StopIteration turned into RuntimeError.

    No asyncio future takes a StopIteration, so its caller would wait for ever. Generators do the same (PEP 479).
    """

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(_finished, work, *args, **kwargs)
