"""This module walks trees of nodes, of the syntax and of the algebra alike, without recursion.

A node is a Struct of msgspec, which is made and compared faster than a dataclass, or a dataclass.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec import Struct, structs

NodeT = TypeVar("NodeT")
_fields: dict[type, tuple[str, ...] | None] = {}


def list_fields(kind: type) -> tuple[str, ...] | None:
    """Return the names of the fields of a class of nodes; None for any other class. Walks ask it for each node."""
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    if kind not in _fields:
        _fields[kind] = tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None
    return _fields[kind]


def replace_fields(node: NodeT, /, **changes: Any) -> NodeT:
    """Return a node with other values in some fields."""
    return structs.replace(node, **changes) if isinstance(node, Struct) else dataclasses.replace(node, **changes)  # type: ignore[type-var]  # a dataclass


def map_fields(node: NodeT, change: Callable[[Any], Any]) -> NodeT:
    """Return a node with what `change` makes of the value of each field."""
    return replace_fields(node, **{name: change(getattr(node, name)) for name in list_fields(type(node)) or ()})


def is_node(value: object) -> bool:
    """Return whether a value is a node of a tree."""
    return list_fields(type(value)) is not None


def walk_nodes(root: object) -> Iterator[object]:
    """Yield the nodes of a tree, each before what is in it and in the order of its fields, found without
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
    """Return the number of nodes above one another, found without recursion."""
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
