"""This module plans what only lets solutions pass, FILTER and WITHIN.

EXISTS becomes a node that decides. All other conditions, and spans, go down as far as they can be decided.
"""

from functools import reduce

from engine.kernel.state import layout as c
from engine.pattern_scope import has_exists, list_conjuncts, span_of
from engine.physical_plan.plan import Node
from engine.planner.builder.correlation import is_correlated
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import check_functions
from engine.planner.operators.binds import depends_on_solution, question_of
from engine.planner.operators.exists import add_marks, plan_exists, plan_marks
from epsparql import algebra as a


def plan_filter(builder: PlanBuilder, pattern: a.Filter, target: Target, span: int, wanted: Conditions) -> None:
    plain: list[a.Expression] = []
    decided: list[tuple[int, a.Pattern]] = []
    marked: list[a.Expression] = []
    kept = builder.scope(pattern.pattern)
    for part in list_conjuncts(pattern.condition):
        match part:
            case a.Exists(sought) if not is_correlated(builder, sought, kept):
                decided.append((c.EXISTS, sought))
            case a.Not(a.Exists(sought)) if not is_correlated(builder, sought, kept):
                decided.append((c.NOTEXISTS, sought))
            case _ if has_exists(part):
                marked.append(part)
            case _:
                plain.append(part)
    check_functions([*plain, *marked])
    if marked:
        target = _plan_marked(builder, marked, pattern.pattern, target)
    for k, (kind, sought) in enumerate(decided):  # solutions come to the last one first
        before = reduce(lambda inner, each: a.Filter(a.Exists(each[1]), inner), decided[k + 1 :], pattern.pattern)
        target = plan_exists(builder, kind, before, sought, target)
    for part in plain:
        if depends_on_solution(part):
            target = _plan_judge(builder, part, pattern.pattern, target)
    early = [part for part in plain if not depends_on_solution(part)]
    builder.plan_pattern(pattern.pattern, target, min(span, span_of(early)), [*early, *wanted])


def plan_within(builder: PlanBuilder, pattern: a.Within, target: Target, span: int, wanted: Conditions) -> None:
    """Plan WITHIN. A join enforces its span itself."""
    inner, span = pattern.pattern, min(span, pattern.limit)
    enforces = isinstance(inner, a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin | a.SeqWithout | a.JoinWithout)
    if not enforces and not (isinstance(inner, a.Bgp) and len(inner.triples) > 1):
        target = builder.enforce(target, span, ())
    builder.plan_pattern(inner, target, span, wanted)


def _plan_judge(builder: PlanBuilder, condition: a.Expression, inner: a.Pattern, target: Target) -> Target:
    """Plan a condition that depends on the solution as a whole: its value is bound first."""
    verdict = builder.add_variable("verdict")
    judge = builder.add_node(Node(c.PASS, filter=builder.compile_conditions([a.Var(verdict)])), target)
    return builder.add_extend(verdict, question_of(builder, condition, inner), (judge, c.LEFT)), c.LEFT


def _plan_marked(builder: PlanBuilder, wanted: Conditions, pattern: a.Pattern, target: Target) -> Target:
    """Plan a node that finds out what the EXISTS of the conditions say, before one that judges.

    Solutions that differ by this alone are one.
    """
    kept = builder.scope(pattern)
    marks, conditions = plan_marks(builder, wanted, kept, pattern)
    forget = builder.add_move(target, [], keep=True)
    columns = {builder.node(mark).column for mark in marks}
    builder.node(forget).hide = builder.add_slots(variable for variable, column in builder.fragment.columns.items() if column in columns)
    judge = builder.add_node(Node(c.PASS, filter=builder.compile_conditions(conditions)), (forget, c.LEFT))
    return add_marks(builder, marks, kept, (judge, c.LEFT))
