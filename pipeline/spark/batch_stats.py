"""What the runner on Spark says of its last batch, a micro-batch or what a resident task took up at once: a small file beside the engines' reports, without their import."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipeline.status_files import note_path, read_note, write_note

BATCH = "batch"
PROGRESS_S = 1.0
"""How often it tells."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Of the last batch on Spark: its number since the runner's start, what it took of the log, how long it took, and what was left for the next."""

    number: int
    entries: int
    rows: int
    seconds: float
    lag: int


def tell_batch(data_dir: Path | str, batch: Batch) -> None:
    """A full disk is not its affair."""
    with suppress(OSError):
        write_note(note_path(data_dir, BATCH), msgspec.json.encode(batch))


def read_batch(data_dir: Path | str) -> Batch | None:
    """None where no runner on Spark has told, and after another version."""
    note = read_note(note_path(data_dir, BATCH))
    with suppress(msgspec.DecodeError):
        return None if note is None else msgspec.json.decode(note, type=Batch)
    return None
