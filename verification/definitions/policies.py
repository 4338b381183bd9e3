"""Consumption policies of the reference evaluator (semantics.md section 9): which pairs of goals an operator joins,
instant by instant.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from epsparql.terms import Term, Variable
from verification.definitions.model import Micros, Solution, Test, compatible, visible
from verification.definitions.ordering import Rank, by_terms, rank

Pair = tuple[Solution, Solution]
Key = tuple[Term | None, ...]
Age = Callable[[Solution], tuple[object, ...]]


def recent(lefts: Iterable[Solution], rights: Iterable[Solution], shared: Sequence[Variable], meets: Test, policy: str) -> Iterator[Pair]:
    """Per join key the left goal that ended last before the instant, and those that end at it: a later one replaces
    it after the instant.
    """
    kept: dict[Key, Solution] = {}
    timed, untimed = _split(lefts, rights)
    yield from (pair for pair in untimed if _fits(pair, meets))
    xs, ys = timed
    for now in _instants(xs, ys):
        arriving = [x for x in xs if x.end == now]
        tried = [*kept.values(), *arriving]
        yield from (pair for pair in product(tried, ys) if _ends(pair) == now and _fits(pair, meets))
        for x in sorted(arriving, key=_lateness(xs, policy)):
            kept[tuple(map(x.lookup, shared))] = x


def recent_and(lefts: Iterable[Solution], rights: Iterable[Solution], shared: Sequence[Variable], policy: str) -> Iterator[Pair]:
    """AND has no sides: goals of both operands are kept, tried and replaced as the left ones of SEQ are."""
    kept: tuple[dict[Key, Solution], dict[Key, Solution]] = {}, {}
    timed, untimed = _split(lefts, rights)
    yield from (pair for pair in untimed if compatible(*pair))
    for now in _instants(*timed):
        arriving = tuple([x for x in goals if x.end == now] for goals in timed)
        yield from (pair for pair in product(arriving[0], kept[1].values()) if compatible(*pair))
        yield from (pair for pair in product([*kept[0].values(), *arriving[0]], arriving[1]) if compatible(*pair))
        for latest, came, goals in zip(kept, arriving, timed, strict=True):
            for x in sorted(came, key=_lateness(goals, policy)):
                latest[tuple(map(x.lookup, shared))] = x


def chronological_and(lefts: Iterable[Solution], rights: Iterable[Solution]) -> Iterator[Pair]:
    """A goal takes the oldest one of the other operand, or waits for one; of an instant the left goals come first."""
    timed, untimed = _split(lefts, rights)
    yield from (pair for pair in untimed if compatible(*pair))
    waiting: tuple[list[Solution], list[Solution]] = [], []
    for now in _instants(*timed):
        for side, goals in enumerate(timed):
            for x in sorted((x for x in goals if x.end == now), key=_age(goals)):
                others = [y for y in waiting[1 - side] if compatible(x, y)]
                if others:
                    y = min(others, key=_age(timed[1 - side]))
                    waiting[1 - side].remove(y)
                    yield (x, y) if side == 0 else (y, x)
                else:
                    waiting[side].append(x)


def chronological(lefts: Iterable[Solution], rights: Iterable[Solution], meets: Test) -> Iterator[Pair]:
    """Each right goal takes the eligible left goal that is least by end, start and terms; older right goals go before
    younger ones.
    """
    timed, untimed = _split(lefts, rights)
    yield from (pair for pair in untimed if _fits(pair, meets))
    (xs, ys), served, consumed = timed, set[Solution](), set[Solution]()
    ys = sorted(ys, key=_age(ys))
    for now in _instants(xs, ys):
        for y in ys:
            eligible = [x for x in xs if x not in consumed and _ends((x, y)) <= now and _fits((x, y), meets)]
            if y not in served and eligible:
                x = min(eligible, key=_age(xs))
                served.add(y)
                consumed.add(x)
                yield x, y


def _split(lefts: Iterable[Solution], rights: Iterable[Solution]) -> tuple[tuple[list[Solution], list[Solution]], list[Pair]]:
    """The timed goals, and the pairs with a timeless one: those are neither replaced nor consumed."""
    xs, ys = list(lefts), list(rights)
    untimed = [(x, y) for x, y in product(xs, ys) if x.timeless or y.timeless]
    return ([x for x in xs if not x.timeless], [y for y in ys if not y.timeless]), untimed


def _fits(pair: Pair, meets: Test) -> bool:
    return compatible(*pair) and meets(*pair)


def _ends(pair: Pair) -> Micros:
    return max(x.end for x in pair if x.end is not None)


def _instants(xs: Iterable[Solution], ys: Iterable[Solution]) -> list[Micros]:
    return sorted({x.end for x in (*xs, *ys) if x.end is not None})


def _age(goals: Iterable[Solution]) -> Age:
    """Older goals first, among `goals`: by end, start and the terms of all that any of them binds."""
    return _lateness(goals, "recent")


def _lateness(goals: Iterable[Solution], policy: str) -> Age:
    """The latest goal last, in a variant of `recent`: of one end, the shorter, the longer, or that of the greater value."""
    variables = list({variable for x in goals for variable, _ in visible(x)})
    name = policy.partition("?")[2]
    sign = -1 if policy == "recent-longest" else 1

    def value(x: Solution) -> Rank:
        return rank(x.lookup(Variable(name))) if name else ()

    return lambda x: (x.end, value(x), None if x.start is None else sign * x.start, by_terms(x, variables))
