"""This module tells how the last batch on Spark went: the entries that a task took up at once.

It writes a small file beside the engines' reports, without their import.
"""

import time
from contextlib import suppress
from pathlib import Path

import msgspec

from epsparql.deferred_methods import dataclass
from pipeline.log import LogReader
from pipeline.status_files import note_path, read_note, write_note

BATCH = "batch"
PROGRESS_S = 1.0
"""The runner tells its last batch this often."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Describes the last batch on Spark.

    `number` counts batches from the runner's start; `entries` and `rows` are what it took of the log, in `seconds`.
    `lag` entries were left for the next batch.
    """

    number: int
    entries: int
    rows: int
    seconds: float
    lag: int


def tell_batch(data_dir: Path | str, batch: Batch) -> None:
    """Write the report of a batch. A full disk is ignored."""
    with suppress(OSError):
        write_note(note_path(data_dir, BATCH), msgspec.json.encode(batch))


def read_batch(data_dir: Path | str) -> Batch | None:
    """Read the report of the last batch; None where no runner on Spark has told, and after another version."""
    note = read_note(note_path(data_dir, BATCH))
    with suppress(msgspec.DecodeError):
        return None if note is None else msgspec.json.decode(note, type=Batch)
    return None


class BatchTeller:
    """Reports the last piece of the log that was taken up, once a second."""

    def __init__(self, data: Path, log: LogReader) -> None:
        self._data, self._log = data, log
        self._last: tuple[int, int, float] | None = None
        self._number, self._told_at = 0, float("-inf")

    def committed(self, lo: int, hi: int, seconds: float) -> None:
        self._last, self._number = (lo, hi, seconds), self._number + 1
        self.tell()

    def tell(self) -> None:
        now = time.monotonic()
        if self._last is None or now - self._told_at < PROGRESS_S:
            return
        (lo, hi, seconds), self._last, self._told_at = self._last, None, now
        tell_batch(self._data, Batch(self._number, hi - lo, self._log.rows(lo, hi), seconds, max(self._log.head() - hi, 0)))
