"""This module plans a query: it knows which function plans which node of the algebra.

Goals are binary: every operator joins two sides. Windows and filters go down as far as they decide early.
"""

from typing import assert_never

from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.pattern_scope import has_exists, is_policed
from engine.physical_plan.batched_groups import defer_groups
from engine.physical_plan.plan import Fragment
from engine.physical_plan.timeless_sets import add_sets
from engine.planner.builder.plan_builder import Conditions, NetworkNames, PlanBuilder, Target
from engine.planner.groups_and_modifiers import plan_alarm, plan_group, plan_instant, plan_sub_select
from engine.planner.operators.binds import plan_bind
from engine.planner.operators.filters import plan_filter, plan_within
from engine.planner.operators.graph import plan_graph, plan_union, plan_values
from engine.planner.operators.joins import plan_join
from engine.planner.operators.minus import plan_minus
from engine.planner.operators.optional import plan_optional
from engine.planner.operators.policies import plan_under_policy
from engine.planner.operators.property_paths import plan_path
from engine.planner.operators.triple_patterns import plan_triples
from engine.planner.operators.without import plan_without, plan_without_for
from engine.planner.queries import plan_query_form
from engine.rewrite.operands import find_operands
from engine.rewrite.rename_hidden import find_variables
from epsparql import algebra as a
from epsparql.recursion import deep_stack
from epsparql.solutions.policies import PolicyFault, read_policy


def plan_query(query: a.Query, names: NetworkNames) -> Fragment:
    """Return the fragment of a query, which has been rewritten. Raises Refusal."""
    assert not isinstance(query, a.BackgroundRule), "that is part of the background"
    try:
        read_policy(names.options.policy)
    except PolicyFault as fault:
        raise Refusal(str(fault)) from None
    builder = PlanBuilder(query, names, plan_pattern, operands=find_operands(query))
    for variable in sorted(find_variables(query), key=lambda v: v.name):
        builder.column(variable)
    for stream in query.streams:
        names.stream(stream)  # also of one that no scan reads
    with deep_stack():
        plan_query_form(builder)
        for plan_rest in builder.postponed:
            plan_rest()
    add_sets(builder.fragment)
    defer_groups(builder.fragment)
    return builder.fragment


def plan_pattern(builder: PlanBuilder, pattern: a.Pattern, target: Target, span: int, wanted: Conditions) -> None:
    """Plan a pattern so that its solutions which last at most `span` µs and satisfy all conditions `wanted` reach
    `target`.
    """
    if (segment := builder.operands.segments.get(id(pattern))) is not None:
        builder.fragment.stages.setdefault(target, segment)
    policed = is_policed(pattern, builder.options.policy)  # a solution that is too early to be joined may consume or replace others
    gate = builder.gate if _starts_first(pattern) and not policed else c.NONE
    with builder.gated_by(gate), builder.networked(pattern, span, wanted):
        _plan_operator(builder, pattern, target, span, wanted)


def _starts_first(pattern: a.Pattern) -> bool:
    """Return whether each solution of a pattern starts no later than any solution of its operands on which it rests."""
    match pattern:
        case a.Bgp() | a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin() | a.Union() | a.Within():
            return True
        case a.Filter(condition, _) | a.Extend(_, _, condition):
            return not has_exists(condition)
        case _:
            return False


def _plan_operator(builder: PlanBuilder, pattern: a.Pattern, target: Target, span: int, wanted: Conditions) -> None:
    match pattern:
        case a.Join() | a.SeqJoin() | a.RelationJoin() | a.SeqWithout() | a.JoinWithout() if is_policed(pattern, builder.options.policy):
            plan_under_policy(builder, pattern, target, span, wanted)
        case a.Bgp():
            plan_triples(builder, pattern, target, span, wanted)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
            plan_join(builder, pattern, target, span, wanted)
        case a.Union():
            plan_union(builder, pattern, target, span, wanted)
        case a.Filter():
            plan_filter(builder, pattern, target, span, wanted)
        case a.Within():
            plan_within(builder, pattern, target, span, wanted)
        case a.Extend():
            plan_bind(builder, pattern, target, span, wanted)
        case a.Minus():
            plan_minus(builder, pattern, target, span, wanted)
        case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
            plan_optional(builder, pattern, target, span, wanted)
        case a.SeqWithout() | a.JoinWithout():
            plan_without(builder, pattern, target, span, wanted)
        case a.WithoutFor():
            plan_without_for(builder, pattern, target, wanted)
        case a.Alarm():
            plan_alarm(builder, pattern, builder.enforce(target, span, wanted))
        case a.Instant():
            plan_instant(builder, pattern, builder.enforce(target, c.FOREVER, wanted))
        case a.Path():
            plan_path(builder, pattern, target, span, wanted)
        case a.Values():
            plan_values(builder, pattern, builder.enforce(target, span, wanted))
        case a.Graph():
            plan_graph(builder, pattern, builder.enforce(target, c.FOREVER, wanted), span)
        case a.Group():
            plan_group(builder, pattern, builder.enforce(target, span, wanted))
        case a.SubSelect():
            plan_sub_select(builder, pattern, target, span, wanted)
        case a.InWindow():
            raise AssertionError("the rewriting of places leaves none")
        case _:
            assert_never(pattern)
