"""Rewrites turn algebra into equal algebra before planning; each step is one file and a pure function."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from engine.messages import UNRESTRICTED
from engine.pattern_scope import IDENTIFYING, nodes_of
from engine.rewrite.fold_constants import fold_constants
from engine.rewrite.hoist_exists import hoist_exists
from engine.rewrite.own_stream import name_own_stream
from engine.rewrite.part_triple_terms import part_triple_terms
from engine.rewrite.prune_binds import prune_binds
from engine.rewrite.rename_hidden import rename_hidden
from engine.rewrite.resolve_datasets import resolve_datasets
from engine.rewrite.separate_runs import separate_runs
from engine.rewrite.unify_variables import unify_variables
from epsparql import algebra as a
from epsparql.recursion import deep_stack

__all__ = ["SIMPLIFICATIONS", "name_own_stream", "rewrite_query"]

SIMPLIFICATIONS: Mapping[str, Callable[[a.Query], a.Query]] = {"constants": fold_constants, "equalities": unify_variables, "unused": prune_binds}
"""A query could do without these steps: it finds the same, at another price."""
_UNRESTRICTED_ONLY = frozenset({"equalities", "unused"})  # a policy chooses by key, and by terms


def rewrite_query(query: a.Query, default_graph: str = "all", policy: str = UNRESTRICTED, without: Collection[str] = ()) -> a.Query:
    """Return the query as the planner takes it: simplified, but for the steps in `without`.

    Variables of sub-SELECTs are apart; GRAPH, FROM and WINDOW have become places of triple patterns.
    """
    if isinstance(query, a.Select) and query.rules:
        rules = tuple(rewrite_query(rule, default_graph, policy, without) for rule in query.rules)
        main = rewrite_query(replace(query, rules=()), default_graph, policy, without)
        assert isinstance(main, a.Select)
        return replace(main, rules=tuple(rule for rule in rules if isinstance(rule, a.Construct)))
    with deep_stack():
        query = rename_hidden(separate_runs(part_triple_terms(query)))
        for name, step in () if _identifies(query) else SIMPLIFICATIONS.items():
            if name not in without and (policy == UNRESTRICTED or name not in _UNRESTRICTED_ONLY):
                query = step(query)
        return resolve_datasets(hoist_exists(query), default_graph)


def _identifies(query: a.Query) -> bool:
    """Return whether the place of an expression in the query decides its value."""
    return any(isinstance(node, a.Call) and node.function in IDENTIFYING for node in nodes_of(query))
