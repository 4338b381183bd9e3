"""Short spellings of the algebra, for tables: `bgp("?s p ?o")` is one triple pattern with the predicate <http://e/p>."""

from pathlib import Path

from epsparql.algebra import Bgp, Constant, TriplePattern
from epsparql.terms import XSD, Iri, Literal, TermOrVariable, Variable

NAMESPACE = "http://e/"
SHARED = Path(__file__).parents[3] / "shared"
PROLOGUE = f"PREFIX : <{NAMESPACE}> PREFIX xsd: <{XSD}> "


def term(text: str) -> TermOrVariable:
    """`?v`, `_:b`, an integer, or a name in the namespace."""
    if text.startswith("?"):
        return Variable(text[1:])
    if text.startswith("_:"):
        return Variable(text)
    return integer(text) if text.isdigit() else Iri(NAMESPACE + text)


def bgp(*triples: str) -> Bgp:
    return Bgp(tuple(TriplePattern(*map(term, triple.split())) for triple in triples))


def integer(text: str) -> Literal:
    return Literal(text, XSD + "integer")


def constant(value: str) -> Constant:
    return Constant(integer(value))
