"""This bench measures short commands, and the way from the command to a server that is ready. Then it measures what
the server takes of the machine while nothing comes.

All its processes count, the JVM and Spark's workers among them.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.measurement import line, median
from bench.server.processes import list_family, read_cpu_s, read_shared_out_kib
from epsparql.client import Client
from server.child_server import Child

RUNNERS = ["inprocess", "spark"]
_QUERY = "SELECT ?s ?v { { ?s <urn:value> ?v } SEQ { ?s <urn:value> ?w } WITHIN 10 FILTER (?w > ?v) }"
_EVENTS = """{"s": "<urn:a>", "p": "<urn:value>", "o": 1, "at": "2026-01-01T00:00:00Z"}
{"s": "<urn:a>", "p": "<urn:value>", "o": 2, "at": "2026-01-01T00:00:05Z"}
"""
_SETTLE_S = 10.0


def measure(n: int, idle_s: float = 60.0) -> Iterator[str]:
    """Yield a line for each command, and for each runner over `n` starts, each on an empty directory. Needs /proc.

    For the last start, the line has the memory 10 s later and after `idle_s` more without work, and the CPU in between.
    """
    yield from _measure_commands(2 * n)
    for runner in RUNNERS:
        ready_s, cpu_s = list[float](), list[float]()
        for number in range(n):
            with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
                began = time.perf_counter()
                with Child(Path(directory) / "data", runner, Path(directory) / "log") as child:
                    Client(child.url).wait_ready(300)
                    ready_s.append(round(time.perf_counter() - began, 2))
                    cpu_s.append(round(_read_cpu_s(list_family(child.pid)), 2))
                    if number == n - 1:
                        times = {"ready_s": median(ready_s), "slowest_s": max(ready_s), "least_cpu_s": min(cpu_s), "cpu_s": median(cpu_s)}
                        yield line("start", runner=runner, n=n, **times, **_idle(child.pid, idle_s))


def _measure_commands(n: int) -> Iterator[str]:
    """Yield a line for each short command: its CPU seconds in `n` runs, and its peak of memory."""
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
        query, events = Path(directory) / "query.rq", Path(directory) / "events.ndjson"
        query.write_text(_QUERY, encoding="utf-8")
        events.write_text(_EVENTS, encoding="utf-8")
        for arguments in (["--help"], ["check", str(query)], ["replay", "--query", str(query), "--stream", str(events)]):
            used = [_run_command(arguments) for _ in range(n)]
            cpu_s = [round(each.ru_utime + each.ru_stime, 3) for each in used]
            peak_mb = round(max(each.ru_maxrss for each in used) * 1024 / 1e6)
            yield line("start", command=arguments[0], n=n, least_cpu_s=min(cpu_s), cpu_s=median(cpu_s), peak_mb=peak_mb)


def _run_command(arguments: Sequence[str]) -> resource.struct_rusage:
    """Run a command to its end, and return what it used. Raises: CalledProcessError."""
    with subprocess.Popen([sys.executable, "-m", "server.cli", *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return used


def _idle(pid: int, idle_s: float) -> dict[str, float]:
    time.sleep(min(_SETTLE_S, idle_s))
    begun = list_family(pid)
    begun_mb, begun_s = _read_mb(begun), _read_cpu_s(begun)
    time.sleep(idle_s)
    idle = list_family(pid)
    cpu_s = _read_cpu_s(idle) - begun_s
    memory = {"begun_mb": round(begun_mb), "idle_mb": round(_read_mb(idle))}
    return {"begun_processes": len(begun), "processes": len(idle), **memory, "idle_cpu_s_a_minute": round(cpu_s * 60 / idle_s, 2)}


def _read_cpu_s(family: Sequence[int]) -> float:
    return sum(read_cpu_s(pid, with_ended=True) for pid in family)


def _read_mb(family: Sequence[int]) -> float:
    return sum(map(read_shared_out_kib, family)) * 1024 / 1e6
