"""This module keeps the solution log of a data directory, in its `solutions/`: frames of solutions, each of a range
of input-log positions.

Nothing is fsynced on the way but a full segment: solutions are a function of the input log. So what a crash takes
from the end is computed again, with the same ids. A process that dies loses nothing it wrote. Data come before the
head record that publishes them, so a torn tail is never seen, and the next writer cuts it off.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.dictionary.arrow_encoding import plain
from engine.messages import Micros, StateChange, int64s
from epsparql.deferred_methods import dataclass
from pipeline.errors import Gone, Locked, NotOfOneLog, OutOfOrder
from pipeline.head_poll import HeadPoll
from pipeline.log.log_fingerprint import Marks
from pipeline.log.reader import Published
from pipeline.log.segments import LINK, SEGMENT_BYTES, FrameReader, FrameWriter, segment_path, segments
from pipeline.solutions.instance_index import InstanceIndex
from pipeline.solutions.query_index import FrameIndex, Index, InUse, RecentFrames, read_base
from pipeline.solutions.result_kinds import InstanceLife
from pipeline.solutions.solution_ids import (
    STORED,
    FrameSummary,
    Key,
    KeyRange,
    assign,
    decode_solutions,
    encode_solutions,
    key_of,
    last_keys,
    solution_id,
)

NONE_STORED = pa.RecordBatch.from_pylist([], schema=STORED)
_KEPT_FRAMES, _KEPT_BYTES = 16, 8 << 20
_FEW_FRAMES, _SMALL_FRAME = 4, 32 << 10


@dataclass(frozen=True, slots=True)
class StoredSolution:
    """Represents a solution. `values` of a SELECT has a term (N-Triples text) per projected variable, None if unbound.

    Of a CONSTRUCT or DESCRIBE it has N-Triples statements, of an ASK a boolean.
    """

    id: str
    query: str
    registered: int
    entry: int
    start: Micros
    end: Micros
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts the solutions that a registration has given so far; `last` is its last solution's id, and `gone` of them
    are no longer kept.
    """

    count: int = 0
    last: str | None = None
    gone: int = 0


class SolutionWriter:
    """Writes a data directory's solution log, as its only writer. One thread at a time. Raises: Locked, Corrupt.

    A reader in the same process finds what was written last in `recent`, which is its own. `published` is the input
    log's, of its writer.
    """

    def __init__(
        self, data_dir: Path | str, *, segment_bytes: int = SEGMENT_BYTES, recent: RecentFrames | None = None, published: Published | None = None
    ) -> None:
        directory = Path(data_dir) / "solutions"
        self._frames = FrameWriter(directory, durable=False, segment_bytes=segment_bytes)
        try:
            index = Index()
            with closing(FrameReader(directory)) as reader:
                index.read_on(reader, RecentFrames())
        except BaseException:
            self._frames.close()
            raise
        self._recent = recent or RecentFrames()
        self._recent.begin(self._frames.head)
        self._marks = Marks(Path(data_dir), published)
        self._last: dict[int, Key] = {registered: places.last for registered, places in index.places.items() if places.last is not None}

    @property
    def position(self) -> int:
        """Return the input-log position up to which solutions are here."""
        return self._frames.position

    def commit(self, lo: int, hi: int, solutions: pa.RecordBatch, changes: Sequence[StateChange] = ()) -> bool:
        """Append and publish the solutions (SOLUTIONS) of the entries [lo, hi).

        Return False if they are here already. Raises: OutOfOrder, OSError.
        """
        if hi <= self.position:
            return False
        if lo != self.position:
            raise OutOfOrder(f"solutions of [{lo}, {hi}) cannot follow position {self.position}")
        registered, ends = (int64s(solutions.column(name)) if solutions.num_rows else np.empty(0, np.int64) for name in ("registered", "end"))
        ordinals, runs = assign(registered, ends, self._last)
        summary = FrameSummary(tuple(runs), tuple(changes))
        payload, stored = encode_solutions(solutions, ordinals, summary) if runs or changes else ((), None)
        self._frames.append(payload, lo, hi, len(ordinals), self._marks.mark_before(hi))
        self._frames.publish()
        frame = self._frames.last
        assert frame is not None
        self._recent.add(frame, summary, stored if frame.length <= _SMALL_FRAME else None, self._frames.head)
        self._last.update(last_keys(runs))
        if (used := self._recent.in_use) is not None:
            self._recent.in_use = None
            self._last = {number: last for number, last in self._last.items() if used.has(number)}
        return True

    def sync(self) -> int:
        """Make the solutions so far outlive a crash of the machine, and return the position up to which they are here."""
        self._frames.sync()
        return self.position

    def close(self) -> None:
        self._frames.close()
        self._marks.close()


def check_solutions(data_dir: Path | str) -> None:
    """See that the solutions are whole and of the log beside them: each frame's flags are the mark of the log's frame
    up to which it goes.

    Raises: Corrupt, NotOfOneLog.
    """
    directory = Path(data_dir) / "solutions"
    if not directory.exists():
        return
    try:
        read_base(directory)
        with closing(FrameWriter(directory, durable=False)) as frames:
            reached = frames.position
        mark = _read_last_mark(directory)
    except Locked:  # a killed server's runner holds the lock for some seconds: it was fed from this log
        return
    with closing(FrameReader(directory.parent / "log")) as log:
        head = log.head().position
    remedy = "restore log/ from a copy, or remove solutions/ and snapshots/ to compute all again from it"
    if reached > head:
        raise NotOfOneLog(directory, f"reaches log position {reached}, and log/ ends at {head}", remedy)
    with closing(Marks(directory.parent)) as marks:
        if mark and (found := marks.mark_before(reached)) and found != mark:
            raise NotOfOneLog(directory, f"is of another log than log/, at position {reached}", remedy)


def _read_last_mark(directory: Path) -> int:
    """Return the mark of the last frame, wherever it is: the last segment may have been cut to nothing.

    0 where there is none. Raises: Corrupt.
    """
    with closing(FrameReader(directory)) as reader:
        for first in reversed(segments(directory)):
            frames = [frame for frame in reader.frames_of(first, 0, segment_path(directory, first).stat().st_size) if not frame.flags & LINK]
            if frames:
                return frames[-1].flags
    return 0


class _DecodedFrames:
    """Caches the solutions of the frames that were read last: a few frames, of a few MB in all.

    A catch-up gives frames of many MB, and each batch keeps the bytes that it was read from. One frame is kept whatever
    its size.
    """

    def __init__(self) -> None:
        self._kept, self._bytes = dict[tuple[int, int], tuple[pa.RecordBatch, int]](), 0

    def find_batch(self, place: tuple[int, int]) -> pa.RecordBatch | None:
        """Return the solutions of the frame at a segment and a byte, if they are kept."""
        return self._kept.get(place, (None, 0))[0]

    def add(self, place: tuple[int, int], batch: pa.RecordBatch, size: int) -> None:
        """Add a frame of `size` bytes, and drop the oldest ones beyond the bounds."""
        self._kept[place] = batch, size
        self._bytes += size
        while len(self._kept) > _KEPT_FRAMES or (len(self._kept) > 1 and self._bytes > _KEPT_BYTES):
            self._bytes -= self._kept.pop(next(iter(self._kept)))[1]


class SolutionReader:
    """Reads and follows the solution log from any process. Thread-safe; every call sees what was published before it.

    A writer in the same process puts what it has published into `recent`.
    """

    def __init__(self, data_dir: Path | str) -> None:
        self.recent = RecentFrames()
        self._directory = Path(data_dir) / "solutions"
        self._frames, self._index = FrameReader(self._directory), Index()
        self._poll = HeadPoll(self._frames.head_file)
        self._lock = Lock()  # guards the first two; held for moments only, for an event loop waits for it
        self._stored, self._decoded = FrameReader(self._directory), _DecodedFrames()
        self._stored_lock = Lock()  # guards these two
        self._instances: dict[int, InstanceIndex] = {}
        self._instances_lock = Lock()  # guards this one, and is taken before the others

    @property
    def position(self) -> int:
        """Return the input-log position up to which solutions are published."""
        if (head := self.recent.head) is not None:
            return head.position
        with self._lock:
            return self._frames.head().position

    def wait(self, position: int, timeout: float) -> int:
        """Return the position, as soon as it is beyond `position` or `timeout` seconds have passed."""
        return self._poll.wait(lambda: self.position, position, timeout)

    @property
    def changes(self) -> tuple[StateChange, ...]:
        """Return all state changes so far, in order."""
        with self._lock:
            self._index.read_on(self._frames, self.recent)
            return tuple(self._index.changes)

    def tally(self, registered: int) -> Tally:
        with self._lock:
            places = self._places(registered)
            return Tally(places.count, solution_id(*places.last) if places.last is not None else None, places.gone)

    def counts(self, registered: Iterable[int]) -> dict[int, int]:
        """Return how many solutions each of these registrations has given."""
        with self._lock:
            self._index.read_on(self._frames, self.recent)
            places = self._index.places
            return {each: places[each].count if each in places else 0 for each in registered}

    def rank(self, registered: int, last: str | None) -> int:
        """Return how many solutions a registration had given up to the one with the id `last`, that one included
        (None: those no longer kept).

        Raises: ValueError for a text that is no id.
        """
        key = None if last is None else key_of(last)
        with self._lock:
            places = self._places(registered)
            count, beyond = places.count, places.after(key, places.count)
        return count - int(self._read_rows(beyond, registered, KeyRange(key), count).num_rows)

    def before_last(self, registered: int, count: int) -> tuple[str | None, int]:
        """Return the id of the solution that the last `count` ones follow, and its rank from 1; None and 0 where
        there are no more than that.

        Where that solution is no longer kept, it is the last one of those that are not.
        """
        with self._lock:
            places = self._places(registered)
            rank = max(places.count - count, places.gone)
            previous, passed = places.ahead_of(rank)
        if rank <= 0:
            return None, 0
        if rank == passed:
            return None if previous is None else solution_id(*previous), rank
        found = self.read(registered, None if previous is None else solution_id(*previous), rank - passed)
        return listed(found.slice(found.num_rows - 1))[0].id, rank

    def read_rank(self, registered: int, rank: int, limit: int) -> pa.RecordBatch:
        """Return up to `limit` solutions (STORED) after the first `rank` ones.

        Raises: Gone where some of them are no longer kept.
        """
        with self._lock:
            places = self._places(registered)
            if rank < places.gone:
                raise Gone(f"the first {places.gone} solutions are no longer kept: read on from the first one kept")
            previous, passed = places.ahead_of(rank + 1)
        return self.read_range(registered, KeyRange(previous), rank - passed + limit).slice(rank - passed)

    def read(self, registered: int, after: str | None, limit: int) -> pa.RecordBatch:
        """Return up to `limit` solutions (STORED) of a registration after an id (None: from the first), in order.

        Raises: ValueError for a text that is no id.
        """
        return self.read_range(registered, KeyRange(None if after is None else key_of(after)), limit)

    def read_range(self, registered: int, keys: KeyRange, limit: int) -> pa.RecordBatch:
        """Return the first `limit` solutions (STORED) of a range, in its order: newest first reads the log from its
        end. Raises: Gone.
        """
        with self._lock:
            frames = self._places(registered).find_frames(keys, limit)
        return self._read_rows(frames, registered, keys, limit)

    def read_instance(self, registered: int, life: InstanceLife, keys: KeyRange, limit: int) -> tuple[pa.RecordBatch, Key | None]:
        """Return the first `limit` solutions (STORED) of a life of an instance in a range, in its order.

        Also return the key of the registration's last solution then: up to it, nothing else follows if there are fewer.
        Frames without solutions of the instance are not read, but for those that were never indexed. Raises: Gone.
        """
        literal = f'"{life.instance}"'
        with self._instances_lock:
            if (index := self._instances.get(registered)) is None:
                index = self._instances[registered] = InstanceIndex(self._directory, registered)
            with self._lock:
                places = self._places(registered)
                bounds, last, beyond = places.find_bounds(keys), places.last, places.list_beyond(index.reached)
                oldest = places.segments[0] if places.segments else 0
            index.read_on(beyond, lambda place: self._list_literals(place, registered))
            index.drop_before(oldest)
            frames = [] if bounds is None else list(index.find_frames(literal, *bounds, newest=keys.newest))
        found, count = [NONE_STORED], 0
        for place in frames:
            rows = _select_rows(self._batch(*place), registered, keys)
            found.append(plain(rows.filter(pa.array(is_of_life(rows, life))).slice(0, limit - count)))
            count += found[-1].num_rows
            if count >= limit:
                break
        return pa.concat_batches(found), last

    def _list_literals(self, place: tuple[int, int], registered: int) -> list[str]:
        """Return the ids of the instances with solutions in a frame, as literals."""
        ids: list[str] = pc.unique(list_instances(_select_rows(self._batch(*place), registered, KeyRange()))).to_pylist()
        return ids

    def read_at_hand(self, registered: int, after: str, limit: int) -> pa.RecordBatch | None:
        """Read as `read` does, where that takes moments; return None where a thread should read.

        Only the newest frames are read so, if they are small: the system has them in memory.
        """
        key = key_of(after)
        with self._lock:
            frames = self._places(registered).after(key, limit)
        if len(frames) > _FEW_FRAMES or not self._stored_lock.acquire(blocking=False):
            return None
        try:
            if any(self._find_batch(place) is None and self._stored.frame(*place).length > _SMALL_FRAME for place in frames):
                return None
        finally:
            self._stored_lock.release()
        return self._read_rows(frames, registered, KeyRange(key), limit)

    def _read_rows(self, frames: Iterable[tuple[int, int]], registered: int, keys: KeyRange, limit: int) -> pa.RecordBatch:
        found, count = [NONE_STORED], 0
        for segment, byte in frames:
            if count >= limit:
                break
            found.append(plain(_select_rows(self._batch(segment, byte), registered, keys, limit - count)))
            count += found[-1].num_rows
        return found[1] if len(found) == 2 else pa.concat_batches(found)

    def emitted(self, position: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield all registrations' solutions (STORED) of entries at or after `position`, in order of emission, one
        batch per committed range.
        """
        frames = FrameReader(self._directory)
        try:
            for frame in frames.frames(position):
                if frame.rows:
                    found = decode_solutions(frames.payload(frame))
                    found = found.filter(pa.array(found.column("entry").to_numpy() >= position))
                    if found.num_rows:
                        yield plain(found)
        finally:
            frames.close()

    def needed(self, registered: int, after: str | None) -> int:
        """Return the position from which on frames hold a registration's solutions beyond an id (None: the first kept)."""
        key = None if after is None else key_of(after)
        with self._lock:
            places = self._places(registered)
            beyond = places.after(None if key is None or (places.before is not None and key < places.before) else key, 1)
            return beyond[0][0] if beyond else self._index.position

    def drop_segment(self, segment: int, in_use: InUse | None = None) -> None:
        """Note what must outlive the solutions in segments before this one, which are to be removed.

        Whoever reads on from an earlier id is told that it is gone. Nothing is noted of registrations that are not in
        use, and have no solution left.
        """
        with self._lock:
            self._index.read_on(self._frames, self.recent)
            self._index.drop_segment(self._directory, segment, in_use)
            self.recent.in_use = in_use

    def close(self) -> None:
        with self._lock, self._stored_lock:
            self._frames.close()
            self._stored.close()

    def _places(self, registered: int) -> FrameIndex:
        self._index.read_on(self._frames, self.recent)
        return self._index.places.get(registered) or FrameIndex()

    def _batch(self, segment: int, byte: int) -> pa.RecordBatch:
        """Return the solutions of a frame as they are stored; the latest are kept, for many subscribers read the same
        ones.
        """
        with self._stored_lock:
            known = self._find_batch((segment, byte))
            if known is None:
                payload = self._stored.payload(self._stored.frame(segment, byte))
                known = decode_solutions(payload)  # points into the payload
                self._decoded.add((segment, byte), known, len(payload))
        return known

    def _find_batch(self, place: tuple[int, int]) -> pa.RecordBatch | None:
        found = self._decoded.find_batch(place)
        return self.recent.find_solutions(place) if found is None else found


def _select_rows(batch: pa.RecordBatch, registered: int, keys: KeyRange, limit: int | None = None) -> pa.RecordBatch:
    """Return the first `limit` solutions of a registration in a range; None: all of them.

    Within a registration they stand in order of their keys.
    """
    rows = np.flatnonzero(int64s(batch.column("registered")) == registered)
    ends, ordinals = int64s(batch.column("end")), int64s(batch.column("ordinal"))

    def find_key(row: int) -> tuple[int, int]:
        return int(ends[row]), int(ordinals[row])

    if len(rows) and keys.before is not None:
        rows = rows[: bisect_left(rows, keys.before, key=find_key)]
    if len(rows) and keys.after is not None:
        rows = rows[bisect_right(rows, keys.after, key=find_key) :]
    if keys.newest:
        return batch.take(pa.array(rows[::-1][:limit]))
    rows = rows[:limit]
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return batch.slice(int(rows[0]), len(rows))
    return batch.take(pa.array(rows))


def list_instances(batch: pa.RecordBatch) -> pa.StringArray:
    """Return the id of each solution's instance, as a literal; the query of all of them has PARAMETERS."""
    lists: pa.ListArray = batch.column("values")
    return lists.values.take(lists.offsets[:-1])


def is_of_life(batch: pa.RecordBatch, life: InstanceLife) -> npt.NDArray[np.bool_]:
    """Return which solutions are of this life of an instance; the query of all of them has PARAMETERS."""
    own = pc.equal(list_instances(batch), f'"{life.instance}"').to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.bool_] = own & (int64s(batch.column("entry")) > life.since)
    return found


def listed(batch: pa.RecordBatch) -> list[StoredSolution]:
    """Return a stored batch as objects."""
    start, end = (batch.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    query, registered, entry, values, ordinal = (batch.column(name).to_pylist() for name in ("query", "registered", "entry", "values", "ordinal"))
    return [
        StoredSolution(solution_id(last, count), name, by, at, first, last, tuple(terms))
        for name, by, at, first, last, terms, count in zip(query, registered, entry, start, end, values, ordinal, strict=True)
    ]


__all__ = ["SolutionReader", "SolutionWriter", "StoredSolution", "Tally", "is_of_life", "list_instances", "listed", "solution_id"]
