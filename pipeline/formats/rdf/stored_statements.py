"""This module reads statements as logs have them. Earlier versions could store terms that no format can write, such
as relative IRIs.

Such terms are shown escaped (`epsparql.ntriples.make_writable`), so that one of them does not make the answers of its
query unreadable for ever.
"""

import pyoxigraph as ox

from epsparql.ntriples import make_writable, parse_statements, parse_term
from epsparql.terms import TripleTerm


def parse_stored(ntriples: str) -> list[ox.Triple]:
    """Return the triples of a text of N-Triples."""
    try:
        return [quad.triple for quad in ox.parse(ntriples, ox.RdfFormat.N_TRIPLES)]
    except SyntaxError:
        return [quad.triple for quad in ox.parse(_escape(ntriples), ox.RdfFormat.N_TRIPLES)]


def escape_stored(ntriples: str) -> str:
    """Return a text of N-Triples that every reader takes: itself, as a rule."""
    try:
        for _ in ox.parse(ntriples, ox.RdfFormat.N_TRIPLES):
            pass
    except SyntaxError:
        return _escape(ntriples)
    return ntriples


def escape_term(text: str) -> str:
    """Return the text of a term that every reader takes."""
    return str(make_writable(parse_term(text)))


def _escape(ntriples: str) -> str:
    lines = []
    for triple in parse_statements(ntriples):
        shown = make_writable(triple)
        assert isinstance(shown, TripleTerm)
        lines.append(f"{shown.subject} {shown.predicate} {shown.object} .\n")
    return "".join(lines)
