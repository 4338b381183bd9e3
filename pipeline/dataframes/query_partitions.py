"""How the queries over a DataFrame are shared out among engines: those that events can be dealt out for by subject or object, and the rest, which sees all."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.messages import UNRESTRICTED
from engine.partitioning import NoKey, Part, keys_of
from epsparql import algebra as a
from epsparql.literals import nodes

_TOGETHER = (a.Values, a.Group, a.SubSelect, a.InWindow)
"""What rests on when the streams begin, or on their time: that is its own in each engine of a frame. Its queries are not dealt out."""


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
    """Where every triple pattern has the key: `s`, `o`, or nowhere in common."""
    if any(isinstance(node, _TOGETHER) or node == a.Bgp(()) for node in nodes(query.pattern)):
        return None
    try:
        return next((key.part.column for key in keys_of(query) if key.part is not Part.GRAPH), None)
    except NoKey:
        return None
