"""Rewrites turn algebra into equal algebra before planning; each step is one file and a pure function."""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import TypeAlias

from engine.pattern_scope import IDENTIFYING
from engine.rewrite.fold_constants import OPERATIONS, fold_constants
from engine.rewrite.hoist_exists import hoist_exists
from engine.rewrite.join_instances import join_instances
from engine.rewrite.own_stream import name_own_stream
from engine.rewrite.part_alternatives import part_alternatives
from engine.rewrite.part_triple_terms import part_triple_terms
from engine.rewrite.prune_binds import prune_binds
from engine.rewrite.rename_hidden import rename_hidden
from engine.rewrite.resolve_datasets import resolve_datasets
from engine.rewrite.separate_runs import separate_runs
from engine.rewrite.unify_variables import unify_variables
from epsparql import algebra as a
from epsparql.recursion import deep_stack
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import TripleTermPattern
from epsparql.trees import replace_fields, walk_nodes

__all__ = ["CONCERNED", "SIMPLIFICATIONS", "name_own_stream", "rewrite_query"]

Step: TypeAlias = Callable[[a.Query], a.Query]
SIMPLIFICATIONS: Mapping[str, Step] = {"constants": fold_constants, "equalities": unify_variables, "unused": prune_binds}
"""A query could do without these steps: it finds the same, at another price."""
CONCERNED: Mapping[Step, frozenset[type]] = {
    part_alternatives: frozenset({a.Alternative}),
    part_triple_terms: frozenset({TripleTermPattern}),
    separate_runs: frozenset({a.RunWindow, a.Once}),
    rename_hidden: frozenset({a.SubSelect}),
    fold_constants: frozenset({a.Filter, *OPERATIONS}),
    unify_variables: frozenset({a.Filter}),
    prune_binds: frozenset({a.Extend, a.SubSelect}),
    hoist_exists: frozenset({a.Exists}),
}
"""A step leaves a query as it is that has no node of these kinds."""
_UNRESTRICTED_ONLY = frozenset({"equalities", "unused"})  # a policy chooses by key, and by terms


def rewrite_query(query: a.Query, default_graph: str = "all", policy: str = UNRESTRICTED, without: Collection[str] = ()) -> a.Query:
    """Return the query as the planner takes it: simplified, but for the steps in `without`.

    Variables of sub-SELECTs are apart; GRAPH, FROM and WINDOW have become places of triple patterns.
    """
    if isinstance(query, a.Select) and query.rules:
        rules = tuple(rewrite_query(rule, default_graph, policy, without) for rule in query.rules)
        main = rewrite_query(replace_fields(query, rules=()), default_graph, policy, without)
        assert isinstance(main, a.Select)
        return replace_fields(main, rules=tuple(rule for rule in rules if isinstance(rule, a.Construct)))
    with deep_stack():
        query = join_instances(query)
        query, kinds = _take_steps(query, _list_kinds(query), (part_alternatives, part_triple_terms, separate_runs, rename_hidden))
        left_out = {*without, *(_UNRESTRICTED_ONLY if policy != UNRESTRICTED else ())}
        identifies = a.Call in kinds and _identifies(query)
        simplifications = () if identifies else (step for name, step in SIMPLIFICATIONS.items() if name not in left_out)
        query, _ = _take_steps(query, kinds, (*simplifications, hoist_exists))
        return resolve_datasets(query, default_graph)


def _list_kinds(query: a.Query) -> Set[type]:
    return set(map(type, walk_nodes(query)))


def _take_steps(query: a.Query, kinds: Set[type], steps: Iterable[Step]) -> tuple[a.Query, Set[type]]:
    """Return the query after these steps, with the kinds of its nodes; `kinds` are those before.

    Thousands of queries are small, so a step that concerns none of a query's nodes does not walk it.
    """
    for step in steps:
        if not kinds.isdisjoint(CONCERNED[step]):
            before, query = query, step(query)
            kinds = kinds if query is before else _list_kinds(query)
    return query, kinds


def _identifies(query: a.Query) -> bool:
    """Return whether the place of an expression in the query decides its value."""
    return any(isinstance(node, a.Call) and node.function in IDENTIFYING for node in walk_nodes(query))
