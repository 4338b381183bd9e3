"""This module writes graphs of rdflib as events. Texts of literals stay as they stand there, and labels of blank nodes stay."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from epsparql.extras import load_extra
from epsparql.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, NotInRdflib, Term

if TYPE_CHECKING:
    import rdflib

_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_LABEL = re.compile(r"\w(?:[\w.\-·]*[\w\-·])?")


def n_quads_of(graph: "rdflib.Graph") -> str:
    """Return a Graph or Dataset of rdflib as N-Quads. Raises: MissingExtra; NotInRdflib for what RDF does not have, such as a literal as subject."""
    return "".join(f"{line}\n" for line in _lines(graph, load_extra("rdflib", "sending a graph")))


def is_rdflib_graph(found: object) -> bool:
    """Return whether an object is a Graph or Dataset of rdflib, which is then loaded already."""
    return any(each.__module__ == "rdflib.graph" and each.__name__ == "Graph" for each in type(found).__mro__)


def _lines(graph: Any, rdflib: Any) -> Iterator[str]:
    if not hasattr(graph, "quads"):  # a Dataset has it, and so has the ConjunctiveGraph before it
        for subject, predicate, object_ in graph:
            yield f"{_statement_of(subject, predicate, object_)} ."
        return
    default = getattr(graph, "default_graph", None)  # only a Dataset's has a name that is the same everywhere
    unnamed = {rdflib.graph.DATASET_DEFAULT_GRAPH_ID, getattr(graph.default_context if default is None else default, "identifier", None), None}
    for subject, predicate, object_, context in graph.quads():
        name = getattr(context, "identifier", context)  # a Dataset gives names, a ConjunctiveGraph graphs
        yield f"{_statement_of(subject, predicate, object_)}{'' if name in unnamed else f' {term_from_rdflib(name)}'} ."


def _statement_of(subject: Any, predicate: Any, object_: Any) -> str:
    terms = [term_from_rdflib(each) for each in (subject, predicate, object_)]
    if isinstance(terms[0], Literal) or not isinstance(terms[1], Iri):
        raise NotInRdflib(f"{' '.join(map(str, terms))} is no triple of RDF: the subject is an IRI or a blank node, the predicate an IRI")
    return " ".join(map(str, terms))


def term_from_rdflib(node: Any) -> Term:
    """Return a term of rdflib as one of ours, with its text as it stands there. Raises: NotInRdflib for variables, formulas and malformed IRIs."""
    rdflib = load_extra("rdflib", "a term of rdflib")
    match node:
        case rdflib.Literal():
            datatype = RDF_LANG_STRING if node.language else str(node.datatype or XSD_STRING)
            return Literal(str(node), _checked_iri(datatype), node.language or None)
        case rdflib.BNode():
            if _LABEL.fullmatch(node) is None:
                raise NotInRdflib(f"{str(node)!r} is no label of a blank node in N-Quads")
            return BlankNode(str(node))
        case rdflib.URIRef():
            return Iri(_checked_iri(str(node)))
    raise NotInRdflib(f"{node!r} of rdflib is no term of RDF, so it cannot be sent")


def _checked_iri(iri: str) -> str:
    if (bad := _NO_IRI.search(iri)) is not None:
        raise NotInRdflib(f"{iri!r} is no IRI: {bad[0]!r} is not allowed in one")
    return iri


def is_rdflib_term(found: object) -> bool:
    """Return whether an object is a term of rdflib."""
    return any(each.__module__ == "rdflib.term" for each in type(found).__mro__)
