"""This module runs all partitions of a data directory in one process: an engine each, on threads of their own.

That pays since the kernel holds no lock of the interpreter's. Another thread puts the solutions in order, also ahead
of the reader who takes them.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from engine.messages import StateChange
from engine.partitioning import PartitionShare
from pipeline.log import LogReader, SharedReader
from pipeline.log.reader import Published
from pipeline.partition_count import SNAPSHOT_WEIGHT
from pipeline.runners.engine_host import MAX_ROWS, EngineHost
from pipeline.runners.host_messages import Advance
from pipeline.runners.merge import Merger
from pipeline.runners.prefetch import Prefetch
from pipeline.solutions.solution_log import SolutionReader

PIECES = 6
"""This many pieces may wait to be taken, so engines go on while one is committed."""
_UNMERGED = 4
"""This many pieces of each engine may wait for the others'."""


class Host(Protocol):
    """A host keeps the engines of a data directory between calls. One thread at a time."""

    def run(self, lo: int, hi: int, max_rows: int = MAX_ROWS) -> Generator[Advance, None, None]:
        """Yield what each piece of [lo, hi) brings, in order."""

    def tell(self) -> None: ...
    def save(self) -> None: ...
    def sweep(self, committed: int) -> None: ...
    def close(self) -> None: ...
    @property
    def unswept(self) -> bool: ...
    @property
    def published(self) -> Published | None: ...


class Partitions:
    """Hosts several engines, as an `EngineHost` hosts one."""

    def __init__(self, data_dir: Path | str, number: int, snapshot_weight: int = SNAPSHOT_WEIGHT, ended: Iterable[StateChange] | None = None) -> None:
        """Open the engines. `ended` has the changes of state that are known; None for those of the solution log."""
        if ended is None:
            with closing(SolutionReader(data_dir)) as solutions:
                ended = solutions.changes
        self._reader = SharedReader(data_dir, number, _UNMERGED + 2)  # the blocks that wait, one at work, and one that was taken
        self._hosts = [
            EngineHost(data_dir, PartitionShare(partition, number), reader=self._reader, snapshot_weight=snapshot_weight)
            for partition in range(number)
        ]
        self._courses = [Prefetch(host, _UNMERGED) for host in self._hosts]
        self._merging = Prefetch(Merging(self._courses, Merger(ended)), PIECES)

    def run(self, lo: int, hi: int, max_rows: int = MAX_ROWS) -> Generator[Advance, None, None]:
        """Yield what each piece of [lo, hi) brings, in order. The log alone says where it is cut, so all partitions
        cut it alike.

        The engines are ahead of what is taken, within the range. A caller that stops early leaves them there. No
        engine can go back, so the next run then begins with snapshots.
        """
        courses, position = (*self._courses, self._merging), lo
        for course in courses:
            course.go(lo, hi, max_rows)
        try:
            while position < hi:
                piece = self._merging.take_piece()
                position = piece.hi
                yield piece
            for course in courses:
                course.finish()
        finally:
            self._halt()

    def _halt(self) -> None:
        self._merging.halt()
        for course in (*self._courses, self._merging):  # the last one waits for the others
            course.stop()

    def tell(self) -> None:
        for host in self._hosts:
            host.tell()

    def save(self) -> None:
        self._halt()
        for saving in [course.soon(host.save) for course, host in zip(self._courses, self._hosts, strict=True)]:
            saving.result()

    def sweep(self, committed: int) -> None:
        for host in self._hosts:
            host.sweep(committed)

    @property
    def published(self) -> Published | None:
        """Return None, since the partitions read what is on disk."""
        return None

    @property
    def unswept(self) -> bool:
        return any(host.unswept for host in self._hosts)

    def close(self) -> None:
        self._halt()
        for course in (*self._courses, self._merging):
            course.close()
        for host in self._hosts:
            host.close()


class Merging:
    """Puts in order what the engines bring."""

    def __init__(self, courses: Sequence[Prefetch], merger: Merger) -> None:
        self._courses, self._merger = courses, merger

    def run(self, lo: int, hi: int, max_rows: int) -> Generator[Advance, None, None]:
        position = lo
        while position < hi:
            merged = self._merged([course.take_piece() for course in self._courses])
            position = merged.hi
            yield merged

    def _merged(self, pieces: Sequence[Advance]) -> Advance:
        lo, hi = pieces[0].lo, pieces[0].hi
        assert all((piece.lo, piece.hi) == (lo, hi) for piece in pieces), pieces
        return Advance(lo, hi, self._merger.merged(lo, [piece.outcome for piece in pieces]))


def host_for(
    data_dir: Path | str,
    partitions: int = 1,
    *,
    reader: LogReader | None = None,
    snapshot_weight: int = SNAPSHOT_WEIGHT,
    ended: Iterable[StateChange] | None = None,
) -> EngineHost | Partitions:
    """Return a host of that many partitions. `ended` is as for `Partitions`."""
    if partitions == 1:
        return EngineHost(data_dir, reader=reader, snapshot_weight=snapshot_weight)
    return Partitions(data_dir, partitions, snapshot_weight, ended)
