"""What the runner on Spark says of its last batch, a micro-batch or what a resident task took up at once: a small file beside the engines' reports, without their import."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

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
        replace(path_of(data_dir, BATCH), msgspec.json.encode(batch))


def read_batch(data_dir: Path | str) -> Batch | None:
    """None where no runner on Spark has told, and after another version."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(path_of(data_dir, BATCH).read_bytes(), type=Batch)
    return None


def path_of(data_dir: Path | str, name: str) -> Path:
    return Path(data_dir) / "reports" / f"{name}.json"


def replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
