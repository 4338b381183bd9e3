"""These tests check what a store holds while two servers are at work, request by request, and which of them owns the
store.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.errors import NotOfThisStore, StoreFailed
from pipeline.log import LogWriter
from pipeline.log.segments import FrameReader, FrameWriter, oldest
from pipeline.object_store.backends import DirectoryStore
from pipeline.replication.replicator import Replicator
from tests.fault_tolerance.two_writers import SEGMENT_BYTES, Server, Stage, Turn, go, opened, small, solution, stream
from tests.soak import is_full

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]  # who is killed ends so


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with small():
        yield


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    for server in stage.servers:
        server.clear()


@pytest.mark.parametrize(
    ("what", "killed"), [("append", False), ("round", False), ("mend", False), ("merge", False), ("merge", True), ("remove", False), ("remove", True)]
)
def test_the_earlier_server_goes_on_at_any_moment_of_a_start(what: str, killed: bool, tmp_path: Path) -> None:
    """And what it puts in the place of many is read at any moment, too: `merge` is a round that is about to commit,
    `remove` one that has.

    `killed`: the later one, as soon as it has told that it writes. `make soak` tries each moment, other runs each
    third one.
    """
    turns, over = 0, False
    while not over:
        stage = Stage(tmp_path / f"{turns}")
        first = stage.begun("a")
        stage.append(first, 5)
        first.solve()
        if what in ("merge", "remove"):
            go_on_until_merged(stage, first, committed=what == "remove")
        second = stage.begun("b", turns)
        over = not second.keeping.busy
        if what == "append":
            stage.append(first)
        elif what in ("round", "mend"):
            {"round": first.round, "mend": first.mend}[what]()
        go(first.keeping)
        while second.keeping.busy and not (killed and told(stage, 2)):
            second.keeping.go(Turn.DONE)
        if killed:
            second.kill()
        else:
            stage.append(second, 2)
        stage.append(first)
        stage.check()
        for server in stage.servers:
            server.clear()
        turns += 1 if is_full() else 3
    assert turns > 20


def go_on_until_merged(stage: Stage, server: Server, *, committed: bool) -> None:
    """A round, up to the manifest that names one object in the place of many, or past it."""
    before = stage.manifest()
    server.round()
    like = Stage(stage.root / "like")
    other, turns = like.begun("a"), 0
    like.append(other, len(stage.acknowledged))
    other.solve()
    other.round()
    while len(like.manifest().logs["log"]) <= len(before.logs["log"]) and other.keeping.busy:
        other.keeping.go(Turn.DONE)
        turns += 1
    other.clear()
    go(server.keeping, turns - (not committed))


def test_two_of_a_copied_directory_never_both_begin(tmp_path: Path) -> None:
    """One is about to tell that it writes, the other anywhere."""
    like = with_copies(tmp_path / "like")
    server, turns_told = like.begun("b", 0), 0
    while not told(like, 2):
        server.keeping.go(Turn.DONE)
        turns_told += 1
    server.clear()
    for turns in range(turns_told + 1):
        stage = with_copies(tmp_path / f"{turns}")
        both = [stage.begun("b", turns), stage.begun("c", turns_told - 1)]
        for server in both:
            go(server.keeping)
        for server in both:
            if server.log is not None:
                stage.append(server)
        stage.check()
        for server in stage.servers:
            server.clear()


def told(stage: Stage, epoch: int) -> bool:
    """Return whether the server of an epoch has written what it goes on from."""
    return len(stage.manifest().fences) >= epoch


def with_copies(root: Path) -> Stage:
    stage = Stage(root)
    stage.append(stage.begun("a"))
    stage.servers[0].clear()
    stage.copy("a", "b")
    stage.copy("a", "c")
    return stage


def test_what_an_earlier_server_puts_beyond_a_segment_never_counts(stage: Stage) -> None:
    """However many have come since: its entry is longer than what is there instead, and the segment ends before."""
    first = stage.begun("a")
    stage.append(first, 2)
    stage.append(stage.begun("b"), 6)
    stage.begun("c")
    stage.append(first, letters=4000)
    assert len(stage.acknowledged) == 8
    stage.check()


def test_a_number_of_the_tail_is_never_free_again(stage: Stage) -> None:
    """The earlier server stands still while the later one merges and removes all that can be removed.

    Its next entry is refused all the same.
    """
    first = stage.begun("a")
    stage.append(first, 3)
    first.append("stands")
    second = stage.begun("b")
    stage.append(second, 8)
    for work in (second.solve, second.forget, second.round, second.mend):
        work()
        go(second.keeping)
    assert len(stage.names("tail")) < 8
    go(first.committing)
    stage.append(first)
    assert len(stage.acknowledged) == 11
    stage.check()


def test_a_store_that_lets_objects_be_written_twice_is_refused(tmp_path: Path) -> None:
    class Careless(DirectoryStore):
        def create(self, name: str, data: bytes) -> bool:
            self.put(name, data)
            return True

    with pytest.raises(StoreFailed, match="it lets an object be written twice"):
        Replicator(tmp_path / "data", Careless(tmp_path / "store", locked=False))


def test_half_a_frame_is_cut_off(stage: Stage) -> None:
    """The server is killed between the frame's two objects, so nobody was told of the frame.

    The entries that come instead are kept.
    """
    first = stage.begun("a")
    stage.append(first, 2)
    first.append("half")
    first.committing.go(Turn.KILLED_AFTER)
    second = stage.begun("b")
    assert second.refusal is None
    stage.append(second, 2)
    stage.check()


# ---------------------------------------------------------------- whose store it is
def test_a_start_that_is_refused_leaves_the_server_alone(stage: Stage) -> None:
    first = stage.begun("a")
    stage.append(first, 2)
    stage.copy("a", "old")
    stage.append(first)
    stage.begun("other")
    second = stage.servers[-1]
    stage.append(second)
    claims = stage.manifest().claims
    for data, reason in (("old", "is not what another server has kept since in"), ("a", "is not what another server has kept since in")):
        stage.copy(data, f"{data}-again")
        with pytest.raises(NotOfThisStore, match=f"{reason} .*; give an empty directory with --data"):
            opened(stage.root / f"{data}-again", stage.store)
    with LogWriter(stage.root / "foreign", lambda: 0) as log:
        log.append(stream("foreign"))
    with pytest.raises(NotOfThisStore, match=r"has a log of its own, and so has .*; give an empty directory with --data"):
        opened(stage.root / "foreign", stage.store)
    assert stage.manifest().claims == claims
    stage.append(second)
    assert len(stage.acknowledged) == 5
    stage.check()


def test_a_copy_that_lacks_events_leaves_the_server_alone(stage: Stage) -> None:
    first = stage.begun("a")
    stage.append(first, 2)
    stage.copy("a", "old")
    stage.append(first)
    with pytest.raises(NotOfThisStore, match=r"lacks events that are in .*; give an empty directory with --data"):
        opened(stage.root / "old", stage.store)
    stage.append(first)
    assert len(stage.acknowledged) == 4


def test_a_restore_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    """`make soak` tries each moment, other runs each third one."""
    turns, over = 0, False
    while not over:
        stage = Stage(tmp_path / f"{turns}")
        first = stage.begun("a")
        stage.append(first, 5)
        first.solve()
        first.round()
        go(first.keeping)
        first.kill()
        second = stage.begun("b", turns)
        over = not second.keeping.busy
        second.kill()
        stage.copy("b", "c")
        if (stage.root / "c" / "store.restoring").exists():
            with pytest.raises(NotOfThisStore, match="is an unfinished copy of another store than"):
                Replicator(stage.root / "c", DirectoryStore(stage.root / "empty", locked=False))
        third = stage.begun("c")
        assert third.refusal is None
        stage.append(third)
        stage.check()
        for server in stage.servers:
            server.clear()
        turns += 1 if is_full() else 3
    assert turns > 20


def test_what_retention_removed_before_a_kill_is_not_missed(stage: Stage) -> None:
    first = stage.begun("a")
    stage.append(first, 8)
    first.solve()
    first.round()
    go(first.keeping)
    first.forget()
    first.kill()
    assert oldest(stage.root / "a" / "log") > 0
    stage.copy("a", "b")
    second = stage.begun("b")
    assert second.refusal is None
    stage.append(second)
    for work in (second.round, second.mend):
        work()
        go(second.keeping)
    assert 0 not in stage.segments("log")
    stage.check()


@pytest.mark.parametrize("brought", [False, True])
@pytest.mark.parametrize("left", [0, 1, 4, 5, 9])
def test_solutions_may_be_other_bytes_after_a_machine_fell(left: int, brought: bool, stage: Stage) -> None:
    """Solutions that were not on disk yet are found again, in other frames."""
    first = stage.begun("a")
    stage.append(first, 10)
    first.solve()
    first.round()
    go(first.keeping)
    first.kill()
    stage.copy("a", "b")
    found = FrameWriter(stage.root / "again", durable=False, segment_bytes=SEGMENT_BYTES)
    for position in range(left):
        found.append([solution(position)], position, position + 1)
    found.append([b"of all others"], left, 10)
    found.publish()
    found.close()
    shutil.rmtree(stage.root / "b" / "solutions")
    (stage.root / "again").rename(stage.root / "b" / "solutions")
    second = stage.begun("b")
    assert second.refusal is None
    if brought:
        second.round()
        go(second.keeping)
    stage.begun("c")
    expected = frames(stage.root / "b")
    assert frames(stage.root / "c") == (expected if brought else expected[:left])


def frames(data: Path) -> list[bytes]:
    with closing(FrameReader(data / "solutions")) as reader:
        return [bytes(reader.payload(frame)) for frame in reader.frames(0)]


def test_what_is_removed_does_not_come_back_from_an_earlier_server(stage: Stage) -> None:
    first = stage.begun("a")
    hook = stage.root / "a" / "observers" / "hook.json"
    hook.parent.mkdir()
    hook.write_text("{}")
    first.round()
    go(first.keeping)
    second = stage.begun("b")
    assert (stage.root / "b" / "observers" / "hook.json").stat().st_mode & 0o777 == 0o600
    (stage.root / "b" / "observers" / "hook.json").unlink()
    second.round()
    go(second.keeping)
    stage.check()
    assert not (stage.root / "last" / "observers" / "hook.json").exists()


def test_a_damaged_object_is_named(stage: Stage) -> None:
    stage.append(stage.begun("a"), 2)
    path = stage.store / "tail" / stage.names("tail")[-1]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreFailed, match=f"is damaged: the checksum of the object tail/{path.name} does not hold"):
        opened(stage.root / "b", stage.store)
