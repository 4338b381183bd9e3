"""This module bounds what both logs keep: no more than was asked for by age and size, and never less than a start
would need (docs/operations/recovery.md).

A log is cut by whole segments, from its beginning.
"""

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from epsparql.durable_files import sync_path
from pipeline.log.segments import read_begin, segment_path, segments, write_begin
from pipeline.partition_count import NEEDED, name_of, recorded
from pipeline.solutions.query_index import InUse
from pipeline.solutions.solution_log import SolutionReader


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds each log: segments whose last frame is older go, and the oldest while there are more bytes.

    None is no limit.
    """

    age: Micros | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """Counts the bytes that a sweep has freed."""

    log: int
    solutions: int


class Retention:
    """Sweeps the logs of a data directory in the process that writes the input log and serves `solutions`.

    `saved` is the position from which a start reads the log for its catalogue, `secured` the one from which engines
    need it. `log_holds` and `solution_holds` give positions from which on others still need the input log and the
    solutions: paused queries, exports, observers.
    """

    def __init__(self, data_dir: Path | str, limits: Limits, solutions: SolutionReader, saved: Callable[[], int], secured: Callable[[], int]) -> None:
        self._data, self._limits, self._solutions, self._saved, self._secured = Path(data_dir), limits, solutions, saved, secured
        self.log_holds: list[Callable[[], int]] = []
        self.solution_holds: list[Callable[[], int]] = []
        self.find_in_use: Callable[[], InUse] | None = None
        """If it is None, something of each registration is kept for ever."""
        self._in_use: InUse | None = None

    def sweep(self, now: Micros) -> Removed:
        """Remove segments beyond the limits. Raises: OSError; segments that were not removed are removed another time."""
        if self._limits == Limits():
            return Removed(0, 0)  # finding what is needed means reading a snapshot, and syncing all
        log, solutions = self._data / "log", self._data / "solutions"
        needed = min([self._saved(), self._secured(), *(hold() for hold in self.log_holds)])
        freed = _remove(log, _cut(log, self._limits, now, needed))
        cut = _cut(solutions, self._limits, now, min([self._solutions.position, *(hold() for hold in self.solution_holds)]))
        noted, found = self._in_use, None if self.find_in_use is None else self.find_in_use()
        if cut is not None:
            is_reached = noted is not None and self._solutions.position >= noted.position
            used = noted.united_with(found) if is_reached and noted and found else None  # a drop that was found first may not have been written
            self._solutions.drop_segment(cut, used)
        self._in_use = found
        return Removed(freed, _remove(solutions, cut))


def _cut(directory: Path, limits: Limits, now: Micros, needed: int) -> int | None:
    """Return the segment that is to be the first; None where it is the first already."""
    known = segments(directory) if directory.exists() else []
    sizes = [segment_path(directory, first).stat() for first in known]
    total, chosen = sum(found.st_size for found in sizes), None
    for found, following in zip(sizes, known[1:], strict=False):  # never the last one, which is written
        old = limits.age is not None and found.st_mtime_ns // 1000 < now - limits.age
        large = limits.bytes is not None and total > limits.bytes
        if following > needed or not (old or large):
            break
        total, chosen = total - found.st_size, following
    return chosen


def _remove(directory: Path, cut: int | None) -> int:
    """Remove segments before `cut`, the oldest first, so that the rest is always one piece; return the bytes freed."""
    freed = 0
    if cut is not None and read_begin(directory) < cut:
        write_begin(directory, cut)
    for first in segments(directory) if cut is not None else ():
        if cut is not None and first < cut:
            path = segment_path(directory, first)
            freed += path.stat().st_size
            path.unlink()
            sync_path(directory)
            path.with_suffix(".index").unlink(missing_ok=True)
            for derived in directory.glob(f"{path.stem}.*.instances"):
                derived.unlink(missing_ok=True)
    return freed


# ---------------------------------------------------------------- snapshots
def secured(data_dir: Path) -> int:
    """Return the position from which on the engine needs the log, whatever falls.

    It is that of the oldest snapshot, if that is whole, and is made durable here. Queries of several partitions may
    move, which reads the log from before the snapshots (docs/decisions/0104-moves-of-one-set.md).
    """
    directory, number = data_dir / "snapshots", recorded(data_dir) or 1
    found = _snapshots(directory)
    if found.keys() != {name_of(partition, number) for partition in range(number)}:
        return 0
    position = min(_read_needed_position(positions[min(positions)], number) for positions in found.values())
    for positions in found.values():
        path = positions[min(positions)]
        data = path.read_bytes()
        if zlib.crc32(data[4:]).to_bytes(4, "little") != data[:4]:
            return 0
    sync_snapshots(directory)
    return position


def sync_snapshots(directory: Path) -> None:
    """Make the snapshots of a directory durable, with their pieces and whatever else lies beside them."""
    for folder in (*directory.glob("*-pieces"), directory):
        for path in folder.iterdir():
            if path.is_file() and path.suffix != ".tmp":
                sync_path(path)
        sync_path(folder)


def find_needed_position(snapshots: Mapping[str, int], data_dir: Path) -> int | None:
    """Return the position from which on engines need the log, given the oldest snapshots of partitions; None for all
    of it.
    """
    return snapshots[name_of(0, 1)] if (recorded(data_dir) or 1) == 1 and snapshots.keys() == {name_of(0, 1)} else None


def _read_needed_position(snapshot: Path, number: int) -> int:
    """Return the position from which on the engine of a snapshot needs the log."""
    position = int(snapshot.stem.rpartition("-")[2])
    if number == 1:
        return position
    try:
        return min(position, int(snapshot.with_suffix(NEEDED).read_text(encoding="ascii")))
    except (FileNotFoundError, ValueError):
        return 0


def _snapshots(directory: Path) -> dict[str, dict[int, Path]]:
    found: dict[str, dict[int, Path]] = {}
    for path in directory.glob("*-*.snapshot"):
        partition, _, position = path.stem.rpartition("-")
        if position.isdecimal():
            found.setdefault(partition, {})[int(position)] = path
    return found
