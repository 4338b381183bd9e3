"""A server, connectors and a broker as processes of their own, killed with -9 at random moments while events flow."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

from epsparql.client import Client
from server.child_server import Child
from tests.connectors.systems.brokers import free_port
from tests.soak import is_full

EX = "http://example.org/"
QUERY = f"PREFIX : <{EX}> SELECT ?s ?v WHERE {{ ?s :value ?v }}"
KILLS = 50 if is_full() else 2
"""How often all are killed, in each chain of connectors."""
DEADLINE_S = 600.0 if is_full() else 90.0


def event(number: int) -> str:
    """The event of second `number`; each has its own time, so that one that comes behind a later one is late."""
    minute, second = divmod(number, 60)
    hour, minute = divmod(minute, 60)
    day, hour = divmod(hour, 24)
    at = f"2026-01-{day + 1:02d}T{hour:02d}:{minute:02d}:{second:02d}Z"
    return f'{{"s":"<{EX}s>","p":"<{EX}value>","o":"\\"{number}\\"","at":"{at}"}}'


class RestartedServer:
    """A server on a port that stays the same when it is killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._port = directory, free_port()
        self._child = self._begin()
        self.url = self._child.url
        self.client = Client(self.url, patience_s=DEADLINE_S)
        try:
            self.client.wait_ready()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> Child:
        return Child(self._directory / "data", "inprocess", self._directory / "server.log", self._port).__enter__()

    def restart(self) -> None:
        self.close()
        self._child = self._begin()

    def close(self) -> None:
        self._child.kill()
        self._child.__exit__(None, None, None)


class ConnectProcess:
    """`epsparql connect` with the connectors of a file."""

    def __init__(self, directory: Path, server: str, connectors: Mapping[str, Mapping[str, object]]) -> None:
        self._directory, path = directory, directory / "connectors.toml"
        path.write_text(toml_of(server, connectors))
        self._command = [sys.executable, "-m", "server.cli", "connect", str(path)]
        self.start()

    def start(self) -> None:
        with (self._directory / "connect.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def workers(self) -> list[int]:
        text = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        return [int(word) for path in text for word in path.read_text().split()]

    def kill_worker(self, chance: Random) -> None:
        """Kill the process of one connector; its supervisor starts it again."""
        workers = self.workers()
        if workers:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)

    def restart(self) -> None:
        """Kill the supervisor; its workers end with it."""
        self.close()
        self.start()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def toml_of(server: str, connectors: Mapping[str, Mapping[str, object]]) -> str:
    lines = [f"server = '{server}'"]
    for name, options in connectors.items():
        lines.append(f"[connectors.{name}]")
        lines += [f"{option} = {toml_value(value)}" for option, value in options.items()]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {json.dumps(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


@contextmanager
def restarted_server(directory: Path) -> Iterator[RestartedServer]:
    server = RestartedServer(directory)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def connecting(directory: Path, server: str, connectors: Mapping[str, Mapping[str, object]]) -> Iterator[ConnectProcess]:
    process = ConnectProcess(directory, server, connectors)
    try:
        yield process
    finally:
        process.close()


def kill_at_random(victims: Sequence[Callable[[], None]], chance: Random, progress: Callable[[], int], kills: int = KILLS) -> None:
    """Kill all victims so many times, in a random order and at random moments, each time after some more progress."""
    reached = -1
    for _ in range(kills):
        wait_for(partial(_is_beyond, progress, reached), "progress after a kill")
        reached = progress()
        for kill in chance.sample(victims, len(victims)):
            time.sleep(chance.uniform(0, 0.4))  # the random moment; nothing is waited for
            kill()


def _is_beyond(progress: Callable[[], int], reached: int) -> bool:
    return progress() > max(reached, 0)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)


def values_of(solutions: Sequence[bytes | str]) -> list[int]:
    """The value of each solution, which is a document in JSON."""
    return [int(json.loads(each)["binding"]["v"]["value"]) for each in solutions]
