"""Describes the endpoint /sparql in RDF. Source: SPARQL 1.1 Service Description."""

import pyoxigraph as ox

from server.background.answer_text import GRAPHS, TABLES

_SD, _FORMATS = "http://www.w3.org/ns/sparql-service-description#", "http://www.w3.org/ns/formats/"
_NAMES = {
    "application/sparql-results+json": "SPARQL_Results_JSON",
    "application/sparql-results+xml": "SPARQL_Results_XML",
    "text/csv": "SPARQL_Results_CSV",
    "text/tab-separated-values": "SPARQL_Results_TSV",
    "text/turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/rdf+xml": "RDF_XML",
    "application/ld+json": "JSON-LD",
}


def describe_service(address: str, media_type: str) -> bytes:
    """Return the description of the endpoint at an address, in one of the media types of `GRAPHS`."""
    service = ox.BlankNode("service")
    said: list[tuple[str, ox.NamedNode | ox.Literal]] = [
        ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", ox.NamedNode(f"{_SD}Service")),
        (f"{_SD}endpoint", ox.NamedNode(address)),
        (f"{_SD}supportedLanguage", ox.NamedNode(f"{_SD}SPARQL11Query")),
        (f"{_SD}feature", ox.NamedNode(f"{_SD}UnionDefaultGraph")),
        *((f"{_SD}resultFormat", ox.NamedNode(_FORMATS + _NAMES[each])) for each in (*TABLES, *GRAPHS)),
    ]
    triples = [ox.Triple(service, ox.NamedNode(predicate), value) for predicate, value in said]
    prefixes = {"sd": _SD, "formats": _FORMATS}
    return ox.serialize(triples, format=GRAPHS[media_type], prefixes=prefixes)  # type: ignore[return-value]  # it is written to no file
