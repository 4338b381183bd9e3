"""Tells the user that code is being compiled, for which the first command on a machine needs minutes; ships what was compiled; readies numba for threads."""

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from numba.core import event
from numba.core.registry import cpu_target

from engine.jit import BASELINE, ENTRY_POINTS

_FUNCTIONS = 10  # a few that a warm-up did not meet take a second, and are not worth a word


class _Counter(event.Listener):
    """Calls `tell` once so many functions were compiled rather than loaded."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell, self._left = tell, _FUNCTIONS

    def on_start(self, event: event.Event) -> None:
        self._left -= 1
        if self._left == 0:
            self._tell()

    def on_end(self, event: event.Event) -> None:
        """Do nothing: only the starts count."""


_WORTH_S = 1.0


class _Timer(event.Listener):
    """Prints each function that took at least _WORTH_S to compile, with what it calls."""

    def __init__(self) -> None:
        self._begun_s: list[float] = []

    def on_start(self, event: event.Event) -> None:
        self._begun_s.append(time.perf_counter())

    def on_end(self, event: event.Event) -> None:
        took_s, function = time.perf_counter() - self._begun_s.pop(), _function_of(event.data)
        if took_s >= _WORTH_S:
            print(f"compiled {function.__module__}.{function.__name__} in {took_s:.1f} s", file=sys.stderr, flush=True)


def _function_of(data: Any) -> Any:
    return data["dispatcher"].py_func


def telling_of_functions() -> AbstractContextManager[object]:
    """Print on standard error what this process compiles, function by function, where that takes a while."""
    return event.install_listener("numba:compile", _Timer())


def telling_of_compiling(tell: Callable[[], object]) -> AbstractContextManager[object]:
    """Call `tell` at most once, as soon as this process has compiled more than a few functions meanwhile."""
    return event.install_listener("numba:compile", _Counter(tell))


def ship_code() -> None:
    """Copy the code of all entry points to `engine.jit.SHIPPED`. This process has to compile for `BASELINE`, and to have compiled or loaded them."""
    for function in ENTRY_POINTS:
        (own, processor), (shipped, _) = function._cache.places(cpu_target.target_context)
        assert processor[1:] == BASELINE
        names = {key: name for key, name in own._load_index().items() if key[1] == processor}
        if names:
            Path(shipped._cache_path).mkdir(parents=True, exist_ok=True)
            shipped._save_index(names)
            for name in names.values():
                shutil.copy(own._data_path(name), shipped._cache_path)


def load_type_tables() -> None:
    """Load what numba otherwise loads with the first compiled function that is called. Call this before there are several threads.

    Another thread that asks for the type of an argument meanwhile fails, since the table of types changes while it looks through it.
    """
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
