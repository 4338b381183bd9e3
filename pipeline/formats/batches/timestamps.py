"""This module converts between xsd:dateTime and instants of microseconds (semantics.md section 1)."""

import re
from functools import lru_cache

from engine.expressions.temporal import civil_from_days, days_from_civil
from engine.messages import END_OF_TIME, Micros

_DATE_TIME = re.compile(
    r"(-?(?:[1-9][0-9]{4,}|[0-9]{4})-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))?"
)
MICROSECOND = "microsecond"
"""The setting `round` may have this value: times are rounded to whole microseconds."""
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@lru_cache(maxsize=1 << 16)
def instant(text: str, rounds: bool = False) -> Micros:
    """Return the microseconds since 1970 of an xsd:dateTime; UTC where it has no zone.

    With `rounds`, a time finer than a microsecond becomes the nearest one, the later of two. Raises: ValueError
    saying what is wrong.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is no xsd:dateTime such as 2026-01-01T00:00:01Z")
    date, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups()
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    if (int(hour) > 23 and seconds != 86_400) or int(minute) > 59 or int(second) > 59 or (fraction and int(hour) == 24 and int(fraction)):
        raise ValueError(f"{text[:64]!r} has no such time of day")
    if sign:
        seconds -= _offset(text, sign, int(zone_hour), int(zone_minute))
    micros = int((fraction or "")[:6].ljust(6, "0"))
    if fraction and fraction[6:].strip("0"):
        if not rounds:
            raise ValueError(finer_fault(text))
        micros += fraction[6] >= "5"
    at = _day_number(date) * _DAY + seconds * _SECOND + micros
    if abs(at) >= END_OF_TIME:
        raise ValueError(f"{text[:64]!r} is beyond the years that instants reach")
    return at


def finer_fault(text: str) -> str:
    """Return what is wrong with a time that is no whole number of microseconds."""
    rounds = f'"round": "{MICROSECOND}" of the stream or mapping, ?round={MICROSECOND} or replay --round {MICROSECOND}'
    return f"{text[:64]!r} is finer than a microsecond; {rounds} rounds it"


def _offset(text: str, sign: str, hours: int, minutes: int) -> int:
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise ValueError(f"{text[:64]!r} has no such time zone; they reach from -14:00 to +14:00")
    return (hours * 3600 + minutes * 60) * (-1 if sign == "-" else 1)


@lru_cache(maxsize=1 << 12)
def _day_number(date: str) -> int:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar."""
    text, month, day = date.rsplit("-", 2)
    year, m, d = int(text), int(month), int(day)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= m <= 12 or not 1 <= d <= _MONTH_DAYS[m - 1] + (leap and m == 2):
        raise ValueError(f"there is no date {date}")
    return days_from_civil(year, m, d)


@lru_cache(maxsize=1 << 12)
def _date(days: int) -> str:
    year, month, day = civil_from_days(days)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def iso(at: Micros) -> str:
    """Return an instant as `2026-01-01T00:00:01Z`; a fraction stands only if there is one, without trailing zeros."""
    days, rest = divmod(at, _DAY)
    seconds, micros = divmod(rest, _SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{_date(days)}T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"
