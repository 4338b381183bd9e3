"""Holds what the routes share: the log, the solutions, the runner, and notices of what is new."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import pyarrow as pa

from engine.messages import Micros
from engine.warmup import warm
from pipeline.errors import PipelineError
from pipeline.log import LogReader, LogWriter
from pipeline.log.catalog import Registration, Stream
from pipeline.parquet_export import Exporter
from pipeline.replication.replicator import Replicator
from pipeline.retention import Limits, Retention, secured
from pipeline.runners.catch_up import Catching
from pipeline.runners.engine_report import DeadlineReader, Report, read_report
from pipeline.runners.in_process import InProcessRunner
from pipeline.scrub import Scrubber
from pipeline.solutions.formats import Form, ndjson
from pipeline.solutions.solution_log import SolutionReader, solution_id
from pipeline.spark.batch_stats import Batch, read_batch
from pipeline.warmup import warm as warm_formats
from server.background.manager import Knowledge
from server.background.query_pool import Endpoint
from server.http.audit import Audit
from server.http.auth import Gate
from server.http.body_parsing import Bodies
from server.http.problem_details import unknown
from server.process import Threads
from server.push.connection_limits import Seats
from server.push.page_cache import Line, Page, Pages
from server.push.watermark_progress import Progress, Timeline
from server.push.websocket_protocol import text_frame
from server.registrations.query_cache import forget, shape
from server.settings import Settings

_HOUSEKEEPING_S = 0.5
_SETTLE_S = 0.1
_log = logging.getLogger("epsparql.server")


class Runner(Protocol):
    """Evaluates the log, in this process or on Spark."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def ready(self) -> bool: ...
    @property
    def position(self) -> int: ...
    @property
    def state(self) -> str: ...
    def on_commit(self, callback: Callable[[int], None]) -> None: ...


@dataclass(slots=True)
class _Bell:
    """Wakes the followers of one registration.

    It counts them, and remembers the number of solutions, and the generation, when it last rang.
    """

    followers: int = 0
    count: int = 0
    rung: int = 0
    event: asyncio.Event = field(default_factory=asyncio.Event)

    def ring(self, generation: int) -> None:
        self.rung = generation
        self.event.set()
        self.event = asyncio.Event()


class Service:
    """Serves one app, on the app's event loop."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], Micros],
        gate: Gate,
        log: LogWriter,
        *,
        export: Exporter | None = None,
        keeper: Replicator | None = None,
    ) -> None:
        self.settings, self.clock, self.gate, self.log, self.export, self.keeper = settings, clock, gate, log, export, keeper
        self.late_reader: LogReader = log.reader()
        self.late_lock = asyncio.Lock()  # a LogReader serves one thread at a time
        self.knowledge = Knowledge(log)
        self.endpoint = Endpoint(settings, log)
        self.solutions = SolutionReader(settings.data)
        self.runner = _runner(settings, log)
        self.bodies, self.seats, self.audit = Bodies(settings), Seats(settings), Audit(settings.data, settings.audit_bytes)
        self.retention = _retention(settings, log, self.solutions, export, keeper)
        self.scrubber = Scrubber(settings.data, log.tell_damage)
        self.control = asyncio.Lock()  # the catalogue does not change between a check and the control entry that rests on it
        self.stopping = asyncio.Event()
        self.expecting = False  # whether a call of `committed` is scheduled
        self.failure = ""  # why the runner did not start
        self.preparing = True  # the compiled code is being loaded, or compiled
        self.generation = 0
        self._timeline = Timeline()
        self._deadlines = DeadlineReader(settings.data)
        self.explaining = asyncio.Semaphore(1)  # one derivation is searched for at a time
        self._catching = Catching(settings.data, log)
        self._resampling = False
        self._news = asyncio.Event()
        self._pages: dict[int, Pages] = {}
        self._bells: dict[int, _Bell] = {}
        self._changes = 0
        self._known_progress: tuple[int, dict[int, Progress | None]] = (0, {})

    # ------------------------------------------------------------ news
    def notify(self) -> None:
        """Wake all who wait, since something may be new. Runs on the event loop only."""
        self._advance()
        for bell in self._bells.values():
            bell.ring(self.generation)

    def committed(self) -> None:
        """Wake those who wait for anything, and the followers concerned, since the runner has published something. Runs on the event loop only."""
        self.expecting = False
        self._advance()
        counts, changes = self.solutions.counts(self._bells), len(self.solutions.changes)
        for registered, bell in self._bells.items():
            if counts[registered] != bell.count or changes != self._changes:
                bell.count = counts[registered]
                bell.ring(self.generation)
        self._changes = changes

    def _advance(self) -> None:
        self.generation += 1
        loop = asyncio.get_running_loop()
        if not self._timeline.sample(self.log.catalogue, loop.time()) and not self._resampling:
            self._resampling = True
            loop.call_later(_SETTLE_S, self._resample)
        self._news.set()
        self._news = asyncio.Event()

    def _resample(self) -> None:
        self._resampling = False
        self._advance()

    async def news(self, seen: int, within_s: float) -> bool:
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
    def following(self, registration: Registration) -> Iterator[None]:
        """Follow this registration while the block runs, so that `news_of` may be called for it."""
        bell = self._bells.setdefault(registration.registered, _Bell(rung=self.generation))
        bell.followers += 1
        try:
            yield
        finally:
            bell.followers -= 1
            if not bell.followers:
                del self._bells[registration.registered]

    def rung(self, registration: Registration) -> int:
        """Return the generation in which something of the registration was last new. What was read since then still holds."""
        return self._bells[registration.registered].rung

    async def news_of(self, registration: Registration, rung: int, within_s: float) -> None:
        """Wait until something of the registration is newer than `rung` says, at most `within_s` seconds."""
        bell = self._bells[registration.registered]
        if bell.rung == rung:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await bell.event.wait()

    # ------------------------------------------------------------ what there is
    def stream(self, name: str) -> Stream:
        """Return the stream of this name. Raises: Fault 404."""
        known = self.log.catalogue.streams.get(name)
        if known is not None:
            return known
        streams = self.streams()
        if name not in streams:
            raise unknown("stream", name, streams)
        return streams[name]

    def streams(self) -> dict[str, Stream]:
        """Return the streams that were fed or set up, then those that queries read or write, as their first event would create them."""
        found = dict(self.log.catalogue.streams)
        for query in self.queries():
            if query.state in ("running", "paused"):
                for name in shape(query.text).touched:
                    found.setdefault(name, Stream(name, query.registered))
        return found

    def query(self, name: str) -> Registration:
        """Return the query of this name, with the state that the runner reported. Raises: Fault 404."""
        queries = self.log.catalogue.queries
        if name not in queries:
            raise unknown("query", name, dict(queries))
        return self.with_state(queries[name])

    def queries(self) -> list[Registration]:
        return list(self.log.catalogue.with_changes(self.solutions.changes).values())

    def rules(self) -> list[Registration]:
        """Return the CONSTRUCT queries that have not failed."""
        return [query for query in self.queries() if query.stands and shape(query.text).into is not None]

    def with_state(self, registration: Registration) -> Registration:
        for change in self.solutions.changes:
            if change.registered == registration.registered:
                return replace(registration, state=change.state, reason=change.reason)
        return registration

    def registered(self, registration: Registration) -> bool:
        """Return whether the registration has not been dropped or replaced since."""
        now = self.log.catalogue.queries.get(registration.name)
        return now is not None and now.registered == registration.registered

    def pages(self, registration: Registration) -> Pages:
        """Return the cache of pages that all followers of the query share."""
        number = registration.registered
        if number not in self._pages:
            form, read, read_at_hand = shape(registration.text).form, self.solutions.read, self.solutions.read_at_hand

            def page(after: str | None, limit: int) -> Page:
                return _page(registration, form, read(number, after, limit))

            def page_at_hand(after: str, limit: int) -> Page | None:
                found = read_at_hand(number, after, limit)
                return None if found is None else _page(registration, form, found)

            self._pages[number] = Pages(page, page_at_hand)
        return self._pages[number]

    def forget(self, registration: Registration) -> None:
        """Drop what is cached of a query that was dropped."""
        forget(registration.text)
        self._pages.pop(registration.registered, None)

    def report(self) -> Report | None:
        """Return the runner's latest report of the engine's state, if there is one."""
        return read_report(self.settings.data)

    @property
    def overtaxed(self) -> str:
        """Return why events have to wait for the runner; empty if they do not."""
        entries, rows = self.settings.max_lag, self.settings.max_lag_rows
        position = self.solutions.position
        if 0 < entries < (lag := self.log.head() - position):
            return f"{lag} entries behind, more than max_lag={entries}"
        if 0 < rows < (lag := self.log.rows_beyond(position)):
            return f"{lag} rows behind, more than max_lag_rows={rows}"
        return ""

    def batch(self) -> Batch | None:
        """Return the figures of the last batch on Spark, if there are any."""
        return read_batch(self.settings.data) if self.settings.runner == "spark" else None

    def progress(self, registration: Registration) -> Progress | None:
        """Return the query's progress, which is computed once for all its followers."""
        if self._known_progress[0] != self.generation:
            self._known_progress = (self.generation, {})
        known = self._known_progress[1]
        if registration.registered not in known:
            known[registration.registered] = self._timeline.progress(self.solutions.position, self._as_it_is(registration), self.queries())
        return known[registration.registered]

    def _as_it_is(self, registration: Registration) -> Registration:
        """Return the registration as it is now: it may have fallen behind, or caught up, since it was looked up."""
        now = self.log.catalogue.queries.get(registration.name, registration)
        return now if now.registered == registration.registered else registration

    # ------------------------------------------------------------ life
    async def housekeeping(self) -> None:
        """Let time pass on silent streams that queries wait for, and hold the logs to their limits, until cancelled."""
        loop = asyncio.get_running_loop()
        swept_s = loop.time()
        while True:
            await asyncio.sleep(_HOUSEKEEPING_S)
            try:
                await asyncio.to_thread(self._pass_time)
                if loop.time() - swept_s >= self.settings.retain_every_s:
                    swept_s = loop.time()
                    await asyncio.to_thread(self.retention.sweep, self.clock())
            except (OSError, PipelineError) as fault:
                _log.warning("housekeeping waits: %s", fault)
            except Exception:  # noqa: BLE001 - a failed round must not end housekeeping
                _log.exception("housekeeping failed")

    def _pass_time(self) -> None:
        """Write time into the log, but only where queries wait for it: a server on which nothing waits writes nothing."""
        self.log.pass_time(self._deadlines.read())

    async def catching_up(self) -> None:
        """Let queries that are behind read on, until cancelled."""
        while True:
            seen = self.generation
            if self.log.catalogue.leads:
                try:
                    await asyncio.to_thread(self._catching.step, self.solutions.position)
                except (OSError, PipelineError) as fault:
                    _log.warning("queries that are behind wait: %s", fault)
                except Exception:  # noqa: BLE001 - it is tried again
                    _log.exception("queries that are behind cannot read on")
            await self.news(seen, _HOUSEKEEPING_S)


def _page(registration: Registration, form: Form, found: pa.RecordBatch) -> Page:
    ids = map(solution_id, found.column("end").cast(pa.int64()).to_pylist(), found.column("ordinal").to_pylist())
    texts = ndjson(found, {registration.name: form}).each()
    return tuple(Line(id_, text, text_frame(f'{{"solution":{text}}}')) for id_, text in zip(ids, texts, strict=True))


def _retention(settings: Settings, log: LogWriter, solutions: SolutionReader, export: Exporter | None, keeper: Replicator | None) -> Retention:
    age = None if settings.retain_age is None else round(settings.retain_age * 1_000_000)
    needed = keeper.secured if keeper is not None else partial(secured, settings.data)
    retention = Retention(settings.data, Limits(age, settings.retain_bytes), solutions, lambda: log.saved, needed)
    retention.log_holds.append(lambda: log.catalogue.needed_from(needed()))
    if export is not None:
        retention.solution_holds.append(lambda: export.position)
        retention.log_holds.append(lambda: export.marked)
    if keeper is not None:
        retention.solution_holds.append(lambda: keeper.kept)
    return retention


def _runner(settings: Settings, log: LogWriter) -> Runner:
    if settings.runner == "inprocess":
        return InProcessRunner(settings.data, log.reader(), buckets=settings.buckets)
    from pipeline.spark.supervisor import SparkRunner  # only where Spark is wanted

    return SparkRunner(
        settings.data,
        settings.master,
        log.heartbeat,
        settings.buckets,
        low_latency=settings.low_latency,
        store=settings.store if settings.away else None,
        conf=settings.spark_conf,
    )


def _begin(service: Service, begun: Callable[[], None]) -> None:
    """Start the runner, and call `begun`.

    Compiling comes first, once per machine; meanwhile the server answers, and is not ready.
    """
    try:
        warm_formats()
        if service.settings.runner == "inprocess":
            warm()
        service.preparing = False
        service.runner.start()
        service.scrubber.start()
        begun()
    except (OSError, PipelineError) as error:
        _log.error("the runner did not start: %s", error)
        service.failure = str(error)
    except Exception as error:  # noqa: BLE001 - told by /readyz
        _log.exception("the runner did not start")
        service.failure = str(error)


@asynccontextmanager
async def running(
    settings: Settings,
    clock: Callable[[], Micros],
    gate: Gate,
    log: LogWriter,
    *,
    export: Exporter | None = None,
    keeper: Replicator | None = None,
    begun: Callable[[], None] = lambda: None,
) -> AsyncIterator[Service]:
    """Run a service over an open log, with its runner, until the block is left.

    `begun` is called, in a thread of its own, once the runner has started.
    """
    service = Service(settings, clock, gate, log, export=export, keeper=keeper)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(Threads(thread_name_prefix="server"))

    def on_commit(_position: int) -> None:
        if service.expecting:  # the scheduled call has not run yet, so it will see this commit too
            return
        service.expecting = True
        with contextlib.suppress(RuntimeError):  # the loop may be closed when the runner's last commit comes
            loop.call_soon_threadsafe(service.committed)

    service.runner.on_commit(on_commit)
    beginning = asyncio.create_task(asyncio.to_thread(_begin, service, begun))
    chores = [asyncio.create_task(chore) for chore in (service.housekeeping(), service.catching_up())]
    try:
        yield service
    finally:
        service.stopping.set()
        service.notify()
        for chore in chores:
            chore.cancel()
        await beginning
        await asyncio.to_thread(service.runner.stop)
        await asyncio.to_thread(service.scrubber.stop)
        await service.endpoint.close()
        service.knowledge.close()
        service.solutions.close()
        service.late_reader.close()
