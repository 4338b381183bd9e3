"""Stored data have a layout, and a layout has a number: a change of one without the other fails here
(pipeline/log/format_version.py).
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.messages import OCCURRENCES, SOLUTIONS, StateChange
from engine.snapshot import format as snapshot_format
from epsparql.solutions.once_per import OncePer, SentKeys
from pipeline.errors import NewerFormat
from pipeline.log import LogWriter, codec, format_version, segments, writer_state
from pipeline.log import idempotency_keys as keys
from pipeline.log.catalog import BackgroundGraph, Registration, Stream, Version
from pipeline.log.encoding import sliced_rows
from pipeline.log.format_version import FORMAT, FORMAT_FILE, FormatNote, read_format
from pipeline.object_store.backends import DirectoryStore
from pipeline.rejected_rows import Rejected
from pipeline.replication import manifest, replicator, restore
from pipeline.runners import snapshots
from pipeline.solutions import query_index
from pipeline.solutions.solution_ids import STORED, FrameSummary, SolutionRun
from pipeline.source_positions import SourceState
from server.webhook_delivery.registrations import GivenUp, Webhook
from tests.support.logs import Clock, occurrences

GOLDEN = Path(__file__).parents[1] / "golden" / "stored-formats.json"
"""The layouts of each format number.

`python -m tests.fault_tolerance.test_stored_formats` writes those of today's number.
"""
CLASSES = (
    segments.SegmentLink, codec.Record, Rejected, writer_state._State, keys.Ack, Stream, Version, Registration, BackgroundGraph, SourceState,
    FrameSummary, SolutionRun, StateChange, sliced_rows._Index, manifest.Extent, manifest.StoredFile, manifest.Manifest, replicator._Note, FormatNote,
    query_index.Base, Webhook, GivenUp, OncePer, SentKeys,
)  # fmt: skip


def layouts() -> dict[str, str]:
    """Return each layout in words that change when it does."""
    found = {f"{kind.__module__}.{kind.__qualname__}": _members(kind) for kind in CLASSES}
    found |= {f"entry {name}": ", ".join(codec._FIELDS[kind]) for name, kind in codec._KINDS.items()}
    structs = {
        "header of a frame": (segments.MAGIC, segments.HEADER.format, segments.LINK),
        "head of a log": (segments.HEAD_MAGIC, segments.HEAD.format),
        "flags of a frame": (codec.HAS_LATE, codec.HAS_REJECTED, codec.HAS_SLICES),
        "slices": (sliced_rows.MAGIC, sliced_rows._PREFIX.format),
        "keys": (keys._NAME.pattern, keys._STREAM, keys._DIGEST, keys._ROW, keys._COUNT_BITS),
        "snapshot": (snapshot_format.MAGIC, snapshot_format.FORMAT, snapshot_format.OLDEST, snapshot_format._LENGTH.format, snapshots._MARKED.format),
        "tail of a store": (manifest._PIECE.format, manifest.MANIFESTS, manifest.TAIL, manifest.OBJECTS),
        "files in a store": restore.STATES + restore.REGISTRATIONS,
    }
    schemas = {"occurrences": OCCURRENCES, "solutions": SOLUTIONS, "stored solutions": STORED}
    return found | {name: repr(parts) for name, parts in structs.items()} | {name: str(schema) for name, schema in schemas.items()}


def _members(kind: Any) -> str:
    if issubclass(kind, msgspec.Struct):
        return ", ".join(f"{each.name}: {each.type}" for each in msgspec.structs.fields(kind)) + f" as {kind.__struct_config__.array_like}"
    return ", ".join(f"{each.name}: {each.type}" for each in dataclasses.fields(kind))


def test_a_layout_changes_with_its_number() -> None:
    golden: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    now, known = layouts(), golden.get(str(FORMAT), {})
    changed = sorted(name for name in now.keys() | known.keys() if now.get(name) != known.get(name))
    assert not changed, (
        f"stored otherwise than format {FORMAT} says: {', '.join(changed)}. If that format was released, raise FORMAT in pipeline/log/format_version.py "
        "and write a fixture of it (test_stored_versions.py). Then run: python -m tests.fault_tolerance.test_stored_formats"
    )


def newer(readable_from: int) -> bytes:
    return msgspec.json.encode(FormatNote(FORMAT + 7, readable_from))


def test_a_directory_that_this_version_cannot_read_is_left_alone(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1, 2))
    assert read_format(tmp_path) == FormatNote(FORMAT, format_version.READABLE_FROM)
    (tmp_path / FORMAT_FILE).write_bytes(newer(FORMAT + 1))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(NewerFormat, match=rf"has format {FORMAT + 7}, which versions from format {FORMAT + 1} on can read, .* start the version"):
        LogWriter(tmp_path, Clock())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_newer_directory_that_this_version_can_read_goes_on(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1, 2))
    (tmp_path / FORMAT_FILE).write_bytes(newer(FORMAT))
    with LogWriter(tmp_path, Clock()) as log:
        assert log.append_events("s", occurrences(3)).accepted == 1
    assert read_format(tmp_path) == FormatNote(FORMAT, format_version.READABLE_FROM)


def test_a_store_that_this_version_cannot_read_is_taken_from_nobody(tmp_path: Path) -> None:
    place = tmp_path / "store"
    keeper = replicator.Replicator(tmp_path / "a", DirectoryStore(place, locked=False))
    with LogWriter(tmp_path / "a", Clock(), keep=keeper.write_log) as log:
        log.append_events("s", occurrences(1, 2))
        (tmp_path / "a" / FORMAT_FILE).write_bytes(newer(FORMAT + 1))
        keeper.round()
        with pytest.raises(NewerFormat, match=str(place)):
            replicator.Replicator(tmp_path / "b", DirectoryStore(place, locked=False))
        assert log.append_events("s", occurrences(3)).accepted == 1
    keeper.stop()


def write_layouts() -> None:
    golden: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    golden[str(FORMAT)] = layouts()
    GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_layouts()
