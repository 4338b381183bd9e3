"""The state that the log's writer saves, so that a start reads only the log's end: the catalogue, and which files hold idempotency keys."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.entries import Micros
from pipeline.catalogue import Catalogue, Graph, Registration, Stream
from pipeline.idempotency import KEYS_FOLDER, Ack, Keys, Saved

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _State:
    position: int
    streams: list[Stream]
    queries: list[Registration]
    graphs: list[Graph]
    entailment: str
    rereads: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    keyed: list[Saved] = field(default_factory=list)
    keys: list[tuple[str, str, Micros, Ack]] = field(default_factory=list)
    """The keys themselves, which 0.1.0 kept here; read, no longer written."""


def save(data_dir: Path, catalogue: Catalogue, keys: Keys) -> None:
    """Save the keys that are new, and replace the state file in one step."""
    keys.save()
    streams, queries, graphs = list(catalogue.streams.values()), list(catalogue.queries.values()), list(catalogue.graphs.values())
    state = _State(catalogue.position, streams, queries, graphs, catalogue.entailment, dict(catalogue.rereads), keys.saved)
    path = data_dir / "catalogue.json"
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(state))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(data_dir: Path, head: int, now: Micros) -> tuple[Catalogue, Keys, int]:
    """Return the saved state, and the position from which on the log tells the rest.

    The state is empty where there is none, it cannot be read, or it is not of this log: then the log is read from its beginning.
    """
    keys = Keys(data_dir / KEYS_FOLDER, head, now)
    try:
        state = msgspec.json.decode((data_dir / "catalogue.json").read_bytes(), type=_State)
    except (FileNotFoundError, msgspec.MsgspecError, ValueError):
        return Catalogue(), keys, 0
    if state.position > head:
        return Catalogue(), keys, 0
    streams, queries = {s.name: s for s in state.streams}, {q.name: q for q in state.queries}
    for stream, key, at, ack in state.keys:
        keys.remember(stream, key, at, ack)
    lacking = keys.lacks(state.keyed)
    if lacking is not None:
        _log.warning("a file of idempotency keys is not there: they are read from the log again, from position %d if it goes back so far", lacking)
    catalogue = Catalogue(state.position, streams, queries, {g.name: g for g in state.graphs}, state.entailment, state.rereads)
    return catalogue, keys, state.position if lacking is None else min(lacking, state.position)
