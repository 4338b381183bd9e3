"""This module restores a data directory from its copy in a store."""

import os
import shutil
from contextlib import closing
from pathlib import Path

from pipeline.errors import StoreFailed
from pipeline.log.idempotency_keys import KEYS_FOLDER
from pipeline.log.segments import FrameWriter, segment_path, sync_directory
from pipeline.object_store.backends import Place
from pipeline.replication.fencing import Claim, Fence
from pipeline.replication.log_replica import bytes_of, present
from pipeline.replication.object_names import Part

LOGS = "log", "solutions"
STATES = "catalogue.json", "buckets", "log/begin", "solutions/begin", "solutions/base"
OBSERVERS, SNAPSHOTS = "observers", "snapshots"
_TRIES = 5
"""A reading is tried this often: a server that has not noticed yet may put one object in the place of many before they are read."""


def restore(place: Place, data_dir: Path, fence: Fence) -> None:
    """Restore all of a data directory, as of the last server that has written. Raises: StoreFailed, OSError."""
    assert fence.last is not None
    for kind in LOGS:
        _restore_log(place, data_dir, kind, fence)
    for name in tree(place, SNAPSHOTS):
        data = place.read(f"{SNAPSHOTS}/{name}")
        if data is not None:  # else it was let go meanwhile
            write(data_dir / SNAPSHOTS / name, data)
    for name in tree(place, state_name(fence.last)):
        data = place.read(state_name(fence.last, name))
        if data is not None:
            write(data_dir / name, data, mode=0o600 if name.startswith(OBSERVERS) else 0o644)
    for kind in LOGS:
        with closing(FrameWriter(data_dir / kind, durable=kind == "log")):
            pass  # opening says how far readers may look, and cuts off a torn frame


def wipe(data_dir: Path) -> None:
    """Remove what `restore` brings."""
    for name in (*LOGS, KEYS_FOLDER, OBSERVERS, SNAPSHOTS):
        shutil.rmtree(data_dir / name, ignore_errors=True)
    for name in STATES:
        (data_dir / name).unlink(missing_ok=True)


def state_name(claim: Claim, name: str = "") -> str:
    """Return the folder of a server's small files, or the place of one of them: each server has a folder of its own."""
    return f"state/{claim.key}" + (f"/{name}" if name else "")


def snapshots(data_dir: Path) -> list[str]:
    """Return the names of snapshots in the order in which they have to be there: pieces first."""
    root = data_dir / SNAPSHOTS
    found = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".tmp"] if root.exists() else []
    return [str(path.relative_to(root)) for path in sorted(found, key=lambda path: (path.suffix == ".snapshot", path))]


def tree(place: Place, folder: str) -> list[str]:
    """Return the names in a folder and in the folders in it."""
    found = []
    for name in place.names(folder):
        found += [f"{name}{inner}" for inner in tree(place, f"{folder}/{name[:-1]}")] if name.endswith("/") else [name]
    return found


def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)


def _restore_log(place: Place, data_dir: Path, kind: str, fence: Fence) -> None:
    (data_dir / kind).mkdir(parents=True, exist_ok=True)
    for tries in reversed(range(_TRIES)):
        try:
            for segment, parts in present(place, fence, kind).items():
                path = segment_path(data_dir / kind, segment)
                if not path.exists() or path.stat().st_size != parts[-1].end:  # else it is there from the try before
                    write(path, _read(place, kind, parts))
        except StoreFailed:
            if not tries:
                raise
        else:
            return


def _read(place: Place, kind: str, parts: list[Part]) -> bytes:
    data = bytes_of(place, kind, parts)
    if data is None:
        raise StoreFailed(f"objects of {kind}/{parts[0].extent.segment:020d} go while they are read; is another server at work in the store?")
    return data
