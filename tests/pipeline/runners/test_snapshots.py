"""Snapshots in files: large ones share their pieces, each is whole or ignored, and nothing that is of no use is left."""

from hashlib import blake2b
from pathlib import Path

import pytest

from engine.engine import Engine
from pipeline.runners.engine_report import Reporter, read_report
from pipeline.runners.snapshots import Snapshots
from pipeline.status_files import note_path, write_note
from tests.engine.runtime.test_engine import Log
from tests.engine.runtime.test_snapshot_format import PAIRS, many

LONG = PAIRS.replace("PT10S", "PT1000S")


@pytest.fixture
def log() -> Log:
    log = Log(Engine())
    log.register("pairs", LONG)
    many(log, 0, 40_000)
    return log


def pieces(directory: Path) -> set[str]:
    return {path.name for path in (directory / "0-pieces").iterdir()}


def test_pieces_are_shared_and_swept(tmp_path: Path, log: Log) -> None:
    snapshots = Snapshots(tmp_path, "0")
    snapshots.write(log.engine)
    first, before = log.engine.position, pieces(tmp_path)
    many(log, 40_000, 5_000)
    snapshots.write(log.engine)
    second, both = log.engine.position, pieces(tmp_path)
    assert before & both == before
    assert len(both - before) < len(before), "what stays is not written again"
    (tmp_path / "0-pieces" / "left.123.tmp").touch()
    snapshots.sweep(second)
    assert snapshots.positions() == [second] != [first]
    assert len(pieces(tmp_path)) < len(both)
    found = snapshots.newest(second)
    assert found is not None
    log.engine = found
    assert len(log.send("B(1)@46")) == 45_000


def test_pieces_with_the_names_of_earlier_versions_are_read_and_checked(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = Snapshots(tmp_path, "0")
    with monkeypatch.context() as earlier:
        earlier.setattr("engine.snapshot.format.digest_of", lambda piece: blake2b(piece, digest_size=16).hexdigest())
        snapshots.write(log.engine)
    assert {len(name) for name in pieces(tmp_path)} == {32}
    assert snapshots.newest(log.engine.position) is not None
    (tmp_path / "0-pieces" / pieces(tmp_path).pop()).write_bytes(b"something else")
    assert snapshots.newest(log.engine.position) is None


@pytest.mark.parametrize("spoiled", [b"", b"something else"], ids=["torn", "of another content"])
def test_a_spoiled_piece_spoils_its_snapshot_alone(tmp_path: Path, log: Log, spoiled: bytes) -> None:
    snapshots = Snapshots(tmp_path, "0")
    snapshots.write(log.engine)
    first, before = log.engine.position, pieces(tmp_path)
    many(log, 40_000, 5_000)
    snapshots.write(log.engine)
    new = next(iter(pieces(tmp_path) - before))
    (tmp_path / "0-pieces" / new).write_bytes(spoiled)
    found = snapshots.newest(log.engine.position)
    assert found is not None
    assert found.position == first
    assert new not in pieces(tmp_path), "so the next snapshot that needs it writes it"
    snapshots.write(log.engine)
    again = snapshots.newest(log.engine.position)
    assert again is not None
    assert again.position == log.engine.position


def test_reports_are_read_back(tmp_path: Path, log: Log) -> None:
    now = [0.0]
    reporter = Reporter(tmp_path, "0", lambda: now[0])
    assert read_report(tmp_path) is None
    reporter.tell(log.engine)
    told = read_report(tmp_path)
    assert told is not None
    assert told.position == log.engine.position
    assert [standing.usage.goals for standing in told.queries.values()] == [40_000]
    assert [(each.operator, each.sides[0].goals) for each in told.queries[0].operators if each.keeps] == [("SEQ", 40_000)]
    write_note(note_path(tmp_path, "0"), b'{"position": "none"}')
    assert read_report(tmp_path) is None
