"""Snapshots: taken by this version and others that plan alike, refused otherwise; and large ones in pieces that stay
the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.engine import Engine
from engine.errors import SnapshotMismatch
from engine.messages import Drop, Facts
from engine.snapshot.format import FORMAT, LARGE, MAGIC, apart, digest_of, pack, pieces_of, unpack
from tests.engine.runtime.test_engine import Log, Row
from tests.support.feeds import SECOND

STORED = Path(__file__).parents[1] / "snapshots"
PAIRS = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} FILTER(getDURATION() <= 'PT10S'^^xsd:duration) }"
QUERIES = {
    "pairs": PAIRS,
    "optional": "SELECT * WHERE { {?s :A ?x} OPTIONAL {?s :C ?z} }",
    "missing": "SELECT * WHERE { {?s :A ?x} WITHOUT {?s :B ?y} FOR 'PT5S'^^xsd:duration }",
    "rule": "CONSTRUCT { ?s :D ?x } WHERE { ?s :C ?x . ?s :K ?k }",
    "chain": "SELECT * WHERE { {?s :A ?x} SEQ {?t :B ?y} SEQ {?u :D ?z} WITHOUT {?w :E ?v} }",
}


def begun() -> Log:
    """A log in the middle of an instant: something waits for its close, and it has met what will come again."""
    log = Log(Engine())
    gone = log.register("gone", "SELECT * WHERE { {?s :A ?a} SEQ {?s :B ?b} SEQ {?s :C ?c} SEQ {?s :D ?d} SEQ {?s :E ?e} }")
    for name, text in QUERIES.items():
        log.register(name, text)
    log.put(Facts(0, "", "<http://example.org/s> <http://example.org/K> <http://example.org/k> .\n"))
    log.send("A(1)@1 A(2)@2 B(2)@3 C(2)@4 E(2)@4 A(3)@5 D(4)@5")
    log.put(Drop(0, gone, "gone"))
    log.send("A(4)@6")
    log.send("A(5)@6")
    return log


def ended(log: Log) -> list[Row]:
    """Send the feeds that come after `begun`, end the log and return the solutions."""
    return [row for feed in ("A(5)@6 C(6)@6", "B(7)@9 D(1)@9", "A(8)@12 C(8)@12") for row in log.send(feed)] + log.finish()


def repacked(data: bytes, change: Callable[[Any, dict[str, Any]], None]) -> bytes:
    meta, arrays = unpack(data)
    change(meta, arrays)
    return pack(meta, arrays)


def test_it_goes_on_where_it_stood() -> None:
    log, other = begun(), begun()
    log.engine = Engine.restore(log.engine.snapshot())
    assert log.engine.snapshot() == other.engine.snapshot()
    found = ended(log)
    assert found == ended(other)
    assert {row[0] for row in found} == QUERIES.keys()


def permuted(meta: Any, arrays: dict[str, Any]) -> None:
    """Make the snapshot one of a version whose rows hold their end before their start."""
    for k, member in enumerate(meta["members"]):
        assert member["network"]["row"] == ["start", "end"]
        member["network"]["row"] = ["end", "start"]
        for name in (f"{k}.goals", f"{k}.waiting"):
            arrays[name] = arrays[name][:, [1, 0, *range(2, arrays[name].shape[1])]]


def without_late(meta: Any, _: dict[str, Any]) -> None:
    for member in meta["members"]:
        del member["network"]["at"]["late"]


def with_column(meta: Any, arrays: dict[str, Any]) -> None:
    for k, member in enumerate(meta["members"]):
        member["network"]["row"].insert(0, "weight")
        for name in (f"{k}.goals", f"{k}.waiting"):
            arrays[name] = np.insert(arrays[name], 0, 7, axis=1)


def planned_otherwise(meta: Any, _: dict[str, Any]) -> None:
    meta["members"][0]["network"]["queries"][0]["form"] = "another"


def unparsable(meta: Any, _: dict[str, Any]) -> None:
    meta["registered"][0]["text"] = "SELECT nonsense"


def test_another_order_of_columns_is_the_same_state() -> None:
    log, other = begun(), begun()
    log.engine = Engine.restore(repacked(log.engine.snapshot(), permuted))
    assert ended(log) == ended(other)


REFUSED = [
    pytest.param(with_column, "does not know: weight", id="a column that is not known"),
    pytest.param(without_late, "late", id="a cell that is missing"),
    pytest.param(planned_otherwise, "query pairs is planned otherwise", id="another plan"),
    pytest.param(unparsable, "refuses a query", id="a query that is refused"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_another_version_means_otherwise_is_refused(change: Callable[[Any, dict[str, Any]], None], message: str) -> None:
    with pytest.raises(SnapshotMismatch, match=message):
        Engine.restore(repacked(begun().engine.snapshot(), change))


@pytest.mark.parametrize("data", [b"", MAGIC, b"something else", MAGIC + bytes([FORMAT + 1, 0]) + bytes(8), Engine().snapshot()[:-1]])
def test_what_is_no_snapshot_of_this_format_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotMismatch):
        Engine.restore(data)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.snapshot")), ids=lambda path: path.stem)
def test_snapshots_of_older_versions_are_taken(path: Path) -> None:
    """Each file was written by the version that it is named after, at the place of `begun`."""
    log, other = begun(), begun()
    log.engine = Engine.restore(path.read_bytes())
    assert ended(log) == ended(other)


def test_there_is_a_stored_snapshot_of_this_format() -> None:
    assert (STORED / f"format-{FORMAT}.snapshot").exists()


# ---------------------------------------------------------------- pieces
def many(log: Log, first: int, n: int) -> None:
    log.send(" ".join(f"A({k % 10})@{k / 1000}" for k in range(first, first + n)))


def test_what_stays_is_not_written_again() -> None:
    log, store = Log(Engine()), dict[str, bytes]()
    log.register("pairs", PAIRS.replace("PT10S", "PT1000S"))
    many(log, 0, 40_000)
    first = log.engine.snapshot(lambda digest, piece: store.update({digest: bytes(piece)}))
    written = sum(map(len, store.values()))
    many(log, 40_000, 2_000)
    added = dict[str, bytes]()
    second = log.engine.snapshot(lambda digest, piece: added.update({digest: bytes(piece)}) if digest not in store else None)
    assert len(first) < LARGE < written
    assert sum(map(len, added.values())) < written // 2
    assert apart(second) <= store.keys() | added.keys()
    log.engine = Engine.restore(second, lambda digest: (store | added)[digest])
    assert len(log.send("B(1)@83")) == 42_000


def test_a_missing_piece_makes_it_no_snapshot() -> None:
    log = Log(Engine())
    log.register("pairs", PAIRS)
    many(log, 0, 9_000)
    data = log.engine.snapshot(lambda _digest, _piece: None)
    for fetch in (None, lambda _: b""):
        with pytest.raises(SnapshotMismatch, match="missing"):
            Engine.restore(data, fetch)


def test_pieces_hold_all_and_find_themselves_again() -> None:
    cells = np.arange(400_000, dtype=np.int64).reshape(-1, 4) * SECOND
    pieces = [bytes(piece) for piece in pieces_of(cells)]
    assert b"".join(pieces) == cells.tobytes()
    assert len(pieces) > 1
    later = {digest_of(piece) for piece in pieces_of(np.ascontiguousarray(cells[10:]))}
    assert {digest_of(piece) for piece in pieces[1:]} <= later
    equal = np.zeros((500_000, 2), np.int64)
    assert max(len(piece) for piece in pieces_of(equal)) < equal.nbytes // 10, "whatever the contents, no piece is the whole"


def test_arrays_inside_of_what_is_said() -> None:
    inside = {"counts": [np.arange(3), {"deep": np.zeros((2, 2))}], "plain": [1, "a", None]}
    meta, _ = unpack(pack(inside, {}))
    assert meta["counts"][0].tolist() == [0, 1, 2]
    assert meta["counts"][1]["deep"].shape == (2, 2)
    assert meta["plain"] == inside["plain"]


def test_a_background_is_written_once() -> None:
    log, store = Log(Engine()), dict[str, bytes]()
    facts = "".join(f"<http://example.org/s{k}> <http://example.org/K> <http://example.org/k{k % 7}> .\n" for k in range(50_000))
    log.put(Facts(0, "", facts))
    log.register("known", "SELECT * WHERE { ?s :A ?x . ?s :K ?k }")
    log.engine.snapshot(lambda digest, piece: store.update({digest: bytes(piece)}))
    log.put(Facts(0, "", "<http://example.org/s> <http://example.org/K> <http://example.org/k> .\n"))
    added = dict[str, bytes]()
    snapshot = log.engine.snapshot(lambda digest, piece: added.update({digest: bytes(piece)}) if digest not in store else None)
    assert sum(map(len, added.values())) < sum(map(len, store.values())) / 2
    log.engine = Engine.restore(snapshot, (store | added).__getitem__)
    assert len(log.engine.registry.known) == 50_001
    assert log.send("A(1)@1") == [("known", 3, 1, 1)]


def test_what_each_query_rests_on_is_kept_while_changes_wait_for_the_next_instant() -> None:
    found = []
    for restored in (False, True):
        log = Log(Engine())
        log.register("q0", "SELECT * WHERE { ?s :K ?k }")
        log.send("A(1)@1")
        for k in (1, 2):
            log.put(Facts(0, "", f"<http://example.org/s{k}> <http://example.org/K> <http://example.org/k> .\n"))
            log.register(f"q{k}", "SELECT * WHERE { ?s :K ?k }")
        if restored:
            log.engine = Engine.restore(log.engine.snapshot())
        found.append(log.send("A(1)@1") + log.send("A(2)@2") + log.finish())
    assert found[0] == found[1]
    assert sorted(row[0] for row in found[0]) == ["q0", "q0", "q1", "q1", "q2", "q2"]
