"""This module finds times that look like numbers of another unit, such as seconds that were read as milliseconds."""

from datetime import UTC, datetime, timedelta

from engine.messages import Micros

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Micros = 86_400_000_000
_EARLIEST: Micros = 11_323 * _DAY
"""Times before 2001 are no reason to think of another unit."""
_WINDOWS = ((1_000, None, 366 * _DAY), (1_000_000, 400 * _DAY, _DAY), (1_000_000_000, 400 * _DAY, _DAY))
"""Each has a factor between units, and how far before (None: since 2001) and after the clock a time must lie in the
other unit.

Time that is simulated from 1970 on passes the narrow windows within a minute.
"""
_UNITS = (("seconds", "epoch_s"), ("milliseconds", "epoch_ms"), ("microseconds", "epoch_us"), ("nanoseconds", "epoch_ns"))
"""These are the units of numbers, each a thousandth of the one before, with their `time_format`."""


def describe_wrong_unit(at: Micros, now: Micros) -> str | None:
    """Return what a time looks like that would be near the clock in another unit; None for other times."""
    for steps, (factor, before, after) in enumerate(_WINDOWS, 1):
        earliest = _EARLIEST if before is None else max(_EARLIEST, now - before)
        pairs = list(zip(_UNITS, _UNITS[steps:], strict=False))
        if earliest <= at * factor <= now + after:
            return _name_units(pairs, at * factor)
        if earliest <= at // factor <= now + after:
            return _name_units([(smaller, larger) for larger, smaller in pairs], at // factor)
    return None


def _name_units(pairs: list[tuple[tuple[str, str], tuple[str, str]]], meant: Micros) -> str:
    """Return which units may have been taken for which: the likeliest pair, and the others."""
    day = (_EPOCH + timedelta(microseconds=meant)).date()
    ((unit, time_format), (taken, _)), *others = pairs
    further = [f"{name} if {one} were read as {other}" for (one, name), (other, _) in others]
    choice = f" ({', or '.join(further)})" if further else ""
    return (
        f"times look like {unit} that were read as {taken}, of {day}: set time_format of the mapping to {time_format}{choice}, or convert the times"
    )
