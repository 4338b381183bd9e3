"""This module holds what every bench has in common: its line of JSON, memory, percentiles, one core to itself."""

import json
import os
import resource
from collections.abc import Sequence
from datetime import UTC, datetime


class WrongCount(Exception):
    """A bench found other matches than must come out, so what it measured means nothing."""

    def __init__(self, what: str, found: int, expected: int) -> None:
        super().__init__(what, found, expected)  # all three: it comes back from a process of its own
        self.what, self.found, self.expected = what, found, expected

    def __str__(self) -> str:
        return f"{self.what} gave {self.found} matches and must give {self.expected}: nothing is measured with wrong answers"


class TooFewEvents(Exception):
    """A bench had too few events to measure a rate, so it needs a larger --n."""


class UnusableInput(Exception):
    """Reports that what a bench was given, such as a file or a figure's name, cannot be used."""


def line(bench: str, **figures: object) -> str:
    return json.dumps({"bench": bench} | figures)


def machine() -> dict[str, object]:
    """Return what the figures were measured on, when, and how busy it was."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((found.partition(":")[2].strip() for found in file if found.startswith("model name")), "unknown")
    except FileNotFoundError:
        model = "unknown"
    return {
        "machine": f"{model}, {os.cpu_count()} cores",
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def one_core() -> None:
    """Keep this process on one core, where the system lets it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def peak_rss_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def rss_mb() -> int:
    """Return the memory that is resident now; on systems without /proc the peak."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return round(int(file.read().split()[1]) * resource.getpagesize() / 2**20)
    except FileNotFoundError:
        return peak_rss_mb()


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def median(values: Sequence[float]) -> float:
    return percentile(values, 50)


def format_figure(value: object, digits: int = 3) -> str:
    """Return a figure as pages show it: so many digits of a fraction, commas between thousands, a dash for none."""
    match value:
        case None:
            return "\u2013"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.{digits}g}" if abs(value) < 1_000 else f"{value:,.0f}"
    return str(value)
