"""The statements of our source files, which are parsed once for all tests that look at them."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def statements_of(file: Path) -> tuple[ast.AST, ...]:
    """Return the module and the statements of a file.

    Expressions, which are most of a tree and hold no definitions and imports, are not walked. All trees stay, so the
    garbage collector does not look at them, which would take as long as parsing.
    """
    found = tuple(list_statements(ast.parse(file.read_text(encoding="utf-8"))))
    gc.freeze()
    return found


def list_statements(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield from list_statements(child)
