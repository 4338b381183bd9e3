"""This package defines EP-SPARQL as a language, text to algebra and back, and holds the clients of the server.

Public names are loaded when they are asked for: a program that only talks to a server does not load the grammar.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from epsparql import terms

if TYPE_CHECKING:
    from epsparql.errors import QueryError, Warning_
    from epsparql.in_process import run
    from epsparql.renderer.queries import render
    from epsparql.translate.translator import ParsedQuery, parse

    __version__: str

__all__ = ["ParsedQuery", "QueryError", "Warning_", "__version__", "parse", "render", "run", "terms"]

_HOMES = {
    "ParsedQuery": "translate.translator",
    "QueryError": "errors",
    "Warning_": "errors",
    "parse": "translate.translator",
    "render": "renderer.queries",
    "run": "in_process",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("epsparql")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"epsparql.{_HOMES[name]}"), name)
    globals()[name] = found  # the next access finds it without this function
    return found
