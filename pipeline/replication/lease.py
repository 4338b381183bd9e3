"""This module keeps the lease of a store, so that a server that stands by takes the place of one that has died
(docs/decisions/0042).

The lease decides when a server tries, and never who may write: that is decided by the claims and fences of
manifest.py. So a lease that ends too early costs a change of servers, and no event. No clocks are compared: whoever
stands by measures by its own clock how long nothing has changed.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from pipeline.errors import StoreFailed, StoreTaken
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.manifest import Manifest, ManifestChain
from pipeline.replication.replicator import Replicator, read_note
from pipeline.replication.standbys import LOADED, LOADING, RENEWALS, StandbyCounter, StandbyNote

LEASE = "lease/holder"
LOOKS = 8
"""In the time of a lease, those that stand by look so often."""
_log = logging.getLogger("epsparql.store")


class _Lease(msgspec.Struct, frozen=True):
    """Names the process that holds the lease, as manifests name it, and how often it has renewed it."""

    start: str
    renewals: int


class LeaseHolder:
    """Renews the lease of a server until it is stopped, or has lost the store. One that was late looks first whether
    another server has come.

    Another thread counts the servers that stand by, so that a slow answer delays no renewal.
    """

    def __init__(self, store: ObjectStore, keeper: Replicator, term_s: float) -> None:
        self._store, self._keeper, self._term_s = store, keeper, term_s
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True) for name, work in (("lease", self._run), ("standbys", self._count_standbys))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(self._store.patience_s)

    def _run(self) -> None:
        renewals = 0
        while not self._keeper.taken:
            try:
                if self._keeper.lost:
                    self._keeper.look_for_later()
                began = time.monotonic()
                self._store.put(LEASE, msgspec.json.encode(_Lease(self._keeper.start_name, renewals)))
                self._keeper.lease_until = began + self._term_s
            except StoreTaken:
                return
            except (OSError, StoreFailed) as fault:
                _log.warning("the lease of the store could not be renewed: %s", fault)
            renewals += 1
            if self._stopping.wait(self._term_s / RENEWALS):
                return

    def _count_standbys(self) -> None:
        counter = StandbyCounter(self._store)
        while not self._keeper.taken:
            try:
                self._keeper.standbys = counter.count()
            except (OSError, StoreFailed) as fault:
                _log.warning("the servers that stand by could not be counted: %s", fault)
            if self._stopping.wait(self._term_s):
                return


def wait_for_lease(store: ObjectStore, data_dir: Path, term_s: float, has_loaded: Callable[[], bool]) -> None:
    """Return when a server may try to take the store: nobody holds its lease, or it has not been renewed for `term_s`
    by this machine's clock.

    A server that has not loaded its code leaves the store to others until it has. Then one whose data directory is
    the store's newest returns at once: no other has taken its place. While the store cannot be read, time starts
    anew.
    """
    chain, note = ManifestChain(store), StandbyNote(store, term_s)
    seen, since, told = object(), time.monotonic(), ""
    while True:
        activity: object = object()  # unlike anything seen
        try:
            is_loaded, newest = has_loaded(), chain.look()  # in this order: what was seen while code was loading may be old
            if newest is not None and not _is_own(newest, data_dir):
                found = store.read(LEASE)
                activity = chain.number, found if found is not None and _holder_of(found) == newest.start else None
                if newest.start != told:
                    told = newest.start
                    _log.info("standing by for %s, whose server is %s", store, newest.server)
                note.renew(LOADED if is_loaded else LOADING)
            elif is_loaded:
                return
        except (OSError, StoreFailed) as fault:
            _log.warning("the store cannot be looked at: %s", fault)
        if activity != seen:
            seen, since = activity, time.monotonic()
        elif time.monotonic() - since >= term_s and has_loaded():
            _log.warning("the lease of the store has not been renewed for %g s; this server takes it", term_s)
            note.remove()
            return
        time.sleep(term_s / LOOKS)


def _holder_of(lease: bytes) -> str | None:
    try:
        return msgspec.json.decode(lease, type=_Lease).start
    except msgspec.MsgspecError:
        return None


def _is_own(newest: Manifest, data_dir: Path) -> bool:
    note = read_note(data_dir)
    return note is not None and (note.server, note.epoch) == (newest.server, newest.epoch)
