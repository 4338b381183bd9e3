"""Every term of RDF 1.1 in the W3C's suites, as a term of rdflib, through a client and a server and back: no text
changes.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyoxigraph as ox
import rdflib

from epsparql.client import Client
from tests.server.conftest import EX, moment, serving
from tests.w3c.suite import ROOT_1_2

SUITES = (ROOT_1_2, ROOT_1_2.parent / "w3c-sparql")
SYNTAXES = {".nt": ox.RdfFormat.N_TRIPLES, ".nq": ox.RdfFormat.N_QUADS, ".ttl": ox.RdfFormat.TURTLE, ".trig": ox.RdfFormat.TRIG}
FEWEST = 2_500
"""The suites of August 2026 have so many terms at least; a change of their folders would otherwise leave nothing to
test.
"""


def terms_of_the_suites() -> list[rdflib.URIRef | rdflib.Literal]:
    """Return the IRIs and literals of all files that can be read, each once."""
    files = [file for suite in SUITES for syntax in SYNTAXES for file in sorted(suite.rglob(f"*{syntax}"))]
    return [*dict.fromkeys(term for file in files for term in terms_of(file))]


def terms_of(file: Path) -> Iterator[rdflib.URIRef | rdflib.Literal]:
    with suppress(SyntaxError):  # the suites have faulty files, too
        for quad in ox.parse(path=str(file), format=SYNTAXES[file.suffix], base_iri="http://example.org/"):
            for term in (quad.subject, quad.predicate, quad.object):
                if isinstance(term, ox.NamedNode):
                    yield rdflib.URIRef(term.value)
                elif isinstance(term, ox.Literal) and term.direction is None:
                    datatype = None if term.language or term.datatype.value == str(rdflib.XSD.string) else term.datatype.value
                    yield rdflib.Literal(term.value, lang=term.language, datatype=datatype, normalize=False)


def test_every_term_comes_back_as_written(tmp_path: Path) -> None:
    terms = terms_of_the_suites()
    assert len(terms) >= FEWEST
    numbers = [rdflib.URIRef(f"{EX}{number}") for number in range(len(terms))]
    frame = pd.DataFrame({"s": numbers, "p": rdflib.RDF.value, "o": pd.Series(terms, dtype=object), "at": moment(0)})
    with serving(tmp_path / "data") as url:
        client = Client(url)
        client.register("terms", f"SELECT ?s ?o WHERE {{ ?s <{rdflib.RDF.value}> ?o }}")
        assert client.send_frame("default", frame).accepted == len(terms)
        client.finish("default")
        found = {solution["s"]: solution["o"] for solution in client.follow("terms")}
    sent = dict(zip(numbers, terms, strict=True))
    assert found == sent
    assert {number: str(term) for number, term in found.items()} == {number: str(term) for number, term in sent.items()}
