"""Runners with one, two and four partitions: the same solutions in the same order with the same ids, and each
partition's state its own.
"""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.messages import Fail, Register, SetStream, StateChange
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogWriter, codec
from pipeline.runners import prefetch
from pipeline.runners.engine_host import EngineHost
from pipeline.runners.engine_report import read_report
from pipeline.runners.in_process import InProcessRunner
from pipeline.runners.partitions import Host, host_for
from server.registrations.quota_totals import QuotaTotals
from tests.soak import is_full
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, in slices for three partitions, and solved by one engine that reads a log without slices."""
    root = tmp_path_factory.mktemp("logs")
    for case in cases.CASES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "SLICE_ROWS", 0)
            cases.write(case, root / case, 3)
        cases.write(case, root / "solved" / case)
        run(root / "solved" / case, 1)
    return root


def copied(log: Path, data: Path) -> Path:
    shutil.copytree(log / "log", data / "log")
    return data


def run(data: Path, partitions: int | None, until: Callable[[], bool] = lambda: True, **options: Any) -> None:
    """Run until the log is solved and a condition holds."""
    runner = InProcessRunner(data, None, partitions=partitions, **options)
    runner.start()
    try:
        cases.reached(data, cases.head_of(data), 300, lambda: runner.state)
        cases.eventually(until, 60, lambda: runner.state)
    finally:
        runner.stop()


@pytest.mark.parametrize("partitions", [1, 2, 3, 4] if is_full() else [1, 4])
@pytest.mark.parametrize("case", cases.CASES)
def test_the_answers_are_those_of_one_partition(case: str, partitions: int, logs: Path, tmp_path: Path) -> None:
    run(copied(logs / case, tmp_path), partitions, max_rows=60)
    assert cases.found_in(tmp_path) == cases.found_in(logs / "solved" / case)


def test_a_quota_counts_all_partitions_and_one_entry_fails_the_query_in_all(tmp_path: Path) -> None:
    """No partition exceeds the quota of the first query, and one fails the second by itself.

    An entry stops each in all partitions.
    """
    with LogWriter(tmp_path, cases.frozen_clock, partitions=4) as log:
        totals, limits = QuotaTotals(tmp_path, log, lambda: read_report(tmp_path)), {"all": 6, "one": 5, "none": 0}
        registered = {
            name: log.append(lambda offset, name=name, most=most: Register(offset, name, cases.PAIRS.replace(":a", f":{name}"), max_goals=most))  # type: ignore[misc]
            for name, most in limits.items()
        }
        subjects = [f"<http://e/s{number}>" for number in range(8)]
        for second, (name, sent) in enumerate([("all", subjects), ("none", subjects), ("one", ["<http://e/s1>"] * 6)]):
            at = [cases.START + second * cases.SECOND + k for k in range(len(sent))]
            log.append_events("default", batch_of(sent, [f"<http://e/{name}>"] * len(sent), ['"1"'] * len(sent), None, at, at))
        run(tmp_path, 4, lambda: kept_of(tmp_path).get(registered["all"]) == len(subjects))
        for _ in range(2):  # what was said once is not said again
            totals.check(cases.found_in(tmp_path)[1])
        with closing(log.reader()) as reader:
            told = {entry.name: entry for record in reader.records(0, log.head()) if isinstance(entry := record.entry, Fail)}
            assert [type(record.entry) for record in reader.records(0, log.head())].count(Fail) == len(told)
        assert {name: entry.registered for name, entry in told.items()} == {name: registered[name] for name in ("all", "one")}
        assert "all stores 8 partial matches, more than the limit of 6 (max_partial_matches)" in told["all"].reason
        run(tmp_path, 4, lambda: kept_of(tmp_path) == {registered["none"]: len(subjects)})
        at = [cases.START + 60 * cases.SECOND]
        log.append_events("default", batch_of(subjects[:1], ["<http://e/none>"], ['"1"'], None, at, at))
        run(tmp_path, 4, lambda: kept_of(tmp_path) == {registered["none"]: 1})  # time has passed in partitions without events, too
    ended = {change.name: (change.entry, change.state, change.reason) for change in cases.found_in(tmp_path)[1]}
    assert ended == {
        "all": (told["all"].offset, "failed", told["all"].reason),
        "one": (max(registered.values()) + 3, "failed", told["one"].reason),
    }


def kept_of(data: Path) -> dict[int, int]:
    """Return how many partial matches each query keeps in all partitions."""
    report = read_report(data)
    return {} if report is None else {registered: standing.usage.goals for registered, standing in report.queries.items()}


def test_a_piece_can_be_asked_for_again(logs: Path, tmp_path: Path) -> None:
    """A task that is tried again brings the same, changes of state included."""
    data = copied(logs / "completing", tmp_path)
    head = cases.head_of(data)
    with closing(host_for(data, 2)) as host:
        first = [(piece.lo, piece.hi, piece.outcome.solutions.to_pylist(), piece.outcome.changes) for piece in host.run(0, head, 40)]
        again = [(piece.lo, piece.hi, piece.outcome.solutions.to_pylist(), piece.outcome.changes) for piece in host.run(0, head, 40)]
    assert any(changes for *_, changes in first)
    assert first == again


def test_who_stops_in_the_middle_can_go_on(logs: Path, tmp_path: Path) -> None:
    """The engines are ahead then, by what they were at when the last piece was taken."""
    data = copied(logs / "sequences", tmp_path)
    head = cases.head_of(data)
    with closing(host_for(data, 2, snapshot_weight=1000)) as host:
        whole = [(piece.lo, piece.hi, piece.outcome.solutions.to_pylist()) for piece in host.run(0, head, 40)]
    for taken in (1, 2, len(whole) - 1):
        with closing(host_for(data, 2, snapshot_weight=1000)) as host:
            with closing(host.run(0, head, 40)) as pieces:
                found = [(piece.lo, piece.hi, piece.outcome.solutions.to_pylist()) for piece, _ in zip(pieces, range(taken), strict=False)]
            found += [(piece.lo, piece.hi, piece.outcome.solutions.to_pylist()) for piece in host.run(found[-1][1], head, 40)]
        assert [solution for *_, part in found for solution in part] == [solution for *_, part in whole for solution in part]


def pieces_of(host: Host, *asked: int) -> list[tuple[int, int, list[dict[str, object]], tuple[StateChange, ...]]]:
    return [(piece.lo, piece.hi, piece.outcome.solutions.to_pylist(), piece.outcome.changes) for piece in host.run(*asked)]


@pytest.mark.parametrize("case", ["sequences", "completing", "rules"])
def test_ranges_can_be_asked_for_again_and_out_of_order(case: str, logs: Path, tmp_path: Path) -> None:
    data = copied(logs / case, tmp_path)
    head = cases.head_of(data)
    middle, later = head // 3, 2 * head // 3
    with closing(host_for(data, 2, snapshot_weight=1000)) as host:
        alone = [pieces_of(host, lo, hi, 20) for lo, hi in ((0, middle), (middle, later), (later, head))]
    for weight in (1000, 100_000_000):
        shutil.rmtree(data / "snapshots", ignore_errors=True)
        with closing(host_for(data, 2, snapshot_weight=weight)) as host:
            assert pieces_of(host, 0, middle, 20) == alone[0]
            host.sweep(0)
            for _ in range(2):
                assert pieces_of(host, middle, later, 20) == alone[1]
            host.sweep(middle)
            assert pieces_of(host, 0, middle, 20) == alone[0]
            assert pieces_of(host, later, head, 20) == alone[2]


def test_no_more_waits_than_there_is_room_for(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = copied(logs / "sequences", tmp_path)
    with closing(EngineHost(data)) as alone:
        whole = [(lo, hi) for lo, hi, *_ in pieces_of(alone, 0, cases.head_of(data), 10)]
    for pieces, size in ((3, 1 << 30), (1000, 1)):
        monkeypatch.setattr(prefetch, "PIECE_BYTES", size)
        with closing(EngineHost(data)) as host, closing(prefetch.Prefetch(host, pieces)) as course:
            course.go(0, cases.head_of(data), 10)
            for lo, hi in whole:
                piece = course.take_piece()
                assert (piece.lo, piece.hi) == (lo, hi)
                assert len(course._pieces) <= min(pieces, 1 if size == 1 else pieces)
            course.finish()


def run_until_told(data: Path, partitions: int) -> None:
    def told() -> bool:
        report = read_report(data)
        return report is not None and report.position == cases.head_of(data)

    runner = InProcessRunner(data, None, partitions=partitions)
    runner.start()
    cases.eventually(told, 300, lambda: runner.state)
    runner.stop()


def test_a_report_tells_of_all_partitions(logs: Path, tmp_path: Path) -> None:
    for partitions in (1, 3):
        run_until_told(copied(logs / "rules", tmp_path / str(partitions)), partitions)
    one, three = read_report(tmp_path / "1"), read_report(tmp_path / "3")
    assert one is not None
    assert three is not None
    assert three.position == one.position
    assert three.queries.keys() == one.queries.keys()


# ---------------------------------------------------------------- a long stream
EVENTS, BODY, DELAY = 200_000 if is_full() else 30_000, 500, 5_000_000
QUERIES = {
    "chain": "PREFIX : <http://e/> SELECT ?x ?s ?y { { ?s :a ?x } SEQ { ?s :b ?y } WITHIN 3 }",
    "lone": "PREFIX : <http://e/> SELECT ?s ?x { { ?s :a ?x } WITHOUT { ?s :b ?y } FOR 1 }",
    "counts": "PREFIX : <http://e/> SELECT ?s (COUNT(*) AS ?n) (SUM(?x) AS ?sum) { ?s :a ?x } GROUP BY ?s WINDOW [RANGE PT4S STEP PT2S]",
    "rule": "PREFIX : <http://e/> CONSTRUCT { ?s :rise ?y } INTO STREAM <up> { { ?s :a ?x } SEQ { ?s :a ?y } WITHIN 1 FILTER(?y > ?x + 80) }",
    "rises": "PREFIX : <http://e/> SELECT ?y ?s FROM STREAM <up> { ?s :rise ?y }",
    "top": "PREFIX : <http://e/> SELECT ?s ?x { ?s :b ?x FILTER(?x > 98) } ORDER BY DESC(?x)",
    "by value": "PREFIX : <http://e/> SELECT ?s ?t { { ?s :a ?x FILTER(?x < 1) } SEQ { ?t :b ?x } WITHIN 1 }",
}


def long_stream(data: Path, events: int = EVENTS, partitions: int = 1) -> None:
    """Each occurrence comes within the delay of its end, at random."""
    chance = Random(5)
    ends = [cases.START + k * 2_000 - k * 2_000 % 50_000 for k in range(events)]
    order = sorted(range(events), key=lambda k: ends[k] + chance.randrange(DELAY))
    subjects = [f"<http://e/s{chance.randrange(300)}>" for _ in range(events)]
    predicates = [f"<http://e/{chance.choice('ab')}>" for _ in range(events)]
    values = [f'"{chance.randrange(100)}"^^<http://www.w3.org/2001/XMLSchema#integer>' for _ in range(events)]
    with LogWriter(data, cases.frozen_clock, partitions=partitions) as log:
        log.append(lambda offset: SetStream(offset, "default", max_delay=DELAY))
        for name, text in QUERIES.items():
            log.append(lambda offset, name=name, text=text: Register(offset, name, text, by_time=True))  # type: ignore[misc]
        for first in range(0, events, BODY):
            part = order[first : first + BODY]
            s, p, o = ([column[k] for k in part] for column in (subjects, predicates, values))
            at = [ends[k] for k in part]
            log.append_events("default", batch_of(s, p, o, None, at, at))
        cases.finish(log)


@pytest.mark.slow
def test_a_long_stream_out_of_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several partitions read a log in slices for three."""
    monkeypatch.setattr(codec, "SLICE_ROWS", 100)
    long_stream(tmp_path / "log of")
    long_stream(tmp_path / "sliced", partitions=3)
    found = {}
    for partitions in (1, 2, 4) if is_full() else (1, 4):
        run(copied(tmp_path / ("log of" if partitions == 1 else "sliced"), tmp_path / str(partitions)), partitions)
        found[partitions] = cases.found_in(tmp_path / str(partitions))
    assert {solution.query for solution in found[1][0]} == set(QUERIES)
    assert all(each == found[1] for each in found.values())
