"""This module gives the functions of the compiled code, from the build that fits the processor. Their types and
meanings stand in entries.pyi.

EPSPARQL_NATIVE names another build: `portable` runs on each processor of this kind, `checked` has the sanitizers of
addresses and of undefined behaviour.
"""

import os
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType


def _check_age(module: ModuleType) -> None:
    """Refuse a build of a checkout that is older than its source, since its tables may have other columns."""
    built, root = Path(str(module.__file__)), Path(__file__).parents[1]
    if not (root.parent / "setup.py").is_file():
        return  # it is installed, and files have the times of the installation
    age = built.stat().st_mtime_ns
    for path in chain(root.glob("native/source/*/*"), root.glob("native/source/*.[ch]"), root.glob("*/layout.py"), root.glob("*/*/layout.py")):
        if path.stat().st_mtime_ns > age:
            raise ImportError(f"The compiled code {built.name} is older than {path.relative_to(root.parent)}; build it with `make native`")


def _load() -> ModuleType:
    """Load the build that is asked for, else the best that the processor runs."""
    wanted = os.environ.get("EPSPARQL_NATIVE")
    if wanted not in (None, "", "avx2", "portable", "checked"):
        raise ImportError(f"EPSPARQL_NATIVE is {wanted!r}, which is no build; leave it out, or say avx2, portable or checked")
    try:
        if wanted:
            return import_module(f"engine.native._{wanted}")
        portable = import_module("engine.native._portable")
        if not portable.has_avx2():
            return portable
        try:
            return import_module("engine.native._avx2")
        except ModuleNotFoundError:
            return portable  # a wheel may have this build alone
    except ModuleNotFoundError as error:
        raise ImportError(
            f"The compiled code {error.name} is missing; build it with `make native`, or with `pip install -e .` in the checkout"
        ) from error


_native = _load()
_check_age(_native)
globals().update({name: value for name, value in vars(_native).items() if not name.startswith("__")})
