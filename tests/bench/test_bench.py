"""The benches at a small size: what they count is right, and each line says what it must.

How fast things are is not asked here.
"""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from math import isfinite
from pathlib import Path

import pytest

from bench.background import lookup, reasoning, static_rules
from bench.engine import calls, engine, goals, queries, runs, shared
from bench.measurement import TooFewEvents, WrongCount, percentile
from bench.server import bodies, end_to_end, mapping, outside, start, trials
from bench.spark import scale
from bench.spark.spark import Commits
from bench.workloads import MATCHES, WORKLOADS, Drawn, blocks, check, drawn, engine_with, moved
from pipeline.slices.workers import count_cores
from server.cli.commands import main
from server.cli.subcommands.definition import BROKEN
from tests.soak import is_full

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests that come after share this process."""
    for module in (engine, calls, queries, end_to_end, reasoning, lookup, runs, mapping):
        monkeypatch.setattr(module, "one_core", lambda: None)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_counts_are_those_of_other_engines(workload: str) -> None:
    (line,) = engine.measure(workload, 200_000, 1_000, rounds=1)
    assert json.loads(line)["matches"] == MATCHES[200_000, 1_000][workload]


def test_runs_give_as_many_reports_as_they_must() -> None:
    """The bench itself counts them."""
    lines = [json.loads(line) for line in runs.measure(2_000, [(10, 5), (500, 2)])]
    assert {(line["query"], line["report"]) for line in lines} == {(query, report) for query in ("session", "while") for report in ("CLOSED", "EACH")}
    assert {line["n"] for line in lines} == {2_000}


def test_a_wrong_count_is_named() -> None:
    check("W1", 200_000, 1_000, 359_537)
    with pytest.raises(WrongCount, match="W1 with 200000 events of 1000 ids gave 5 matches and must give 359537"):
        check("W1", 200_000, 1_000, 5)


def test_a_wrong_count_ends_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(MATCHES, (3_000, 300), {"W1": 1})
    assert main(["bench", "engine", "--n", "3000", "--k", "300"]) == BROKEN
    assert "must give 1" in capsys.readouterr().err


OTHER_KERNEL = """
class make:
    def __init__(self, workload, about):
        self.workload, self.about = workload, about

    def run(self, predicates, subjects, objects, times):
        assert len(predicates) == len(subjects) == len(objects) == len(times) <= self.about["N"]
        self.nout = len(times)
"""


def test_another_kernel_takes_its_turn(tmp_path: Path) -> None:
    (tmp_path / "other_kernel.py").write_text(OTHER_KERNEL)
    (line,) = engine.measure("W3", 2_000, 100, baseline=tmp_path / "other_kernel.py", rounds=3)
    found = json.loads(line)
    assert found["ratio"] == pytest.approx(found["kernel_events_per_s"] / found["baseline_events_per_s"], abs=0.01)
    assert found["baseline_note"] == "another filter of like selectivity"


def matches_of(workload: str, n: int, k: int) -> int:
    found = engine_with(WORKLOADS[workload])
    return sum(found.feed(block).solutions.num_rows for block in blocks(drawn(n, k)))


LINES = [
    pytest.param(lambda: calls.measure("W1", 2_000, 200), {"p50_us", "p99_us", "solutions_p99_us"}, id="calls"),
    pytest.param(lambda: queries.measure(20, 4_000), {"ratio", "registering_ms", "without_parsing_ms"}, id="queries", marks=pytest.mark.soak),
    pytest.param(lambda: shared.measure(5, 4_000), {"ratio", "goals", "unshared_goals"}, id="shared", marks=pytest.mark.soak),
    pytest.param(
        lambda: reasoning.measure(2_000, 300, 400),
        {"kernel_us_an_event", "events_per_s", "closing_s", "registering_ms", "adding_ms", "removing_ms", "many_loading_s", "many_peak_rss_mb"},
        id="reasoning",
        marks=pytest.mark.soak,
    ),
    pytest.param(lambda: islice(static_rules.measure(2, side=9), 1), {"places", "updating_cpu_ms", "route_cpu_ms"}, id="static rules on a grid"),
    pytest.param(
        lambda: islice(static_rules.measure(2, side=9), 1, None),
        {"closed", "registering_s", "closing_s", "adding_ms", "removing_ms"},
        id="static rules",
    ),
]


@pytest.mark.parametrize(("measure", "named"), LINES)
def test_lines(measure: Callable[[], Iterator[str]], named: set[str]) -> None:
    (line,) = measure()
    found = json.loads(line)
    assert named | {"bench"} <= found.keys()
    assert all(isfinite(found[name]) for name in named)
    assert all(found[name] > 0 for name in named)


def test_from_bodies_to_lines_and_by_replay() -> None:
    found = [json.loads(line) for line in end_to_end.measure("W1", 10_000, 200)]  # parsing of fewer takes less than a millisecond
    assert all(found[0][name] > 0 for name in ("events_per_s", "parsing_s", "engine_s", "writing_s"))
    assert found[1]["matches"] == found[0]["matches"] == matches_of("W1", 10_000, 200) > 0
    assert found[1]["cpu_s"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("key", ["subject", "message"])
def test_partitions_find_what_one_finds(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MATCHES, (4_000, 200), {"W2": matches_of("W2", 4_000, 200)})
    (line,) = scale.measure("W2", 4_000, 200, key)
    found = json.loads(line)
    assert found["busiest_speedup_4"] > 0
    assert found["end_to_end_bound"] > 0
    assert found["front_cpu_s"] > 0
    assert found["busiest_s"]["4"] <= found["all_s"]["4"]
    assert isfinite(found["cpu_growth_4"])


@pytest.mark.soak
def test_each_way_of_looking_up_has_a_line() -> None:
    found = [json.loads(line) for line in lookup.measure(2_000)]
    assert [line["bench"] for line in found] == [*lookup.WAYS]
    assert all(line[name] > 0 for line in found for name in ("events_per_s", "register_s", "change_ms", "solutions"))


@pytest.mark.soak
def test_starts_and_what_a_server_takes_that_does_nothing() -> None:
    shown = [json.loads(line) for line in start.measure(1, idle_s=1.0)]
    commands, found = shown[:3], shown[3:]
    assert [line["command"] for line in commands] == ["--help", "check", "replay"]
    assert [line["least_cpu_s"] for line in commands] == sorted(line["least_cpu_s"] for line in commands)
    assert [line["runner"] for line in found] == ["inprocess", "spark"]
    assert found[0]["processes"] == 1
    assert found[1]["processes"] > 3, "the driver, the JVM, its daemon, a task"
    assert all(line["ready_s"] > 0 for line in found)
    assert 50 < found[0]["idle_mb"] < found[1]["idle_mb"] < 1_500


def test_what_is_measured_finds_the_same() -> None:
    for line in calls.measure("W2", 2_000, 200):
        assert json.loads(line)["matches"] == matches_of("W2", 2_000, 200) > 0


def test_each_event_completes_a_query_about_once_however_many_there_are() -> None:
    (line,) = queries.measure(20, 40_000)
    found = json.loads(line)
    assert 0.8 < found["matches"] / 40_000 < 1.2
    assert 0.4 < found["one_query_matches"] / 40_000 < 0.6, "half of the events can complete it"


@pytest.mark.soak
def test_goals_are_measured_apart() -> None:
    live, new, restart, saved, long, within, until = (json.loads(line) for line in goals.measure(3_000, 2_000, 12))
    assert live["goals"] == 3_000
    assert live["bytes_a_goal"] >= 0
    assert (new["part"], new["goals"]) == ("live, subjects new", 3_000)
    assert restart["ready_s"] <= restart["answered_s"]
    assert saved["bytes"] > 2_000 * 8 * 3
    assert long["matches"] == matches_of("W1", 12_000, 1_000)
    assert long["rss_end_mb"] >= long["rss_after_10_s_mb"] > 0
    assert [(each["part"], each["goals"]) for each in (within, until)] == [("once within", 2_000), ("once until", 2_000)]


def test_goals_that_wait_are_there() -> None:
    waiting, events = goals.with_goals(2_500), drawn(2_500, 1_000)
    last = Drawn(events.types[:1], events.ids[:1], events.values[:1])
    found = waiting.feed(moved(next(blocks(last, names=["never"] * 3)), waiting.position, 3_000))
    assert found.solutions.num_rows == int((events.ids == events.ids[0]).sum())


def test_percentiles_are_measured_values() -> None:
    assert [percentile([3.0, 1.0, 2.0], percent) for percent in (1, 50, 99)] == [1.0, 2.0, 3.0]


@pytest.mark.soak
def test_what_users_feel() -> None:
    """Each solution is received once, and in order, or the bench says so."""
    found = [json.loads(line) for line in outside.measure(outside.QUICK)]
    assert [each["workload"] for each in found if not each.get("delivered")] == ["registrations", "events of queries", "GET /queries", "restart"]
    assert [each["solutions"] for each in found[:4]] == [matches_of("W1", outside.QUICK.whole, 1_000)] * 4
    assert all(each["p50_ms"] <= each["p99_ms"] for each in found if "p50_ms" in each)


@pytest.mark.soak
def test_trials_alone_and_beside_live_events() -> None:
    """Each trial finds the difference of two engines, or the bench says so."""
    found = [json.loads(line) for line in trials.measure(50_000)]
    assert [each["threads"] for each in found if "threads" in each] == sorted({1, count_cores()})
    assert all(each["new"] > 0 and each["both"] > 0 for each in found if "threads" in each)
    assert found[-1]["workload"] == "W1 beside live events"


def test_mutated_bodies_are_taken_or_refused() -> None:
    """The bench raises where an answer is neither, or a refused body left something behind.

    Memory is looked at over many bodies alone: after a few hundred the server still takes what it needs once.
    """
    n = 20_000 if is_full() else 400
    (line,) = bodies.measure(n)
    found = json.loads(line)
    assert {status for name in found["found"] for status in (name.rpartition(" ")[2],)} <= {"202", "400", "413", "415", "422"}
    assert found["accepted"] > 0
    assert not is_full() or found["grown_mb"] < 64, "what is kept of a body is less than 4 KB"


@pytest.mark.slow
def test_mapping_says_rates_of_rows_and_occurrences() -> None:
    (found,) = mapping.measure(3_000)
    figures = json.loads(found)
    assert figures["csv_occurrences_per_s"] == pytest.approx(4 * figures["csv_rows_per_s"], rel=0.01)
    assert min(figures[name] for name in ("csv_rows_per_s", "json_rows_per_s", "ndjson_events_per_s")) > 0


def test_one_commit_gives_no_rate() -> None:
    with pytest.raises(TooFewEvents, match="Give more events with --n"):
        Commits(at=[(1.0, 10)]).rate(100)
    assert Commits(at=[(1.0, 10), (3.0, 20)]).rate(100) == 50
