"""A real server on a free port, in a thread of the test process, with the in-process runner."""

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from pipeline.errors import PipelineError
from pipeline.log import LogWriter
from pipeline.replay.query_files import SourceFault
from pipeline.replication.replicator import Replicator
from server.cli.commands import parser
from server.cli.serve import Server, _serve_now, gate_of, listen
from server.process import clock
from server.settings import Settings, SettingsError, settings_from
from tests.support.logs import until as until

EX = "http://example.org/"
DEADLINE_S = 60.0
COMPILING_S = 300.0  # the first start on a machine
PARTITIONS = int(os.environ["EPSPARQL_TEST_PARTITIONS"]) if "EPSPARQL_TEST_PARTITIONS" in os.environ else None
"""Servers have so many partitions, where a test does not say how many (`make partitions`)."""
_numbers = itertools.count(1)


@contextmanager
def serving(data: Path, **chosen: Any) -> Iterator[str]:
    """The URL of a server that is ready, over `data`, with settings and perhaps a `keeper`."""
    keeper: Replicator | None = chosen.pop("keeper", None)
    settings = Settings(data=data, port=0, runner="inprocess", **({"partitions": PARTITIONS} | chosen))
    keep = None if keeper is None else keeper.write_log
    with (
        listen(settings) as listener,
        LogWriter(settings.data, clock, keep=keep, max_waiting=settings.max_waiting, partitions=settings.partitions or 1) as log,
    ):
        server = Server(settings, log, listener, gate_of(settings), keeper=keeper)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            Client(server.url, ca_file=settings.tls_cert, any_name=True).wait_ready(COMPILING_S)
            yield server.url
        finally:
            server.should_exit = True
            thread.join()


def refusal_of(*arguments: str) -> str:
    """Return why `epsparql serve` with these arguments does not start.

    It is started as the command does, but in this process and with its logging.
    """

    def run(*_: object, **__: object) -> None:
        pytest.fail("the server started")

    given = vars(parser().parse_args(["serve", "--runner", "inprocess", *arguments]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "run", run)
        with pytest.raises((SettingsError, SourceFault, PipelineError)) as refused:
            _serve_now(settings_from(given, os.environ, pytest.fail))
    return str(refused.value)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("data"), max_body=100_000, max_frame=50_000, max_query=10_000, progress_s=0.05) as found:
        yield found


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    """Its patience is that of a first start: what is asked may start a process, and other suites run beside this one."""
    with httpx.Client(base_url=url, timeout=COMPILING_S) as client:
        yield client


@pytest.fixture
def client(url: str) -> Client:
    return Client(url)


@pytest.fixture
def stream() -> str:
    """A stream of the test's own, whose name has slashes and more to encode."""
    return f"{EX}stream/{next(_numbers)}?a=b%20c#ü"


@pytest.fixture
def name() -> str:
    """A query's name, of the test's own."""
    return f"query {next(_numbers)}/ä"


def empty(client: Client) -> None:
    """Take all queries and streams from a server, so that the next test finds it new."""
    for query in client.queries():
        client.drop(query["name"])
    for stream in client._json("GET", "/streams")["streams"]:
        client.request("DELETE", f"/streams/{segment(stream['name'])}")


def values(stream: str) -> str:
    """A query for every `:value` of a stream."""
    return f"PREFIX : <{EX}> SELECT ?s ?v FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}"


def event(number: int, value: object = None) -> str:
    """The event of second `number`: `:s :value number`."""
    shown = number if value is None else value
    return f'{{"s":"<{EX}s>","p":"<{EX}value>","o":"\\"{shown}\\"","at":"{moment(number)}"}}'


def moment(number: int) -> str:
    minute, second = divmod(number, 60)
    hour, minute = divmod(minute, 60)
    return f"2026-01-01T{hour:02d}:{minute:02d}:{second:02d}Z"
