"""Wakes all who wait for something new: each commit of the runner wakes the followers of the queries that it concerns."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import field

from epsparql.deferred_methods import dataclass
from pipeline.log import LogWriter
from pipeline.log.catalog import Registration
from pipeline.solutions.solution_log import SolutionReader
from server.query_output.watermark_progress import WatermarkHistory

_SETTLE_S = 0.1


@dataclass(slots=True)
class _Signal:
    """Wakes the followers of one registration.

    It counts them, and remembers the number of solutions, and the generation, when it was last raised.
    """

    generation: int
    followers: int = 0
    count: int = 0
    waiting: set[asyncio.Future[None]] = field(default_factory=set)

    def raise_at(self, generation: int) -> None:
        self.generation = generation
        waiting, self.waiting = self.waiting, set()
        for waiter in waiting:
            _end_wait(waiter)

    async def wait(self, within_s: float) -> None:
        """Wait until it is raised, at most `within_s` seconds.

        asyncio's timeouts would cost as much as the rest of a wake-up.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.waiting.add(waiter)
        timer = loop.call_later(within_s, _end_wait, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self.waiting.discard(waiter)


def _end_wait(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Notifier:
    """Counts in `generation` how often something may have been new. Runs on the event loop only, `announce_commit`
    aside.

    `watermarks` has samples of the streams' watermarks, one for many generations that come at once.
    """

    def __init__(self, log: LogWriter, solutions: SolutionReader) -> None:
        self._log, self._solutions = log, solutions
        self.generation, self.watermarks = 0, WatermarkHistory()
        self._news = asyncio.Event()
        self._signals: dict[int, _Signal] = {}
        self._changes = 0
        self.commit_announced = False
        """This tells whether the event loop was woken for a commit, and has not looked yet."""
        self.first: Callable[[], None] = lambda: None
        """The event loop calls this before it wakes those whom a commit concerns."""
        self._resampling = False

    # ------------------------------------------------------------ waking
    def wake_all(self) -> None:
        """Wake all who wait, since something may be new."""
        self._advance()
        for signal in self._signals.values():
            signal.raise_at(self.generation)

    def announce_commit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the event loop wake those whom a commit of the runner concerns. Any thread may call this."""
        if self.commit_announced:  # the scheduled call has not run yet, so it will see this commit too
            return
        self.commit_announced = True
        with contextlib.suppress(RuntimeError):  # the loop may be closed when the runner's last commit comes
            loop.call_soon_threadsafe(self._wake_concerned)

    def _wake_concerned(self) -> None:
        """Wake those who wait for anything, and the followers of queries that have new solutions or states."""
        self.commit_announced = False
        self.first()
        self._advance()
        counts, changes = self._solutions.counts(self._signals), len(self._solutions.changes)
        for registered, signal in self._signals.items():
            if counts[registered] != signal.count or changes != self._changes:
                signal.count = counts[registered]
                signal.raise_at(self.generation)
        self._changes = changes

    def _advance(self) -> None:
        self.generation += 1
        if not self._resampling:  # otherwise the next sample will see what is new
            loop = asyncio.get_running_loop()
            if not self.watermarks.take_sample(self._log.catalogue, loop.time()):
                self._resampling = True
                loop.call_later(_SETTLE_S, self._resample)
        self._news.set()
        self._news = asyncio.Event()

    def _resample(self) -> None:
        self._resampling = False
        self._advance()

    # ------------------------------------------------------------ waiting
    async def wait_for_news(self, seen: int, within_s: float) -> bool:
        """Wait until `generation` is beyond `seen`. Returns False after `within_s` seconds."""
        if self.generation > seen:
            return True
        try:
            async with asyncio.timeout(max(within_s, 0.0)):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    @contextlib.contextmanager
    def follow_query(self, registration: Registration) -> Iterator[None]:
        """Follow this registration while the block runs, so that `wait_for_query` may be called for it."""
        signal = self._signals.setdefault(registration.registered, _Signal(self.generation))
        signal.followers += 1
        try:
            yield
        finally:
            signal.followers -= 1
            if not signal.followers:
                del self._signals[registration.registered]

    @property
    def followed(self) -> set[int]:
        """Return the registrations that somebody follows. Any thread may ask."""
        return set(self._signals)

    def generation_of(self, registration: Registration) -> int:
        """Return the generation in which something of the registration was last new.

        What was read since then still holds.
        """
        return self._signals[registration.registered].generation

    async def wait_for_query(self, registration: Registration, seen: int, within_s: float) -> None:
        """Wait until something of the registration is newer than the generation `seen`, at most `within_s` seconds."""
        signal = self._signals[registration.registered]
        if signal.generation == seen:
            await signal.wait(within_s)
