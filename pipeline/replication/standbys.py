"""Servers that stand by leave notes in the store, by which the serving one counts them
(docs/decisions/0042-conditional-puts.md).

    a server that stands by                    the store                     the serving one

    puts its note as often                     lease/standbys/NAME           lists and reads the notes once in the time of
    as the lease is renewed, and       -->     {state, renewals, term_s}     a lease, and removes those that stay the same
    when its state changes

No clocks are compared: a note is over when it has not changed for twice its time by the serving machine's clock.
Nothing else depends on notes.
"""

import logging
import time
from typing import Annotated, Literal

import msgspec

from pipeline.errors import StoreFailed
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.manifest import new_name

STANDBYS = "lease/standbys"
STATES = LOADING, LOADED = ("loading", "loaded")
"""A server that stands by loads its code, and has loaded it."""
RENEWALS = 4
"""In the time of a lease, its holder renews it so often, and each server that stands by its note."""
MOST = 64
"""At most so many notes are read at once; the others are counted when some of these are over."""
_TERMS, _LONGEST_S = 2, 3600.0
_log = logging.getLogger("epsparql.store")


class _Note(msgspec.Struct, frozen=True):
    state: Literal["loading", "loaded"]
    renewals: int
    term_s: Annotated[float, msgspec.Meta(gt=0)]


class StandbyNote:
    """Represents the note of a server that stands by. Faults are logged, because a takeover does not need the note."""

    def __init__(self, store: ObjectStore, term_s: float) -> None:
        self._store, self._term_s, self._name = store, term_s, f"{STANDBYS}/{new_name()}"
        self._state, self._renewals, self._due_s = "", 0, 0.0

    def renew(self, state: str) -> None:
        """Put the note if its state has changed, or if it is time."""
        now = time.monotonic()
        if state == self._state and now < self._due_s:
            return
        note = {"state": state, "renewals": self._renewals, "term_s": self._term_s}
        self._state, self._renewals, self._due_s = state, self._renewals + 1, now + self._term_s / RENEWALS
        try:
            self._store.put(self._name, msgspec.json.encode(note))
        except (OSError, StoreFailed) as fault:
            _log.warning("the note of this standby server could not be renewed: %s", fault)

    def remove(self) -> None:
        """Remove the note, once its server serves."""
        try:
            self._store.remove(self._name)
        except (OSError, StoreFailed) as fault:
            _log.warning("the note of this standby server could not be removed: %s", fault)


class StandbyCounter:
    """Counts the servers that stand by, from their notes."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._seen = dict[str, tuple[bytes, float]]()  # each note as it is, and since when by the monotonic clock

    def count(self) -> dict[str, int]:
        """Return how many servers are in each state, and remove the notes that are over. Raises: OSError, StoreFailed."""
        names = [name for name in self._store.names(STANDBYS) if not name.endswith("/")][:MOST]
        self._seen = {name: seen for name, seen in self._seen.items() if name in names}
        counts = dict.fromkeys(STATES, 0)
        for name in names:
            content = self._store.read(f"{STANDBYS}/{name}")
            if content is None:  # its server has just begun to serve, or has removed it
                continue
            now, note = time.monotonic(), _read_note(content)
            known, since = self._seen.get(name, (b"", now))
            if known != content:
                self._seen[name], since = (content, now), now
            if note is not None and now - since < _TERMS * min(note.term_s, _LONGEST_S):
                counts[note.state] += 1
            else:
                self._store.remove(f"{STANDBYS}/{name}")
        return counts


def _read_note(content: bytes) -> _Note | None:
    try:
        return msgspec.json.decode(content, type=_Note)
    except msgspec.MsgspecError:
        return None
