"""Servers on one store, of which a test says at each of their requests who goes on, what fails, and who is killed
there.
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import Enum
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn, TypeVar

import pyarrow as pa
import pytest

from engine.messages import SetStream
from pipeline.errors import PipelineError, StoreFailed
from pipeline.log import LogReader, LogWriter
from pipeline.log.segments import FrameReader, FrameWriter, oldest, segment_path, segments, write_begin
from pipeline.object_store.backends import DirectoryStore, ObjectStore
from pipeline.replication import log_replica as kept
from pipeline.replication import replicator as keeper
from pipeline.replication.manifest import Manifest, ManifestChain
from pipeline.replication.replicator import Replicator

SEGMENT_BYTES = 5000
"""Three frames or so."""
PAGE = 4
_COMMITTER = "log-committer"
_HANGS_S = 60.0
_Given = TypeVar("_Given")


class Turn(Enum):
    """Names the ways in which a request may end."""

    DONE = "done"
    REFUSED = "refused"
    UNANSWERED = "it took effect, and failed"
    KILLED = "whoever made it is killed before"
    KILLED_AFTER = "and after"


class Lane:
    """Runs the work of one thread of a server. It stands still at each request until it is told how that request goes."""

    def __init__(self) -> None:
        self._stands = SimpleQueue[bool]()
        self._turns = SimpleQueue[Turn]()
        self.busy = False

    def begin(self, work: Callable[[], None]) -> None:
        """Start the work and run it up to its first request."""
        self.busy = True
        work()
        self._wait()

    def go(self, turn: Turn) -> None:
        """Let the request go as told, and the work run up to its next request or its end."""
        self._turns.put(turn)
        self._wait()

    def ask(self) -> Turn:
        self._stands.put(True)
        return self._turns.get()

    def ended(self, *_: object) -> None:
        self._stands.put(False)

    def _wait(self) -> None:
        self.busy = self._stands.get(timeout=_HANGS_S)


class Server:
    """A keeper and a log, of one process. `acknowledged` gets positions and names of what it answered."""

    def __init__(self, data: Path, store: Path, acknowledged: list[tuple[int, str]]) -> None:
        self.data, self._acknowledged = data, acknowledged
        self.place = Stepped(DirectoryStore(store, locked=False), self)
        self.keeping, self.committing = Lane(), Lane()
        self.dead = False
        self.keeper: Replicator | None = None
        self.log: LogWriter | None = None
        self.refusal: Exception | None = None

    # ------------------------------------------------------------ what it does
    def start(self) -> None:
        self.keeping.begin(lambda: self._run(self._start))

    def append(self, name: str) -> None:
        """A stream of that name."""
        log = self.log
        assert log is not None

        def submit() -> None:
            future = log.submit_entry(lambda offset: SetStream(offset, name))
            future.add_done_callback(lambda done: self._answered(None if done.exception() else done.result().offset - 1, name))

        self.committing.begin(submit)

    def round(self) -> None:
        keeper = self.keeper
        assert keeper is not None
        self.keeping.begin(lambda: self._run(keeper.round))

    def mend(self) -> None:
        keeper = self.keeper
        assert keeper is not None
        self.keeping.begin(lambda: self._run(keeper.mend))

    def hook(self, name: str, wanted: bool, kept: Callable[[], None]) -> None:
        """A webhook is put or deleted; `kept` is called once that is answered."""
        keeper, path = self.keeper, self.data / "observers" / f"{name}.json"
        assert keeper is not None

        def work() -> None:
            path.parent.mkdir(exist_ok=True)
            if wanted:
                path.write_text(name)
            else:
                path.unlink(missing_ok=True)
            keeper.write_files([path])
            kept()

        self.keeping.begin(lambda: self._run(work))

    def solve(self) -> None:
        """Write solutions up to the head of the log, as the runner does, and a snapshot, in whose place earlier ones
        go.
        """
        with closing(LogReader(self.data)) as reader:
            head = reader.head()
        solutions = FrameWriter(self.data / "solutions", durable=False, segment_bytes=SEGMENT_BYTES)
        try:
            for position in range(solutions.position, head):
                solutions.append([solution(position)], position, position + 1)
            solutions.publish()
            reached = solutions.position
        finally:
            solutions.close()
        path = self.data / "snapshots" / f"0-{reached:020d}.snapshot"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(snapshot(reached))
        for other in path.parent.iterdir():
            if other != path:
                other.unlink()

    def forget(self) -> None:
        """Remove the log that no snapshot needs and the solutions that are in the store, as retention does."""
        assert self.log is not None
        assert self.keeper is not None
        needed = {"log": min([self.log.saved, *(snapshots(self.data) or [0])]), "solutions": self.keeper.solutions_until}
        for kind, position in needed.items():
            known = segments(self.data / kind) if (self.data / kind).exists() else []
            for first, following in pairwise(known):
                if following <= position:
                    write_begin(self.data / kind, following)
                    segment_path(self.data / kind, first).unlink()

    def kill(self) -> None:
        self.dead = True
        for lane in (self.keeping, self.committing):
            while lane.busy:
                lane.go(Turn.KILLED)

    def clear(self) -> None:
        """Do what the system does when a process ends."""
        self.kill()
        if self.log is not None:
            self.log.close()
        if self.keeper is not None:
            self.keeper.stop()

    # ------------------------------------------------------------ threads
    def request(self) -> Turn:
        lane = self.committing if threading.current_thread().name == _COMMITTER else self.keeping
        turn = Turn.KILLED if self.dead else lane.ask()
        self.dead = self.dead or turn in (Turn.KILLED, Turn.KILLED_AFTER)
        return turn

    def killed(self) -> NoReturn:
        if threading.current_thread().name == _COMMITTER:
            self.committing.ended()
        raise SystemExit  # which ends a thread without a word

    def _start(self) -> None:
        self.keeper = Replicator(self.data, self.place)
        self.log = LogWriter(self.data, lambda: 0, segment_bytes=SEGMENT_BYTES, keep=self.keeper.write_log)

    def _run(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except (PipelineError, OSError) as fault:
                self.refusal = fault
            finally:
                self.keeping.ended()

        threading.Thread(target=run, daemon=True).start()

    def _answered(self, position: int | None, name: str) -> None:
        if position is not None:
            self._acknowledged.append((position, name))
        self.committing.ended()


class Stepped:
    """A place, at whose requests a server stands still.

    Of a folder it lists a page at a time, each as of another moment, as stores do.
    """

    patience_s: float | None = None

    def __init__(self, place: ObjectStore, server: Server) -> None:
        self._place, self._server = place, server

    def __str__(self) -> str:
        return str(self._place)

    def read(self, name: str) -> bytes | None:
        return self._do(lambda: self._place.read(name))

    def put(self, name: str, data: pa.Buffer | bytes) -> None:
        self._do(lambda: self._place.put(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return self._do(lambda: self._place.create(name, data))

    def names(self, folder: str) -> list[str]:
        found = page = self._do(lambda: self._place.names(folder)[:PAGE])
        while len(page) == PAGE:
            page = self._do(lambda: [name for name in self._place.names(folder) if name > found[-1]][:PAGE])  # noqa: B023 - it is done at once
            found = found + page
        return found

    def remove(self, name: str) -> None:
        self._do(lambda: self._place.remove(name))

    def close(self) -> None:
        self._place.close()

    def _do(self, effect: Callable[[], _Given]) -> _Given:
        turn = self._server.request()
        if turn is Turn.REFUSED:
            raise StoreFailed("the store refuses")
        if turn is Turn.KILLED:
            self._server.killed()
        given = effect()
        if turn is Turn.UNANSWERED:
            raise StoreFailed("the store has not answered")
        if turn is Turn.KILLED_AFTER:
            self._server.killed()
        return given


def copied(data: Path, to: Path) -> None:
    """A directory as it is: of a server that was killed, or one that goes on."""
    if data.exists():
        shutil.copytree(data, to)


def solution(position: int) -> bytes:
    return f"what entry {position} brings".encode() * 20


def snapshot(position: int) -> bytes:
    return f"the engine at {position}".encode()


def snapshots(data: Path) -> list[int]:
    found = (data / "snapshots").iterdir() if (data / "snapshots").exists() else ()
    return sorted(int(path.stem.partition("-")[2]) for path in found)


def entries(data: Path) -> dict[int, str]:
    """Return the stream's name of each entry that sets one, by position."""
    with closing(LogReader(data)) as reader:
        return {
            entry.offset: entry.stream
            for block in reader.blocks(oldest(data / "log"), 1 << 20)
            for entry in block.entries
            if isinstance(entry, SetStream)
        }


def solved(data: Path) -> tuple[int, int]:
    """Return the positions between which solutions are there: the first one, and the one after the last."""
    with closing(FrameReader(data / "solutions")) as reader:
        begin = position = oldest(data / "solutions")
        for frame in reader.frames(begin):
            assert (frame.first, bytes(reader.payload(frame))) == (position, solution(position))
            position = frame.after
        assert position == max(reader.head().position, begin)
    return begin, position


@contextmanager
def small() -> Iterator[None]:
    """Few objects are many, a frame is of several, and nobody waits for a store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "MANY", 3)
        patch.setattr(kept, "PIECE_BYTES", 1500)
        patch.setattr(keeper, "PATIENCE_S", -1.0)
        yield


def stream(name: str) -> Callable[[int], SetStream]:
    return lambda offset: SetStream(offset, name)


def opened(data: Path, store: Path) -> tuple[Replicator, LogWriter]:
    keeper = Replicator(data, DirectoryStore(store, locked=False))
    return keeper, LogWriter(data, lambda: 0, segment_bytes=SEGMENT_BYTES, keep=keeper.write_log)


class Stage:
    """A store in a directory of its own, and servers that go on when they are told."""

    def __init__(self, root: Path) -> None:
        self.root, self.store = root, root / "store"
        self.acknowledged: list[tuple[int, str]] = []
        self.servers: list[Server] = []

    def begun(self, data: str, turns: int | None = None) -> Server:
        """A server on a directory, after so many requests; None for all of its start."""
        server = Server(self.root / data, self.store, self.acknowledged)
        self.servers.append(server)
        server.start()
        go(server.keeping, turns)
        return server

    def append(self, server: Server, count: int = 1, letters: int = 1) -> None:
        for _ in range(count):
            server.append(f"{len(self.acknowledged):03d}".rjust(letters, "s"))
            go(server.committing)

    def copy(self, data: str, to: str) -> None:
        copied(self.root / data, self.root / to)

    def check(self, name: str = "last") -> None:
        """A server that begins now has all that was acknowledged, and nothing twice."""
        keeper, log = opened(self.root / name, self.store)
        found = entries(self.root / name)
        assert list(found) == list(range(oldest(self.root / name / "log"), log.head()))
        assert {each for each in self.acknowledged if each[0] in found} <= {*found.items()}
        assert len(dict(self.acknowledged)) == len(self.acknowledged)
        assert {stream for _, stream in self.acknowledged} <= log.catalogue.streams.keys()
        solved(self.root / name)
        log.close()
        keeper.stop()

    def manifest(self) -> Manifest:
        """Return the newest manifest."""
        found = ManifestChain(DirectoryStore(self.store, locked=False)).look()
        assert found is not None
        return found

    def segments(self, kind: str) -> set[int]:
        """Return the segments of a log that the store has."""
        return {extent.segment for extent in self.manifest().logs[kind]}

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.store / folder).rglob("*") if path.is_file())


def go(lane: Lane, turns: int | None = None) -> None:
    while lane.busy and turns != 0:
        lane.go(Turn.DONE)
        turns = None if turns is None else turns - 1
