"""The values of BNODE, NOW, RAND, STRUUID and UUID depend on which solution asks, and from where (semantics.md section 4).

They are functions of query, solution and call site, so that a replay gives the same.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_OID, uuid5

from engine.expressions import temporal
from engine.expressions.literals import term_of, value_of
from engine.expressions.values import ExpressionError, Micros, Number, NumericType, Text
from epsparql.terms import BlankNode, Iri, Literal, Term

INDIVIDUAL = frozenset({"BNODE", "RAND", "STRUUID", "UUID"})
"""These functions need an `Identity`; NOW() needs one only for a timeless solution."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Tells one evaluation of an expression from all others.

    `site` names the expression within `query`; `solution` has the texts of all bindings and the interval, without what BIND or SELECT
    expressions added to it. So BNODE("a") is one node in all expressions on one solution. `now` is NOW() of a timeless solution.
    """

    query: str
    site: str
    solution: tuple[str, ...]
    now: Micros | None = None
    path: tuple[int, ...] = ()

    def inside(self, operand: int) -> "Identity":
        """Return the identity of the operand of that number."""
        return Identity(self.query, self.site, self.solution, self.now, (*self.path, operand))


def individual(function: str, arguments: Sequence[Term], identity: Identity | None) -> Term:
    """Return the value of one of `INDIVIDUAL`.

    Raises: ExpressionError, also without an identity or with wrong arguments.
    """
    if identity is None or len(arguments) > (function == "BNODE"):
        raise ExpressionError
    match function:
        case "BNODE" if arguments:
            return BlankNode("l" + _digest(identity.query, *identity.solution, _label(arguments[0])))
        case "BNODE":
            return BlankNode("n" + _digest(_describe_place(identity)))
        case "RAND":
            return term_of(Number(NumericType.DOUBLE, int(_digest(_describe_place(identity))[:13], 16) / 16**13))
        case "UUID":
            return Iri(f"urn:uuid:{uuid5(NAMESPACE_OID, _describe_place(identity))}")
        case "STRUUID":
            return Literal(str(uuid5(NAMESPACE_OID, _describe_place(identity))))
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


def _describe_place(identity: Identity) -> str:
    return "\x00".join([identity.query, identity.site, ".".join(map(str, identity.path)), *identity.solution])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:24]
