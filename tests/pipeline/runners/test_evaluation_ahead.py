"""The runner evaluates a small frame while it is synced, and its solutions come once it is durable."""

import os
from errno import EIO
from pathlib import Path
from threading import Event

import pytest

from engine.messages import Events, Finish, Register
from pipeline.errors import LogFailed, Withdrawn
from pipeline.log import LogWriter
from pipeline.log.codec import Content, Record
from pipeline.log.reader import Published
from pipeline.log.segments import Frame
from pipeline.runners.in_process import InProcessRunner
from pipeline.solutions.solution_log import SolutionReader, StoredSolution, listed
from tests.support.logs import Clock, occurrences, until

QUERY = "SELECT ?a WHERE { <http://e/s> <http://e/p> ?a }"


def answered(directory: Path) -> list[StoredSolution]:
    return listed(SolutionReader(directory).read(0, None, 100))


class HeldDisk:
    """Holds each sync until `go` is set; then it fails if `fails` is set."""

    def __init__(self) -> None:
        self.go, self.fails, self._sync = Event(), False, os.fdatasync

    def sync(self, fd: int) -> None:
        assert self.go.wait(60)
        if self.fails:
            raise OSError(EIO, "the disk failed")
        self._sync(fd)


@pytest.fixture
def undisturbed(tmp_path: Path) -> StoredSolution:
    """The solution of the second event without the first."""
    with LogWriter(tmp_path / "undisturbed", Clock()) as log:
        runner = start(tmp_path / "undisturbed", log)
        log.append_events("default", occurrences(2))
        until(lambda: runner.position == log.head(), "all is answered")
        runner.stop()
    return answered(tmp_path / "undisturbed")[0]


def start(directory: Path, log: LogWriter) -> InProcessRunner:
    runner = InProcessRunner(directory, log.reader())
    runner.start()
    log.append(lambda offset: Register(offset, "q", QUERY))
    until(lambda: runner.position == log.head(), "the registration is evaluated")
    return runner


@pytest.mark.parametrize("fails", [False, True], ids=["synced", "not synced"])
def test_solutions_come_once_their_event_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: StoredSolution, fails: bool
) -> None:
    """An event that the disk did not take is evaluated in vain: its solution is not there, and the next event's has
    the id that it has without it.
    """
    disk = HeldDisk()
    with LogWriter(tmp_path, Clock()) as log:
        runner = start(tmp_path, log)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", disk.sync)
            ack = log.submit("default", occurrences(1))
            until(lambda: log._published._conclusion is not None, "the event is evaluated")
            assert (ack.done(), log.head(), runner.position, answered(tmp_path)) == (False, 1, 1, [])
            disk.fails = fails
            disk.go.set()
            assert isinstance(ack.exception(60), LogFailed if fails else type(None))
        log.append_events("default", occurrences(2))
        until(lambda: runner.position == log.head(), "all is answered")
        assert runner.state == "running"
        runner.stop()
    assert [each.values for each in answered(tmp_path)] == [(f'"{end}"',) for end in ((2,) if fails else (1, 2))]
    assert answered(tmp_path)[-1].id == undisturbed.id


def offered(number: int) -> tuple[Frame, Content]:
    return Frame(0, 0, 0, 0, 1, 1, 0, number), Content(number, (Record(Events(0, "s", 1, None)),), occurrences(number))


def test_a_frame_that_takes_the_place_of_a_withdrawn_one_does_not_conclude_it() -> None:
    published, called = Published(0), list[int]()
    published.offer(*offered(1))
    assert published.wait_ahead(0, 0.0) == 1
    published.withdraw()
    assert published.wait_ahead(0, 0.0) == 0
    published.offer(*offered(2))
    published.announce(1, offered(2))
    with pytest.raises(Withdrawn):
        published.conclude(1, lambda: called.append(1), briefly=True)
    assert published.wait_ahead(0, 0.0) == 1
    published.conclude(1, lambda: called.append(2), briefly=True)
    assert called == [2]


def test_a_fault_in_the_conclusion_is_the_runners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event is acknowledged, whatever becomes of its solutions; the runner tries again."""
    disk, failures = HeldDisk(), [OSError(EIO, "the solutions' disk failed")]
    with LogWriter(tmp_path, Clock()) as log:
        runner = start(tmp_path, log)

        def fail_once(_: int) -> None:
            if failures:
                raise failures.pop()

        runner.on_commit(fail_once)
        monkeypatch.setattr(os, "fdatasync", disk.sync)
        ack = log.submit("default", occurrences(1))
        until(lambda: log._published._conclusion is not None, "the event is evaluated")
        disk.go.set()
        assert ack.result(60).offset == 2
        log.append(lambda offset: Finish(offset, "default"))
        until(lambda: runner.position == log.head() and runner.state == "running", "the runner goes on")
        runner.stop()
    assert [each.values for each in answered(tmp_path)] == [('"1"',)]
