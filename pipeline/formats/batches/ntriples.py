"""This module validates single terms in N-Triples syntax and brings them to their one canonical text."""

import re
from collections.abc import Callable

import pyoxigraph as ox

from engine.triples.quads import written
from epsparql.ntriples import parse_term
from epsparql.terms import BlankNode, Iri, Term, TripleTerm
from pipeline.errors import FormatError

MAX_TERM = 1 << 18
CACHED = 200_000
TRIPLE = "<<"
"""A triple term's text begins so; no other term's does."""

_ONE_TERM = '<iri>, "literal", _:label or <<( triple )>>'
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf'<(?:[^\x00-\x20<>"{{}}|^`\\]|{_UCHAR})*>'
_STRING = rf'"(?:[^"\\\n\r]|\\[tbnrf"\'\\]|{_UCHAR})*"'
_LABEL = r"_:[\w](?:[\w.·‿⁀̀-ͯ-]*[\w·‿⁀̀-ͯ-])?"
_TERM = re.compile(rf"{_IRI}|{_LABEL}|{_STRING}(?:\^\^{_IRI}|@[A-Za-z0-9-]+)?")
# The parser would give these terms back unchanged, so most terms need no parser.
_PLAIN_IRI = (
    r"[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9._-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9/_.~-]*)?|[A-Za-z0-9_.~][A-Za-z0-9/_.~:-]*)(?:#[A-Za-z0-9/_.~-]*)?"
)
_XSD = r"http://www\.w3\.org/2001/XMLSchema#(?!string>)[A-Za-z]+"
_PLAIN = re.compile(rf'<{_PLAIN_IRI}>|"[^"\\\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]*"(?:\^\^<{_XSD}>|@[a-z]{{2,3}})?')


def canonical(text: str) -> str:
    """Return the term's canonical N-Triples text.

    Blank nodes keep their label. Raises: FormatError with the column within the term.
    """
    if _PLAIN.fullmatch(text) and len(text) <= MAX_TERM:
        return text
    if len(text) > MAX_TERM:
        raise FormatError("term", f"a term of {len(text)} characters; the limit is {MAX_TERM}", 1, 1)
    if text.startswith(TRIPLE):
        _check_triple(text)
    elif TRIPLE in text and not _TERM.fullmatch(text):  # the parser would go as deep as triple terms do
        raise FormatError("term", f"{text[:64]!r} is not one term in N-Triples syntax", 1, 1, _ONE_TERM)
    line = f"<x:s> <x:p> {text} ."
    try:
        parsed = list(ox.parse(line.encode("utf-8", "surrogatepass"), ox.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError) as fault:
        raise _fault(fault, text) from None
    if len(parsed) != 1 or not (text.startswith(TRIPLE) or _TERM.fullmatch(text)):
        raise FormatError("term", f"{text[:64]!r} is not one term in N-Triples syntax", 1, 1, _ONE_TERM)
    return written(parsed[0].object)


def labelled(text: str, name: Callable[[str], str]) -> str:
    """Return a canonical term whose blank nodes have other names; `name` gives the term of a blank node's label."""
    if text.startswith("_:"):
        return name(text[2:])
    if text.startswith(TRIPLE) and "_:" in text:
        return str(_renamed(parse_term(text), name))
    return text


def _renamed(term: Term, name: Callable[[str], str]) -> Term:
    match term:
        case BlankNode(label):
            return BlankNode(name(label)[2:])
        case TripleTerm(subject, predicate, object_):
            known = _renamed(subject, name)
            assert isinstance(known, Iri | BlankNode)
            return TripleTerm(known, predicate, _renamed(object_, name))
    return term


def _check_triple(text: str) -> None:
    """Refuse a text that begins like a triple term and is none, or nests too deep for the parser. Raises: FormatError."""
    try:
        parse_term(text)
    except ValueError as fault:
        raise FormatError(
            "term", f"{text[:64]!r} is no triple term in N-Triples syntax: {fault}"[:512], 1, 1, "<<( subject predicate object )>>"
        ) from None


def _fault(fault: Exception, text: str) -> FormatError:
    column = 1
    if isinstance(fault, SyntaxError) and fault.offset is not None and fault.lineno == 1:
        column = min(max(fault.offset - len("<x:s> <x:p> "), 1), len(text) + 1)
    reason = fault.msg.partition(": ")[2].replace(" (line 1)", "") if isinstance(fault, SyntaxError) else str(fault)
    return FormatError("term", f"{text[:64]!r} is no term in N-Triples syntax: {reason}", 1, column, _ONE_TERM)


class CanonicalTerms(dict[str, str]):
    """Maps texts to canonical texts, each validated once; blank nodes keep their label, which their message then
    changes.

    `kinds` is what may stand at the place: `<` IRIs, `"` literals, `_` blank nodes, `(` triple terms.
    """

    def __init__(self, kinds: str, place: str) -> None:
        super().__init__()
        self.kinds, self.place = kinds, place

    def __missing__(self, text: str) -> str:
        term = self.checked(text)
        if len(self) >= CACHED:
            self.clear()
        self[text] = term
        return term

    def checked(self, text: str) -> str:
        """Return the `canonical` text of a term that may stand here. Raises: FormatError."""
        term = canonical(text)
        kind = "(" if term.startswith(TRIPLE) else term[0]
        if kind not in self.kinds:
            what = {"<": "an IRI", '"': "a literal", "_": "a blank node", "(": "a triple term"}[kind]
            allowed = " or ".join({"<": "<iri>", '"': '"literal"', "_": "_:label", "(": "<<( triple )>>"}[each] for each in self.kinds)
            raise FormatError("term", f"{what} cannot be the {self.place}", 1, 1, allowed)
        return term


SUBJECTS, PREDICATES, OBJECTS, GRAPHS = (
    CanonicalTerms("<_", "subject"),
    CanonicalTerms("<", "predicate"),
    CanonicalTerms('<"_(', "object"),
    CanonicalTerms("<_", "graph"),
)
"""All bodies share these maps, for their content is a function of the text alone."""
