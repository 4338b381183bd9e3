"""Nodes are rebuilt with other parts."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from epsparql import algebra as a
from epsparql.trees import list_fields, replace_fields

Node = TypeVar("Node")
OnPattern = Callable[[a.Pattern], a.Pattern]


def replace_patterns(node: Node, change: OnPattern) -> Node:
    """Return `node` with each pattern directly below it changed, those of EXISTS in its expressions too; `node`
    itself where none changes.
    """
    return rebuild(node, lambda value: _changed(value, change))


def rebuild(node: Node, change: Callable[[Any], Any]) -> Node:
    """Return a node with each field, or each part of one that is a tuple, changed; the node itself where none changes."""
    changed: dict[str, Any] = {}
    for name in list_fields(type(node)) or ():
        before = getattr(node, name)
        after = change_parts(before, change) if type(before) is tuple else change(before)
        if after is not before:
            changed[name] = after
    return replace_fields(node, **changed) if changed else node


def change_parts(parts: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return a tuple, and those in it, with each part changed; the tuple itself where none changes."""
    changed = tuple(change_parts(part, change) if type(part) is tuple else change(part) for part in parts)
    return parts if all(after is before for after, before in zip(changed, parts, strict=True)) else changed


_PATTERNS = frozenset(get_args(a.Pattern))
_HOLDERS = frozenset({*get_args(a.Expression), a.Aggregate, a.OrderKey, a.Modifiers, a.Once, a.RunWindow})


def _changed(value: Any, change: OnPattern) -> Any:
    kind = type(value)
    if kind in _PATTERNS:
        return change(value)
    return replace_patterns(value, change) if kind in _HOLDERS else value
