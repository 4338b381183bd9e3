"""This module decides how far conditions and time windows go down in a plan: to the operand, or the join, that can
decide them.
"""

from engine.errors import Refusal
from engine.expressions.evaluator import supported
from engine.kernel.state import layout as c
from engine.pattern_scope import Variables, duration_limit, list_subexpressions, looks_at_time, variables_of
from engine.planner.builder.plan_builder import Conditions, PlanBuilder
from epsparql import algebra as a


def check_functions(conditions: Conditions) -> None:
    """Raise Refusal if a condition calls a function that the engine does not have."""
    for part in (part for condition in conditions for part in list_subexpressions(condition)):
        if isinstance(part, a.Call) and not supported(part.function):
            raise Refusal(f"the function {part.function}", part.function)


def compile_join_filter(builder: PlanBuilder, wanted: Conditions, span: int) -> int:
    """Compile the conditions that a join of this span does not enforce by itself."""
    implied = [e for e in wanted if not is_equality(e) and (limit := duration_limit(e)) is not None and span <= limit and limit >= 0]
    rest = [e for e in wanted if e not in implied]
    if implied and not rest:
        return c.TIMED_ONLY
    return builder.compile_conditions(rest + implied[:1])


def is_equality(condition: a.Expression) -> bool:
    return isinstance(condition, a.Compare) and condition.op is a.Comparison.EQUAL


def split_conditions(wanted: Conditions, left: Variables, right: Variables) -> tuple[list[a.Expression], list[a.Expression], list[a.Expression]]:
    """Divide conditions by the side that decides them, where their variables are certain: for the left, for the
    right, for neither.
    """
    to_left, to_right, own = list[a.Expression](), list[a.Expression](), list[a.Expression]()
    for condition in wanted:
        looks = variables_of(condition)
        if looks_at_time(condition) or not looks:
            own.append(condition)
        elif looks <= left:
            to_left.append(condition)
        else:
            (to_right if looks <= right else own).append(condition)
    return to_left, to_right, own
