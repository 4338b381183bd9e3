"""This module finds queries that one plan answers: they differ in the names of variables, in the order of triples, or
in what simplifying removes.
"""

from typing import Any

from engine.pattern_scope import IDENTIFYING
from engine.rewrite.rename_hidden import find_variables
from epsparql import algebra as a
from epsparql.recursion import deep_stack
from epsparql.terms import BlankNode, Iri, Literal, TripleTerm, Variable
from epsparql.trees import is_node, map_fields, walk_nodes

Names = dict[Variable, Variable]


def have_one_plan(one: a.Query, other: a.Query) -> bool:
    """Return whether two rewritten queries have the same solutions, in the same order of emission and in the same
    columns.

    Solutions of one instant are ordered by the names of variables, so the order of the names must be alike.
    """
    if any(isinstance(node, a.Call) and node.function in IDENTIFYING for node in walk_nodes(one)):
        return one == other  # the place of such a call decides its value
    if isinstance(one, a.Select) and isinstance(other, a.Select) and one.projection != other.projection:
        return False
    with deep_stack():
        return bool(_canonical(one) == _canonical(other))


def _canonical(query: a.Query) -> Any:
    ordered = sorted(find_variables(query), key=lambda variable: variable.name)
    return _renamed(query, {variable: Variable(f"{'_:' * variable.hidden}{k:06}") for k, variable in enumerate(ordered)})


def _renamed(node: Any, names: Names) -> Any:
    match node:
        case Variable():
            return names[node]
        case Iri() | Literal() | BlankNode() | TripleTerm():
            return node
        case tuple():
            return tuple(_renamed(part, names) for part in node)
        case a.Bgp(triples):
            return a.Bgp(tuple(sorted((_renamed(triple, names) for triple in triples), key=repr)), _renamed(node.place, names))
        case _ if is_node(node):
            return map_fields(node, lambda part: _renamed(part, names))
        case _:
            return node
