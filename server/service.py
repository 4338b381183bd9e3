"""Puts together what the routes share, each part with one job, and runs it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from engine.messages import Micros
from epsparql.translate.parsed_texts import ParsedTexts
from pipeline.log import LogWriter
from pipeline.log.catalog import MAX_AHEAD
from pipeline.parquet_export import Exporter
from pipeline.replication.replicator import Replicator
from pipeline.runners.engine_report import EngineReport, ReportReader
from pipeline.runners.goal_questions import GoalAsker
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.batch_stats import Batch, read_batch
from server.admission import Admission
from server.background.manager import BackgroundManager
from server.background.shapes_check import ShapesCheck
from server.http.auth import Gate
from server.inspection.stream_inspector import StreamInspector
from server.lifecycle import Housekeeping, Lifecycle
from server.log_intake import LogIntake
from server.query_output.notifier import Notifier
from server.query_output.query_output import QueryOutput
from server.registrations.catalog_view import CatalogView
from server.registrations.quota_totals import QuotaTotals
from server.settings import Settings
from server.thread_pool import Threads


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
        self.settings, self.clock, self.log = settings, clock, log
        log.default_ahead = MAX_AHEAD
        self.solutions, self.texts = SolutionReader(settings.data), ParsedTexts(settings.data)
        self._reports, self.goals = ReportReader(settings.data), GoalAsker(settings.data)
        self.catalog = CatalogView(log, self.solutions)
        self.background = BackgroundManager(log, ShapesCheck(settings))
        self.inspector = StreamInspector(settings.data, clock)
        self.admission = Admission(settings, gate, log, self.solutions)
        self.notifier = Notifier(log, self.solutions)
        self.output = QueryOutput(self.catalog, self.notifier, self.solutions)
        self.lifecycle = Lifecycle(settings, log, self.solutions, self.notifier, export, keeper)
        self.intake = LogIntake(log)
        self.notifier.first, self.intake.is_called_soon = self.intake.tell_answered, lambda: self.notifier.commit_announced

    def read_report(self) -> EngineReport | None:
        """Return the runner's latest report of the engine's state, if there is one."""
        return self._reports.read()

    def read_batch(self) -> Batch | None:
        """Return the figures of the last batch on Spark, if there are any."""
        return read_batch(self.settings.data) if self.settings.runner == "spark" else None

    def stop_followers(self) -> None:
        """End what follows queries, since the server stops."""
        self.lifecycle.stopping.set()
        self.notifier.wake_all()

    def close(self) -> None:
        self.background.close()
        self.solutions.close()
        self.texts.close()
        self.catalog.late_feed.close()
        self.inspector.close()


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
    lifecycle, loop = service.lifecycle, asyncio.get_running_loop()
    loop.set_default_executor(Threads(thread_name_prefix="server"))
    lifecycle.runner.on_commit(lambda _position: service.notifier.announce_commit(loop))
    beginning = asyncio.create_task(asyncio.to_thread(lifecycle.start, begun))
    totals = QuotaTotals(settings.data, log, service.read_report)
    housekeeping = Housekeeping(settings, clock, log, service.solutions, service.notifier, lifecycle.retention, totals)
    chores = [asyncio.create_task(chore) for chore in (housekeeping.keep_time_and_limits(), housekeeping.catch_up_queries())]
    try:
        yield service
    finally:
        service.stop_followers()
        for chore in chores:
            chore.cancel()
        await beginning
        await asyncio.to_thread(lifecycle.stop)
        service.close()
