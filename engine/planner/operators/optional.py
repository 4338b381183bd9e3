"""This module plans the optional joins: OPTIONAL, EQUALSOPTIONAL and OPTIONALSEQ.

`{A SEQ B} EQUALSOPTIONAL {A SEQ C SEQ B} FILTER(!BOUND(?c))` asks for the pairs of A and B with no C between them. It
has a plan of its own that makes no other pairs (docs/decisions/0053-bounds-on-durations.md).
"""

from typing import NamedTuple

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, asks_identity, list_conjuncts, span_of
from engine.physical_plan.join_trees import Linear, Pairing
from engine.physical_plan.plan import LastingSide, Node, PairNodes
from engine.planner.builder.background_probe import plan_undecided
from engine.planner.builder.interval_network import find_waiting
from engine.planner.builder.join_nodes import PlacedJoin, add_join
from engine.planner.builder.local_subjects import note_subject
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import check_functions, compile_join_filter, split_conditions
from engine.planner.operators.exists import plan_marks, set_marks
from engine.planner.operators.without import absent_span
from engine.rewrite.unify_variables import is_positive
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.trees import walk_nodes


class OptionalBounds(NamedTuple):
    """Says how far an optional join looks: its own span, how long goals of its left and right side live, and the
    spans of these (µs).
    """

    span: int
    lives: tuple[int, int]
    spans: tuple[int, int]


def bounds_of(
    pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin,
    span: int,
    kept: Scope,
    *,
    occurrence: int = c.FOREVER,
    expires: bool = True,
    bounds: bool = True,
) -> OptionalBounds:
    """Return how far an optional join looks whose `kept` side has this scope; `span` is that of the solutions that
    are wanted of it.

    If nothing `expires`, it looks at all that ever came. With `bounds`, conditions that compare times of both sides say
    how long a goal may decide. Equal intervals are equally long, so EQUALSOPTIONAL looks at
    no longer ones than are wanted, unless the kept side may be timeless: then a longer one still decides on it
    (docs/decisions/0053-bounds-on-durations.md).
    """
    conditions = [] if pattern.condition is None else list_conjuncts(pattern.condition)
    own = span_of(conditions)
    life, own = (own, own) if expires else (c.FOREVER, absent_span(c.FOREVER, own))
    if expires and bounds:
        sides = (pattern.right, pattern.left) if isinstance(pattern, a.SeqRightJoin) else (pattern.left, pattern.right)
        life = min(life, find_waiting(*sides, conditions, occurrence))
    match pattern:
        case a.LeftJoin():
            return OptionalBounds(own, (c.NEVER, life), (span, own))
        case a.EqLeftJoin():
            equal = min(span, own, kept.longest)
            inner = equal if expires and not kept.timeless else min(own, absent_span(c.FOREVER, equal))
            return OptionalBounds(own, (c.NEVER, 0 if expires else life), (span, inner))
        case a.SeqRightJoin():
            return OptionalBounds(own, (life, c.NEVER), (own, span))


KINDS = {a.LeftJoin: (c.OPTIONAL, c.ANY), a.EqLeftJoin: (c.EQUALSOPTIONAL, c.EQUALS), a.SeqRightJoin: (c.OPTIONALSEQ, c.SEQ)}


def plan_optional(builder: PlanBuilder, pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, target: Target, span: int, wanted: Conditions) -> None:
    x, y = builder.scope(pattern.left), builder.scope(pattern.right)
    check_functions([] if pattern.condition is None else [pattern.condition])
    kind, relation = KINDS[type(pattern)]
    kept = y if kind == c.OPTIONALSEQ else x
    options = builder.options
    bounds = bounds_of(pattern, span, kept, occurrence=options.occurrence, expires=options.expires, bounds=options.bounds)
    down, _, own = split_conditions(wanted, kept.certain, frozenset())
    marks, conditions = plan_marks(builder, [] if pattern.condition is None else [pattern.condition], x.joined(y))
    node = Node(kind, relation, bounds.span, timeless=x.timeless or y.timeless)
    node.life_left, node.life_right = bounds.lives
    node.filter, node.condition = builder.compile_conditions(own), builder.compile_conditions(conditions)
    node.key, node.rest = builder.key_columns(x, y)
    number = builder.add_node(node, target)
    set_marks(builder, number, marks)
    if kind != c.OPTIONALSEQ:
        note_subject(builder, number, pattern.left, pattern.right)
    if kept.timeless and c.FOREVER not in bounds.lives:
        builder.fragment.forgetful.add(number)
    side = number, c.RIGHT if kind == c.OPTIONALSEQ else c.LEFT
    builder.fragment.deciding[side] = kept.timeless
    builder.fragment.optionals[number] = LastingSide(side, frozenset(builder.column(variable) for variable in kept.possible))
    if kind == c.OPTIONALSEQ:
        if not y.timeless:
            builder.fragment.strict.add((number, c.LEFT))
        plan_undecided(builder, pattern.left, (number, c.LEFT), y, bounds.spans[0])
        builder.plan_pattern(pattern.right, (number, c.RIGHT), bounds.spans[1], down)
    elif isinstance(pattern, a.EqLeftJoin) and (pairs := _find_pairs(builder, pattern, wanted)):
        joined = add_join(builder, builder.scope(pairs.left), builder.scope(pairs.right), c.SEQ, (number, c.LEFT), span, down)
        nearest = _add_nearest(builder, pairs, target, span)
        _plan_operands(builder, number, pairs, joined, nearest, bounds.spans)
        if builder.fragment.shape is Pairing.NEAREST:
            builder.limit_targets(number, 0)
    else:
        builder.plan_pattern(pattern.left, (number, c.LEFT), bounds.spans[0], down)
        plan_undecided(builder, pattern.right, (number, c.RIGHT), x, bounds.spans[1])


# ---------------------------------------------------------------- pairs with nothing between them
class _Pairs(NamedTuple):
    """Holds A, B and C of `{A SEQ B} EQUALSOPTIONAL {A SEQ C SEQ B}`, and all conditions but the one that C is absent."""

    left: a.Pattern
    right: a.Pattern
    absent: a.Pattern
    rest: Conditions


def _find_pairs(builder: PlanBuilder, pattern: a.EqLeftJoin, wanted: Conditions) -> _Pairs | None:
    """Return the operands of an EQUALSOPTIONAL of which only pairs with nothing between them are wanted; the query's
    first one has a plan of its own.

    A and B bind the same variables in each of their solutions. So a solution of the optional part agrees with a pair
    if both are equal.
    """
    if builder.options.policy != UNRESTRICTED or not builder.options.nears or builder.fragment.pairs is not None:
        return None
    match pattern:
        case a.EqLeftJoin(a.SeqJoin(left, right), a.SeqJoin(a.SeqJoin(first, absent), last), None) if (first, last) == (left, right):
            found = builder.scope(absent).certain - builder.scope(pattern.left).possible
        case _:
            return None
    if not all(is_positive(side) and not _asks_identity(side) for side in (left, right)):
        return None
    rest = [e for e in wanted if not (isinstance(e, a.Not) and isinstance(e.operand, a.Bound) and e.operand.variable in found)]
    return _Pairs(left, right, absent, rest) if len(rest) < len(wanted) else None


def _asks_identity(pattern: a.Pattern) -> bool:
    return any(asks_identity(node.condition) for node in walk_nodes(pattern) if isinstance(node, a.Filter))


def _add_nearest(builder: PlanBuilder, pairs: _Pairs, target: Target, span: int) -> int:
    """Add the nodes that pair each right solution with the left ones since the last solution of what is absent.

    If left solutions differ only in their ends, the first one counts. If right ones differ only in their starts, the
    last one counts: these two have the most between them, and all of them are one solution. Return the first of the
    nodes; it goes on to `target` if it is in use.
    """
    x, y, z = map(builder.scope, (pairs.left, pairs.right, pairs.absent))
    given = builder.options.shape
    near = given is not Linear.WRITTEN and not (x.timeless or y.timeless or z.timeless)
    builder.fragment.shape = Pairing.NEAREST if near else Linear.WRITTEN
    node = Node(c.WITHOUT, c.SEQ, span, life_left=span, life_right=c.FOREVER, life_blocker=span)
    joined = x.joined(y)
    node.key2, node.rest2 = builder.key_columns(joined, z)
    node.by_right = node.rest2.n == 0 and joined.certain & z.certain <= y.certain
    node.filter = compile_join_filter(builder, split_conditions(pairs.rest, x.certain, y.certain)[2], span)
    node.key, node.rest = builder.key_columns(x, y)
    number = builder.add_node(node, target)
    builder.add_node(Node(c.EARLIEST, life_left=span), (number, c.LEFT))
    builder.add_node(Node(c.LATEST), (number, c.RIGHT))
    builder.fragment.strict |= {(number, c.LEFT), (number, c.BLOCKER)}
    if not near:
        builder.limit_targets(number, 0)
    return number


def _plan_operands(builder: PlanBuilder, number: int, pairs: _Pairs, joined: PlacedJoin, nearest: int, spans: tuple[int, int]) -> None:
    """Plan the operands once, for the plan that is in use: as the text has it, A and B go to both parts of
    EQUALSOPTIONAL.
    """
    x, y, z = map(builder.scope, (pairs.left, pairs.right, pairs.absent))
    near = builder.fragment.shape is Pairing.NEAREST
    outer = add_join(builder, x.joined(z), y, c.SEQ, (number, c.RIGHT), spans[1], ()).node
    between = add_join(builder, x, z, c.SEQ, (outer, c.LEFT), spans[1], ()).node
    builder.fragment.pairs = PairNodes(joined.node, between, nearest, nearest + 2)
    left = builder.add_fork([(joined.node, c.LEFT), (between, c.LEFT)])
    right = builder.add_fork([(joined.node, c.RIGHT), (outer, c.RIGHT)])
    gated = builder.options.suppresses and not x.timeless
    builder.plan_pattern(pairs.left, (nearest + 1, c.LEFT) if near else left, max(spans), joined.to_left)
    with builder.gated_by((nearest if near else joined.node) if gated else builder.gate):
        builder.plan_pattern(pairs.right, (nearest + 2, c.LEFT) if near else right, max(spans), joined.to_right)
    with builder.gated_by((nearest if near else between) if gated else builder.gate):
        builder.plan_pattern(pairs.absent, (nearest, c.BLOCKER) if near else (between, c.RIGHT), spans[1])
