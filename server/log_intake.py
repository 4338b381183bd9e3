"""Hands bodies from the event loop to the log's writer, and its acks back, with one wake-up of a thread for all that
come together.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

import pyarrow as pa

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.log import Ack, AckFuture, LogWriter, Queueing
from pipeline.mapping.mapper import MappedBody
from pipeline.mapping.stream_body import StreamBody, read_together
from pipeline.source_positions import Source


@dataclass(frozen=True, slots=True, eq=False)
class ShortBody:
    """Holds a short body of ndjson that arrived at a time.

    It says how to read it by itself, with the warning for its sender; how to submit what it brings; and whom to tell
    of its ack, once that is done.
    """

    content: bytes
    arrived: Micros
    read: Callable[[], tuple[StreamBody, str | None]]
    submit: Callable[[StreamBody], Future[Ack]]
    told: Callable[[Future[Ack], str | None], None]


class LogIntake:
    """Submits bodies and waits for their acks. A thread that is woken competes for the interpreter's lock, so each is
    woken once for many of them.

    The committer is woken when the event loop has nothing else to do first, and the event loop once for all acks of a
    commit.
    """

    def __init__(self, log: LogWriter) -> None:
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._to_wake = False
        self._short: list[ShortBody] = []
        self._answered: deque[Callable[[], None]] = deque()
        self.is_called_soon: Callable[[], bool] = lambda: False
        """This tells whether the event loop was woken already, and will call `tell_answered`."""
        log.wakeups.on_answers(self._announce)

    def submit(self, stream: str, body: MappedBody, key: str | None, source: Source | None, arrived: Micros) -> Future[Ack]:
        """Queue a body as `LogWriter.submit` does. Raises: Overloaded, LogFailed."""
        submitted = self._log.submit(stream, body.batch, key, source=source, arrived=arrived, unmapped=body.unmapped, queueing=Queueing.TOGETHER)
        self._end_turn_later()
        return submitted

    def submit_all(self, stream: str, batches: Sequence[pa.RecordBatch], arrived: Micros) -> list[Future[Ack]]:
        """Queue bodies as `LogWriter.submit_all` does. Raises: Overloaded, LogFailed."""
        submitted = self._log.submit_all(stream, batches, arrived)
        self._end_turn_later()
        return submitted

    def submit_short(self, body: ShortBody) -> None:
        """Read and submit a body together with those that come in the same turn of the event loop, whatever their
        connections and streams.
        """
        self._short.append(body)
        self._end_turn_later()

    def _end_turn_later(self) -> None:
        if not self._to_wake:
            self._to_wake = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        short, self._short = self._short, []
        found = None
        if len(short) > 1:
            with suppress(Exception):  # whatever it is, each is read by itself then, and its own sender is told
                found = read_together([body.content for body in short], short[0].arrived)
        for number, body in enumerate(short):
            warning = None
            try:
                read, warning = body.read() if found is None else (StreamBody.from_batch(found[number]), None)
                ack = body.submit(read)
            except Exception as fault:  # noqa: BLE001  # whatever it was, the body's sender is to be told
                ack = AckFuture()
                ack.set_exception(fault)
            self.watch(ack, partial(body.told, ack, warning))
        self._to_wake = False
        self._log.wakeups.wake_committer()

    def watch(self, ack: Future[Ack], told: Callable[[], None]) -> None:
        """Have the event loop call `told` once an ack, or the reason why there is none, has come."""
        self._loop = asyncio.get_running_loop()
        ack.add_done_callback(lambda _: self._answered.append(told))
        if ack.done():  # the committer may have announced it already
            self._loop.call_soon(self.tell_answered)

    async def wait_for(self, ack: Future[Ack]) -> None:
        """Wait until an ack, or the reason why there is none, has come."""
        if not ack.done():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.watch(ack, lambda: None if waiter.done() else waiter.set_result(None))
            await waiter

    def _announce(self) -> None:
        """Have the event loop wake those whose acks have come. The committer calls this."""
        if self._answered and self._loop is not None and not self.is_called_soon():
            with suppress(RuntimeError):  # the loop may be closed when the last acks come
                self._loop.call_soon_threadsafe(self.tell_answered)

    def tell_answered(self) -> None:
        """Wake those whose acks have come. Runs on the event loop."""
        try:
            while self._answered:
                self._answered.popleft()()
        finally:
            if self._answered:  # a fault in one holds nobody else up
                asyncio.get_running_loop().call_soon(self.tell_answered)
