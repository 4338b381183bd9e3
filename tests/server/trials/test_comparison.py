"""Two sides' solutions are compared like multisets, whenever they come, and are counted by time."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.solutions.result_kinds import Bindings
from pipeline.trials.comparison import KINDS, MOST_SLOTS, Comparison, SolutionTimeline
from pipeline.trials.plan import NEW, OLD, TrialRange, Watched
from tests.support.logs import solutions

SIDES = [Watched(1, "q1", NEW), Watched(1, "q1", OLD)]
ROWS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["<a>", "<b>", None]), st.sampled_from(["<a>", None]))).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)


def compared(directory: Path, sides: list[list[tuple[int, str | None, str | None]]], bounds: TrialRange, step: int) -> Comparison:
    """Bring solutions to a comparison as time passes, `step` instants at a time."""
    with Comparison(directory, 1_000, bounds, dict.fromkeys(SIDES, Bindings(("x", "y")))) as comparison:
        for begin in range(0, 13, step):
            for watched, rows in zip(SIDES, sides, strict=True):
                found = [(1, 0, end, [x, y]) for end, x, y in rows if begin <= end < begin + step]
                if found:
                    comparison.add(watched, solutions(*found))
            comparison.compare_until(begin + step // 2)
        comparison.compare_until(13)
    return comparison


@given(new=ROWS, old=ROWS, step=st.integers(1, 13), since=st.none() | st.integers(0, 12), before=st.none() | st.integers(0, 13))
def test_sides_are_multisets(
    new: list[tuple[int, str | None, str | None]], old: list[tuple[int, str | None, str | None]], step: int, since: int | None, before: int | None
) -> None:
    bounds = TrialRange(0, 0, since, before)
    sides = [Counter(row for row in rows if (since or 0) <= row[0] < (13 if before is None else before)) for rows in (new, old)]
    expected = [sides[0] - sides[1], sides[1] - sides[0], sides[0] & sides[1]]
    with TemporaryDirectory() as directory:
        comparison = compared(Path(directory), [new, old], bounds, step)
        kept = [[json.loads(line) for line in (Path(directory) / kind).read_text().splitlines()] for kind in KINDS]
    assert comparison.counts == {"q1": [each.total() for each in expected]}
    assert [Counter(_row(line["end"], line["binding"]) for line in lines) for lines in kept] == [
        Counter(_row(f"1970-01-01T00:00:00.{end:06d}".rstrip("0").rstrip(".") + "Z", _bound(x, y)) for end, x, y in each.elements())
        for each in expected
    ]
    assert [sum(slot[kind] for slot in comparison.timeline.slots.values()) for kind in range(3)] == [each.total() for each in expected]


def _bound(x: str | None, y: str | None) -> dict[str, dict[str, str]]:
    return {name: {"type": "uri", "value": term[1:-1]} for name, term in (("x", x), ("y", y)) if term is not None}


def _row(end: str, binding: dict[str, dict[str, str]]) -> tuple[str, str]:
    return end, json.dumps(binding, sort_keys=True)


@given(ends=st.lists(st.integers(-(2**55), 2**55), min_size=1, max_size=2 * MOST_SLOTS, unique=True))
def test_slots_are_few_and_count_all(ends: list[int]) -> None:
    timeline = SolutionTimeline()
    for end in ends:
        timeline.add(0, np.array([end]), np.array([2]))
    assert len(timeline.slots) <= MOST_SLOTS
    assert timeline.slots == {slot: [2 * count, 0, 0] for slot, count in Counter(end // timeline.width for end in ends).items()}
