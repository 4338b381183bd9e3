"""Rows that are yet to be read."""

from pathlib import Path

from engine.messages import Tick
from pipeline.log import LogWriter
from pipeline.log.lag import Backlog
from tests.support.logs import occurrences


def test_rows_are_counted_until_their_frame_is_read() -> None:
    backlog = Backlog()
    assert backlog.beyond(0) == 0
    backlog.add(3, 10)
    backlog.add(4, 0)
    backlog.add(9, 5)
    assert [backlog.beyond(position) for position in (0, 2, 3, 4, 8, 9, 20)] == [15, 15, 5, 5, 5, 0, 0]
    backlog.add(30, 7)
    assert backlog.beyond(20) == 7


def test_of_more_frames_than_are_told_apart_all_rows_count() -> None:
    backlog = Backlog()
    for position in range(1, 250_001):
        backlog.add(position, 2)
    assert backlog.beyond(0) == 500_000
    assert backlog.beyond(249_999) == 2
    assert backlog.beyond(250_000) == 0


def test_the_log_tells_of_its_own(tmp_path: Path) -> None:
    with LogWriter(tmp_path, lambda: 0) as log:
        log.append_events("s", occurrences(1, 2, 3))
        log.append(lambda offset: Tick(offset, None, None))
        log.append_events("s", occurrences(4, 5, 6, 7))
        assert [log.backlog.beyond(position) for position in range(4)] == [7, 4, 4, 0]
