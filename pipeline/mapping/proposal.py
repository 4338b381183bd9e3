"""This module proposes a mapping from the first rows of a file: the time, the subject, and the type of each other field."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from epsparql.events.media_types import CSV
from pipeline.errors import FormatError
from pipeline.mapping.json_reader import ROOT, split_documents
from pipeline.mapping.literals import FORMS
from pipeline.mapping.mapping import MAX_DEPTH, MAX_PROPERTIES
from pipeline.mapping.time_formats import find_reader

LOOKED_AT = 1_000
"""So many rows are looked at."""
_DELIMITERS = ",;\t|"
_TIME_NAME = re.compile(r"(?i)(?:^|[._])(?:time|timestamp|ts|date|datetime|at|when|zeit|datum)(?:$|[._])|time|date")
_SUBJECT_NAME = re.compile(r"(?i)(?:^|[._])(?:id|sensor|device|station|machine|thing|node|meter|vehicle|name|key|serial)(?:$|[._])|_?id$")
_TIME_FORMATS = (
    "iso", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M", "%d/%m/%Y", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y-%m-%d %H:%M:%S%z", "%a, %d %b %Y %H:%M:%S %z",
)  # fmt: skip
_EPOCHS = (("epoch_s", 10**8, 10**10), ("epoch_ms", 10**11, 10**13))
_DATATYPES = ("integer", "decimal", "double")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Holds a mapping's document, and what to say about it."""

    document: dict[str, Any]
    comments: tuple[str, ...]


def propose_mapping(body: bytes, media_type: str, base: str) -> Proposal:
    """Return a mapping for the rows at the beginning of a body. Raises: FormatError where there are none."""
    head, rows = _read_cells(body) if media_type == CSV else _read_objects(body)
    fields = list(dict.fromkeys(name for row in rows for name in row))[:MAX_PROPERTIES]
    if not fields:
        raise FormatError("mapping", "there are no rows to propose a mapping from", expected="a header and a row of CSV, or an object of JSON")
    values = {field: [row[field] for row in rows if row.get(field) not in (None, "")] for field in fields}
    document, comments = {**head, "base": base}, [f"looked at {len(rows)} rows"]
    time = _find_time(fields, values, len(rows))
    if time is None:
        comments.append("no field looks like a time: events get the time of arrival; name the field with time and time_format")
    else:
        document |= {"time": time[0], "time_format": time[1]}
        comments.append(f"time is {time[0]!r}, read as {time[1]}")
    subject = _find_subject([field for field in fields if time is None or field != time[0]], values, len(rows))
    if subject is None:
        comments.append("no field looks like a subject: each row gets a blank node; name it with subject, such as sensor/{sensor}")
    else:
        document["subject"] = f"{_local_name(subject)}/{{{subject}}}"
        comments.append(f"the subject is made of {subject!r}")
    used = {subject, None if time is None else time[0]}
    document["properties"] = {field: _property_of(field, values[field]) for field in fields if field not in used}
    for field, found in document["properties"].items():
        comments.append(f"{field!r}: {found if isinstance(found, str) else found['iri'] + ' as ' + found['datatype']}")
    if not document["properties"]:
        del document["properties"]
        document["types"] = [":Event"]
        comments.append("no field is left for properties: each row becomes an :Event")
    return Proposal(document, tuple(comments))


# ---------------------------------------------------------------- rows
def _read_cells(body: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    text = body.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    head = {"format": "csv"} | ({"delimiter": delimiter} if delimiter != "," else {})
    try:
        found = [
            {name: cell.strip() for name, cell in row.items() if isinstance(name, str) and isinstance(cell, str)}
            for row, _ in zip(rows, range(LOOKED_AT), strict=False)
        ]
    except csv.Error as fault:
        raise FormatError("csv", f"the rows cannot be read: {fault}") from None
    return head, found


def _read_objects(body: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head: dict[str, Any] = {"format": "json"}
    documents = [_decode(bytes(each)) for each in split_documents(body)[:LOOKED_AT]]
    path = _find_items(documents[0]) if documents and isinstance(documents[0], dict) else []
    if not path:
        return head, [_flatten(each) for each in documents if isinstance(each, dict)]
    head["items"] = ".".join(step.replace(".", "\\.") for step in path) + "[*]"
    rows = [row for each in documents if isinstance(each, dict) for row in _rows_of(each, path)]
    return head, rows[:LOOKED_AT]


def _rows_of(document: Mapping[str, Any], path: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows that a path leads to in a document, each with the document's own fields."""
    around = _flatten(document, ROOT)
    inner: Any = document
    for step in path:
        inner = inner.get(step, {}) if isinstance(inner, dict) else {}
    return [around | _flatten(row) for row in inner if isinstance(row, dict)] if isinstance(inner, list) else []


class _Written(str):
    """Holds a JSON number as it is written."""


def _decode(text: bytes) -> Any:
    try:
        return json.loads(text, parse_float=_Written, parse_int=_Written)
    except (ValueError, RecursionError):
        return None


def _find_items(document: Mapping[str, Any]) -> list[str]:
    """Return the path to the only array of objects in a document, of at most two steps; empty if there is none."""
    inner = {name: value for name, value in document.items() if isinstance(value, dict)}
    paths = [[name] for name, value in document.items() if _is_table(value)]
    paths += [[name, step] for name, value in inner.items() for step, deeper in value.items() if _is_table(deeper)]
    return paths[0] if len(paths) == 1 else []


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _flatten(row: Mapping[str, Any], before: str = "", depth: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        path = before + name.replace("\\", "\\\\").replace(".", "\\.")
        if isinstance(value, dict) and depth < MAX_DEPTH:
            found |= _flatten(value, f"{path}.", depth + 1)
        elif not isinstance(value, list | dict):
            found[path] = value
    return found


# ---------------------------------------------------------------- what fields are
def _find_time(fields: Sequence[str], values: Mapping[str, list[Any]], rows: int) -> tuple[str, str] | None:
    """Return the field that is a time in each row, with its format; a telling name counts most."""
    whole = [field for field in fields if len(values[field]) == rows and not any(isinstance(value, bool) for value in values[field])]
    for field in sorted(whole, key=lambda name: _TIME_NAME.search(name) is None):
        texts = [str(value) for value in values[field]]
        for fmt, least, most in _EPOCHS:
            if _TIME_NAME.search(field) and all(re.fullmatch(r"\d+(?:\.\d{1,6})?", text) and least <= float(text) < most for text in texts):
                return field, fmt
        found = next((fmt for fmt in _TIME_FORMATS if not any(isinstance(v, _Written) for v in values[field]) and _are_times(texts, fmt)), None)
        if found is not None:
            return field, found
    return None


def _are_times(texts: Sequence[str], fmt: str) -> bool:
    read = find_reader(fmt)
    try:
        for text in texts:
            read(text)
    except (ValueError, ArithmeticError):
        return False
    return True


def _find_subject(fields: Sequence[str], values: Mapping[str, list[Any]], rows: int) -> str | None:
    """Return the field that names what the row is about: it has a telling name and is there in each row."""
    named = [
        field
        for field in fields
        if _SUBJECT_NAME.search(field) and len(values[field]) == rows and not any(isinstance(v, bool) for v in values[field])
    ]
    return min(named, key=lambda field: len({str(value) for value in values[field]}) in (1, rows), default=None)


def _property_of(field: str, values: Sequence[Any]) -> str | dict[str, str]:
    """Return the predicate, and the datatype where values would else be of several types, or texts of dates."""
    iri = f":{_local_name(field)}"
    texts = [str(value) for value in values]
    if not values or any(isinstance(value, bool) for value in values):
        return iri
    kinds = {next((kind for kind in _DATATYPES if re.search(FORMS[kind], text)), "string") for text in texts}
    if len(kinds) > 1 and "string" not in kinds:
        return {"iri": iri, "datatype": f"xsd:{max(kinds, key=_DATATYPES.index)}"}
    if kinds == {"string"} and not any(isinstance(value, _Written) for value in values):
        if all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*", text) for text in texts) and _are_times(texts, "iso"):
            return {"iri": iri, "datatype": "xsd:dateTime"}
        if all(re.fullmatch(r"\d{4}-\d\d-\d\d", text) for text in texts) and _are_times(texts, "iso"):
            return {"iri": iri, "datatype": "xsd:date"}
    if len(kinds) > 1:
        return {"iri": iri, "datatype": "xsd:string"}
    return iri


def _local_name(field: str) -> str:
    """Return the last step of a field's path as it may stand in a prefixed name."""
    last = re.split(r"(?<!\\)\.", field)[-1].replace("\\", "")
    return quote(re.sub(r"[^\w-]+", "_", last).strip("_"), safe="") or "field"
