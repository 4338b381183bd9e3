"""This module plans what decides on absence: the optional joins, MINUS, WITHOUT in both forms."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.kernel.state import layout as c
from engine.planner.operators import background_probe, joins
from engine.planner.operators import filter_bind_exists as filters
from engine.scope import Scope, Variables, conjuncts, looks_at_time
from epsparql import algebra as a

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target


LIFTED = c.FOREVER - 1
"""This span without bound stands in the place of a window."""


def visible(variables: Variables) -> Variables:
    return frozenset(v for v in variables if not v.hidden)


def minus(planner: "Planner", pattern: a.Minus, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    """Plan MINUS. Solutions are taken away only by those that share a variable with them; hidden variables do not count.

    Inside EXISTS nor do those that the outer solution has put a term in place of.
    """
    x, y = planner.scope(pattern.left), planner.scope(pattern.right)
    if visible(x.possible & y.possible) - planner.outer:
        shared = bool(visible(x.certain & y.certain) - planner.outer)
        node = planner.node(
            c.MINUS, target, LIFE_LEFT=c.NEVER, LIFE_RIGHT=c.FOREVER, TIMELESS=x.timeless or y.timeless, BY_RIGHT=shared, **planner.keys(x, y)
        )
        if shared:
            background_probe.side(planner, pattern.right, (node, c.RIGHT), x)
        else:
            planner.pattern(pattern.right, (node, c.RIGHT))
        target = node, c.LEFT
    planner.pattern(pattern.left, target, span, wanted)


class Reach(NamedTuple):
    """Says how far an optional join looks: its own span, how long goals of its left and right side live, and the spans of these (µs)."""

    span: int
    lives: tuple[int, int]
    spans: tuple[int, int]


def reach(pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, span: int, *, expires: bool = True) -> Reach:
    """Return how far an optional join looks; `span` is that of the solutions that are wanted of it.

    If nothing `expires`, it looks at all that ever came.
    """
    own = joins.span_of([] if pattern.condition is None else conjuncts(pattern.condition))
    life, own = (own, own) if expires else (c.FOREVER, absent_span(c.FOREVER, own))
    match pattern:
        case a.LeftJoin():
            return Reach(own, (c.NEVER, life), (span, own))
        case a.EqLeftJoin():
            return Reach(own, (c.NEVER, 0 if expires else life), (span, own))
        case a.SeqRightJoin():
            return Reach(own, (life, c.NEVER), (own, span))


KINDS = {a.LeftJoin: (c.OPTIONAL, c.ANY), a.EqLeftJoin: (c.EQUALSOPTIONAL, c.EQUALS), a.SeqRightJoin: (c.OPTIONALSEQ, c.SEQ)}


def optional(
    planner: "Planner", pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, target: "Target", span: int, wanted: Sequence[a.Expression]
) -> None:
    x, y = planner.scope(pattern.left), planner.scope(pattern.right)
    condition = [] if pattern.condition is None else [pattern.condition]
    planner.check(condition)
    own_span, lives, spans = reach(pattern, span, expires=expires(planner))
    kind, relation = KINDS[type(pattern)]
    kept = y if kind == c.OPTIONALSEQ else x
    down, _, own = joins.distributed(wanted, kept.certain, frozenset())
    joint = x.joined(y)
    marks, condition = filters.marks_of(planner, condition, joint)
    node = planner.node(
        kind, target, RELATION=relation, SPAN=own_span, FILTER=planner.filter(own), CONDITION=planner.filter(condition),
        TIMELESS=x.timeless or y.timeless, LIFE_LEFT=lives[0], LIFE_RIGHT=lives[1], **planner.keys(x, y),
    )  # fmt: skip
    filters.assign_marks(planner, node, marks)
    if kept.timeless and c.FOREVER not in lives:
        planner.fragment.forgetful.add(node)
    if kind == c.OPTIONALSEQ and not y.timeless:
        planner.fragment.strict.add((node, c.LEFT))
    if kind == c.OPTIONALSEQ:
        background_probe.side(planner, pattern.left, (node, c.LEFT), y, spans[0])
        planner.pattern(pattern.right, (node, c.RIGHT), spans[1], down)
    else:
        planner.pattern(pattern.left, (node, c.LEFT), spans[0], down)
        background_probe.side(planner, pattern.right, (node, c.RIGHT), x, spans[1])


def expires(planner: "Planner") -> bool:
    """Return whether what may count against a solution, or be added to it, is kept no longer than a window."""
    return "expiry" not in planner.names.without


def blocking_life(x: Scope, span: int, *, expires: bool = True) -> int:
    """Return how long a goal of what is absent lives: it lies inside the joined interval only where x has an end."""
    return span if expires and not x.timeless else c.FOREVER


def absent_span(blocking: int, span: int) -> int:
    """Return the span of what is absent: a plan has a node for each window, also where a background that changes lifts it."""
    return LIFTED if span < blocking else blocking


def without(planner: "Planner", pattern: a.SeqWithout, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    span = span if pattern.within is None else min(span, pattern.within)
    x, y, z = planner.scope(pattern.left), planner.scope(pattern.right), planner.scope(pattern.absent)
    to_left, to_right, own = joins.distributed(wanted, x.certain, y.certain)
    joined = x.joined(y)
    timeless = x.timeless or y.timeless or z.timeless
    between = planner.keys(joined, z, "2")
    blocking = blocking_life(x, span, expires=expires(planner))
    by_right = not timeless and between["REST2_N"] == 0 and joined.certain & z.certain <= y.certain
    node = planner.node(
        c.WITHOUT, target, RELATION=c.SEQ, SPAN=span, FILTER=joins.filter_of(planner, own, span), TIMELESS=timeless, BY_RIGHT=by_right,
        LIFE_LEFT=span, LIFE_RIGHT=c.FOREVER, LIFE_BLOCKER=blocking, **planner.keys(x, y), **between,
    )  # fmt: skip
    if not y.timeless:
        planner.fragment.strict |= {(node, c.LEFT), (node, c.BLOCKER)}
    planner.pattern(pattern.absent, (node, c.BLOCKER), absent_span(blocking, span))
    planner.pattern(pattern.left, (node, c.LEFT), span, to_left)
    planner.pattern(pattern.right, (node, c.RIGHT), span, to_right)


def without_for(planner: "Planner", pattern: a.WithoutFor, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    x, z = planner.scope(pattern.pattern), planner.scope(pattern.absent)
    timed = [e for e in wanted if looks_at_time(e)]
    target = planner.after(target, c.FOREVER, timed)
    node = planner.node(
        c.WITHOUTFOR, target, TIMELESS=x.timeless or z.timeless, LIFE_LEFT=pattern.duration, LIFE_BLOCKER=pattern.duration,
        **planner.keys(x, z, "2"),
    )  # fmt: skip
    planner.fragment.strict.add((node, c.LEFT))
    planner.pattern(pattern.absent, (node, c.BLOCKER), pattern.duration)
    planner.fragment.timed.append(range(node + 1, len(planner.fragment.nodes)))
    planner.pattern(pattern.pattern, (node, c.LEFT), c.FOREVER, [e for e in wanted if e not in timed])
