"""These tests check which bytes of the log count, in what servers have written one after the other."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.messages import SetStream
from pipeline.errors import StoreDamaged, StoreTaken
from pipeline.log import LogWriter
from pipeline.log.segments import segment_path
from pipeline.object_store.backends import DirectoryStore
from pipeline.replication.manifest import Extent, LogTail, Manifest, ManifestChain, read_tail, replay
from pipeline.replication.replicator import Replicator

WRITES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 12)), max_size=8)


@given(WRITES)
def test_a_later_extent_replaces_what_is_there_from_its_first_byte_on(writes: list[tuple[int, int, int]]) -> None:
    extents = [Extent(segment, begin, begin + length, f"{number}", 0) for number, (segment, begin, length) in enumerate(writes)]
    log: dict[tuple[int, int], str] = {}
    for extent in extents:
        log = {at: name for at, name in log.items() if at < (extent.segment, extent.begin)}
        log |= {(extent.segment, byte): extent.name for byte in range(extent.begin, extent.end)}
    counting = replay(extents)
    assert {(each.segment, byte): each.name for each in counting for byte in range(each.begin, each.end)} == log
    assert all(each.begin < each.end for each in counting)


def test_a_piece_that_was_written_and_not_answered_is_there_once(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, locked=False)
    tail = LogTail(store, "aaaaaaaa")
    assert tail.fence(Manifest()) == []
    tail.append(0, 0, b"first")
    tail.append(0, 0, b"first")  # as after an answer that never came
    tail.append(0, 0, b"first and second")
    tail.advance()
    assert [(each.begin, each.end) for each in replay(read_tail(store, Manifest()))] == [(0, 16)]
    later = LogTail(store, "bbbbbbbb")
    assert [each.read(store) for each in replay(later.fence(Manifest()))] == [b"first and second"]
    with pytest.raises(StoreTaken):
        tail.append(0, 16, b"third")
    later.append(0, 16, b"other")


def test_manifests_of_two_servers_never_follow_each_other(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, locked=False)
    one, other = ManifestChain(store), ManifestChain(store)
    one.claim("one", Manifest(), 1)
    one.commit(Manifest("one", one.start, 1, tail=1, claims=[1]))
    before = other.look()
    assert before is not None
    other.claim("other", before, 3)
    other.commit(Manifest("other", other.start, 3, tail=2, claims=[1, 3]))
    other.commit(Manifest("other", other.start, 3, tail=3, claims=[1, 3]))
    with pytest.raises(StoreTaken):
        one.commit(Manifest("one", one.start, 1, tail=4, claims=[1]))
    with pytest.raises(StoreTaken):
        one.check_newest()
    other.sweep()
    assert store.names("manifests") == [f"{number:020d}" for number in (1, 3, 5)]
    assert other.look() == Manifest("other", other.start, 3, tail=3, claims=[1, 3])


def test_a_claim_does_not_count_that_follows_a_look_of_long_ago(tmp_path: Path) -> None:
    """A server was paused between its look and its claim.

    The number after what it saw was taken and is free again, for its manifest has gone.
    """
    store = DirectoryStore(tmp_path, locked=False)
    one, other = ManifestChain(store), ManifestChain(store)
    one.claim("one", Manifest(), 1)
    before = other.look()
    assert before is not None
    for tail in (1, 2, 3):
        one.commit(Manifest("one", one.start, 1, tail=tail, claims=[1]))
    with pytest.raises(StoreTaken):
        other.claim("other", before, 2)
    one.commit(Manifest("one", one.start, 1, tail=4, claims=[1]))
    assert other.look() == Manifest("one", one.start, 1, tail=4, claims=[1])
    assert store.names("manifests") == [f"{number:020d}" for number in (1, 5)]


def test_a_claim_that_another_has_followed_stays(tmp_path: Path) -> None:
    """A server was paused after its claim, and another one claimed the store after it.

    The earlier server must not find the first claim's number free.
    """
    store = DirectoryStore(tmp_path, locked=False)
    one, third = ManifestChain(store), ManifestChain(store)
    one.claim("one", Manifest(), 1)
    before = third.look()
    assert before is not None

    class Paused(DirectoryStore):
        """Lets the third server claim the store before the second one sees whether its claim is the newest manifest."""

        def names(self, folder: str) -> list[str]:
            if third.number != 3:
                seen = third.look()
                assert seen is not None
                third.claim("third", seen, 3)
            return super().names(folder)

    with pytest.raises(StoreTaken):
        ManifestChain(Paused(tmp_path, locked=False)).claim("second", before, 2)
    with pytest.raises(StoreTaken):
        one.commit(Manifest("one", one.start, 1, tail=1, claims=[1]))
    third.commit(Manifest("one", third.start, 3, tail=1, claims=[1, 2, 3]))
    assert store.names("manifests") == [f"{number:020d}" for number in (1, 2, 3, 4)]


# ---------------------------------------------------------------- damage
def write_store(tmp_path: Path) -> DirectoryStore:
    """Let a server write three streams into a store: two before a manifest, and one that stands in the tail alone."""
    store, data = DirectoryStore(tmp_path / "store", locked=False), tmp_path / "data"
    data.mkdir()
    keeper = Replicator(data, store)
    with LogWriter(data, lambda: 0, keep=keeper.write_log) as log:
        for name in ("a", "b"):
            log.append(lambda offset, name=name: SetStream(offset, name))  # type: ignore[misc]  # mypy cannot infer it
        keeper.write_files([])
        for name in ("c", "d"):
            log.append(lambda offset, name=name: SetStream(offset, name))  # type: ignore[misc]  # mypy cannot infer it
    keeper.stop()
    return store


def newest(place: Path) -> Path:
    return max((place / "manifests").iterdir())


def replace(place: Path, data: bytes) -> None:
    newest(place).write_bytes(data)


def put_back(place: Path) -> None:
    """Put an earlier manifest into the place of the newest one."""
    replace(place, newest(place).read_bytes().replace(b'"number":%d' % int(newest(place).name), b'"number":1'))


def flip(place: Path) -> None:
    replace(place, newest(place).read_bytes().replace(b'"tail":', b'"tail":1'))


def lose_a_piece(place: Path) -> None:
    """Remove the third piece of the tail from the end: the last two entries stand in pieces after the manifest."""
    min(path for path in (place / "tail").iterdir() if int(path.name) >= sealed_tail(place)).unlink()


def sealed_tail(place: Path) -> int:
    found = ManifestChain(DirectoryStore(place, locked=False)).look()
    assert found is not None
    return found.tail


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        pytest.param(lambda place: replace(place, b"{}"), r"the object manifests/\d+ is no manifest", id="empty object"),
        pytest.param(lambda place: replace(place, b'{"tail":7}'), r"the object manifests/\d+ is no manifest", id="other object"),
        pytest.param(lambda place: replace(place, b""), r"a manifest that follows manifests/\d+ is missing", id="no bytes"),
        pytest.param(lambda place: replace(place, newest(place).read_bytes()[:-30]), r"the object manifests/\d+ cannot be read", id="cut"),
        pytest.param(flip, r"the digest of the object manifests/\d+ does not hold", id="changed"),
        pytest.param(put_back, r"the digest of the object manifests/\d+ does not hold", id="earlier one"),
        pytest.param(lambda place: newest(place).unlink(), r"a manifest that follows manifests/0+1 is missing", id="newest"),
        pytest.param(lambda place: shutil.rmtree(place / "manifests"), r"it has objects in tail/, and all manifests are missing", id="all"),
        pytest.param(lose_a_piece, r"the object tail/\d+ is missing, and tail/\d+ is there", id="piece of the tail"),
    ],
)
def test_a_damaged_store_is_claimed_by_nobody(tmp_path: Path, damage: Callable[[Path], object], told: str) -> None:
    """A server with an empty directory would otherwise begin anew, and the next one would find nothing."""
    write_store(tmp_path)
    place = tmp_path / "store"
    damage(place)
    kept = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(StoreDamaged, match=f"{place} is damaged: {told}.*; restore it from a copy"):
        Replicator(tmp_path / "other", DirectoryStore(place, locked=False))
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == kept


def test_a_directory_writes_a_lost_store_again(tmp_path: Path) -> None:
    """This is what the message of a damaged store says."""
    write_store(tmp_path)
    shutil.rmtree(tmp_path / "store")
    keeper = Replicator(tmp_path / "data", DirectoryStore(tmp_path / "store", locked=False))
    with LogWriter(tmp_path / "data", lambda: 0, keep=keeper.write_log):
        pass
    keeper.stop()
    Replicator(tmp_path / "other", DirectoryStore(tmp_path / "store", locked=False)).stop()
    with LogWriter(tmp_path / "other", lambda: 0) as log:
        assert log.catalogue.streams.keys() >= {"a", "b", "c", "d"}


def test_a_manifest_without_a_seal_is_read(tmp_path: Path) -> None:
    """Versions before wrote manifests so. A manifest after it is sealed, and follows it."""
    store = write_store(tmp_path)
    path = newest(tmp_path / "store")
    path.write_bytes(path.read_bytes().partition(b',"number":')[0] + b"}")
    assert msgspec.json.decode(path.read_bytes()).keys() >= {"server", "start", "epoch"}
    Replicator(tmp_path / "other", store).stop()
    with LogWriter(tmp_path / "other", lambda: 0) as log:
        assert log.catalogue.streams.keys() >= {"a", "b", "c", "d"}
    assert b'"follows":"' in newest(tmp_path / "store").read_bytes()


def test_a_manifest_names_the_one_before_it(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path, locked=False)
    chain = ManifestChain(store)
    chain.claim("one", Manifest(), 1)
    chain.commit(Manifest("one", chain.start, 1, tail=1, claims=[1]))
    before = newest(tmp_path)
    kept = before.read_bytes()
    chain.commit(Manifest("one", chain.start, 1, tail=2, claims=[1]))
    before.write_bytes(kept)  # as if its removal had failed
    assert ManifestChain(store).look() == chain.newest
    other = ManifestChain(DirectoryStore(tmp_path / "other", locked=False))
    other.claim("two", Manifest(), 1)
    other.commit(Manifest("two", other.start, 1, tail=1, claims=[1]))
    before.write_bytes(newest(tmp_path / "other").read_bytes())
    with pytest.raises(StoreDamaged, match=r"manifests/0+3 does not follow manifests/0+2"):
        ManifestChain(store).look()


def test_a_manifest_of_any_moment_has_the_piece_that_was_just_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the copies writes one between the piece and the note of it.

    Who takes over then finds the piece, as an extent or in the tail.
    """
    store, data = DirectoryStore(tmp_path / "store", locked=False), tmp_path / "data"
    data.mkdir()
    keeper = Replicator(data, store)
    append = keeper._tail.append

    def append_and_commit(segment: int, begin: int, piece: bytes) -> Extent:
        extent = append(segment, begin, piece)
        keeper.write_files([])
        return extent

    with LogWriter(data, lambda: 0, keep=keeper.write_log) as log:
        log.append(lambda offset: SetStream(offset, "a"))
        monkeypatch.setattr(keeper._tail, "append", append_and_commit)
        for name in ("b", "c"):
            log.append(lambda offset, name=name: SetStream(offset, name))  # type: ignore[misc]  # mypy cannot infer it
            manifest = ManifestChain(store).look()
            assert manifest is not None
            found = replay(manifest.logs["log"] + read_tail(store, manifest))
            assert b"".join(each.read(store) for each in found) == segment_path(data / "log", 0).read_bytes()
    keeper.stop()
