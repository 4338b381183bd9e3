"""This module writes SEQ and the interval relations as bounds, and says how long the sides of a join wait.

Source: semantics.md, section 3.
"""

from functools import lru_cache

from engine.kernel.state import layout as c
from engine.planner.builder.difference_bounds import Contradiction, DifferenceBounds
from epsparql import algebra as a

RELATION_CODES = {
    a.Relation.MEETS: c.MEETS,
    a.Relation.DURING: c.DURING,
    a.Relation.STARTS: c.STARTS,
    a.Relation.FINISHES: c.FINISHES,
    a.Relation.OVERLAPS: c.OVERLAPS,
    a.Relation.PAR: c.PAR,
}
Joining = a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin
X, X_END, Y, Y_END = range(4)
"""These are the start and end of the left interval x, and of the right one, y."""
RELATION_BOUNDS: dict[int, tuple[tuple[int, int, int], ...]] = {
    # (first, second, most): the first variable minus the second one is at most so many µs. Strictness is told where it
    # says which side comes first; elsewhere it would make a round time a µs shorter, for nothing.
    c.ANY: (),
    c.SEQ: ((X_END, Y, -1),),
    c.EQUALS: ((X, Y, 0), (Y, X, 0), (X_END, Y_END, 0), (Y_END, X_END, 0)),
    c.MEETS: ((X_END, Y, 0), (Y, X_END, 0)),
    c.DURING: ((Y, X, 0), (X_END, Y_END, -1)),
    c.STARTS: ((X, Y, 0), (Y, X, 0), (X_END, Y_END, -1)),
    c.FINISHES: ((X_END, Y_END, 0), (Y_END, X_END, 0), (Y, X, 0)),
    c.OVERLAPS: ((X, Y, 0), (Y, X_END, 0), (X_END, Y_END, -1)),
    c.PAR: ((X, Y_END, 0), (Y, X_END, 0)),
}


def relation_of(pattern: Joining) -> int:
    match pattern:
        case a.Join():
            return c.ANY
        case a.SeqJoin():
            return c.SEQ
        case a.EqJoin():
            return c.EQUALS
        case a.RelationJoin(relation, _, _):
            return RELATION_CODES[relation]


@lru_cache(maxsize=1000)
def find_pair_lives(relation: int, span: int = c.FOREVER, longest: tuple[int, int] = (c.FOREVER, c.FOREVER)) -> tuple[int, int]:
    """Return for how long (µs) after its end a left, or right, solution waits for a partner that ends no earlier.

    Both are timed and last at most so `longest`, and the joined one lasts at most `span` µs. NEVER is returned for a
    side whose partner always comes before.
    """
    bounds = DifferenceBounds(4)
    for start, end, most in ((X, X_END, longest[0]), (Y, Y_END, longest[1]), (X, Y_END, span), (Y, X_END, span)):
        bounds.limit(end, start, most)
    for first, second, most in ((X, X_END, 0), (Y, Y_END, 0), *RELATION_BOUNDS[relation]):
        bounds.limit(first, second, most)
    try:
        bounds.close()
    except Contradiction:
        return c.NEVER, c.NEVER
    left, right = bounds.find_most(Y_END, X_END), bounds.find_most(X_END, Y_END)
    return max(min(left, span), c.NEVER), max(min(right, span), c.NEVER)


def looks_back(relation: int) -> bool:
    """Return whether the left operand of a relation ends strictly before the right one."""
    return find_pair_lives(relation)[1] == c.NEVER
