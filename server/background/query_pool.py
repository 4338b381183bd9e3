"""Sends one-shot queries over the background to separate processes (`query_process.py`).

A query that takes long delays no other, and it ends.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path

from epsparql.deferred_methods import dataclass
from pipeline.log import LogWriter
from pipeline.log.catalog import Catalogue, Registration
from pipeline.registrations.query_cache import get_shape
from server.background.query_protocol import DONE, FAULT, INTERNAL, NO_MEMORY, NOT_WRITABLE, Question, Setting
from server.http.problem_details import Fault, Problem
from server.settings import Settings
from server.subordinate_process import STRETCH, start_process

_WAITING = 64
"""At most this many queries wait for their turn."""
_GRACE_S = 5.0


@dataclass(slots=True, eq=False)
class _Host:
    """Represents a process that holds the background as of one change.

    Its task `ready` is done when the process has loaded it.
    """

    key: object
    directory: Path
    process: asyncio.subprocess.Process
    ready: asyncio.Task[str]

    @property
    def path(self) -> str:
        return str(self.directory / "ask")

    def end(self) -> None:
        """Stop the process: it takes no more queries, and the queries at work run to their end."""
        with suppress(ProcessLookupError):
            self.process.terminate()
        shutil.rmtree(self.directory, ignore_errors=True)

    async def kill(self) -> None:
        """End the process and the queries at work, which are its forks."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # it leads a session of its own
        shutil.rmtree(self.directory, ignore_errors=True)
        await self.process.wait()  # for the forks too, which hold its stdout
        await asyncio.wait([self.ready])


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds an answer, and the version of RDF that it needs.

    A media type that has no triple terms gets no text for them.
    """

    version: str
    text: bytes


class _Gone(Fault):
    """Reports that the process has ended although nobody asked it to."""

    def __init__(self) -> None:
        super().__init__(
            Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the process that answers has ended; the server's log has the details")
        )


def _list_static_rules(catalogue: Catalogue) -> list[Registration]:
    return [query for query in list(catalogue.queries.values()) if get_shape(query.text).graph is not None]


class QueryPool:
    """Answers queries on the service's event loop.

    The first query after a change of the background starts a new process.
    """

    def __init__(self, settings: Settings, log: LogWriter) -> None:
        self._settings, self._log = settings, log
        self._host: _Host | None = None
        self._starting = asyncio.Lock()
        self._turns = asyncio.Semaphore(settings.sparql_processes)
        self._waiting = 0

    async def answer_query(self, question: Question) -> Answer:
        """Return the answer to a query.

        Raises: Fault 400 for what the engine refuses, 406 for what the media type cannot hold, 422 for what takes too
        much. Fault 429 if too many wait, and 500.
        """
        if self._waiting >= _WAITING:
            raise Fault(
                Problem(HTTPStatus.TOO_MANY_REQUESTS, "overloaded", f"{_WAITING} queries wait for their turn already", headers={"Retry-After": "1"})
            )
        self._waiting += 1
        try:
            async with self._turns:
                try:
                    return await self._asked(await self._current(), question)
                except _Gone:
                    return await self._asked(await self._current(), question)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        if self._host is not None:
            await self._host.kill()

    def _end_host(self, host: _Host) -> None:
        host.end()
        if self._host is host:
            self._host = None

    # ------------------------------------------------------------ the process
    async def _current(self) -> _Host:
        """Return the process that holds the present background. Raises: Fault 500 if it does not start."""
        async with self._starting:
            catalogue = self._log.catalogue
            key = catalogue.entailment, tuple(catalogue.graphs.values()), tuple(rule.registered for rule in _list_static_rules(catalogue))
            if self._host is None or self._host.key != key or self._host.process.returncode is not None:
                if self._host is not None:
                    self._host.end()
                self._host = await self._start(key)
            host = self._host
            said = await host.ready
        if said != "ready":
            self._end_host(host)
            raise _Gone
        return host

    async def _start(self, key: object) -> _Host:
        directory = Path(tempfile.mkdtemp(prefix="epsparql-ask-"))
        process = await start_process("server.background.query_process")
        catalogue, settings = self._log.catalogue, self._settings
        host = _Host(key, directory, process, asyncio.create_task(_said(process)))
        setting = Setting(
            data=str(settings.data),
            graphs=[(graph.name, list(graph.entries)) for graph in catalogue.graphs.values()],
            entailment=catalogue.entailment,
            rules=[(rule.registered, rule.name, rule.text, rule.default_graph) for rule in _list_static_rules(catalogue)],
            socket=host.path,
            seconds=settings.sparql_timeout_s,
            memory=settings.max_sparql_memory,
            answer=settings.max_sparql_answer,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(setting).encode() + b"\n")
        return host

    # ------------------------------------------------------------ a query
    async def _asked(self, host: _Host, question: Question) -> Answer:
        settings, loop = self._settings, asyncio.get_running_loop()
        began, begun = loop.time(), b""
        try:
            reader, writer = await asyncio.open_unix_connection(host.path)
        except OSError as fault:
            self._end_host(host)
            raise _Gone from fault
        try:
            async with asyncio.timeout(settings.sparql_timeout_s * STRETCH + _GRACE_S):
                try:
                    writer.write(json.dumps(question).encode() + b"\n")
                    begun = await reader.readline()
                    said = await reader.readline()
                    answer = await reader.read()
                finally:
                    writer.close()
        except (TimeoutError, OSError):
            said, answer = b"", b""
        if not said.endswith(b"\n"):
            if loop.time() - began >= settings.sparql_timeout_s:
                raise _ended("time", settings)
            if begun:  # the query's own process has ended, and not the one before it
                raise _ended(NO_MEMORY, settings)
            self._end_host(host)
            raise _Gone
        verdict, detail = json.loads(said)
        if verdict == DONE:
            return Answer(detail, answer)
        if verdict == FAULT:
            raise Fault(Problem(HTTPStatus.BAD_REQUEST, **detail))
        if verdict == NOT_WRITABLE:
            raise Fault(Problem(HTTPStatus.NOT_ACCEPTABLE, "not-acceptable", detail, expected="another media type"))
        if verdict == INTERNAL:
            raise Fault(Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "an internal error; the server's log has the details"))
        raise _ended(verdict, settings)


async def _said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


def _ended(why: str, settings: Settings) -> Fault:
    match why:
        case "time":
            detail = f"the query took more than {settings.sparql_timeout_s:g} s of processor time; ask for less, or raise EPSPARQL_SPARQL_TIMEOUT_S"
        case "memory":
            detail = f"the query needed more than {settings.max_sparql_memory} bytes of memory; ask for less, or raise EPSPARQL_MAX_SPARQL_MEMORY"
        case _:
            why, detail = (
                "answer",
                f"the answer is larger than {settings.max_sparql_answer} bytes; use LIMIT and OFFSET, or raise EPSPARQL_MAX_SPARQL_ANSWER",
            )
    return Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"beyond-{why}", detail))


@asynccontextmanager
async def run_pool(settings: Settings, log: LogWriter) -> AsyncIterator[QueryPool]:
    """Answer queries until the block is left."""
    pool = QueryPool(settings, log)
    try:
        yield pool
    finally:
        await pool.close()
