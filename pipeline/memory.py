"""What the log's writer remembers between starts, so that a start reads only the log's end: the catalogue, and idempotency keys."""

import logging
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.entries import Events, Micros
from pipeline.catalogue import Catalogue, Graph, Registration, Stream
from pipeline.errors import NotOfOneLog, Overloaded
from pipeline.frames import replace_file, seal, unseal
from pipeline.marks import Marks
from pipeline.records import Record

REMEMBERED: Micros = 24 * 3600 * 1_000_000
KEYS = 2_000_000
_log = logging.getLogger("epsparql.catalogue")


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
    mark: int = 0


def save(data_dir: Path, catalogue: Catalogue, keys: Keys, mark: int) -> None:
    """Replace the state file in one step. `mark`: that of the log's frame that ends where the catalogue does."""
    streams, queries, graphs = list(catalogue.streams.values()), list(catalogue.queries.values()), list(catalogue.graphs.values())
    state = _State(catalogue.position, streams, queries, graphs, catalogue.entailment, keys.listed(), dict(catalogue.rereads), mark)
    replace_file(data_dir / "catalogue.json", seal(msgspec.json.encode(state)))


def load(data_dir: Path, head: int) -> tuple[Catalogue, Keys]:
    """The saved state, or nothing where there is none or it cannot be read: then the log is read from its beginning.

    Raises: NotOfOneLog where the log is not the one that was catalogued, or is less of it.
    """
    path = data_dir / "catalogue.json"
    try:
        data = path.read_bytes()
        state = msgspec.json.decode(unseal(data) or data, type=_State)  # that of version 0.1.0 is not sealed
    except FileNotFoundError:
        return Catalogue(), Keys()
    except (msgspec.MsgspecError, ValueError) as fault:
        _log.warning("%s cannot be read (%s): the log is read from its beginning", path, fault)
        return Catalogue(), Keys()
    remedy = "restore log/ from a copy, or remove catalogue.json to go on with what is left"
    if state.position > head:
        raise NotOfOneLog(data_dir / "log", f"ends at position {head}, and catalogue.json was saved at {state.position}", remedy)
    with closing(Marks(data_dir)) as marks:
        if state.mark and (found := marks.mark_before(state.position)) and found != state.mark:
            raise NotOfOneLog(path, f"is of another log than log/, at position {state.position}", remedy)
    streams, queries = {s.name: s for s in state.streams}, {q.name: q for q in state.queries}
    keys = Keys()
    for stream, key, at, ack in state.keys:
        keys.remember(stream, key, at, ack)
    return Catalogue(state.position, streams, queries, {g.name: g for g in state.graphs}, state.entailment, state.rereads), keys
