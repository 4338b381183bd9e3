"""Describes the endpoint /sparql in RDF. Source: SPARQL 1.1 Service Description."""

import pyoxigraph as ox

from server.background.query_process import GRAPHS, TABLES

DIFFERENCES = (
    "A pattern in `GRAPH ?g` that is a sub-SELECT or VALUES alone leaves `?g` unbound, and sees all graphs together.",
    "`GRAPH ?g { GRAPH ?h { … } }` leaves `?g` unbound.",
    "MINUS in `GRAPH ?g` shares `?g` with the pattern before it.",
    "Numbers and times are in canonical form: `21.50` is `21.5`, and `01` is the same term as `1`.",
    "An integer beyond 64 bits is an error in arithmetic.",
    "A dateTime without a time zone is not ordered against one with a zone that is less than 14 hours away. The language takes it for UTC.",
    "REPLACE does not know `\\$` for a dollar sign.",
    "The path `p?` does not match a term that is in no triple.",
    'BNODE("x") gives one node for all solutions.',
)
"""In these points, the answers differ from those of registered queries. docs/background.md lists them, too."""
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
        *(("http://www.w3.org/2000/01/rdf-schema#comment", ox.Literal(each, language="en")) for each in DIFFERENCES),
    ]
    triples = [ox.Triple(service, ox.NamedNode(predicate), value) for predicate, value in said]
    prefixes = {"sd": _SD, "formats": _FORMATS, "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
    return ox.serialize(triples, format=GRAPHS[media_type], prefixes=prefixes)  # type: ignore[return-value]  # it is written to no file
