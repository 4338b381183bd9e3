"""Where work that would hold up the event loop is done."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


def _finished(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return work(*args, **kwargs)
    except StopIteration as fault:
        raise RuntimeError(f"{work} ran out of what it reads") from fault


class Threads(ThreadPoolExecutor):
    """Of an event loop. No asyncio future takes a StopIteration: who awaits such work would wait for ever, so it ends as in a generator (PEP 479)."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(_finished, work, *args, **kwargs)
