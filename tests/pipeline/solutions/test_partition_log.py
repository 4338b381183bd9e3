"""The logs of partitions, merged: what one engine gives, however each partition's log is cut, and whenever a writer
ends.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from engine.partitioning import PartitionShare
from pipeline.errors import Locked
from pipeline.log import LogReader, codec
from pipeline.log.segments import segments
from pipeline.runners.engine_host import EngineHost
from pipeline.runners.host_messages import Advance
from pipeline.runners.merge import MergeWork
from pipeline.solutions import partition_log
from pipeline.solutions.partition_log import PartitionLogs, PartitionWriter
from pipeline.solutions.solution_log import SolutionWriter
from tests.soak import is_full
from tests.support import spark_cases as cases


def solve(data: Path, logs: PartitionLogs, share: PartitionShare, ends: Sequence[int]) -> None:
    """Write a partition's log with a writer and an engine of its own for each range."""
    for end in sorted({*ends, cases.head_of(data)}):
        with closing(EngineHost(data, share)) as host, closing(PartitionWriter(logs, share.partition)) as writer:
            if end > writer.position:
                for piece in host.run(writer.position, end, 40):
                    commit(writer, piece)
            host.save()


def commit(writer: PartitionWriter, piece: Advance) -> None:
    writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)


def merge_all(data: Path, logs: PartitionLogs, number: int) -> int:
    """Merge all that can be, and return the position that was reached."""
    work = MergeWork(data, logs, number)
    with closing(work.open_output()) as writer, closing(work.open_host(writer)) as host:
        for piece in host.run(writer.position, work.head()):
            writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
        if writer.position > logs.begin:
            host.sweep(writer.sync())
        return writer.position


MERGED = [("sequences", 2), ("changing", 4), ("rules", 2), ("completing", 4), ("sequences", 4), ("changing", 2), ("rules", 4), ("completing", 2)]


@pytest.mark.parametrize(("case", "number"), MERGED if is_full() else MERGED[:4])
def test_merged_logs_are_the_solution_log_of_one_engine(case: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partitions read slices for three; the engine reads a log without."""
    data, plain = tmp_path / "data", tmp_path / "plain"
    cases.write(case, plain)
    monkeypatch.setattr(codec, "SLICE_ROWS", 0)
    cases.write(case, data, 3)
    logs, head = PartitionLogs(data / "partitions", 0), cases.head_of(data)
    for partition in range(number):
        solve(data, logs, PartitionShare(partition, number), range(7 + partition, head, 20 + 13 * partition))
    assert merge_all(data, logs, number) == head
    assert cases.found_in(data)[0]
    assert cases.found_in(data) == cases.undisturbed(plain, tmp_path / "elsewhere")


def test_nothing_is_merged_beyond_the_partition_that_is_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    cases.write("sequences", data)
    logs = PartitionLogs(data / "partitions", 0)
    solve(data, logs, PartitionShare(0, 2), [])
    assert merge_all(data, logs, 2) == 0, "the second partition has no log yet"
    with closing(EngineHost(data, PartitionShare(1, 2))) as host, closing(PartitionWriter(logs, 1)) as second:
        for piece in host.run(0, 31, 40):
            commit(second, piece)
    assert merge_all(data, logs, 2) == 31


def test_logs_begin_where_the_driver_did(tmp_path: Path) -> None:
    """Solutions before that position are merged already, by an earlier driver or another runner."""
    data = tmp_path / "data"
    cases.write("sequences", data)
    with closing(LogReader(data)) as log, closing(EngineHost(data, reader=log)) as host, closing(SolutionWriter(data)) as writer:
        for piece in host.run(0, 50, 40):
            writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
    logs = PartitionLogs(data / "partitions", 50)
    for partition in range(2):
        solve(data, logs, PartitionShare(partition, 2), [90])
    merge_all(data, logs, 2)
    assert cases.found_in(data) == cases.undisturbed(data, tmp_path / "again")


def test_segments_that_are_merged_go_while_the_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_log, "SEGMENT_BYTES", 4_000)
    data = tmp_path / "data"
    cases.write("sequences", data)
    logs, head = PartitionLogs(data / "partitions", 0), cases.head_of(data)
    for end in range(10, head + 1, 10):
        for partition in range(2):
            with closing(EngineHost(data, PartitionShare(partition, 2))) as host, closing(PartitionWriter(logs, partition)) as part:
                for piece in host.run(part.position, end, 40):
                    commit(part, piece)
        assert merge_all(data, logs, 2) == logs.merged() == end
        assert all(len(segments(logs.path_of(partition))) == 1 for partition in range(2))
    assert segments(logs.path_of(0))[0] > 0
    assert cases.found_in(data)[0] == [found for found in cases.undisturbed(data, tmp_path / "elsewhere")[0] if found.entry < end]


def test_a_log_has_one_writer(tmp_path: Path) -> None:
    logs = PartitionLogs(tmp_path, 3)
    with closing(PartitionWriter(logs, 0)) as writer, pytest.raises(Locked):
        PartitionWriter(logs, 0)
    assert writer.position == 3
