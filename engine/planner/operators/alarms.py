"""This module plans alarms and instants, which collectors give when time has passed."""

from engine.aggregation.alarms import AlarmCollector, InstantCollector
from engine.kernel.state import layout as c
from engine.pattern_scope import sort_by_name
from engine.physical_plan.plan import Node
from engine.planner.builder.plan_builder import PlanBuilder, Target
from epsparql import algebra as a


def plan_alarm(builder: PlanBuilder, pattern: a.Alarm, target: Target) -> None:
    """Plan an alarm. What it brings is strictly later than what sets it."""
    node = builder.add_node(Node(c.COLLECT), target)
    reads = sort_by_name(builder.scope(pattern.pattern).possible | {pattern.at})
    builder.fragment.collectors[node] = AlarmCollector(reads, pattern.at)
    builder.fragment.strict.add((node, c.LEFT))
    builder.plan_pattern(pattern.pattern, (node, c.LEFT))


def plan_instant(builder: PlanBuilder, pattern: a.Instant, target: Target) -> None:
    node = builder.add_node(Node(c.COLLECT), target)
    builder.fragment.collectors[node] = InstantCollector(pattern.at)
