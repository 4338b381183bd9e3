"""This module finds the format of times from how they are written."""

import re
from collections.abc import Sequence

from epsparql.deferred_methods import dataclass

_ORDERED = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})")
_DATES = (
    (re.compile(r"\d{4}-\d{1,2}-\d{1,2}"), "%Y-%m-%d"),
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2}"), "%Y/%m/%d"),
    (re.compile(r"\d{4}\.\d{1,2}\.\d{1,2}"), "%Y.%m.%d"),
    (re.compile(r"(?:19|20)\d{6}"), "%Y%m%d"),
    (re.compile(r"(?:19|20)\d{8}"), "%Y%m%d%H"),
    (re.compile(r"(?:19|20)\d{10}"), "%Y%m%d%H%M"),
    (re.compile(r"(?:19|20)\d{12}"), "%Y%m%d%H%M%S"),
    (re.compile(r"[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4}"), "%a, %d %b %Y"),
    (re.compile(r"[A-Za-z]{3} [A-Za-z]{3} +\d{1,2} \d{4}"), "%a %b %d %Y"),
    (re.compile(r"\d{1,2}/[A-Za-z]{3}/\d{4}"), "%d/%b/%Y"),
    (re.compile(r"\d{1,2}-[A-Za-z]{3}-\d{4}"), "%d-%b-%Y"),
    (re.compile(r"\d{1,2}-[A-Za-z]{3}-\d{2}"), "%d-%b-%y"),
    (re.compile(r"\d{1,2} [A-Za-z]{3} \d{4}"), "%d %b %Y"),
    (re.compile(r"\d{1,2}\. ?[A-Za-z]{3} \d{4}"), "%d. %b %Y"),
    (re.compile(r"\d{1,2} [A-Za-z]{4,} \d{4}"), "%d %B %Y"),
    (re.compile(r"[A-Za-z]{3} \d{1,2}, \d{4}"), "%b %d, %Y"),
    (re.compile(r"[A-Za-z]{4,} \d{1,2}, \d{4}"), "%B %d, %Y"),
)  # fmt: skip
_TIME = re.compile(r"(\d{1,2}:\d\d)(:\d\d)?([.,]\d{1,9})?( ?[AaPp][Mm])?( ?[+-]\d\d:?\d\d|Z| UTC| GMT| [+-]\d{4} UTC)?")
_SHORT_TIMES = ((re.compile(r"(?:[01]\d|2[0-3])[0-5]\d[0-5]\d"), "%H%M%S"), (re.compile(r"(?:[01]\d|2[0-3])[0-5]\d"), "%H%M"))
_BETWEEN = re.compile(r"(?<=\d)(, |[T ]+|[:-](?=\d\d:\d\d))(?=\d)")
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"


@dataclass(frozen=True, slots=True)
class Form:
    """Holds a format of strptime.

    `{order}` in it stands for day and month where their order is open, with `mark` between them.
    """

    text: str
    mark: str = ""
    has_date: bool = True
    has_time: bool = True

    def ordered(self, order: str) -> str:
        """Return the format with day and month in this order."""
        day_and_month = f"%d{self.mark}%m" if order == DAY_FIRST else f"%m{self.mark}%d"
        return self.text.replace("{order}", day_and_month)


def find_form(text: str) -> Form | None:
    """Return how a time is written; None where it is none that is known."""
    whole = _date_form(text)
    if whole is not None:
        return whole
    clock = _time_form(text)
    if clock is not None:
        return Form(clock, has_date=False)
    for between in _BETWEEN.finditer(text):
        date, time = _date_form(text[: between.start()]), _time_form(text[between.end() :])
        if date is not None and time is not None:
            return Form(f"{date.text}{between[0]}{time}", date.mark)
    return None


def _date_form(text: str) -> Form | None:
    ordered = _ORDERED.fullmatch(text)
    if ordered is not None:
        mark = ordered[2]
        return Form(f"{{order}}{mark}{'%Y' if len(ordered[4]) == 4 else '%y'}", mark, has_time=False)
    return next((Form(fmt, has_time="%H" in fmt) for pattern, fmt in _DATES if pattern.fullmatch(text)), None)


def _time_form(text: str) -> str | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    _, second, fraction, half, zone = found.groups()
    clock = ("%I:%M" if half else "%H:%M") + (":%S" if second else "") + (f"{fraction[0]}%f" if fraction else "")
    marks = (" %p" if half.startswith(" ") else "%p") if half else ""
    if zone is None:
        return clock + marks
    if zone.endswith(("UTC", "GMT")):
        return clock + marks + (" %z UTC" if len(zone) > 4 else zone)
    return clock + marks + (" %z" if zone.startswith(" ") else "%z")


def find_short_time(texts: Sequence[str]) -> str | None:
    """Return the format of times of day without colons, such as 0805."""
    return next((fmt for pattern, fmt in _SHORT_TIMES if all(pattern.fullmatch(text) for text in texts)), None)


def find_order(texts: Sequence[str], mark: str) -> set[str]:
    """Return the orders of day and month that all of these texts allow."""
    numbers = re.compile(rf"(\d{{1,2}}){re.escape(mark)}(\d{{1,2}}){re.escape(mark)}")
    pairs = [(int(found[1]), int(found[2])) for text in texts if (found := numbers.search(text)) is not None]
    orders = {DAY_FIRST, MONTH_FIRST}
    if any(first > 12 for first, _ in pairs):
        orders.discard(MONTH_FIRST)
    if any(second > 12 for _, second in pairs):
        orders.discard(DAY_FIRST)
    return orders
