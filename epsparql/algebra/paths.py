"""This module defines property paths (SPARQL 1.1, 18.1.7)."""

from msgspec import Struct

from epsparql.terms import Iri


class Link(Struct, frozen=True):
    predicate: Iri


class Inverse(Struct, frozen=True):
    path: "PropertyPath"


class Sequence(Struct, frozen=True):
    left: "PropertyPath"
    right: "PropertyPath"


class Alternative(Struct, frozen=True):
    left: "PropertyPath"
    right: "PropertyPath"


class ZeroOrOne(Struct, frozen=True):
    path: "PropertyPath"


class ZeroOrMore(Struct, frozen=True):
    path: "PropertyPath"


class OneOrMore(Struct, frozen=True):
    path: "PropertyPath"


class Negated(Struct, frozen=True):
    """Represents `!(:p | ^:q)`: a triple whose predicate is none of `forward`, or one read backwards whose predicate
    is none of `backward`.

    Without any `backward` (None) no triple is read backwards, and the other way round.
    """

    forward: tuple[Iri, ...] | None
    backward: tuple[Iri, ...] | None


PropertyPath = Link | Inverse | Sequence | Alternative | ZeroOrOne | ZeroOrMore | OneOrMore | Negated
