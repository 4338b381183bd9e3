"""This module writes values of telemetry as literals in N-Triples syntax."""

import base64
import json
import math
from collections.abc import Iterable
from typing import Any

from epsparql.terms import XSD
from pipeline.formats.batches.ntriples import MAX_TERM
from pipeline.otlp.vocabulary import JSON_VALUE

_LONGEST = MAX_TERM - 100  # a literal's quotes and datatype have fewer characters
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"))
_SCALARS = ("string_value", "bool_value", "int_value", "double_value", "bytes_value", None)


class RecordFault(Exception):
    """Says which field of a record cannot be in an event, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field, self.reason = field, reason


def write_text(text: str, field: str) -> str:
    """Return the literal of a text. Raises: RecordFault where it is too long."""
    if len(text) > _LONGEST:
        raise RecordFault(field, f"the text has {len(text)} characters; at most {_LONGEST} are taken")
    for character, escape in _ESCAPES:
        if character in text:
            text = text.replace(character, escape)
    if len(text) > _LONGEST:
        raise RecordFault(field, f"written out, the text has {len(text)} characters; at most {_LONGEST} are taken")
    return f'"{text}"'


def write_number(value: float) -> str:
    """Return the literal of an integer, a double or a boolean."""
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD}boolean>'
    if isinstance(value, int):
        return f'"{value}"^^<{XSD}integer>'
    text = repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    return f'"{text}"^^<{XSD}double>'


def write_values(value: Any, field: str) -> Iterable[str]:
    """Return the literals of an AnyValue: one for each scalar of an array, else at most one.

    Maps and nested arrays are texts of JSON. Raises: RecordFault.
    """
    match value.WhichOneof("value"):
        case "string_value":
            return (write_text(value.string_value, field),)
        case "array_value" if all(each.WhichOneof("value") in _SCALARS for each in value.array_value.values):
            return dict.fromkeys(term for each in value.array_value.values for term in write_values(each, field))
        case "array_value" | "kvlist_value":
            return (f"{write_text(json.dumps(_convert_to_json(value), ensure_ascii=False), field)}^^<{JSON_VALUE}>",)
        case "bytes_value":
            return (f"{write_text(base64.b64encode(value.bytes_value).decode(), field)}^^<{XSD}base64Binary>",)
        case "bool_value" | "int_value" | "double_value" as kind:
            return (write_number(getattr(value, kind)),)
        case _:
            return ()


def _convert_to_json(value: Any) -> Any:
    match value.WhichOneof("value"):
        case "array_value":
            return [_convert_to_json(each) for each in value.array_value.values]
        case "kvlist_value":
            return {each.key: _convert_to_json(each.value) for each in value.kvlist_value.values}
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
        case "double_value" if not math.isfinite(value.double_value):
            return str(value.double_value)
        case "string_value" | "bool_value" | "int_value" | "double_value" as kind:
            return getattr(value, kind)
        case _:
            return None
