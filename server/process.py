"""A server's process without what it does not need."""

import gc
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class _Without(MetaPathFinder):
    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname == self._name:
            raise ModuleNotFoundError(f"{fullname} is not for this process", name=fullname)
        return None


def leave_out_pandas() -> None:
    """pyarrow loads it, 32 MB, wherever it is installed, to see whether what it is given is of pandas. To be called before pyarrow makes its first array."""
    sys.meta_path.insert(0, _Without("pandas"))


def set_aside() -> None:
    """What was imported and compiled stays, so the collector of garbage, which stops all threads for as long as it looks, need not look through it again."""
    gc.collect()
    gc.freeze()
    gc.collect()  # it waits with all generations until a quarter of what the last time left has come: that is little now


def _finished(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return work(*args, **kwargs)
    except StopIteration as fault:
        raise RuntimeError(f"{work} ran out of what it reads") from fault


class Threads(ThreadPoolExecutor):
    """Of an event loop. No asyncio future takes a StopIteration: who awaits such work would wait for ever, so it ends as in a generator (PEP 479)."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(_finished, work, *args, **kwargs)
