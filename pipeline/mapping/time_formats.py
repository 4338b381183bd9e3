"""This module reads the times of rows: ISO 8601, seconds or milliseconds since 1970, or a format of strptime."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.messages import END_OF_TIME, Micros
from pipeline.errors import InvalidMapping
from pipeline.formats.batches.timestamps import instant
from pipeline.mapping.columns import BROKEN, CELL, NUMBER, STRING, Column

NAMED_FORMATS = ("iso", "epoch_s", "epoch_ms")
_UNITS = {"epoch_s": 1_000_000, "epoch_ms": 1_000}
_FORM_OF_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?Z?)?$"
"""Arrow reads texts of this form once their Z is off; none of them has another zone."""
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
_WHOLE = r"^-?[0-9]{1,15}$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_LONGEST = 64


def check_time_format(text: str) -> str:
    """Return the format if it is one. Raises: InvalidMapping."""
    if text in NAMED_FORMATS:
        return text
    expected = f"{', '.join(NAMED_FORMATS)}, or a format of strptime such as %d.%m.%Y %H:%M"
    if "%" not in text or len(text) > _LONGEST:
        raise InvalidMapping("time_format", f"is no format of times: {text[:_LONGEST]!r}", expected)
    try:
        datetime.strptime(datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC).strftime(text), text)  # noqa: DTZ007  # only the form is tried
    except (ValueError, re.error) as fault:
        raise InvalidMapping("time_format", f"is no format of times: {fault}", expected) from None
    return text


def read_times(column: Column, fmt: str) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the instant of each distinct text, and why some of them are no times."""
    found = _read_all(column, fmt)
    if found is not None:
        return found, {}
    read, faults = find_reader(fmt), dict[int, str]()
    instants = np.zeros(len(column.texts), np.int64)
    for k, (text, kind) in enumerate(zip(column.texts.to_pylist(), column.kinds.tolist(), strict=True)):
        try:
            if kind not in (CELL, STRING) and not (kind == NUMBER and fmt != "iso"):
                raise ValueError("its bytes are no UTF-8" if kind == BROKEN else f"{text[:_LONGEST]} is no time of the format {fmt}")
            instants[k] = read(text)
        except (ValueError, OverflowError, InvalidOperation) as fault:
            faults[k] = str(fault) if isinstance(fault, ValueError) else f"{text[:_LONGEST]!r} is no time of the format {fmt}"
    return instants, faults


def _read_all(column: Column, fmt: str) -> NDArray[np.int64] | None:
    """Return the instants where all texts have a usual form, which Arrow reads at once; None for the way text by text."""
    if not len(column.texts):
        return np.empty(0, np.int64)
    if fmt == "iso" and (column.kinds <= STRING).all() and pc.all(pc.match_substring_regex(column.texts, _FORM_OF_ISO)).as_py():
        try:
            instants: NDArray[np.int64] = pc.utf8_rtrim(column.texts, "Z").cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        return instants
    if fmt in _UNITS and (column.kinds <= NUMBER).all() and pc.all(pc.match_substring_regex(column.texts, _WHOLE)).as_py():
        whole = column.texts.cast(pa.int64()).to_numpy()
        if (np.abs(whole) < END_OF_TIME // _UNITS[fmt]).all():
            scaled: NDArray[np.int64] = whole * _UNITS[fmt]
            return scaled
    return None


def find_reader(fmt: str) -> Callable[[str], Micros]:
    """Return the function that reads one time of a format. It raises ValueError or ArithmeticError."""
    if fmt == "iso":
        return read_iso
    if fmt in _UNITS:
        return lambda text: read_epoch(text, _UNITS[fmt])
    return lambda text: _read_strptime(text, fmt)


def read_iso(text: str) -> Micros:
    """Return the instant of an ISO 8601 time; T may be a space, seconds and the time of day may be left out. Raises: ValueError."""
    match = _ISO.fullmatch(text)
    if match is None:
        return instant(text)  # it may be an xsd:dateTime of a far year
    day, minute, second, zone = match.groups()
    if zone and zone != "Z":
        zone = zone[:3] + ":" + (zone[3:].lstrip(":") or "00")
    return instant(f"{day}T{minute or '00:00'}{second or ':00'}{zone or 'Z'}")


def read_epoch(text: str, unit: int) -> Micros:
    """Return the instant of a number of units since 1970, each of `unit` microseconds. Raises: ValueError, InvalidOperation."""
    if len(text) > _LONGEST:
        raise ValueError(f"a number of {len(text)} characters is no time")
    micros = Decimal(text) * unit
    if not micros.is_finite() or abs(micros) >= END_OF_TIME:
        raise ValueError(f"{text!r} is beyond the years that instants reach")
    if micros != int(micros):
        raise ValueError(f"{text!r} is finer than a microsecond")
    return int(micros)


def _read_strptime(text: str, fmt: str) -> Micros:
    when = datetime.strptime(text, fmt)  # noqa: DTZ007  # without a zone it is UTC
    return ((when if when.tzinfo is not None else when.replace(tzinfo=UTC)) - _EPOCH) // _MICRO
