"""This module keeps a data directory in a store that `pyarrow.fs` reaches. Nothing is acknowledged before it is in the store.

A server with an empty directory goes on from the store. The log of events goes there with each group commit. Solutions, snapshots and small files,
which follow from it or change seldom, go there a second later, or when somebody waits for it. What is removed here is removed there after that
(docs/decisions/0034).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from pipeline.errors import NotOfThisStore, PipelineError, StoreFailed, StoreTaken
from pipeline.log.idempotency_keys import KEYS_FOLDER
from pipeline.log.lock import DirectoryLock
from pipeline.log.segments import FrameReader, oldest, segments
from pipeline.object_store.backends import Place
from pipeline.object_store.deadlines import waiting
from pipeline.replication.fencing import Fence, new_server
from pipeline.replication.log_replica import KeptLog
from pipeline.replication.restore import LOGS, OBSERVERS, SNAPSHOTS, STATES, restore, snapshots, state_name, tree, wipe, write
from pipeline.retention import needed_by, secured
from pipeline.status_files import NOTES, note_path, write_note

ROUND_S, PAUSE_S, RETRY_S = 1.0, 5.0, 1.0
LOOK_S = 10.0
"""A server that has nothing to bring looks this often whether a later one has come."""
PATIENCE_S = 30.0
"""An entry waits for the store this long before its sender is told that it failed."""
MENDED_S = 60.0, 3600.0
"""The store is compared with what should be there after the first of these times, and again each time the second has passed."""
_NOTE, _UNFINISHED, _LOCK, _SNAPSHOT = "store.json", "store.restoring", "store.lock", ".snapshot"
_LACKS = "lacks events that are in"
_Signature = tuple[int, int, int]
_UNSURE = 0, 0, 0  # no file's: an object of which it is not known whether it is there, and as what
_log = logging.getLogger("epsparql.store")


class _Note(msgspec.Struct, frozen=True):
    """Names the server that a data directory is, and the latest epoch that it has claimed."""

    server: str
    epoch: int


class Keeper:
    """Keeps the store up to date for one server, from before its log is opened until after it is closed."""

    def __init__(self, data_dir: Path, place: Place, *, away: bool = False) -> None:
        """Copy the store into an empty directory.

        With `away` the engines are on machines that do not see the directory, and bring their snapshots themselves. Raises: Locked, NotOfThisStore,
        StoreTaken, StoreFailed, OSError.
        """
        self._data, self._place, self.away = data_dir, place, away
        self._fence = Fence(place)
        self.log, self.solutions = (KeptLog(place, self._fence, data_dir, kind) for kind in LOGS)
        self._head = FrameReader(data_dir / self.solutions.kind)
        self._snapshots: dict[str, _Signature | None] = {}  # those in the store; None: some server's
        self._states: dict[str, _Signature] = {}  # this server's, in the store
        self._stating = threading.Lock()  # one of them at a time is compared, put or removed
        self._notes = dict[str, bytes]()  # each as it was taken from the store
        self._stopping = threading.Event()
        self._thread = waiting(self._run)
        self._failure = self._taken_by = ""
        self._lock = DirectoryLock(data_dir / _LOCK)
        try:
            self._open()
        except BaseException:
            self._lock.close()
            raise

    @property
    def failure(self) -> str:
        """Return why the last round did not end; the next one tries again, unless another server has taken the store."""
        return self._taken_by or self._failure

    @property
    def taken(self) -> bool:
        return self._taken_by != ""

    @property
    def kept(self) -> int:
        """Return the position from which on solutions may not be in the store yet."""
        return self.solutions.bound[0]

    def secured(self) -> int:
        """Return the position from which on engines need the log, whatever falls. Raises: StoreFailed."""
        if not self.away:
            return secured(self._data)
        found = [name.removesuffix(".snapshot").partition("-") for name in self._place.names(SNAPSHOTS) if name.endswith(".snapshot")]
        return needed_by({bucket: int(position) for bucket, _, position in sorted(found, reverse=True) if position.isdecimal()}, self._data) or 0

    def start(self) -> None:
        self._thread.start()

    def keep(self, segment: int, size: int) -> None:
        """Bring the log to the store up to there, and see that no later server has come.

        A store that does not answer is waited for. Raises: StoreFailed, StoreTaken.
        """
        self._patiently(lambda: self.log.push(segment, size), "an entry of the log")

    def keep_states(self, paths: Sequence[Path]) -> None:
        """Bring small files to the store as they are here, or remove them there; otherwise as `keep`.

        Any thread may call this. Raises: StoreFailed, StoreTaken.
        """

        def bring() -> None:
            for path in paths:
                self._bring_state(str(path.relative_to(self._data)))
            self._fence.check()

        self._patiently(bring, "what was set up")

    def _patiently(self, work: Callable[[], None], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                work()
            except (StoreFailed, OSError) as fault:  # OSError: of a store that is a directory
                if time.monotonic() > deadline:
                    raise StoreFailed(str(fault)) from fault
                _log.warning("%s waits for %s: %s", what, self._place, fault)
                time.sleep(RETRY_S)
            except StoreTaken as fault:
                self._lost(fault)
                raise
            else:
                return

    def stop(self) -> None:
        """Bring what there is to the store, and end. If a store does not answer, the next start brings the rest."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(self._place.patience_s)
            if self._thread.is_alive():
                _log.warning("%s did not take the last solutions within %g s: the next start writes them", self._place, self._place.patience_s)
                return
        self._head.close()
        self._place.close()
        self._lock.close()

    def round(self) -> None:
        """Bring the store up to the state here. Raises: OSError, PipelineError."""
        self._fence.check()
        begins = {kind: max(oldest(self._data / kind), self._fence.begins.get(kind, 0)) for kind in LOGS}
        present = [] if self.away else snapshots(self._data)  # before the solutions, so that these reach as far as the oldest of them
        head = self._head.head()
        if head.position:
            self.solutions.push(head.segment, head.size)
        whole = all(self._bring(name) for name in present)
        self._bring_states()
        if self.away:
            self._take_notes()
        if whole:
            self._fence.cut(begins)
            gone = set[str]() if self.away else self._snapshots.keys() - {*present}
            if gone:
                self._fence.check()
            for name in gone:
                self._place.remove(f"{SNAPSHOTS}/{name}")
                del self._snapshots[name]
        for kept in (self.log, self.solutions):
            kept.drop()
            kept.tidy()

    def mend(self) -> None:
        """Restore in the store the objects that are taken to be there. Raises: OSError, PipelineError."""
        self._fence.check()
        for kept in (self.log, self.solutions):
            kept.mend()
        there = {*tree(self._place, SNAPSHOTS)}
        self._snapshots = {name: signature for name, signature in self._snapshots.items() if name in there}
        for folder in self._place.names("state"):
            mine = folder[:-1] == self._fence.claim.key
            if mine or folder < self._fence.claim.key:
                for name in tree(self._place, f"state/{folder[:-1]}"):
                    with self._stating:
                        if not (mine and name in self._states):
                            self._place.remove(f"state/{folder}{name}")

    # ------------------------------------------------------------ opening
    def _open(self) -> None:
        self._fence.look()
        before, note = self._fence.last, self._note()
        empty = unfinished(self._data) or not (self._data / "log").exists() or not segments(self._data / "log")
        restoring = before is not None and empty
        if before is None and unfinished(self._data):
            raise self._refusal("is an unfinished copy of another store than")
        if before is not None and not empty:
            if note is None:
                raise self._refusal("has a log of its own, and so has")
            if note.server != before.server or note.epoch < before.epoch:
                raise self._refusal("is not what another server has kept since in")
            if not self.log.adopt():  # a server that is refused takes the store from nobody
                raise self._refusal(_LACKS)
        server = note.server if note is not None and before is not None and not restoring else new_server()
        self._fence.take(server)
        try:
            if self._fence.last != before:
                raise StoreTaken(str(self._place), "another server has begun to write to")
            if restoring:
                self._restore()
            self._adopt(restoring)
        except BaseException:
            self._fence.withdraw()
            raise
        self._begin(server, restoring)

    def _begin(self, server: str, restoring: bool) -> None:
        if not restoring:
            self._tell(server)
        self._snapshots = dict.fromkeys(tree(self._place, SNAPSHOTS))
        self._bring_states()
        self._fence.begin({kept.kind: kept.bound for kept in (self.log, self.solutions)})
        if restoring:
            self._tell(server)
            (self._data / _UNFINISHED).unlink()

    def _restore(self) -> None:
        _log.info("%s is copied into %s", self._place, self._data)
        write(self._data / _UNFINISHED, b"")
        wipe(self._data)
        restore(self._place, self._data, self._fence)

    def _adopt(self, restoring: bool) -> None:
        """Go on from the logs in the store.

        After a restore the store may have more: later objects, and half a frame, which nobody was told are kept.
        """
        if not self.log.adopt() and not restoring:
            raise self._refusal(_LACKS)
        self.solutions.adopt()

    def _refusal(self, reason: str) -> NotOfThisStore:
        return NotOfThisStore(self._data, str(self._place), reason)

    def _note(self) -> _Note | None:
        path = self._data / _NOTE
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Note) if path.exists() else None
        except msgspec.MsgspecError as fault:
            raise StoreFailed(f"{path} is damaged ({fault}); remove the data directory, and it is copied from the store") from None

    def _tell(self, server: str) -> None:
        write(self._data / _NOTE, msgspec.json.encode(_Note(server, self._fence.epoch)))

    # ------------------------------------------------------------ rounds
    def _run(self) -> None:
        waited, looked, due = 0.0, 0.0, MENDED_S[0]
        brought: object = None
        stopped = False
        while not stopped:
            pause = PAUSE_S if self.failure else ROUND_S
            stopped, waited = self._stopping.wait(pause), waited + pause
            try:
                here = self._here()
                if here is not None and here == brought and waited < looked + LOOK_S and not stopped:
                    continue
                self.round()
                brought, looked = here, waited
                if waited >= due:
                    self.mend()
                    waited, looked, due = 0.0, 0.0, MENDED_S[1]
                self._failure = ""
            except StoreTaken as fault:
                self._lost(fault)
                return
            except (OSError, PipelineError) as fault:
                brought = None
                self._failure = f"{type(fault).__name__}: {fault}"
                _log.warning("the copy in %s is behind, and is written again in %g s: %s", self._place, PAUSE_S, self._failure)

    def _lost(self, fault: StoreTaken) -> None:
        if not self.taken:
            self._taken_by = str(fault)
            _log.error("the store receives nothing more: %s", fault)

    def _here(self) -> object:
        """Return the state that a round would bring to the store; None where this machine does not know it."""
        if self.away:
            return None
        return self._head.head(), snapshots(self._data), [*self._signatures()], [oldest(self._data / kind) for kind in LOGS]

    def _signatures(self) -> Iterator[tuple[Path, _Signature]]:
        """Yield the small files that are here, with their signatures."""
        for path in self._states_here():
            with suppress(FileNotFoundError):
                yield path, _signature(path)

    def _states_here(self) -> list[Path]:
        keys = sorted((self._data / KEYS_FOLDER).glob("*.keys"))  # before the catalogue, which names them
        return keys + [self._data / name for name in STATES] + sorted((self._data / OBSERVERS).glob("*.json"))

    def _bring(self, name: str) -> bool:
        """Bring a snapshot, if the store does not have it. Return False where the snapshot has just been let go."""
        path = self._data / SNAPSHOTS / name
        try:
            signature = _signature(path)
            if name not in self._snapshots or (path.suffix == _SNAPSHOT and self._snapshots[name] != signature):  # a piece is named by what it holds
                self._place.put(f"{SNAPSHOTS}/{name}", path.read_bytes())
                self._snapshots[name] = signature
        except FileNotFoundError:
            return False
        return True

    def _take_notes(self) -> None:
        """Take the engines' notes from the store."""
        for name in self._place.names(NOTES):
            note = self._place.read(f"{NOTES}/{name}")
            if note is not None and note != self._notes.get(name):
                write_note(note_path(self._data, name), note)
                self._notes[name] = note

    def _bring_states(self) -> None:
        """Bring the small files that have changed, and remove those that are gone."""
        for name in dict.fromkeys([*(str(path.relative_to(self._data)) for path in self._states_here()), *list(self._states)]):
            self._bring_state(name)

    def _bring_state(self, name: str) -> None:
        path, kept = self._data / name, state_name(self._fence.claim, name)
        with self._stating:
            try:
                signature = _signature(path)
                data = path.read_bytes() if self._states.get(name) != signature else None
            except FileNotFoundError:
                if name in self._states:
                    self._place.remove(kept)
                    del self._states[name]
                return
            if data is not None:
                self._states[name] = _UNSURE  # a put that fails may have taken effect
                self._place.put(kept, data)
                self._states[name] = signature


def unfinished(data_dir: Path) -> bool:
    """Tell whether a directory is half a copy of a store."""
    return (data_dir / _UNFINISHED).exists()


def _signature(path: Path) -> _Signature:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
