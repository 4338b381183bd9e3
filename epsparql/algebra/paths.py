"""This module defines property paths (SPARQL 1.1, 18.1.7)."""

from dataclasses import dataclass

from epsparql.terms import Iri


@dataclass(frozen=True, slots=True)
class Link:
    predicate: Iri


@dataclass(frozen=True, slots=True)
class Inverse:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class Sequence:
    left: "PropertyPath"
    right: "PropertyPath"


@dataclass(frozen=True, slots=True)
class Alternative:
    left: "PropertyPath"
    right: "PropertyPath"


@dataclass(frozen=True, slots=True)
class ZeroOrOne:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class ZeroOrMore:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class OneOrMore:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class Negated:
    """Represents `!(:p | ^:q)`: a triple whose predicate is none of `forward`, or one read backwards whose predicate
    is none of `backward`.

    Without any `backward` (None) no triple is read backwards, and the other way round.
    """

    forward: tuple[Iri, ...] | None
    backward: tuple[Iri, ...] | None


PropertyPath = Link | Inverse | Sequence | Alternative | ZeroOrOne | ZeroOrMore | OneOrMore | Negated
