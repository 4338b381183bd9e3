"""This module orders joins where the definition leaves the order open, by how often their triples occur
(docs/decisions/0013-shapes.md).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, lgamma, log

from engine.pattern_scope import has_exists
from engine.physical_plan.join_trees import Linear, Segment, Shape, Sizes, cheapest
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import walk_nodes

Rates = Mapping[str, int]
"""Rates count the occurrences of each predicate, by its N-Triples text, and of all under EVERYTHING; a missing
predicate is not known.

OVER and KNOWN stand beside them.
"""
EVERYTHING = ""
NO_RATES: Rates = {}
KNOWN = "background "
"""A predicate's text with this prefix counts its triples in the background, where they are many."""
SELECTED = 10
"""One occurrence in so many is taken to have a given subject, or a given object."""
OVER = "over"
"""This key says how long the occurrences have been counted, in µs; where it is missing, the counts are those of a
query's window.
"""
KEYS = (10, 1_000, 100_000)
"""A variable is taken to have each of these numbers of terms in turn, because nobody counts them.

Few keys make many partial solutions, many keys hardly any. A shape is chosen for what it saves over all three, as
factors.
"""
WORTHWHILE = 2
"""Another shape must promise so many times less work."""
LONGEST = 50
"""Rates may shape chains of at most this many operands."""
TINY, MOST = 1e-9, 600.0
"""These bound a count from below, and the logarithm of a number of solutions from above."""


def rates_given(counts: Mapping[str, int]) -> Rates:
    """Return rates from counts by the IRIs of predicates."""
    return {f"<{iri}>": n for iri, n in counts.items()} | ({EVERYTHING: sum(counts.values())} if counts else {})


def predicates_of(query: object) -> set[str]:
    """Return the predicates of a query's triple patterns, as N-Triples text."""
    triples = (node for node in walk_nodes(query) if isinstance(node, a.TriplePattern))
    return {str(triple.predicate) for triple in triples if not isinstance(triple.predicate, Variable)}


def rate(triple: a.TriplePattern, rates: Rates) -> float:
    """Return how many occurrences match a triple pattern.

    A predicate that is not known counts as much as the others on average.
    """
    known = [n for predicate, n in rates.items() if predicate.startswith("<")]
    average = sum(known) / len(known) if known else 1
    predicate = EVERYTHING if isinstance(triple.predicate, Variable) else str(triple.predicate)
    found = float(rates.get(predicate, average))
    for part in (triple.subject, triple.object):
        found /= 1 if isinstance(part, Variable) else SELECTED
    return found


def variables_of(triple: a.TriplePattern) -> set[TermOrVariable]:
    return {t for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Variable)}


def order_triples(triples: Sequence[a.TriplePattern], rates: Rates) -> list[a.TriplePattern]:
    """Return the triple patterns of a group, whose order means nothing, in the order in which they are joined.

    Each pattern shares a variable with those before it where that can be, and rare ones come first; where nothing is
    known, they stay as written. What the background has much of is looked up as late as may be.
    """
    rest, chosen = list(triples), list[a.TriplePattern]()
    bound: set[TermOrVariable] = set()
    while rest:
        connected = [t for t in rest if bound & variables_of(t)] or rest
        following = min(connected, key=lambda t: (rates.get(f"{KNOWN}{t.predicate}", 0), rate(t, rates))) if rates else connected[0]
        rest.remove(following)
        chosen.append(following)
        bound |= variables_of(following)
    return chosen


def find_chain(query: a.StreamQuery, policy: str, pattern: a.SeqJoin) -> tuple[a.Pattern, ...]:
    """Return the operands of `A SEQ B SEQ C SEQ D`, if they may be joined in any order; else nothing.

    SEQ is associative over timed solutions: in every order each operand ends before the next one starts, bindings are
    united and intervals spanned.
    """
    operands = chain(pattern) if _is_whole(query, policy, pattern) else ()
    return operands if len(operands) > 2 and all(map(_is_plain, operands)) else ()


def choose_shape(operands: Sequence[a.Pattern], rates: Rates, span: int) -> Shape:
    """Return the shape for these rates of a chain whose solutions last at most `span` µs."""
    if not rates.get(EVERYTHING) or len(operands) > LONGEST:
        return Linear.WRITTEN
    triples = [_triple_of(operand) for operand in operands]
    at_once = min(span / rates[OVER], 1) if rates.get(OVER) else 1
    counts = [at_once * rate(triple, rates) for triple in triples]
    return cheapest(len(operands), [_sizes(counts, [variables_of(t) for t in triples], keys) for keys in KEYS], sum(counts), WORTHWHILE)


def _sizes(counts: Sequence[float], variables: Sequence[set[TermOrVariable]], keys: int) -> Sizes:
    """Return the sizes of a chain's segments if each variable has so many terms.

    A size counts the ways to choose operands that agree, in one order of all.
    """

    @cache
    def size(segment: Segment) -> float:
        here = slice(segment[0], segment[1] + 1)
        agreeing = sum(map(len, variables[here])) - len(set().union(*variables[here]))
        n = segment[1] - segment[0]
        return exp(min(sum(log(max(count, TINY)) for count in counts[here]) - agreeing * log(keys) - lgamma(n + 1), MOST))

    return size


def chain(pattern: a.Pattern) -> tuple[a.Pattern, ...]:
    """Return the operands of SEQs as they were written, one after the other."""
    match pattern:
        case a.SeqJoin(left, right):
            return (*chain(left), right)
        case _:
            return (pattern,)


def _is_whole(query: a.StreamQuery, policy: str, pattern: a.Pattern) -> bool:
    """Return whether a pattern is all of a query, conditions apart: no other part of it keeps goals."""
    if not isinstance(query, a.Select) or query.modifiers != a.PLAIN or query.sources.windows or policy != UNRESTRICTED:
        return False
    whole = query.pattern
    while isinstance(whole, a.Filter | a.Within) and whole is not pattern:
        if isinstance(whole, a.Filter) and has_exists(whole.condition):
            return False
        whole = whole.pattern
    return whole is pattern


def _is_plain(operand: a.Pattern) -> bool:
    """Return whether an operand is one triple pattern with conditions: it keeps no goals of its own."""
    match operand:
        case a.Filter(condition, inner):
            return not has_exists(condition) and _is_plain(inner)
        case a.Bgp(triples, place):
            return len(triples) == 1 and place.graph is None
        case _:
            return False


def _triple_of(operand: a.Pattern) -> a.TriplePattern:
    while isinstance(operand, a.Filter):
        operand = operand.pattern
    assert isinstance(operand, a.Bgp)
    return operand.triples[0]
