"""This module finds times that look like numbers of another unit, such as seconds that were read as milliseconds."""

from datetime import UTC, datetime, timedelta

from engine.messages import Micros

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Micros = 86_400_000_000
_EARLIEST: Micros = 11_323 * _DAY
"""Times before 2001 are no reason to think of another unit."""
_WINDOWS = ((1_000, None, 366 * _DAY), (1_000_000, 400 * _DAY, _DAY), (1_000_000_000, 400 * _DAY, _DAY))
"""Each has a factor between units, and how far before (None: since 2001) and after the clock a time must lie in the other unit.

Time that is simulated from 1970 on passes the narrow windows within a minute.
"""
_TOO_SMALL = {
    1_000: "seconds that were read as milliseconds",
    1_000_000: "seconds that were read as microseconds",
    1_000_000_000: "seconds that were read as nanoseconds",
}


def describe_wrong_unit(at: Micros, now: Micros) -> str | None:
    """Return what a time looks like that would be near the clock in another unit; None for other times."""
    for factor, before, after in _WINDOWS:
        earliest = _EARLIEST if before is None else max(_EARLIEST, now - before)
        if earliest <= at * factor <= now + after:
            return _name_unit(_TOO_SMALL[factor], at * factor, "epoch_s")
        if earliest <= at // factor <= now + after:
            return _name_unit("milliseconds that were read as seconds", at // factor, "epoch_ms")
    return None


def _name_unit(what: str, meant: Micros, time_format: str) -> str:
    day = (_EPOCH + timedelta(microseconds=meant)).date()
    return f"times look like {what}, of {day}: set time_format of the mapping to {time_format}, or convert the times"
