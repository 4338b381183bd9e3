"""This module plans BIND: a column is copied, or the host answers a question."""

from engine.kernel.state import layout as c
from engine.pattern_scope import IDENTIFYING, list_subexpressions, sort_by_name, variables_of
from engine.physical_plan import filter_compiler
from engine.physical_plan.plan import Inquiry
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import check_functions
from engine.planner.operators.exists import add_marks, plan_marks
from epsparql import algebra as a


def depends_on_solution(expression: a.Expression) -> bool:
    """Return whether an expression depends on the solution as a whole, as RAND does."""
    return any(isinstance(part, a.Call) and part.function in IDENTIFYING for part in list_subexpressions(expression))


def plan_bind(builder: PlanBuilder, pattern: a.Extend, target: Target, span: int, wanted: Conditions) -> None:
    check_functions([pattern.expression])
    kept = builder.scope(pattern.pattern)
    marks, (expression,) = plan_marks(builder, [pattern.expression], kept, pattern.pattern)
    own = [e for e in wanted if pattern.variable in variables_of(e)]
    rest = [e for e in wanted if e not in own]
    if isinstance(pattern.expression, a.Var):  # nothing to ask the host
        column = builder.column(pattern.expression.variable), builder.column(pattern.variable)
        node = builder.add_move(builder.enforce(target, c.FOREVER, own), [column], keep=True)
        builder.plan_pattern(pattern.pattern, (node, c.LEFT), span, rest)
        return
    node = builder.add_extend(pattern.variable, question_of(builder, expression, pattern.pattern), target)
    builder.node(node).filter = builder.compile_conditions(own)
    entry = add_marks(builder, marks, kept, (node, c.LEFT)) if marks else (node, c.LEFT)
    builder.plan_pattern(pattern.pattern, entry, span, rest)


def question_of(builder: PlanBuilder, expression: a.Expression, below: a.Pattern) -> Inquiry:
    """Return the question that the host answers.

    A function of the whole solution is asked with all of it, but without what BIND added.
    """
    variables, timed = filter_compiler.find_arguments(builder.fragment, expression)
    if not depends_on_solution(expression):
        return Inquiry(variables, timed, expression=expression)
    while isinstance(below, a.Extend):
        below = below.pattern
    solution = sort_by_name(builder.scope(below).possible)
    site = f"expression {len(builder.fragment.inquiries)}"
    return Inquiry(sort_by_name({*variables, *solution}), True, expression=expression, site=site, solution=solution)
