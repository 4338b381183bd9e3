"""This module reads N-Triples: terms, and the statements of CONSTRUCT and DESCRIBE solutions, with triple terms (RDF
1.2).

It reads terms that N-Triples does not allow, too, such as relative IRIs, since earlier versions could store them. It
tells which terms the formats of RDF can write, and shows others in terms that they can.
"""

import re
from functools import cache, lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import assert_never
from urllib.parse import quote

from epsparql.terms import DIRECTIONS, MAX_TRIPLE_DEPTH, RDF_DIR_LANG_STRING, RDF_LANG_STRING, BlankNode, Iri, Literal, Term, TripleTerm

_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_IRI = re.compile(rf"<((?:[^\x00-\x20<>\"{{}}|^`\\]++|{_UCHAR})*+)>")  # `++` and `*+` never go back: a long text takes a fortieth of the time
_QUOTED = rf'"((?:[^"\\\n\r]++|\\[tbnrf"\'\\]|{_UCHAR})*+)"'
_LITERAL = re.compile(_QUOTED + r"(?:@(?P<language>[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--(?:ltr|rtl))?)|\^\^(?P<datatype><[^>]*>))?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf\"'\\]))")
_PLAIN_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


@cache
def _blank_node() -> re.Pattern[str]:
    """Return the pattern of blank nodes, which takes a millisecond to compile, as each does that has large sets of
    characters.
    """
    name, inside = f"{_BASE}_:0-9", "\\-\u00b7\u0300-\u036f\u203f-\u2040"
    return re.compile(rf"_:([{name}](?:[{name}{inside}.]*[{name}{inside}])?)")


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
    if ntriples.startswith("_:") and (found := _blank_node().fullmatch(ntriples)):
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
    pattern = _IRI if line.startswith("<", start) else _LITERAL if line.startswith('"', start) else _blank_node()
    if match := pattern.match(line, start):
        return parse_term(match[0]), _skip_space(line, match.end())
    raise ValueError(f"not an RDF term in N-Triples syntax: {line[start : start + 200]}")


def _skip_space(line: str, at: int) -> int:
    match = _SPACE.match(line, at)
    return at if match is None else match.end()


# ---------------------------------------------------------------- what formats can write
_NAME = r"A-Za-z0-9._~!$&'()*+,;=\-"
"""The ASCII characters of iunreserved and sub-delims."""
_UCSCHAR = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16 | (0x1000 if plane == 14 else 0))}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_ESCAPED = "%[0-9A-Fa-f]{2}"


@cache
def _absolute_iri(is_ascii: bool) -> re.Pattern[str]:
    """Return the pattern of IRIs with a scheme.

    Most are ASCII, and the pattern of the others takes ten times as long to compile.
    """
    name, private = (_NAME, "") if is_ascii else (_NAME + _UCSCHAR, _PRIVATE)
    return re.compile(
        rf"[A-Za-z][A-Za-z0-9+.-]*+:(?://(?:(?:[{name}:]|{_ESCAPED})*+@)?(?:\[(?P<address>[^\[\]]*+)\]|(?:[{name}]|{_ESCAPED})*+)(?::[0-9]*+)?(?=[/?#]|\Z)|(?!//))"
        rf"(?:[{name}:@/]|{_ESCAPED})*+(?:\?(?:[{name}:@/?{private}]|{_ESCAPED})*+)?(?:#(?:[{name}:@/?]|{_ESCAPED})*+)?"
    )


@cache
def _foreign_characters() -> re.Pattern[str]:
    return re.compile(rf"%(?![0-9A-Fa-f]{{2}})|[^{_NAME}{_UCSCHAR}:@/?#\[\]%]")


_FUTURE_ADDRESS = re.compile(r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+")
INVALID_IRI = "urn:epsparql:invalid-iri:"
"""Stands before the text of a term that is no IRI, percent-encoded, where the term has to be shown as an IRI."""
_PART = "[A-Za-z0-9]"
_LANGUAGE_TAG = re.compile(
    r"(?:(?:[A-Za-z]{2,3}(?:-[A-Za-z]{3}){0,3}|[A-Za-z]{4,8})(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?"
    rf"(?:-(?:{_PART}{{5,8}}|[0-9]{_PART}{{3}}))*(?:-[A-WYZa-wyz0-9](?:-{_PART}{{2,8}})+)*(?:-x(?:-{_PART}{{1,8}})+)?|x(?:-{_PART}{{1,8}})+"
    r"|en-GB-oed|i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)|sgn-(?:BE-FR|BE-NL|CH-DE)"
    r"|art-lojban|cel-gaulish|no-bok|no-nyn|zh-(?:guoyu|hakka|min|min-nan|xiang))",
    re.I | re.ASCII,
)


@lru_cache(maxsize=1 << 12)
def is_absolute_iri(text: str) -> bool:
    """Return whether a text is a valid IRI with a scheme (RFC 3987, 2.2), which every format of RDF can write."""
    found = _absolute_iri(text.isascii()).fullmatch(text)
    if found is None:
        return False
    address = found["address"]
    return address is None or _FUTURE_ADDRESS.fullmatch(address) is not None or _is_ipv6(address)


def _is_ipv6(text: str) -> bool:
    try:
        return str(IPv6Address(text)) != "" and "%" not in text
    except AddressValueError:
        return False


def make_valid(text: str) -> str:
    """Return a valid IRI that shows an invalid one: foreign characters are percent-encoded, and what is no IRI even
    so stands after INVALID_IRI.
    """
    if is_absolute_iri(text):
        return text
    escaped = _foreign_characters().sub(lambda found: quote(found[0], safe=""), text)
    return escaped if is_absolute_iri(escaped) else INVALID_IRI + quote(text, safe="")


def is_language_tag(text: str) -> bool:
    """Return whether a text is a well-formed language tag (RFC 5646, 2.1), which every format of RDF can write."""
    return _LANGUAGE_TAG.fullmatch(text) is not None


def is_writable(term: Term) -> bool:
    """Return whether every format of RDF can write a term: its IRIs and language tags are valid."""
    match term:
        case Iri(value):
            return is_absolute_iri(value)
        case BlankNode(label):
            return _blank_node().fullmatch(f"_:{label}") is not None
        case Literal(_, _, str() as language, direction):
            return is_language_tag(language) and direction in (None, *DIRECTIONS)
        case Literal(_, datatype):
            return is_absolute_iri(datatype) and datatype not in (RDF_LANG_STRING, RDF_DIR_LANG_STRING)
        case TripleTerm(subject, predicate, object_):
            return term.depth <= MAX_TRIPLE_DEPTH and all(map(is_writable, (subject, predicate, object_)))
    assert_never(term)


def make_writable(term: Term) -> Term:
    """Return a term that formats can write, to show one that they cannot: IRIs are escaped, and a language tag
    becomes a private one.
    """
    match term:
        case Iri(value):
            return Iri(make_valid(value))
        case Literal(lexical, _, str() as language, direction):
            return term if is_language_tag(language) else Literal(lexical, term.datatype, f"x-{language}", direction)
        case Literal(lexical, datatype):
            return Literal(lexical, make_valid(datatype))
        case TripleTerm(subject, predicate, object_):
            shown = make_writable(subject)
            assert isinstance(shown, Iri | BlankNode)
            return TripleTerm(shown, Iri(make_valid(predicate.value)), make_writable(object_))
    return term
