"""Alarms and instants: what time alone brings at instants that a solution or the query says (docs/etalis.md)."""

from engine.aggregation.alarms.alarm_collector import AlarmCollector
from engine.aggregation.alarms.instant_collector import InstantCollector

__all__ = ["AlarmCollector", "InstantCollector"]
