"""This module makes literals of fields: typed as Turtle or JSON-LD reads them, or by a datatype whose form is checked."""

import re
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsparql.literals import literal_fault
from epsparql.terms import XSD, XSD_STRING, Literal
from pipeline.mapping.columns import BOOLEAN, BROKEN, CELL, NESTED, NUMBER, STRING, Column, Flags

INTEGER = r"^[+-]?[0-9]+$"
DECIMAL = r"^[+-]?[0-9]*\.[0-9]+$"
DOUBLE = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+$"
"""Turtle reads numbers of these forms: rules 19, 20 and 21 of its grammar."""
_JSON_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_FLOATING = r"^(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)$"
FORMS = {
    "integer": INTEGER,
    "decimal": r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)$",
    "double": _FLOATING,
    "float": _FLOATING,
    "boolean": r"^(?:true|false|0|1)$",
    "nonNegativeInteger": r"^(?:\+?[0-9]+|-0+)$",
    "positiveInteger": r"^\+?0*[1-9][0-9]*$",
    "nonPositiveInteger": r"^(?:-[0-9]+|\+?0+)$",
    "negativeInteger": r"^-0*[1-9][0-9]*$",
    "gYear": r"^-?(?:[1-9][0-9]{4,}|[0-9]{4})(?:Z|[+-][0-9]{2}:[0-9]{2})?$",
    "time": r"^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?|24:00:00(?:\.0+)?)(?:Z|[+-][0-9]{2}:[0-9]{2})?$",
}
"""These datatypes are checked by the form of their texts."""
_BOUNDS = {
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
}
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:Z|[+-]\d\d:\d\d)?", re.ASCII)
_SPECIAL = r'["\\\n\r]'
_SHOWN = 64
_LARGEST_INTEGER = Decimal(10) ** 21


def literal_terms(column: Column, datatype: str | None, lang: str | None, *, by_json_ld: bool) -> tuple[pa.Array, dict[int, str]]:
    """Return the literal of each distinct text in N-Triples syntax, and why some of them are none."""
    faults = find_unusable(column)
    texts, suffixes = column.texts, np.zeros(len(column.texts), np.int32)
    if datatype is not None:
        faults |= {k: reason for k, reason in find_ill_formed(column, datatype).items() if k not in faults}
        suffix = "" if datatype == XSD_STRING else f"^^<{datatype}>"
        return _quoted(texts, pa.array([suffix]), suffixes), faults
    kinds, tagged = column.kinds, f"@{lang}" if lang else ""
    if by_json_ld:
        texts, suffixes = _type_by_json_ld(column)
    else:
        words = kinds == BOOLEAN if lang else (kinds == BOOLEAN) | (kinds == CELL)
        numbers = kinds == NUMBER if lang else (kinds == NUMBER) | (kinds == CELL)
        if numbers.any():
            for number, form in enumerate((INTEGER, DECIMAL, DOUBLE), 1):
                suffixes[numbers & _matches(texts, form)] = number
        if words.any():
            suffixes[words & _matches(texts, r"^(?:true|false)$")] = 4
    kinds_of_suffix = pa.array([tagged, *(f"^^<{XSD}{name}>" for name in ("integer", "decimal", "double", "boolean"))])
    return _quoted(texts, kinds_of_suffix, suffixes), faults


def find_unusable(column: Column) -> dict[int, str]:
    """Return the distinct texts that are no single value, each with the reason."""
    faults = {int(k): "its bytes are no UTF-8, or half of a surrogate pair" for k in np.flatnonzero(column.kinds == BROKEN)}
    for k in np.flatnonzero(column.kinds == NESTED).tolist():
        faults[k] = f"{_quote_value(column, k)} is an object or array; name what is in it by a path, or its elements by items"
    return faults


def find_ill_formed(column: Column, datatype: str) -> dict[int, str]:
    """Return the distinct texts that have not the form of the datatype, each with the reason.

    Other datatypes than XSD's have no form here.
    """
    name = datatype.removeprefix(XSD) if datatype.startswith(XSD) else ""
    if name in FORMS:
        wrong = np.flatnonzero(~_matches(column.texts, FORMS[name]))
    elif name in _BOUNDS or name in ("date", "dateTime", "dateTimeStamp", "duration", "dayTimeDuration"):
        wrong = np.array([k for k, text in enumerate(column.texts.to_pylist()) if not _is_of(text, name)], np.int64)
    else:
        return {}
    return {int(k): f"{_quote_value(column, int(k))} is no xsd:{name}" for k in wrong}


def _is_of(text: str, name: str) -> bool:
    """Tell whether a text is one of a datatype that has no form by a pattern alone."""
    match name:
        case "date":
            found = _DATE.fullmatch(text)
            try:
                return found is not None and date.fromisoformat(found[1]) is not None
            except ValueError:
                return False
        case "dateTime" | "dateTimeStamp":
            return literal_fault(Literal(text, XSD + "dateTime")) is None and (
                name == "dateTime" or re.search(r"(?:Z|[+-]\d\d:\d\d)$", text) is not None
            )
        case "duration" | "dayTimeDuration":
            return literal_fault(Literal(text, XSD + "duration")) is None and (name == "duration" or not re.search("[YM]", text.partition("T")[0]))
        case _:
            least, most = _BOUNDS[name]
            return len(text) <= _SHOWN and re.fullmatch(r"[+-]?[0-9]+", text) is not None and least <= int(text) <= most


def _type_by_json_ld(column: Column) -> tuple[pa.Array, "np.ndarray[tuple[int], np.dtype[np.int32]]"]:
    """Return texts and kinds of suffix as JSON-LD 1.1 converts numbers: whole ones to xsd:integer, others to the
    canonical xsd:double.
    """
    kinds, suffixes = column.kinds, np.zeros(len(column.texts), np.int32)
    numbers = ((kinds == NUMBER) | (kinds == CELL)) & _matches(column.texts, _JSON_NUMBER)
    suffixes[((kinds == BOOLEAN) | (kinds == CELL)) & _matches(column.texts, r"^(?:true|false)$")] = 4
    if not numbers.any():
        return column.texts, suffixes
    plain = numbers & _matches(column.texts, r"^(?:0|-?[1-9][0-9]{0,19})$")
    suffixes[plain] = 1
    texts = column.texts.to_pylist() if (numbers & ~plain).any() else None
    if texts is None:
        return column.texts, suffixes
    for k in np.flatnonzero(numbers & ~plain).tolist():
        texts[k], suffixes[k] = _json_ld_number(texts[k])
    return pa.array(texts, pa.utf8()), suffixes


def _json_ld_number(text: str) -> tuple[str, int]:
    """Return the canonical text of a number, and its kind of suffix. Source: JSON-LD 1.1 API, section 10.4."""
    value = float(text)
    if value.is_integer() and abs(value) < _LARGEST_INTEGER:
        return str(int(value)), 1
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF", 3
    mantissa, _, exponent = f"{value:.15E}".partition("E")
    digits = mantissa.rstrip("0")
    return f"{digits}{'0' if digits.endswith('.') else ''}E{int(exponent)}", 3


def _matches(texts: pa.Array, form: str) -> Flags:
    found: Flags = pc.match_substring_regex(texts, form).to_numpy(zero_copy_only=False)
    return found


def _quoted(texts: pa.Array, suffixes: pa.Array, which: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            texts = pc.replace_substring(texts, character, escape)
    return pc.binary_join_element_wise('"', texts, '"', suffixes.take(pa.array(which)), "")


def _quote_value(column: Column, k: int) -> str:
    text = column.texts[k].as_py()
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return shown if column.kinds[k] in (NUMBER, BOOLEAN, NESTED) else repr(shown)


__all__ = ["FORMS", "STRING", "find_ill_formed", "find_unusable", "literal_terms"]
