"""This module maps the constants and events of a program to RDF terms and triples."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from urllib.parse import quote, unquote

from epsparql.ntriples import is_absolute_iri
from epsparql.terms import XSD, Iri, Literal
from epsparql.terms import Term as RdfTerm

URN = "urn:ele:"
TERM = URN + "term"
"""The datatype of structs and lists, in canonical text."""
UNIT = Iri(URN + "unit")
OWN = "urn:ele:own:"
"""The stream on which a program's events lie begins with this; so do the predicates of its triples."""
NEVER = Iri(OWN + "never")
FUNCTION = "urn:epsparql:ele:"
"""The functions that conditions need beyond SPARQL's have IRIs that begin with this."""
NAMED = {"//": "quotient", "**": "power", "^": "power", "append": "concatenate"}
"""The functions of these names of the language have other names in their IRIs."""
EMPTY_LIST = Literal("[]", TERM)
ARGUMENT = URN + "arg"
EVENT_NODE = URN + "event:"


@lru_cache(maxsize=4096)
def iri_of(name: str) -> Iri:
    """Return the IRI of a name: itself if it is one, else `urn:ele:` and the name, percent-encoded."""
    if is_iri(name):
        return Iri(name)
    return Iri(URN + quote(name, safe=""))


def is_iri(name: str) -> bool:
    """Return whether a name is an IRI, so that atoms of it are triples.

    A name that only looks like one is a name like others.
    """
    return (name.startswith("urn:") or "://" in name) and is_absolute_iri(name)


def name_of(iri: str) -> str:
    """Return the name that an IRI stands for, or the IRI itself."""
    return unquote(iri[len(URN) :]) if iri.startswith(URN) else iri


def number_literal(value: Decimal) -> Literal:
    """Return a number's canonical literal: an integer if it is whole, else a decimal without trailing zeros."""
    if value == value.to_integral_value():
        return Literal(str(int(value)), XSD + "integer")
    return Literal(f"{value:f}".rstrip("0"), XSD + "decimal")


def event_predicate(name: str, arity: int, argument: int = 0, *, derived: bool = False) -> Iri:
    """Return the predicate of an event's triple on the program's own stream, or of its k-th argument's, from 1.

    Events that rules have derived, whether or not they were sent too, may have triples of their own there.
    """
    base = f"{OWN}{'derived/' if derived else ''}{quote(name, safe='')}/{arity}"
    return Iri(f"{base}:{argument}" if argument else base)


def read_event_predicate(iri: str) -> tuple[str, int, int] | None:
    """Return the name, arity and argument of which this is the `event_predicate`; None for any other IRI."""
    found = re.fullmatch(rf"{OWN}(?:derived/)?([^/]*)/(\d+)(?::(\d+))?", iri)
    return None if found is None else (unquote(found[1]), int(found[2]), int(found[3] or 0))


def prefix_predicate(stream: int, arguments: int) -> Iri:
    """Return the predicate, on the program's own stream, between a node of the k-th stream and the list of its first
    arguments.
    """
    return Iri(f"{OWN}first/{stream}/{arguments}")


@lru_cache(maxsize=256)
def argument_predicate(argument: int) -> Iri:
    """Return the predicate of an event's k-th argument, from 1, in streams."""
    return Iri(f"{ARGUMENT}{argument}")


def event_node(name: str, arguments: Sequence[RdfTerm | str], start: int, end: int) -> Iri:
    """Return the node that stands for an event on an interval (µs) in streams: derived twice, it is one node.

    Arguments may be N-Triples text.
    """
    lines = [f"{name}/{len(arguments)}", *(str(argument) for argument in arguments), str(start), str(end)]
    return Iri(f"{EVENT_NODE}{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:32]}")


def key_of(arguments: Iterable[str]) -> Iri:
    """Return the node that stands for a list of arguments, in N-Triples text, on a program's own stream."""
    return Iri(f"{OWN}{hashlib.sha256(chr(10).join(arguments).encode()).hexdigest()[:32]}")
