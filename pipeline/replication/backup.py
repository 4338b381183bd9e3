"""This module copies a data directory whose server may run, so that a server can start from the copy.

What follows from the log is copied before the log, so that the copy's log reaches at least as far as everything else
in it. It ends where the solutions end, unless the runner is behind: then it has what was acknowledged before.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from epsparql.durable_files import sync_path
from pipeline.errors import BackupFailed, Corrupt
from pipeline.log.idempotency_keys import KEYS_FOLDER
from pipeline.log.segments import CHUNK, FrameReader, FrameWriter, Head, segment_path, segments
from pipeline.replication.manifest import LOG, SOLUTIONS
from pipeline.replication.restore import REGISTRATIONS, SNAPSHOTS, STATES, list_snapshots
from pipeline.scrub import Scrubber
from pipeline.solutions.solution_log import SolutionReader

_TRIES = 5
"""Retention may remove a file before it is copied; then the copy begins anew, so often at most."""

_PATIENCE_S = 10.0
"""The runner has this long to evaluate what was acknowledged before."""


def back_up(data_dir: Path, target: Path) -> int:
    """Copy a data directory to `target`, which must not exist or be empty. Return the log position up to which the
    copy goes.

    The copy is made beside `target`, and gets its name once it is whole and checked. Raises: BackupFailed, Corrupt,
    OSError.
    """
    if not (data_dir / LOG / "head").exists():
        raise BackupFailed(f"{data_dir} is no data directory: it has no {LOG}/head; give the directory of `epsparql serve --data`")
    if target.exists() and any(target.iterdir()):
        raise BackupFailed(f"{target} is not empty; give another directory, or one that does not exist")
    partial = target.absolute().with_name(f"{target.name}.partial")
    for tries in reversed(range(_TRIES)):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            positions = _copy_all(data_dir, partial)
        except FileNotFoundError:
            if not tries:
                raise
        else:
            break
    _check_copy(data_dir, partial, positions)
    if target.exists():
        target.rmdir()
    partial.rename(target)
    sync_path(target.absolute().parent)
    return positions[LOG]


def _copy_all(data_dir: Path, target: Path) -> dict[str, int]:
    """Copy snapshots, small files, solutions and the log, in this order, and return how far both logs go.

    Raises: FileNotFoundError, Corrupt, OSError.
    """
    for name in list_snapshots(data_dir):
        _copy(data_dir, target, f"{SNAPSHOTS}/{name}")
    for name in _list_states(data_dir):
        _copy(data_dir, target, name)
    least, reached = _read_head(data_dir / LOG).position, 0
    if (data_dir / SOLUTIONS / "head").exists():
        _wait_for_solutions(data_dir, least)
        solutions = _read_head(data_dir / SOLUTIONS)
        _copy_log(data_dir / SOLUTIONS, target / SOLUTIONS, (solutions.segment, solutions.size))
        reached = solutions.position
    position, end = _find_end(data_dir / LOG, max(least, reached))
    _copy_log(data_dir / LOG, target / LOG, end)
    return {SOLUTIONS: reached, LOG: position}


def _list_states(data_dir: Path) -> Iterator[str]:
    """Yield the small files beside the logs, keys before the catalog that names them."""
    for folder, pattern in ((KEYS_FOLDER, "*.keys"), *((folder, "*.json") for folder in REGISTRATIONS)):
        yield from (f"{folder}/{path.name}" for path in sorted((data_dir / folder).glob(pattern)))
    yield from (name for name in STATES if "/" not in name and (data_dir / name).exists())


def _read_head(log: Path) -> Head:
    with closing(FrameReader(log)) as reader:
        return reader.head()


def _wait_for_solutions(data_dir: Path, position: int) -> None:
    """Wait a moment in which a server that runs may evaluate the entries before a position."""
    with closing(SolutionReader(data_dir)) as solutions:
        deadline = time.monotonic() + _PATIENCE_S
        while solutions.position < position and (left := deadline - time.monotonic()) > 0:
            solutions.wait(solutions.position, left)


def _find_end(log: Path, position: int) -> tuple[int, tuple[int, int]]:
    """Return where the frames before a position end: the position there, and the segment and the byte in it."""
    with closing(FrameReader(log)) as reader:
        head = reader.head()
        frame = next(reader.frames(position, head), None)
        if frame is None:
            return head.position, (head.segment, head.size)
        if frame.first == position:
            return position, (frame.segment, frame.byte)
        return frame.after, (frame.segment, frame.end)


def _copy_log(source: Path, target: Path, end: tuple[int, int]) -> None:
    """Copy a log up to a byte of a segment, and then what says which of its segments are gone.

    Raises: FileNotFoundError, OSError.
    """
    target.mkdir(parents=True, exist_ok=True)
    for first in segments(source):
        if first <= end[0]:
            _copy_bytes(segment_path(source, first), segment_path(target, first), end[1] if first == end[0] else None)
    for name in STATES:
        if name.startswith(f"{source.name}/") and (source.parent / name).exists():
            _copy(source.parent, target.parent, name)


def _copy(data_dir: Path, target: Path, name: str) -> None:
    _copy_bytes(data_dir / name, target / name, None)


def _copy_bytes(source: Path, target: Path, size: int | None) -> None:
    """Copy a file, or its first bytes, with its mode."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as read, target.open("wb") as written:
        left = os.fstat(read.fileno()).st_size if size is None else size
        while left > 0 and (data := read.read(min(CHUNK, left))):
            written.write(data)
            left -= len(data)
        os.fchmod(written.fileno(), os.fstat(read.fileno()).st_mode & 0o777)
        written.flush()
        os.fsync(written.fileno())


def _check_copy(data_dir: Path, target: Path, positions: dict[str, int]) -> None:
    """Open both logs of the copy as a server does, and read all of them. Raises: Corrupt, OSError."""
    for kind, position in positions.items():
        with closing(FrameWriter(target / kind, durable=kind == LOG)) as frames:
            if frames.position != position:
                path = segment_path(data_dir / kind, frames.head.segment)
                raise Corrupt(path, frames.head.size, f"its frames hold up to position {frames.position}, and `head` says {position}")
    Scrubber(target, lambda _: None, rests=0).scrub()
