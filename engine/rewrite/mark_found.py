"""An optional part that binds nothing new says by a hidden variable that it was found.

A timeless solution that an optional join has decided on goes with the triples of the optional part, if it was found, and else stays. Where that part
binds nothing new, nothing else tells one from the other (docs/decisions/0055-what-was-found-is-marked.md).
"""

from dataclasses import replace
from itertools import count

from engine.expressions.literals import TRUE
from engine.pattern_scope import find_scope
from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.terms import Variable


def mark_found(query: a.Query) -> a.Query:
    """Return the query with a hidden variable bound by each optional part that binds nothing new; its other solutions are the same.

    UNION and OPTIONALSEQ are left alone: a solution may come there in both ways at once, and the variable would make two of it.
    """
    numbers = count()

    def mark(pattern: a.Pattern) -> a.Pattern:
        if isinstance(pattern, a.Union):
            return pattern
        below = replace_patterns(pattern, mark)
        match below:
            case a.LeftJoin(kept, optional) | a.EqLeftJoin(kept, optional) if _binds_nothing(optional, kept):
                return replace(below, right=a.Extend(optional, Variable(f"_:found#{next(numbers)}"), a.Constant(TRUE)))
            case _:
                return below

    return replace_patterns(query, mark)


def _binds_nothing(optional: a.Pattern, kept: a.Pattern) -> bool:
    """Return whether both sides may be timeless and a join of them may be the solution that is kept, whatever that leaves unbound."""
    x, y = find_scope(kept, lambda triple, place: True), find_scope(optional, lambda triple, place: True)
    return x.timeless and y.timeless and y.certain <= x.certain and y.possible & x.possible <= x.certain
