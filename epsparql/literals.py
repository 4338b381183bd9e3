"""This module checks a query's parts: the lexical forms of its constants, durations, what a pattern binds, how deep
it goes.
"""

import re
from datetime import date
from decimal import Decimal
from itertools import islice

from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD, Literal

MAX_LENGTH, MAX_WORDS = 1 << 18, 20_000
"""A query's text has at most this many characters, and this many words and signs: it takes a second to read so many."""
MAX_TREE_DEPTH = 200
"""At most this many nodes stand above one another in the algebra: every consumer may then recurse within Python's
limit.
"""
MAX_MICROS = 2**59
"""This is the longest duration: the sum of any instant and two of these stays below the end of time, 2**61 µs."""

_WORD = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''"
    r"|\"(?:[^\"\\\n\r]|\\.)*+\"|'(?:[^'\\\n\r]|\\.)*+'|<[^<>\"{}|^`\\\s]*+>|[\w:.@?$%\\-]++|#[^\n\r]*+|\S",
    re.DOTALL,
)
"""The pattern matches a string, IRI, word, comment or sign, about as the grammar has them."""
_DURATION = re.compile(
    r"(-)?P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(years?|months?|weeks?|days?|hours?|minutes?|mins?|seconds?|secs?|[YMWDHS])", re.I)
_DATETIME = re.compile(
    r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-4]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]+))?"
    r"(?:Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_AND_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ tT]([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]+)?)?\s*(Z|z|[+-][0-9]{2}:?[0-9]{2})?")
_SIMPLE = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN"),
    XSD + "float": re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN"),
    XSD + "boolean": re.compile(r"true|false|0|1"),
}
_EXAMPLES = {XSD + "integer": "42", XSD + "decimal": "4.2", XSD + "double": "4.2e1", XSD + "float": "4.2e1", XSD + "boolean": "true"}
DURATION_FORM = "a form such as PT10S, PT1H30M or P1D"
INSTANT_FORM = "a form such as 2026-01-31T12:00:00Z"
_LONGEST_GUESS = 100
"""A text that may have been meant as a duration has at most this many characters: each part is looked at with all
that stands before it.
"""
_SECONDS = {"W": 604_800, "D": 86_400, "H": 3_600, "M": 60, "S": 1}


@dataclass(frozen=True, slots=True)
class LexicalFault:
    """Says what is wrong with a lexical form, and what was probably meant (or the form expected)."""

    message: str
    expected: str
    fatal: bool


def word_beyond(text: str) -> int | None:
    """Return where the first word stands that is one too many; None if there is none."""
    found = next(islice(_WORD.finditer(text), MAX_WORDS, None), None)
    return None if found is None else found.start()


# ---------------------------------------------------------------- lexical forms
def show_lexical(lexical: str) -> str:
    """Return a lexical form as a message shows it."""
    return lexical if len(lexical) <= 60 else f"{lexical[:60]}..."


def literal_fault(literal: Literal) -> LexicalFault | None:
    """Return the fault of a constant: fatal for durations and dateTimes, a doubt for numbers and booleans."""
    lexical = literal.lexical.strip(" \t\r\n")  # XSD collapses white space before it looks
    short = literal.datatype.removeprefix(XSD)
    if literal.datatype == XSD + "duration":
        return None if _DURATION.fullmatch(lexical) else LexicalFault(f'"{show_lexical(lexical)}" is no xsd:duration', likely_duration(lexical), True)
    if literal.datatype == XSD + "dateTime":
        return _datetime_fault(lexical)
    simple = _SIMPLE.get(literal.datatype)
    if simple is None or simple.fullmatch(lexical):
        return None
    pointed = lexical.replace(",", ".")
    legal = pointed if simple.fullmatch(pointed) else _EXAMPLES[literal.datatype]
    return LexicalFault(f'"{show_lexical(lexical)}" is no xsd:{short}: every comparison with it is an error', f'"{legal}"', False)


def _datetime_fault(lexical: str) -> LexicalFault | None:
    found = _DATETIME.fullmatch(lexical)
    if found is None or not _is_instant(found):
        return LexicalFault(f'"{show_lexical(lexical)}" is no xsd:dateTime', likely_datetime(lexical), True)
    return None


def _is_instant(found: re.Match[str]) -> bool:
    """Return whether the month has that day (the calendar repeats after 400 years), and 24:00:00 is exact."""
    if found[4] == "24" and (found[5] + found[6] + (found[7] or "")).strip("0"):
        return False
    try:
        date(int(found[1][-4:]) % 400 + 2000, int(found[2]), int(found[3]))
    except ValueError:
        return False
    return True


def likely_datetime(lexical: str) -> str:
    """Return the instant that was probably meant: a date begins at midnight, and without a zone it is UTC."""
    found = _DATE_AND_TIME.fullmatch(f"{lexical}T00:00" if _DATE.fullmatch(lexical) else lexical)
    if found:
        zone = (found[4] or "Z").upper()
        if len(zone) == 5:
            zone = f"{zone[:3]}:{zone[3:]}"
        guess = f"{found[1]}T{found[2]}{found[3] or ':00'}{zone}"
        legal = _DATETIME.fullmatch(guess)
        if legal is not None and _is_instant(legal):
            return guess
    return INSTANT_FORM


def likely_duration(lexical: str) -> str:
    """Return the duration that was probably meant: its parts put into order, with the T that parts of a day need."""
    if len(lexical) > _LONGEST_GUESS:
        return DURATION_FORM
    found = list(_DURATION_PART.finditer(lexical))
    rest = _DURATION_PART.sub("", lexical).upper().strip("PT,+- ")
    units = [_unit(lexical, part, index, found) for index, part in enumerate(found)]
    if not found or rest or any(len(part[1]) > 12 or ("." in part[1] and unit not in _SECONDS) for part, unit in zip(found, units, strict=True)):
        return DURATION_FORM
    months = {"Y": "Y", "MONTH": "M"}
    calendar = "".join(part[1] + months[unit] for part, unit in zip(found, units, strict=True) if unit in months)
    seconds = sum((Decimal(part[1]) * _SECONDS[unit] for part, unit in zip(found, units, strict=True) if unit in _SECONDS), Decimal(0))
    return ("-" if lexical.startswith("-") else "") + _duration_text(calendar, seconds)


def _unit(lexical: str, part: re.Match[str], index: int, parts: list[re.Match[str]]) -> str:
    """Return the unit of a part: an M before any T, day or hour counts months where P stands in front, and minutes
    otherwise.
    """
    name = part[2].upper()
    if name.startswith("MONTH"):
        return "MONTH"
    if name != "M":
        return name[0]
    before = lexical[: part.start()].upper()
    following = parts[index + 1][2].upper()[0] if index + 1 < len(parts) else ""
    months = "Y" in before or ("P" in before and not set("TDH") & set(before) and following != "S")
    return "MONTH" if months else "M"


def _duration_text(months: str, seconds: Decimal) -> str:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    time = "".join(f"{amount.normalize():f}{unit}" for amount, unit in ((hours, "H"), (minutes, "M"), (left, "S")) if amount)
    day = f"{days:f}D" if days else ""
    if not months and not day and not time:
        return "PT0S"
    return f"P{months}{day}" + (f"T{time}" if time else "")


def duration_micros(lexical: str) -> int | None:
    """Return the microseconds of a day-time duration; None if it is no duration, has months or is finer than a
    microsecond.
    """
    found = _DURATION.fullmatch(lexical.strip(" \t\r\n"))
    if found is None or (found[2] or "").strip("0") or (found[3] or "").strip("0"):
        return None
    if any(len(part or "") > 15 for part in found.groups()):
        return MAX_MICROS + 1
    seconds = int(found[4] or 0) * 86_400 + int(found[5] or 0) * 3_600 + int(found[6] or 0) * 60
    return _micros(seconds, found[7] or "0", bool(found[1]))


def _micros(whole: int, seconds: str, negative: bool) -> int | None:
    units, _, fraction = seconds.partition(".")
    if fraction[6:].strip("0"):
        return None
    micros = (whole + int(units)) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return -micros if negative else micros


def duration_text(micros: int) -> str:
    """Return the canonical lexical form of a day-time duration that is not negative."""
    return _duration_text("", Decimal(micros) / 1_000_000)


# ---------------------------------------------------------------- patterns
