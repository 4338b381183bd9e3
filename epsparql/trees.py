"""This module walks trees of dataclass nodes, of the syntax and of the algebra alike, without recursion."""

from collections.abc import Iterator
from dataclasses import is_dataclass


def walk_nodes(root: object) -> Iterator[object]:
    """Yield the dataclass nodes of a tree, each before what is in it and in the order of its fields, found without recursion."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending += reversed(node)
        elif is_dataclass(node):
            yield node
            pending += [getattr(node, name) for name in reversed(list(node.__dataclass_fields__))]


def tree_depth(root: object) -> int:
    """Return the number of dataclass nodes above one another, found without recursion."""
    deepest = 0
    pending = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, tuple):
            pending.extend((part, depth) for part in node)
        elif is_dataclass(node):
            deepest = max(deepest, depth)
            pending.extend((getattr(node, name), depth + 1) for name in node.__dataclass_fields__)
    return deepest
