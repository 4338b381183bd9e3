"""This module reads the times of rows: ISO 8601, a number of units since 1970, or a format of strptime, in UTC or a
zone of its own.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.messages import END_OF_TIME, Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import InvalidMapping
from pipeline.formats.batches.timestamps import MICROSECOND, finer_fault, instant
from pipeline.mapping.columns import BROKEN, CELL, NUMBER, STRING, Column

UNITS = {"epoch_s": Decimal(1_000_000), "epoch_ms": Decimal(1_000), "epoch_us": Decimal(1), "epoch_ns": Decimal("0.001")}
"""A unit of each of these formats has so many microseconds."""
NAMED_FORMATS = ("iso", *UNITS)
_FORM_OF_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?Z?)?$"
"""Arrow reads texts of this form once their Z is off; none of them has another zone."""
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII)
_FINE = re.compile(r"(\.\d{6})(\d+)")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")
_STEP = 15 * 60 * 1_000_000  # the offset of a zone changes at quarters of hours
_WHOLE = r"^-?[0-9]{1,15}$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """Says how times are written.

    Times without a zone are in `zone`, UTC if that is None. With `rounds`, finer times are rounded.
    """

    text: str = "iso"
    zone: tzinfo | None = None
    rounds: bool = False

    def find_reader(self) -> Callable[[str], Micros]:
        """Return the function that reads one time. It raises ValueError or ArithmeticError."""
        if self.text in UNITS:
            return lambda text: read_epoch(text, UNITS[self.text], rounds=self.rounds)
        return self._read_text

    def _read_text(self, text: str) -> Micros:
        carry = 0
        if self.rounds and (fine := _FINE.search(text)) is not None:
            carry, text = fine[2][0] >= "5", text[: fine.start(2)] + text[fine.end() :]
        at = (read_iso(text) if self.text == "iso" else self._read_strptime(text)) + carry
        return at if self.zone is None or self.names_zone(text) else int(shift_to_utc(np.array([at], np.int64), self.zone)[0])

    def names_zone(self, text: str) -> bool:
        """Tell whether a text that is a time of this format has a zone of its own."""
        if self.text in UNITS or any(word in self.text for word in ("%z", "%Z", "UTC", "GMT")):
            return True
        return self.text == "iso" and re.search(r"(?:Z|[T ]\d\d:\d\d.*[+-]\d\d(?::?\d\d)?)$", text) is not None

    def _read_strptime(self, text: str) -> Micros:
        when = datetime.strptime(text, self.text)  # noqa: DTZ007  # without a zone it is UTC
        return ((when if when.tzinfo is not None else when.replace(tzinfo=UTC)) - _EPOCH) // _MICRO


def read_time_format(found: Mapping[str, Any]) -> TimeFormat:
    """Return how the times of a mapping are written. Raises: InvalidMapping."""
    rounds = found.get("round")
    if rounds not in (None, MICROSECOND):
        raise InvalidMapping("round", f"cannot be {str(rounds)[:_LONGEST]!r}", f'"{MICROSECOND}"')
    return TimeFormat(
        _check_format(found.get("time_format", "iso")), read_zone(found["time_zone"]) if "time_zone" in found else None, rounds is not None
    )


def read_zone(name: Any) -> tzinfo:
    """Return the zone of a name such as Europe/Vienna, or of an offset such as +01:00. Raises: InvalidMapping."""
    offset = _OFFSET.fullmatch(name) if isinstance(name, str) else None
    try:
        if offset is not None:
            minutes = int(offset[2]) * 60 + int(offset[3])
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        return ZoneInfo(name if isinstance(name, str) else "")
    except (ValueError, OSError, LookupError):
        shown = str(name)[:_LONGEST]
        raise InvalidMapping(
            "time_zone", f"{shown!r} is no time zone that is known here", "a name such as Europe/Vienna, or an offset such as +01:00"
        ) from None


def _check_format(text: Any) -> str:
    """Return the format if it is one. Raises: InvalidMapping."""
    if text in NAMED_FORMATS:
        return str(text)
    expected = f"{', '.join(NAMED_FORMATS)}, or a format of strptime such as %d.%m.%Y %H:%M"
    if not isinstance(text, str) or "%" not in text or len(text) > _LONGEST:
        raise InvalidMapping("time_format", f"is no format of times: {str(text)[:_LONGEST]!r}", expected)
    try:
        datetime.strptime(datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC).strftime(text), text)  # noqa: DTZ007  # only the form is tried
    except (ValueError, re.error) as fault:
        raise InvalidMapping("time_format", f"is no format of times: {fault}", expected) from None
    return text


def shift_to_utc(local: NDArray[np.int64], zone: tzinfo | None) -> NDArray[np.int64]:
    """Return the instants of local times. Of two instants with one local time the first is taken; local times that
    are left out move on.

    The offset is looked up once for each quarter of an hour that occurs.
    """
    if zone is None:
        return local
    quarters, places = np.unique(local // _STEP, return_inverse=True)
    offsets = np.zeros(len(quarters), np.int64)
    for k, quarter in enumerate(quarters.tolist()):
        try:
            offset = (_EPOCH.replace(tzinfo=None) + timedelta(microseconds=quarter * _STEP)).replace(tzinfo=zone).utcoffset()
        except (OverflowError, ValueError):
            offset = None  # beyond the years of a date: UTC
        offsets[k] = 0 if offset is None else offset // _MICRO
    shifted: NDArray[np.int64] = local - offsets[places]
    return shifted


def read_times(column: Column, fmt: TimeFormat) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the instant of each distinct text, and why some of them are no times."""
    found = _read_all(column, fmt)
    if found is not None:
        return found, {}
    read, faults = fmt.find_reader(), dict[int, str]()
    instants = np.zeros(len(column.texts), np.int64)
    for k, (text, kind) in enumerate(zip(column.texts.to_pylist(), column.kinds.tolist(), strict=True)):
        try:
            if kind not in (CELL, STRING) and not (kind == NUMBER and fmt.text != "iso"):
                raise ValueError("its bytes are no UTF-8" if kind == BROKEN else f"{text[:_LONGEST]} is no time of the format {fmt.text}")
            instants[k] = read(text)
        except (ValueError, OverflowError, InvalidOperation) as fault:
            faults[k] = str(fault) if isinstance(fault, ValueError) else f"{text[:_LONGEST]!r} is no time of the format {fmt.text}"
    return instants, faults


def _read_all(column: Column, fmt: TimeFormat) -> NDArray[np.int64] | None:
    """Return the instants where all texts have a usual form, which Arrow reads at once; None for the way text by text."""
    if not len(column.texts):
        return np.empty(0, np.int64)
    if fmt.text == "iso" and (column.kinds <= STRING).all() and pc.all(pc.match_substring_regex(column.texts, _FORM_OF_ISO)).as_py():
        if fmt.zone is not None and pc.any(pc.ends_with(column.texts, "Z")).as_py():
            return None
        try:
            instants: NDArray[np.int64] = pc.utf8_rtrim(column.texts, "Z").cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        return shift_to_utc(instants, fmt.zone)
    unit = int(UNITS.get(fmt.text, 0))
    if unit and (column.kinds <= NUMBER).all() and pc.all(pc.match_substring_regex(column.texts, _WHOLE)).as_py():
        whole = column.texts.cast(pa.int64()).to_numpy()
        if (np.abs(whole) < END_OF_TIME // unit).all():
            scaled: NDArray[np.int64] = whole * unit
            return scaled
    return None


def read_iso(text: str) -> Micros:
    """Return the instant of an ISO 8601 time; T may be a space, seconds and the time of day may be left out.

    Raises: ValueError.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return instant(text)  # it may be an xsd:dateTime of a far year
    day, minute, second, zone = match.groups()
    if zone and zone != "Z":
        zone = zone[:3] + ":" + (zone[3:].lstrip(":") or "00")
    return instant(f"{day}T{minute or '00:00'}{second or ':00'}{zone or 'Z'}")


def read_epoch(text: str, unit: Decimal, *, rounds: bool = False) -> Micros:
    """Return the instant of a number of units since 1970, each of `unit` microseconds.

    Raises: ValueError, InvalidOperation.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a number of {len(text)} characters is no time")
    micros = Decimal(text) * unit
    if not micros.is_finite() or abs(micros) >= END_OF_TIME:
        raise ValueError(f"{text!r} is beyond the years that instants reach; numbers as great look like microseconds or nanoseconds")
    if rounds:
        return int((micros + Decimal("0.5")).to_integral_value(ROUND_FLOOR))
    if micros != int(micros):
        raise ValueError(finer_fault(text))
    return int(micros)


__all__ = ["NAMED_FORMATS", "UNITS", "TimeFormat", "read_epoch", "read_iso", "read_time_format", "read_times", "read_zone", "shift_to_utc"]
