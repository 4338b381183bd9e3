"""Consumption policies of the reference evaluator (semantics.md section 9): which pairs of goals an operator joins,
instant by instant.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from epsparql.terms import Term, Variable
from verification.definitions.model import Micros, Solution, Test, compatible, visible
from verification.definitions.ordering import by_terms

Pair = tuple[Solution, Solution]
Key = tuple[Term | None, ...]


def recent(lefts: Iterable[Solution], rights: Iterable[Solution], shared: Sequence[Variable], meets: Test) -> Iterator[Pair]:
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
        for x in sorted(arriving, key=_age(xs)):
            kept[tuple(map(x.lookup, shared))] = x


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


def _age(goals: Iterable[Solution]) -> Callable[[Solution], tuple[Micros | None, Micros | None, list[str]]]:
    """Older goals first, among `goals`: by end, start and the terms of all that any of them binds."""
    variables = {variable for x in goals for variable, _ in visible(x)}
    return lambda x: (x.end, x.start, by_terms(x, list(variables)))
