"""These terms can be written by the formats: RFC 3987 and RFC 5646 by tables, and pyoxigraph, which reads and writes
the formats, as a second opinion.
"""

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsparql.ntriples import INVALID_IRI, is_absolute_iri, is_language_tag, is_writable, make_valid, make_writable
from epsparql.terms import RDF_LANG_STRING, BlankNode, Iri, Literal, Term, TripleTerm
from tests.soak import examples

_PIECES = (
    "http:", "urn:", "x:", "//", "/", "?", "#", "[", "]", "::1", "1.2.3.4", "ffff:", "v1.a", "@", ":", "80", "a", "é", "%", "%41", "%zz", "\ue000", "\ufffe", "\x85",
    "\ufdd0", " ", "<", "'", "(", "\U0001fffe", "\U000e0001", "\U000e1000", "\U000f0000", "-", "~", "\x00", "\\", "|", '"', "\u200e", "g", ";", "^", "`", "{",
)  # fmt: skip
_SUBTAGS = (
    "x", "X", "en", "a", "i", "de", "1996", "1", "419", "latn", "abc", "abcde", "klingon", "i-klingon", "u-co", "sgn", "be-fr", "zh", "min", "nan", "abcdefgh",
    "abcdefghi", "", "en-gb-oed", "12", "1ab", "1abc", "é",
)  # fmt: skip
iris = st.tuples(st.sampled_from(("", "http://", "x:", "http://[")), st.lists(st.sampled_from(_PIECES), max_size=7)).map(
    lambda two: two[0] + "".join(two[1])
)
SHOWN = [
    ("http://e/50%", "http://e/50%25"),
    ("http://ex/[x]", f"{INVALID_IRI}http%3A%2F%2Fex%2F%5Bx%5D"),
    ("kitchen", f"{INVALID_IRI}kitchen"),
    ("http://e/a b\x85", "http://e/a%20b%C2%85"),
    ("http://e/é", "http://e/é"),
]


def is_known(kind: type[ox.NamedNode] | type[ox.Literal], text: str) -> bool:
    try:
        ox.NamedNode(text) if kind is ox.NamedNode else ox.Literal("a", language=text)
    except ValueError:
        return False
    return True


@settings(max_examples=examples(2000))
@given(iris)
def test_valid_iris(text: str) -> None:
    assert is_absolute_iri(text) is is_known(ox.NamedNode, text)
    assert is_known(ox.NamedNode, make_valid(text))


@settings(max_examples=examples(2000))
@given(st.lists(st.sampled_from(_SUBTAGS), min_size=1, max_size=6).map("-".join))
def test_language_tags(text: str) -> None:
    assert is_language_tag(text) is is_known(ox.Literal, text)


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_what_an_invalid_iri_is_shown_as(text: str, shown: str) -> None:
    assert make_valid(text) == shown


TERMS: list[tuple[Term, str]] = [
    (Iri("kitchen"), f"<{INVALID_IRI}kitchen>"),
    (Literal("x", "dt"), f'"x"^^<{INVALID_IRI}dt>'),
    (Literal("x", RDF_LANG_STRING, "en-a"), '"x"@x-en-a'),
    (TripleTerm(Iri("a"), Iri("http://e/%"), Iri("b")), f"<<( <{INVALID_IRI}a> <http://e/%25> <{INVALID_IRI}b> )>>"),
]


@pytest.mark.parametrize(("term", "shown"), TERMS)
def test_terms_that_no_format_can_write(term: Term, shown: str) -> None:
    assert not is_writable(term)
    assert str(make_writable(term)) == shown
    assert is_writable(make_writable(term))


@pytest.mark.parametrize(
    "term", [Iri("urn:x"), BlankNode("b"), Literal("x"), Literal("x", RDF_LANG_STRING, "en-gb"), TripleTerm(BlankNode("b"), Iri("x:p"), Literal("1"))]
)
def test_terms_that_formats_can_write(term: Term) -> None:
    assert is_writable(term)
    assert make_writable(term) == term
