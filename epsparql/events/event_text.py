"""This module writes triples with times, as Python has them, as lines of ndjson."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from epsparql.terms import BlankNode, Iri, Literal, TripleTerm

_PLACES = "s", "p", "o"
_SHAPES = {4: ("at",), 5: ("start", "end")}


def write_events(triples: Iterable[Sequence[Any]]) -> str:
    """Return a line of ndjson for each triple `(s, p, o, at)` or `(s, p, o, start, end)`.

    Terms are those of rdflib, or N-Triples texts; an object may also be a number, bool, datetime, date, time,
    timedelta or bytes. Times are datetimes or xsd:dateTime texts. Raises: TypeError for anything else, with the
    number of the triple, from 1.
    """
    return "".join(_lines(triples))


def _lines(triples: Iterable[Sequence[Any]]) -> Iterator[str]:
    for number, triple in enumerate(triples, 1):
        times = _SHAPES.get(len(triple)) if isinstance(triple, Sequence) and not isinstance(triple, str) else None
        if times is None:
            raise TypeError(f"event {number}: {triple!r} is neither (s, p, o, at) nor (s, p, o, start, end)")
        try:
            event = {place: term_text(value, place) for place, value in zip(_PLACES, triple, strict=False)}
            event |= {name: time_text(value) for name, value in zip(times, triple[3:], strict=True)}
        except TypeError as fault:
            raise TypeError(f"event {number}: {fault}") from None
        yield json.dumps(event, ensure_ascii=False) + "\n"


def term_text(value: Any, place: str) -> str:
    """Return the N-Triples text of what may stand at `place`, one of s, p and o. Raises: TypeError; NotInRdflib."""
    if hasattr(value, "n3"):  # a term of rdflib, or one that rdflib lacks
        from epsparql.rdf_exchange.conversion import from_client_term  # loads rdflib

        return str(from_client_term(value))
    if isinstance(value, str | Iri | BlankNode | Literal | TripleTerm):
        return str(value)
    if place != "o":
        raise TypeError(f"{place} is {value!r}; expected a term of rdflib, or its N-Triples text")
    return str(Literal.from_python(value.item() if hasattr(value, "item") else value))  # a number of numpy has its Python value


def time_text(value: Any) -> str:
    """Return the xsd:dateTime text of a datetime; a text is left as it is. Raises: TypeError."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return value
    raise TypeError(f"the time {value!r} is neither a datetime nor an xsd:dateTime text")
