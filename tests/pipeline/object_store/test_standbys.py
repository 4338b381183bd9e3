"""Notes of servers that stand by: they are counted while they are renewed, and removed when they are not."""

import time
from pathlib import Path

import pytest

from pipeline.object_store.backends import DirectoryStore
from pipeline.replication.standbys import LOADED, LOADING, MOST, STANDBYS, StandbyCounter, StandbyNote
from tests.support.logs import until


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path, locked=False)


def read_notes(store: DirectoryStore) -> list[bytes]:
    return [store.read(f"{STANDBYS}/{name}") or b"" for name in store.names(STANDBYS)]


def test_a_note_is_put_when_its_state_changes_or_it_is_time(store: DirectoryStore) -> None:
    counter, note = StandbyCounter(store), StandbyNote(store, 600.0)
    assert counter.count() == {LOADING: 0, LOADED: 0}
    note.renew(LOADING)
    assert counter.count() == {LOADING: 1, LOADED: 0}
    note.renew(LOADED)
    assert counter.count() == {LOADING: 0, LOADED: 1}
    before = read_notes(store)
    for _ in range(100):
        note.renew(LOADED)
    assert read_notes(store) == before, "the store is asked at the pace of the lease"
    quick = StandbyNote(store, 1e-3)
    quick.renew(LOADED)

    def has_renewed() -> bool:
        quick.renew(LOADED)
        return any(b'"renewals":3' in note for note in read_notes(store))

    until(has_renewed, "it is renewed when it is time")
    note.remove()
    quick.remove()
    assert counter.count() == {LOADING: 0, LOADED: 0}


def test_a_note_that_is_no_longer_renewed_is_removed(store: DirectoryStore) -> None:
    counter = StandbyCounter(store)
    dead, alive = StandbyNote(store, 0.2), StandbyNote(store, 600.0)
    dead.renew(LOADED)
    alive.renew(LOADING)
    began = time.monotonic()
    assert counter.count() == {LOADING: 1, LOADED: 1}
    until(lambda: counter.count() == {LOADING: 1, LOADED: 0}, "the dead server is forgotten")
    assert time.monotonic() - began >= 0.4, "twice its time has passed"
    assert len(store.names(STANDBYS)) == 1


def test_what_is_no_note_is_removed(store: DirectoryStore) -> None:
    for number, content in enumerate(
        [b"", b"{}", b'{"state": "leads", "renewals": 0, "term_s": 1}', b'{"state": "loaded", "renewals": 0, "term_s": -1}']
    ):
        store.put(f"{STANDBYS}/{number}", content)
    assert StandbyCounter(store).count() == {LOADING: 0, LOADED: 0}
    assert store.names(STANDBYS) == []


def test_a_count_reads_so_many_notes_at_most(store: DirectoryStore) -> None:
    for _ in range(MOST + 3):
        StandbyNote(store, 600.0).renew(LOADED)
    assert StandbyCounter(store).count() == {LOADING: 0, LOADED: MOST}
