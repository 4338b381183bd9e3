"""This module finds what looks like a wrong clock in the times of events: another unit, another zone, or the time of a whole body."""

from collections import Counter
from collections.abc import Sequence

from engine.messages import Micros
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.wording import write_duration
from pipeline.formats.batches.timestamps import iso

_EARLY: Micros = 631_152_000_000_000  # 1990-01-01
_FAR: Micros = 4_102_444_800_000_000  # 2100-01-01
_HALF_HOUR: Micros = 1_800_000_000
_DAY: Micros = 86_400_000_000
_NEAR = 0.1


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


def tell_shift(gaps: Sequence[Micros]) -> str:
    """Return in words that two sides are apart by nearly whole hours each time, "" where they are not."""
    shifts = Counter(round(gap / _HALF_HOUR) for gap in gaps)
    if not shifts:
        return ""
    shift, _ = min(shifts.items(), key=lambda each: (-each[1], abs(each[0])))
    near = [gap for gap in gaps if abs(gap - shift * _HALF_HOUR) <= _NEAR * _HALF_HOUR]
    if shift == 0 or abs(shift) * _HALF_HOUR > _DAY * 14 // 24 or len(near) < 2 or len(near) * 2 < len(gaps):
        return ""
    return f"they are apart by about {abs(shift) / 2:g} h each time: does one source send its local time without a zone?"
