"""This module decides whether a group's aggregates over a chain of SEQs need its matches, and plans the chain if they
do not (docs/decisions/0136-sums-over-chains.md).
"""

from collections.abc import Sequence

from engine.aggregation import GroupCollector
from engine.aggregation.chains import ChainCollector, ChainShape, count_parts
from engine.aggregation.chains.layout import MOST_EXTREMES, MOST_PARTS, MOST_STEPS
from engine.aggregation.set_functions import folding
from engine.kernel.state import layout as c
from engine.pattern_scope import (
    Scope,
    Variables,
    asks_identity,
    duration_limit,
    has_exists,
    list_conjuncts,
    looks_at_time,
    sort_by_name,
    variables_of,
)
from engine.physical_plan.join_trees import Linear, Pairing
from engine.planner.builder.plan_builder import PlanBuilder
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import XSD, Literal

_EXTREMES = (a.AggregateFunction.MIN, a.AggregateFunction.MAX)
_SUMMED = (a.AggregateFunction.COUNT, a.AggregateFunction.SUM, *_EXTREMES)


class _Condition(Exception):
    """Says which condition of a user's query asks for the matches."""


@dataclass(frozen=True, slots=True)
class SummedChain:
    """Describes a chain whose matches an aggregate does not need: at most `span` µs long, with `keys` in all operands.

    `of` says for each set function which operand binds its argument; None if each match counts. `absent` has the groups
    of WITHOUT, each with the number of its gap, and whether they bind the keys.
    """

    operands: tuple[a.Pattern, ...]
    span: int
    keys: Variables
    of: tuple[int | None, ...]
    absent: tuple[tuple[a.Pattern, int, bool], ...] = ()


def find_summed_chain(builder: PlanBuilder, group: a.Group) -> SummedChain | str | None:
    """Return the chain below a group, or why its matches are needed; None if there is no chain.

    The background may decide it as long as the query has no plan. A plan that stands keeps its way.
    """
    pattern, span = _strip_limits(group.pattern)
    if not isinstance(pattern, a.SeqJoin | a.SeqWithout):
        return None
    try:
        found = _read_chain(builder, group, pattern, span)
    except _Condition as condition:
        return str(condition)
    given = builder.options.shape
    builder.fragment.shape = Linear.WRITTEN
    timeless = next((k for k, operand in enumerate(found.operands, 1) if builder.scope(operand).timeless), None)
    if timeless is not None:
        return f"the background matches operand {timeless}"
    if any(builder.scope(absent).timeless for absent, _, _ in found.absent):
        return "the background matches the group of WITHOUT"
    if given not in (None, Pairing.SUMMED) or not builder.options.sums:
        return "the query's plan stands already"
    builder.fragment.shape = Pairing.SUMMED
    return found


def plan_summed_chain(builder: PlanBuilder, node: int, found: SummedChain, group: a.Group) -> ChainCollector:
    """Plan the operands, each of which goes to the collector by itself with a mark that says which one it is."""
    marked = builder.add_variable("operand")
    sources = (*found.operands, *(absent for absent, _, _ in found.absent))
    marks = tuple(str(Literal(str(k), XSD + "integer")) for k in range(len(sources)))
    for mark, operand in zip(marks, sources, strict=True):
        move = builder.add_move((node, c.LEFT), [(-builder.names.term(mark), builder.column(marked))], keep=True)
        builder.plan_pattern(operand, (move, c.LEFT), found.span)
    scopes = [builder.scope(operand) for operand in found.operands]
    reads = sort_by_name({marked}.union(*(scope.possible for scope in scopes)))
    assert not isinstance(group.window, a.RunWindow), "runs have plans of their own"
    collector = GroupCollector(
        group.keys, group.aggregates, group.window, reads, None, builder.options.naming, tuple(v for v in reads if not v.hidden)
    )
    gaps = tuple((gap, has_keys) for _, gap, has_keys in found.absent)
    shape = ChainShape(len(found.operands), found.span, sort_by_name(found.keys), marked, marks, found.of, gaps)
    return ChainCollector(collector, shape, builder.options.naming)


def _strip_limits(pattern: a.Pattern) -> tuple[a.Pattern, int]:
    """Return the pattern below WITHIN and FILTERs that only bound the duration, and the longest duration."""
    span = c.FOREVER
    while True:
        match pattern:
            case a.Within(inner, limit):
                pattern, span = inner, min(span, limit)
            case a.SeqWithout(left, right, absent, int(limit)):
                pattern, span = a.SeqWithout(left, right, absent), min(span, limit)
            case a.Filter(condition, inner) if all(map(_bounds_duration, list_conjuncts(condition))):
                pattern, span = inner, min(span, *(duration_limit(part) or 0 for part in list_conjuncts(condition)))
            case _:
                return pattern, span


def _bounds_duration(condition: a.Expression) -> bool:
    return isinstance(condition, a.Compare) and condition.op is not a.Comparison.EQUAL and (duration_limit(condition) or -1) >= 0


def _split_chain(pattern: a.Pattern) -> tuple[tuple[a.Pattern, ...], tuple[tuple[a.Pattern, int], ...]]:
    """Return the operands of a chain, and the groups of WITHOUT with the numbers of their gaps."""
    match pattern:
        case a.SeqJoin(left, right):
            operands, absent = _split_chain(left)
            return (*operands, right), absent
        case a.SeqWithout(left, right, blocking, None):
            operands, absent = _split_chain(left)
            return (*operands, right), (*absent, (blocking, len(operands) - 1))
        case _:
            return (pattern,), ()


def _read_chain(builder: PlanBuilder, group: a.Group, pattern: a.Pattern, span: int) -> SummedChain:
    operands, absent = _split_chain(pattern)
    if builder.options.policy != UNRESTRICTED:
        raise _Condition(f"the policy {builder.options.policy} chooses among them")
    if builder.query.pattern is not group and not _is_outermost(builder.query.pattern, group):
        raise _Condition("the group stands in a sub-SELECT")
    if len(operands) > MOST_STEPS:
        raise _Condition(f"the chain has more than {MOST_STEPS} operands")
    if span >= c.FOREVER:
        raise _Condition("no WITHIN bounds the chain")
    if isinstance(group.window, a.RowsWindow):
        raise _Condition("WINDOW [ROWS n] counts them")
    for k, operand in enumerate(operands, 1):
        if not _is_plain(operand):
            raise _Condition(f"operand {k} is more than triple patterns, conditions on them and UNION")
    scopes = [builder.scope(operand) for operand in operands]
    keys = _find_keys(scopes)
    for key in group.keys:
        if key not in keys:
            raise _Condition(f"GROUP BY has {key}, which not all operands share")
    held = folding([aggregate for _, aggregate in group.aggregates]).held
    of = tuple(_find_operand(aggregate, scopes, keys) for aggregate in held)
    if count_parts(held, of) > MOST_PARTS or sum(aggregate.function in _EXTREMES for aggregate in held) > MOST_EXTREMES:
        raise _Condition("there are too many aggregates")
    return SummedChain(operands, span, keys, of, tuple((each, gap, _binds_keys(builder, each, scopes, keys)) for each, gap in absent))


def _binds_keys(builder: PlanBuilder, absent: a.Pattern, scopes: Sequence[Scope], keys: Variables) -> bool:
    """Return whether a group of WITHOUT binds the keys, and not merely has no variable in common with the chain."""
    if not _is_plain(absent):
        raise _Condition("the group of WITHOUT is more than triple patterns, conditions on them and UNION")
    scope = builder.scope(absent)
    shared = scope.possible & frozenset(v for operand in scopes for v in operand.possible)
    if shared and (shared != keys or not shared <= scope.certain):
        raise _Condition("the group of WITHOUT shares other variables with the chain than all that the operands share")
    return bool(shared)


def _is_outermost(pattern: a.Pattern, group: a.Group) -> bool:
    """Return whether only conditions and SELECT's expressions stand above a group."""
    while isinstance(pattern, a.Extend | a.Filter):
        pattern = pattern.pattern
    return pattern is group


def _is_plain(operand: a.Pattern) -> bool:
    """Return whether an operand is made of triple patterns, what limits or extends them by themselves, and UNION."""
    match operand:
        case a.Bgp(triples, place):
            return bool(triples) and place.graph is None
        case a.Filter(expression, inner) | a.Extend(inner, _, expression):
            return not has_exists(expression) and not asks_identity(expression) and _is_plain(inner)
        case a.Union(left, right):
            return _is_plain(left) and _is_plain(right)
        case a.Within(inner, _):
            return _is_plain(inner)
        case _:
            return False


def _find_keys(scopes: Sequence[Scope]) -> Variables:
    """Return the variables that operands share."""
    shared = {v for k, x in enumerate(scopes) for y in scopes[:k] for v in x.possible & y.possible}
    for variable in sorted(shared, key=lambda v: v.name):
        for k, scope in enumerate(scopes, 1):
            if variable not in scope.certain:
                raise _Condition(f"operands share {variable}, which operand {k} does not always bind")
    return frozenset(shared)


def _find_operand(aggregate: a.Aggregate, scopes: Sequence[Scope], keys: Variables) -> int | None:
    """Return the operand that binds the argument of a set function; None if the function counts each match."""
    name, argument = aggregate.function.value, aggregate.argument
    if aggregate.function not in _SUMMED:
        raise _Condition(f"the aggregate {name} needs them")
    if aggregate.distinct and aggregate.function not in _EXTREMES:
        raise _Condition(f"the aggregate {name} has DISTINCT")
    if argument is None:
        return None
    variables = variables_of(argument)
    if aggregate.function is a.AggregateFunction.COUNT and isinstance(argument, a.Var) and any(variables <= scope.certain for scope in scopes):
        return None
    if looks_at_time(argument) or asks_identity(argument) or has_exists(argument):
        raise _Condition(f"the argument of {name} is about the match as a whole")
    found = [k for k, scope in enumerate(scopes) if variables <= scope.possible]
    if len(found) != 1 or not variables - keys:
        raise _Condition(f"the argument of {name} is not about one operand")
    return found[0]
