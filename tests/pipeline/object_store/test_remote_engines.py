"""Engines that know a data directory by the store that keeps it alone."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.dictionary.arrow_encoding import plain
from engine.messages import StateChange
from pipeline.errors import StoreFailed
from pipeline.log import LogReader, LogWriter
from pipeline.object_store.backends import connect_store
from pipeline.partition_count import record
from pipeline.replication.replicator import Replicator
from pipeline.runners.engine_report import read_report
from pipeline.runners.host_messages import Elsewhere
from pipeline.runners.partitions import Host, host_for
from pipeline.runners.remote_engines import Remote, host_of
from tests.support import spark_cases as cases

WEIGHT = 4_000
"""Between two snapshots, so that each case has some."""
SEGMENT = 6_000


@contextmanager
def kept(data: Path, store: Path, case: Callable[[LogWriter], None]) -> Iterator[Replicator]:
    """A data directory with the log of a case, in a store."""
    keeper = Replicator(data, connect_store(str(store)), away=True)
    try:
        with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT, keep=keeper.write_log) as log:
            case(log)
        keeper.round()
        yield keeper
    finally:
        keeper.stop()


def brought(host: Host, positions: range) -> list[list[tuple[list[dict[str, object]], tuple[StateChange, ...]]]]:
    """Return what each range brings: solutions and changes of state, by piece."""
    return [
        [(plain(piece.outcome.solutions).to_pylist(), piece.outcome.changes) for piece in host.run(lo, lo + positions.step, max_rows=40)]
        for lo in positions
    ]


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("case", ["changing", "rules"])
def test_they_bring_what_those_bring_that_see_it(case: str, partitions: int, tmp_path: Path) -> None:
    data, store, near = tmp_path / "data", tmp_path / "store", tmp_path / "near"
    near.mkdir()
    record(data, partitions)
    with kept(data, store, cases.CASES[case]) as keeper, closing(LogReader(data)) as log:
        head = log.head() // 30 * 30
        with closing(host_for(data, partitions)) as host:
            expected = brought(host, range(0, head, 30))
        half = head // 60 * 30
        elsewhere = Elsewhere(str(store), near)
        with closing(Remote(elsewhere, partitions, WEIGHT)) as host:
            assert brought(host, range(0, half, 30)) == expected[: half // 30]
            assert host.unswept
            host.sweep(half)
            host.save()
        held = {name for name in connect_store(str(store)).names("snapshots") if name.endswith(".snapshot")}
        assert held, "they are in the store"
        keeper.round()
        assert read_report(data) is not None
        assert keeper.secured() == (0 if partitions == 2 else min(int(name.removesuffix(".snapshot").partition("-")[2]) for name in held))
        with closing(Remote(elsewhere, partitions, WEIGHT)) as host:  # on another machine
            assert brought(host, range(half, head, 30)) == expected[half // 30 :]


def test_another_number_of_partitions_begins_with_the_log(tmp_path: Path) -> None:
    data, store, near = tmp_path / "data", tmp_path / "store", tmp_path / "near"
    near.mkdir()
    with kept(data, store, cases.sequences), closing(LogReader(data)) as log:
        head = log.head() // 10 * 10
        with closing(Remote(Elsewhere(str(store), near), 1, WEIGHT)) as host:
            expected = brought(host, range(0, head, 10))
            host.save()
        with closing(Remote(Elsewhere(str(store), near), 2, WEIGHT)) as host:
            assert all(name.startswith(("0of2-", "1of2-")) for name in connect_store(str(store)).names("snapshots"))
            assert brought(host, range(0, head, 10)) == expected


def test_a_position_that_the_store_does_not_have_is_told(tmp_path: Path) -> None:
    data, store, near = tmp_path / "data", tmp_path / "store", tmp_path / "near"
    near.mkdir()
    with kept(data, store, cases.sequences), closing(LogReader(data)) as log, closing(Remote(Elsewhere(str(store), near))) as host:
        beyond, told = range(0, log.head() + 10, log.head() + 10), r"does not have the log up to position \d+; is it the server's --store\?"
        with pytest.raises(StoreFailed, match=told):
            brought(host, beyond)


def test_tasks_of_a_process_share_them(tmp_path: Path) -> None:
    data, store, near = tmp_path / "data", tmp_path / "store", tmp_path / "near"
    near.mkdir()
    with kept(data, store, cases.sequences):
        host = host_of(Elsewhere(str(store), near))
        assert host is host_of(Elsewhere(str(store), near))
        host.close()
