"""Instants are written as xsd:dateTime in UTC, as `engine.expressions.temporal` writes them."""

import numpy as np

from engine.dictionary.native import borrowing, inlined
from engine.dictionary.native.answers.number_writer import POINT, ZERO
from epsparql.terms import XSD

_END = np.frombuffer(f'"^^<{XSD}dateTime>'.encode(), np.uint8)
SECOND = 1_000_000
DAY = 86_400 * SECOND
CENTURIES = 146_097  # days of four hundred years


@borrowing
def write_instant(text, micros):
    """Write the term of an instant, and return its length; 0 for a year before 0 or after 9999, which the host writes."""
    days, rest = micros // DAY, micros % DAY
    year, month, day = civil_date(days)
    if year < 0 or year > 9999:
        return 0
    text[0] = ord('"')
    at = write_padded(text, 1, year, 4, ord("-"))
    at = write_padded(text, at, month, 2, ord("-"))
    at = write_padded(text, at, day, 2, ord("T"))
    at = write_padded(text, at, rest // (3_600 * SECOND), 2, ord(":"))
    at = write_padded(text, at, rest // (60 * SECOND) % 60, 2, ord(":"))
    at = write_padded(text, at, rest // SECOND % 60, 2, POINT)
    if rest % SECOND:
        at = write_padded(text, at, rest % SECOND, 6, ZERO) - 1
        while text[at - 1] == ZERO:
            at -= 1
    else:
        at -= 1
    text[at] = ord("Z")
    for k in range(len(_END)):
        text[at + 1 + k] = _END[k]
    return at + 1 + len(_END)


@inlined
def write_padded(text, at, value, width, after):
    """Write a number with leading zeros and the character behind it, and return the place behind both."""
    for k in range(width - 1, -1, -1):
        text[at + k] = ZERO + value % 10
        value //= 10
    text[at + width] = after
    return at + width + 1


@borrowing
def civil_date(days):
    """Return year, month and day of a day since 1970 in the Gregorian calendar (H. Hinnant, chrono-compatible low-level date algorithms)."""
    shifted = days + 719_468
    era, of_era = shifted // CENTURIES, shifted % CENTURIES
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year + 400 * era + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1
