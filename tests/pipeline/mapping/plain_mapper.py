"""Maps rows one by one and plainly: what the vectorized mapper must give.

It shares the compiled mapping, and no code that reads or types values.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pyoxigraph as ox

from epsparql.terms import RDF, XSD, Literal
from pipeline.mapping.mapping import Mapping, Property
from pipeline.mapping.templates import Template

Row = tuple[str, str, str, int]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMS = {
    "integer": r"[+-]?\d+",
    "decimal": r"[+-]?(\d+(\.\d*)?|\.\d+)",
    "double": r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN",
    "boolean": r"true|false|0|1",
}


class Number(str):
    """A JSON number as it is written."""


class Cell(str):
    """A cell of CSV."""


class RowError(Exception):
    """A row does not map."""


def rows_of(body: bytes, mapping: Mapping, *, is_csv: bool) -> Iterator[dict[str, Any] | None]:
    """Yield the fields of each row; None for a row that cannot be read."""
    if is_csv:
        header, *lines = csv.reader(io.StringIO(body.decode(), newline=""))
        for cells in lines:
            if cells:
                yield None if len(cells) != len(header) else {name: Cell(cell.strip(" \t\n\r\v\f")) for name, cell in zip(header, cells, strict=True)}
        return
    for document in json.loads(body, parse_float=Number, parse_int=Number):
        found = {field: look_up(document, field.split(".")) for field in mapping.fields}
        yield {field: value for field, value in found.items() if value is not ...} if isinstance(document, dict) else None


def look_up(document: Any, steps: list[str]) -> Any:
    """Return what is at the end of a path, `...` where nothing is."""
    for step in steps:
        document = document.get(step, ...) if isinstance(document, dict) else ...
    return document


def map_rows(body: bytes, mapping: Mapping, *, is_csv: bool) -> tuple[list[Row], list[int]]:
    """Return the triples with their times, and the numbers from 1 of rows that do not map."""
    found: list[Row] = []
    rejected = []
    for number, fields in enumerate(rows_of(body, mapping, is_csv=is_csv), 1):
        try:
            if fields is None:
                raise RowError("unreadable")
            found += list(map_row(fields, mapping, is_csv=is_csv))
        except RowError:
            rejected.append(number)
    return found, rejected


def map_row(fields: dict[str, Any], mapping: Mapping, *, is_csv: bool) -> list[Row]:
    null = mapping.null if mapping.null is not None else ("",) if is_csv else ()

    def value(field: str, words: tuple[str, ...] | None = None) -> Any:
        found = fields.get(field)
        shown = {True: "true", False: "false"}.get(found, found) if isinstance(found, bool) else found
        return None if found is None or (isinstance(shown, str) and shown in (null if words is None else words)) else found

    assert mapping.time
    assert mapping.subject is not None
    at = read_time(value(mapping.time[0]), mapping.time_format.text)
    for field in mapping.key:
        if value(field) is None:
            raise RowError("key")
    subject = expand(mapping.subject, [value(field) for field in mapping.subject.fields])
    if subject is None:
        raise RowError("subject")
    triples = [(f"<{RDF}type>", f"<{template.parts[0]}>") for template in mapping.types]
    for each in mapping.properties:
        predicate = expand(each.iri, [value(field, each.null) for field in each.iri.fields])
        if each.value is not None:
            object_ = expand(each.value, [value(field, each.null) for field in each.value.fields])
        else:
            object_ = literal(value(each.field, each.null), each)
        if predicate is not None and object_ is not None:
            triples.append((predicate, object_))
    if not triples and not any(field in fields for each in mapping.properties for field in each.fields):
        raise RowError("no triple")
    return [(subject, p, o, at) for p, o in triples]


def shown_as(value: Any) -> str:
    if isinstance(value, dict | list):
        raise RowError("nested")
    return str(value).lower() if isinstance(value, bool) else str(value)


def expand(template: Template, values: list[Any]) -> str | None:
    texts = {field: None if value is None else shown_as(value) for field, value in zip(template.fields, values, strict=True)}
    if None in texts.values():
        return None
    pieces = []
    for part in template.parts:
        if isinstance(part, str):
            pieces.append(part)
            continue
        text = texts[part.field]
        assert text is not None
        if not text:
            raise RowError("empty")
        pieces.append("".join(c if re.fullmatch("[A-Za-z0-9._~\\-\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef]", c) else quote(c, safe="") for c in text))
    return parsed(f"<{''.join(pieces)}>")


def parsed(term: str) -> str:
    try:
        (quad,) = ox.parse(f"<x:s> <x:p> {term} .".encode(), ox.RdfFormat.N_TRIPLES)
    except SyntaxError:
        raise RowError("term") from None
    return str(quad.object)


def literal(value: Any, each: Property) -> str | None:
    if value is None:
        return None
    text = shown_as(value)
    if each.datatype is not None:
        name = each.datatype.removeprefix(XSD)
        if name in FORMS and not re.fullmatch(FORMS[name], text, re.ASCII):
            raise RowError("form")
        return str(Literal(text, each.datatype))
    if isinstance(value, bool) or (isinstance(value, Cell) and not each.lang and text in ("true", "false")):
        return str(Literal(text, XSD + "boolean"))
    if isinstance(value, Number) or (isinstance(value, Cell) and not each.lang):
        for name, form in (("integer", r"[+-]?\d+"), ("decimal", r"[+-]?\d*\.\d+"), ("double", r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")):
            if re.fullmatch(form, text, re.ASCII):
                return str(Literal(text, XSD + name))
    return str(Literal(text, language=each.lang)) if each.lang else str(Literal(text))


def read_time(value: Any, fmt: str) -> int:
    if value is None or isinstance(value, bool | dict | list):
        raise RowError("time")
    try:
        if fmt == "iso":
            if isinstance(value, Number) or not re.match(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)", value, re.ASCII):
                raise RowError("time")
            when = datetime.fromisoformat(value)
        elif fmt in ("epoch_s", "epoch_ms"):
            micros = Decimal(value) * (1_000_000 if fmt == "epoch_s" else 1_000)
            if not micros.is_finite() or micros != int(micros):
                raise RowError("time")
            return int(micros)
        else:
            if isinstance(value, Number):
                raise RowError("time")
            when = datetime.strptime(value, fmt)  # noqa: DTZ007  # UTC, below
    except (ValueError, ArithmeticError):
        raise RowError("time") from None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (when - EPOCH) // timedelta(microseconds=1)
