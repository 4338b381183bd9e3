"""Starts and stops what runs beside the routes: the runner, the scrubber and the housekeeping."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from engine.messages import Micros
from pipeline.errors import PipelineError
from pipeline.log import LogWriter
from pipeline.parquet_export import Exporter
from pipeline.replication.replicator import Replicator
from pipeline.retention import Limits, Retention, secured
from pipeline.runners.catch_up import Catching
from pipeline.runners.engine_report import DeadlineReader
from pipeline.runners.in_process import InProcessRunner
from pipeline.runners.log_follower import LogRunner
from pipeline.scrub import Scrubber
from pipeline.solutions.query_index import InUse
from pipeline.solutions.solution_log import SolutionReader
from server.process import give_back_memory, load_grammars
from server.query_output.notifier import Notifier
from server.registrations.quota_totals import QuotaTotals
from server.registrations.revision_rules import is_unrevised
from server.settings import Settings

_HOUSEKEEPING_S = 0.5
_GIVE_BACK_S = 60.0
_LOOK_S = 0.05  # commits come thousands of times a second, and queries that are behind seldom
_log = logging.getLogger("epsparql.server")


class Lifecycle:
    """Holds what has a life of its own. `stopping` is set when the server stops."""

    def __init__(
        self, settings: Settings, log: LogWriter, solutions: SolutionReader, notifier: Notifier, export: Exporter | None, keeper: Replicator | None
    ) -> None:
        self.export, self.keeper = export, keeper
        self.runner = _runner_of(settings, log, solutions)
        self.retention = _retention_of(settings, log, solutions, export, keeper)
        self.retention.find_in_use = partial(_find_in_use, log, notifier)
        self.scrubber = Scrubber(settings.data, log.tell_damage, repair=lambda fault: keeper is not None and keeper.repair(fault))
        self.stopping = asyncio.Event()
        self.failure = ""  # why the runner did not start
        self._on_spark = settings.runner == "spark"

    @property
    def store_lost(self) -> str:
        """Return why another server may have taken over this server's store; empty if none has."""
        return "" if self.keeper is None else self.keeper.lost

    @property
    def standbys(self) -> Mapping[str, int] | None:
        """Return how many servers stand by for this one, by state; None where none can."""
        return None if self.keeper is None else self.keeper.standbys

    def describe_state(self) -> str:
        if self.stopping.is_set():
            return "stopping with the server"
        if self.failure:
            return f"failed: {self.failure}"
        if self.runner.state == "starting" and self._on_spark:
            return "starting: the processes of Spark come up, which takes ten seconds or more"
        return self.runner.state

    def start(self, begun: Callable[[], None]) -> None:
        """Start the runner, and call `begun`.

        The first registration finds the grammars loaded, which takes a third of a second.
        """
        try:
            self.runner.start()
            self.scrubber.start()
            load_grammars()
            begun()
        except (OSError, PipelineError) as error:
            _log.error("the runner did not start: %s", error)
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - told by /readyz
            _log.exception("the runner did not start")
            self.failure = str(error)

    def stop(self) -> None:
        self.runner.stop()
        self.scrubber.stop()


class Housekeeping:
    """Lets time pass on silent streams, holds the logs to their limits, and lets queries catch up.

    All of it runs until cancelled.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], Micros],
        log: LogWriter,
        solutions: SolutionReader,
        notifier: Notifier,
        retention: Retention,
        totals: QuotaTotals,
    ) -> None:
        self._clock, self._log, self._solutions, self._notifier, self._retention = clock, log, solutions, notifier, retention
        self._totals = totals
        self._sweep_every_s = settings.retain_every_s
        self._deadlines = DeadlineReader(settings.data)
        self._catching = Catching(settings.data, log, round(settings.promotion_timeout_s * 1e6))

    async def keep_time_and_limits(self) -> None:
        """Let time pass on silent streams that queries wait for, and hold queries and logs to their limits."""
        loop = asyncio.get_running_loop()
        swept_s = given_s = loop.time()
        while True:
            await asyncio.sleep(_HOUSEKEEPING_S)
            try:
                if loop.time() - given_s >= _GIVE_BACK_S:
                    given_s = loop.time()
                    await asyncio.to_thread(give_back_memory)
                await asyncio.to_thread(self._pass_time)
                await asyncio.to_thread(self._totals.check, self._solutions.changes)
                if loop.time() - swept_s >= self._sweep_every_s:
                    swept_s = loop.time()
                    await asyncio.to_thread(self._retention.sweep, self._clock())
            except (OSError, PipelineError) as fault:
                _log.warning("housekeeping waits: %s", fault)
            except Exception:  # noqa: BLE001 - a failed round must not end housekeeping
                _log.exception("housekeeping failed")

    def _pass_time(self) -> None:
        """Write time into the log, but only where queries wait for it: a server on which nothing waits writes nothing."""
        self._log.pass_time(self._deadlines.read())

    async def catch_up_queries(self) -> None:
        """Let queries that are behind read on, and revised ones tell what has changed."""
        while True:
            seen = self._notifier.generation
            unrevised = is_unrevised(self._log.catalogue)
            if not (self._log.catalogue.leads or unrevised):
                await asyncio.sleep(_LOOK_S)
            else:
                try:
                    await asyncio.to_thread(self._catching.step, self._solutions.position, self._solutions.changes, self._clock())
                    if unrevised:
                        await asyncio.to_thread(self._catching.revise, self._solutions.position)
                except (OSError, PipelineError) as fault:
                    _log.warning("queries that have not caught up must wait: %s", fault)
                except Exception:  # noqa: BLE001 - it is tried again
                    _log.exception("queries that have not caught up cannot read on")
            await self._notifier.wait_for_news(seen, _HOUSEKEEPING_S)


def _retention_of(settings: Settings, log: LogWriter, solutions: SolutionReader, export: Exporter | None, keeper: Replicator | None) -> Retention:
    age = None if settings.retain_age is None else round(settings.retain_age * 1_000_000)
    needed = keeper.secured if keeper is not None else partial(secured, settings.data)
    retention = Retention(settings.data, Limits(age, settings.retain_bytes), solutions, lambda: log.saved, needed)
    retention.log_holds.append(lambda: log.catalogue.find_needed_position(needed()))
    if export is not None:
        retention.solution_holds.append(lambda: export.position)
        retention.log_holds.append(lambda: export.marked)
    if keeper is not None:
        retention.solution_holds.append(lambda: keeper.solutions_until)
    return retention


def _find_in_use(log: LogWriter, notifier: Notifier) -> InUse:
    """Find the registrations that have solutions or followers.

    Another thread may write entries meanwhile, so the position is read on both sides.
    """
    since = log.catalogue.position
    queries = list(log.catalogue.queries.values())
    kept = {query.registered for query in queries} | {version.offset for query in queries for version in query.versions}
    return InUse(since, frozenset(kept | notifier.followed), log.catalogue.position)


def _runner_of(settings: Settings, log: LogWriter, solutions: SolutionReader) -> LogRunner:
    if settings.runner == "inprocess":
        return InProcessRunner(settings.data, log.reader(), partitions=settings.partitions, recent=solutions.recent)
    from pipeline.spark.supervisor import SparkOptions, SparkRunner  # only where Spark is wanted

    store = settings.store if settings.away else None
    options = SparkOptions(partitions=settings.partitions, store=store, conf=tuple(settings.spark_conf))
    return SparkRunner(settings.data, settings.master, log.heartbeat, options)
