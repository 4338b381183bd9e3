"""Waiting for the head of a log: a write wakes the one that waits, silence costs nothing, and a system that does not
tell of writes is noticed.
"""

import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

from pipeline.head_poll import HeadPoll

PATIENCE_S = 60


class Counted:
    """A position that is read from a file; `looks` counts how often."""

    def __init__(self, file: Path) -> None:
        self.file, self.looks = file, 0
        file.write_text("0")

    def __call__(self) -> int:
        self.looks += 1
        return int(self.file.read_text() or "0")


def test_writes_wake_and_silence_costs_no_looks(tmp_path: Path) -> None:
    heads = [Counted(tmp_path / name) for name in "ab"]

    def head() -> int:
        return min(each() for each in heads)

    poll = HeadPoll(*(each.file for each in heads))
    assert poll.wait(head, 0, 0.3) == 0
    assert heads[0].looks <= 4
    for position in (1, 2):
        looks = heads[0].looks
        thread = Thread(target=lambda position=position: [each.file.write_text(str(position)) for each in heads])
        thread.start()
        assert poll.wait(head, position - 1, PATIENCE_S) == position
        thread.join()
        assert heads[0].looks <= looks + 8, "each file is emptied and written"


def advancing(positions: Iterator[int]) -> Callable[[], int]:
    return lambda: next(positions)


def test_files_are_looked_at_where_the_system_does_not_tell(tmp_path: Path) -> None:
    """The positions here are of no file."""
    (tmp_path / "head").write_text("")
    poll = HeadPoll(tmp_path / "head")
    poll.wait(lambda: 0, 0, 0.01)
    for position in range(3):
        assert poll.wait(advancing(iter((position, position + 1))), position, 0.05) == position + 1
    looks = iter([3] * 10 + [4])
    assert poll.wait(advancing(looks), 3, PATIENCE_S) == 4


def test_a_file_that_comes_later(tmp_path: Path) -> None:
    file = tmp_path / "head"
    poll = HeadPoll(file)
    assert poll.wait(lambda: 0, 0, 0.01) == 0
    Thread(target=lambda: file.write_text("7")).start()
    assert poll.wait(lambda: 7 if file.exists() and file.read_text() else 0, 0, PATIENCE_S) == 7


def test_a_process_may_have_many_files_open(tmp_path: Path) -> None:
    """A server with a thousand subscribers has as many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    (tmp_path / "head").write_text("")
    with ExitStack() as opened:
        for _ in range(1100):
            opened.enter_context((tmp_path / "head").open())
        assert HeadPoll(tmp_path / "head").wait(lambda: 0, 0, 0.01) == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
