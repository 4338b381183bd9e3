"""This module walks trees of dataclass nodes, of the syntax and of the algebra alike, without recursion."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

_fields: dict[type, tuple[str, ...] | None] = {}


def list_fields(kind: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields; None for any other class. Walks ask it for each node of a tree."""
    if kind not in _fields:
        _fields[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
    return _fields[kind]


def walk_nodes(root: object) -> Iterator[object]:
    """Yield the dataclass nodes of a tree, each before what is in it and in the order of its fields, found without
    recursion.
    """
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending += reversed(node)
        elif (names := list_fields(type(node))) is not None:
            yield node
            pending += [getattr(node, name) for name in reversed(names)]


def tree_depth(root: object) -> int:
    """Return the number of dataclass nodes above one another, found without recursion."""
    deepest = 0
    pending = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, tuple):
            pending.extend((part, depth) for part in node)
        elif (names := list_fields(type(node))) is not None:
            deepest = max(deepest, depth)
            pending += [(getattr(node, name), depth + 1) for name in names]
    return deepest
