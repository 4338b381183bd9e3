"""The one wrapper around numba: functions are compiled once a machine, and cached under a key of the package's own files.

numba's cache does not see a change in another file of the package, and a stale cache can corrupt memory. So the cache's directory is named
by a hash of all files of the package, in its sub-folders too, and of this file. The path of the files is no part of the key, so clones and
environments of one machine share what one of them compiled. Each package of compiled functions has a key of its own, so it is not compiled
anew when another one changes. Its `__init__.py` says

    native = Native.of(Path(__file__).parent)

and its functions are decorated with `@native.entry_point`, `@native.jit` and `@native.inlined`. They may call compiled functions of their
own package alone, since the key would not see a change of another's, and those of others by address (`callback`). Functions are compiled when
they are first called, so what `epsparql warm` runs (engine/warmup.py for the engine's packages) calls each entry point.

Only entry points become machine code, each with all that it calls, and only they are cached. The other functions are kept as LLVM's intermediate
code while the process compiles. numba would optimize each of them, and again in each function above it, and give each two wrappers for Python.

A wheel has code for BASELINE in the folder SHIPPED, with the same keys. It is loaded where the user's cache has none for this processor. Another
version of Python, numba or LLVM, another platform, or a processor that lacks a feature of BASELINE finds nothing there, and compiles.
"""

import hashlib
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
from llvmlite import ir
from numba.core import config as config_module
from numba.core.caching import FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.core.sigutils import normalize_signature

config: Any = config_module  # its settings are made when it is loaded
njit: Any = numba.njit  # its types lack some of its options
Function = TypeVar("Function", bound=Callable[..., object])
ENTRY_POINTS: list[Any] = []
"""The functions that Python calls, of the modules that are loaded. Their code has all that they call in it, so they are all that is shipped."""
SHIPPED = Path(__file__).parent / "compiled"
BASELINE = {
    "aarch64": ("generic", "+fp-armv8,+neon"),
    "x86_64": (
        "x86-64-v3",
        "+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
}.get(platform.machine(), ("generic", ""))
"""The processor that shipped code is for, by its name and features as LLVM spells them. x86-64-v3 is Intel's since 2013 (Haswell) and AMD's since 2015."""


def cache_directory(package: Path) -> Path:
    """Return where a package's machine code is kept: below EPSPARQL_CACHE, else XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("EPSPARQL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "epsparql"
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for file in sorted({*(package.rglob("*.py") if package.is_dir() else [package]), Path(__file__)}):
        digest.update(file.read_bytes())
    return Path(base) / f"{package.parent.name}-{package.stem}-{digest.hexdigest()[:16]}{'-checked' if config.BOUNDSCHECK else ''}"


class ContentLocator(UserProvidedCacheLocator):
    """Tells numba where the machine code of one file stands: below the package's directory, whatever the path of the file."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(Path(config.CACHE_DIR) / Path(file).parent.name)  # the setting is another one when code is saved

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "ContentLocator":
        """Return the locator of a function. Its directory need not be there, nor be writable: shipped code is used all the same."""
        return cls(py_func, py_file)

    def get_source_stamp(self) -> str:
        """Return nothing that could differ: the name of the directory already holds the hash of all files."""
        return ""


class ContentCache(FunctionCache):
    """Loads a function's code from the user's cache, else from SHIPPED; saves what was compiled in the user's cache, if that can be written."""

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        signature, _, hashes = self._index_key(sig, target_context.codegen())
        for file, processor in self.places(target_context):
            found = file.load((signature, processor, hashes))
            if found is not None:
                return self._impl.rebuild(target_context, found)
        return None

    def places(self, target: Any) -> Iterator[tuple[IndexDataCacheFile, tuple[str, ...]]]:
        """Yield the files that may have code for this processor, and under which processor's key."""
        own = triple, _, features = target.codegen().magic_tuple()
        yield self._cache_file, own
        if {*BASELINE[1].split(",")} <= {*features.split(",")}:
            shipped = SHIPPED.joinpath(*Path(self.cache_path).parts[-2:])
            yield IndexDataCacheFile(str(shipped), self._impl.filename_base, ""), (triple, *BASELINE)


def has_code(function: Any) -> bool:
    """Return whether there is code of a function of a `Native` for this processor, so that it is loaded rather than compiled."""
    places = function._cache.places(cpu_target.target_context)
    return any(key[1] == processor for file, processor in places for key in file._load_index())


def build_prefetch(builder: Any, address: Any) -> None:
    """Emit the instruction that lets the cache fetch what stands at an address, which may be any, while the program goes on.

    This is for the intrinsics of the packages, whose keys see this file.
    """
    number = ir.IntType(32)
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    reading, lasting, data = (ir.Constant(number, flag) for flag in (0, 3, 1))
    builder.call(builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind), [builder.bitcast(address, pointer), reading, lasting, data])


class InnerCode(JITCodeLibrary):
    """Keeps the code of a function that only compiled code calls, until it becomes machine code as a part of an entry point."""

    def _optimize_final_module(self) -> None:
        """Do nothing: entry points are optimized with all that they call."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address: Python cannot call the function."""
        return 0

    @property
    def codegen(self) -> "InnerCode":
        """Return the object that numba gives the function's environment to."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing: the environment stands in machine code."""


class InnerCompiler(Compiler):
    """Compiles a function to InnerCode."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, InnerCode(target.codegen(), "inner"), *rest)


@dataclass(frozen=True, slots=True)
class Native:
    """Compiles the functions of one package and keeps them in its `directory`."""

    directory: str

    @classmethod
    def of(cls, package: Path) -> "Native":
        """Return the compiler of a package, whose files stand in a folder and below; or of one file."""
        return cls(str(cache_directory(package)))

    def jit(self, function: Function, *, inline: bool = False, counts: bool = True) -> Function:
        """Compile `function` as a part of the entry points that call it; `inline` into its callers.

        A function that neither makes arrays nor returns any need not count references to them, which costs as much as a short function does.
        """
        decorate = njit(forceinline=inline, pipeline_class=InnerCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=counts)
        return cast(Function, decorate(function))

    def inlined(self, function: Function) -> Function:
        """Compile a small function on the hot path into its callers: calls cost it more than it does."""
        return self.jit(function, inline=True)

    def entry_point(self, function: Function) -> Function:
        """Compile a function that Python calls, when it is first called. It releases the GIL while it runs."""
        return cast(Function, self._kept(njit(nogil=True)(function), function))

    def callback(self, function: Function, signature: Any) -> Any:
        """Compile a function at once that compiled code of other packages calls by its `address`; it lives as long as what is returned.

        It makes no arrays.
        """
        compiled = self._kept(CFunc(function, normalize_signature(signature), {}, {"_nrt": False}), function)
        compiled.compile()
        return compiled

    def _kept(self, compiled: Any, function: Any) -> Any:
        """Let the code of an entry point be kept in this package's directory."""
        before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
        # Both are read by the cache when it is made; they are restored, because the settings are the whole process's.
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = self.directory, f"{__name__}.{ContentLocator.__name__}"
        try:
            compiled._cache = ContentCache(function)
        finally:
            config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before
        ENTRY_POINTS.append(compiled)
        return compiled
