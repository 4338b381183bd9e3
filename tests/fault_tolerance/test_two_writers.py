"""These tests check what a store holds while two servers are at work, request by request, and which of them owns the store."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.errors import NotOfThisStore, StoreFailed
from pipeline.log import LogWriter
from pipeline.log.segments import FrameReader, FrameWriter, oldest
from pipeline.object_store.backends import Directory
from pipeline.replication.replicator import Keeper
from tests.fault_tolerance.two_writers import SEGMENT_BYTES, Server, Stage, Turn, go, opened, small, solution, stream

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # who is killed ends so


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


@pytest.mark.parametrize(("what", "killed"), [("append", False), ("round", False), ("mend", False), ("tidy", False), ("tidy", True)])
def test_the_earlier_server_goes_on_at_any_moment_of_a_start(what: str, killed: bool, tmp_path: Path) -> None:
    """And what it puts in the place of many is listed and read at any moment, too: `tidy` is a round that has seen no other server.

    `killed`: the later one, as soon as it has told that it writes.
    """
    turns, over = 0, False
    while not over:
        stage = Stage(tmp_path / f"{turns}")
        first = stage.begun("a")
        stage.append(first, 5)
        first.solve()
        if what == "tidy":
            before_tidy(stage, first)
        second = stage.begun("b", turns)
        over = not second.keeping.busy
        if what == "append":
            stage.append(first)
        elif what != "tidy":
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
        turns += 1 if what == "tidy" else 2
    assert turns > 20


def before_tidy(stage: Stage, server: Server) -> None:
    """A round, up to the request that puts one object in the place of many; how many come before is found out with another server."""
    like = Stage(stage.root / "like")
    other = like.begun("a")
    like.append(other, len(stage.acknowledged))
    other.solve()
    before, turns = like.names("log"), 0
    other.round()
    while like.names("log") == before:
        other.keeping.go(Turn.DONE)
        turns += 1
    other.clear()
    server.round()
    go(server.keeping, turns - 1)


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
    """Return whether the server of an epoch has said that it writes."""
    return any(name.startswith(f"{epoch:010d}-") and not name.endswith("-0000000000") for name in stage.names("claims"))


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
    stage.check()
    assert [end for name in stage.names("log/00000000000000000000") if (end := int(name.split("-")[1])) > SEGMENT_BYTES + 2000]


def test_what_comes_back_of_a_segment_that_went_is_not_looked_for(stage: Stage) -> None:
    """An earlier server may put it."""
    first = stage.begun("a")
    stage.append(first, 8)
    before = {path: path.read_bytes() for path in (stage.store / "log" / "00000000000000000000").iterdir()}
    assert len(before) > 1
    first.solve()
    first.forget()
    first.round()
    go(first.keeping)
    assert not stage.names("log/00000000000000000000")
    for path in list(before)[1:]:
        path.write_bytes(before[path])
    stage.check()
    second = stage.begun("b")
    second.mend()
    go(second.keeping)
    assert not stage.names("log/00000000000000000000")
    stage.check("then")


@pytest.mark.parametrize("again", [False, True])
def test_one_object_in_the_place_of_many_stays_until_there_is_another(again: bool, stage: Stage) -> None:
    """The earlier server puts it, and removes the many after the later one has compared what is there."""
    first = stage.begun("a")
    stage.append(first, 5)
    first.solve()
    before_tidy(stage, first)
    second = stage.begun("b")
    many = {*stage.names("log")}
    first.keeping.go(Turn.DONE)
    (one,) = {*stage.names("log")} - many
    second.mend()
    go(second.keeping)
    go(first.keeping)
    assert one in stage.names("log")
    if again:
        second.mend()
        go(second.keeping)
        assert one not in stage.names("log")
    stage.check()


def test_half_a_frame_is_cut_off(stage: Stage) -> None:
    """The server is killed between the frame's two objects, so nobody was told of the frame. The entries that come instead are kept."""
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
    claims = stage.names("claims")
    for data, reason in (("old", "is not what another server has kept since in"), ("a", "is not what another server has kept since in")):
        stage.copy(data, f"{data}-again")
        with pytest.raises(NotOfThisStore, match=f"{reason} .*; give an empty directory with --data"):
            opened(stage.root / f"{data}-again", stage.store)
    with LogWriter(stage.root / "foreign", lambda: 0) as log:
        log.append(stream("foreign"))
    with pytest.raises(NotOfThisStore, match=r"has a log of its own, and so has .*; give an empty directory with --data"):
        opened(stage.root / "foreign", stage.store)
    assert stage.names("claims") == claims
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
                Keeper(stage.root / "c", Directory(stage.root / "empty", locked=False))
        third = stage.begun("c")
        assert third.refusal is None
        stage.append(third)
        stage.check()
        for server in stage.servers:
            server.clear()
        turns += 1
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
    assert not stage.names("log/00000000000000000000")
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
    (path, *_) = sorted((stage.store / "log").rglob("*-*"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreFailed, match=f"the object log/{path.parent.name}/{path.name} is damaged: its checksum does not hold"):
        opened(stage.root / "b", stage.store)
