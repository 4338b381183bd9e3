"""This module keeps what one partition found, until the driver has merged it with the others'
(docs/decisions/0061-a-task-for-each-partition.md).

Each partition has a directory of frames, which its task writes and the driver reads. It lives as long as the driver,
from whose position it begins.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

import msgspec
import pyarrow as pa

from engine.messages import TIED, Outcome, StateChange, int64s
from epsparql.deferred_methods import dataclass
from epsparql.durable_files import replace_file
from pipeline.log.encoding.arrow_ipc import open_rows, parts_of
from pipeline.log.segments import SEGMENT_BYTES, FrameReader, FrameWriter, segment_path, segments, write_begin

_MERGED = "merged"
_CHANGES = b"changes"
_NOTHING = pa.RecordBatch.from_pylist([], schema=TIED)


@dataclass(frozen=True, slots=True)
class PartitionLogs:
    """Names the directory of one driver's partition logs, and the position at which they begin."""

    directory: Path
    begin: int

    def path_of(self, partition: int) -> Path:
        return self.directory / str(partition)

    def note_merged(self, position: int) -> None:
        """Note up to where merged solutions outlive a crash of the machine."""
        replace_file(self.directory / _MERGED, b"%d\n" % position, durable=False)

    def merged(self) -> int:
        """Return the position that was noted, or the one at which the logs begin."""
        with suppress(FileNotFoundError):
            return int((self.directory / _MERGED).read_text(encoding="ascii"))
        return self.begin


class PartitionWriter:
    """Writes the log of one partition, as its only writer.

    The interface is `SolutionWriter`'s. Raises: Locked, Corrupt.
    """

    def __init__(self, logs: PartitionLogs, partition: int) -> None:
        self._logs, self._frames = logs, FrameWriter(logs.path_of(partition), durable=False, segment_bytes=SEGMENT_BYTES)
        if self.position < logs.begin:  # it is new: one empty frame stands for what was merged before
            self._frames.append((), self.position, logs.begin)
            self._frames.publish()

    @property
    def position(self) -> int:
        """Return the input-log position up to which solutions are here."""
        return self._frames.position

    def commit(self, lo: int, hi: int, solutions: pa.RecordBatch, changes: Sequence[StateChange] = ()) -> None:
        """Append and publish the solutions (TIED) of the entries [lo, hi). Raises: OutOfOrder, OSError."""
        payload: Sequence[bytes | memoryview] = ()
        if solutions.num_rows or changes:
            metadata = {**(solutions.schema.metadata or {}), _CHANGES: msgspec.json.encode([astuple(change) for change in changes])}
            payload = parts_of(solutions.replace_schema_metadata(metadata))
        self._frames.append(payload, lo, hi, solutions.num_rows)
        self._frames.publish()

    def sync(self) -> int:
        """Return the position up to which the driver has made solutions durable.

        This log itself is made anew after a crash of the machine.
        """
        return self._logs.merged()

    def close(self) -> None:
        self._frames.close()


class PartitionReader:
    """Reads the log of one partition on, in the process that merges. One thread at a time."""

    def __init__(self, logs: PartitionLogs, partition: int) -> None:
        self._directory, self._frames = logs.path_of(partition), FrameReader(logs.path_of(partition))
        self._known: tuple[int, int, Outcome] | None = None  # a frame: first position, the one after, content

    @property
    def head_file(self) -> Path:
        return self._frames.head_file

    @property
    def position(self) -> int:
        """Return the position up to which the partition has published what it found."""
        return self._frames.head().position

    def find_frame_end(self, position: int) -> int:
        """Return the position after the frame that holds this one, which is published."""
        return self._frame(position)[1]

    def read(self, lo: int, hi: int) -> Outcome:
        """Return what the partition found of the entries [lo, hi), which stand in one frame."""
        first, after, found = self._frame(lo)
        if (first, after) == (lo, hi):
            return found
        entries = int64s(found.solutions.column("entry"))  # solutions come in order of their entries
        begin, end = entries.searchsorted((lo, hi)).tolist()
        return Outcome(found.solutions.slice(begin, end - begin), tuple(change for change in found.changes if lo <= change.entry < hi))

    def drop_segments(self, position: int) -> None:
        """Remove the segments that hold nothing from a position on."""
        known = [first for first in segments(self._directory) if first <= position]
        if len(known) > 1:
            write_begin(self._directory, known[-1])
        for first in known[:-1]:
            segment_path(self._directory, first).unlink(missing_ok=True)

    def close(self) -> None:
        self._frames.close()

    def _frame(self, position: int) -> tuple[int, int, Outcome]:
        if self._known is None or not self._known[0] <= position < self._known[1]:
            frame = next(self._frames.frames(position))
            self._known = frame.first, frame.after, _decode_frame(self._frames.payload(frame))
        return self._known


def _decode_frame(payload: memoryview) -> Outcome:
    if not payload:
        return Outcome(_NOTHING, ())
    stream = open_rows(payload)
    changes = msgspec.json.decode(stream.schema.metadata[_CHANGES])
    return Outcome(stream.read_next_batch(), tuple(StateChange(*change) for change in changes))
