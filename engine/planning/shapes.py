"""In which order joins are made, where the definition leaves that open, by how often their triples occur (docs/decisions/0013-shapes.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING

from engine.entries import UNRESTRICTED
from engine.scope import asks
from epsparql import algebra as a
from epsparql.terms import TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planning.planner import Planner

Rates = Mapping[str, int]
"""Occurrences of each predicate, by its N-Triples text, and of all under EVERYTHING; what is not there is not known."""
EVERYTHING = ""
NO_RATES: Rates = {}
KNOWN = "background "
"""Before a predicate's text: how many triples of it the background has, where they are many."""
SELECTED = 10
"""One occurrence in so many is taken to have a given subject, or a given object."""
WORTHWHILE = 2
"""How many times fewer intermediate solutions the other shape must promise."""


def rates_given(counts: Mapping[str, int]) -> Rates:
    """Rates by the IRIs of predicates."""
    return {f"<{iri}>": n for iri, n in counts.items()} | ({EVERYTHING: sum(counts.values())} if counts else {})


def predicates_of(query: object) -> set[str]:
    """The predicates of a query's triple patterns, as N-Triples text."""
    found, pending = set[str](), [query]
    while pending:
        part = pending.pop()
        if isinstance(part, a.TriplePattern):
            found |= {str(part.predicate)} if not isinstance(part.predicate, Variable) else set()
        elif isinstance(part, tuple):
            pending += part
        elif is_dataclass(part):
            pending += [getattr(part, field.name) for field in fields(part)]
    return found


def rate(triple: a.TriplePattern, rates: Rates) -> float:
    """How many occurrences match a triple pattern; of a predicate that is not known, as many as of the others on average."""
    known = [n for predicate, n in rates.items() if predicate != EVERYTHING and not predicate.startswith(KNOWN)]
    average = sum(known) / len(known) if known else 1
    predicate = EVERYTHING if isinstance(triple.predicate, Variable) else str(triple.predicate)
    found = float(rates.get(predicate, average))
    for part in (triple.subject, triple.object):
        found /= 1 if isinstance(part, Variable) else SELECTED
    return found


def variables_of(triple: a.TriplePattern) -> set[TermOrVariable]:
    return {t for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Variable)}


def in_order(triples: Sequence[a.TriplePattern], rates: Rates) -> list[a.TriplePattern]:
    """Triple patterns of a group, whose order means nothing: each shares a variable with those before it where that can be, and rare
    ones come first; as written where nothing is known. What the background has much of is looked up as late as may be."""
    rest, chosen = list(triples), list[a.TriplePattern]()
    bound: set[TermOrVariable] = set()
    while rest:
        connected = [t for t in rest if bound & variables_of(t)] or rest
        following = min(connected, key=lambda t: (rates.get(f"{KNOWN}{t.predicate}", 0), rate(t, rates))) if rates else connected[0]
        rest.remove(following)
        chosen.append(following)
        bound |= variables_of(following)
    return chosen


def turned(planner: "Planner", pattern: a.SeqJoin) -> a.SeqJoin:
    """`A SEQ B SEQ C` as `A SEQ {B SEQ C}` where that promises fewer intermediate solutions.

    SEQ is associative over timed solutions: either way each operand ends before the next one starts, bindings are united and intervals
    spanned. What a timeless operand joins depends on when it came (semantics.md section 10), so none may be: `Network` plans the query
    as written again when the background brings one.
    """
    operands = chain(pattern)
    planner.fragment.operands = operands if _is_whole(planner, pattern) and all(map(_is_plain, operands)) and len(operands) > 2 else ()
    if not planner.fragment.operands or not planner.names.turns or not planner.names.order:
        return pattern
    if any(planner.scope(operand).timeless for operand in operands):
        return pattern
    total = planner.names.rates.get(EVERYTHING, 0) or 1
    shares = [rate(_triple_of(operand), planner.names.rates) / total for operand in operands]
    if WORTHWHILE * intermediate(shares[::-1]) > intermediate(shares):
        return pattern
    planner.fragment.turned = True
    whole = operands[-1]
    for operand in operands[-2::-1]:
        whole = a.SeqJoin(operand, whole)
    assert isinstance(whole, a.SeqJoin)
    return whole


def intermediate(shares: Sequence[float]) -> float:
    """How many solutions the joins but the last have, up to a factor, if the first two join first, then the third, and so on."""
    products: list[float] = list(accumulate(shares, mul))
    return sum(products[1:-1])


def chain(pattern: a.Pattern) -> tuple[a.Pattern, ...]:
    """The operands of SEQs as they were written, one after the other."""
    match pattern:
        case a.SeqJoin(left, right):
            return (*chain(left), right)
        case _:
            return (pattern,)


def _is_whole(planner: "Planner", pattern: a.Pattern) -> bool:
    """Whether a pattern is all of a query, conditions apart: no other part of it keeps goals."""
    query = planner.query
    if not isinstance(query, a.Select) or query.modifiers != a.PLAIN or query.sources.windows or planner.names.policy != UNRESTRICTED:
        return False
    whole = query.pattern
    while isinstance(whole, a.Filter | a.Within) and whole is not pattern:
        if isinstance(whole, a.Filter) and asks(whole.condition):
            return False
        whole = whole.pattern
    return whole is pattern


def _is_plain(operand: a.Pattern) -> bool:
    """Whether an operand is one triple pattern with conditions: it keeps no goals of its own."""
    match operand:
        case a.Filter(condition, inner):
            return not asks(condition) and _is_plain(inner)
        case a.Bgp(triples, place):
            return len(triples) == 1 and place.graph is None
        case _:
            return False


def _triple_of(operand: a.Pattern) -> a.TriplePattern:
    while isinstance(operand, a.Filter):
        operand = operand.pattern
    assert isinstance(operand, a.Bgp)
    return operand.triples[0]
