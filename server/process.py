"""Keeps a process small: what it loads, and the memory that it keeps."""

import ctypes
import gc
import os
import time
from importlib import import_module

from pipeline.hidden_modules import hide_modules


def clock() -> int:
    """Return the time of day in µs since 1970. Everything below the server is given this clock."""
    return time.time_ns() // 1000


def leave_out_unused() -> None:
    """Hide what no command uses. Call this before the first array.

    pyarrow loads pandas (32 MB) and httpx its command line (7 MB). FastAPI loads the first version of pydantic, to
    recognise its models: 26 modules. A second thread for products of matrices would wait for work by spinning.
    """
    hide_modules("pandas", "httpx._main", "pydantic.v1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would read the metadata of all installed packages
    if "EPSPARQL_FUNCTIONS" not in os.environ:  # functions of users may multiply matrices
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def defer_validators() -> None:
    """Have pydantic build the validator of a model when it is first used. Call this before FastAPI is imported.

    Those of our documents and of FastAPI's description of OpenAPI took a tenth of a start.
    """
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True  # its subclasses inherit it


GARBAGE_LOOK = 50_000, 4, 1
"""A server has Python look for garbage among new objects each time that there are so many.

Each fifth look is among older ones too, and each second of these among all, if a quarter of them are new. With
Python's usual hundredth, a busy server kept 20 minutes of closed connections.
"""

_GRAMMARS = ("epsparql.parser.grammar", "epsparql.etalis.parser.grammar")
_RUNNERS = {"inprocess": "pipeline.runners.in_process", "spark": "pipeline.spark.supervisor"}


def load_grammars() -> None:
    """Load the grammars, which otherwise the first text that is parsed waits for."""
    for module in _GRAMMARS:
        import_module(module)


def load_runner(runner: str) -> None:
    """Load the code of a kind of runner, as the settings name it."""
    import_module(_RUNNERS[runner])


def set_aside() -> None:
    """Exempt what was imported from garbage collection, because it stays.

    The collector stops all threads while it looks through objects. It does not look for garbage among these first,
    because that takes a twentieth of a start and finds some hundred objects.
    """
    gc.set_threshold(*GARBAGE_LOOK)
    gc.freeze()
    gc.collect()  # a full collection waits until the new objects are a quarter of those that the last one left: none now
    give_back_memory()


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # numbers of glibc's mallopt
KEPT_BYTES, LARGE_BYTES = 256 << 20, 32 << 20
"""So much freed memory is kept at the end of the heap.

Blocks larger than the second value have mappings of their own, which is glibc's limit.
"""


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for the next block of events, and share it between threads.

    With the usual settings each block of solutions gets new pages, which the system clears first. That took a sixth
    of the time of rules that derive much (docs/decisions/0011-terms-in-arrays.md). And eight heaps for each core
    keep what their threads have freed. Arrow uses the same heaps, if this is called before its import.
    `give_back_memory` returns what is kept. Other C libraries than glibc are left as they are.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        for parameter, value in ((_TRIM_THRESHOLD, KEPT_BYTES), (_MMAP_THRESHOLD, LARGE_BYTES), (_ARENA_MAX, max(os.cpu_count() or 1, 2))):
            tune(parameter, value)


def give_back_memory() -> None:
    """Return to the system what the C library keeps of freed memory for each thread: a quarter of a server's memory
    after an hour of changes.

    It takes milliseconds. Other C libraries than glibc have no such function, and keep less.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
