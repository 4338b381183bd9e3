"""Operators that decide over all rows of an instant: groups, solution modifiers, ASK (semantics.md section 7)."""

from engine.collect.ask import VERDICT, AskCollector
from engine.collect.collector import Collector
from engine.collect.group import GroupCollector
from engine.collect.modifiers import ModifiersCollector
from engine.collect.rows import Moments, Reports, Rows

__all__ = ["VERDICT", "AskCollector", "Collector", "GroupCollector", "ModifiersCollector", "Moments", "Reports", "Rows"]
