"""This module goes between terms and their values, and from N-Triples text to terms."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import assert_never

from engine.expressions import numeric, temporal
from engine.expressions.values import DateTime, Day, Duration, ExpressionError, Number, Text, Value
from epsparql.terms import RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Iri, Literal, Term

XSD_BOOLEAN = XSD + "boolean"
TRUE, FALSE = Literal("true", XSD_BOOLEAN), Literal("false", XSD_BOOLEAN)

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def _zoned_instant(lexical: str) -> DateTime | None:
    found = temporal.instant(lexical)
    return None if found is None or found.zone is None else found


_PARSERS: dict[str, Callable[[str], bool | Number | Text | DateTime | Day | Duration | None]] = {
    **numeric.PARSERS,
    XSD_STRING: Text,
    XSD_BOOLEAN: _BOOLEANS.get,
    XSD + "dateTime": temporal.instant,
    XSD + "dateTimeStamp": _zoned_instant,
    XSD + "date": temporal.day,
    XSD + "duration": temporal.duration,
    XSD + "dayTimeDuration": temporal.day_time,
    XSD + "yearMonthDuration": temporal.year_month,
}


@lru_cache(maxsize=1 << 14)
def value_of(term: Term) -> Value:
    """Return the value of a term; the term itself if it is an IRI, a blank node or a literal without a known value."""
    if not isinstance(term, Literal):
        return term
    if term.language is not None:
        return Text(term.lexical, term.language)
    parser = _PARSERS.get(term.datatype)
    value = parser(term.lexical) if parser else None
    return term if value is None else value


def term_of(value: Value) -> Term:
    """Return the canonical term of a value."""
    match value:
        case Iri() | BlankNode() | Literal():
            return value
        case bool():
            return TRUE if value else FALSE
        case Number():
            return numeric.literal(value)
        case Text(text, language):
            return Literal(text) if language is None else Literal(text, RDF_LANG_STRING, language)
        case DateTime(micros):
            return temporal.instant_literal(micros)
        case Day():
            return Literal(temporal.format_day(value), XSD + "date")
        case Duration():
            return temporal.duration_literal(value)
    assert_never(value)


def parse_number(term: Term) -> Number | None:
    """Return the exact numeric value of a term, None if it has none."""
    value = value_of(term)
    return value if isinstance(value, Number) else None


def effective(value: Value) -> bool:
    """Return the effective boolean value. Raises: ExpressionError where SPARQL defines none."""
    match value:
        case bool():
            return value
        case Number(_, n):
            return n == n and n != 0
        case Text(text):
            return bool(text)
        case Literal(_, datatype) if datatype == XSD_BOOLEAN or datatype in numeric.PARSERS:
            return False  # SPARQL 1.1, 17.2.2: a lexical form that the datatype does not have
        case _:
            raise ExpressionError


# ---------------------------------------------------------------- N-Triples
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_IRI = re.compile(rf"<((?:[^\x00-\x20<>\"{{}}|^`\\]|{_UCHAR})*)>")
_BLANK = re.compile(rf"_:([{_BASE}_:0-9](?:[{_BASE}_:0-9\-.\u00b7\u0300-\u036f\u203f-\u2040]*[{_BASE}_:0-9\-\u00b7\u0300-\u036f\u203f-\u2040])?)")
_QUOTED = rf'"((?:[^"\\\n\r]|\\[tbnrf"\'\\]|{_UCHAR})*)"'
_LITERAL = re.compile(_QUOTED + r"(?:@(?P<language>[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)|\^\^(?P<datatype><[^>]*>))?")
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
    raise ValueError(f"not an RDF term in N-Triples syntax: {ntriples[:200]}")


def _literal(lexical: str, language: str | None, datatype: str | None) -> Literal:
    if language is not None:
        return Literal(lexical, RDF_LANG_STRING, language.lower())
    if datatype is None:
        return Literal(lexical)
    found = _IRI.fullmatch(datatype)
    if found is None:
        raise ValueError(f"not an IRI in N-Triples syntax: {datatype[:200]}")
    iri = _unescape(found[1])
    if iri == RDF_LANG_STRING:
        raise ValueError("rdf:langString needs a language tag")
    return Literal(lexical, iri)
