"""This module converts the language's terms to rdflib's and back. Texts of literals and labels of blank nodes stay as
written.

It loads rdflib, so it is imported where a term is converted, and not when a client is.
"""

import re
from typing import Any, Self

from rdflib import BNode, URIRef
from rdflib import Literal as RdflibLiteral

from epsparql.python_values import PythonValue
from epsparql.rdf_exchange.client_terms import ClientTerm, DirectionalString, NotInRdflib, Triple
from epsparql.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm

_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_LABEL = re.compile(r"\w(?:[\w.\-·]*[\w\-·])?")


class ExactLiteral(RdflibLiteral):
    """A literal of rdflib that keeps its text, also through pickle and copy. rdflib itself would turn `01` into `1`.

    It equals the literal of rdflib with the same text, datatype and language.
    """

    __slots__ = ()

    def __new__(cls, lexical: str, lang: str | None = None, datatype: str | None = None) -> Self:
        """Return a literal; `datatype` is an IRI's text, and None for a string."""
        found: Self = super().__new__(cls, lexical, lang, datatype, normalize=False)
        if str(found) != lexical:  # rdflib folds the white space of xsd:token and xsd:normalizedString all the same
            found = super().__new__(cls, lexical)
            found.__setstate__((None, {"language": None, "datatype": None if datatype is None else URIRef(datatype)}))
        return found

    def __reduce__(self) -> tuple[type["ExactLiteral"], tuple[str, str | None, URIRef | None]]:
        return ExactLiteral, (str(self), self.language, self.datatype)


def to_client_term(term: Term) -> ClientTerm:
    """Return a term of the language as clients give it."""
    match term:
        case Iri(value):
            return URIRef(value)
        case BlankNode(label):
            return BNode(label)
        case Literal(lexical, _, str(language), str(direction)):
            return DirectionalString(lexical, language, direction)
        case Literal(lexical, datatype, language):
            return ExactLiteral(lexical, language, None if datatype == XSD_STRING or language else datatype)
        case TripleTerm():
            return to_client_triple(term)


def to_client_triple(triple: TripleTerm) -> Triple:
    """Return a statement, or a triple that is a term, as clients give it."""
    subject = URIRef(triple.subject.value) if isinstance(triple.subject, Iri) else BNode(triple.subject.label)
    return Triple(subject, URIRef(triple.predicate.value), to_client_term(triple.object))


def to_literal(value: PythonValue) -> RdflibLiteral:
    """Return the literal of a Python value: an int is an xsd:integer, a float an xsd:double, a timedelta an
    xsd:dayTimeDuration.

    Raises: TypeError for a value of any other type.
    """
    literal = Literal.from_python(value)
    return ExactLiteral(literal.lexical, None, None if literal.datatype == XSD_STRING else literal.datatype)


def from_client_term(node: Any) -> Term:
    """Return what a client takes as a term of the language, with its text as it stands there.

    Raises: NotInRdflib for variables, formulas and malformed IRIs.
    """
    match node:
        case RdflibLiteral():
            datatype = RDF_LANG_STRING if node.language else str(node.datatype or XSD_STRING)
            return Literal(str(node), _checked_iri(datatype), node.language or None)
        case BNode():
            if _LABEL.fullmatch(node) is None:
                raise NotInRdflib(f"{str(node)!r} is no label of a blank node in N-Quads")
            return BlankNode(str(node))
        case URIRef():
            return Iri(_checked_iri(str(node)))
        case DirectionalString(value, language, direction):
            return Literal.from_tag(value, f"{language}--{direction}")
        case Triple():
            return from_client_triple(node)
    raise NotInRdflib(f"{node!r} is no term of RDF, so it cannot be sent")


def from_client_triple(triple: tuple[Any, Any, Any]) -> TripleTerm:
    """Return a triple of the language.

    Raises: NotInRdflib for what is no triple of RDF, such as one with a literal as subject.
    """
    subject, predicate, object_ = map(from_client_term, triple)
    if not isinstance(subject, Iri | BlankNode) or not isinstance(predicate, Iri):
        raise NotInRdflib(f"{subject} {predicate} {object_} is no triple of RDF: the subject is an IRI or a blank node, the predicate an IRI")
    return TripleTerm(subject, predicate, object_)


def _checked_iri(iri: str) -> str:
    if (bad := _NO_IRI.search(iri)) is not None:
        raise NotInRdflib(f"{iri!r} is no IRI: {bad[0]!r} is not allowed in one")
    return iri
