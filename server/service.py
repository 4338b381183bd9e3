"""What the routes share: the log, the solutions, the runner, and word of what is new."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

import pyarrow as pa

from engine.entries import Micros
from engine.warm import warm
from pipeline.catalogue import Registration, Stream
from pipeline.inprocess import InProcessRunner
from pipeline.log import LogReader, LogWriter
from pipeline.report import Report, read_report
from pipeline.results import Form, ndjson
from pipeline.solutions import SolutionReader, solution_id
from pipeline.warm import warm as warm_formats
from server.compiled import forget, shape
from server.pages import Line, Page, Pages
from server.problems import unknown
from server.progress import Progress, Timeline
from server.security import Gate
from server.settings import Settings

_HOUSEKEEPING_S = 0.5
_SETTLE_S = 0.1
_log = logging.getLogger("epsparql.server")


class Runner(Protocol):
    """Evaluates the log: in this process, or on Spark."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def ready(self) -> bool: ...
    @property
    def position(self) -> int: ...
    @property
    def state(self) -> str: ...
    def on_commit(self, callback: Callable[[int], None]) -> None: ...


class Service:
    """One per app; lives on its event loop."""

    def __init__(self, settings: Settings, clock: Callable[[], Micros], gate: Gate, log: LogWriter) -> None:
        self.settings, self.clock, self.gate, self.log = settings, clock, gate, log
        self.late_reader: LogReader = log.reader()
        self.late_lock = asyncio.Lock()  # a LogReader serves one thread at a time
        self.solutions = SolutionReader(settings.data)
        self.runner = _runner(settings, log)
        self.control = asyncio.Lock()  # what is read from the catalogue before a control entry still holds when it is written
        self.stopping = asyncio.Event()
        self.expecting = False  # whether the runner's thread has called for `notify`
        self.failure = ""  # why the runner did not start
        self.generation = 0
        self._timeline = Timeline()
        self._resampling = False
        self._news = asyncio.Event()
        self._pages: dict[int, Pages] = {}

    # ------------------------------------------------------------ news
    def notify(self) -> None:
        """Something may be new: wake all who wait. On the event loop only."""
        self.expecting = False
        self.generation += 1
        loop = asyncio.get_running_loop()
        if not self._timeline.sample(self.log.catalogue, loop.time()) and not self._resampling:
            self._resampling = True
            loop.call_later(_SETTLE_S, self._resample)
        self._news.set()
        self._news = asyncio.Event()

    def _resample(self) -> None:
        self._resampling = False
        self.notify()

    async def news(self, seen: int, within_s: float) -> bool:
        """Wait until `generation` is beyond `seen`; False after `within_s` seconds."""
        if self.generation > seen:
            return True
        try:
            async with asyncio.timeout(max(within_s, 0.0)):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    # ------------------------------------------------------------ what there is
    def stream(self, name: str) -> Stream:
        """Raises: Fault 404."""
        streams = self.log.catalogue.streams
        if name not in streams:
            raise unknown("stream", name, dict(streams))
        return streams[name]

    def query(self, name: str) -> Registration:
        """With the state that the runner reported. Raises: Fault 404."""
        queries = self.log.catalogue.queries
        if name not in queries:
            raise unknown("query", name, dict(queries))
        return self.with_state(queries[name])

    def queries(self) -> list[Registration]:
        return list(self.log.catalogue.with_changes(self.solutions.changes).values())

    def with_state(self, registration: Registration) -> Registration:
        for change in self.solutions.changes:
            if change.registered == registration.registered:
                return replace(registration, state=change.state, reason=change.reason)
        return registration

    def registered(self, registration: Registration) -> bool:
        """Whether it has not been dropped or replaced since."""
        now = self.log.catalogue.queries.get(registration.name)
        return now is not None and now.registered == registration.registered

    def pages(self, registration: Registration) -> Pages:
        """Shared by all who follow the query."""
        number = registration.registered
        if number not in self._pages:
            self._pages[number] = Pages(partial(self._page, registration, shape(registration.text).form))
        return self._pages[number]

    def _page(self, registration: Registration, form: Form, after: str | None, limit: int) -> Page:
        found = self.solutions.read(registration.registered, after, limit)
        ids = map(solution_id, found.column("end").cast(pa.int64()).to_pylist(), found.column("ordinal").to_pylist())
        return tuple(map(Line, ids, ndjson(found, {registration.name: form}).each()))

    def forget(self, registration: Registration) -> None:
        """What is kept of a query that was dropped."""
        forget(registration.text)
        self._pages.pop(registration.registered, None)

    def report(self) -> Report | None:
        """What the engine keeps, as its runner last told."""
        return read_report(self.settings.data)

    def progress(self, registration: Registration) -> Progress | None:
        return self._timeline.progress(self.solutions.position, registration, self.queries())

    # ------------------------------------------------------------ life
    async def housekeeping(self) -> None:
        """Time passes on silent streams, until cancelled."""
        while True:
            await asyncio.sleep(_HOUSEKEEPING_S)
            try:
                await asyncio.to_thread(self.log.idle)
            except Exception:  # noqa: BLE001 - a failed round must not end housekeeping
                _log.exception("housekeeping failed")


def _runner(settings: Settings, log: LogWriter) -> Runner:
    if settings.runner == "inprocess":
        return InProcessRunner(settings.data, log.reader())
    from pipeline.supervisor import SparkRunner  # only where Spark is wanted

    return SparkRunner(settings.data, settings.master, log.heartbeat)


def _begin(service: Service) -> None:
    """Start the runner. Compiling, once per machine, comes before; the server answers meanwhile, and is not ready."""
    try:
        warm_formats()
        if service.settings.runner == "inprocess":
            warm()
        service.runner.start()
    except Exception as error:  # noqa: BLE001 - told by /readyz
        _log.exception("the runner did not start")
        service.failure = str(error)


@asynccontextmanager
async def running(settings: Settings, clock: Callable[[], Micros], gate: Gate, log: LogWriter) -> AsyncIterator[Service]:
    """A service over an open log, with its runner, until the block is left."""
    service = Service(settings, clock, gate, log)
    loop = asyncio.get_running_loop()

    def on_commit(_position: int) -> None:
        if service.expecting:  # what was scheduled before has not run yet, so it will see this commit too
            return
        service.expecting = True
        with contextlib.suppress(RuntimeError):  # the loop may be closed when the runner's last commit comes
            loop.call_soon_threadsafe(service.notify)

    service.runner.on_commit(on_commit)
    begun = asyncio.create_task(asyncio.to_thread(_begin, service))
    chores = asyncio.create_task(service.housekeeping())
    try:
        yield service
    finally:
        service.stopping.set()
        service.notify()
        chores.cancel()
        await begun
        await asyncio.to_thread(service.runner.stop)
        service.solutions.close()
        service.late_reader.close()
