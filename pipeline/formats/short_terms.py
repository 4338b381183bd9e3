"""This module reads terms of ndjson as people and programs write them: N-Triples syntax, JSON values, SPARQL's JSON
results, and prefixed names.
"""

import json
import re
from typing import Any

import msgspec

from epsparql.deferred_methods import dataclass
from epsparql.literals import literal_fault
from epsparql.ntriples import is_absolute_iri, is_writable
from epsparql.solutions.solution import term_of
from epsparql.terms import MAX_TRIPLE_DEPTH, RDF, RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, Literal, Term
from pipeline.errors import FormatError
from pipeline.formats.namespaces import Namespaces

_DATE_TIME = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9Z.:+-]*", re.ASCII)
_NAME = re.compile(r"(?P<prefix>(?:[A-Za-z][\w.-]*)?):(?!//)[^\s<>\"{}|^`\\]*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_EXPECTED = (
    'a prefixed name, a number, a boolean, an object as in SPARQL\'s JSON results, or N-Triples syntax, such as "<http://e/a>" or "\\"text\\""'
)
_OBJECT = '{"type": "literal", "value": "21.5", "datatype": "http://www.w3.org/2001/XMLSchema#decimal"}, or "uri", "bnode" or "triple" as its type'
_MEMBERS = frozenset({"type", "value", "datatype", "xml:lang", "its:dir"})
_PLACES = ("subject", "predicate", "object")
_SHOWN = 64  # a message shows this many characters


@dataclass(frozen=True, slots=True)
class ShortTerms:
    """Turns terms of ndjson into N-Triples syntax. `names` are the known prefixes."""

    names: Namespaces

    def write_term(self, token: bytes, place: str) -> str:
        """Return the term of a JSON value at a place, s, p, o or g. Raises: FormatError."""
        first = token[:1]
        if first == b'"':
            return self._write_string(msgspec.json.decode(token, type=str), place)
        if first == b"{":
            return str(self._read_object(msgspec.json.decode(token), 0))
        text = token.decode()
        if text in ("true", "false"):
            return f'"{text}"^^<{XSD}boolean>'
        if first in b"-0123456789":
            kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
            return f'"{text}"^^<{XSD}{kind}>'
        raise _term_fault(f"{text[:_SHOWN]} is no term", _EXPECTED)

    def write_found(self, piece: bytes) -> str:
        """Return the term of a value that the compiled scanner found: an object, or a string without its quotes.

        Raises: FormatError, ValueError.
        """
        if piece[:1] == b"{":
            return self.write_term(piece, "o")
        text = msgspec.json.decode(b'"%b"' % piece, type=str)  # the scanner has not looked for control characters
        return self._write_string(text, "p" if text == "a" else "o")

    def _write_string(self, text: str, place: str) -> str:
        if text.startswith(("<", '"', "_:")):
            return text
        if text == "a" and place == "p":
            return f"<{RDF}type>"
        if place == "o" and _DATE_TIME.fullmatch(text) and literal_fault(Literal(text, XSD + "dateTime")) is None:
            return f'"{text}"^^<{XSD}dateTime>'
        iri = self._expand(text)
        if iri is None:
            raise _term_fault(f"{text[:_SHOWN]!r} may be {self._list_readings(text, place)}", "one of them, so written")
        return f"<{iri}>"

    def _expand(self, text: str) -> str | None:
        return self.names.expand_prefixed(text) if _NAME.fullmatch(text) else None

    def _list_readings(self, text: str, place: str) -> str:
        """Return the ways to write what a string may mean, with an "or" between them."""
        name, readings = _NAME.fullmatch(text), list[str]()
        if place == "o":
            if text in ("true", "false") or _NUMBER.fullmatch(text):
                readings.append(f"the value {text[:_SHOWN]}")
            readings.append(f"the text {json.dumps(str(Literal(text[:_SHOWN])), ensure_ascii=False)}")
        if is_absolute_iri(text):
            readings.append(f'the IRI "<{text[:_SHOWN]}>"')
        if name is not None:
            remedy = f'{{"prefixes": {{"{name["prefix"][:_SHOWN]}": …}}}} in the first line or the stream\'s settings declares'
            readings.append(f"a name whose prefix {remedy}")
        elif len(readings) < 2:
            shown = text[:_SHOWN] if re.fullmatch(r"\w+", text) else "name"
            readings.append(f'the name ":{shown}"')
        return " or ".join(readings)

    def _read_object(self, found: Any, depth: int) -> Term:
        """Return the term of an object as in SPARQL's JSON results. Raises: FormatError."""
        self._check_object(found, depth)
        term = term_of(found)
        if not is_writable(term):
            raise _object_fault(found, "has an IRI, label or language tag that is not valid")
        return term

    def _check_object(self, found: Any, depth: int) -> None:
        """Give an object its type, and its datatype as an IRI. Raises: FormatError for what is no term."""
        if not isinstance(found, dict) or not found.keys() <= _MEMBERS or "value" not in found:
            raise _object_fault(found, "is no term of SPARQL's JSON results")
        kind, value = found.get("type"), found["value"]
        if kind == "triple":
            self._check_triple(found, depth)
        elif not all(isinstance(part, str) for part in found.values()):
            raise _object_fault(found, "has a member that is no string; a number stands alone, without an object")
        elif kind is None:
            self._check_untyped(found)
        elif kind == "uri" and self._expand(value) is not None:
            readings = f'may be the IRI "<{value[:_SHOWN]}>" or the name "{value[:_SHOWN]}"'
            raise _object_fault(found, readings, "one of them, so written, without an object")
        if found["type"] in ("literal", "typed-literal"):
            self._check_literal(found)
        elif len(found) > 2 or found["type"] not in ("uri", "bnode", "triple"):
            raise _object_fault(found, "is no term of SPARQL's JSON results")

    def _check_untyped(self, found: dict[str, Any]) -> None:
        value = found["value"]
        if len(found) == 1 and (is_absolute_iri(value) or self._expand(value) is not None):
            raise _object_fault(found, 'may be an IRI, of type "uri", or a text, of type "literal"', "the type")
        found["type"] = "literal"

    def _check_literal(self, found: dict[str, Any]) -> None:
        datatype, language = found.get("datatype"), found.get("xml:lang")
        if language is None and "its:dir" in found:
            raise _object_fault(found, "has its:dir without xml:lang")
        if language == "" or (language is not None and datatype not in (None, RDF_LANG_STRING, RDF_DIR_LANG_STRING)):
            raise _object_fault(found, "has an empty language, or both a datatype and a language", "one of the two")
        if datatype is not None:
            found["datatype"] = self._expand(datatype) or datatype

    def _check_triple(self, found: dict[str, Any], depth: int) -> None:
        value = found["value"]
        if not isinstance(value, dict) or sorted(value) != sorted(_PLACES) or depth == MAX_TRIPLE_DEPTH:
            raise _object_fault(found, f"needs {', '.join(_PLACES)}, and at most {MAX_TRIPLE_DEPTH} triples within each other")
        for place in _PLACES:
            self._check_object(value[place], depth + 1)
        if value["subject"]["type"] not in ("uri", "bnode") or value["predicate"]["type"] != "uri":
            raise _object_fault(found, "needs an IRI or blank node as subject, and an IRI as predicate")


def _object_fault(found: object, reason: str, expected: str = _OBJECT) -> FormatError:
    return _term_fault(f"{json.dumps(found, ensure_ascii=False)[:_SHOWN]} {reason}", expected)


def _term_fault(message: str, expected: str) -> FormatError:
    return FormatError("term", message, 1, 1, expected)
