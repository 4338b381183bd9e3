"""These tests check which bytes of the log count, in what servers have written one after the other."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.messages import SetStream
from pipeline.errors import StoreTaken
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
    """A server was paused between its look and its claim. The number after what it saw was taken and is free again, for its manifest has gone."""
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
    """A server was paused after its claim, and another one claimed the store after it. The earlier server must not find the first claim's number free."""
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


def test_a_manifest_of_any_moment_has_the_piece_that_was_just_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the copies writes one between the piece and the note of it. Who takes over then finds the piece, as an extent or in the tail."""
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
