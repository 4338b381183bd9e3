"""This module converts between the texts of XSD's datatypes and Python's values."""

import re
from base64 import b64decode
from binascii import Error as MalformedBase64
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias

PythonValue: TypeAlias = bool | int | float | Decimal | str | bytes | datetime | date | time | timedelta

_INTEGERS = {
    "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
    "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
}  # fmt: skip
_TEXTS = {"string", "anyURI", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN"}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_TIME = r"(?P<hour>[0-9]{2}):(?P<rest>[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6})0*)?"
_DATE_TIME = re.compile(rf"(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})T{_TIME}{_ZONE}")
_TIME_OF_DAY = re.compile(_TIME + _ZONE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DURATION = re.compile(
    r"(?P<sign>-)?P(?=[0-9T])(?:(?P<days>[0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,11})H)?(?:(?P<minutes>[0-9]{1,12})M)?(?:(?P<seconds>[0-9]{1,14})(?:\.(?P<fraction>[0-9]{1,6})0*)?S)?)?"
)


def python_value(lexical: str, datatype: str) -> PythonValue | None:
    """Return the value of a text of XSD's `datatype`, given without its namespace.

    None: it has none in Python that is exactly equal.
    """
    if datatype in _TEXTS:
        return lexical
    text = lexical.strip(" \t\r\n")  # XSD collapses white space in all other datatypes
    read = _READERS.get("integer" if datatype in _INTEGERS else datatype)
    try:
        return None if read is None else read(text)
    except (ValueError, OverflowError):  # a date that does not exist, or a number of more digits than Python reads
        return None


def _read_datetime(text: str) -> datetime | None:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return None
    day = datetime.fromisoformat(found["date"])
    if found["hour"] == "24":
        day += timedelta(days=1)
    moment = _read_clock(found)
    return None if moment is None else datetime.combine(day.date(), moment)


def _read_time(text: str) -> time | None:
    found = _TIME_OF_DAY.fullmatch(text)
    return None if found is None else _read_clock(found)


def _read_clock(found: re.Match[str]) -> time | None:
    """Return the time of day, midnight for 24:00:00."""
    hour = found["hour"]
    if hour == "24":
        if (found["rest"] + (found["fraction"] or "")).strip("0:"):
            return None
        hour = "00"
    zone = found["zone"] or ""
    moment = time.fromisoformat(f"{hour}:{found['rest']}.{(found['fraction'] or '').ljust(6, '0')}{zone}")
    return moment.replace(tzinfo=UTC) if zone == "Z" else moment


def _read_date(text: str) -> date | None:
    return date.fromisoformat(text) if _DATE.fullmatch(text) else None


def _read_duration(text: str) -> timedelta | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    length = timedelta(
        days=int(found["days"] or 0),
        hours=int(found["hours"] or 0),
        minutes=int(found["minutes"] or 0),
        seconds=int(found["seconds"] or 0),
        microseconds=int((found["fraction"] or "").ljust(6, "0")),
    )
    return -length if found["sign"] else length


def _read_base64(text: str) -> bytes | None:
    try:
        return b64decode(text.replace(" ", ""), validate=True)
    except MalformedBase64:
        return None


_READERS: dict[str, Callable[[str], PythonValue | None]] = {
    "integer": lambda text: int(text) if _INTEGER.fullmatch(text) else None,
    "decimal": lambda text: Decimal(text) if _DECIMAL.fullmatch(text) else None,
    "double": lambda text: float(text) if _DOUBLE.fullmatch(text) else None,
    "float": lambda text: float(text) if _DOUBLE.fullmatch(text) else None,
    "boolean": _BOOLEANS.get,
    "dateTime": _read_datetime,
    "dateTimeStamp": lambda text: found if (found := _read_datetime(text)) is not None and found.tzinfo is not None else None,
    "date": _read_date,
    "time": _read_time,
    "duration": _read_duration,
    "dayTimeDuration": _read_duration,
    "hexBinary": lambda text: bytes.fromhex(text) if text.isalnum() or not text else None,
    "base64Binary": _read_base64,
}


def written_value(value: PythonValue) -> tuple[str, str]:
    """Return the text of a value, and its XSD datatype without the namespace.

    Raises: TypeError for a value of another type.
    """
    match value:
        case bool():
            return ("true" if value else "false"), "boolean"
        case int():
            return str(value), "integer"
        case float():
            return repr(value).replace("inf", "INF").replace("nan", "NaN"), "double"
        case Decimal() if value.is_finite():
            return f"{value:f}", "decimal"
        case str():
            return value, "string"
        case datetime():
            return value.isoformat().replace("+00:00", "Z"), "dateTime"
        case date():
            return value.isoformat(), "date"
        case time():
            return value.isoformat().replace("+00:00", "Z"), "time"
        case bytes():
            return value.hex().upper(), "hexBinary"
        case timedelta():
            return _written_duration(value), "dayTimeDuration"
        case _:
            raise TypeError(f"{value!r} of type {type(value).__name__} has no RDF datatype here; give a Literal of rdflib")


def _written_duration(length: timedelta) -> str:
    whole, micros = divmod(abs(length) // timedelta(microseconds=1), 1_000_000)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{'-' if length < timedelta(0) else ''}PT{whole}{fraction}S"
