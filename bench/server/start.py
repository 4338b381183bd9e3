"""This bench goes from the command to a server that is ready, and then measures what the server takes of the machine
while nothing comes.

All its processes count, the JVM and Spark's workers among them.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import line, median
from epsparql.client import Client
from server.child_server import Child

RUNNERS = ["inprocess", "spark"]
_SETTLE_S = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(n: int, idle_s: float = 60.0) -> Iterator[str]:
    """Yield a line for each runner: medians over `n` starts, each on an empty directory. Needs /proc.

    For the last start, the line has the memory 10 s later and after `idle_s` more without work, and the CPU in between.
    """
    for runner in RUNNERS:
        ready_s: list[float] = []
        for number in range(n):
            with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
                began = time.perf_counter()
                with Child(Path(directory) / "data", runner, Path(directory) / "log") as child:
                    Client(child.url).wait_ready(300)
                    ready_s.append(round(time.perf_counter() - began, 2))
                    if number == n - 1:
                        yield line("start", runner=runner, n=n, ready_s=median(ready_s), slowest_s=max(ready_s), **_idle(child.pid, idle_s))


def _idle(pid: int, idle_s: float) -> dict[str, float]:
    time.sleep(min(_SETTLE_S, idle_s))
    begun = _family(pid)
    begun_mb, begun_s = sum(map(_mb, begun)), sum(map(_cpu_s, begun))
    time.sleep(idle_s)
    idle = _family(pid)
    cpu_s = sum(map(_cpu_s, idle)) - begun_s
    memory = {"begun_mb": round(begun_mb), "idle_mb": round(sum(map(_mb, idle)))}
    return {"begun_processes": len(begun), "processes": len(idle), **memory, "idle_cpu_s_a_minute": round(cpu_s * 60 / idle_s, 2)}


def _family(pid: int) -> list[int]:
    """Return a process, those that it has begun, and those that they have begun."""
    parents = {int(each.name): _fields(int(each.name)) for each in Path("/proc").iterdir() if each.name.isdigit()}
    found = [pid]
    for parent in found:  # the list grows meanwhile
        found += [child for child, fields in parents.items() if fields and int(fields[1]) == parent]
    return found


def _cpu_s(pid: int) -> float:
    """Return a process's CPU seconds, with those of the processes that it has begun and that have ended."""
    return sum(map(int, _fields(pid)[11:15])) / _TICKS


def _fields(pid: int) -> list[str]:
    """Return the fields of a process's `stat` after the name; none where the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _mb(pid: int) -> float:
    """Return a process's resident memory, where pages that several share are divided among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next(int(each.split()[1]) for each in lines if each.startswith("Pss:")) * 1024 / 1e6
