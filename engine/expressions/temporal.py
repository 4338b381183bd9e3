"""dateTimes, dates and durations of XML Schema lie on the proleptic Gregorian calendar, exact to the last digit."""

import re
from decimal import Decimal
from fractions import Fraction
from math import ceil

from engine.expressions import numeric
from engine.expressions.values import DateTime, Day, Duration, ExactMicros, ExpressionError, Number, NumericType, TimeOfDay
from epsparql.terms import XSD, Literal

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_DATE = r"(?P<year>-?(?:[1-9][0-9]{4,8}|[0-9]{4}))-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
_DATE_TIME = re.compile(_DATE + "T" + _TIME + _ZONE)
_TIME_OF_DAY = re.compile(_TIME + _ZONE)
_DAY = re.compile(_DATE + _ZONE)
_DURATION = re.compile(
    r"(?P<sign>-)?P(?=[0-9T])(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)(?:\.(?P<fraction>[0-9]+))?S)?)?"
)
_REFERENCES = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
"""Durations compare as they do from each of these months (XML Schema part 2, 3.2.6.2)."""
_LONGEST = 1000
"""The lexical form of a dateTime, time or duration has at most so many characters; a longer one has no value, and is
none of a calculation.
"""
_BEYOND = 10**_LONGEST


# ---------------------------------------------------------------- the calendar
def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01. Source: H. Hinnant, chrono-compatible low-level date algorithms."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day: the inverse of `days_from_civil`."""
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return year + era * 400 + (month >= 10), month + (3 if month < 10 else -9), day


def _days(match: re.Match[str]) -> int | None:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    days = days_from_civil(year, month, day)
    return days if civil_from_days(days)[1] == month else None  # the 30th of February is in March


def _zone(text: str | None) -> int | None:
    """Return the minutes east of UTC. Raises: ValueError for a zone that XML Schema does not have."""
    if text is None:
        return None
    if text == "Z":
        return 0
    hours, minutes = int(text[1:3]), int(text[4:6])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise ValueError(text)
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)


# ---------------------------------------------------------------- lexical forms
def instant(lexical: str) -> DateTime | None:
    """Return the instant of an xsd:dateTime; None if it is none or too long."""
    match = _DATE_TIME.fullmatch(lexical) if len(lexical) <= _LONGEST else None
    days = match and _days(match)
    time = match and _read_time(match)
    return None if days is None or time is None else DateTime(days * DAY + time.micros, time.zone)


def time_of_day(lexical: str) -> TimeOfDay | None:
    match = _TIME_OF_DAY.fullmatch(lexical) if len(lexical) <= _LONGEST else None
    found = match and _read_time(match)
    midnight = 0 if found is None else -(found.zone or 0) * MINUTE
    return found if found is None or found.micros - midnight < DAY else TimeOfDay(midnight, found.zone)  # 24:00:00 is 00:00:00


def _read_time(match: re.Match[str]) -> TimeOfDay | None:
    hour, minute, second, fraction = int(match["hour"]), int(match["minute"]), int(match["second"]), _read_fraction(match["fraction"])
    last = (hour, minute, second, fraction) == (24, 0, 0, 0)
    if not last and (hour > 23 or minute > 59 or second > 59):
        return None
    try:
        zone = _zone(match["zone"])
    except ValueError:
        return None
    return TimeOfDay(hour * HOUR + (minute - (zone or 0)) * MINUTE + second * SECOND + fraction, zone)


def _read_fraction(digits: str | None) -> ExactMicros:
    """Return the microseconds of a second's fraction digits."""
    found, finer = int((digits or "")[:6].ljust(6, "0")), (digits or "")[6:].rstrip("0")
    return found + Fraction(int(finer), 10 ** len(finer)) if finer else found


def day(lexical: str) -> Day | None:
    match = _DAY.fullmatch(lexical)
    days = match and _days(match)
    if match is None or days is None:
        return None
    try:
        zone = _zone(match["zone"])
    except ValueError:
        return None
    return Day(days * DAY - (zone or 0) * MINUTE, zone)


def duration(lexical: str) -> Duration | None:
    """Return the duration of an xsd:duration; None if it is none or too long."""
    match = _DURATION.fullmatch(lexical) if len(lexical) <= _LONGEST else None
    if match is None:
        return None

    def part(name: str) -> int:
        return int(match[name] or 0)

    seconds = ((part("days") * 24 + part("hours")) * 60 + part("minutes")) * 60 + part("seconds")
    sign = -1 if match["sign"] else 1
    return Duration(sign * (part("years") * 12 + part("months")), sign * (seconds * SECOND + _read_fraction(match["fraction"])))


def year_month(lexical: str) -> Duration | None:
    return duration(lexical) if "D" not in lexical and "T" not in lexical else None


def day_time(lexical: str) -> Duration | None:
    """Return the duration of an xsd:dayTimeDuration: neither years nor months may be written."""
    date = lexical.partition("T")[0]
    return duration(lexical) if "Y" not in date and "M" not in date else None


def instant_micros(lexical: str) -> int | None:
    """Return the first microsecond since 1970 that is not before an xsd:dateTime, None if the text is none."""
    found = instant(lexical)
    return None if found is None else ceil(found.micros)


def duration_micros(lexical: str) -> int | None:
    """Return the microseconds of a day-time duration's lexical form; None if it is no duration, has months or is finer."""
    found = duration(lexical)
    return None if found is None or found.months or isinstance(found.micros, Fraction) else found.micros


def format_instant(micros: ExactMicros, zone: int | None = 0) -> str:
    """Return the xsd:dateTime of an instant in its zone, none for None; in UTC the canonical one:
    `2013-01-30T16:00:00Z`.
    """
    local = micros + (zone or 0) * MINUTE
    return f"{_format_days(local // DAY)}T{format_time(TimeOfDay(micros, zone))}"


def format_time(value: TimeOfDay) -> str:
    rest = (value.micros + (value.zone or 0) * MINUTE) % DAY
    text = f"{rest // HOUR:02}:{rest % HOUR // MINUTE:02}:{format_seconds(rest % MINUTE, 2)}"
    return text if value.zone is None else text + format_zone(value.zone)


def format_day(value: Day) -> str:
    zone = value.zone
    text = _format_days((value.micros + (zone or 0) * MINUTE) // DAY)
    return text if zone is None else text + format_zone(zone)


def format_zone(zone: int) -> str:
    return "Z" if zone == 0 else f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02}:{abs(zone) % 60:02}"


def _format_days(days: int) -> str:
    year, month, day_of_month = civil_from_days(days)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day_of_month:02}"


def format_seconds(micros: ExactMicros, width: int = 1) -> str:
    """Return microseconds as seconds, whose whole part has at least `width` digits, with all digits of the fraction."""
    seconds, fraction = divmod(micros, SECOND)
    if isinstance(fraction, Fraction):
        return f"{seconds:0{width}}" + numeric.lexical(_seconds(fraction)).removeprefix("0")
    return f"{seconds:0{width}}" + (f".{fraction:06}".rstrip("0") if fraction else "")


def format_duration(value: Duration) -> str:
    """Return the canonical lexical form: `PT3H`, `PT0S`, `-P1Y2M`."""
    months, micros = abs(value.months), max(value.micros, -value.micros)
    sign = "-" if value.months < 0 or value.micros < 0 else ""
    date = "".join(f"{n}{unit}" for n, unit in ((months // 12, "Y"), (months % 12, "M"), (micros // DAY, "D")) if n)
    time = "".join(f"{n}{unit}" for n, unit in ((micros % DAY // HOUR, "H"), (micros % HOUR // MINUTE, "M")) if n)
    if rest := micros % MINUTE:
        time += f"{format_seconds(rest)}S"
    return f"{sign}P{date}" + (f"T{time}" if time else "") if date or time else "PT0S"


def instant_literal(micros: ExactMicros) -> Literal:
    return Literal(format_instant(micros), XSD + "dateTime")


def duration_literal(value: Duration) -> Literal:
    return Literal(format_duration(value), XSD + "duration")


# ---------------------------------------------------------------- arithmetic and order
def shifted(when: DateTime, by: Duration, sign: int) -> DateTime:
    """Return a dateTime plus or minus (`sign` -1) a day-time duration, in the same zone, or without one.

    Raises: ExpressionError for a duration with months, or for a dateTime whose lexical form is too long.
    """
    micros = when.micros + sign * day_time_micros(by)
    if isinstance(micros, Fraction) and len(format_instant(micros, when.zone)) > _LONGEST:
        raise ExpressionError
    return DateTime(_simplify(micros), when.zone)


def _simplify(micros: ExactMicros) -> ExactMicros:
    return micros.numerator if micros.denominator == 1 else micros


def day_time_micros(value: Duration) -> ExactMicros:
    """Return the length of a day-time duration. Raises: ExpressionError for a duration with months."""
    if value.months:
        raise ExpressionError
    return value.micros


def day_time_duration(micros: ExactMicros) -> Duration:
    """Return a calculated day-time duration. Raises: ExpressionError for one whose lexical form is too long."""
    if max(abs(micros.numerator), micros.denominator) >= _BEYOND:
        raise ExpressionError
    value = Duration(0, _simplify(micros))
    if len(format_duration(value)) > _LONGEST:
        raise ExpressionError
    return value


def total_seconds(value: Duration) -> Number:
    """Return a day-time duration's seconds, an xsd:decimal. Raises: ExpressionError for a duration with months."""
    return _seconds(day_time_micros(value))


def _seconds(micros: ExactMicros) -> Number:
    return Number(NumericType.DECIMAL, numeric.exact_decimal(Fraction(micros, SECOND)))


def multiply(value: Duration, by: Number) -> Duration:
    """Return a day-time duration so many times. Raises: ExpressionError, also for NaN and infinities."""
    try:
        return day_time_duration(day_time_micros(value) * Fraction(by.value))
    except (ValueError, OverflowError) as error:
        raise ExpressionError from error


def divide(value: Duration, by: Number) -> Duration:
    """Return a part of a day-time duration, whose seconds are rounded as the quotient of decimals is; of infinity
    none is left.

    Raises: ExpressionError, also for NaN and zero.
    """
    seconds = total_seconds(value)
    if by.value != by.value:
        raise ExpressionError
    if by.value in (float("inf"), float("-inf")):
        return Duration(0, 0)
    quotient = numeric.divide(seconds, Number(NumericType.DECIMAL, Decimal(by.value)))
    return day_time_duration(Fraction(quotient.value) * SECOND)


def order_durations(left: Duration, right: Duration) -> ExactMicros | None:
    """Compare durations: negative, zero or positive as left is less, equal or greater; None where XML Schema leaves
    it open.
    """
    if left.months == right.months:
        return left.micros - right.micros
    differences = [_from_reference(left, *start) - _from_reference(right, *start) for start in _REFERENCES]
    agree = all(difference < 0 for difference in differences) or all(difference > 0 for difference in differences)
    return differences[0] if agree else None


def _from_reference(value: Duration, year: int, month: int) -> ExactMicros:
    total = year * 12 + month - 1 + value.months
    return days_from_civil(total // 12, total % 12 + 1, 1) * DAY + value.micros


def order_days(left: Day, right: Day) -> ExactMicros | None:
    """Compare dates, with results as of `order_durations`.

    A date without a zone may lie 14 hours to either side.
    """
    difference: ExactMicros = left.micros - right.micros
    if (left.zone is None) == (right.zone is None):
        return difference
    return difference if difference > 14 * HOUR or difference < -14 * HOUR else None
