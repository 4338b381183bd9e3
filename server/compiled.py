"""Query texts as the server needs them: checked at registration, and what their solutions look like."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import epsparql
from epsparql.algebra import Construct, Query, Select
from epsparql.errors import Warning_


@dataclass(frozen=True, slots=True)
class Shape:
    """`variables` of a SELECT, in order; None for a CONSTRUCT. `into` is the stream that a CONSTRUCT writes."""

    variables: tuple[str, ...] | None
    streams: tuple[str, ...]
    into: str | None


def check(text: str, others: Iterable[str] = ()) -> tuple[Warning_, ...]:
    """The warnings of a query that can be registered beside `others`. Raises: QueryError."""
    from engine.check import check as check_plan  # loads the kernel, so only where a query is planned

    parsed = epsparql.parse(text)
    rules = [query for other in others if isinstance(query := epsparql.parse(other).query, Construct)]  # only rules can close a cycle
    return (*parsed.warnings, *check_plan(parsed.query, text, rules if isinstance(parsed.query, Construct) else ()))


def explained(text: str) -> str:
    """The plan as text. Raises: QueryError."""
    from engine.explain import explain  # as above

    check(text)
    return explain(epsparql.parse(text).query)


@lru_cache(maxsize=1024)
def shape(text: str) -> Shape:
    """Of a text that was accepted before. Raises: QueryError."""
    return shape_of(epsparql.parse(text).query)


def shape_of(query: Query) -> Shape:
    match query:
        case Select():
            return Shape(tuple(variable.name for variable in query.projection), query.streams, None)
        case Construct():
            return Shape(None, query.streams, query.into)
