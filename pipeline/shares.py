"""How the queries over a DataFrame are shared out among engines: those that events can be dealt out for by subject or object, and the rest, which sees all."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.entries import UNRESTRICTED
from epsparql import algebra as a
from epsparql.check import nodes
from epsparql.terms import Variable

_TOGETHER = (a.Path, a.Values, a.Group, a.SubSelect, a.InWindow)
"""What matches by itself, looks at solutions of several keys, or goes through them: its queries are not dealt out."""


@dataclass(frozen=True, slots=True)
class Share:
    """Queries that run in the same `buckets` engines, numbered from `first`; an event goes to the one that its term in `column` chooses (None: there is one)."""

    queries: tuple[str, ...]
    column: str | None
    first: int
    buckets: int


def shares(queries: Mapping[str, a.Query], policies: Mapping[str, str], *, background: bool, buckets: int) -> tuple[Share, ...]:
    """Every query is in one share. With background everything is in one: what matches it alone would come from each bucket."""
    derived = {query.into for query in queries.values() if isinstance(query, a.Construct)} - {None}
    by_column: dict[str | None, list[str]] = {}
    for name, query in queries.items():
        alone = buckets == 1 or background or policies.get(name, UNRESTRICTED) != UNRESTRICTED or derived & {*query.streams}
        read = isinstance(query, a.Construct) and any(query.into in other.streams for other in queries.values())
        by_column.setdefault(None if alone or read else _column(query), []).append(name)
    found, first = [], 0
    for column, names in by_column.items():
        found.append(Share(tuple(names), column, first, 1 if column is None else buckets))
        first += found[-1].buckets
    return tuple(found)


def _column(query: a.Query) -> str | None:
    """Where every triple pattern has one variable, on which what is compared agrees: `s`, `o`, or nowhere in common."""
    inside = list(nodes(query.pattern))
    triples = [node for node in inside if isinstance(node, a.TriplePattern)]
    if not triples or any(isinstance(node, _TOGETHER) or node == a.Bgp(()) for node in inside):
        return None
    for column, terms in (("s", {triple.subject for triple in triples}), ("o", {triple.object for triple in triples})):
        key = next(iter(terms))
        if len(terms) == 1 and isinstance(key, Variable) and _agrees(query, key):
            return column
    return None


def _agrees(query: a.Query, key: Variable) -> bool:
    """Whether solutions that differ in the key are never compared with each other."""
    match query:
        case a.Select(projection=projection, distinct=distinct):
            return not query.sources.windows and query.modifiers == a.PLAIN and (key in projection or not distinct)
        case a.Construct(template=template):
            return not query.sources.windows and key in {term for triple in template for term in (triple.subject, triple.predicate, triple.object)}
        case _:
            return False
