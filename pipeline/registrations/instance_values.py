"""This module reads the instances of a query with PARAMETERS: their ids, and the terms that they give the parameters.

Terms are written as in the events of ndjson, and are brought to the same canonical text.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from pipeline.errors import FormatError
from pipeline.formats.batches.ntriples import CanonicalTerms
from pipeline.formats.namespaces import NO_NAMES
from pipeline.formats.short_terms import ShortTerms

MOST_ID, MOST_TERM = 200, 4096
"""An id has at most so many characters, and a term so many bytes of N-Triples text."""
_ID = re.compile(r'[^\s\x00-\x1f\x7f-\x9f"\\/]+')
_EXPECTED_ID = f"up to {MOST_ID} characters without blanks, control characters, quotes, slashes and backslashes"
_BODY = '{"room": "<http://example.org/hall>", "limit": 25}'
_LINE = f'{{"id": "ann", "values": {_BODY}}}, or null in place of the values'
Values = list[str] | None
"""These are the terms of an instance, in the order of the parameters; None for an instance that goes."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    values: dict[str, msgspec.Raw] | None


_VALUES, _LINES = msgspec.json.Decoder(dict[str, msgspec.Raw]), msgspec.json.Decoder(_Line)
_T = TypeVar("_T")


class InstanceReader:
    """Reads instances of one query."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self._parameters, self._short = parameters, ShortTerms(NO_NAMES)
        self._terms = CanonicalTerms('<"(', "value of a parameter")

    def read_values(self, body: bytes, line: int = 1) -> list[str]:
        """Return the terms of a JSON object with one member for each parameter. Raises: FormatError."""
        return self._order(_decode_line(_VALUES, body, line, _BODY), line)

    def read_instances(self, body: bytes) -> Iterator[tuple[str, Values]]:
        """Yield the id and the terms of each line of ndjson that is not blank. Raises: FormatError."""
        for number, text in enumerate(body.split(b"\n"), 1):
            if text and not text.isspace():
                found = _decode_line(_LINES, text, number, _LINE)
                yield check_id(found.id, number), None if found.values is None else self._order(found.values, number)

    def _order(self, values: dict[str, msgspec.Raw], line: int) -> list[str]:
        if values.keys() != set(self._parameters):
            wanted = ", ".join(self._parameters)
            unknown = next((name for name in values if name not in self._parameters), None)
            missing = next((name for name in self._parameters if name not in values), None)
            fault = f"the query has no parameter {unknown[:MOST_ID]!r}" if unknown is not None else f"the parameter {missing!r} has no value"
            raise FormatError("parameter", fault, line, 1, f"a value for each of {wanted}")
        return [self._read_parameter(name, bytes(values[name]), line) for name in self._parameters]

    def _read_parameter(self, name: str, value: bytes, line: int) -> str:
        if len(value) > MOST_TERM:
            raise FormatError("term", f"the value of {name!r} has {len(value)} bytes", line, 1, f"at most {MOST_TERM}")
        try:
            return self._terms[self._short.write_term(value, "o")]
        except FormatError as fault:
            raise FormatError(fault.code, f"the value of {name!r}: {fault.message}", line, 1, fault.expected) from None
        except RecursionError:
            raise FormatError("json", f"the value of {name!r} is nested too deep", line, 1) from None


def check_id(name: str, line: int = 1) -> str:
    """Return the id of an instance. Raises: FormatError."""
    if len(name) > MOST_ID or not _ID.fullmatch(name) or name in (".", ".."):
        raise FormatError("instance-id", f"{name[:MOST_ID]!r} is no id of an instance", line, 1, _EXPECTED_ID)
    return name


def _decode_line(decoder: msgspec.json.Decoder[_T], text: bytes, line: int, expected: str) -> _T:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise FormatError("json", f"this is no instance: {fault}", line, 1, expected) from None
