"""All buckets of a data directory in one process: an engine each, on threads of their own, since the kernel holds no lock of the interpreter's."""

from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Protocol

from engine.routing import Share
from pipeline.hosting import MAX_ROWS, Advance, EngineHost
from pipeline.log import LogReader, SharedReader
from pipeline.merging import Merger
from pipeline.sharing import SNAPSHOT_WEIGHT
from pipeline.solutions import SolutionReader


class Host(Protocol):
    """What keeps the engines of a data directory between calls. One thread at a time."""

    def run(self, lo: int, hi: int, max_rows: int = MAX_ROWS) -> Generator[Advance, None, None]: ...
    def tell(self) -> None: ...
    def save(self) -> None: ...
    def sweep(self, committed: int) -> None: ...
    def close(self) -> None: ...
    @property
    def unswept(self) -> bool: ...


class Buckets:
    """As an `EngineHost`, of several."""

    def __init__(self, data_dir: Path | str, number: int, snapshot_weight: int = SNAPSHOT_WEIGHT) -> None:
        with closing(SolutionReader(data_dir)) as solutions:
            self._merger = Merger(solutions.changes)
        self._reader = SharedReader(data_dir)
        self._hosts = [EngineHost(data_dir, Share(bucket, number), reader=self._reader, snapshot_weight=snapshot_weight) for bucket in range(number)]
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="bucket")

    def run(self, lo: int, hi: int, max_rows: int = MAX_ROWS) -> Generator[Advance, None, None]:
        """What each piece of [lo, hi) brings, in order. The log alone says where it is cut, so all buckets cut it alike.

        While one is merged and taken, the engines are at work on the next; who stops early leaves them ahead of what was taken, from where no engine can
        go back: then the next run begins with snapshots.
        """
        runs = [host.run(lo, hi, max_rows) for host in self._hosts]
        coming = self._next_of(runs)
        try:
            while pieces := self._come(coming):
                coming = self._next_of(runs)
                yield self._merged(pieces)
        finally:
            wait(coming)  # what runs cannot be closed
            for run in runs:
                run.close()

    def _next_of(self, runs: Sequence[Generator[Advance, None, None]]) -> list[Future[Advance | None]]:
        return [self._pool.submit(next, run, None) for run in runs]

    def _come(self, coming: Sequence[Future[Advance | None]]) -> list[Advance]:
        """Where one fails, the others are waited for."""
        wait(coming)
        return [piece for each in coming if (piece := each.result()) is not None]

    def _merged(self, pieces: Sequence[Advance]) -> Advance:
        lo, hi = pieces[0].lo, pieces[0].hi
        assert len(pieces) == len(self._hosts), pieces
        assert all((piece.lo, piece.hi) == (lo, hi) for piece in pieces), pieces
        return Advance(lo, hi, self._merger.merged(lo, [piece.outcome for piece in pieces]))

    def tell(self) -> None:
        for host in self._hosts:
            host.tell()

    def save(self) -> None:
        list(self._pool.map(EngineHost.save, self._hosts))

    def sweep(self, committed: int) -> None:
        for host in self._hosts:
            host.sweep(committed)

    @property
    def unswept(self) -> bool:
        return any(host.unswept for host in self._hosts)

    def close(self) -> None:
        self._pool.shutdown()
        for host in self._hosts:
            host.close()


def host_for(
    data_dir: Path | str, buckets: int = 1, *, reader: LogReader | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT
) -> EngineHost | Buckets:
    """A host of that many buckets."""
    if buckets == 1:
        return EngineHost(data_dir, reader=reader, snapshot_weight=snapshot_weight)
    return Buckets(data_dir, buckets, snapshot_weight)


_hosts: dict[
    tuple[Path, int, int], EngineHost | Buckets
] = {}  # the one mutable module state: Spark's tasks come and go, and their worker process stays
_hosts_lock = Lock()


def host_of(data_dir: Path | str, buckets: int = 1, snapshot_weight: int = SNAPSHOT_WEIGHT) -> EngineHost | Buckets:
    """The process's host of a data directory: for runners whose tasks come and go."""
    key = (Path(data_dir).resolve(), buckets, snapshot_weight)
    with _hosts_lock:
        if key not in _hosts:
            _hosts[key] = host_for(data_dir, buckets, snapshot_weight=snapshot_weight)
        return _hosts[key]
