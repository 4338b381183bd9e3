"""Where the server's job puts what micro-batches bring: the solution log."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from engine.entries import StateChange
from pipeline.errors import StoreFailed
from pipeline.places import Place
from pipeline.solutions import SolutionWriter
from pipeline.source import SPILL


class SolutionSink:
    """Commits micro-batches to the solution log, by log position: one that is there already is dropped, a gap is refused."""

    def __init__(self, writer: SolutionWriter, spill: Path, committed: Callable[[int], None], store: Place | None = None) -> None:
        """What is too long for a row lies in the directory `spill`, or in the store."""
        self._writer, self.spill, self._committed, self.store = writer, spill, committed, store
        self._lock, self._closed = threading.Lock(), False

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.toArrow().sort_by("lo").to_pylist()
        with self._lock:
            if self._closed:
                return
            for row in rows:
                self._commit(row)
            self._writer.sync()  # the next batch may sweep the snapshots that could bring them back
            position = self._writer.position
        self._committed(position)

    def _commit(self, row: dict[str, Any]) -> None:
        name = row["file"]
        solutions = pa.ipc.open_stream(row["solutions"] if name is None else self._spilled(name)).read_next_batch()
        self._writer.commit(row["lo"], row["hi"], solutions, tuple(StateChange(**change) for change in json.loads(row["changes"])))
        if name is not None and self.store is None:
            (self.spill / name).unlink()
        elif name is not None and self.store is not None:
            self.store.remove(f"{SPILL}/{name}")

    def _spilled(self, name: str) -> pa.NativeFile | bytes:
        if self.store is None:
            return pa.memory_map(str(self.spill / name))
        found = self.store.read(f"{SPILL}/{name}")
        if found is None:
            raise StoreFailed(f"the solutions {SPILL}/{name}, which a task has written, are not in {self.store}")
        return found

    def close(self) -> None:
        """After this nothing is written any more, whatever Spark still does."""
        with self._lock:
            self._closed = True
