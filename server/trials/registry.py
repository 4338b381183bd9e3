"""Holds the trials of a server, and starts their processes (`process.py`), a few at a time.

A trial ends with the server.
"""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.trials.execution import TrialStatus
from pipeline.trials.plan import TrialPlan
from server.http.problem_details import Fault, Problem, unknown_fault
from server.settings import Settings
from server.subordinate_process import start_process
from server.trials.process import TrialReport

WAITING, RUNNING, FAILED = "waiting", "running", "failed"
_LINE = 16 << 20
"""A line of the process may have this many bytes; it grows with the queries that are compared."""


@dataclass(frozen=True, slots=True)
class TrialWish:
    """Holds a trial as a client wants it, and the text of the query that it is compared with.

    `names` are those whose solutions are compared, and `warning` says why none can be equal.
    """

    query: str
    policy: str
    default_graph: str
    compare_with: str | None
    old_query: str | None
    start: str
    end: str
    names: tuple[str, ...]
    warning: str = ""


@dataclass(slots=True, eq=False)
class Trial:
    """Represents a trial: what was asked for, and how it stands."""

    id: str
    wish: TrialWish
    created: Micros
    plan: TrialPlan
    state: str = WAITING
    reason: str = ""
    status: TrialStatus | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def directory(self) -> Path:
        return Path(self.plan.directory)

    def read_page(self, kind: str, after: int, limit: int) -> list[dict[str, Any]]:
        """Return solutions of a kind that were kept, without ids, which only a registered query gives."""
        try:
            with (self.directory / kind).open("rb") as file:
                lines = [msgspec.json.decode(line) for line in islice(file, after, after + limit) if line.endswith(b"\n")]
        except FileNotFoundError:  # it has not begun
            return []
        return [{name: value for name, value in line.items() if name != "id"} for line in lines]


class TrialRegistry:
    """Runs trials on the server's event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._root = settings.data / "trials"
        shutil.rmtree(self._root, ignore_errors=True)  # what a server left that was killed
        self._trials: dict[str, Trial] = {}
        self._turns = asyncio.Semaphore(max(settings.trial_processes, 1))

    def check_room(self) -> None:
        """Check that one more trial may be started. Raises: Fault 429."""
        if len(self._trials) >= self._settings.max_trials:
            detail = f"{len(self._trials)} trials are kept already; delete one at /trials, or raise max_trials"
            raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-trials", detail))

    def start_trial(self, wish: TrialWish, plan: TrialPlan, now: Micros) -> Trial:
        """Start a trial, or let it wait for its turn. The plan's directory is chosen here. Raises: OSError."""
        identifier = secrets.token_hex(8)
        directory = self._root / identifier
        directory.mkdir(parents=True)
        trial = Trial(identifier, wish, now, replace(plan, directory=str(directory)))
        self._trials[trial.id] = trial
        trial.task = asyncio.create_task(self._run(trial))
        return trial

    def list_trials(self) -> list[Trial]:
        """Return the trials, the newest first."""
        return list(reversed(self._trials.values()))

    def get_trial(self, identifier: str) -> Trial:
        """Return a trial. Raises: Fault 404."""
        known = self._trials.get(identifier)
        if known is None:
            raise unknown_fault("trial", identifier, self._trials)
        return known

    async def delete_trial(self, identifier: str) -> None:
        """Cancel a trial, if it is at work, and forget it. Raises: Fault 404."""
        trial = self.get_trial(identifier)
        del self._trials[identifier]
        await self._end(trial)

    async def close(self) -> None:
        for trial in self._trials.values():
            await self._end(trial)
        self._trials.clear()
        shutil.rmtree(self._root, ignore_errors=True)

    async def _end(self, trial: Trial) -> None:
        if trial.task is not None:
            trial.task.cancel()
            await asyncio.wait([trial.task])
        shutil.rmtree(trial.directory, ignore_errors=True)

    async def _run(self, trial: Trial) -> None:
        async with self._turns:
            trial.state = RUNNING
            process = await start_process("server.trials.process", _LINE)
            try:
                await self._follow(trial, process)
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def _follow(self, trial: Trial, process: asyncio.subprocess.Process) -> None:
        """Take what the process reports until it ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(trial.plan) + b"\n")
        while line := await process.stdout.readline():
            report = msgspec.json.decode(line, type=TrialReport)
            trial.state, trial.reason = report.state, report.reason
            trial.status = report.status or trial.status
        if trial.state == RUNNING:
            most = self._settings.max_trial_memory
            trial.state, trial.reason = (
                FAILED,
                f"its process has ended, perhaps for want of memory (max_trial_memory={most}); the server's log has the details",
            )


@asynccontextmanager
async def run_trials(settings: Settings) -> AsyncIterator[TrialRegistry]:
    """Run trials until the block is left."""
    registry = TrialRegistry(settings)
    try:
        yield registry
    finally:
        await registry.close()
