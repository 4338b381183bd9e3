"""Algebra to algebra, before planning: one file a step, each a pure function."""

from collections.abc import Callable, Collection, Mapping

from engine.messages import UNRESTRICTED
from engine.rewrite.fold_constants import folded
from engine.rewrite.hoist_exists import set_aside
from engine.rewrite.prune_binds import needed
from engine.rewrite.rename_hidden import hidden_apart
from engine.rewrite.resolve_datasets import placed
from engine.rewrite.unify_variables import keyed
from engine.scope import IDENTIFYING, nodes_of
from epsparql import algebra as a
from epsparql.recursion import deep_stack

__all__ = ["SIMPLIFICATIONS", "rewritten"]

SIMPLIFICATIONS: Mapping[str, Callable[[a.Query], a.Query]] = {"constants": folded, "equalities": keyed, "unused": needed}
"""Steps that a query could do without: it finds the same, at another price."""
_UNRESTRICTED_ONLY = frozenset({"equalities", "unused"})  # a policy chooses by key, and by terms


def rewritten(query: a.Query, default_graph: str = "all", policy: str = UNRESTRICTED, without: Collection[str] = ()) -> a.Query:
    """The query as the planner takes it: simplified but for the steps in `without`, variables of sub-SELECTs apart, GRAPH, FROM and WINDOW as places of triple patterns."""
    with deep_stack():
        query = hidden_apart(query)
        for name, step in () if _identifies(query) else SIMPLIFICATIONS.items():
            if name not in without and (policy == UNRESTRICTED or name not in _UNRESTRICTED_ONLY):
                query = step(query)
        return placed(set_aside(query), default_graph)


def _identifies(query: a.Query) -> bool:
    """Whether the place of an expression in the query decides what it says."""
    return any(isinstance(node, a.Call) and node.function in IDENTIFYING for node in nodes_of(query))
