"""Trials with their comparison, and replays with ids, are the same in slices."""

from dataclasses import replace
from io import BytesIO
from itertools import count
from pathlib import Path

import pytest

from engine.messages import Register
from pipeline.replay.input_files import NamedBody
from pipeline.replay.query_files import NamedFile, QueryFile
from pipeline.replay.replay import Doubt, Replay, run
from pipeline.slices import plan
from pipeline.slices.live_work import LiveWork
from pipeline.trials.execution import TrialStatus, run_trial
from pipeline.trials.plan import NEW, OLD, EnginePlan, TrialPlan, TrialRange, Watched
from tests.pipeline.slices.test_operators import RUNS, random_bodies
from tests.support.feeds import PREFIXES, SECOND, select
from tests.support.slices import written_log


@pytest.fixture(autouse=True)
def _slices_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SLICE_EVENTS", 50)


def tried(
    data: Path, place: Path, engines: tuple[EnginePlan, ...], bounds: TrialRange, threads: int
) -> tuple[TrialStatus, dict[str, list[str]], int]:
    """The last status of a trial, the solutions that it kept (of several queries, they stand piece by piece), and how
    many pieces it told of.
    """
    place.mkdir()
    told: list[TrialStatus] = []
    status = run_trial(TrialPlan(str(data), str(place), bounds, engines, ("default",), 10_000, 0, threads), told.append)
    return status, {file.name: sorted(file.read_text().splitlines()) for file in place.iterdir()}, len(told)


@pytest.mark.parametrize("bounds", [TrialRange(0, 0), TrialRange(0, 0, 100 * SECOND, 500 * SECOND), TrialRange(60, 0)])
def test_a_trial_in_slices_is_the_same_trial(tmp_path: Path, bounds: TrialRange) -> None:
    """One query against another, and a rule whose reader is compared."""
    old, new = RUNS["keyed SEQ"], RUNS["keyed SEQ"].replace("20", "30")
    rule = f"{PREFIXES}CONSTRUCT {{ ?s :D ?b }} INTO STREAM <d> WHERE {{ {{ ?s :A ?a }} SEQ {{ ?s :B ?b }} WITHIN 9 }}"
    reader = f"{PREFIXES}SELECT * FROM STREAM <d> WHERE {{ {{ ?s :D ?a }} SEQ {{ ?s :D ?b }} WITHIN 30 }}"
    with written_log({}, random_bodies(900), ["default"]) as (data, _, first):
        until = first + 301
        bounds = replace(bounds, first=max(bounds.first, first), until=until)
        numbers = count(until)

        def entry(name: str, text: str) -> Register:
            return Register(next(numbers), name, text)

        pair = entry("q", old), entry("q", new)
        one = (EnginePlan(pair, (Watched(pair[0].offset, "q", OLD), Watched(pair[1].offset, "q", NEW))),)
        reading = entry("q", reader)
        rules = entry("r", rule), entry("r", rule.replace("WITHIN 9", "WITHIN 12"))
        sides = tuple(
            EnginePlan((each, reading), (Watched(each.offset, "r", side), Watched(reading.offset, "q", side)))
            for each, side in zip(rules, (OLD, NEW), strict=True)
        )
        for k, engines in enumerate((one, sides)):
            whole, kept, pieces = tried(data, tmp_path / f"{k} whole", engines, bounds, 1)
            sliced, also, more = tried(data, tmp_path / f"{k} sliced", engines, bounds, 3)
            assert (replace(sliced, rows=whole.rows), also) == (whole, kept), "with an end in time, rows beyond it may be read"
            assert pieces == 1
            assert more > 1
            assert min(sum(found) for found in zip(*whole.counts.values(), strict=True) if sum(found)) > 10
            assert whole.unbounded == {}


def test_a_trial_of_a_query_without_a_bound_says_so(tmp_path: Path) -> None:
    with written_log({}, random_bodies(300), ["default"]) as (data, _, first):
        registration = Register(first + 101, "q", select("A SEQ B"))
        engines = (EnginePlan((registration,), (Watched(registration.offset, "q", NEW),)),)
        status, _, pieces = tried(data, tmp_path / "place", engines, TrialRange(first, first + 101), 3)
    assert pieces == 1
    assert status.unbounded["q"].startswith("a join")


def test_work_over_the_past_leaves_a_busy_server_all_cores_but_one() -> None:
    now_s = 0.0
    with written_log({}, random_bodies(30), ["default"]) as (data, _, _):
        watch = LiveWork(data, 4, lambda: now_s)
        assert watch.count_threads() == 4
        watch._position = 0  # as if the events had come since
        now_s = 1.0
        assert watch.count_threads() == 1
        now_s = 2.5
        assert watch.count_threads() == 1
        now_s = 3.5
        assert watch.count_threads() == 4


def replayed(slices: int | None, *texts: str, doubts: list[Doubt] | None = None) -> str:
    lines = [
        f'{{"s":"<http://example.org/s{k % 7}>","p":"<http://example.org/{"ABC"[k % 3]}>","o":"{k % 5}","at":"2026-01-01T00:{k // 60:02}:{k % 60:02}Z"}}'
        for k in range(600)
    ]
    body = NamedBody(
        "", Path("events.ndjson"), "\n".join(lines).replace('"o":"', '"o":"\\"').replace('","at"', '\\"","at"').encode(), "application/x-ndjson"
    )
    queries = [QueryFile(Path(f"q{k}.rq"), text) for k, text in enumerate(texts)]
    out = BytesIO()
    background: list[NamedFile] = []
    replay = Replay(queries, [body], background, slices=slices)
    run(replay, "ndjson", out, lambda: 0, lambda _: None, (lambda _: None) if doubts is None else doubts.append)
    return out.getvalue().decode()


def test_a_replay_in_slices_has_the_same_solutions_and_ids() -> None:
    texts = RUNS["keyed SEQ"], RUNS["RANGE and STEP"].replace("SUM", "COUNT"), RUNS["WITHOUT"]
    whole = replayed(1, *texts)
    assert whole.count("\n") > 100
    assert replayed(7, *texts) == whole
    assert replayed(None, *texts) == whole


def test_a_replay_that_cannot_be_cut_says_why_and_goes_on() -> None:
    doubts: list[Doubt] = []
    text = select("A SEQ B")
    assert replayed(3, text, doubts=doubts) == replayed(1, text)
    assert str(doubts[0]).startswith("the log is evaluated as a whole, because queries look back without a bound: q0: a join")
    assert replayed(None, text) == replayed(1, text)
