"""Writes the audit: who changed what, when and from where.

It has one JSON object a line, in `audit.ndjson` of the data directory.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path

from engine.messages import Micros
from pipeline.formats.batches.timestamps import iso

_log = logging.getLogger("epsparql.audit")


class Audit:
    """Appends to the audit. A file of `limit` bytes or more becomes `audit.1.ndjson`, in place of an older one."""

    def __init__(self, data: Path, limit: int) -> None:
        self._path, self._older, self._limit = data / "audit.ndjson", data / "audit.1.ndjson", limit

    def record_change(self, at: Micros, about: Mapping[str, object]) -> None:
        """Append a line. A line that cannot be written goes to the server's log, since the change was made."""
        line = json.dumps({"time": iso(at)} | dict(about), ensure_ascii=False) + "\n"
        try:
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line)
                full = file.tell() >= self._limit
            if full:
                self._path.replace(self._older)
        except OSError:
            _log.exception("the audit cannot be written; it lacks %s", line)
