"""Runners whose number of partitions changes from start to start: the same solutions in the same order with the same
ids, whatever dies meanwhile.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from engine.messages import DROP, Facts
from engine.query_lifecycle import moves
from pipeline.log import LogWriter
from pipeline.partition_count import record, recorded
from pipeline.runners import renumbering
from pipeline.runners.engine_host import EngineHost
from pipeline.runners.partitions import host_for
from pipeline.runners.renumbering import settle
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter
from tests.pipeline.runners.test_partitions import run
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow

RANGE = "<http://e/b> <http://www.w3.org/2000/01/rdf-schema#range> <http://e/Thing> .\n"


@pytest.fixture
def begun() -> list[int]:
    return []


@pytest.fixture(autouse=True)
def _reading_is_noted(begun: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """`begun` has the positions from which the log was read again."""
    past = EngineHost._past

    def noted(host: EngineHost, lo: int, hi: int) -> Iterator[object]:
        begun.append(lo)
        return past(host, lo, hi)

    monkeypatch.setattr(EngineHost, "_past", noted)


def solved_until(data: Path) -> int:
    with closing(SolutionReader(data)) as solutions:
        return solutions.position


def names_in(data: Path) -> set[str]:
    return {path.name.split("-")[0] for path in (data / "snapshots").glob("*.snapshot")}


def check(data: Path, elsewhere: Path) -> None:
    assert cases.found_in(data) == cases.undisturbed(data, elsewhere)


def test_the_number_of_partitions_may_change(begun: list[int], tmp_path: Path) -> None:
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        cases.sequences(log)
        cases.register(log, "rule", cases.RULE)
        cases.register(log, "rises", cases.RISES)
        for turn, number in enumerate((1, 2, 3, 1, 2)):
            cases.readings(log, range(150 * turn, 150 * turn + 150), Random(turn))
            run(tmp_path, number, snapshot_weight=1000, max_rows=40)
            assert names_in(tmp_path) == ({"0"} if number == 1 else {f"{partition}of{number}" for partition in range(number)})
        run(tmp_path, None)
        assert recorded(tmp_path) == 2
    assert min(begun) > 50
    check(tmp_path, tmp_path / "elsewhere")


@pytest.mark.parametrize("case", ["changing", "rules", "completing", "history", "backlogs", "observations"])
def test_each_case_is_divided_in_its_middle(case: str, tmp_path: Path) -> None:
    """The log grows by what another log has."""
    cases.write(case, tmp_path / "whole")
    head = cases.head_of(tmp_path / "whole")
    run(tmp_path / "whole", 1)
    data = tmp_path / "data"
    shutil.copytree(tmp_path / "whole" / "log", data / "log")
    for number, until in ((1, head // 4), (3, head // 2), (2, 3 * head // 4), (4, head)):
        solve(data, number, until)
    assert cases.found_in(data) == cases.found_in(tmp_path / "whole")


def solve(data: Path, number: int, until: int) -> None:
    """Solve the entries up to a position, as a runner does."""
    with closing(SolutionWriter(data)) as writer, closing(host_for(data, settle(data, number, writer.sync))) as host:
        for piece in host.run(writer.position, until, 40):
            writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
        host.save()


STEPS = {"survey": moves, "sync_snapshots": renumbering, "record": renumbering, "sweep_others": renumbering}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("then", [2, 3])
def test_a_start_that_is_killed_changes_all_or_nothing(step: str, then: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start has the number of before, or tries again."""
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        cases.sequences(log)
        run(tmp_path, 2)
        for _ in range(2):
            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                patch.setattr(STEPS[step], step, killed_after(getattr(STEPS[step], step)))
                settle(tmp_path, 3, lambda: solved_until(tmp_path))
        assert recorded(tmp_path) == (3 if step == "record" else 2), "what is swept first is what an earlier try has left"
        cases.readings(log, range(150, 200), Random(2))
        run(tmp_path, then)
        cases.readings(log, range(200, 250), Random(3))
        run(tmp_path, 3)
    check(tmp_path, tmp_path / "elsewhere")


def killed_after(call: Callable[..., object]) -> Callable[..., object]:
    def dies(*given: object) -> object:
        call(*given)
        raise KeyboardInterrupt

    return dies


@pytest.mark.parametrize("lost", [[0], [1], [0, 1]])
def test_who_has_no_snapshot_begins_with_the_log_and_the_same_sets(lost: list[int], tmp_path: Path) -> None:
    """The log by itself would give the query one partition, because a schema turned its triples round for a while."""
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        cases.register(log, "typed", "PREFIX : <http://e/> SELECT ?s ?v { { ?s :a ?v } SEQ { ?s :b ?w } WITHIN 5 OPTIONAL { ?s a :Thing } }")
        cases.readings(log, range(20), Random(1))
        log.append(lambda offset: Facts(offset, "", RANGE))
        cases.readings(log, range(20, 40), Random(2))
        log.append(lambda offset: Facts(offset, "", "", DROP))
        cases.readings(log, range(40, 150), Random(3))
        run(tmp_path, 1)
        run(tmp_path, 2)
        for partition in lost:
            for path in (tmp_path / "snapshots").glob(f"{partition}of2-*.snapshot"):
                path.unlink()
        cases.readings(log, range(150, 200), Random(4))
        run(tmp_path, None)
    check(tmp_path, tmp_path / "elsewhere")


def test_where_solutions_were_lost_the_log_alone_counts(tmp_path: Path) -> None:
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        cases.sequences(log)
        run(tmp_path, 1)
        run(tmp_path, 2)
        assert names_in(tmp_path) == {"0of2", "1of2"}
        shutil.rmtree(tmp_path / "solutions")
        settle(tmp_path, None, lambda: 0)
        assert not names_in(tmp_path)
        run(tmp_path, None)
    check(tmp_path, tmp_path / "elsewhere")


def test_the_number_stays_until_another_is_asked_for(tmp_path: Path) -> None:
    assert settle(tmp_path / "new", None, int) == 1
    assert [settle(tmp_path / "asked", wanted, int) for wanted in (3, None, 2, None)] == [3, 3, 2, 2]
    record(tmp_path / "asked", 4)
    assert settle(tmp_path / "asked", None, int) == 4
