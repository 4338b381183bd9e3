"""Starts the processes in which a server lets others' queries and shapes run, and bounds their time and memory."""

import asyncio
import os
import resource
import signal
import subprocess
import sys

STRETCH = 4
"""A process may take so many times longer than its processor time, because others have the cores too."""
_GRACE_S = 5.0
_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A library that makes threads would take more than one core, and a process that forks must have none."""

_MAIN = """
import runpy, sys
from pipeline.hidden_modules import hide_modules
hide_modules("pandas")
runpy.run_module(sys.argv[1], run_name="__main__")
"""
"""pyarrow would load pandas, for as long as everything else takes."""


async def start_process(module: str, longest_line: int = 1 << 16) -> asyncio.subprocess.Process:
    """Start a module with pipes to its stdin and stdout, whose lines have at most so many bytes, in a session of its
    own.
    """
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *_command(module), stdin=pipe, stdout=pipe, env=_environment(), start_new_session=True, limit=longest_line
    )


def run_process(module: str, body: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run a module in a session of its own to its end, with a body on stdin. The module bounds itself (`bound_process`)
    to this processor time.

    Raises: subprocess.TimeoutExpired if it does not end all the same.
    """
    longest_s = seconds * STRETCH + _GRACE_S
    return subprocess.run(
        _command(module), input=body, stdout=subprocess.PIPE, env=_environment(), start_new_session=True, timeout=longest_s, check=False
    )


def _command(module: str) -> list[str]:
    return [sys.executable, "-c", _MAIN, module]


def _environment() -> dict[str, str]:
    return os.environ | _ALONE


def bound_process(seconds: float, memory: int) -> None:
    """Limit this process: signals end it after this processor time, whatever it is doing, and allocations beyond the
    bytes of `memory` fail.
    """
    for number, timer, limit_s in ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, seconds * STRETCH)):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, limit_s)
    bound_memory(memory)


def bound_memory(most: int) -> None:
    """Let this process take this many more bytes of memory; allocations beyond fail. It leaves no core file."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + most,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
