"""A store that speaks S3 over HTTP, an emulation in a process of its own (moto), and a line to it that can fail."""

import itertools
import re
import socket
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pyarrow import fs

ACCESS, SECRET = "AKIAEXAMPLE", "wJalr/XUtnFEMI+K7MDENG"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": ACCESS,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",  # nobody else is to be asked for them
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # it takes no body of unknown length, as which Arrow sends one with a checksum
}
"""In the environment of whoever writes there."""
_STARTS_S = 120.0
_buckets = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Served:
    """A store at a port of this machine."""

    port: int

    def bucket(self) -> "S3Bucket":
        """A new one."""
        made = S3Bucket(f"bucket-{next(_buckets)}", self.port)
        made.files().create_dir(made.name)
        return made


@dataclass(frozen=True, slots=True)
class S3Bucket:
    name: str
    port: int

    def uri(self, path: str, *, port: int | None = None, user: str = "") -> str:
        """`port`: that of a line."""
        return f"s3://{user}{self.name}/{path}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port or self.port}"

    def files(self) -> fs.FileSystem:
        """The store, with a client of one's own."""
        keys = {"access_key": ACCESS, "secret_key": SECRET, "region": "us-east-1"}
        return fs.S3FileSystem(**keys, scheme="http", endpoint_override=f"127.0.0.1:{self.port}", allow_bucket_creation=True)

    def names(self) -> list[str]:
        """Return the names of all objects."""
        found = self.files().get_file_info(fs.FileSelector(self.name, recursive=True))
        return [each.path.partition("/")[2] for each in found if each.type == fs.FileType.File]


@contextmanager
def served(directory: Path) -> Iterator[Served]:
    """Run the emulator and yield it; its output is written to `directory`."""
    told = directory / "told"
    command = [f"{sysconfig.get_path('scripts')}/moto_server", "-H", "127.0.0.1", "-p", "0"]
    with told.open("wb") as stderr, subprocess.Popen(command, stdout=stderr, stderr=stderr, stdin=subprocess.DEVNULL) as process:
        try:
            yield Served(_port(told))
        finally:
            process.terminate()


def _port(told: Path) -> int:
    deadline = time.monotonic() + _STARTS_S
    while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", told.read_text())):
        assert time.monotonic() < deadline, told.read_text()
        time.sleep(0.02)
    return int(found[1])


class Line:
    """A port that leads to the store.

    It can be cut, hold what is sent to the store, or let answers through a byte at a time.
    """

    def __init__(self, bucket: S3Bucket) -> None:
        self._to = "127.0.0.1", bucket.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._ends: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._passes: int | None = None  # how many more pieces go to the store, None for all
        self._cut = self._slow = False
        self.held = threading.Event()
        """Something waits to go to the store."""

    def __enter__(self) -> Self:
        self._go(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def cut(self) -> None:
        """Connections end, and new ones too; what is held is lost."""
        with self._changed:
            self._cut = True
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()

    def hold(self, after: int = 0) -> None:
        """Let no more than `after` pieces through to the store."""
        with self._changed:
            self.held.clear()
            self._passes = after

    def slow(self) -> None:
        """A byte of an answer every half second."""
        with self._changed:
            self._slow = True

    def mend(self) -> None:
        with self._changed:
            self._cut = self._slow = False
            self._passes = None
            self._changed.notify_all()

    def _go(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                if self._cut:
                    near.close()
                    continue
                far = socket.create_connection(self._to)
                self._ends |= {near, far}
                left = [near, far]  # whose thread has not ended
            self._go(self._carry, near, far, self._may_go, left)
            self._go(self._carry, far, near, self._may_come, left)

    def _carry(self, source: socket.socket, to: socket.socket, passes: Callable[[socket.socket, bytes], None], left: list[socket.socket]) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                passes(to, data)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._changed:
            left.remove(source)
            if not left:
                for end in (source, to):
                    end.close()
                    self._ends.discard(end)

    def _may_go(self, to: socket.socket, data: bytes) -> None:
        with self._changed:
            if self._passes == 0:
                self.held.set()
                self._changed.wait_for(lambda: self._cut or self._passes != 0)
            if self._passes:
                self._passes -= 1
        to.sendall(data)  # fails where the line was cut meanwhile

    def _may_come(self, to: socket.socket, data: bytes) -> None:
        while data and self._slowed():
            to.sendall(data[:1])
            data = data[1:]
        to.sendall(data)

    def _slowed(self) -> bool:
        with self._changed:
            if self._slow:
                self._changed.wait_for(lambda: self._cut or not self._slow, 0.5)
            return self._slow and not self._cut
