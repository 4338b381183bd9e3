"""This module finds what looks like a wrong clock in the times of events: another unit, another zone, or the time of
a whole body.
"""

from collections.abc import Sequence

from engine.messages import Micros
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.wording import write_duration
from pipeline.formats.batches.timestamps import iso

_EARLY: Micros = 631_152_000_000_000  # 1990-01-01
_FAR: Micros = 4_102_444_800_000_000  # 2100-01-01
_HALF_HOUR: Micros = 1_800_000_000
_TEN_MINUTES: Micros = 600_000_000
_DAY: Micros = 86_400_000_000
_SHIFTS = 28  # half hours: zones are at most 14 h from UTC
_LONGEST_WINDOW: Micros = 4 * _HALF_HOUR


def tell_clocks(case: Examination) -> str:
    """Return in words that the events of a stream stand at times that nobody means, "" where none do."""
    sample = case.sample
    for name in sample.names:
        ends = sample.end[sample.of_stream(name)]
        if not len(ends):
            continue
        if int(ends[-1]) < _EARLY:
            return f"the events of the stream <{name}> are at {iso(int(ends[-1]))} and before: were seconds taken for milliseconds?"
        if int(ends[0]) > _FAR:
            return f"the events of the stream <{name}> are at {iso(int(ends[0]))} and later: were milliseconds taken for seconds?"
        if int(ends[0]) < _EARLY or int(ends[-1]) > _FAR:
            return f"the events of the stream <{name}> are at {iso(int(ends[0]))} to {iso(int(ends[-1]))}: do their sources count in different units?"
    return ""


def describe_clock(instant: Micros, now: Micros) -> str:
    """Return how far an instant lies ahead of the clock, "" where it does not by much."""
    return f"{write_duration(instant - now)} ahead of the clock: do its sources count in other units?" if instant - now > _DAY else ""


def tell_shift(gaps: Sequence[Micros], window: Micros | None = None) -> str:
    """Return in words that two sides are apart by whole hours, or half ones, and at most a window more; "" where they
    are not.
    """
    most = min(max(window or _HALF_HOUR, _TEN_MINUTES), _LONGEST_WINDOW)
    fitting = {shift: sum(0 <= gap - shift * _HALF_HOUR <= most for gap in gaps) for shift in range(-_SHIFTS, _SHIFTS + 1)}
    shift = max(fitting, key=lambda each: (fitting[each], each % 2 == 0, each))
    if abs(shift) < 2 or fitting[shift] * 2 < max(len(gaps), 1):
        return ""
    if fitting[shift] == 1 and (len(gaps) > 1 or gaps[0] - shift * _HALF_HOUR > _TEN_MINUTES):
        return ""  # a single pair says less
    each_time = " each time" if fitting[shift] > 1 else ""
    return f"they are apart by about {abs(shift) / 2:g} h{each_time}: does one source send its local time without a zone?"
