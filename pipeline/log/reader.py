"""This module reads the input log: blocks for the engine, ranges for Spark, late rows for their feed."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Condition, Lock

import pyarrow as pa

from engine.messages import Block, Entry, Events, Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import Corrupt, Withdrawn
from pipeline.head_poll import HeadPoll
from pipeline.log.codec import HAS_LATE, HAS_REJECTED, HAS_SLICES, Content, Record, count_triples, decode, decode_records, decode_slices, rows_of
from pipeline.log.encoding.sliced_rows import Fetch, JoinedRows, SlicedRows, fetch_from
from pipeline.log.presence import mask_of
from pipeline.log.segments import Frame, FrameReader, oldest
from pipeline.rejected_rows import Rejected

KEPT_CONTENTS, SMALL, SMALL_ROWS = 64, 64 << 10, 1 << 10
"""A writer hands on this many frames in its own process beside writing them.

Each has at most so many bytes on disk, and so many rows.
"""
LATE_REASON = "its end is below the stream's watermark"
NO_TARGET = "it takes back what is not there, or what is no longer within the stream's horizon"


@dataclass(frozen=True, slots=True)
class LateRow:
    """Represents a late occurrence with the watermark it missed; `offset` is the log position after its entry."""

    s: str
    p: str
    o: str
    g: str | None
    start: Micros
    end: Micros
    watermark: Micros
    arrived: Micros
    offset: int
    reason: str = LATE_REASON


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """Represents a row that did not map, as it stands in the dead-letter feed; `offset` is the log position after its
    body's entry.
    """

    rejected: Rejected
    arrived: Micros
    offset: int


@dataclass(slots=True, eq=False)
class _Conclusion:
    """Holds what is to be called once the frame that was offered is durable, and how that ended."""

    call: Callable[[], None]
    ended: bool = False
    fault: BaseException | None = None

    def run(self) -> None:
        try:
            self.call()
        except BaseException as fault:  # noqa: BLE001  # it is raised where `call` came from
            self.fault = fault


class Published:
    """Holds the position that a writer in this process has published, for readers that wait on it.

    It also holds the contents of the last small frames, for readers that follow closely. One of them may read a small
    frame while it is synced:

        writer   append ── offer ── sync ─────────────── announce ── acks ── run_conclusion ── next frame
        runner             wait_ahead ── evaluate ── conclude (waits) ···················· ── wait_ahead

    What the runner hands to `conclude` is called once the frame is durable, by whichever of both ends last. So nobody
    sees a solution of an event that a crash could lose, and no thread is woken between the sync and the solutions.
    """

    def __init__(self, position: int, repair: Callable[[Corrupt], bool] = lambda _: False) -> None:
        """Create it; `repair` repairs a damaged segment, and returns whether it did."""
        self.position, self.repair = position, repair
        self.reach = position
        """The frame that is offered, if any, ends at this position, and begins at `position`."""
        self.damage = ""
        """The text says what is wrong with the log: nothing more is written to it then."""
        self._changed = Condition()
        self._recent: dict[int, tuple[Frame, Content]] = {}  # the key is the first position of a frame
        self._conclusion: _Conclusion | None = None
        self._read_ahead = self._withdrawn = False  # the frame that is offered was read; it was withdrawn after that

    def report(self, fault: Corrupt) -> bool:
        """Let a damaged segment be repaired. Where that cannot be, note the damage, and return False."""
        if self.repair(fault):
            return True
        self.damage = str(fault)
        return False

    def announce(self, position: int, last: tuple[Frame, Content] | None = None) -> None:
        """Publish a position, for whom `wake_readers` wakes.

        `last` is the frame that ends there, with its content, if it is small.
        """
        with self._changed:
            self._keep_frame(last)
            self.position = self.reach = position
            self._read_ahead = False

    def _keep_frame(self, frame: tuple[Frame, Content] | None) -> None:
        if frame is not None:
            self._recent[self.position] = frame
            if len(self._recent) > KEPT_CONTENTS:
                del self._recent[next(iter(self._recent))]

    def wake_readers(self) -> None:
        """Wake those who wait for a position."""
        with self._changed:
            self._changed.notify_all()

    # ------------------------------------------------------------ one frame ahead of the disk
    def offer(self, frame: Frame, content: Content) -> None:
        """Let the runner read a frame while it is synced."""
        with self._changed:
            self._keep_frame((frame, content))
            self.reach = frame.after
            self._changed.notify_all()

    def withdraw(self) -> None:
        """Take the frame that is offered back, since it could not be made durable."""
        with self._changed:
            self._recent.pop(self.position, None)
            self.reach, self._withdrawn, self._read_ahead = self.position, self._withdrawn or self._read_ahead, False
            if self._conclusion is not None:
                self._conclusion.ended, self._conclusion = True, None
            self._changed.notify_all()

    def wait_ahead(self, position: int, timeout: float) -> int:
        """Wait as `wait` does. If all that is durable was read, return the end of the frame that is offered."""
        with self._changed:
            self._changed.wait_for(lambda: self.reach > position, timeout)
            self._read_ahead = self._read_ahead or self.reach > position >= self.position
            return self.reach if position >= self.position else self.position

    def conclude(self, position: int, call: Callable[[], None], *, briefly: bool) -> None:
        """Call `call` once the log is durable up to a position. The writer calls it if that takes moments (`briefly`).

        Raises: Withdrawn where it will not be durable, and what `call` raises.
        """
        mine = _Conclusion(call)
        with self._changed:
            if position > self.position and not self._withdrawn:
                if briefly:
                    self._conclusion = mine
                self._changed.wait_for(lambda: mine.ended or self._withdrawn or (not briefly and self.position >= position))
        self.check_withdrawn()
        if not mine.ended:
            mine.run()
        if mine.fault is not None:
            raise mine.fault

    def check_withdrawn(self) -> None:
        """Raises: Withdrawn where entries were read that are not in the log."""
        with self._changed:
            withdrawn, self._withdrawn = self._withdrawn, False
        if withdrawn:
            raise Withdrawn("the disk has not confirmed entries that were evaluated; they are withdrawn")

    def run_conclusion(self) -> None:
        """Call what waits for the frame that has become durable. The runner goes on by `wake_readers`."""
        with self._changed:
            conclusion, self._conclusion = self._conclusion, None
        if conclusion is not None:
            conclusion.run()
            conclusion.ended = True

    def find_frame(self, first: int) -> tuple[Frame, Content] | None:
        """Return the frame that begins at a position, with its content, if it is still at hand."""
        return self._recent.get(first)

    def wait(self, position: int, timeout: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self.position > position, timeout)
            return self.position


class LogReader:
    """Reads the log of a data directory, in the writer's process or in any other. One thread at a time.

    With `sliced`, blocks read rows when they are asked for, so that a partition reads its own alone: before the next
    block is taken.
    """

    def __init__(self, data_dir: Path | str, published: Published | None = None, *, sliced: bool = False) -> None:
        self._frames = FrameReader(Path(data_dir) / "log")
        self.published = published
        """This is what a writer in this process hands on; None without one."""
        self._sliced, self._poll = sliced, HeadPoll(self._frames.head_file)

    def head(self) -> int:
        """Return the position after the last published entry."""
        return self.published.position if self.published is not None else self._frames.head().position

    def wait(self, position: int, timeout: float) -> int:
        """Return the head, as soon as it is beyond `position` or `timeout` seconds have passed."""
        if self.published is not None:
            return self.published.wait(position, timeout)
        return self._poll.wait(self.head, position, timeout)

    def blocks(self, position: int, max_rows: int, until: int | None = None) -> Iterator[Block]:
        """Yield the entries from `position` to `until` (default: the head now) in blocks of at most `max_rows` rows
        and entries. So many triples of the background count as rows, too.

        A longer entry is a block of its own.
        """
        parts: list[Block] = []
        rows = entries = 0
        for part in self._parts(position, max_rows, until):
            count = part.num_rows + sum(count_triples(entry) for entry in part.entries)
            if parts and (rows + count > max_rows or entries + len(part.entries) > max_rows):
                yield merge(parts)
                parts, rows, entries = [], 0, 0
            parts.append(part)
            rows += count
            entries += len(part.entries)
        if parts:
            yield merge(parts)

    def entry(self, offset: int) -> Entry:
        """Return the entry at an offset before the head."""
        return next(self.blocks(offset, 1, offset + 1)).entries[0]

    def advance(self, position: int, max_rows: int) -> int:
        """Return the position after whole frames with about `max_rows` rows (at least one frame), at most the head;
        no payload is read.
        """
        rows = 0
        for frame in self._frames.frames(position):
            if rows and rows + frame.rows > max_rows:
                return position
            rows += max(frame.rows, frame.after - frame.first)
            position = frame.after
        return position

    def records(self, position: int, until: int) -> Iterator[Record]:
        """Yield the entries [position, until), with what their writer knew of them; rows are not decoded."""
        for frame in takewhile(lambda frame: frame.first < until, self._told(self._frames.frames(position)) if position < until else ()):
            for record in decode_records(frame.first, self._frames.payload(frame))[1]:
                if position <= record.entry.offset < until:
                    yield record

    def rows(self, position: int, until: int) -> int:
        """Count the rows of the frames that begin in [position, until), late ones too; no payload is read."""
        return sum(frame.rows for frame in takewhile(lambda frame: frame.first < until, self._frames.frames(position)))

    def late(self, stream: str, after: int, limit: int, created: int = 0) -> list[LateRow]:
        """Return late rows of `stream` in entries at or after position `after` (0: the oldest kept), and at or after
        `created`.

        Entries are whole, and are taken until there are at least `limit` rows. Raises: Gone.
        """
        after = max(after or oldest(self._frames.directory), created)
        found: list[LateRow] = []
        for frame in self._frames.frames(after):
            if frame.flags & HAS_LATE:
                for rows in _late_rows(decode(frame.first, self._frames.payload(frame)), stream, after):
                    found += rows
                    if len(found) >= limit:
                        return found
        return found

    def rejected(self, stream: str, after: int, limit: int, created: int = 0) -> list[RejectedRow]:
        """Return rejected rows of `stream`, paged as `late` pages late ones. Raises: Gone."""
        after = max(after or oldest(self._frames.directory), created)
        found: list[RejectedRow] = []
        for frame in self._frames.frames(after):
            if frame.flags & HAS_REJECTED:
                at, records, _ = decode_records(frame.first, self._frames.payload(frame))
                for record in records:
                    if isinstance(record.entry, Events) and record.entry.stream == stream and record.entry.offset >= after:
                        found += [RejectedRow(row, at, record.entry.offset + 1) for row in record.rejected]
                        if len(found) >= limit:
                            return found
        return found

    def close(self) -> None:
        self._frames.close()

    def _parts(self, position: int, max_rows: int, until: int | None) -> Iterator[Block]:
        head = self.head() if self.published is None else self.published.reach
        until = self.head() if until is None else min(until, head)
        while position < until and self.published is not None and (known := self.published.find_frame(position)) is not None:
            (frame, content), entries = known, tuple(record.entry for record in known[1].records)
            if frame.after <= until and max(frame.rows, len(entries)) <= max_rows:
                yield Block(entries, content.rows)
            else:
                yield from _cut(entries, content.rows, position, until, max_rows)
            position = frame.after
            self._frames.pass_over(frame)
        while position < until:
            try:
                for frame in self._frames.frames(position):
                    entries, rows = self._read_frame(frame)
                    if frame.first >= position and frame.after <= until and max(frame.rows, len(entries)) <= max_rows:
                        yield Block(entries, rows)
                    else:
                        yield from _cut(entries, rows, position, until, max_rows)
                    position = frame.after
                    if position >= until:
                        return
                return
            except Corrupt as fault:
                if not self._tell(fault):
                    raise
                self._frames.close()  # it holds bytes that it read before the repair

    def _told(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """Yield the frames; report damage to the writer, if the writer is in this process."""
        try:
            yield from frames
        except Corrupt as fault:
            self._tell(fault)
            raise

    def _read_frame(self, frame: Frame) -> tuple[tuple[Entry, ...], pa.RecordBatch | SlicedRows]:
        if self._sliced and frame.flags & HAS_SLICES:
            _, records, rows = decode_slices(frame.first, self._fetch(frame))
            return tuple(record.entry for record in records), rows
        content = decode(frame.first, self._frames.payload(frame))
        return tuple(record.entry for record in content.records), content.rows

    def _fetch(self, frame: Frame) -> Fetch:
        return partial(self._frames.part, frame)

    def _tell(self, fault: Corrupt) -> bool:
        """Report damage to the writer, if it is in this process.

        Return True if the segment was repaired, and can be read again.
        """
        return self.published is not None and self.published.report(fault)


class SharedReader(LogReader):
    """Serves threads that read the same blocks at about the same time: each block is read and decoded once."""

    def __init__(self, data_dir: Path | str, readers: int, apart: int) -> None:
        """Open the log; `apart` is by how many blocks the fastest of the readers may be ahead of the slowest."""
        super().__init__(data_dir, sliced=True)
        self._lock = Lock()
        self._readers, self._most = readers, apart + 1
        self._kept: dict[Asked, tuple[Block, int]] = {}  # and how many have yet to take it
        self._walk: Iterator[Block] = iter(())
        self._next: Asked | None = None  # `_walk` gives this block next

    def blocks(self, position: int, max_rows: int, until: int | None = None) -> Iterator[Block]:
        while (block := self._block((position, max_rows, until))) is not None:
            yield block
            position = block.after

    def _fetch(self, frame: Frame) -> Fetch:
        return fetch_from(self._frames.payload(frame))  # it is not read from the file by several threads

    def _block(self, asked: "Asked") -> Block | None:
        with self._lock:
            block, left = self._kept.pop(asked, (None, self._readers))
            if block is None:
                block = self._walked(asked)
            if block is not None and left > 1:
                self._kept[asked] = block, left - 1
                if len(self._kept) > self._most:  # a reader is gone
                    del self._kept[min(self._kept, key=lambda kept: kept[0])]
            return block

    def _walked(self, asked: "Asked") -> Block | None:
        if asked != self._next:
            self._walk = super().blocks(*asked)
        block = next(self._walk, None)
        self._next = None if block is None else (block.after, *asked[1:])
        return block


Asked = tuple[int, int, int | None]
"""Tells where a block begins, and how it was asked for."""


def _cut(entries: tuple[Entry, ...], rows: pa.RecordBatch | SlicedRows, position: int, until: int, max_rows: int) -> Iterator[Block]:
    """Yield the entries of a frame in [position, until), in pieces of at most `max_rows` rows or one entry."""
    taken: list[Entry] = []
    begin = row = 0
    for entry in entries:
        count = rows_of(entry)
        if entry.offset < position:
            begin = row + count
        elif entry.offset < until:
            if taken and (row + count - begin > max_rows or len(taken) >= max_rows):
                yield Block(tuple(taken), rows.slice(begin, row - begin))
                taken, begin = [], row
            taken.append(entry)
        else:
            break
        row += count
    if taken:
        yield Block(tuple(taken), rows.slice(begin, row - begin))


def merge(parts: list[Block]) -> Block:
    """Return one block made of consecutive ones."""
    if len(parts) == 1:
        return parts[0]
    rows = JoinedRows(parts)
    entries = tuple(entry for part in parts for entry in part.entries)
    return Block(entries, rows if any(isinstance(part.source, SlicedRows) for part in parts) else rows.read_all())


def _late_rows(content: Content, stream: str, after: int) -> Iterator[list[LateRow]]:
    """Yield, per entry, the late rows of `stream`."""
    row = 0
    for record in content.records:
        entry, begin = record.entry, row
        row += rows_of(entry)
        if isinstance(entry, Events) and entry.stream == stream and record.late and entry.offset >= after:
            rows = content.rows.slice(begin, row - begin)
            untargeted = mask_of(record.untargeted, rows.num_rows)
            chosen = rows.column("late").to_numpy(zero_copy_only=False) & ~mask_of(entry.retracts, rows.num_rows)
            late, reasons = rows.filter(pa.array(chosen)), [NO_TARGET if none else LATE_REASON for none in untargeted[chosen]]
            start, end = (late.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
            terms = (late.column(name).to_pylist() for name in "spog")
            missed = record.missed if record.missed is not None else 0
            yield [
                LateRow(s, p, o, g, first, last, missed, content.at, entry.offset + 1, reason)
                for s, p, o, g, first, last, reason in zip(*terms, start, end, reasons, strict=True)
            ]
