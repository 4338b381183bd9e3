"""Query texts as the server needs them: checked at registration, and what their solutions look like."""

from collections.abc import Iterable
from dataclasses import dataclass

import epsparql
from epsparql.algebra import Construct, Query, Select
from epsparql.errors import Warning_


@dataclass(frozen=True, slots=True)
class Shape:
    """`variables` of a SELECT, in order; None for a CONSTRUCT. `into` is the stream that a CONSTRUCT writes."""

    variables: tuple[str, ...] | None
    streams: tuple[str, ...]
    into: str | None

    def touches(self, stream: str) -> bool:
        """Whether the query reads the stream, or writes it."""
        return stream in self.streams or stream == self.into


_shapes: dict[str, Shape] = {}  # by text; a server asks for those of all its queries again and again, however many they are


def check(text: str, others: Iterable[str] = ()) -> tuple[Warning_, ...]:
    """The warnings of a query that can be registered beside `others`. Raises: QueryError."""
    from engine.check import check as check_plan  # loads the kernel, so only where a query is planned

    parsed = epsparql.parse(text)
    is_rule = isinstance(parsed.query, Construct)
    rules = [epsparql.parse(other).query for other in others if shape(other).into is not None] if is_rule else ()  # only rules can close a cycle
    return (*parsed.warnings, *check_plan(parsed.query, text, rules))


def explained(text: str) -> str:
    """The plan as text. Raises: QueryError."""
    from engine.explain import explain  # as above

    check(text)
    return explain(epsparql.parse(text).query)


def shape(text: str) -> Shape:
    """Of a text that was accepted before; kept until it is forgotten. Raises: QueryError."""
    found = _shapes.get(text)
    if found is None:
        found = _shapes[text] = shape_of(epsparql.parse(text).query)
    return found


def forget(text: str) -> None:
    """Of a query that was dropped."""
    _shapes.pop(text, None)


def shape_of(query: Query) -> Shape:
    match query:
        case Select():
            return Shape(tuple(variable.name for variable in query.projection), query.streams, None)
        case Construct():
            return Shape(None, query.streams, query.into)
