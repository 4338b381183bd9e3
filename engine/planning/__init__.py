"""Algebra to a fragment of operators (architecture.md, "EDBC rules as data")."""

from engine.planning.planner import Names, plan

__all__ = ["Names", "plan"]
