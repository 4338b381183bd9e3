"""The one wrapper around numba: compiled once a machine, cached under a key of the kernel's own files.

numba's cache does not see a change in another file of the kernel, and a stale cache can corrupt memory; so the cache's directory
is named by a hash of all of them.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as config_module

config: Any = config_module  # its settings are made when it is loaded
Function = TypeVar("Function", bound=Callable[..., object])


def cache_directory() -> Path:
    """Where this kernel's machine code is kept: below EPSPARQL_CACHE, else XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("EPSPARQL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "epsparql"
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return Path(base) / f"kernel-{digest.hexdigest()[:16]}{'-checked' if config.BOUNDSCHECK else ''}"


_DIRECTORY = str(cache_directory())


def jit(function: Function, *, inline: bool = False, releases: bool = False) -> Function:
    """Compiles `function` on first call; `inline` into its callers, `releases` the GIL while it runs."""
    before = config.CACHE_DIR
    config.CACHE_DIR = _DIRECTORY  # read while decorating; restored, because the setting is the whole process's
    try:
        return cast(Function, numba.njit(cache=True, forceinline=inline, nogil=releases)(function))
    finally:
        config.CACHE_DIR = before


def inlined(function: Function) -> Function:
    """`jit` for small functions on the hot path: calls cost them more than they do."""
    return jit(function, inline=True)


def entry_point(function: Function) -> Function:
    """`jit` for what Python calls."""
    return jit(function, releases=True)
