"""These tests check what is removed of the logs, what is kept, and what is said to those who ask for what is gone."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from engine.messages import CatchUp, Drop, Facts, Pause, Resume
from engine.runtime.result_assembly import NOTHING
from pipeline.errors import Corrupt, Gone, PartitionsFixed
from pipeline.log import LogReader, LogWriter
from pipeline.log.segments import oldest, segment_path, segments
from pipeline.partition_count import record, recorded
from pipeline.retention import Limits, Removed, Retention, secured
from pipeline.runners.in_process import InProcessRunner
from pipeline.runners.partitions import host_for
from pipeline.runners.renumbering import settle
from pipeline.solutions.query_index import InUse
from pipeline.solutions.solution_ids import key_of
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, StoredSolution, listed
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow

SEGMENT = 4096
SMALL = Limits(bytes=1)
UNBOUNDED = cases.PAIRS.replace('WITHIN "PT30S"^^<http://www.w3.org/2001/XMLSchema#duration>', "")
EVER = "PREFIX : <http://e/> SELECT ?s ?t WHERE { { ?s :a ?v FILTER(?v = 7) } SEQ { ?t :b ?w FILTER(?w = 7) } }"
PARTITIONS = int(os.environ.get("EPSPARQL_TEST_PARTITIONS", "1"))


def fill(data: Path, numbers: range, *, begin: bool = False, partitions: int = PARTITIONS) -> None:
    """Readings, and what the runner finds; both logs in small segments, with snapshots."""
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        if begin:
            cases.register(log, "pairs", cases.PAIRS)
            cases.register(log, "broken", cases.BROKEN)
        cases.readings(log, numbers, Random(numbers.start))
    with closing(SolutionWriter(data, segment_bytes=SEGMENT)) as writer, closing(LogReader(data)) as log_reader:
        follow(data, writer, log_reader, partitions)


def follow(data: Path, writer: SolutionWriter, log: LogReader, partitions: int = 1) -> None:
    """Follow the log in steps of ten entries, as a runner does."""
    with closing(host_for(data, settle(data, partitions, writer.sync), snapshot_weight=2_000)) as host:
        while (at := writer.position) < log.head():
            for piece in host.run(at, min(at + 10, log.head())):
                writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
        host.save()
        writer.sync()
        host.sweep(writer.position)


@contextmanager
def retention(data: Path, limits: Limits = SMALL) -> Iterator[tuple[Retention, SolutionReader]]:
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log, closing(SolutionReader(data)) as solutions:
        yield Retention(data, limits, solutions, lambda: log.saved, lambda: secured(data)), solutions


@pytest.fixture
def data(tmp_path: Path) -> Path:
    fill(tmp_path / "data", range(150), begin=True)
    return tmp_path / "data"


def test_without_limits_nothing_is_looked_at(data: Path) -> None:
    (data / "snapshots" / f"0-{0:020d}.snapshot").mkdir()
    with retention(data, Limits()) as (kept, _):
        assert kept.sweep(0) == Removed(0, 0)
    with retention(data) as (kept, _), pytest.raises(IsADirectoryError):
        kept.sweep(0)


def emitted_until(data: Path) -> int:
    with closing(SolutionReader(data)) as solutions:
        return solutions.position


def emitted(data: Path) -> list[StoredSolution]:
    with closing(SolutionReader(data)) as solutions:
        return [solution for batch in solutions.emitted(oldest(data / "solutions")) for solution in listed(batch)]


def test_what_is_left_goes_on_as_if_all_were_there(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "whole")
    with retention(data) as (swept, _):
        freed = swept.sweep(cases.START)
    assert freed.log > SEGMENT
    assert freed.solutions > SEGMENT
    for place in (data, tmp_path / "whole"):
        fill(place, range(150, 300))
    left, whole = emitted(data), emitted(tmp_path / "whole")
    assert 0 < len(left) < len(whole)
    assert left == whole[-len(left) :]
    with closing(SolutionReader(data)) as some, closing(SolutionReader(tmp_path / "whole")) as every:
        registered = whole[0].registered
        assert replace(some.tally(registered), gone=0) == every.tally(registered)
        assert some.changes == every.changes
        assert some.changes[0].name == "broken"
    with retention(data) as (swept, _):
        assert swept.sweep(cases.START).log > 0


def test_a_dropped_registration_is_forgotten_when_its_solutions_are_gone(data: Path) -> None:
    """It stays while a solution is kept, while it is followed, and until the runner has reached its drop.

    The others keep their ids.
    """
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        followed, dropped = (cases.register(log, name, cases.HIGH) for name in ("followed", "dropped"))
    fill(data, range(150, 160))
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        for registered, name in ((followed, "followed"), (dropped, "dropped")):
            log.append(partial(lambda registered, name, offset: Drop(offset, registered, name), registered, name))
    fill(data, range(160, 161))
    first, later = emitted(data)[0].registered, iter([range(200, 240), range(240, 280), range(280, 320)])
    with closing(SolutionReader(data)) as solutions:
        swept = Retention(data, SMALL, solutions, lambda: 0, lambda: 0)  # the input log stays

        def sweep(since: int, position: int) -> int:
            """Sweep when so much is in use, and once more when the log is longer.

            Return how many solutions of the dropped one are known then.
            """
            swept.find_in_use = lambda: InUse(since, frozenset({first, followed}), position)
            swept.sweep(cases.START)
            fill(data, next(later))
            swept.sweep(cases.START)
            return solutions.tally(dropped).count

        counts = solutions.counts((first, followed, dropped))
        assert min(counts.values()) > 0
        solutions.drop_segment(oldest(data / "solutions"), InUse(dropped + 1, frozenset({first, followed}), 0))
        assert solutions.counts(counts) == counts
        assert sweep(dropped + 1, solutions.position + 10_000) == counts[dropped]
        assert sweep(dropped, 0) == counts[dropped]
        last = solutions.tally(first).last
        assert sweep(dropped + 1, solutions.position) == 0
        assert solutions.tally(followed).count == counts[followed]
        assert solutions.tally(first).count > counts[first]
    with closing(SolutionReader(data)) as solutions:
        assert solutions.counts((followed, dropped)) == {followed: counts[followed], dropped: 0}
    fill(data, range(350, 400))
    ids = [solution.id for solution in emitted(data)]
    assert last is not None
    assert key_of(ids[-1]) > key_of(last)
    assert len(set(ids)) == len(ids)


def test_states_of_dropped_registrations_are_forgotten_with_their_frames(data: Path) -> None:
    fill(data, range(150))
    with closing(SolutionReader(data)) as solutions:
        (broken,) = solutions.changes
        first, *_, last = segments(data / "solutions")
        for segment, kept, told in ((first, {}, 1), (last, {broken.registered}, 1), (last, {}, 0)):
            solutions.drop_segment(segment, InUse(solutions.position, frozenset(kept), 0))
            assert len(solutions.changes) == told
    with closing(SolutionReader(data)) as solutions:
        assert solutions.changes == ()


def test_a_writer_forgets_what_a_reader_beside_it_has_found_out_of_use(data: Path) -> None:
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        later = cases.register(log, "later", cases.HIGH)
    fill(data, range(150, 160))
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        cases.register(log, "latest", cases.HIGH)
        with closing(SolutionReader(data)) as solutions, closing(SolutionWriter(data, recent=solutions.recent)) as writer:
            known = set(writer._last)
            solutions.drop_segment(oldest(data / "solutions"), InUse(later, frozenset(), 0))
            assert writer.commit(writer.position, log.head(), NOTHING)
            assert set(writer._last) == {later} < known


def test_with_several_partitions_what_a_move_reads_is_kept(tmp_path: Path) -> None:
    """A query with a bounded reach moves after its log has been cut.

    Without snapshots, another number is refused, and nothing is removed then.
    """
    data, whole = tmp_path / "data", tmp_path / "whole"
    fill(data, range(150), begin=True, partitions=2)
    registered = emitted(data)[0].registered
    shutil.copytree(data, whole)
    with retention(data) as (swept, _):
        assert swept.sweep(cases.START).log > SEGMENT
    for place in (data, whole):
        with LogWriter(place, cases.frozen_clock, segment_bytes=SEGMENT) as log:
            log.append(lambda offset: Pause(offset, registered, "pairs"))
            log.append(lambda offset: Resume(offset, registered, "pairs"))
            log.append(lambda offset: CatchUp(offset, registered, offset))
        fill(place, range(150, 300), partitions=2)
    left, every = emitted(data), emitted(whole)
    assert 0 < len(left) < len(every)
    assert left == every[-len(left) :]
    assert every == cases.undisturbed(whole, tmp_path / "undisturbed")[0]
    for snapshot in (data / "snapshots").glob("0of2-*.snapshot"):
        snapshot.unlink()
    kept = sorted((data / "snapshots").iterdir())
    with pytest.raises(PartitionsFixed, match="no snapshots from which 3 partitions could begin: start with --partitions 2"):
        settle(data, 3, lambda: emitted_until(data))
    assert sorted((data / "snapshots").iterdir()) == kept


@pytest.mark.parametrize("numbers", [(2, 4, 3), pytest.param((1, 3, 1), marks=pytest.mark.soak)])
def test_the_number_of_partitions_may_change_where_the_log_was_cut(numbers: tuple[int, ...], tmp_path: Path) -> None:
    """One query looks back a bounded time, the other one has no key, and looks back without a bound."""
    data, whole = tmp_path / "data", tmp_path / "whole"
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        cases.register(log, "ever", EVER)
    fill(data, range(150), begin=True, partitions=numbers[0])
    shutil.copytree(data, whole)
    for turn, number in enumerate(numbers):
        with retention(data) as (swept, _):
            assert swept.sweep(cases.START).log > 0
        for place in (data, whole):
            fill(place, range(150 * (turn + 1), 150 * (turn + 2)), partitions=number)
        assert recorded(data) == number
    left, every = emitted(data), emitted(whole)
    assert 0 < len(left) < len(every)
    assert left == every[-len(left) :]
    assert every == cases.undisturbed(whole, tmp_path / "undisturbed")[0]


def test_a_query_for_which_the_log_was_cut_is_named(tmp_path: Path) -> None:
    """The background has changed since it was registered, so all of the log would have to be there."""
    data = tmp_path / "data"
    fill(data, range(150), begin=True)
    with retention(data) as (swept, _):
        assert swept.sweep(cases.START).log > 0
    fill(data, range(150, 160), partitions=2)
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        log.append(lambda offset: Facts(offset, "", '<http://e/s1> <http://e/b> "7" .\n'))
        cases.register(log, "ever", UNBOUNDED)
    fill(data, range(160, 170), partitions=2)
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        log.append(lambda offset: Facts(offset, "", '<http://e/s2> <http://e/b> "7" .\n'))
    fill(data, range(170, 230), partitions=2)
    with pytest.raises(
        PartitionsFixed, match=r"the queries ever look back further, .* start with --partitions 2, and try later or register them again"
    ):
        settle(data, 3, lambda: emitted_until(data))
    assert recorded(data) == 2
    assert all(path.name.partition("-")[0] in ("0of2", "1of2") for path in (data / "snapshots").iterdir())
    fill(data, range(230, 240), partitions=2)


def test_with_several_partitions_all_is_kept_for_a_query_without_a_bounded_reach(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data, range(50), begin=True, partitions=2)
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        registered = cases.register(log, "ever", UNBOUNDED)
    fill(data, range(50, 200), partitions=2)
    with retention(data) as (swept, _):
        swept.sweep(cases.START)
    assert 0 < oldest(data / "log") <= registered


def test_the_rest_is_told_to_be_gone(data: Path) -> None:
    every = emitted(data)
    with retention(data) as (swept, solutions):
        swept.sweep(cases.START)
        first = oldest(data / "log")
        for reader in (solutions, SolutionReader(data)):
            registered = every[0].registered
            kept = listed(reader.read(registered, None, 10_000))
            assert kept == every[-len(kept) :]
            before = every[-len(kept) - 1].id
            assert listed(reader.read(registered, before, 10_000)) == kept
            with pytest.raises(Gone, match=f"solutions up to {before} are no longer kept"):
                reader.read(registered, every[0].id, 10)
        with closing(LogReader(data)) as log:
            with pytest.raises(Gone, match=f"position 0 of .* is no longer kept: the oldest is {first}"):
                list(log.blocks(0, 10))
            assert log.late("default", 0, 10) == []
            assert next(log.blocks(first, 10)).first == first


def test_nothing_goes_that_a_start_would_need(data: Path) -> None:
    snapshots = list((data / "snapshots").glob("*.snapshot"))
    assert len(snapshots) == 1
    with retention(data) as (swept, _):
        torn = snapshots[0].read_bytes()
        snapshots[0].write_bytes(torn[:-1])
        assert swept.sweep(cases.START).log == 0
        record(data, 2)  # engines that have to begin anew
        assert swept.sweep(cases.START).log == 0
        record(data, 1)
        for snapshot in snapshots:
            snapshot.write_bytes(torn)
        assert swept.sweep(cases.START).log > 0


def test_holds_are_kept(data: Path) -> None:
    second, third = segments(data / "log")[1:3]
    of_solutions = segments(data / "solutions")[1]
    with retention(data) as (swept, _):
        swept.log_holds.append(lambda: third - 1)
        swept.solution_holds.append(lambda: of_solutions)
        swept.sweep(cases.START)
    assert (oldest(data / "log"), oldest(data / "solutions")) == (second, of_solutions)


def test_solutions_yet_to_be_delivered_can_be_held(data: Path) -> None:
    every = emitted(data)
    with retention(data) as (swept, solutions):
        for seen in (None, every[0].id, every[len(every) // 2].id):
            swept.solution_holds[:] = [lambda seen=seen: solutions.needed(every[0].registered, seen)]  # type: ignore[misc]
            swept.sweep(cases.START)
            assert listed(solutions.read(every[0].registered, seen, 1)) == (
                [every[0]] if seen is None else [every[every.index(next(s for s in every if s.id == seen)) + 1]]
            )
        assert oldest(data / "solutions") > 0
        assert solutions.needed(every[0].registered, every[-1].id) == solutions.position


def test_limits(data: Path) -> None:
    first, second, third, *_ = segments(data / "log")
    with retention(data, Limits()) as (swept, _):
        assert (swept.sweep(cases.START).log, swept.sweep(cases.START).solutions) == (0, 0)
    now = cases.START
    for segment in segments(data / "log"):
        os.utime(segment_path(data / "log", segment), (now / 1e6, now / 1e6))
    for segment in (first, second):
        os.utime(segment_path(data / "log", segment), (now / 1e6 - 3_600, now / 1e6 - 3_600))
    with retention(data, Limits(age=60 * cases.SECOND)) as (swept, _):
        swept.sweep(now)
    assert oldest(data / "log") == third
    total = sum(path.stat().st_size for path in (data / "log").glob("*.frames"))
    with retention(data, Limits(bytes=total - 1)) as (swept, _):
        swept.sweep(now)
    assert oldest(data / "log") == segments(data / "log")[0] > third


def test_a_sweep_that_was_killed_half_way_is_gone_on_with(data: Path) -> None:
    """After what is to be removed was noted, before it was removed; and between two removals."""
    every = emitted(data)
    known = segments(data / "solutions")
    with closing(SolutionReader(data)) as solutions:
        solutions.drop_segment(known[2])
    segment_path(data / "solutions", known[0]).unlink()
    with closing(SolutionReader(data)) as solutions:
        kept = listed(solutions.read(every[0].registered, None, 10_000))
        assert 0 < len(kept) < len(every)
        assert kept == every[-len(kept) :]
        assert solutions.tally(every[0].registered).count == len(every)
    fill(data, range(150, 160))
    with retention(data) as (swept, _):
        swept.sweep(cases.START)
    assert known[1] not in segments(data / "solutions")


def test_a_catalogue_that_cannot_be_made_again_is_told(data: Path) -> None:
    with retention(data) as (swept, _):
        swept.sweep(cases.START)
    (data / "catalogue.json").write_text("{")
    with pytest.raises(Corrupt, match="the log's beginning, from which it could be made, is no longer kept"):
        LogWriter(data, cases.frozen_clock)


def test_a_runner_without_its_snapshots_says_what_it_lacks(data: Path) -> None:
    with retention(data) as (swept, _):
        swept.sweep(cases.START)
    shutil.rmtree(data / "snapshots")
    runner = InProcessRunner(data)
    runner.start()
    try:
        cases.eventually(lambda: runner.state.startswith("failed"), 30, lambda: runner.state)
        assert "position 0 of" in runner.state
    finally:
        runner.stop()
