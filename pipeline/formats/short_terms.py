"""This module reads short terms of ndjson, on streams with a base: JSON numbers and booleans, dateTimes, and prefixed names."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from epsparql.literals import literal_fault
from epsparql.terms import RDF, XSD, Literal
from pipeline.errors import FormatError

_DATE_TIME = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9Z.:+-]*", re.ASCII)
_NAME = re.compile(r"(?:[A-Za-z][\w.-]*)?:(?!//)[^\s<>\"{}|^`\\]*")
_EXPECTED = 'a prefixed name, a number, a boolean, a dateTime, or a term in N-Triples syntax; a text is written "\\"text\\""'


@dataclass(frozen=True, slots=True)
class ShortTerms:
    """Turns short terms into N-Triples syntax. `expand` returns the IRI of a prefixed name, or a name as it is; it may raise ValueError."""

    expand: Callable[[str], str]

    def write_name(self, text: str) -> str:
        """Return the term of a string. Raises: FormatError."""
        if text.startswith(("<", '"', "_:")):
            return text
        if _DATE_TIME.fullmatch(text) and literal_fault(Literal(text, XSD + "dateTime")) is None:
            return f'"{text}"^^<{XSD}dateTime>'
        iri = self._expanded(text)
        if iri == text:
            raise FormatError("term", f"{text[:64]!r} is no short term", 1, 1, _EXPECTED)
        return f"<{iri}>"

    def write_predicate(self, text: str) -> str:
        """Return the term of a predicate, for which `a` is short too. Raises: FormatError."""
        return f"<{RDF}type>" if text == "a" else self.write_name(text)

    def write_value(self, token: bytes) -> str:
        """Return the term of a JSON value. Raises: FormatError."""
        if token[:1] == b'"':
            return self.write_name(msgspec.json.decode(token, type=str))
        text = token.decode()
        if text in ("true", "false"):
            return f'"{text}"^^<{XSD}boolean>'
        if text[0] in "-0123456789":
            kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
            return f'"{text}"^^<{XSD}{kind}>'
        raise FormatError("term", f"{text[:64]} is no short term", 1, 1, _EXPECTED)

    def _expanded(self, text: str) -> str:
        try:
            return self.expand(text) if _NAME.fullmatch(text) else text
        except ValueError as fault:
            raise FormatError("term", str(fault), 1, 1, _EXPECTED) from None
