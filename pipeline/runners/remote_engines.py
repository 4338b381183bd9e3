"""This module hosts the engines of a data directory that is elsewhere and kept in a store.

It serves the tasks of a cluster whose machines share no file system.
"""

import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock

from pipeline.log.reader import Published
from pipeline.object_store.backends import connect_store
from pipeline.partition_count import SNAPSHOT_WEIGHT, name_of
from pipeline.replication.task_mirror import LogMirror
from pipeline.runners.engine_host import MAX_ROWS
from pipeline.runners.host_messages import Advance, Elsewhere
from pipeline.runners.partitions import host_for
from pipeline.status_files import NOTES, note_path, read_note

_TOLD_S = 2.0
"""The store is told this often what engines keep."""
_TURN_S = 0.0005
"""After this time a thread of Python gives way to another: an engine's thread to that of the task, which Spark waits
for.
"""


class Remote:
    """Hosts engines over a copy of the log, as a `Host`; the copy goes with the executor's directory."""

    def __init__(self, data: Elsewhere, partitions: int = 1, snapshot_weight: int = SNAPSHOT_WEIGHT) -> None:
        """Copy the log and open the engines. Raises: StoreFailed, OSError."""
        self._store = connect_store(data.store)
        self._names = [name_of(partition, partitions) for partition in range(partitions)]
        directory = Path(tempfile.mkdtemp(prefix="replica-", dir=data.near))
        self._mirror = LogMirror(self._store, directory)
        self._mirror.fetch_snapshots(partitions)
        self._host = host_for(directory, partitions, snapshot_weight=snapshot_weight, ended=data.ended)
        self._told_s, self._told = 0.0, dict[str, bytes]()

    def run(self, lo: int, hi: int, max_rows: int = MAX_ROWS) -> Generator[Advance, None, None]:
        self._mirror.follow(hi)
        with closing(self._host.run(lo, hi, max_rows)) as pieces:
            yield from pieces
        self._mirror.put_snapshots()
        self.tell()

    def tell(self) -> None:
        """Write the engines' reports to the store."""
        self._host.tell()
        if time.monotonic() - self._told_s >= _TOLD_S:
            for name in self._names:
                note = read_note(note_path(self._mirror.directory, name))
                if note is not None and note != self._told.get(name):
                    self._store.put(f"{NOTES}/{name}", note)
                    self._told[name] = note
            self._told_s = time.monotonic()

    def save(self) -> None:
        self._host.save()
        self._mirror.put_snapshots()

    def sweep(self, committed: int) -> None:
        self._host.sweep(committed)
        self._mirror.remove_snapshots()

    @property
    def published(self) -> Published | None:
        """Return None, since the copy of the log has what the store has."""
        return None

    @property
    def unswept(self) -> bool:
        return self._host.unswept

    def close(self) -> None:
        self._host.close()
        self._mirror.close()
        with suppress(OSError):
            self._store.close()


_hosts: dict[tuple[str, int, int], Remote] = {}  # the one mutable module state: Spark's tasks come and go, and their worker process stays
_hosts_lock = Lock()


def host_of(data: Elsewhere, partitions: int = 1, snapshot_weight: int = SNAPSHOT_WEIGHT) -> Remote:
    """Return the process's host of a data directory, for tasks that come and go."""
    if partitions > 1:
        sys.setswitchinterval(_TURN_S)
    key = (data.store, partitions, snapshot_weight)
    with _hosts_lock:
        if key not in _hosts:
            _hosts[key] = Remote(data, partitions, snapshot_weight)
        return _hosts[key]
