"""Nodes are rebuilt with other parts."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from epsparql import algebra as a

Node = TypeVar("Node")
OnPattern = Callable[[a.Pattern], a.Pattern]


def replace_patterns(node: Node, change: OnPattern) -> Node:
    """Return `node` with each pattern directly below it changed, those of EXISTS in its expressions too."""
    assert is_dataclass(node)
    assert not isinstance(node, type)
    return replace(node, **{field.name: _changed(getattr(node, field.name), change) for field in fields(node)})


def _changed(value: Any, change: OnPattern) -> Any:
    if isinstance(value, a.Pattern):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(part, change) for part in value)
    if isinstance(value, a.Expression | a.Aggregate | a.OrderKey | a.Modifiers | a.RunWindow):
        return replace_patterns(value, change)
    return value
