"""The one wrapper around numba: compiled once a machine, cached under a key of a package's own files.

numba's cache does not see a change in another file of the package, and a stale cache can corrupt memory; so the cache's directory
is named by a hash of all of them, and of this file. `jit`, `inlined` and `entry_point` are the kernel's. Another package of compiled
functions has a key of its own, and is not compiled anew when the kernel changes; one of its files says

    native = Native.of(Path(__file__).parent)

and its functions are decorated with `@native.entry_point`, `@native.jit` and `@native.inlined`. They may call compiled functions of their
own package alone: of another's, the key would not see a change. Functions are compiled when they are first called, so what
`epsparql warm` runs (engine/warm.py for the engine's packages) calls each entry point.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as config_module

config: Any = config_module  # its settings are made when it is loaded
Function = TypeVar("Function", bound=Callable[..., object])


def cache_directory(package: Path) -> Path:
    """Where a package's machine code is kept: below EPSPARQL_CACHE, else XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("EPSPARQL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "epsparql"
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted({*package.glob("*.py"), Path(__file__)}):
        digest.update(file.read_bytes())
    return Path(base) / f"{package.name}-{digest.hexdigest()[:16]}{'-checked' if config.BOUNDSCHECK else ''}"


@dataclass(frozen=True, slots=True)
class Native:
    """Compiles the functions of one package and keeps them in its `directory`."""

    directory: str

    @classmethod
    def of(cls, package: Path) -> "Native":
        """For the package whose files stand in a folder."""
        return cls(str(cache_directory(package)))

    def jit(self, function: Function, *, inline: bool = False, releases: bool = False) -> Function:
        """Compiles `function` on first call; `inline` into its callers, `releases` the GIL while it runs."""
        before = config.CACHE_DIR
        config.CACHE_DIR = self.directory  # read while decorating; restored, because the setting is the whole process's
        try:
            return cast(Function, numba.njit(cache=True, forceinline=inline, nogil=releases)(function))
        finally:
            config.CACHE_DIR = before

    def inlined(self, function: Function) -> Function:
        """`jit` for small functions on the hot path: calls cost them more than they do."""
        return self.jit(function, inline=True)

    def entry_point(self, function: Function) -> Function:
        """`jit` for what Python calls."""
        return self.jit(function, releases=True)


_kernel = Native.of(Path(__file__).parent)
jit, inlined, entry_point = _kernel.jit, _kernel.inlined, _kernel.entry_point
