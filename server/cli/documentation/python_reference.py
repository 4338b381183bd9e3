"""Writes the reference of the Python interface as a page, from signatures and docstrings."""

import inspect
from collections.abc import Iterator

import epsparql
from epsparql import async_client, client

_CLIENTS = (client.Client, client.Feed, client.Subscription, client.Tail)


def write_python_page() -> str:
    """Return a page with the public functions and classes."""
    lines = ["# Python", "", inspect.getdoc(epsparql) or "", ""]
    for name in epsparql.__all__:
        found = getattr(epsparql, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            lines += _describe_member(f"epsparql.{name}", found)
    for each in _CLIENTS:
        lines += _describe_member(f"{each.__module__}.{each.__name__}", each)
        for name, method in inspect.getmembers(each, inspect.isfunction):
            if not name.startswith("_") and inspect.getdoc(method):
                lines += _describe_member(f"{each.__name__}.{name}", method, "###")
    lines += [*_describe_member("epsparql.async_client.AsyncClient", async_client.AsyncClient), "Its methods are those of Client, as coroutines."]
    return "\n".join(lines) + "\n"


def _describe_member(name: str, found: object, level: str = "##") -> Iterator[str]:
    assert callable(found)
    yield from (
        f"{level} {name}",
        "",
        "```python",
        f"{name.rpartition('.')[2]}{inspect.signature(found)}",
        "```",
        "",
        inspect.getdoc(found) or "",
        "",
    )
