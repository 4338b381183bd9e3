"""Runs the command line of the server in this process, beside a thread that tells a test what the process holds.

    python -m tests.soak.observed_server SOCKET serve ...

Each connection to SOCKET gets a census as JSON. The server itself has no such door.
"""

import ctypes
import gc
import json
import runpy
import socket
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _HeapFigures(ctypes.Structure):
    """Mirrors glibc's struct mallinfo2, which counts the main heap."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]  # ctypes reads it


@dataclass(frozen=True, slots=True)
class Census:
    """Counts what a process holds: memory in MB, and blocks of Python's allocator. `kept_mb` is the resident memory
    once free pages are returned.

    Python's objects are not listed: another thread may be making one of them, and `tuple(...)` fails if its result is
    seen before it is whole.
    """

    rss_mb: float
    pss_mb: float
    kept_mb: float
    blocks: int
    heap_mb: float
    heap_used_mb: float
    arrow_mb: float


def take_census(*, trims: bool) -> Census:
    """Count what this process holds.

    With `trims`, garbage is collected and free memory returned first, as the server does itself each minute.
    """
    import pyarrow as pa  # not earlier: the command sets up memory before it

    libc, rss = ctypes.CDLL(None), _read_resident("Rss")
    if trims:
        gc.collect()
        libc.malloc_trim(0)
    libc.mallinfo2.restype = _HeapFigures
    heap = libc.mallinfo2()
    return Census(
        rss, _read_resident("Pss"), _read_resident("Rss"), sys.getallocatedblocks(), _megabytes(heap.arena + heap.hblkhd),
        _megabytes(heap.uordblks), _megabytes(pa.total_allocated_bytes()),
    )  # fmt: skip


def ask_census(path: Path, *, trims: bool = False) -> Census:
    """Return the census of the process that listens at a path."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        line.sendall(b"trim\n" if trims else b"look\n")
        return Census(**json.loads(line.makefile().readline()))


def _read_resident(name: str) -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def _megabytes(count: int) -> float:
    return round(count / (1 << 20), 2)


def _serve_censuses(listener: socket.socket) -> None:
    while True:
        line, _ = listener.accept()
        with line, line.makefile("rw") as file:
            census = take_census(trims=file.readline() == "trim\n")
            file.write(json.dumps(asdict(census)) + "\n")


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv.pop(1))
        listener.listen()
        threading.Thread(target=_serve_censuses, args=(listener,), daemon=True).start()
        runpy.run_module("server.cli", run_name="__main__", alter_sys=True)
