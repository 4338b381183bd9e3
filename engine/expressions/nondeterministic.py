"""The values of BNODE, NOW, RAND, STRUUID and UUID depend on which solution asks, and from where (semantics.md
section 4).

They are functions of query, solution and call site, so that a replay gives the same.
"""

import hashlib
from collections.abc import Sequence
from uuid import NAMESPACE_OID, UUID, uuid5

from engine.expressions import temporal
from engine.expressions.background_functions import RouteSearch
from engine.expressions.literals import term_of, value_of
from engine.expressions.values import ExpressionError, Micros, Number, NumericType, Text
from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, Iri, Literal, Term

INDIVIDUAL = frozenset({"BNODE", "RAND", "STRUUID", "UUID"})
"""These functions need an `Identity`; NOW() needs one only for a timeless solution."""


@dataclass(frozen=True, slots=True)
class Naming:
    """Says how the nodes are named that solutions of a query make: by a digest that begins with the query's name.

    A query keeps the `form` of its registration. In the form 1, names have 96 bits of SHA-256, and UUIDs are of
    version 5 (SHA-1). In the form 2, they have 128 bits of SHA-256, and UUIDs are of version 8, made of these bits
    (RFC 9562, section 5.8).
    """

    query: str
    form: int

    @property
    def digits(self) -> int:
        """Return how many hexadecimal digits of a digest a name has."""
        return 24 if self.form == 1 else 32

    def digest(self, *parts: str) -> str:
        return hashlib.sha256("\x00".join((self.query, *parts)).encode()).hexdigest()[: self.digits]

    def make_uuid(self, *parts: str) -> UUID:
        if self.form == 1:
            return uuid5(NAMESPACE_OID, "\x00".join((self.query, *parts)))
        bits = int(self.digest(*parts), 16)
        return UUID(int=bits & ~(0xF << 76 | 0b11 << 62) | 8 << 76 | 0b10 << 62)  # version and variant


NAMELESS = Naming("", 1)
"""It names nodes of plans that nobody runs."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Tells one evaluation of an expression from all others.

    `site` names the expression within the query of `naming`; `solution` has the texts of all bindings and the
    interval, without what BIND or SELECT expressions added to it. So BNODE("a") is one node in all expressions on one
    solution. `now` is NOW() of a timeless solution, and `search` finds routes in the background.
    """

    naming: Naming
    site: str
    solution: tuple[str, ...]
    now: Micros | None = None
    path: tuple[int, ...] = ()
    search: RouteSearch | None = None

    def inside(self, operand: int) -> "Identity":
        """Return the identity of the operand of that number."""
        return Identity(self.naming, self.site, self.solution, self.now, (*self.path, operand), self.search)


def individual(function: str, arguments: Sequence[Term], identity: Identity | None) -> Term:
    """Return the value of one of `INDIVIDUAL`.

    Raises: ExpressionError, also without an identity or with wrong arguments.
    """
    if identity is None or len(arguments) > (function == "BNODE"):
        raise ExpressionError
    match function:
        case "BNODE" if arguments:
            return BlankNode("l" + identity.naming.digest(*identity.solution, _label(arguments[0])))
        case "BNODE":
            return BlankNode("n" + identity.naming.digest(*_list_place(identity)))
        case "RAND":
            return term_of(Number(NumericType.DOUBLE, int(identity.naming.digest(*_list_place(identity))[:13], 16) / 16**13))
        case "UUID":
            return Iri(f"urn:uuid:{identity.naming.make_uuid(*_list_place(identity))}")
        case "STRUUID":
            return Literal(str(identity.naming.make_uuid(*_list_place(identity))))
    raise ExpressionError


def now(end: Micros | None, identity: Identity | None) -> Term:
    """Return NOW(), the solution's end; a timeless solution has that of its identity.

    Raises: ExpressionError.
    """
    if end is not None:
        return temporal.instant_literal(end)
    if identity is None or identity.now is None:
        raise ExpressionError
    return temporal.instant_literal(identity.now)


def _label(term: Term) -> str:
    value = value_of(term)
    if isinstance(value, Text) and value.language is None:
        return value.value
    raise ExpressionError


def _list_place(identity: Identity) -> tuple[str, ...]:
    return identity.site, ".".join(map(str, identity.path)), *identity.solution
