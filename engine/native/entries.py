"""This module gives the functions of the compiled code, from the build that fits the processor. Their types and
meanings stand in entries.pyi.

EPSPARQL_NATIVE names another build: `portable` runs on each processor of this kind, `checked` has the sanitizers of
addresses and of undefined behaviour.
"""

import os
from importlib import import_module
from types import ModuleType


def _load() -> ModuleType:
    """Load the build that is asked for, else the best that the processor runs."""
    wanted = os.environ.get("EPSPARQL_NATIVE")
    if wanted not in (None, "", "avx2", "portable", "checked"):
        raise ImportError(f"EPSPARQL_NATIVE is {wanted!r}, which is no build; leave it out, or say avx2, portable or checked")
    try:
        if wanted:
            return import_module(f"engine.native._{wanted}")
        portable = import_module("engine.native._portable")
        return import_module("engine.native._avx2") if portable.has_avx2() else portable
    except ModuleNotFoundError as error:
        raise ImportError(
            f"The compiled code {error.name} is missing; build it with `make native`, or with `pip install -e .` in the checkout"
        ) from error


globals().update({name: value for name, value in vars(_load()).items() if not name.startswith("__")})
