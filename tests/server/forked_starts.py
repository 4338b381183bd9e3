"""Starts the processes of servers, in tests, as forks of one process that has loaded all that they load, which is
nine tenths of a start.

    python -m tests.server.forked_starts

is that process, of which each process of pytest has one. It runs no thread, so a fork of it is what a new process
would be after its imports. A fork gets the arguments, environment, directory, session and standard files of the
command that is asked for, and runs its module as `-m` does. It is made a child of the process of pytest: kill, wait,
exit codes and stops are the system's own.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MODULES = {"server.cli": ["serve"], "server.trials.process": []}
"""What is started so, if its arguments begin with these."""
AT_ONCE = ("ARROW_DEFAULT", "AWS_", "COLUMNS", "OMP_", "OPENBLAS_NUM", "NUMBA_NUM", "PYDANTIC_DISABLE", "PYTEST_")
"""Variables that begin so may differ from those of the process that forks: they are read when they are needed, limit
threads, or are set by each command, which a test may have run within the process of pytest.
"""
_LONGEST, _SUBREAPER = 1 << 20, 36
_execute: Any = subprocess._fork_exec  # type: ignore[attr-defined]


class ForkedStarts:
    """Stands in for the function by which `subprocess` starts processes."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._environment: Mapping[str, str] = {}
        self._loaded = False
        self._lock = threading.Lock()

    def __call__(self, command: Sequence[str], *rest: Any) -> int:
        """Start a process and return its number. The arguments are those of `_posixsubprocess.fork_exec`."""
        kept, directory, given, session, prepare = rest[2], rest[3], rest[4], rest[14], rest[20]
        environment = dict(os.environ) if given is None else dict(os.fsdecode(each).split("=", 1) for each in given)
        module, *arguments = command[2:] if [*command[:2]] == [sys.executable, "-m"] else [""]
        ours = module in MODULES and arguments[:1] == MODULES[module] and len(kept) == 1 and prepare is None
        if not ours or not self.may_fork(environment):
            return int(_execute(command, *rest))
        files = [number if fd == -1 else fd for number, fd in enumerate((rest[5], rest[8], rest[10]))]
        wish = {
            "module": module,
            "arguments": arguments,
            "directory": os.fsdecode(directory or os.getcwd()),
            "environment": environment,
            "session": session,
        }
        with self._lock:
            return self._fork(json.dumps(wish).encode(), files)

    def may_fork(self, environment: Mapping[str, str]) -> bool:
        """Return whether a fork would be as a new process.

        The main thread waits until all is loaded; another one may have no time to.
        """
        with self._lock:
            if self._line is None:
                self._line = self._begin()
            if not self._loaded and (threading.current_thread() is threading.main_thread() or _has_word(self._line)):
                assert self._line.recv(1) == b"!", "the process that forks has ended"
                self._loaded = True
        return self._loaded and all(name.startswith(AT_ONCE) for name, _ in environment.items() ^ self._environment.items())

    def _begin(self) -> socket.socket:
        """Start the process that is forked, and return the line to it. It says when it has loaded all."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = dict(os.environ)
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], cwd=Path(__file__).parents[2])
        return ours

    def _fork(self, wish: bytes, files: Sequence[int]) -> int:
        assert self._line is not None
        libc = ctypes.CDLL(None)
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)  # the fork's parent ends at once, and this process is its parent then
        try:
            socket.send_fds(self._line, [wish], files)
            process = int(self._line.recv(20))
            assert self._line.recv(1) == b"!"
        finally:
            libc.prctl(_SUBREAPER, 0, 0, 0, 0)
        return process

    def close(self) -> None:
        """End the process that forks; its forks go on."""
        if self._line is not None:
            self._process.kill()
            self._process.wait()
            self._line.close()


def _has_word(line: socket.socket) -> bool:
    poll = select.poll()  # select knows no descriptors from 1,024 on
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))


def load_server() -> None:
    """Load what a server and its processes load. No thread may run when a process forks."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # read when pyarrow is imported
    from epsparql.deferred_methods import generate_all
    from server.process import GARBAGE_LOOK, defer_validators, keep_freed_memory, leave_out_unused, load_grammars, load_runner

    gc.set_threshold(*GARBAGE_LOOK)
    keep_freed_memory()
    leave_out_unused()
    defer_validators()
    for module in ("server.cli.serve", "pipeline.trials.execution"):
        importlib.import_module(module)
    load_runner("inprocess")
    load_grammars()
    generate_all()
    gc.collect()
    gc.freeze()


def wait_for_wish(line: socket.socket) -> Mapping[str, Any]:
    """Fork for each wish, and return it in the fork, which has become a process of pytest's and has the files that
    were wished for.
    """
    while True:
        text, files, *_ = socket.recv_fds(line, _LONGEST, 3)
        if not text:
            sys.exit()
        assert len(os.listdir("/proc/self/task")) == 1
        between = os.fork()
        if between == 0:
            between, process = os.getpid(), os.fork()
            if process != 0:
                line.send(str(process).encode())
                os._exit(0)
            while os.getppid() == between:
                time.sleep(0.001)
            for number, fd in enumerate(files):
                os.dup2(fd, number)
                os.close(fd)
            wish: dict[str, Any] = json.loads(text)
            return wish
        os.waitpid(between, 0)
        for fd in files:
            os.close(fd)
        line.send(b"!")


if __name__ == "__main__":
    load_server()
    with socket.socket(fileno=int(sys.argv[1])) as line:
        line.send(b"!")
        wish = wait_for_wish(line)
    if wish["session"]:
        os.setsid()
    os.chdir(wish["directory"])
    os.environ.clear()
    os.environ.update(wish["environment"])
    sys.argv[1:] = wish["arguments"]
    sys.orig_argv = [sys.executable, "-m", wish["module"], *wish["arguments"]]
    runpy.run_module(wish["module"], run_name="__main__", alter_sys=True)
