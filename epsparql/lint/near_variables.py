"""This module finds variables that were probably misspelt: each stands once in the query, and another name differs
from it by a slip.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set

from epsparql.errors import Span, Warning_
from epsparql.parser import ast as s
from epsparql.trees import walk_nodes

_SHORTEST, _SHORTEST_REPLACED = 4, 6
"""Names of fewer letters are not compared: `?a1` and `?b1`, `?date` and `?rate` are meant to be different."""
MOST_COMPARED = 200
"""A query with more names is not looked at: each single one is compared with all others."""


def find_near_variables(query: object, warned: Collection[Span]) -> Iterator[Warning_]:
    """Yield a warning for each variable of a query that was probably misspelt; `warned` are places already doubted."""
    places: dict[str, list[Span]] = {}
    for node in walk_nodes(query):
        if isinstance(node, s.VariableName):
            places.setdefault(node.name, []).append(node.span)
    doubted = {name for name, found in places.items() if any(span.start <= found[0].start and found[0].end <= span.end for span in warned)}
    for name, near in find_slips(places, doubted):
        yield Warning_("near-variable", f"?{name} stands only here, so it equals nothing else; was ?{near} meant?", places[name][0])


def find_slips(places: Mapping[str, Sequence[Span]], doubted: Set[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Yield each name that stands at one place, near another one that stands before it or more often, with the other
    one. Names that are `doubted` already are left out.
    """
    if len(places) > MOST_COMPARED:
        return
    for name, found in places.items():
        if len(found) == 1 and name not in doubted:
            before = [known for known in places if known not in doubted and (len(places[known]) > 1 or places[known][0].start < found[0].start)]
            near = next((known for known in before if _is_slip(name, known)), None)
            if near is not None:
                yield name, near


def _is_slip(name: str, known: str) -> bool:
    """Return whether two names differ by case, or by one small letter that is missing, doubled, replaced or has
    changed places.

    Differences at the beginning, and replaced last letters, tell names apart on purpose; so do digits and capitals.
    """
    if name.casefold() == known.casefold():
        return name != known
    start = _count_shared(name, known)
    end = _count_shared(name[start:][::-1], known[start:][::-1])
    mine, yours = name[start : len(name) - end], known[start : len(known) - end]
    if not start or min(len(name), len(known)) < _SHORTEST or not (mine + yours).isalpha() or not (mine + yours).islower():
        return False
    if len(mine) + len(yours) == 1:
        return True
    if len(mine) == len(yours) == 1:
        return end > 0 and len(name) >= _SHORTEST_REPLACED
    return len(mine) == 2 and mine == yours[::-1]


def _count_shared(name: str, known: str) -> int:
    """Return how many letters two names share from their start on."""
    return next((k for k, (mine, yours) in enumerate(zip(name, known, strict=False)) if mine != yours), min(len(name), len(known)))
