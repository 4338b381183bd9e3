"""This module explains why a registered query has found nothing so far: beside its pattern, by its state, its
registration, and the watermarks.

Its events are examined as if all streams had finished. If that finds something, they are examined again without those
that came late, then without those that came before the registration. What still finds something waits for time, or
for the runner.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.messages import END_OF_TIME, Micros
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from pipeline.diagnosis.clocks import describe_clock
from pipeline.diagnosis.diagnosis import Question, diagnose
from pipeline.diagnosis.evaluation.probing import Prober
from pipeline.diagnosis.evaluation.sample import Sample
from pipeline.diagnosis.model import FOUND, NOTHING, Diagnosis, Examined, Reason
from pipeline.diagnosis.wording import shorten, write_duration
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration, Stream

MOST_FACTS = 200_000
"""With more background triples than this, a diagnosis would take too long."""


@dataclass(frozen=True, slots=True)
class Live:
    """Says how a query stands: its solutions so far, the entries that are not applied to it yet, and the streams that
    it rests on.

    `held` names the declared sources for which the events of a stream wait.
    """

    registration: Registration
    solutions: int
    lag: int
    streams: Mapping[str, Stream]
    held: Mapping[str, list[str]]
    now: Micros


def diagnose_live(asked: Question, live: Live) -> Diagnosis:
    """Return why a registered query has found nothing, or that it has found something."""
    registration, sample = live.registration, asked.sample
    if (count := sum(triples.count("\n") for _, triples in asked.setting.facts)) > MOST_FACTS:
        reason = Reason("background-too-large", f"the background has {count:,} triples, which are too many for a diagnosis", "run epsparql trial")
        return Diagnosis(asked.name, NOTHING, Examined(len(sample)), (), reason)
    if live.solutions:
        return replace(diagnose(asked), state=FOUND, reason=None)
    if registration.state in ("failed", "paused"):
        remedy = "resume it" if registration.state == "paused" else "register it again"
        why = f": {registration.reason}" if registration.reason else ""
        return Diagnosis(
            asked.name, NOTHING, Examined(len(sample)), (), Reason(f"query-{registration.state}", f"the query is {registration.state}{why}", remedy)
        )
    if (late := _explain_all_late(sample, live)) is not None:
        return Diagnosis(asked.name, NOTHING, Examined(len(sample), int(sample.end[0]), int(sample.end[-1]), sample.bounded), (), late)
    found = diagnose(asked)
    if found.state != FOUND:
        return found
    return replace(found, state=NOTHING, reason=_explain_time(asked, live))


def _explain_all_late(sample: Sample, live: Live) -> Reason | None:
    """Explain that all events of a stream that were examined came late, by the event that brought the watermark to
    its place.
    """
    for name in sample.names:
        rows, stream = sample.of_stream(name), live.streams.get(name)
        if not rows.any() or stream is None or stream.watermark is None:
            continue
        late = sample.late & rows
        in_time = rows & ~late
        if int(late.sum()) * 2 <= int(rows.sum()) or (in_time.any() and int(sample.offsets[in_time].max()) > int(sample.offsets[late].min())):
            continue
        count = int(late.sum())
        message = (
            f"{count:,} of the last {int(rows.sum()):,} events of the stream <{name}> came late: its watermark stands at {iso(stream.watermark)}"
        )
        if in_time.any():
            latest = int(np.flatnonzero(in_time)[np.argmax(sample.end[in_time])])
            message += f" since the event {_write_event(sample, latest)} at {iso(int(sample.end[latest]))}"
        clock = describe_clock(stream.watermark, live.now)
        remedy = "set the stream's max_ahead, so that such events are refused, and create the stream anew" if clock else "set the stream's max_delay"
        return Reason("all-late", message + (f", which is {clock}" if clock else ""), remedy)
    return None


def _write_event(sample: Sample, row: int) -> str:
    return " ".join(shorten(sample.get_column(name).terms[sample.get_column(name).codes[row]]) for name in "spo")


def _explain_time(asked: Question, live: Live) -> Reason:
    """Explain why a query whose pattern has solutions has given none."""
    sample, registration = asked.sample, live.registration
    if not _finds(asked, in_time := ~sample.late):
        count = int(sample.late.sum())
        message = f"the pattern has solutions, but only with events that came late; {count:,} of {len(sample):,} did"
        return Reason("late", message, "set max_delay of the stream to the time by which its events are out of order")
    first = registration.registered if registration.reads_from is None else registration.reads_from
    if not _finds(asked, in_time & (sample.offsets >= first)):
        message = f"the pattern has solutions, but only with events from before the query was registered{_write_clock(registration)}"
        return Reason("began-after", message, "register it with from=beginning, or send events again")
    if (reason := _explain_watermark(asked, live)) is not None:
        return reason
    if live.lag:
        return Reason("not-evaluated", f"{live.lag:,} entries of the log are not evaluated yet", "wait, and look at /ready and the query's lag")
    return Reason("time-waits", "the pattern has solutions, which wait for time to pass", "send later events, or set idle_timeout of the stream")


def _write_clock(registration: Registration) -> str:
    return f" at {iso(registration.at)}" if registration.at else ""


def _finds(asked: Question, wanted: NDArray[np.bool_]) -> bool:
    return bool(wanted.any()) and diagnose(replace(asked, sample=asked.sample.select(wanted))).state == FOUND


def _explain_watermark(asked: Question, live: Live) -> Reason | None:
    """Explain that solutions end after the watermark of a stream, or wait for time after it."""
    waiting = {
        name: live.streams[name]
        for name in asked.sample.names
        if name in live.streams and not live.streams[name].finished and live.streams[name].watermark
    }
    unfed = [name for name in asked.parsed.query.streams if name not in live.streams or live.streams[name].watermark is None]
    if unfed and not asked.setting.rules:
        message = f"the pattern has solutions, which wait for the stream <{unfed[0]}>: it has no event yet, so time does not pass on it"
        return Reason("watermark-waits", message, f"send an event to <{unfed[0]}>, or leave the stream out of the query")
    if not waiting:
        return None
    name = min(waiting, key=lambda each: _watermark(waiting[each]))
    stream, since = waiting[name], ""
    if stream.arrived is not None:
        since = f", since the last event arrived {write_duration(max(live.now - stream.arrived, 0))} ago"
    held = live.held.get(name, [])
    where = f"the watermark of the stream <{name}> is at {iso(_watermark(stream))}{since}"
    if held:
        message = (
            f"the pattern has solutions, which wait for time: {where}, and the source{'s' if len(held) > 1 else ''} {', '.join(held[:3])} hold it"
        )
        return Reason("watermark-waits", message, "let these sources send, or set idle_timeout of the stream")
    needed = _find_first_end(asked, live)
    if needed is not None and needed < _watermark(stream):
        return None
    message = f"the pattern has solutions, which wait for time: {where}"
    remedy = "send later events to it, finish it, or set idle_timeout, so that time passes in silence"
    return Reason("watermark-waits", message + (f", and max_delay is {write_duration(stream.max_delay)}" if stream.max_delay else ""), remedy)


def _watermark(stream: Stream) -> Micros:
    return -END_OF_TIME if stream.watermark is None else stream.watermark


def _find_first_end(asked: Question, live: Live) -> Micros | None:
    """Return the first end of a solution, as of finished streams."""
    query = asked.parsed.query
    assert not isinstance(query, a.BackgroundRule), "a static rule reads no events"
    found = Prober(query, asked.setting, asked.sample, float("inf")).run_probes([query.pattern], asked.setting.policy)
    rows = found[0].list_rows() if found else []
    return min((row.end for row in rows), default=None)
