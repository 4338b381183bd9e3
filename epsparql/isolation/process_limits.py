"""This module bounds the memory and the time of a child process."""

import sys


def limit_process(pid: int, memory: int, cpu_s: int | None = None) -> None:
    """Let a child take so many bytes of memory, and seconds of processor time from its start. It leaves no core file.

    Allocations beyond the memory fail, and a signal ends a child that takes longer. Only Linux can set limits of
    another process.
    """
    if sys.platform != "linux":
        return
    import resource

    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_CORE, 0)):
        if most is not None:
            inherited = resource.prlimit(pid, kind)[1]
            resource.prlimit(pid, kind, (most if inherited == resource.RLIM_INFINITY else min(most, inherited),) * 2)
