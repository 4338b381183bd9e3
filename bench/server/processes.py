"""This module reads what the processes of a server take of the machine, from /proc.

Without /proc, and for a process that has ended, everything is 0.
"""

import os
from contextlib import suppress
from pathlib import Path
from resource import getpagesize

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _OWN_TIMES, _ALL_TIMES = 1, slice(11, 13), slice(11, 15)
"""The places of these fields of `stat` after the name; all times include those of children that have ended."""


def _read_stat(pid: int) -> list[str]:
    """Return the fields of a process's `stat` after the name; none where the process has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def read_cpu_s(pid: int, *, with_ended: bool = False) -> float:
    """Return a process's CPU seconds, on request with those of the processes that it has begun and that have ended."""
    return sum(map(int, _read_stat(pid)[_ALL_TIMES if with_ended else _OWN_TIMES])) / _TICKS


def list_family(pid: int) -> list[int]:
    """Return a process, those that it has begun, and those that they have begun."""
    fields = {int(each.name): _read_stat(int(each.name)) for each in Path("/proc").glob("[0-9]*")}
    family = [pid]
    for parent in family:  # the list grows meanwhile
        family += [child for child, each in fields.items() if each and int(each[_PARENT]) == parent]
    return family


def read_resident_mib(pid: int) -> float:
    """Return a process's resident memory."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * getpagesize() / 2**20
    return 0.0


def read_shared_out_kib(pid: int) -> int:
    """Return a process's resident memory, where pages that several share are divided among them."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(each.split()[1]) for each in lines if each.startswith("Pss:"))
    return 0
