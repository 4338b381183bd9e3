"""This module tells how the last batch on Spark went: a micro-batch, or the entries that a resident task took up at once.

It writes a small file beside the engines' reports, without their import.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipeline.status_files import note_path, read_note, write_note

BATCH = "batch"
PROGRESS_S = 1.0
"""The runner tells its last batch this often."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Describes the last batch on Spark.

    `number` counts batches from the runner's start; `entries` and `rows` are what it took of the log, in `seconds`. `lag` entries were left for the
    next batch.
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
