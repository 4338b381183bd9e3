"""A TCP proxy whose connections can be cut, and a server behind it that can be killed."""

import queue
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from epsparql.client import Client
from server.child_server import Child
from tests.server.conftest import COMPILING_S

_PIECE = 64 << 10
_CUT_S = 0.3


class Proxy:
    """Leads connections from a port of its own to another one of this machine.

    `cut` resets all of them, and refuses new ones for a moment.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._guard, self._open = threading.Lock(), set[socket.socket]()
        self._refuses_until_s = 0.0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        self._refuses_until_s = time.monotonic() + _CUT_S
        with self._guard:
            found, self._open = self._open, set()
        for each in found:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if time.monotonic() < self._refuses_until_s:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            with self._guard:
                self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                sink.sendall(piece)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._guard:
            self._open -= {source, sink}
        source.close()


class Saboteur:
    """Runs a server behind a proxy.

    For each `strike`, it kills the server and starts it again, or cuts the network, by turns.
    """

    def __init__(self, directory: Path, port: int, *flags: str) -> None:
        self._directory, self._port, self._flags = directory, port, flags
        self._strikes = queue.SimpleQueue[int | None]()
        self.kills = self.cuts = 0
        self._proxy = Proxy(port)
        self.url = f"http://127.0.0.1:{self._proxy.port}"
        self._working = threading.Thread(target=self._work)
        self._started = threading.Event()

    def strike(self, count: int) -> None:
        self._strikes.put(count)

    def __enter__(self) -> Self:
        self._working.start()
        assert self._started.wait(COMPILING_S), (self._directory / "log").read_text()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._strikes.put(None)
        self._working.join()
        self._proxy.close()

    def _work(self) -> None:
        with ExitStack() as running:
            child = running.enter_context(self._start_child())
            Client(child.url).wait_ready(COMPILING_S)
            self._started.set()
            for number in iter(self._strikes.get, None):
                del number
                if self.kills <= self.cuts:
                    child.kill()
                    running.close()
                    child = running.enter_context(self._start_child())
                    self.kills += 1
                else:
                    self._proxy.cut()
                    self.cuts += 1

    def _start_child(self) -> Child:
        return Child(self._directory / "data", "inprocess", self._directory / "log", self._port, self._flags)
