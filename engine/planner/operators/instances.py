"""This module plans the join of a pattern with the instances of a query with PARAMETERS.

The solutions of the pattern look the instances up in a table, by the parameters that they certainly bind. Rows of a
chain are in the order of a parameter that a condition compares with a variable. So a solution passes over all rows
beyond the first that fails (`engine/instances/instance_table.py`). Where a condition says what a text has, the values
that it has are a part of the key (`engine/planner/operators/text_search.py`).
"""

from collections.abc import Iterator

from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.physical_plan.filter_compiler import add_slots
from engine.physical_plan.plan import InstanceLookup, Node, RowRange
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import compile_join_filter, split_conditions
from engine.planner.builder.temporal_relations import Joining
from engine.planner.operators.text_search import find_search
from engine.rewrite.join_instances import ADDED, WORD
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import Variable

_RISING = (a.Comparison.GREATER, a.Comparison.GREATER_OR_EQUAL)
_FALLING = (a.Comparison.LESS, a.Comparison.LESS_OR_EQUAL)


def plan_instances(builder: PlanBuilder, join: Joining, target: Target, span: int, wanted: Conditions) -> None:
    """Plan the join of a pattern with the instances, each with the occurrences of entries after its own."""
    pattern, relation = join.left, join.right
    assert isinstance(relation, a.Values)
    x = builder.scope(pattern)
    if builder.options.policy != UNRESTRICTED:
        raise Refusal(f"the policy {builder.options.policy} with PARAMETERS", WORD)
    if x.timeless:
        raise Refusal("a query with PARAMETERS that the background may answer without an event (add a pattern that only events match)", WORD)
    to_pattern, _, own = split_conditions(wanted, x.certain | (x.possible - set(relation.variables)), frozenset())
    keys = sorted(x.certain & set(relation.variables), key=relation.variables.index)
    free = [variable for variable in relation.variables if variable not in keys]
    if (found := find_search(own, x.certain, free)) is not None:
        free.sort(key=lambda variable: variable != found.search.parameter)  # its values are the last part of the key
    node = builder.add_node(Node(c.INSTANCES, key=_slots(builder, keys), look=_slots(builder, free)), target)
    places = {variable: k for k, variable in enumerate(relation.variables)}
    lookup = InstanceLookup(tuple(places[variable] for variable in (*keys, *free)), len(keys))
    if (order := next(_find_orders(own, x.certain, free), None)) is not None:
        compared, parameter, rises = order
        builder.node(node).column, builder.node(node).by_right = builder.column(compared), int(rises)
        lookup = lookup._replace(order=places[parameter], rises=rises)
    if found is not None:
        lookup = lookup._replace(keys=len(keys) + 1, search=found.search)
        own = [condition for condition in own if condition is not found.condition or not found.decides]
        pattern = _bind_text(builder, node, found.text, pattern)
    builder.fragment.instances[node] = lookup
    with builder.noting_moments() as moments:
        builder.plan_pattern(pattern, (node, c.LEFT), span, to_pattern)
    came = [a.Or(a.Not(a.Bound(each)), a.Compare(a.Comparison.LESS_OR_EQUAL, a.Var(ADDED), a.Var(each))) for each in moments]
    builder.node(node).filter = compile_join_filter(builder, [*came, *own], span)


def _bind_text(builder: PlanBuilder, node: int, text: a.Expression, pattern: a.Pattern) -> a.Pattern:
    """Tell a node the column of the text that is searched. Returns the pattern, which binds the text."""
    if isinstance(text, a.Var):
        builder.node(node).keep = builder.column(text.variable)
        return pattern
    searched = builder.add_variable("searched")
    builder.node(node).keep = builder.column(searched)
    return a.Extend(pattern, searched, text)


def _slots(builder: PlanBuilder, variables: list[Variable]) -> RowRange:
    return add_slots(builder.fragment, [builder.column(variable) for variable in variables])


def _find_orders(conditions: Conditions, certain: frozenset[Variable], free: list[Variable]) -> Iterator[tuple[Variable, Variable, bool]]:
    """Yield the variables and parameters that conditions compare, and whether greater values pass more rows."""
    for condition in conditions:
        match condition:
            case a.Compare(op, a.Var(x), a.Var(y)) if op in (*_RISING, *_FALLING):
                if x in certain and y in free:
                    yield x, y, op in _RISING
                elif y in certain and x in free:
                    yield y, x, op in _FALLING
