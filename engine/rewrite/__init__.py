"""Algebra to algebra, before planning: one file a step, each a pure function."""

from engine.rewrite.aside import set_aside
from engine.rewrite.hidden import hidden_apart
from engine.rewrite.places import placed
from epsparql import algebra as a
from epsparql.stack import deep_stack

__all__ = ["rewritten"]


def rewritten(query: a.Query, default_graph: str = "all") -> a.Query:
    """The query as the planner takes it: variables of sub-SELECTs apart, GRAPH, FROM and WINDOW as places of triple patterns."""
    with deep_stack():
        return placed(set_aside(hidden_apart(query)), default_graph)
