"""Runs connectors as child processes, and starts one again that has ended, after growing pauses."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from connectors.assignment import HOPELESS, Assignment
from connectors.configuration import Connector
from connectors.credentials import read_credentials, redact
from connectors.errors import WrongOption
from connectors.retries import Backoff
from connectors.status import RETRYING, RUNNING, STOPPED, Status, StatusBoard, decode_status
from epsparql.isolation.process_limits import limit_process

_STOP_S = 5.0
_HEALTHY_S = 60.0  # a process that ran this long and took messages over starts again at once
_LONGEST_S = 60.0
_KEPT = 20  # lines of what a process said before it ended
_NOT_INHERITED = ("PG", "EPSPARQL_")
"""Variables with these prefixes do not reach a connector: what it needs, it is given."""
_log = logging.getLogger("epsparql.connectors")


class _Child:
    """Supervises the process of one connector, in a thread."""

    def __init__(self, connector: Connector, server: str, token: str | None, trust: tuple[str, bool] | None, keys: Path | None) -> None:
        self.connector, self._server, self._token, self._trust, self._keys = connector, server, token, trust, keys
        self._board, self._stopping = StatusBoard(), threading.Event()
        self._backoff = Backoff(self._stopping, self._board, longest_s=_LONGEST_S)
        self._credentials: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None
        self._restarts, self._logged = 0, ""
        self._thread = threading.Thread(target=self._run, name=f"connector {connector.name}", daemon=True)
        self._thread.start()

    @property
    def status(self) -> Status:
        return replace(self._board.present, restarts=self._restarts)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._credentials = read_credentials(self.connector.options, self.connector.credentials, places=self.connector.places)
            except WrongOption as fault:
                _log.warning("connector %s: %s", self.connector.name, fault)
                self._backoff.wait_after(fault, RETRYING)
                continue
            began_s = time.monotonic()
            self._board.update(messages=0, fault=None)
            code, words = self._run_process()
            if self._stopping.is_set():
                break
            if code == HOPELESS:
                return
            if time.monotonic() - began_s > _HEALTHY_S and self._board.present.messages:
                self._backoff.reset()
            self._restarts += 1
            ended = WrongOption(f"its process ended with {code} and is started again; its last words: {words or self._board.present.fault or 'none'}")
            _log.warning("connector %s: %s", self.connector.name, ended)
            self._backoff.wait_after(ended)
        self._board.update(state=STOPPED)

    def _run_process(self) -> tuple[int, str]:
        """Run the process until it ends. Return its exit code, and what it said last that was no status."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        command = [sys.executable, "-m", "connectors.worker"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
        ) as process:
            self._process = process
            assert process.stdin is not None
            assert process.stdout is not None
            words: list[str] = []
            limit_process(process.pid, self.connector.options["max_memory"])
            try:
                keys = None if self._keys is None else str(self._keys)
                process.stdin.write(Assignment(self.connector, self._server, self._token, self._credentials, self._trust, keys).encode() + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    status = decode_status(line)
                    if status is None:
                        words = [*words[1 - _KEPT :], redact(line.strip(), self._secrets)]
                    else:
                        self._take_status(status)
            except BrokenPipeError:
                pass  # it ended before it was told what to do
            if self._stopping.is_set():
                with suppress(OSError):
                    process.terminate()
            code = process.wait()
        self._process = None
        return code, " / ".join(words)

    @property
    def _secrets(self) -> list[str]:
        return [*self._credentials.values(), *([self._token] if self._token else [])]

    def _take_status(self, status: Status) -> None:
        fault = None if status.fault is None else redact(status.fault, self._secrets)
        if status.state == RUNNING:
            self._logged = ""
        if fault is not None and status.fault_at != self._board.present.fault_at and fault != self._logged:
            self._logged = fault  # a fault that lasts is logged once
            _log.warning("connector %s is %s: %s", self.connector.name, status.state, fault)
        self._board.update(**{name: getattr(status, name) for name in Status.__dataclass_fields__} | {"fault": fault})

    def ask_to_stop(self) -> None:
        self._stopping.set()
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.terminate()

    def stop(self) -> None:
        """Stop the process in an orderly way, by force after some seconds."""
        self.ask_to_stop()
        self._thread.join(_STOP_S)
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()
        self._thread.join(_STOP_S)


class Supervisor:
    """Runs connectors by name. `grant` returns the token with which a connector reaches the server. Any thread may
    call its methods.

    `trust` is a file of certificates that count, and whether they may be for any name; without it, those that the
    system trusts count. `state` is the directory of the keys of sent alerts, which connectors with `once_per` need.
    """

    def __init__(
        self, server: str, grant: Callable[[Connector], str | None], trust: tuple[str, bool] | None = None, state: Path | None = None
    ) -> None:
        self.server, self._grant, self._trust, self._state = server, grant, trust, state
        self._lock = threading.Lock()
        self._children: dict[str, _Child] = {}

    def start(self, connector: Connector) -> None:
        """Start a connector, in place of one of its name."""
        self.stop(connector.name)
        with self._lock:
            self._children[connector.name] = _Child(connector, self.server, self._grant(connector), self._trust, self.find_keys(connector.name))

    def find_keys(self, name: str) -> Path | None:
        """Return the file of a connector's keys of sent alerts, named by a digest: names may hold characters that a
        file's may not.
        """
        return None if self._state is None else self._state / f"{sha256(name.encode()).hexdigest()[:32]}.json"

    def stop(self, name: str) -> None:
        """Stop a connector, if there is one of this name."""
        with self._lock:
            child = self._children.pop(name, None)
        if child is not None:
            child.stop()

    def stop_all(self) -> None:
        with self._lock:
            children, self._children = list(self._children.values()), {}
        for child in children:
            child.ask_to_stop()
        for child in children:
            child.stop()

    def get_status(self, name: str) -> Status | None:
        child = self._children.get(name)
        return None if child is None else child.status

    def __iter__(self) -> Iterator[tuple[Connector, Status]]:
        return iter([(child.connector, child.status) for child in list(self._children.values())])


def describe_connector(connector: Connector, status: Status) -> Mapping[str, object]:
    """Return what is told about a connector: its options as they were given, and its status.

    Neither holds a credential.
    """
    return {"name": connector.name, "direction": connector.direction, "options": dict(connector.given)} | {
        name: getattr(status, name) for name in Status.__dataclass_fields__
    }
