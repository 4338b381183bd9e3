"""Variables of a sub-SELECT that it does not project get names of their own, so that they meet no others."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from engine.rewrite.transform import change_parts, rebuild
from epsparql import algebra as a
from epsparql.terms import BlankNode, Iri, Literal, TripleTerm, Variable
from epsparql.trees import is_node, map_fields, walk_nodes

Names = Mapping[Variable, Variable]


def rename_hidden(query: a.Query) -> a.Query:
    """Return the query with every variable that a sub-SELECT hides renamed; its meaning is the same."""
    return cast(a.Query, _Renaming().renamed(query, {}))


Node = TypeVar("Node", bound=a.Expression | a.Pattern)


def rename_variables(node: Node, names: Names) -> Node:
    """Return an expression or a pattern over other variables; sub-SELECTs have been renamed before, or there are none."""
    return cast(Node, _Renaming().renamed(node, names))


class _Renaming:
    def __init__(self) -> None:
        self._count = 0

    def renamed(self, node: Any, names: Names) -> Any:
        match node:
            case Variable():
                return names.get(node, node)
            case Iri() | Literal() | BlankNode() | TripleTerm() | str():
                return node
            case a.SubSelect():
                return self._rename_select(node, names)
            case tuple():
                return change_parts(node, lambda part: self.renamed(part, names))
            case _ if is_node(node):
                return rebuild(node, lambda part: self.renamed(part, names))
            case _:
                return node

    def _rename_select(self, select: a.SubSelect, names: Names) -> a.SubSelect:
        self._count += 1
        hidden = find_variables(select) - set(select.projection)
        inner = {v: names.get(v, v) for v in select.projection} | {v: self._hidden(v) for v in hidden}
        return map_fields(select, lambda part: self.renamed(part, inner))

    def _hidden(self, variable: Variable) -> Variable:
        """Return a hidden variable under a name of its own.

        A `?` keeps variables apart from blank nodes, and says that the sub-SELECT itself sees this one.
        """
        return Variable(f"_:{variable.name.removeprefix('_:') if variable.hidden else '?' + variable.name}#{self._count}")


def restore_name(variable: Variable) -> str | None:
    """Return the name by which its own SELECT sees a variable, also where others do not; None for blank nodes and the
    like.
    """
    if not variable.hidden:
        return variable.name
    return variable.name[3:].partition("#")[0] if variable.name.startswith("_:?") else None


def is_seen(variable: Variable) -> bool:
    """Return whether its own SELECT sees a variable: blank nodes and the like share nothing in MINUS, and are no
    values of COUNT(DISTINCT *).
    """
    return restore_name(variable) is not None


def find_variables(node: Any) -> set[Variable]:
    """Return every variable that a node holds, at any depth."""
    return {part for part in walk_nodes(node) if isinstance(part, Variable)}
