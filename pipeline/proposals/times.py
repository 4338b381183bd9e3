"""This module proposes the time of rows: the field or fields, the format, the order of day and month, and the zone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.timestamps import iso
from pipeline.mapping.columns import BOOLEAN, NUMBER
from pipeline.mapping.time_formats import UNITS, TimeFormat, read_zone
from pipeline.proposals.choices import Choices
from pipeline.proposals.date_forms import DAY_FIRST, MONTH_FIRST, Form, find_form, find_order, find_short_time
from pipeline.proposals.fields import Field, split_words

_NAMES = frozenset(
    ["time", "timestamp", "ts", "date", "datetime", "at", "when", "t", "zeit", "datum", "uhrzeit", "zeitstempel", "zeitpunkt", "epoch",
     "millis", "ms", "nanos", "nano", "valid", "seen", "reported", "changed", "updated", "modified", "created", "observed", "measured",
     "recorded", "sampled", "received", "utc", "tst", "stamp", "clock", "heure", "fecha", "hora", "jour", "dt"]
)  # fmt: skip
_NAME_ENDS = ("time", "date", "timestamp", "zeit", "datum", "datetime", "stamp")
_LIFECYCLE = frozenset(
    ["created", "create", "modified", "updated", "update", "expires", "expiry", "expire", "start", "begin", "started", "end", "ended",
     "next", "published", "ingested", "processed", "birth", "due", "until", "deadline", "build", "built", "install", "installed", "boot",
     "uptime", "version"]
)  # fmt: skip
_OBSERVED = frozenset(
    ["obs", "observed", "observation", "measured", "measurement", "sampled", "recorded", "event", "phenomenon"]
)  # fmt: skip
_TIME_ENDS = _OBSERVED | frozenset(["at", "on", "time", "date", "timestamp", "datetime", "dt", "utc", "ts", "ms", "us", "s", "epoch", "millis"])
_PARTS = (
    ("year", "yy", "yyyy", "yr"), ("month", "mm", "mo"), ("day", "dd", "dy"), ("hour", "hh", "hr"), ("minute", "min", "mn", "mm"),
    ("second", "sec", "ss")
)  # fmt: skip
_ZONE_NAMES = frozenset(("timezone", "time_zone", "tz", "zone", "zeitzone"))
_ZONE_IN_NAME = re.compile(r"(?:UTC|GMT)\s*(?:([+-])(\d{1,2})(?::?(\d\d))?)?")
_NUMBER = re.compile(r"\d{6,20}(?:\.\d{1,12})?")
_FIRST = 631_152_000_000_000  # 1990
_DAY = 86_400_000_000


class AmbiguousDates(FormatError):
    """Day and month of the rows' times are in either order.

    `day_first` and `month_first` are the two readings of a time.
    """

    def __init__(self, name: str, text: str, day_first: str, month_first: str) -> None:
        message = f"{name}: {text!r} is {day_first} with the day first, and {month_first} with the month first, and no row of the file tells which"
        super().__init__("ambiguous-date", message)
        self.args = (name, text, day_first, month_first)
        self.readings = {DAY_FIRST: day_first, MONTH_FIRST: month_first}


@dataclass(frozen=True, slots=True)
class TimeGuess:
    """Holds the field or fields of the time and their format.

    `orders` has the orders of day and month that are possible, if that is open.
    """

    fields: tuple[Field, ...]
    format: str
    form: Form | None = None
    orders: tuple[str, ...] = ()
    rounds: bool = False
    is_naive: bool = False
    rank: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def title(self) -> str:
        return " and ".join(repr(each.path) for each in self.fields)

    @property
    def choice(self) -> str:
        """Return how a choice names the field or fields."""
        return " and ".join(each.path for each in self.fields)


def guess_time(fields: Sequence[Field], choices: Choices) -> tuple[dict[str, Any], list[str], tuple[Field, ...]]:
    """Return the words of a mapping about time, what was guessed, and the fields that are used.

    Raises: AmbiguousDates, InvalidMapping.
    """
    found = sorted(_candidates(fields, choices), key=lambda guess: guess.rank)
    comments = list(_implausible(fields, choices))
    if not found:
        return {}, [*comments, "no field looks like a time: events get the time of arrival; name the field with time and time_format"], ()
    chosen = choices.choose_value("time", [each.choice for each in found])
    guess = next(each for each in found if each.choice == chosen)
    others = [each for each in found if each is not guess]
    order, told = _settle_order(guess, choices)
    text = guess.form.ordered(order) if guess.form is not None and order else guess.format
    names = [each.path for each in guess.fields]
    words: dict[str, Any] = {"time": names[0] if len(names) == 1 else names, "time_format": text} | ({"round": "microsecond"} if guess.rounds else {})
    instead = f"; the alternative is {others[0].title}" if others else ""
    comments.insert(0, f"time is {guess.title}, read as {text}{instead}")
    if guess.rounds:
        comments.append('times finer than a microsecond are rounded by "round": "microsecond"; without it they are refused')
    zone, from_file = _find_zone(guess, fields, choices)
    if zone:
        words["time_zone"] = zone
    if guess.is_naive:
        choices.record_choice("time_zone", zone)
    return words, [*comments, *told, *_tell_zone(guess, zone, from_file=from_file)], guess.fields


# ---------------------------------------------------------------- candidates
def _candidates(fields: Sequence[Field], choices: Choices) -> Iterator[TimeGuess]:
    """Yield each field, and each pair of a date and a time of day, that can be the time of all rows."""
    whole = [each for each in fields if each.is_whole and each.is_scalar]
    dates, clocks = list[TimeGuess](), list[TimeGuess]()
    for place, each in enumerate(whole):
        guess = _guess_field(each, choices)
        if guess is None:
            continue
        if guess.form is not None and not guess.form.has_date:
            clocks.append(guess)
            continue
        is_date = guess.form is not None and not guess.form.has_time
        if is_date:
            dates.append(guess)
        yield _ranked(guess, place, is_date=is_date)
    for date in dates[:1]:
        clock = next((each for each in clocks if each.fields[0].is_around == date.fields[0].is_around), None) or _find_clock(whole, date)
        if clock is not None:
            yield _join(date, clock, whole.index(date.fields[0]))
    parts = _find_parts(whole)
    if parts:
        fmt = " ".join(("%Y", "%m", "%d", "%H", "%M", "%S")[: len(parts)])
        yield TimeGuess(parts, fmt, is_naive=True, rank=(0, 0, 1, 0, 1, 0, 0, 0))


def _ranked(guess: TimeGuess, place: int, *, is_date: bool) -> TimeGuess:
    """Return the guess with its rank: the row's own time first, one with a telling name, and one that changes from
    row to row.
    """
    first = guess.fields[0]
    is_constant = first.rows > 1 and len(first.texts) == 1
    rank = (first.is_around, not _is_named(first), _lateness(first.words), len(guess.orders) > 1, is_date, len(first.steps), is_constant, place)
    return TimeGuess(guess.fields, guess.format, guess.form, guess.orders, guess.rounds, guess.is_naive, rank)


def _lateness(words: Sequence[str]) -> int:
    """Return 0 for the name of an observation's time.

    Return 2 for a time of the record, such as its creation, or when a collector saw it.
    """
    named = set(words)
    if named & _OBSERVED:
        return 0 if words[-1] in _TIME_ENDS else 2
    return 2 if named & _LIFECYCLE else 1


def _is_named(each: Field) -> bool:
    return is_time_name(each.last_name)


def is_time_name(name: str) -> bool:
    """Tell whether a field's name says that it is a time."""
    return bool(_NAMES & set(split_words(name))) or name.lower().endswith(_NAME_ENDS)


def _guess_field(each: Field, choices: Choices) -> TimeGuess | None:
    numeric = bool((each.values.kinds == NUMBER).all()) or all(_NUMBER.fullmatch(text) for text in each.texts)
    if numeric:
        found = _guess_epoch(each, choices) if _is_named(each) or each.steps[-1] == 0 else None
        if found is not None or (each.values.kinds == NUMBER).all():
            return found
    rounds = any(re.search(r"[.,]\d{7}", text) for text in each.texts)
    for rounding in (False, True) if rounds else (False,):
        fmt = TimeFormat(rounds=rounding)
        if _fits(each.texts, fmt, choices):
            is_date = all(len(text) == len("2026-01-01") for text in each.texts)
            return TimeGuess(
                (each,), "iso", Form("%Y-%m-%d", has_time=False) if is_date else None, (), rounding, not all(map(fmt.names_zone, each.texts))
            )
    form = find_form(each.texts[0])
    if form is None or (form.text.startswith("%Y%m%d") and each.texts[0].isdigit() and not _is_named(each)):
        return None
    return _guess_form(each, form, choices, rounds=rounds)


def _guess_form(each: Field, form: Form, choices: Choices, *, rounds: bool) -> TimeGuess | None:
    """Return the guess for a field whose first time has this form, if all have it."""
    orders = tuple(
        order
        for order in (sorted(find_order(each.texts, form.mark)) if form.mark else ("",))
        if _fits(each.texts, TimeFormat(form.ordered(order), rounds=rounds), choices, dated=form.has_date)
    )
    if not orders:
        return None
    return TimeGuess((each,), form.text, form, orders if form.mark else (), rounds, not TimeFormat(form.text).names_zone(each.texts[0]))


def _fits(texts: Sequence[str], fmt: TimeFormat, choices: Choices, *, dated: bool = True) -> bool:
    """Tell whether all texts are times of a format, from 1990 to tomorrow."""
    read = fmt.find_reader()
    try:
        return all(not dated or _FIRST <= at <= choices.now + 2 * _DAY for at in map(read, texts))
    except (ValueError, ArithmeticError):
        return False


def _guess_epoch(each: Field, choices: Choices) -> TimeGuess | None:
    """Return the unit since 1970 in which all numbers lie between 1990 and tomorrow."""
    for unit in UNITS:
        exact = TimeFormat(unit)
        if _fits(each.texts, TimeFormat(unit, rounds=True), choices):
            return TimeGuess((each,), unit, rounds=not _fits(each.texts, exact, choices))
    return None


def _implausible(fields: Sequence[Field], choices: Choices) -> Iterator[str]:
    """Yield the fields that are named as times and whose numbers lie beyond 1990 to tomorrow in every unit."""
    for each in fields:
        numbers = each.texts and all(_NUMBER.fullmatch(text) for text in each.texts)
        if numbers and _is_named(each) and not (each.values.kinds == BOOLEAN).any() and _guess_field(each, choices) is None:
            yield f"{each.path!r} is not taken as a time: {each.texts[0]} lies beyond 1990 to tomorrow"


# ---------------------------------------------------------------- several fields
def _find_clock(whole: Sequence[Field], date: TimeGuess) -> TimeGuess | None:
    """Return a field with times of day without colons, such as 0805."""
    for each in whole:
        short = find_short_time(each.texts) if _is_named(each) and each is not date.fields[0] else None
        if short is not None:
            return TimeGuess((each,), short, Form(short, has_date=False), is_naive=True)
    return None


def _join(date: TimeGuess, clock: TimeGuess, place: int) -> TimeGuess:
    """Return the guess for a date in one field and the time of day in another one."""
    assert date.form is not None
    assert clock.form is not None
    text = f"{date.form.text} {clock.form.text}"
    if date.format == "iso" and clock.form.text in ("%H:%M", "%H:%M:%S") and clock.fields[0].matches(r"^\d\d:"):
        text = "iso"
    form = Form(text, date.form.mark)
    joined = TimeGuess((*date.fields, *clock.fields), text, form if date.form.mark else None, date.orders, clock.rounds, clock.is_naive)
    return _ranked(joined, place, is_date=False)


def _find_parts(whole: Sequence[Field]) -> tuple[Field, ...]:
    """Return the fields of year, month, day and so on, of which the first three are there."""
    found = list[Field]()
    for names in _PARTS:
        each = next((one for one in whole if one.last_name.lower() in names and one not in found and one.matches(r"^[0-9]{1,4}$")), None)
        if each is None:
            break
        found.append(each)
    fits = len(found) >= 3 and found[0].matches(r"^(?:19|20)[0-9]{2}$")
    return tuple(found) if fits else ()


# ---------------------------------------------------------------- day and month, and the zone
def _settle_order(guess: TimeGuess, choices: Choices) -> tuple[str, list[str]]:
    """Return the order of day and month, "" where that is no question, and what was guessed. Raises: AmbiguousDates."""
    if guess.form is None or not guess.form.mark:
        return "", []
    text = " ".join(each.texts[0] for each in guess.fields)
    if len(guess.orders) > 1:
        choices.record_choice("order", choices.order or DAY_FIRST, guess.orders)
    if choices.order is not None and choices.order in guess.orders:
        return choices.order, [f"day and month are read {choices.order}, as you say"]
    if choices.order is not None:
        return guess.orders[0], [
            f"day and month are {guess.orders[0]}: the file has days after the 12th, or times beyond tomorrow in the other order"
        ]
    if len(guess.orders) == 1:
        return guess.orders[0], [
            f"day and month are {guess.orders[0]}: in the other order a row has no such month, or a time beyond 1990 to tomorrow"
        ]
    readings = [_read_as(guess, order, text) for order in (DAY_FIRST, MONTH_FIRST)]
    if guess.form.mark == ".":
        return DAY_FIRST, [f"{text!r} is {readings[0]}, since dates with points have the day first; with the month first it is {readings[1]}"]
    raise AmbiguousDates(guess.title, text, *readings)


def _read_as(guess: TimeGuess, order: str, text: str) -> str:
    assert guess.form is not None
    return iso(TimeFormat(guess.form.ordered(order), rounds=guess.rounds).find_reader()(text))[:10]


def _find_zone(guess: TimeGuess, fields: Sequence[Field], choices: Choices) -> tuple[str, bool]:
    """Return the zone of times that name none, "" for UTC, and whether the file names it. Raises: InvalidMapping."""
    if choices.zone is not None:
        read_zone(choices.zone)
        return (choices.zone, False) if guess.is_naive else ("", False)
    if not guess.is_naive:
        return "", False
    for each in fields:
        if "_".join(each.words) in _ZONE_NAMES and each.is_whole and len(each.texts) == 1:
            try:
                read_zone(each.texts[0])
            except InvalidMapping:
                continue
            return each.texts[0], True
    return _zone_in_name(guess), True


def _zone_in_name(guess: TimeGuess) -> str:
    """Return the offset that a field's name has, such as +01:00 of `Zeit (UTC+1)`; "" for none."""
    for each in guess.fields:
        found = _ZONE_IN_NAME.search(each.last_name)
        if found is not None and found[1]:
            return f"{found[1]}{int(found[2]):02d}:{found[3] or '00'}"
    return ""


def _tell_zone(guess: TimeGuess, zone: str, *, from_file: bool) -> list[str]:
    if not guess.is_naive:
        return []
    if zone:
        return [f"times without a zone are local to {zone}{', which the file names' if from_file else ''}; without time_zone they are UTC"]
    return ["times name no zone and are read as UTC; a time zone, such as Europe/Vienna, makes them local"]


__all__ = ["AmbiguousDates", "guess_time", "is_time_name"]
