"""Runs one trial in a process of its own, with less right to the cores than the server, and within its memory.

The process reads a `TrialPlan` from stdin, and writes a line of JSON to stdout now and then: what it has found so
far. It ends with stdin.
"""

import logging
import os
import sys
import threading
import time

import msgspec
import pyarrow as pa

from epsparql.deferred_methods import dataclass
from pipeline.errors import PipelineError
from pipeline.trials.execution import TrialStatus, run_trial
from pipeline.trials.plan import TrialPlan
from server.subordinate_process import bound_memory

_TELL_S = 0.25
_YIELDING = 10
"""The process is this much nicer than the server, so that live work goes first."""
_log = logging.getLogger("epsparql.trial")


@dataclass(frozen=True, slots=True)
class TrialReport:
    """Carries a status; `state` is running, completed or failed, with the reason."""

    state: str
    status: TrialStatus | None = None
    reason: str = ""


def serve_trial() -> None:
    line = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    os.nice(_YIELDING)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    plan = msgspec.json.decode(line, type=TrialPlan)
    bound_memory(plan.memory)
    _tell(_run(plan))


def _run(plan: TrialPlan) -> TrialReport:
    told_s = time.monotonic()

    def tell(status: TrialStatus) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= _TELL_S:
            _tell(TrialReport("running", status))
            told_s = time.monotonic()

    try:
        return TrialReport("completed", run_trial(plan, tell))
    except MemoryError:
        return TrialReport("failed", reason=f"it needed more than {plan.memory} bytes of memory; try a shorter time, or raise max_trial_memory")
    except PipelineError as fault:
        return TrialReport("failed", reason=str(fault))
    except Exception as fault:  # noqa: BLE001 - the server shows it
        _log.exception("the trial failed")
        return TrialReport("failed", reason=f"internal error: {type(fault).__name__}: {fault}")


def _tell(report: TrialReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_stdin() -> None:
    """End the process when the server is gone, however it ended."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    serve_trial()
