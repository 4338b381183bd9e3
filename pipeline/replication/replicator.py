"""This module keeps a data directory in a store. Nothing is acknowledged before it is in the store.

A server with an empty directory goes on from the store. The log of events goes there with each group commit.
Solutions, snapshots and small files, which follow from it or change seldom, go there a second later, or when somebody
waits for it. What is removed here is removed there after that (docs/decisions/0042).
"""

import logging
import math
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec

from epsparql.durable_files import replace_file
from pipeline.errors import Corrupt, NotOfThisStore, PipelineError, StoreDamaged, StoreFailed, StoreTaken
from pipeline.log.format_version import FORMAT_FILE, check_format
from pipeline.log.idempotency_keys import KEYS_FOLDER
from pipeline.log.lock import DirectoryLock
from pipeline.log.segments import FrameReader, oldest, segment_path, segments
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.log_replica import LogReplica
from pipeline.replication.manifest import (
    LOG,
    LOGS,
    OBJECTS,
    SOLUTIONS,
    TAIL,
    Extent,
    LogTail,
    Manifest,
    ManifestChain,
    StoredFile,
    check_tail,
    new_name,
    read_object,
    read_tail,
    replay,
)
from pipeline.replication.repair import repair_log, repair_segment
from pipeline.replication.restore import REGISTRATIONS, SNAPSHOTS, STATES, list_snapshots, list_tree, restore, wipe
from pipeline.replication.store_0_1 import end_0_1, read_0_1
from pipeline.retention import find_needed_position, secured
from pipeline.status_files import NOTES, note_path, write_note

ROUND_S, PAUSE_S, RETRY_S = 1.0, 5.0, 1.0
LOOK_S = 10.0
"""A server that has nothing to bring looks this often whether a later one has come."""
PATIENCE_S = 30.0
"""An entry waits for the store this long before its sender is told that it failed."""
MENDED_S = 60.0, 3600.0
"""The store is compared with what should be there after the first of these times, and again each time the second has
passed.
"""
_NOTE, _UNFINISHED, _LOCK, _SNAPSHOT = "store.json", "store.restoring", "store.lock", ".snapshot"
_LACKS = "lacks events that are in"
SUPERSEDED = "superseded"
"""This folder of a data directory holds what another server has superseded."""
_TRIES = 5
"""What a running server has in the store is read this often: it may remove objects before they are read."""
_FOLDERS = OBJECTS, TAIL, LOG, SOLUTIONS, "state"
"""Objects that a manifest names lie in these folders; version 0.1.0 wrote to the last three."""
_Signature = tuple[int, int, int]
_log = logging.getLogger("epsparql.store")


class _Note(msgspec.Struct, frozen=True):
    """Names the server that a data directory is, and the latest epoch that it has claimed."""

    server: str
    epoch: int


class Replicator:
    """Keeps the store up to date for one server, from before its log is opened until after it is closed."""

    def __init__(self, data_dir: Path, store: ObjectStore, *, away: bool = False, stands_by: bool = False) -> None:
        """Copy the store into an empty directory. One that `stands_by` sets aside what it holds, if another server
        has gone on with the store since.

        With `away` the engines are on machines that do not see the directory, and bring their snapshots themselves.
        Raises: Locked, NotOfThisStore, StoreTaken, StoreFailed, OSError.
        """
        self._data, self._store, self.away, self._stands_by = data_dir, store, away, stands_by
        self._chain = ManifestChain(store)
        self._tail = LogTail(store, self._chain.start)
        self._server, self._epoch, self._claims = "", 0, list[int]()
        self._numbers = count(1)  # of objects
        self.log, self.solutions = (LogReplica(store, data_dir, kind, self._put_object) for kind in LOGS)
        self._head = FrameReader(data_dir / SOLUTIONS)
        self._snapshots: dict[str, _Signature | None] = {}  # those in the store; None: some server's
        self._states: dict[str, tuple[_Signature, StoredFile]] = {}  # the small files in the store
        self._committing = threading.RLock()  # between the put of a small file's object and the manifest that names it, nothing is swept
        self._repaired = set[Path]()
        self.repairs = 0
        """So many damaged segments were fetched from the store."""
        self._notes = dict[str, bytes]()  # each as it was taken from the store
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._failure = self._taken_by = ""
        self.lease_until = math.inf
        """By the monotonic clock, others that stand by may take the store from this time on, as far as this server
        knows.
        """
        self.standbys: Mapping[str, int] | None = None
        """Servers that stand by, by state, as the holder of a lease last counted them."""
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
    def start_name(self) -> str:
        """Return the name of this process in manifests."""
        return self._chain.start

    @property
    def taken(self) -> bool:
        return self._taken_by != ""

    @property
    def lost(self) -> str:
        """Return why this server may no longer be the one that writes to the store; empty as long as it surely is."""
        late = time.monotonic() > self.lease_until
        return self._taken_by or ("the lease of the store could not be renewed in time: another server may have taken its place" if late else "")

    @property
    def solutions_until(self) -> int:
        """Return the position from which on solutions may not be in the store yet."""
        return self.solutions.bound[0]

    def secured(self) -> int:
        """Return the position from which on engines need the log, whatever falls. Raises: StoreFailed."""
        if not self.away:
            return secured(self._data)
        found = [name.removesuffix(".snapshot").partition("-") for name in self._store.names(SNAPSHOTS) if name.endswith(".snapshot")]
        return (
            find_needed_position(
                {partition: int(position) for partition, _, position in sorted(found, reverse=True) if position.isdecimal()}, self._data
            )
            or 0
        )

    def start(self) -> None:
        self._thread.start()

    def look_for_later(self) -> None:
        """See that no later server has come. Raises: StoreTaken, StoreFailed."""
        try:
            self._chain.check_newest()
        except StoreTaken as fault:
            self._lost(fault)
            raise

    def repair(self, fault: Corrupt) -> bool:
        """Write a damaged segment of a log again from its copy, once.

        Return False where that cannot be. Any thread may call this.
        """
        replica = {each.kind: each for each in (self.log, self.solutions)}.get(fault.path.parent.name)
        if replica is None or fault.path in self._repaired:
            return False
        self._repaired.add(fault.path)
        with replica.lock:
            extents = list(replica.extents)
        is_full = any(segment_path(fault.path.parent, each.segment) > fault.path for each in extents)  # the last one is being written
        is_repaired = is_full and repair_segment(self._store, fault, extents)
        self.repairs += is_repaired
        return is_repaired

    def write_log(self, segment: int, size: int) -> None:
        """Bring the log to the store up to there; a later server's fence refuses it.

        A store that does not answer is waited for. Raises: StoreFailed, StoreTaken.
        """
        self._retry_until_deadline(lambda: self.log.push(segment, size, self._append, self._tail.advance), "an entry of the log")

    def write_files(self, paths: Sequence[Path]) -> None:
        """Bring small files to the store as they are here, or remove them there; otherwise as `write_log`.

        Any thread may call this. Raises: StoreFailed, StoreTaken.
        """

        def bring() -> None:
            with self._committing:
                for path in paths:
                    self._bring_state(str(path.relative_to(self._data)))
                self._commit()

        self._retry_until_deadline(bring, "what was set up")

    def _retry_until_deadline(self, work: Callable[[], None], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                work()
            except (StoreFailed, OSError) as fault:  # OSError: of a store that is a directory
                if time.monotonic() > deadline:
                    raise StoreFailed(str(fault)) from fault
                _log.warning("%s waits for %s: %s", what, self._store, fault)
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
            self._thread.join(self._store.patience_s)
            if self._thread.is_alive():
                _log.warning("%s did not take the last solutions within %g s: the next start writes them", self._store, self._store.patience_s)
                return
        self._head.close()
        self._store.close()
        self._lock.close()

    def round(self) -> None:
        """Bring the store up to the state here. Raises: OSError, PipelineError."""
        begins = {kind: oldest(self._data / kind) for kind in LOGS}
        present = [] if self.away else list_snapshots(self._data)  # before the solutions, so that these reach as far as the oldest of them
        head = self._head.head()
        if head.position:
            self.solutions.push(head.segment, head.size, self.solutions.write_object)
        whole = all(self._bring_snapshot(name) for name in present)
        self._bring_states()
        if self.away:
            self._take_notes()
        for replica in (self.log, self.solutions):
            if whole:
                replica.drop_before(begins[replica.kind])
            replica.merge()
        self._commit()
        if whole and not self.away:
            for name in self._snapshots.keys() - {*present}:
                self._store.remove(f"{SNAPSHOTS}/{name}")
                del self._snapshots[name]

    def mend(self) -> None:
        """Restore in the store the objects that are taken to be there, and remove those that nobody counts on.

        Raises: OSError, PipelineError.
        """
        self._chain.check_newest()
        there = {*list_tree(self._store, SNAPSHOTS)}
        self._snapshots = {name: signature for name, signature in self._snapshots.items() if name in there}
        with self._committing:
            known = {replica: list(replica.extents) for replica in (self.log, self.solutions)}  # before what is there is listed
            present = {f"{folder}/{name}" for folder in _FOLDERS for name in list_tree(self._store, folder)}
            for replica, extents in known.items():
                replica.put_missing(present, extents)
            self._states = {name: state for name, state in self._states.items() if state[1].name in present}
            self._bring_states()
            self._commit()
            assert self._chain.newest is not None
            for name in present - self._chain.newest.objects():
                if not self._may_be_needed(name):
                    self._store.remove(name)
        self._chain.sweep()

    # ------------------------------------------------------------ opening
    def _open(self) -> None:
        before, note = self._chain.look(), read_note(self._data)
        earlier = read_0_1(self._store) if before is None else None
        before = before or earlier
        if before is not None and (stored := before.files.get(FORMAT_FILE)) is not None:
            check_format(str(self._store), read_object(self._store, stored.name, stored.crc))
        empty = is_unfinished(self._data) or not (self._data / LOG).exists() or not segments(self._data / LOG)
        restoring = before is not None and empty
        if before is None and is_unfinished(self._data):
            raise self._refusal("is an unfinished copy of another store than")
        if before is not None and not empty:
            if note is None:
                raise self._refusal("has a log of its own, and so has")
            if note.server != before.server or note.epoch < before.epoch:
                if not self._stands_by:
                    raise self._refusal("is not what another server has kept since in")
                self._set_aside()
                restoring = True
            elif not self._has_all(before):  # a server that is refused takes the store from nobody
                raise self._refusal(_LACKS)
        if restoring and earlier is None:
            self._check_tail()
        self._server = note.server if note is not None and before is not None and not restoring else new_name()
        if earlier is not None:
            end_0_1(self._store, earlier, self._server, self._chain.start)
            earlier = read_0_1(self._store)
        self._take(earlier or self._chain.newest or Manifest(), restoring)

    def _check_tail(self) -> None:
        """Check that the tail has no gap, before anything is claimed.

        Its server may run, and remove what a later manifest replaces.
        """
        for tries in reversed(range(_TRIES)):
            known = self._chain.newest
            assert known is not None
            try:
                check_tail(self._store, known.tail)
            except StoreDamaged:
                if not tries or self._chain.look() == known:
                    raise
            else:
                return

    def _set_aside(self) -> None:
        """Move what the directory holds into its folder `superseded`. The store has all of it that was acknowledged."""
        place = self._data / SUPERSEDED
        shutil.rmtree(place, ignore_errors=True)
        for name in (*LOGS, KEYS_FOLDER, *REGISTRATIONS, SNAPSHOTS, *STATES, _NOTE):
            if (self._data / name).exists():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (self._data / name).replace(place / name)
        _log.info("another server has gone on with %s; what %s held is in %s", self._store, self._data, place)

    def _has_all(self, manifest: Manifest) -> bool:
        """Tell whether all events of the store are here, once what is damaged here was fetched from there.

        Its server may run.
        """
        for tries in reversed(range(_TRIES)):
            try:
                extents = replay(manifest.logs.get(LOG, []) + read_tail(self._store, manifest))
                for kind, each in ((LOG, extents), (SOLUTIONS, manifest.logs.get(SOLUTIONS, []))):
                    self.repairs += repair_log(self._store, self._data / kind, each)
                return self.log.adopt(extents)
            except StoreFailed:
                if not tries:
                    raise
                later = self._chain.look() or manifest
                if later.epoch != manifest.epoch:
                    raise StoreTaken(str(self._store), "another server has begun to write to") from None
                manifest = later
        raise AssertionError

    def _take(self, before: Manifest, restoring: bool) -> None:
        """Claim the store, end the tail of the earlier server, and go on from there."""
        before = self._claim(before, restoring)
        tail = self._tail.fence(before)
        logs = {kind: before.logs.get(kind, []) for kind in LOGS}
        logs[LOG] = replay(logs[LOG] + tail)
        if restoring:
            _log.info("%s is copied into %s", self._store, self._data)
            replace_file(self._data / _UNFINISHED, b"")
            wipe(self._data)
            restore(self._store, self._data, before, logs)
        if not self.log.adopt(logs[LOG]) and not restoring:  # after a restore the store may have half a frame, which nobody was told is kept
            raise self._refusal(_LACKS)
        self.solutions.adopt(logs[SOLUTIONS])
        self._claims = [*before.claims, self._epoch]
        self._snapshots = dict.fromkeys(list_tree(self._store, SNAPSHOTS))
        self._bring_states()
        self._commit()
        if restoring:
            self._write_note()
            (self._data / _UNFINISHED).unlink()

    def _claim(self, before: Manifest, restoring: bool) -> Manifest:
        """Claim the store, and return the manifest that this follows: the earlier server may go on writing manifests
        meanwhile.
        """
        for tries in reversed(range(_TRIES)):
            self._epoch = max(self._chain.number, before.epoch) + 1
            if not restoring:
                self._write_note()  # before the claim: whoever is killed after it goes on
            try:
                self._chain.claim(self._server, before, self._epoch)
            except StoreTaken:
                later = self._chain.look()
                if later is None or later.claims != before.claims or not tries:
                    raise
                before = later
            else:
                return before
        raise AssertionError

    # ------------------------------------------------------------ objects
    def _append(self, segment: int, begin: int, data: bytes) -> Extent:
        return self._tail.append(segment, begin, data)

    def _put_object(self, data: bytes) -> str:
        """Write an object under a name of its own, and return the name."""
        name = f"{OBJECTS}/{self._epoch:010d}-{next(self._numbers):012d}"
        self._store.put(name, data)
        return name

    def _commit(self) -> None:
        """Write the manifest of what is in the store now, and remove the objects that it replaces."""
        with self._committing:
            before = self._chain.newest
            with self.log.lock:
                log, tail = list(self.log.extents), self._tail.number
            files = {name: stored for name, (_, stored) in self._states.items()}
            logs = {LOG: log, SOLUTIONS: list(self.solutions.extents)}
            self._chain.commit(Manifest(self._server, self._chain.start, self._epoch, tail, logs, files, self._claims, self._tail.fences))
            assert self._chain.newest is not None
            if before is not None and before is not self._chain.newest:
                for name in before.objects() - self._chain.newest.objects():
                    self._store.remove(name)

    def _may_be_needed(self, name: str) -> bool:
        """Tell whether an object that the newest manifest does not name may be needed."""
        folder, _, rest = name.partition("/")
        assert self._chain.newest is not None
        if folder == TAIL:
            return int(rest) >= self._chain.newest.tail or int(rest) in self._chain.newest.fences
        return folder == OBJECTS and int(rest.partition("-")[0]) > self._epoch

    def _refusal(self, reason: str) -> NotOfThisStore:
        return NotOfThisStore(self._data, str(self._store), reason)

    def _write_note(self) -> None:
        replace_file(self._data / _NOTE, msgspec.json.encode(_Note(self._server, self._epoch)))

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
                _log.warning("the copy in %s is behind, and is written again in %g s: %s", self._store, PAUSE_S, self._failure)

    def _lost(self, fault: StoreTaken) -> None:
        if not self.taken:
            self._taken_by = str(fault)
            _log.error("the store receives nothing more: %s", fault)

    def _here(self) -> object:
        """Return the state that a round would bring to the store; None where this machine does not know it."""
        if self.away:
            return None
        return self._head.head(), list_snapshots(self._data), [*self._signatures()], [oldest(self._data / kind) for kind in LOGS]

    def _signatures(self) -> Iterator[tuple[Path, _Signature]]:
        """Yield the small files that are here, with their signatures."""
        for path in self._states_here():
            with suppress(FileNotFoundError):
                yield path, _signature(path)

    def _states_here(self) -> list[Path]:
        keys = sorted((self._data / KEYS_FOLDER).glob("*.keys"))  # before the catalogue, which names them
        registrations = [path for folder in REGISTRATIONS for path in sorted((self._data / folder).glob("*.json"))]
        return keys + [self._data / name for name in STATES] + registrations

    def _bring_snapshot(self, name: str) -> bool:
        """Bring a snapshot, if the store does not have it. Return False where the snapshot has just been let go."""
        path = self._data / SNAPSHOTS / name
        try:
            signature = _signature(path)
            if name not in self._snapshots or (path.suffix == _SNAPSHOT and self._snapshots[name] != signature):  # a piece is named by what it holds
                self._store.put(f"{SNAPSHOTS}/{name}", path.read_bytes())
                self._snapshots[name] = signature
        except FileNotFoundError:
            return False
        return True

    def _take_notes(self) -> None:
        """Take the engines' notes from the store."""
        for name in self._store.names(NOTES):
            note = self._store.read(f"{NOTES}/{name}")
            if note is not None and note != self._notes.get(name):
                write_note(note_path(self._data, name), note)
                self._notes[name] = note

    def _bring_states(self) -> None:
        """Bring the small files that have changed, and drop those that are gone."""
        with self._committing:
            for name in dict.fromkeys([*(str(path.relative_to(self._data)) for path in self._states_here()), *self._states]):
                self._bring_state(name)

    def _bring_state(self, name: str) -> None:
        path = self._data / name
        try:
            signature = _signature(path)
            if name not in self._states or self._states[name][0] != signature:
                data = path.read_bytes()
                self._states[name] = signature, StoredFile(self._put_object(data), zlib.crc32(data))
        except FileNotFoundError:
            self._states.pop(name, None)


def read_note(data_dir: Path) -> _Note | None:
    """Return which server a data directory is, None where it has never been of a store. Raises: StoreFailed."""
    path = data_dir / _NOTE
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Note) if path.exists() else None
    except msgspec.MsgspecError as fault:
        raise StoreFailed(f"{path} is damaged ({fault}); remove the data directory, and it is copied from the store") from None


def is_unfinished(data_dir: Path) -> bool:
    """Tell whether a directory is half a copy of a store."""
    return (data_dir / _UNFINISHED).exists()


def _signature(path: Path) -> _Signature:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
