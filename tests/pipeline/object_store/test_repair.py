"""A damaged segment of a directory is fetched from its store, checked, and said."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from pipeline.errors import Corrupt, NotOfThisStore, PipelineError
from pipeline.log import LogReader, LogWriter
from pipeline.log.segments import segment_path, segments
from pipeline.object_store.backends import DirectoryStore
from pipeline.replication.manifest import ManifestChain
from pipeline.replication.replicator import Replicator
from pipeline.scrub import Scrubber
from pipeline.solutions.solution_log import SolutionWriter, check_solutions
from tests.pipeline.log.test_retention import SEGMENT, follow
from tests.support import spark_cases as cases

Damage = Callable[[Path, str], Path]
"""Damages a log of a directory, and returns the file."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's directory `data` with several segments of both logs, and its `store`."""
    root = tmp_path_factory.mktemp("healthy")
    keeper = Replicator(root / "data", DirectoryStore(root / "store", locked=False))
    with LogWriter(root / "data", cases.frozen_clock, segment_bytes=SEGMENT, keep=keeper.write_log) as log:
        cases.register(log, "pairs", cases.PAIRS)
        cases.readings(log, range(60), Random(1))
        with closing(SolutionWriter(root / "data", segment_bytes=SEGMENT)) as writer, closing(LogReader(root / "data")) as reader:
            follow(root / "data", writer, reader)
    keeper.round()
    keeper.stop()
    assert min(len(segments(root / "data" / kind)) for kind in ("log", "solutions")) > 2
    return root


@pytest.fixture
def place(healthy: Path, tmp_path: Path) -> Path:
    shutil.copytree(healthy, tmp_path / "place")
    return tmp_path / "place"


def flip(path: Path, byte: int) -> Path:
    data = bytearray(path.read_bytes())
    data[byte] ^= 4
    path.write_bytes(data)
    return path


def segment(data: Path, kind: str, number: int) -> Path:
    return segment_path(data / kind, segments(data / kind)[number])


def delete(data: Path, kind: str, number: int) -> Path:
    path = segment(data, kind, number)
    path.unlink()
    return path


def cut(data: Path, kind: str, number: int, size: int | None = None) -> Path:
    path = segment(data, kind, number)
    os.truncate(path, path.stat().st_size // 2 if size is None else size)
    return path


def swap(data: Path, kind: str) -> Path:
    path = segment(data, kind, 1)
    path.write_bytes(segment(data, kind, 0).read_bytes())
    return path


FULL: list[tuple[str, Damage]] = [
    ("first byte", lambda data, kind: flip(segment(data, kind, 1), 0)),
    ("a payload", lambda data, kind: flip(segment(data, kind, 1), 2000)),
    ("missing", lambda data, kind: delete(data, kind, 1)),
    ("first missing", lambda data, kind: delete(data, kind, 0)),
    ("cut", lambda data, kind: cut(data, kind, 1)),
    ("empty", lambda data, kind: cut(data, kind, 1, 0)),
    ("another", swap),
]
LAST: list[tuple[str, Damage]] = [
    ("last: missing", lambda data, kind: delete(data, kind, -1)),
    ("last: cut", lambda data, kind: cut(data, kind, -1)),
    ("last: a payload", lambda data, kind: flip(segment(data, kind, -1), 600)),
]
CASES = [pytest.param(kind, damage, id=f"{kind}: {name}") for kind in ("log", "solutions") for name, damage in FULL] + [
    pytest.param("log", damage, id=name) for name, damage in LAST
]


def contents(data: Path) -> dict[Path, bytes]:
    return {path.relative_to(data): path.read_bytes() for kind in ("log", "solutions") for path in (data / kind).glob("*.frames")}


def start(place: Path) -> Iterator[tuple[Replicator, LogWriter]]:
    """Start on the directory and its store as `serve` does, and read all of it in the background."""
    keeper = Replicator(place / "data", DirectoryStore(place / "store", locked=False))
    try:
        with LogWriter(place / "data", cases.frozen_clock, segment_bytes=SEGMENT, keep=keeper.write_log, repair=keeper.repair) as log:
            check_solutions(place / "data")
            yield keeper, log
    finally:
        keeper.stop()


@pytest.mark.parametrize(("kind", "damage"), CASES)
def test_a_start_fetches_a_damaged_segment(place: Path, healthy: Path, kind: str, damage: Damage, caplog: pytest.LogCaptureFixture) -> None:
    path = damage(place / "data", kind)
    with caplog.at_level(logging.WARNING, "epsparql.store"):
        for keeper, log in start(place):
            Scrubber(place / "data", log.tell_damage, rests=0, repair=keeper.repair).scrub()
            assert not log.damage
            assert keeper.repairs == 1
    assert contents(place / "data") == contents(healthy / "data")
    assert f"{path} was damaged at byte" in caplog.text
    assert f"it was fetched from {place / 'store'} and checked" in caplog.text


def test_a_reader_goes_on_after_a_repair(place: Path, healthy: Path) -> None:
    """The damage comes while the server runs, and the runner reads the segment before the scrubber does."""
    for keeper, log in start(place):
        with closing(log.reader()) as reader:
            blocks = reader.blocks(0, 5)
            found = [next(blocks)]
            flip(segment(place / "data", "log", 2), 1500)
            found += blocks
        with closing(LogReader(healthy / "data")) as expected:
            assert [block.entries for block in found] == [block.entries for block in expected.blocks(0, 5)]
        assert keeper.repairs == 1
        cases.readings(log, range(60, 70), Random(2))


def test_what_the_store_does_not_have_is_refused_as_before(place: Path) -> None:
    manifest, damaged = ManifestChain(DirectoryStore(place / "store", locked=False)).look(), segments(place / "data" / "log")[1]
    assert manifest is not None
    for name in {extent.name for extent in manifest.logs["log"] if extent.segment == damaged}:
        flip(place / "store" / name, 100)
    flip(segment(place / "data", "log", 1), 2000)
    for keeper, log in start(place):
        with pytest.raises(Corrupt, match="a frame that was written whole does not hold"):
            Scrubber(place / "data", log.tell_damage, rests=0, repair=keeper.repair).scrub()
        with closing(log.reader()) as reader, pytest.raises(Corrupt):
            list(reader.blocks(0, 5))
        assert log.damage
        with pytest.raises(PipelineError):
            cases.readings(log, range(60, 61), Random(2))


def test_damage_does_not_replace_its_copy(place: Path, healthy: Path) -> None:
    """Small objects become large ones, which are made of the segments here."""
    keeper = Replicator(place / "data", DirectoryStore(place / "store", locked=False))
    before = [len(replica.extents) for replica in (keeper.log, keeper.solutions)]
    for kind in ("log", "solutions"):
        flip(segment(place / "data", kind, 1), 2000)
    keeper.log.merge()
    keeper.solutions.merge()
    assert [len(replica.extents) for replica in (keeper.log, keeper.solutions)] <= before
    for replica in (keeper.log, keeper.solutions):
        first = segments(place / "data" / replica.kind)[1]
        copy = b"".join(each.read(DirectoryStore(place / "store", locked=False)) for each in replica.extents if each.segment == first)
        assert copy == segment_path(healthy / "data" / replica.kind, first).read_bytes()
    keeper.stop()


def test_an_older_copy_of_a_directory_is_still_refused(healthy: Path, place: Path) -> None:
    """It is sound, and the store has more. Its webhooks and connectors would be those of then."""
    keeper = Replicator(place / "data", DirectoryStore(place / "store", locked=False))
    with LogWriter(place / "data", cases.frozen_clock, segment_bytes=SEGMENT, keep=keeper.write_log) as log:
        shutil.copytree(place / "data", place / "copy")
        cases.readings(log, range(60, 90), Random(2))
    keeper.stop()
    with pytest.raises(NotOfThisStore, match="lacks events that are in"):
        Replicator(place / "copy", DirectoryStore(place / "store", locked=False))
