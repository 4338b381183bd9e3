"""Real brokers and a real database on free ports, which a test may kill with -9 and start again over the same data."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

DEADLINE_S = 90.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def binary(name: str, *folders: str) -> str:
    """The path of a program. The test that needs it fails with the remedy where there is none."""
    found = shutil.which(name) or next((str(path) for folder in folders for path in sorted(Path("/").glob(f"{folder}/{name}"), reverse=True)), None)
    if found is None:
        pytest.fail(f"{name} is not installed: make brokers")
    return found


def accepts(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def state_of(pid: int) -> str:
    """The letter that the system has for a process: T if it is stopped, Z if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def await_state(pid: int, letters: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while state_of(pid) not in letters:
        assert time.monotonic() < deadline, f"process {pid} is still in the state {state_of(pid)}"
        time.sleep(0.001)


class Daemon:
    """A process that listens on a port. It may be killed, with its children, and started again."""

    user: str | None = None

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.command, self.port = command, port
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the daemon, and close() closes it
        self.start()

    def start(self) -> None:
        as_user = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **as_user)  # type: ignore[call-overload]  # of two kinds
        deadline = time.monotonic() + DEADLINE_S
        while not self.is_ready():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.02)

    def is_ready(self) -> bool:
        return accepts(self.port)

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-2_000:]

    def kill(self) -> None:
        """Kill with -9 the process and its children, which would go on for a moment.

        It is stopped first, or it would start further ones.
        """
        family = [self.process.pid] if self.process.poll() is None else []
        if family:
            os.kill(self.process.pid, signal.SIGSTOP)
            await_state(self.process.pid, "TZ")
            family += children_of(self.process.pid)
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for pid in family:
            await_state(pid, "Z")

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        self.log.close()


class Postgresql(Daemon):
    """PostgreSQL over a data directory of its own.

    It refuses to run as root, so root runs it as the user that Debian makes for it.
    """

    def __init__(self) -> None:
        self.user = "postgres" if os.geteuid() == 0 else None
        folder = Path(binary("initdb", "usr/lib/postgresql/*/bin")).resolve().parent
        self.data = Path(tempfile.mkdtemp(prefix="epsparql-postgresql-"))  # pytest's own directories are closed to other users
        if self.user:
            shutil.chown(self.data, self.user)
        port = free_port()
        as_user = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
        initdb = [str(folder / "initdb"), "-D", str(self.data / "db"), "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, cwd="/", **as_user)  # type: ignore[call-overload]  # of two kinds
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "wal_level": "logical", "fsync": "off"}
        # fsync protects from crashes of the machine; killed processes lose nothing that they have written
        super().__init__(
            [
                str(folder / "postgres"),
                "-D",
                str(self.data / "db"),
                *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
            ],
            port,
        )

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def is_ready(self) -> bool:
        if not accepts(self.port):
            return False
        with suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2):
            return True
        return False

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.data)


@contextmanager
def postgresql() -> Iterator[Postgresql]:
    """A database that is able to decode its log."""
    database = Postgresql()
    try:
        yield database
    finally:
        database.close()


@contextmanager
def nats_server(data: Path) -> Iterator[Daemon]:
    """NATS with JetStream; its streams are on disk."""
    port = free_port()
    daemon = Daemon([binary("nats-server", "usr/sbin"), "-js", "-sd", str(data), "-a", "127.0.0.1", "-p", str(port)], port)
    try:
        yield daemon
    finally:
        daemon.close()


@contextmanager
def mosquitto(data: Path, *more: str) -> Iterator[Daemon]:
    """An MQTT broker that saves its sessions and stored messages at each change, so a kill with -9 loses the last
    moment alone.
    """
    port, data = free_port(), data.absolute()
    data.mkdir(exist_ok=True)
    settings = [f"listener {port} 127.0.0.1", *(more or ["allow_anonymous true"]), "persistence true", f"persistence_location {data}/"]
    settings += ["autosave_interval 1", "autosave_on_changes true", "max_queued_messages 0", *(["user root"] if os.geteuid() == 0 else [])]
    (data / "mosquitto.conf").write_text("\n".join(settings) + "\n")
    daemon = Daemon([binary("mosquitto", "usr/sbin"), "-c", str(data / "mosquitto.conf")], port)
    try:
        yield daemon
    finally:
        daemon.close()
