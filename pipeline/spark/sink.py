"""This module puts the output of the server's micro-batches into the solution log."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from engine.messages import StateChange
from pipeline.runners.spill import Spill
from pipeline.solutions.solution_log import SolutionWriter


class SolutionSink:
    """Commits micro-batches to the solution log, by log position: one that is there already is dropped, a gap is refused."""

    def __init__(self, writer: SolutionWriter, spill: Spill, committed: Callable[[int], None]) -> None:
        self._writer, self.spill, self._committed = writer, spill, committed
        self._lock, self._closed = threading.Lock(), False

    @property
    def position(self) -> int:
        """Return the input-log position up to which solutions are committed."""
        return self._writer.position

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.toArrow().sort_by("lo").to_pylist()
        with self._lock:
            if self._closed:
                return
            for row in rows:
                self._commit(row)
            self._writer.sync()  # the next batch may sweep the snapshots that could bring them back
            position = self._writer.position
            if any(row["file"] is not None for row in rows):
                self.spill.sweep(position)
        self._committed(position)

    def _commit(self, row: dict[str, Any]) -> None:
        name = row["file"]
        solutions = pa.ipc.open_stream(row["solutions"]).read_next_batch() if name is None else self.spill.read(name)
        self._writer.commit(row["lo"], row["hi"], solutions, tuple(StateChange(**change) for change in json.loads(row["changes"])))

    def close(self) -> None:
        """Close the sink. After this nothing is written any more, whatever Spark still does."""
        with self._lock:
            self._closed = True
