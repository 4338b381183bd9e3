"""This module writes the input log: one committer thread gathers what many threads append into one frame and one fsync."""

import logging
from collections import ChainMap, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path
from threading import Condition, Event, Thread
from types import TracebackType
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import INSTANT, NO_END, NO_ROWS, OCCURRENCES, Entry, Events, Finish, Micros, Tick, int64s
from epsparql.deferred_methods import dataclass
from pipeline.errors import Corrupt, LogFailed, NoInstant, NotRevisable, Overloaded, SourceSilent, StoreFailed, StreamFinished, TooFarAhead
from pipeline.log.catalog import Catalogue, Stream, find_slowest, least_end, source_ends
from pipeline.log.codec import Content, Record, decode, decode_records, encode
from pipeline.log.format_version import read_format, write_format
from pipeline.log.idempotency_keys import Ack
from pipeline.log.lag import Backlog, count_waiting, release_waiting
from pipeline.log.local_subjects import SubjectMemory
from pipeline.log.presence import Presence, Ranges, ranges_of
from pipeline.log.reader import SMALL, SMALL_ROWS, LogReader, Published
from pipeline.log.segments import SEGMENT_BYTES, FrameReader, FrameWriter, oldest
from pipeline.log.writer_state import load_state, save_state
from pipeline.message_keys import KeyMemory
from pipeline.rejected_rows import ALL_MAPPED, Unmapped
from pipeline.source_positions import Source, SourceState, judge_source
from pipeline.time_units import describe_wrong_unit

QUEUED_ROWS = 500_000
QUEUED_BYTES = 256 << 20
QUEUED_REQUESTS = 10_000
FRAME_ROWS = 100_000
FRAME_BYTES = 64 << 20
"""This much is gathered into one frame; a body by itself may have more."""
_TRIES, _TRY_S = 30, 1.0
"""A reader of source positions waits at most so often for a write, in which a position may be taken back."""
_log = logging.getLogger(__name__)


class AckFuture(Future[Ack]):
    """Becomes an ack, or the reason why there is none. It cannot be cancelled: without it, later bodies of its sender
    would make its repeat late.

    It has no lock, unlike the library's futures, whose locks take longer than the rest of queueing one event. One
    thread ends it; others look.
    """

    def __init__(self) -> None:
        self._ended = False
        self._ack: Ack | None = None
        self._reason: BaseException | None = None
        self._calls: deque[Callable[[Future[Ack]], object]] = deque()

    def cancel(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return not self._ended

    def done(self) -> bool:
        return self._ended

    def result(self, timeout: float | None = None) -> Ack:
        if (reason := self.exception(timeout)) is not None:
            raise reason
        assert self._ack is not None
        return self._ack

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not self._ended:
            ended = Event()
            self.add_done_callback(lambda _: ended.set())
            if not ended.wait(timeout):
                raise TimeoutError
        return self._reason

    def add_done_callback(self, fn: Callable[[Future[Ack]], object]) -> None:
        self._calls.append(fn)
        if self._ended:
            self._call_back()

    def set_result(self, result: Ack) -> None:
        self._ack, self._ended = result, True
        if self._calls:
            self._call_back()

    def set_exception(self, exception: BaseException | None) -> None:
        self._reason, self._ended = exception, True
        self._call_back()

    def _call_back(self) -> None:
        """Make each call once, whichever threads come here."""
        while self._calls:
            try:
                call = self._calls.popleft()
            except IndexError:
                return
            try:
                call(self)
            except Exception:  # noqa: BLE001  # the thread that ends it goes on
                _log.exception("who waited for an ack failed")


@dataclass(slots=True, eq=False)
class _Request:
    """Holds events of a stream, or (`build`) a control entry; `done` gets an Ack either way."""

    done: AckFuture
    stream: str
    rows: pa.RecordBatch
    key: str | None = None
    source: Source | None = None
    build: Callable[[int], Entry] | None = None
    arrived: Micros | None = None  # rows without a time of their own were given this one
    size: int = 0
    unmapped: Unmapped = ALL_MAPPED


class _Columns(NamedTuple):
    """Views the starts and ends of a body's rows; `marked` says whether some are marked as late, which a parser does
    for retractions.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    marked: bool


class Queueing(Enum):
    """Says how a request is queued."""

    AT_ONCE = "at once"
    """With the queue full, Overloaded is raised."""
    TOGETHER = "together"
    """The same, but the committer need not take the request before `Wakeups.wake_committer` is called."""
    WAIT = "wait"
    """With the queue full, this waits as long as it takes."""


class Wakeups:
    """Lets whoever queues many requests wake the committer once, and be told once of all their answers in a frame."""

    def __init__(self, changed: Condition) -> None:
        self._changed = changed
        self._callbacks: list[Callable[[], None]] = []

    def wake_committer(self) -> None:
        """Have the committer take what is queued."""
        with self._changed:
            self._changed.notify_all()

    def on_answers(self, callback: Callable[[], None]) -> None:
        """Call `callback()` from the committer after all requests of a frame have their answers; it must not block."""
        self._callbacks.append(callback)

    def tell_answered(self) -> None:
        for callback in self._callbacks:
            callback()


class LogWriter:
    """Writes the log of a data directory, as its only writer. Thread-safe.

    `clock` gives the time of day in µs: for arrival, max_ahead, idle_timeout and the age of idempotency keys. `keep`
    (segment, bytes of it) returns once the log is kept elsewhere up to there too: before anything is acknowledged.
    `max_waiting` bounds the events of a stream that wait for its declared sources; 0 means no limit. Rows of large
    frames are stored in slices, one for each of the `partitions`. `repair` may repair a damaged segment that a reader
    in this process finds, and returns whether it did. Raises: Locked at once if another writer has the directory;
    Corrupt if the log is damaged before its end; whatever `keep` raises.
    """

    def __init__(
        self,
        data_dir: Path | str,
        clock: Callable[[], Micros],
        *,
        segment_bytes: int = SEGMENT_BYTES,
        keep: Callable[[int, int], None] | None = None,
        max_waiting: int = 0,
        partitions: int = 1,
        repair: Callable[[Corrupt], bool] = lambda _: False,
    ) -> None:
        self._partitions = partitions
        self._data, self._clock, self._segment_bytes, self._keep = Path(data_dir), clock, segment_bytes, keep
        self._max_waiting = max_waiting
        self._opened = clock()
        self._queue: deque[_Request] = deque()
        self._queued_rows = self._queued_bytes = 0
        self._changed = Condition()  # guards the queue, its counts and the two flags
        self._closing = self._broken = False
        self._open()
        self._published, self.backlog = Published(self._frames.position, repair), Backlog()
        self.wakeups = Wakeups(self._changed)
        self._thread = Thread(target=self._run, name="log-committer", daemon=True)
        self._thread.start()

    catalogue: Catalogue
    """The catalogue has streams and queries as of the last entry. It is for looking only."""
    backlog: Backlog
    """The backlog counts the rows that were written since the start, and of which frames."""
    default_ahead: Micros | None = None
    """A stream that its first event creates has this as its max_ahead."""
    saved: int = 0
    """A start reads the log for the catalogue from this position on."""

    def submit(
        self,
        stream: str,
        batch: pa.RecordBatch,
        key: str | None = None,
        *,
        source: Source | None = None,
        arrived: Micros | None = None,
        unmapped: Unmapped = ALL_MAPPED,
        queueing: Queueing = Queueing.AT_ONCE,
    ) -> "Future[Ack]":
        """Queue a body. The future has its Ack once it is durable, or raises StreamFinished, TooFarAhead,
        SourceConflict, SourceSilent, MessageKeyRefused, SubjectReturned, Overloaded or LogFailed.

        `arrived` is the arrival time at which the body's untimed rows stand; `unmapped` are the rows of the body that
        did not map. A queued body cannot be cancelled: it keeps its place. A key that was accepted within the last 24
        hours gets the Ack it got then, and nothing is written.
        """
        assert batch.schema.equals(OCCURRENCES), batch.schema
        size = batch.get_total_buffer_size() + sum(len(row.text) + len(row.reason) for row in unmapped.kept)
        return self._enqueue(_Request(AckFuture(), stream, batch, key, source, arrived=arrived, size=size, unmapped=unmapped), queueing)

    def submit_all(self, stream: str, batches: Sequence[pa.RecordBatch], arrived: Micros) -> "list[Future[Ack]]":
        """Queue bodies that share their memory and have nothing but rows, as `submit` does with Queueing.TOGETHER.

        Return the futures of the first ones, for which there is room. Raises: Overloaded where there is room for
        none, LogFailed.
        """
        size, found = batches[0].get_total_buffer_size(), list[Future[Ack]]()
        with self._changed:
            for batch in batches:
                request = _Request(AckFuture(), stream, batch, arrived=arrived, size=size)
                if found and (self.damage or not self._has_room(request)):  # the next call tells why
                    break
                found.append(self._queue_request(request))
        return found

    def append_events(
        self, stream: str, batch: pa.RecordBatch, key: str | None = None, *, source: Source | None = None, arrived: Micros | None = None
    ) -> Ack:
        """Append a body by `submit`, waiting for room and for the Ack."""
        return self.submit(stream, batch, key, source=source, arrived=arrived, queueing=Queueing.WAIT).result()

    def submit_entry(self, build: Callable[[int], Entry], *, queueing: Queueing = Queueing.AT_ONCE) -> "Future[Ack]":
        """Queue the control entry `build(offset)`; its own offset is its Ack's less one.

        `build` runs in the committer: it may look at `catalogue`, and raise.
        """
        return self._enqueue(_Request(AckFuture(), "", NO_ROWS, build=build), queueing)

    def append(self, build: Callable[[int], Entry]) -> int:
        """Append a control entry by `submit_entry`, waiting; return the entry's own offset (the number of a
        registration).
        """
        return self.submit_entry(build, queueing=Queueing.WAIT).result().offset - 1

    def pass_time(self, deadlines: Mapping[str, Micros]) -> None:
        """Append a Tick for each silent stream that the clock takes beyond the deadline for which its queries wait.

        Call this now and then.
        """
        now, catalogue = self._clock(), self.catalogue
        for name, deadline in deadlines.items():
            if name in catalogue.streams and catalogue.advance(name, now, deadline, self._opened) is not None:
                self.append(lambda offset, name=name, deadline=deadline: self._tick(offset, name, deadline))  # type: ignore[misc]

    def read_sources(self, stream: str) -> dict[str, SourceState]:
        """Return the sources of a stream once their positions are durable, waiting for that.

        Raises: LogFailed where the log cannot be written.
        """
        for _ in range(_TRIES):
            found = dict(self.catalogue.sources.get(stream, {}))
            needed = max((state.offset for state in found.values()), default=0)
            if self._published.wait(needed - 1, _TRY_S) >= needed:
                return found
        raise LogFailed(f"the source positions of stream {stream!r} are not durable yet; ask again later")

    def find_awaited(self, stream: str) -> list[str]:
        """Return the declared sources for which events of a stream wait."""
        return self.catalogue.find_awaited(stream, self._clock(), self._opened)

    def heartbeat(self) -> int:
        """Append a Tick of no stream."""
        return self.append(lambda offset: Tick(offset, None, None))

    def oldest(self) -> int:
        """Return the position of the first entry that is kept."""
        return oldest(self._data / "log")

    def head(self) -> int:
        """Return the position after the last durable entry."""
        return self._published.position

    @property
    def damage(self) -> str:
        """Return what is wrong with the written log; empty if nothing is. With damage nothing more is written."""
        return self._published.damage

    def tell_damage(self, fault: Corrupt) -> None:
        """Write nothing more: entries after the damage would be lost when the log is restored from a copy."""
        self._published.damage = str(fault)

    def reader(self) -> LogReader:
        """Return a reader in this process, woken by each commit."""
        return LogReader(self._data, self._published)

    def close(self) -> None:
        """Commit the queue, save the state, release the directory.

        Where the state cannot be saved, the next start reads more of the log.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        try:
            if not self._broken:
                self._save()
        finally:
            self._frames.close()

    def __enter__(self) -> "LogWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------ queue
    def _enqueue(self, request: _Request, queueing: Queueing) -> "Future[Ack]":
        with self._changed:
            if queueing is Queueing.WAIT:
                self._changed.wait_for(lambda: self._has_room(request))
            queued = self._queue_request(request)
            if queueing is not Queueing.TOGETHER:
                self._changed.notify_all()
        return queued

    def _has_room(self, request: _Request) -> bool:
        """Return whether a request need not wait. The lock is held."""
        return (
            not self._queue
            or self._closing
            or (
                len(self._queue) < QUEUED_REQUESTS
                and self._queued_rows + request.rows.num_rows <= QUEUED_ROWS
                and self._queued_bytes + request.size <= QUEUED_BYTES
            )
        )

    def _queue_request(self, request: _Request) -> "Future[Ack]":
        """Queue a request. The lock is held. Raises: Overloaded, LogFailed."""
        if not self._has_room(request):
            raise Overloaded(f"{len(self._queue)} bodies wait to be written; send more slowly, or again later")
        if self._closing:
            raise LogFailed("the log is closed")
        if self.damage:
            raise LogFailed(self.damage)
        self._queue.append(request)
        self._queued_rows += request.rows.num_rows
        self._queued_bytes += request.size
        return request.done

    def _take(self) -> list[_Request]:
        """Take the requests for the next frame from the queue; the list is empty when closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            taken: list[_Request] = []
            rows = size = 0
            while self._queue and (not taken or (rows + self._queue[0].rows.num_rows <= FRAME_ROWS and size + self._queue[0].size <= FRAME_BYTES)):
                request = self._queue.popleft()
                taken.append(request)
                rows, size = rows + request.rows.num_rows, size + request.size
            self._queued_rows, self._queued_bytes = self._queued_rows - rows, self._queued_bytes - size
            self._changed.notify_all()
            return taken

    def _waiting(self) -> list[_Request]:
        """Take all requests that are queued."""
        with self._changed:
            taken = [*self._queue]
            self._queue.clear()
            self._queued_rows = self._queued_bytes = 0
            self._changed.notify_all()
            return taken

    def _run(self) -> None:
        while requests := self._take():
            try:
                if self._broken:
                    self._recover()
                answers = self._commit(requests)
            except Exception as fault:  # noqa: BLE001  # whatever it was, nobody may be left waiting
                self._broken = True
                self._withdraw()  # before anyone is told
                if isinstance(fault, StoreFailed):
                    requests += self._waiting()  # each of them would wait for the store as long as these
                for request in requests:
                    if not request.done.done():
                        request.done.set_exception(LogFailed(f"writing the log failed: {fault}"))
            else:
                for request, ack in answers:
                    request.done.set_result(ack)
            self._published.run_conclusion()
            self.wakeups.tell_answered()
            self._published.wake_readers()  # last, since a runner that evaluates meanwhile would hold the answers up

    # ------------------------------------------------------------ commit
    def _commit(self, requests: list[_Request]) -> list[tuple[_Request, Ack]]:
        """Make one frame of the requests that stand, durable and published. A refused request gets its error here."""
        at, first = self._clock(), self.catalogue.position
        self._keys.expire_keys(at)
        records, rows = self._unwritten = list[Record](), list[pa.RecordBatch]()
        answers: list[tuple[_Request, Ack]] = []
        refusals: list[tuple[_Request, Exception]] = []
        joined = _join([request.rows for request in requests])
        for request, columns in zip(requests, _columns_of(requests, joined), strict=True):
            try:
                ack, record, batch = self._judge(request, columns, at)
            except Exception as refusal:  # noqa: BLE001  # a builder's own error goes back to who gave the builder
                refusals.append((request, refusal))
                self._presences.pop(request.stream, None)  # it may have taken in the rows that were refused
                continue
            answers.append((request, ack))
            if record is not None:
                records.append(record)
                rows.append(batch)
                self.catalogue.apply(record, at)
                if request.key is not None:
                    self._keys.remember(request.stream, request.key, at, ack)
        if records:
            as_sent = len(rows) == len(requests) and all(batch is request.rows for batch, request in zip(rows, requests, strict=True))
            self._write_frame(at, first, records, joined if as_sent else _join(rows))
        for request, reason in refusals:  # only now, since one may tell the position that another body of this frame stores
            request.done.set_exception(reason)
        return answers

    def _write_frame(self, at: Micros, first: int, records: list[Record], batch: pa.RecordBatch) -> None:
        streams = {record.entry.stream for record in records if isinstance(record.entry, Events)}
        keys = {name: key for name in streams if (key := self.catalogue.stream(name).message_key) is not None}
        payload, flags, crc = encode(at, records, batch, self._partitions, keys)
        rotated = self._frames.append(payload, first, self.catalogue.position, batch.num_rows, flags, crc)
        small = batch.num_rows <= SMALL_ROWS and sum(map(len, payload)) <= SMALL
        recent = (self._frames.last, Content(at, tuple(records), batch)) if small and self._frames.last else None
        if recent is not None and self._keep is None and all(type(entry := record.entry) is Events and not entry.retracts for record in records):
            self._published.offer(*recent)  # other entries may have the engine read the past, which must be on disk, and a store may fail for minutes
        self._frames.sync()
        self._frames.publish()
        self.backlog.add(self._frames.position, batch.num_rows)
        self._published.announce(self._frames.position, recent)
        if rotated or self._keys.is_due():
            self._save()

    def _judge(self, request: _Request, columns: _Columns, at: Micros) -> tuple[Ack, Record | None, pa.RecordBatch]:
        """Return the request's entry, with its late rows marked.

        Raises: StreamFinished, TooFarAhead, SourceConflict, SourceSilent, TooManySources, MessageKeyRefused,
        SubjectReturned, FormatError.
        """
        offset = self.catalogue.position
        if request.build is not None:
            entry = request.build(offset)
            assert entry.offset == offset, entry
            if isinstance(entry, Finish) and self.catalogue.stream(entry.stream).finished:
                raise StreamFinished(entry.stream)
            return Ack(offset + 1), Record(entry), NO_ROWS
        if request.key is not None and (known := self._keys.find_ack(request.stream, request.key, at)) is not None:
            return known, None, NO_ROWS
        if request.source is not None:
            sources = self.catalogue.sources.get(request.stream, {})
            stored = sources.get(request.source.id)
            if not judge_source(request.stream, request.source, stored, len(sources), request.rows.num_rows):
                return Ack(offset if stored is None else stored.offset, duplicate=True), None, NO_ROWS
        stream, presence = self._find_stream(request.stream), None
        if stream.revisable is not None:
            presence = self._find_presence(stream, retracts=columns.marked)
        elif columns.marked:
            raise NotRevisable(stream.name)
        record, batch = _judge_lateness(self.catalogue, stream, request, columns, at, self._opened, presence)
        if request.stream not in self.catalogue.streams and self.default_ahead is not None:
            record = msgspec.structs.replace(record, max_ahead=self.default_ahead)
        if self._max_waiting and stream.sources:
            self._check_waiting(request, record, at)
        self._nodes.take_in(request.stream, batch, stream.message_key)
        self._subjects.take_in(stream, batch, request.rows.column("late").to_numpy(zero_copy_only=False) if columns.marked else None)
        if request.unmapped is not ALL_MAPPED:
            record = msgspec.structs.replace(record, rejected=request.unmapped.kept, skipped=request.unmapped.skipped)
        return Ack(offset + 1, batch.num_rows, record.late, rejected=len(record.rejected) + record.skipped), record, batch

    def _find_stream(self, name: str) -> Stream:
        """Return the stream, or the one that feeding it now creates."""
        known = self.catalogue.streams.get(name)
        return msgspec.structs.replace(self.catalogue.stream(name), max_ahead=self.default_ahead) if known is None else known

    def _find_presence(self, stream: Stream, *, retracts: bool) -> Presence | None:
        """Return what tells which occurrences of a stream are present, once it has had a retraction: others need not
        pay for that.
        """
        found = self._presences.get(stream.name)
        if found is None and retracts:
            (_, begin), *_ = stream.retractable
            begin = max(begin, oldest(self._data / "log"))
            with closing(FrameReader(self._data / "log")) as reader:
                contents = (decode(frame.first, reader.payload(frame)) for frame in reader.frames(begin) if frame.rows)
                found = self._presences[stream.name] = Presence().read(stream.name, contents, begin)
            records, batches = self._unwritten
            found.read(stream.name, [Content(0, tuple(records), pa.concat_batches([NO_ROWS, *batches]))], begin)
        return found

    def _check_waiting(self, request: _Request, record: Record, at: Micros) -> None:
        """Refuse a body if its stream has too many events that wait for other sources. Raises: SourceSilent."""
        assert isinstance(record.entry, Events)
        stream, rows = self.catalogue.stream(request.stream), record.entry.rows - record.late
        waiting = count_waiting(release_waiting(stream.waiting, record.entry.watermark))
        slowest = find_slowest(source_ends(stream, self.catalogue.sources.get(stream.name, {}), at, self._opened))
        own = None if request.source is None else request.source.id
        if rows and waiting and waiting + rows > self._max_waiting and slowest and own not in slowest:
            raise SourceSilent(stream.name, tuple(slowest), waiting, stream.silence is not None)

    def _tick(self, offset: int, name: str, deadline: Micros) -> Tick:
        stream = self.catalogue.stream(name)
        reached = self.catalogue.advance(name, self._clock(), deadline, self._opened)
        return Tick(offset, name, stream.watermark if reached is None else reached)

    # ------------------------------------------------------------ state
    def _open(self) -> None:
        read_format(self._data)
        self._nodes = KeyMemory()  # it may have had bodies that were not written
        self._frames = FrameWriter(self._data / "log", durable=True, segment_bytes=self._segment_bytes, keep=self._keep)
        try:
            write_format(self._data)
            self._fold()
        except BaseException:
            self._frames.close()
            raise

    def _fold(self) -> None:
        """Read the catalogue and the keys, as of the published position."""
        self._presences: dict[str, Presence] = {}
        self._subjects = SubjectMemory(self._data)
        with closing(FrameReader(self._data / "log")) as reader:
            catalogue, keys, begin = load_state(self._data, reader.head().position, self._clock())
            if catalogue.position < oldest(self._data / "log"):
                raise Corrupt(
                    self._data / "catalogue.json", 0, "it cannot be read, and the log's beginning, from which it could be made, is no longer kept"
                )
            self.saved = catalogue.position
            for frame in reader.frames(max(begin, oldest(self._data / "log"))):
                at, records, _ = decode_records(frame.first, reader.payload(frame))
                for record in records:
                    if record.entry.offset == catalogue.position:
                        catalogue.apply(record, at)
                    keys.recall(record, at)
        self.catalogue, self._keys = catalogue, keys

    def _withdraw(self) -> None:
        """Withdraw the entries that are not published from the catalogue, after a write that failed. The next commit
        begins by `_recover`.

        Bytes that were not on disk are cut off. Bytes on disk may be in the store already, so they stay, and are
        published once the store answers.
        """
        self._published.withdraw()
        with suppress(OSError):
            self._frames.cut_back()
        with suppress(Exception):
            self._fold()

    def _recover(self) -> None:
        """Open the log anew as it is on disk, after cutting off bytes that the disk has not confirmed."""
        self._frames.cut_back()
        self._frames.close()
        self._open()
        if self._frames.position > self._published.position:
            with closing(FrameReader(self._data / "log")) as reader:
                self.backlog.add(self._frames.position, sum(frame.rows for frame in reader.frames(self._published.position)))
            self._published.announce(self._frames.position)
        self._broken = False

    def _save(self) -> None:
        """Save the catalogue and the keys. This only saves time: the log has all that they hold."""
        self.catalogue.forget_before(self.oldest())
        try:
            save_state(self._data, self.catalogue, self._keys, self._frames.mark)
            self.saved = self.catalogue.position
        except OSError as fault:
            _log.warning("the catalog cannot be saved (%s): the next start reads the log from position %d", fault, self.saved)


def _join(rows: list[pa.RecordBatch]) -> pa.RecordBatch:
    filled = [batch for batch in rows if batch.num_rows]
    return NO_ROWS if not filled else filled[0] if len(filled) == 1 else pa.concat_batches(filled)


def _columns_of(requests: list[_Request], joined: pa.RecordBatch) -> Iterator[_Columns]:
    """Yield the columns of each body in what they are joined to: for one row, a view takes a tenth of the time of
    Arrow's calls.
    """
    start, end = (int64s(joined.column(name)) if joined.num_rows else np.empty(0, np.int64) for name in ("start", "end"))
    late = joined.column("late")
    marks = late.to_numpy(zero_copy_only=False) if late.true_count else None
    begin = 0
    for request in requests:
        after = begin + request.rows.num_rows
        yield _Columns(start[begin:after], end[begin:after], marks is not None and bool(marks[begin:after].any()))
        begin = after


def _list_ends(stream: Stream, columns: _Columns, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ends of a body's events, which its retractions do not have.

    Raises: NoInstant for an event that lasts in a stream of instants.
    """
    is_event = ends > NO_END
    if stream.instants is not None and (lasting := (columns.start < columns.end) & is_event).any():
        raise NoInstant(stream.name, int(lasting.argmax()))
    return ends[is_event]


def _judge_lateness(
    catalogue: Catalogue, stream: Stream, request: _Request, columns: _Columns, at: Micros, opened: Micros, presence: Presence | None
) -> tuple[Record, pa.RecordBatch]:
    """Return the entry of a body. Lateness is judged against the watermark before the body. Raises: StreamFinished, NoInstant, TooFarAhead.

    Retractions with a target are no late rows, though they are marked as such: nobody is to take them for occurrences.
    """
    rows, ends = request.rows, columns.end
    if stream.finished:
        raise StreamFinished(stream.name)
    by_clock = request.arrived is not None and _is_untimed(columns, request.arrived)
    if by_clock != stream.by_clock:
        stream = msgspec.structs.replace(stream, by_clock=stream.is_clocked(by_clock, rows.num_rows))
    if stream.by_clock and stream.watermark is not None and len(ends) and ends[0] < stream.watermark:
        ends = np.full(len(ends), stream.watermark, np.int64)  # the clock advanced it while the body was read, or has gone back since
        times = pa.array(ends).view(INSTANT)
        rows = rows.set_column(4, OCCURRENCES.field("start"), times).set_column(5, OCCURRENCES.field("end"), times)
    last, late, revises = None, 0, False
    retracts: Ranges = ()
    untargeted: Ranges = ()
    if presence is not None and len(ends):
        hits, misses = presence.judge(rows, stream.watermark)
        ends = np.where(hits | misses, NO_END, ends)
        late, revises, retracts, untargeted = int(np.count_nonzero(misses)), bool(hits.any()), ranges_of(hits), ranges_of(misses)
    timely = _list_ends(stream, columns, ends)
    if len(timely):
        last, first = (int(timely.max()), int(timely.min())) if len(timely) > 1 else (timely.item(), timely.item())
        if stream.max_ahead is not None and last > at + stream.max_ahead:
            row, unit = int((ends > at + stream.max_ahead).argmax()), describe_wrong_unit(last, at)
            raise TooFarAhead(stream.name, row, last, at + stream.max_ahead, unit)
        if stream.watermark is not None and first < stream.watermark:
            missed = ends < stream.watermark
            late += int(np.count_nonzero(timely < stream.watermark))
            rows = rows.set_column(6, OCCURRENCES.field("late"), pa.array(missed))
        if (
            stream.latest is not None and first < stream.latest and stream.reached is not None and first < stream.reached
        ):  # which is not beyond `latest`
            revises = revises or bool(((timely >= (stream.watermark or NO_END)) & (timely < stream.reached)).any())
    latest, sources = _later(stream.latest, last), catalogue.sources.get(stream.name, {})
    source, source_latest = request.source, None
    if source is not None and source.position is not None:
        source_latest = _later(sources[source.id].latest if source.id in sources else None, last)
        fed = SourceState(source.position, catalogue.position + 1, at, source_latest)
        known = source_ends(stream, ChainMap({source.id: fed}, sources), at, opened)
    else:
        known = source_ends(stream, sources, at, opened)
    watermark = stream.after(least_end(known) if known else latest)
    stored = None if source is None else (source.id, source.position)
    entry = Events(catalogue.position, stream.name, rows.num_rows, watermark, request.key, stored, revises, retracts)
    return Record(entry, late, stream.watermark if late else None, latest, by_clock, source_latest, untargeted=untargeted), rows


def _later(known: Micros | None, last: Micros | None) -> Micros | None:
    """Return the later of two ends, either of which may not be there yet."""
    return last if known is None else known if last is None else max(known, last)


def _is_untimed(columns: _Columns, arrived: Micros) -> bool:
    """Tell whether all rows stand at their arrival."""
    start, end = columns.start, columns.end
    return not len(end) or bool(end[0] == arrived and (end == arrived).all() and (start == arrived).all())
