"""This module restores a data directory from its copy in a store."""

import shutil
from contextlib import closing
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from epsparql.durable_files import replace_file
from pipeline.errors import StoreDamaged
from pipeline.log.format_version import FORMAT_FILE
from pipeline.log.idempotency_keys import KEYS_FOLDER
from pipeline.log.segments import FrameWriter, segment_path
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.manifest import LOG, LOGS, Extent, Manifest, read_object

STATES = FORMAT_FILE, "catalogue.json", "buckets", "log/begin", "solutions/begin", "solutions/base"
SNAPSHOTS = "snapshots"
SENT_KEYS = "sent-keys"
REGISTRATIONS = "observers", "connectors", SENT_KEYS
"""These folders hold small files of what clients set up, and of the alerts that were sent for them, for the owner
alone.
"""


def restore(store: ObjectStore, data_dir: Path, manifest: Manifest, logs: dict[str, list[Extent]]) -> None:
    """Restore all of a data directory. `logs` has the extents that count. Raises: StoreFailed, OSError."""
    for kind in LOGS:
        (data_dir / kind).mkdir(parents=True, exist_ok=True)
        for segment, extents in groupby(logs[kind], attrgetter("segment")):
            replace_file(segment_path(data_dir / kind, segment), b"".join(extent.read(store) for extent in extents))
    for name in list_tree(store, SNAPSHOTS):
        data = store.read(f"{SNAPSHOTS}/{name}")
        if data is not None:  # else it was let go meanwhile
            replace_file(data_dir / SNAPSHOTS / name, data)
    for name, stored in manifest.files.items():
        data = read_object(store, stored.name, stored.crc)
        if data is None:
            raise StoreDamaged(str(store), f"the object {stored.name} is missing")
        replace_file(data_dir / name, data, mode=0o600 if name.startswith(REGISTRATIONS) else 0o644)
    for kind in LOGS:
        with closing(FrameWriter(data_dir / kind, durable=kind == LOG)):
            pass  # opening says how far readers may look, and cuts off a torn frame


def wipe(data_dir: Path) -> None:
    """Remove what `restore` brings."""
    for name in (*LOGS, KEYS_FOLDER, *REGISTRATIONS, SNAPSHOTS):
        shutil.rmtree(data_dir / name, ignore_errors=True)
    for name in STATES:
        (data_dir / name).unlink(missing_ok=True)


def list_snapshots(data_dir: Path) -> list[str]:
    """Return the names of snapshots in the order in which they have to be there: pieces first."""
    root = data_dir / SNAPSHOTS
    found = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".tmp"] if root.exists() else []
    return [str(path.relative_to(root)) for path in sorted(found, key=lambda path: (path.suffix == ".snapshot", path))]


def list_tree(store: ObjectStore, folder: str) -> list[str]:
    """Return the names in a folder and in the folders in it."""
    found = []
    for name in store.names(folder):
        found += [f"{name}{inner}" for inner in list_tree(store, f"{folder}/{name[:-1]}")] if name.endswith("/") else [name]
    return found
