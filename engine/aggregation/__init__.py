"""Collectors are operators that decide over all rows of an instant: groups, solution modifiers, ASK (semantics.md
section 7).
"""

from engine.aggregation.ask import VERDICT, AskCollector
from engine.aggregation.group_by import GroupCollector
from engine.aggregation.operator import Collector
from engine.aggregation.order_limit import ModifiersCollector, OnceCollector, Projection, SolutionOrder
from engine.aggregation.row_batch import Moments, Passage, Reports, RowBatch

__all__ = [
    "VERDICT", "AskCollector", "Collector", "GroupCollector", "ModifiersCollector", "Moments", "OnceCollector", "Passage", "Projection",
    "Reports", "RowBatch", "SolutionOrder",
]  # fmt: skip
