"""This module carries solutions that are too long for a task's result to the driver, as objects in a store.

Each object has a name of its own, for two workers may find the same solutions when Spark repeats a task.
"""

import re
from functools import cache
from secrets import token_hex

import pyarrow as pa

from epsparql.deferred_methods import dataclass
from pipeline.errors import StoreFailed
from pipeline.log.encoding.arrow_ipc import stream_of
from pipeline.object_store.backends import ObjectStore, connect_store

SPILL = "spill"
"""The objects lie in this folder of a store."""
SPILL_BYTES = 1_000_000
"""A result may hold this many bytes of a piece's solutions.

The queries decide how many there are, so the JVM must not have to hold them.
"""
_NAME = re.compile(r"\d+-(\d+)-[0-9a-f]+\.arrow")


@dataclass(frozen=True, slots=True)
class Spill:
    """Keeps solutions in a store until the driver has taken them."""

    store: str

    def send_solutions(self, lo: int, hi: int, solutions: pa.RecordBatch) -> bytes | str:
        """Return the solutions of the entries [lo, hi) as an Arrow stream, or if they are many, the name of the object
        that holds them. Raises: StoreFailed.
        """
        if solutions.nbytes <= SPILL_BYTES:
            return bytes(stream_of(solutions))
        name = f"{lo}-{hi}-{token_hex(8)}.arrow"
        _connected(self.store).put(f"{SPILL}/{name}", stream_of(solutions))
        return name

    def receive_solutions(self, sent: bytes | str) -> pa.RecordBatch:
        """Return what was sent. Raises: StoreFailed."""
        return pa.ipc.open_stream(sent if isinstance(sent, bytes) else self._fetch_solutions(sent)).read_next_batch()

    def _fetch_solutions(self, name: str) -> bytes:
        store = _connected(self.store)
        found = store.read(f"{SPILL}/{name}")
        if found is None:
            raise StoreFailed(f"the solutions {SPILL}/{name}, which a task has written, are not in {store}")
        return found

    def sweep(self, position: int | None = None) -> None:
        """Remove the objects, or those of entries before `position`: they were taken, or nobody will take them.

        Raises: StoreFailed.
        """
        store = _connected(self.store)
        for name in store.names(SPILL):
            found = _NAME.match(name)
            if found is not None and (position is None or int(found[1]) <= position):
                store.remove(f"{SPILL}/{name}")


@cache
def _connected(store: str) -> ObjectStore:
    return connect_store(store)
