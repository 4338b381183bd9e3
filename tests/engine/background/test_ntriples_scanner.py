"""The scanner reads the terms of the background as the parser does, or leaves the text to it."""

import numpy as np
import pytest

from engine.background.fact_store import numbers_of
from engine.background.ntriples_scanner import scan_triples
from engine.dictionary.term_dictionary import TermTable

SCANNED = [
    pytest.param("", [], id="nothing"),
    pytest.param("<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> \"x\" .", ["<urn:a>", "<urn:b>", "<urn:c>", "<urn:a>", "<urn:b>", '"x"'], id="no last newline"),
    pytest.param('<urn:a> <urn:b> "\\u00e9\\ty"@EN .\n', ["<urn:a>", "<urn:b>", '"é\\ty"@en'], id="escapes and a language"),
    pytest.param('_:b1 <urn:b> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n', ["_:b1", "<urn:b>", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'], id="a number as it is"),
    pytest.param('<urn:a> <urn:b> "x"^^<http://www.w3.org/2001/XMLSchema#string> .\n<urn:a> <urn:b> "x" .\n', ["<urn:a>", "<urn:b>", '"x"'] * 2, id="two forms of one term"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), SCANNED)
def test_terms(text: str, found: list[str]) -> None:
    terms = TermTable()
    rows = scan_triples(text.encode(), terms)
    assert rows is not None
    assert [terms.text(number) for number in rows.reshape(-1).tolist()] == found
    assert np.array_equal(numbers_of(text, terms), rows)


@pytest.mark.parametrize("text", ["<urn:a> <urn:b> <<( <urn:a> <urn:b> <urn:c> )>> .\n", "<urn:a> <urn:b> <urn:a b> .\n", "<urn:a> .\n"])
def test_other_texts_are_the_parsers(text: str) -> None:
    assert scan_triples(text.encode(), TermTable()) is None


def test_the_parser_reads_triple_terms() -> None:
    terms = TermTable()
    assert terms.text(int(numbers_of("<urn:a> <urn:b> <<( <urn:a> <urn:b> <urn:c> )>> .\n", terms)[0, 2])) == "<<( <urn:a> <urn:b> <urn:c> )>>"
