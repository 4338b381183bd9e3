"""This module converts xsd:dateTime as it is nearly always written, to microseconds since 1970 and back.

The full form is in pipeline/formats/batches/timestamps.py.
"""

import numpy as np

from pipeline.formats.native.swar import NONE, native

NO_TIME = np.int64(-(1 << 63))
_ZERO, _PLUS, _MINUS, _COLON, _DOT, _T, _Z = (np.uint8(ord(c)) for c in "0+-:.TZ")
_SECOND, _DAY = 1_000_000, 86_400 * 1_000_000
_DIGITS = (_ZERO, np.uint8(ord("9")))
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@native.inlined
def _number(text, i, digits):
    """Return the number of so many digits at `i`, NONE if they are none."""
    found = 0
    for k in range(digits):
        digit = np.int64(text[i + k]) - 48
        if digit < 0 or digit > 9:
            return NONE
        found = 10 * found + digit
    return found


@native.inlined
def days_from_civil(year, month, day):
    """Return the days from 1970-01-01 to a date. Source: H. Hinnant, chrono-compatible low-level date algorithms."""
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@native.inlined
def civil_from_days(days):
    """Return year, month and day. Source: as above."""
    days += 719468
    era = days // 146097
    of_era = days - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, of_year - (153 * shifted + 2) // 5 + 1


@native.jit
def instant(text, i, end):
    """Return the microseconds of text[i:end]; NO_TIME for any but the usual shape.

    That shape has four digits of the year, times to 23:59:59, at most six digits of a fraction, Z or a zone.
    """
    if end - i < 19 or text[i + 4] != _MINUS or text[i + 7] != _MINUS or text[i + 10] != _T or text[i + 13] != _COLON or text[i + 16] != _COLON:
        return NO_TIME
    year, month, day = _number(text, i, 4), _number(text, i + 5, 2), _number(text, i + 8, 2)
    hour, minute, second = _number(text, i + 11, 2), _number(text, i + 14, 2), _number(text, i + 17, 2)
    if year < 0 or month < 1 or month > 12 or day < 1 or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return NO_TIME
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _MONTH_DAYS[month - 1] + (1 if leap and month == 2 else 0):
        return NO_TIME
    seconds, micros, i = hour * 3600 + minute * 60 + second, 0, i + 19
    if i < end and text[i] == _DOT:
        i, digits = i + 1, 0
        while i + digits < end and _number(text, i + digits, 1) != NONE:
            digits += 1
        if digits == 0 or digits > 6:
            return NO_TIME
        micros = _number(text, i, digits) * 10 ** (6 - digits)
        i += digits
    offset = _zone(text, i, end)
    if offset == NO_TIME:
        return NO_TIME
    return days_from_civil(year, month, day) * _DAY + (seconds - offset) * _SECOND + micros


@native.inlined
def _zone(text, i, end):
    """Return the seconds east of UTC, NO_TIME for no zone. No seconds are written as Z, or not at all."""
    if i == end or (i + 1 == end and text[i] == _Z):
        return 0
    if i + 6 != end or (text[i] != _PLUS and text[i] != _MINUS) or text[i + 3] != _COLON:
        return NO_TIME
    hours, minutes = _number(text, i + 1, 2), _number(text, i + 4, 2)
    if hours < 0 or minutes < 0 or minutes > 59 or hours * 60 + minutes > 14 * 60:
        return NO_TIME
    return (hours * 3600 + minutes * 60) * (-1 if text[i] == _MINUS else 1)


@native.inlined
def put_number(out, at, value, digits):
    """Write a number of `digits` digits and return the place after it."""
    for k in range(digits):
        out[at + digits - 1 - k] = _ZERO + np.uint8(value % 10)
        value //= 10
    return at + digits


@native.jit
def put_instant(out, at, micros):
    """Write an instant as `iso` of pipeline/formats/batches/timestamps.py does, and return the place after it."""
    days = micros // _DAY
    rest = micros - days * _DAY
    year, month, day = civil_from_days(days)
    if year < 0:
        out[at] = _MINUS
        at, year = at + 1, -year
    digits = 4
    while 10**digits <= year:
        digits += 1
    at = put_number(out, at, year, digits)
    out[at] = _MINUS
    at = put_number(out, at + 1, month, 2)
    out[at] = _MINUS
    at = put_number(out, at + 1, day, 2)
    out[at] = _T
    seconds = rest // _SECOND
    at = put_number(out, at + 1, seconds // 3600, 2)
    out[at] = _COLON
    at = put_number(out, at + 1, seconds // 60 % 60, 2)
    out[at] = _COLON
    at = put_number(out, at + 1, seconds % 60, 2)
    fraction, digits = rest - seconds * _SECOND, 6
    if fraction:
        while fraction % 10 == 0:
            fraction, digits = fraction // 10, digits - 1
        out[at] = _DOT
        at = put_number(out, at + 1, fraction, digits)
    out[at] = _Z
    return at + 1
