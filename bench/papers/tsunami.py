"""Figure 4 of the EP-SPARQL paper: readings of the sea against predictions from averages of the hours before.

The paper's data, station 46073 from 2005 to 2010, are not at hand. Others are read where `--data` has them; without
it heights are generated.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.measurement import UnusableInput, WrongCount
from bench.papers.datasets import read_buoy, read_tideless
from bench.papers.feeds import BEGIN, SECOND, Event, Result, batches, iri, number_term, run, value_of
from bench.papers.figures import Chart, Figure, Row, Size
from engine.messages import Micros

FIGURES = {
    "003-4": Figure(
        "Tsunami detection histogram",
        "EP-SPARQL paper, Figure 4, test 3",
        "station",
        "detections",
        "The paper's weights, an average an hour, predictions for 5.25 minutes ahead, and a threshold of 30 mm.",
        "The paper has 44,310 readings of station 46073. Here each reading up to 5.25 minutes after an average is compared with its prediction, "
        "and the average is that of one hour.",
        Chart.POINTS,
        "-0.04 to 0.08 m",
        ("hours after the earthquake, or after the first reading", "difference, m"),
        (-0.030, 0.030),
    ),
}
WEIGHTS = "1.16818457031250", "-0.28197558593750", "0.14689746093750", "-0.03310644531250"
THRESHOLD_M = 0.030
CHILE: Micros = 1_267_252_451_000_000  # 2010-02-27T06:34:11Z
_HOUR: Micros = 3_600 * SECOND
_MEAN = "{{ SELECT ?buoy (AVG(?h) AS ?h{k}) {{ ?buoy :height ?h }} GROUP BY ?buoy WINDOW [RANGE PT1H STEP PT1H] }}"
QUERY = f"""SELECT ?buoy ?off WHERE {{
  {" MEETS ".join(_MEAN.format(k=k) for k in (3, 2, 1, 0))}
  SEQ {{ ?buoy :height ?h }}
  FILTER(getDURATION() <= "PT4H5M15S"^^xsd:duration)
  BIND(?h - ({" + ".join(f"{weight} * ?h{k}" for k, weight in enumerate(WEIGHTS))}) AS ?off)
}}"""
"""Four averages, each of the hour after the one before, and a reading up to 5.25 minutes after the last."""
_EARTHQUAKE = "earthquake of 27 February 2010, station 32412, without the tide"
_GENERATED, _WAVE, _WAVE_HOURS = "generated", 0.6, 3


def measure(size: Size) -> Iterator[Row]:
    """Yield a row for each station, and the differences that the chart shows. Raises: UnusableInput, WrongCount."""
    yield Row("003-4", "46073, 2005 to 2010", "46073", None, 3, {"readings": 44_310, "note": "within 3 hours of 2010-03-23"})
    hours = size.of(3_693, 60)  # 44,316 readings
    yield from _rows(_GENERATED, _generated(hours), BEGIN, drawn=size.data is None)
    if size.data is not None:
        if not (size.data / "dart-tohoku").is_dir():
            raise UnusableInput(f"{size.data} has no folder dart-tohoku; expected the data sets that docs/paper-experiments.md names")
        yield from _rows(_EARTHQUAKE, read_tideless(size.data / "dart-32412" / "32412_notide.txt", CHILE), CHILE, drawn=True)
        for path in _buoys(size):
            yield from _rows(f"{path.name[:5]}, March 2011, with the tide", read_buoy(path), 0)


def _buoys(size: Size) -> Sequence[Path]:
    assert size.data is not None
    return sorted((size.data / "dart-tohoku").glob("[0-9]*.txt"))[: 1 if size.quick else None]


def differences(events: Sequence[Event]) -> tuple[Result, list[tuple[Micros, float]]]:
    """Return the run, and when and by how much (m) a reading differs from its prediction. Raises: WrongCount."""
    found = run({"tsunami": QUERY}, batches(events), keep=True)
    off = [(each.end, float(value_of(each.values[1] or ""))) for each in found.list_solutions("tsunami")]
    expected = _predictable(events)
    if len(off) != expected:
        raise WrongCount("papers: predictions", len(off), expected)
    return found, off


def _predictable(events: Sequence[Event]) -> int:
    """Count the readings up to 5.25 minutes after an hour, where this hour and the three before it have readings."""
    hours = {-(-event.at // _HOUR) for event in events}
    late = [divmod(event.at - 1, _HOUR) for event in events]
    return sum(rest < 315 * SECOND and all(hour - k in hours for k in range(4)) for hour, rest in late)


def _rows(series: str, events: Sequence[Event], zero: Micros, *, drawn: bool = False) -> Iterator[Row]:
    found, off = differences(events)
    over = [at for at, metres in off if abs(metres) > THRESHOLD_M]
    span_h = round((over[-1] - over[0]) / _HOUR, 2) if over else 0
    more = {"readings": len(events), "predictions": len(off), "hours_from_first_to_last": span_h, "cpu_s": round(found.cpu_s, 3)}
    yield Row("003-4", series, value_of(events[0].s), len(over), None, more)
    if drawn:
        yield from (Row("003-4", series, round((at - zero) / _HOUR, 3), round(metres, 4), None, drawn=True) for at, metres in off)


def _generated(hours: int) -> list[Event]:
    """Return a reading every five minutes: noise of 2 mm, and in the middle three hours of a wave of 60 cm."""
    rng, each = np.random.default_rng(42), 12
    heights = rng.normal(0, 0.002, hours * each)
    first = hours // 2 * each
    heights[first : first + _WAVE_HOURS * each] += _WAVE * np.sin(np.arange(_WAVE_HOURS * each) / each * 2 * np.pi * 1.6)
    return [
        Event(iri("buoy/generated"), iri("height"), number_term(f"{height:.6f}"), BEGIN + k * _HOUR // each)
        for k, height in enumerate(heights.tolist())
    ]
