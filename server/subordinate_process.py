"""Starts the processes in which a server lets others' queries run, and bounds their memory."""

import asyncio
import os
import resource
import sys

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
        sys.executable, "-c", _MAIN, module, stdin=pipe, stdout=pipe, env=os.environ | _ALONE, start_new_session=True, limit=longest_line
    )


def bound_memory(most: int) -> None:
    """Let this process take this many more bytes of memory; allocations beyond fail. It leaves no core file."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + most,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
