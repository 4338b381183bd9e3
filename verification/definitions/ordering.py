"""ORDER BY, OFFSET, LIMIT and DISTINCT of the reference evaluator, and the order in which solutions of one instant
stand (sections 2 and 7).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

from epsparql.algebra import Expression, Modifiers, Once
from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD_STRING, BlankNode, Iri, Term, TripleTerm, Variable
from verification.definitions.expressions import boolean, duration, instant, numeric, text_value
from verification.definitions.model import Bindings, Micros, Solution, compatible, projected

Value = Callable[[Expression, Solution], Term | None]
"""An expression's value for a solution, None for an error."""
Rank = tuple[object, ...]


def rank(term: Term | None) -> Rank:
    """Unbound, blank nodes, IRIs, literals, triple terms; literals by class, then by value; triple terms part by part."""
    match term:
        case None:
            return (0,)
        case BlankNode() | Iri():
            return 1 if isinstance(term, BlankNode) else 2, str(term)
        case TripleTerm():
            return 4, rank(term.subject), rank(term.predicate), rank(term.object)
    if (number := numeric(term)) is not None:
        return (3, 0, 0) if number != number else (3, 0, 1, number)
    if term.datatype == XSD_STRING:
        return 3, 1, text_value(term)
    if (truth := boolean(term)) is not None:
        return 3, 2, truth
    if (moment := instant(term)) is not None:
        return 3, 3, moment
    if (length := duration(term)) is not None and length[0] == 0:
        return 3, 4, length[1]
    return 3, 5, str(term)


def by_terms(x: Solution, variables: Sequence[Variable]) -> list[str]:
    """N-Triples text by variable name, unbound first."""
    return [str(x.lookup(variable) or "") for variable in sorted(variables, key=lambda variable: variable.name)]


@dataclass(frozen=True, slots=True)
class Setting:
    """Says where timeless solutions stand, what expressions are worth, and which solutions reset the keys of ONCE PER."""

    first: Micros | None
    value: Value
    resets: Collection[Solution] = ()


def passing_once(rows: Iterable[Solution], once: Once, end: Callable[[Solution], Micros], resets: Collection[Solution]) -> Iterator[Solution]:
    """The solutions that ONCE PER lets through, of all in their order (section 15)."""
    emitted: dict[Bindings, Micros] = {}
    for x in rows:
        key = projected(x, once.keys)
        latest = emitted.get(key)
        if once.within is not None:
            passes = latest is None or latest <= end(x) - once.within
        else:
            own = Solution(key)
            passes = latest is None or any(
                compatible(own, Solution(projected(z, once.keys))) and (z.start is None or z.end is None or (latest < z.start and z.end < end(x)))
                for z in resets
            )
        if passes:
            emitted[key] = end(x)
            yield x


def modified(
    found: Iterable[Solution], projection: Sequence[Variable], distinct: bool, modifiers: Modifiers, per_report: bool, setting: Setting
) -> list[Solution]:
    """The solutions that are left, whole, in their order: by end, then by ORDER BY, start, terms.

    Timeless ones stand at the setting's `first`.
    """

    def end(x: Solution) -> Micros:
        at = setting.first if x.end is None else x.end
        assert at is not None, "a timeless solution stands nowhere before the first instant"
        return at

    def start_of(x: Solution) -> Micros:
        return end(x) if x.start is None else x.start

    rows = sorted(found, key=lambda x: (start_of(x), by_terms(x, projection), not x.timeless))
    for comparator in reversed(modifiers.order):
        rows.sort(key=lambda x: rank(setting.value(comparator.expression, x)), reverse=comparator.descending)
    rows.sort(key=end)
    if modifiers.once is not None:
        rows = list(passing_once(rows, modifiers.once, end, setting.resets))
    if distinct:
        kept: dict[object, Solution] = {}
        for x in rows:
            kept.setdefault((projected(x, projection), x.start, x.end), x)
        rows = list(kept.values())
    parts = [list(part) for _, part in groupby(rows, key=end)] if per_report else [rows]
    last = None if modifiers.limit is None else modifiers.offset + modifiers.limit
    return [x for part in parts for x in part[modifiers.offset : last]]
