"""This module reads N-Triples: terms, and the statements of CONSTRUCT and DESCRIBE solutions, with triple terms (RDF 1.2)."""

import re
from functools import lru_cache

from epsparql.terms import MAX_TRIPLE_DEPTH, RDF_DIR_LANG_STRING, RDF_LANG_STRING, BlankNode, Iri, Literal, Term, TripleTerm

_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_IRI = re.compile(rf"<((?:[^\x00-\x20<>\"{{}}|^`\\]|{_UCHAR})*)>")
_BLANK = re.compile(rf"_:([{_BASE}_:0-9](?:[{_BASE}_:0-9\-.\u00b7\u0300-\u036f\u203f-\u2040]*[{_BASE}_:0-9\-\u00b7\u0300-\u036f\u203f-\u2040])?)")
_QUOTED = rf'"((?:[^"\\\n\r]|\\[tbnrf"\'\\]|{_UCHAR})*)"'
_LITERAL = re.compile(_QUOTED + r"(?:@(?P<language>[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--(?:ltr|rtl))?)|\^\^(?P<datatype><[^>]*>))?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf\"'\\]))")
_PLAIN_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    if match[3]:
        return _PLAIN_ESCAPES[match[3]]
    code = int(match[1] or match[2], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"{match[0]} is no character")
    return chr(code)


@lru_cache(maxsize=1 << 16)
def parse_term(ntriples: str) -> Term:
    """Parse the N-Triples text of a term strictly: the inverse of `str`, language tags in lower case.

    Raises: ValueError.
    """
    if found := _IRI.fullmatch(ntriples):
        return Iri(_unescape(found[1]))
    if found := _LITERAL.fullmatch(ntriples):
        return _literal(_unescape(found[1]), found["language"], found["datatype"])
    if found := _BLANK.fullmatch(ntriples):
        return BlankNode(found[1])
    if ntriples.startswith("<<("):
        term, end = _parse_at(ntriples, 0, 0)
        if end == len(ntriples):
            return term
    raise ValueError(f"not an RDF term in N-Triples syntax: {ntriples[:200]}")


def _literal(lexical: str, language: str | None, datatype: str | None) -> Literal:
    if language is not None:
        return Literal.from_tag(lexical, language.lower())
    if datatype is None:
        return Literal(lexical)
    found = _IRI.fullmatch(datatype)
    if found is None:
        raise ValueError(f"not an IRI in N-Triples syntax: {datatype[:200]}")
    iri = _unescape(found[1])
    if iri in (RDF_LANG_STRING, RDF_DIR_LANG_STRING):
        raise ValueError("rdf:langString and rdf:dirLangString need a language tag")
    return Literal(lexical, iri)


# ---------------------------------------------------------------- statements
_SPACE = re.compile(r"[ \t]*")


def parse_statements(text: str) -> list[TripleTerm]:
    """Return the triples of an N-Triples text, one a line, in its order. Raises: ValueError, which names the line."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                triple, end = _parse_triple(line, 0, 0)
                if line[end:].strip() != ".":
                    raise ValueError("a triple ends with a full stop")
            except ValueError as fault:
                raise ValueError(f"line {number}: {fault}") from None
            found.append(triple)
    return found


def _parse_triple(line: str, start: int, depth: int) -> tuple[TripleTerm, int]:
    """Return the three terms from `start` on, and the place after them."""
    subject, at = _parse_at(line, start, depth)
    predicate, at = _parse_at(line, at, depth)
    object_, at = _parse_at(line, at, depth)
    if not isinstance(subject, Iri | BlankNode) or not isinstance(predicate, Iri):
        raise ValueError(f"{subject} {predicate} are no subject and predicate")
    return TripleTerm(subject, predicate, object_), at


def _parse_at(line: str, start: int, depth: int) -> tuple[Term, int]:
    """Return the term at `start`, and the place after it and the spaces that follow it."""
    if line.startswith("<<(", start):
        if depth == MAX_TRIPLE_DEPTH:
            raise ValueError(f"triple terms stand more than {MAX_TRIPLE_DEPTH} deep")
        triple, at = _parse_triple(line, _skip_space(line, start + 3), depth + 1)
        if not line.startswith(")>>", at):
            raise ValueError("a triple term ends with )>>")
        return triple, _skip_space(line, at + 3)
    for pattern in (_IRI, _BLANK, _LITERAL):
        if match := pattern.match(line, start):
            return parse_term(match[0]), _skip_space(line, match.end())
    raise ValueError(f"not an RDF term in N-Triples syntax: {line[start : start + 200]}")


def _skip_space(line: str, at: int) -> int:
    match = _SPACE.match(line, at)
    return at if match is None else match.end()
