"""Describes how a connector is doing.

The child process that runs a connector writes this as lines of JSON; whoever supervises it reads them.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

from epsparql.deferred_methods import dataclass

STATES = STARTING, RUNNING, WAITING, RETRYING, FAILED, COMPLETED, STOPPED = (
    "starting", "running", "waiting", "retrying", "failed", "completed", "stopped"
)  # fmt: skip
_LONGEST = 1_000  # characters of a fault


@dataclass(frozen=True, slots=True)
class Status:
    """Describes a connector since its process started. The HTTP interface has the same members and says what they
    mean (`ConnectorDocument` of server/routes/connectors.py); `fault` is the last one.
    """

    state: str = STARTING
    position: str | None = None
    lag: int | None = None
    messages: int = 0
    late: int = 0
    rejected: int = 0
    skipped: int = 0
    missed: int = 0
    suppressed: int = 0
    forgotten: int = 0
    faults: int = 0
    fault: str | None = None
    fault_at: str | None = None
    restarts: int = 0


class StatusBoard:
    """Holds the status of one connector, which one thread changes and others read."""

    def __init__(self) -> None:
        self._lock, self._status = threading.Lock(), Status()

    @property
    def present(self) -> Status:
        return self._status

    def update(self, **changed: Any) -> None:
        with self._lock:
            self._status = replace(self._status, **changed)

    def count(self, **more: int) -> None:
        """Add to counts."""
        with self._lock:
            self._status = replace(self._status, **{name: getattr(self._status, name) + number for name, number in more.items()})

    def record_fault(self, state: str, message: str) -> None:
        """Record a fault; the connector is then in `state`."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._lock:
            self._status = replace(self._status, state=state, faults=self._status.faults + 1, fault=message[:_LONGEST], fault_at=now)


def encode_status(status: Status) -> str:
    return json.dumps({"status": asdict(status)})


def decode_status(line: str) -> Status | None:
    """Return the status of a line; None for a line that is none, such as one of a traceback."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("status"), Mapping):
        return None
    known = {field.name for field in fields(Status)}
    return Status(**{name: value for name, value in found["status"].items() if name in known})
