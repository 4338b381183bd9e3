"""This module numbers hidden variables of aggregates and keys by the algebra alone: wherever a text puts a FILTER,
its query is the same.
"""

from typing import cast

from epsparql import algebra as a
from epsparql.terms import Variable
from epsparql.trees import is_node, list_fields, map_fields


def renumbered(query: a.Query) -> a.Query:
    """Number hidden variables `_:agg#0`, `_:key#0` and so on as they first stand in the tree.

    A group's own come before those of the pattern that it groups.
    """
    names = _names(query)
    return query if all(old == new for old, new in names.items()) else cast(a.Query, _renamed(query, names))


def _names(query: a.Query) -> dict[Variable, Variable]:
    found: dict[Variable, Variable] = {}
    counts: dict[str, int] = {}
    pending: list[object] = [query]
    while pending:
        node = pending.pop()
        match node:
            case Variable(name):
                kind, numbered, _ = name.partition("#")
                if numbered and node not in found:
                    found[node] = Variable(f"{kind}#{counts.get(kind, 0)}")
                    counts[kind] = counts.get(kind, 0) + 1
            case a.Group(pattern, keys, aggregates, window):
                pending += (pattern, window, aggregates, keys)
            case a.Filter(condition, pattern):
                pending += (condition, pattern)
            case tuple():
                pending += reversed(node)
            case _ if (names := list_fields(type(node))) is not None:
                pending += [getattr(node, name) for name in reversed(names)]
    return found


def _renamed(node: object, names: dict[Variable, Variable]) -> object:
    if isinstance(node, Variable):
        return names.get(node, node)
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    return map_fields(node, lambda part: _renamed(part, names)) if is_node(node) else node
