"""This module carries solutions that are too long for a row of Spark's from a task to the sink: in files of a directory, or objects in a store.

Each file has a name of its own, for two workers may lay the same piece: one that works ahead, and the one that Spark gives the range to.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from secrets import token_hex

import pyarrow as pa

from pipeline.errors import StoreFailed
from pipeline.log.arrow_ipc import stream_of, write_stream
from pipeline.object_store.backends import ObjectStore, connect_store
from pipeline.runners.host_messages import Advance

SPILL = "spill"
"""The files lie in this folder of a store."""
SPILL_BYTES = 1_000_000
"""A row may hold this many bytes of solutions. The queries decide how many solutions a range brings, so the JVM must not have to hold them."""
_NAME = re.compile(r"\d+-(\d+)-[0-9a-f]+\.arrow")


@dataclass(frozen=True, slots=True)
class Spill:
    """Lays solutions in `directory`, unless a `store` is named."""

    directory: Path
    store: str | None = None

    def spill_solutions(self, piece: Advance) -> Advance:
        """Return the piece, with its solutions in a file if they are long. Raises: OSError, StoreFailed."""
        solutions = piece.outcome.solutions
        if piece.file is not None or solutions.nbytes <= SPILL_BYTES:
            return piece
        name = f"{piece.lo}-{piece.hi}-{token_hex(8)}.arrow"
        if self.store is None:
            making = self.directory / f"{name}.tmp"
            with pa.OSFile(str(making), "wb") as file:
                write_stream(file, solutions)
            making.rename(self.directory / name)
        else:
            _store(self.store).put(f"{SPILL}/{name}", stream_of(solutions))
        none = pa.RecordBatch.from_pylist([], schema=solutions.schema)
        return replace(piece, outcome=replace(piece.outcome, solutions=none), file=name)

    def read(self, name: str) -> pa.RecordBatch:
        """Read the solutions of a file. Raises: OSError, StoreFailed."""
        if self.store is None:
            return pa.ipc.open_stream(pa.memory_map(str(self.directory / name))).read_next_batch()
        found = _store(self.store).read(f"{SPILL}/{name}")
        if found is None:
            raise StoreFailed(f"the solutions {SPILL}/{name}, which a task has written, are not in {_store(self.store)}")
        return pa.ipc.open_stream(found).read_next_batch()

    def sweep(self, position: int | None = None) -> None:
        """Drop the files, or those of entries before `position` if it is given: they were taken, or nobody will take them.

        Raises: OSError, StoreFailed.
        """
        names = [path.name for path in self.directory.iterdir()] if self.store is None else _store(self.store).names(SPILL)
        for name in names:
            found = _NAME.match(name)  # also of what is being written
            if found is not None and (position is None or int(found[1]) <= position):
                self._remove(name)

    def _remove(self, name: str) -> None:
        if self.store is None:
            (self.directory / name).unlink(missing_ok=True)
        else:
            _store(self.store).remove(f"{SPILL}/{name}")


@cache
def _store(store: str) -> ObjectStore:
    return connect_store(store)
