"""The runner in this process, with the real engine: once each, in order, whatever stops and starts."""

import json
import os
import shutil
import zlib
from collections import Counter
from contextlib import closing
from errno import EIO, ENOSPC
from itertools import count, pairwise
from pathlib import Path
from threading import Event, Thread, current_thread
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.messages import SOLUTIONS, Register, StateChange
from pipeline.errors import Locked, LogFailed, NotOfOneLog, OutOfOrder, StoreFailed
from pipeline.log import LogWriter
from pipeline.log.log_fingerprint import Marks
from pipeline.log.segments import FrameReader, FrameWriter, segment_path, segments, unseal
from pipeline.runners import log_follower
from pipeline.runners.engine_host import EngineHost
from pipeline.runners.in_process import InProcessRunner
from pipeline.runners.partitions import Host
from pipeline.runners.snapshots import Snapshots
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, StoredSolution, check_solutions, listed
from tests.support import spark_cases as cases
from tests.support.logs import Clock, occurrences, until

PAIRS = "SELECT ?a ?b WHERE { { <http://e/s> <http://e/p> ?a } SEQ { <http://e/s> <http://e/p> ?b } WITHIN 0.000003 }"


def register(log: LogWriter, text: str = PAIRS, name: str = "pairs") -> int:
    return log.append(lambda offset: Register(offset, name, text))


def feed(log: LogWriter, ends: range) -> None:
    for end in ends:
        log.append_events("default", occurrences(end))


def answered(directory: Path, registered: int = 0) -> list[StoredSolution]:
    return listed(SolutionReader(directory).read(registered, None, 10**6))


def pairs(last: int) -> set[tuple[str | None, ...]]:
    """Return the pairs of the ends 0 to `last` that are at most 3 µs apart.

    An end equal to the watermark is not yet past.
    """
    return {(f'"{a}"', f'"{b}"') for b in range(last + 1) for a in range(max(b - 3, 0), b)}


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[StoredSolution]:
    directory = tmp_path / "undisturbed"
    with LogWriter(directory, Clock()) as log:
        register(log)
        feed(log, range(200))
        run_to_head(directory, log)
    return answered(directory)


def run_to_head(directory: Path, log: LogWriter, **options: Any) -> None:
    runner = InProcessRunner(directory, log.reader(), **options)
    runner.start()
    until(lambda: runner.position == log.head() or runner.state.startswith("failed"), "the head is reached")
    runner.stop()
    assert runner.state == "stopped", runner.state


def test_evaluations_begin_a_turn_apart_and_share_what_comes_meanwhile(tmp_path: Path) -> None:
    """The marks of the log's frames, which the writer hands on, are those of its files: those of large frames too."""
    begun, over = list[float](), Event()
    with LogWriter(tmp_path, Clock()) as log:
        following = log_follower.Following(
            log_follower.WholeWork(tmp_path, log.reader()), over, log_follower.Callbacks(lambda _lo, _hi, took_s: begun.append(monotonic() - took_s))
        )
        following.open()
        thread = Thread(target=following.run)
        thread.start()
        register(log)
        until(lambda: following.position == log.head(), "the registration is evaluated alone")
        for first in range(0, 3_000, 1_500):
            feed(log, range(first, first + 20))
            log.append_events("default", occurrences(*range(first + 20, first + 1_500)))
        until(lambda: following.position == log.head(), "the head is reached")
        over.set()
        thread.join()
    assert min(after - before for before, after in pairwise(begun)) > log_follower._TURN_S / 2, "told times are those of another clock"
    with closing(FrameReader(tmp_path / "solutions")) as frames, closing(Marks(tmp_path)) as marks:
        found = [(frame.flags, marks.mark_before(frame.after)) for frame in frames.frames(0)]
    assert [mark for mark, _ in found] == [mark for _, mark in found]


def test_it_follows_answers_and_tells(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        runner = InProcessRunner(tmp_path, log.reader())
        told: list[int] = []
        runner.on_commit(told.append)
        assert (runner.state, runner.ready, runner.position) == ("stopped", False, 0)
        runner.start()
        until(lambda: runner.ready, "the runner is up")
        registered = register(log)
        feed(log, range(50))
        until(lambda: runner.position == log.head(), "all is answered")
        assert (runner.state, runner.lag) == ("running", 0)
        assert told == sorted(told)
        assert told[-1] == log.head()
        found = {solution.values for solution in answered(tmp_path, registered)}
        assert pairs(48) <= found <= pairs(49)
        with pytest.raises(Locked, match="solutions is in use by process"):
            InProcessRunner(tmp_path).start()
        runner.stop()
        assert (runner.state, runner.ready) == ("stopped", False)


@pytest.mark.parametrize("max_rows", [1, 7, 1000])
def test_stops_and_starts_change_nothing(tmp_path: Path, undisturbed: list[StoredSolution], max_rows: int) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        register(log)
        for begin in range(0, 200, 40):
            feed(log, range(begin, begin + 40))
            run_to_head(tmp_path, log, max_rows=max_rows, snapshot_weight=1500)
        assert answered(tmp_path) == undisturbed
    assert 1 <= len(Snapshots(tmp_path / "snapshots", "0").positions()) < 10


def test_without_snapshots_or_with_spoiled_ones_the_log_is_enough(tmp_path: Path, undisturbed: list[StoredSolution]) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        register(log)
        feed(log, range(100))
        run_to_head(tmp_path, log, max_rows=10, snapshot_weight=1500)
        for path in (tmp_path / "snapshots").iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        (tmp_path / "snapshots" / f"0-{3:020d}.snapshot").write_bytes(b"")
        feed(log, range(100, 200))
        run_to_head(tmp_path, log)
        assert answered(tmp_path) == undisturbed


def test_a_host_that_is_behind_reads_on_and_one_that_is_ahead_is_replaced(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        register(log)
        feed(log, range(30))

    def brought(host: Host, lo: int, hi: int) -> list[tuple[int, int, int]]:
        return [(piece.lo, piece.hi, piece.outcome.solutions.num_rows) for piece in host.run(lo, hi, 5)]

    whole = brought(EngineHost(tmp_path), 0, 31)
    host = EngineHost(tmp_path)
    assert brought(host, 10, 15)[-1][1] == 15
    for lo, hi in ((10, 15), (15, 20), (25, 31), (0, 31), (30, 31)):
        assert sum(n for _, _, n in brought(host, lo, hi)) == sum(n for _, _, n in brought(EngineHost(tmp_path), lo, hi))
    pieces = host.run(0, 31, 5)
    assert (next(pieces).hi, next(pieces).hi) == (5, 10)
    pieces.close()
    assert sum(n for _, _, n in brought(host, 10, 31)) == sum(n for _, hi, n in whole if hi > 10)
    assert brought(host, 31, 31) == []
    with pytest.raises(OutOfOrder, match="before 32"):
        brought(host, 31, 32)
    host.close()


def test_snapshots_before_the_committed_one_go(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, "0")
    other = Snapshots(tmp_path, "10")
    engine = Engine()
    for engine.position in (5, 10, 15):
        snapshots.write(engine)
    engine.position = 1
    other.write(engine)
    (tmp_path / "0-left.123.tmp").touch()
    snapshots.sweep(12)
    assert (snapshots.positions(), other.positions()) == ([10, 15], [1])
    assert not list(tmp_path.glob("*.tmp"))
    snapshots.sweep(4)
    assert snapshots.positions() == [10, 15]


def test_a_query_that_does_not_compile_is_a_state_not_a_failure(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        bad = register(log, "SELECT nonsense", "bad")
        good = register(log)
        feed(log, range(5))
        run_to_head(tmp_path, log)
        shown = log.catalogue.with_changes(SolutionReader(tmp_path).changes)
        assert (shown["bad"].registered, shown["bad"].state, shown["pairs"].state) == (bad, "failed", "running")
        assert answered(tmp_path, good)


def in_pieces(data: Path, head: int, step: int) -> tuple[list[tuple[object, ...]], list[StateChange]]:
    """Solutions and changes of a log that a new engine takes up every `step` entries, from the snapshot of the one
    before.
    """
    solutions: list[tuple[object, ...]] = []
    changes: list[StateChange] = []
    for lo in range(0, head, step):
        with closing(EngineHost(data)) as host:
            for advance in host.run(lo, min(lo + step, head)):
                rows = advance.outcome.solutions.to_pylist()
                solutions += [(row["query"], row["entry"], row["start"], row["end"], tuple(row["values"])) for row in rows]
                changes += advance.outcome.changes
            host.save()
    return solutions, changes


def test_queries_of_every_form_are_taken_up_where_they_stood(tmp_path: Path) -> None:
    data = tmp_path / "whole"
    cases.write("completing", data)
    head = cases.head_of(data)
    whole = in_pieces(data, head, head)
    assert {(change.name, change.state) for change in whole[1]} == {("some", "completed"), ("none", "completed"), ("three", "completed")}
    counts = Counter(row[0] for row in whole[0])
    assert [counts[name] for name in ("some", "none", "three")] == [1, 1, 3]
    assert min(counts[name] for name in ("about", "rooms", "graphs", "means")) > 0
    assert (counts["unnamed"], counts["graphs"]) == (0, 1)
    for step in (40, 7):
        shutil.rmtree(data / "snapshots")
        assert in_pieces(data, head, step) == whole


def test_a_fault_of_the_engine_is_seen_and_nothing_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault")

    with LogWriter(tmp_path, Clock()) as log:
        feed(log, range(3))
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "feed", fail)
            runner = InProcessRunner(tmp_path, log.reader())
            runner.start()
            until(lambda: runner.state.startswith("failed"), "the fault shows")
            assert runner.state == "failed: ZeroDivisionError: a fault"
            assert (runner.ready, runner.position, SolutionReader(tmp_path).position) == (False, 0, 0)
            runner.stop()
        assert "stopped at position 0" in caplog.text
        run_to_head(tmp_path, log)  # and another may take over


@pytest.mark.parametrize(
    ("part", "method"), [(Engine, "feed"), (SolutionWriter, "commit"), (FrameWriter, "publish"), (FrameReader, "payload"), (Snapshots, "write")]
)
def test_what_the_system_refuses_is_tried_again_where_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: list[StoredSolution], part: type, method: str
) -> None:
    """A few calls of a method fail, half of them after their work is done."""
    calls = count(1)
    work = getattr(part, method)

    def refused(self: object, *arguments: object) -> object:
        if current_thread().name != "runner" or (n := next(calls)) not in {3, 4, 5, 8, 12}:
            return work(self, *arguments)
        if n % 2:
            work(self, *arguments)
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(log_follower, "_FIRST_PAUSE_S", 0.01)
    with LogWriter(tmp_path, Clock()) as log:
        register(log)
        feed(log, range(200))
        with monkeypatch.context() as patch:
            patch.setattr(part, method, refused)
            run_to_head(tmp_path, log, max_rows=7, snapshot_weight=1500)
            assert next(calls) > 12
        assert answered(tmp_path) == undisturbed


def test_what_it_waits_for_is_told_and_it_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refused(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(log_follower, "_FIRST_PAUSE_S", 3600.0)
    monkeypatch.setattr(log_follower, "_LONGEST_PAUSE_S", 3600.0)
    monkeypatch.setattr(SolutionWriter, "commit", refused)
    with LogWriter(tmp_path, Clock()) as log:
        feed(log, range(3))
        runner = InProcessRunner(tmp_path, log.reader())
        runner.start()
        until(lambda: runner.state.startswith("waiting"), "the refusal shows")
        assert runner.state == "waiting: OSError: [Errno 28] No space left on device; the next try comes in 3600 s"
        assert (runner.ready, runner.position) == (False, 0)
        runner.stop()
        assert runner.state == "stopped"
    assert "tries again in 3600 s: OSError" in caplog.text
    assert "Traceback" not in caplog.text


def test_an_entry_that_failed_once_is_evaluated_when_it_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: list[StoredSolution]
) -> None:
    """No entry is left out, and none is there twice, whether its sync failed or the store that keeps it elsewhere."""
    sync, faults = os.fdatasync, count()

    def failing(fd: int) -> None:
        if current_thread().name == "log-committer" and next(faults) % 7 == 3:
            raise OSError(EIO, "Input/output error")
        sync(fd)

    def keep(_segment: int, _size: int) -> None:
        if current_thread().name == "log-committer" and next(faults) % 11 == 5:
            raise StoreFailed("it does not answer")

    with LogWriter(tmp_path, Clock(), segment_bytes=20_000, keep=keep) as log:
        runner = InProcessRunner(tmp_path, log.reader())
        runner.start()
        monkeypatch.setattr(os, "fdatasync", failing)
        register(log)
        refused = 0
        for end in range(200):
            sent = False
            while not sent:
                try:
                    log.append_events("default", occurrences(end), f"key{end}")
                    sent = True
                except LogFailed:
                    refused += 1
        until(lambda: runner.position == log.head() or runner.state.startswith("failed"), "the head is reached")
        runner.stop()
        assert runner.state == "stopped", runner.state
    assert refused > 20
    assert answered(tmp_path) == undisturbed


def test_solutions_of_another_log_are_refused_although_their_last_segment_is_lost(tmp_path: Path) -> None:
    """A case that a driver found: a damaged last segment is cut to nothing, and had the only mark that was compared."""
    nothing = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)
    for name, ends in (("data", range(40)), ("other", range(100, 140))):
        with LogWriter(tmp_path / name, Clock()) as log:
            feed(log, ends)
            with closing(SolutionWriter(tmp_path / name, segment_bytes=300)) as solutions:
                for position in range(log.head()):
                    solutions.commit(position, position + 1, nothing)
        directory = tmp_path / name / "solutions"
        segment_path(directory, segments(directory)[-1]).write_bytes(b"")
        check_solutions(tmp_path / name)
    shutil.rmtree(tmp_path / "data" / "log")
    shutil.copytree(tmp_path / "other" / "log", tmp_path / "data" / "log")
    with pytest.raises(NotOfOneLog, match="solutions is of another log than log/"):
        check_solutions(tmp_path / "data")


def test_solutions_that_know_more_than_the_log_are_refused(tmp_path: Path) -> None:
    """A backup of log/ and catalogue.json put over a live directory; an emptied log; another log as long."""
    data = tmp_path / "data"
    for name, ends in (("data", range(40)), ("other", range(100, 200))):
        with LogWriter(tmp_path / name, Clock(), segment_bytes=2000) as log:
            register(log)
            feed(log, ends)
            run_to_head(tmp_path / name, log)
        check_solutions(tmp_path / name)
    shutil.copytree(data, tmp_path / "backup")
    with LogWriter(data, Clock(), segment_bytes=2000) as log:
        feed(log, range(40, 80))
        run_to_head(data, log)

    def put(source: Path) -> None:
        shutil.rmtree(data / "log")
        shutil.copytree(source / "log", data / "log")
        shutil.copy(source / "catalogue.json", data)

    put(tmp_path / "backup")
    with pytest.raises(NotOfOneLog, match=r"solutions reaches log position 81, and log/ ends at 41; restore log/ .* or remove solutions/"):
        check_solutions(data)
    runner = InProcessRunner(data)
    runner.start()
    until(lambda: runner.state.startswith("failed"), "the runner refuses too")
    runner.stop()
    put(tmp_path / "other")
    with pytest.raises(NotOfOneLog, match="solutions is of another log than log/, at position 81"):
        check_solutions(data)
    put(tmp_path / "backup")
    for name in ("solutions", "snapshots"):
        shutil.rmtree(data / name)
    with LogWriter(data, Clock()) as log:
        check_solutions(data)
        run_to_head(data, log)
    assert answered(data) == answered(tmp_path / "backup")


def test_a_directory_of_version_0_1_0_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: list[StoredSolution]) -> None:
    """It has no links, no marks, and a catalogue without a checksum."""
    with monkeypatch.context() as patch:
        patch.setattr(Marks, "mark_before", lambda *_: 0)
        with LogWriter(tmp_path, Clock()) as log:
            register(log)
            feed(log, range(100))
            run_to_head(tmp_path, log)
    catalogue = json.loads(unseal((tmp_path / "catalogue.json").read_bytes()) or b"")
    del catalogue["mark"]
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    for path in (tmp_path / "snapshots").glob("*.snapshot"):
        data = path.read_bytes()[16:]
        path.write_bytes(zlib.crc32(data).to_bytes(4, "little") + data)
    assert Snapshots(tmp_path / "snapshots", "0").newest(1000) is not None
    with LogWriter(tmp_path, Clock(), segment_bytes=2000) as log:
        check_solutions(tmp_path)
        assert log.saved == 101
        feed(log, range(100, 200))
        run_to_head(tmp_path, log)
    assert answered(tmp_path) == undisturbed
    check_solutions(tmp_path)


def test_a_snapshot_of_another_log_is_not_used(tmp_path: Path) -> None:
    found = []
    for name, begin in (("data", 0), ("other", 3)):
        with LogWriter(tmp_path / name, Clock()) as log:
            register(log)
            feed(log, range(begin, begin + 50))
            run_to_head(tmp_path / name, log)
    for path in (tmp_path / "other" / "snapshots").glob("*.snapshot"):
        shutil.copy(path, tmp_path / "data" / "snapshots")
    shutil.copytree(tmp_path / "data", tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole" / "snapshots")
    for name in ("data", "whole"):
        with LogWriter(tmp_path / name, Clock()) as log:
            feed(log, range(50, 60))
            run_to_head(tmp_path / name, log)
        found.append(answered(tmp_path / name))
    assert found[0] == found[1]


def test_solutions_that_are_gone_when_it_tries_again_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    commit = SolutionWriter.commit

    def lost(self: SolutionWriter, lo: int, *rest: Any) -> bool:
        if lo == 0:
            return commit(self, lo, *rest)
        shutil.rmtree(tmp_path / "solutions")
        raise OSError(EIO, "Input/output error")

    monkeypatch.setattr(log_follower, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(SolutionWriter, "commit", lost)
    with LogWriter(tmp_path, Clock()) as log:
        feed(log, range(3))
        runner = InProcessRunner(tmp_path, log.reader(), max_rows=1)
        runner.start()
        until(lambda: runner.state.startswith("failed"), "the failure shows")
        assert "the solutions end at 0, before 1" in runner.state
        runner.stop()
    assert "OutOfOrder" in caplog.text


def test_a_log_that_is_not_the_one_of_the_solutions_is_a_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        feed(log, range(5))
        run_to_head(tmp_path, log)
    for path in (*(tmp_path / "log").iterdir(), *(tmp_path / "snapshots").iterdir()):
        path.unlink()
    runner = InProcessRunner(tmp_path)
    runner.start()
    until(lambda: runner.state.startswith("failed"), "the failure shows")
    assert "not the log they came from" in runner.state
    runner.stop()
    assert "OutOfOrder" in caplog.text
