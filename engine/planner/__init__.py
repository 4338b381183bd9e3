"""This package plans the algebra of a query as a fragment of operators (architecture.md, "EDBC rules as data")."""

from engine.planner.planner import CHOICES, Names, plan

__all__ = ["CHOICES", "Names", "plan"]
