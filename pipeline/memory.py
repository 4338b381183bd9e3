"""What the log's writer remembers between starts, so that a start reads only the log's end: the catalogue, and idempotency keys."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.entries import Events, Micros
from pipeline.catalogue import Catalogue, Graph, Registration, Stream
from pipeline.errors import Overloaded
from pipeline.records import Record

REMEMBERED: Micros = 24 * 3600 * 1_000_000
KEYS = 2_000_000


@dataclass(frozen=True, slots=True)
class Ack:
    """A durable entry. `offset` is the log position after it; of the `accepted` rows `late` ones go to the late feed alone."""

    offset: int
    accepted: int = 0
    late: int = 0


class Keys:
    """Idempotency keys of the last 24 hours with their acks, oldest first."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Micros, Ack]] = {}

    def get(self, stream: str, key: str | None) -> Ack | None:
        """Raises: Overloaded where a new key would be one too many: forgetting one early would break the promise made for it."""
        if key is None:
            return None
        found = self._known.get((stream, key))
        if found is None and len(self._known) >= KEYS:
            raise Overloaded(f"{KEYS} idempotency keys are remembered already; send fewer, for larger bodies")
        return found[1] if found else None

    def remember(self, stream: str, key: str | None, at: Micros, ack: Ack) -> None:
        if key is not None:
            self._known[stream, key] = (at, ack)

    def recall(self, record: Record, at: Micros) -> None:
        """Take the key of an entry read back from the log."""
        if isinstance(record.entry, Events):
            self.remember(record.entry.stream, record.entry.key, at, Ack(record.entry.offset + 1, record.entry.rows, record.late))

    def forget(self, now: Micros) -> None:
        """Drop what is older than 24 hours."""
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest][0] > now - REMEMBERED:
                return
            del self._known[oldest]

    def listed(self) -> list[tuple[str, str, Micros, Ack]]:
        return [(stream, key, at, ack) for (stream, key), (at, ack) in self._known.items()]


@dataclass(frozen=True, slots=True)
class _State:
    position: int
    streams: list[Stream]
    queries: list[Registration]
    graphs: list[Graph]
    entailment: str
    keys: list[tuple[str, str, Micros, Ack]]
    rereads: dict[int, tuple[int, int, int]] = field(default_factory=dict)


def save(data_dir: Path, catalogue: Catalogue, keys: Keys) -> None:
    """Replace the state file in one step."""
    streams, queries, graphs = list(catalogue.streams.values()), list(catalogue.queries.values()), list(catalogue.graphs.values())
    state = _State(catalogue.position, streams, queries, graphs, catalogue.entailment, keys.listed(), dict(catalogue.rereads))
    path = data_dir / "catalogue.json"
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(data_dir: Path, head: int) -> tuple[Catalogue, Keys]:
    """The saved state, or nothing where there is none, it cannot be read, or it is not of this log: then the log is read from its beginning."""
    try:
        state = msgspec.json.decode((data_dir / "catalogue.json").read_bytes(), type=_State)
    except (FileNotFoundError, msgspec.MsgspecError, ValueError):
        return Catalogue(), Keys()
    if state.position > head:
        return Catalogue(), Keys()
    streams, queries = {s.name: s for s in state.streams}, {q.name: q for q in state.queries}
    keys = Keys()
    for stream, key, at, ack in state.keys:
        keys.remember(stream, key, at, ack)
    return Catalogue(state.position, streams, queries, {g.name: g for g in state.graphs}, state.entailment, state.rereads), keys
