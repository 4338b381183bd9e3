"""This package plans the algebra of a query as a fragment of operators (architecture.md, "EDBC rules as data")."""

from engine.planner.builder.plan_builder import CHOICES, NetworkNames, PlanOptions
from engine.planner.planner import plan_query

__all__ = ["CHOICES", "NetworkNames", "PlanOptions", "plan_query"]
