"""This module saves the state of the log's writer, so that a start reads only the log's end.

The state is the catalogue, and which files hold idempotency keys.
"""

import logging
from contextlib import closing
from dataclasses import field
from pathlib import Path

import msgspec

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from epsparql.durable_files import replace_file
from pipeline.errors import NotOfOneLog
from pipeline.log.catalog import BackgroundGraph, Catalogue, Instance, Registration, Stream
from pipeline.log.idempotency_keys import KEYS_FOLDER, Ack, IdempotencyKeys, Saved
from pipeline.log.log_fingerprint import Marks
from pipeline.log.segments import seal, unseal
from pipeline.source_positions import SourceState

_log = logging.getLogger("epsparql.catalogue")


@dataclass(frozen=True, slots=True)
class _State:
    position: int
    streams: list[Stream]
    queries: list[Registration]
    graphs: list[BackgroundGraph]
    entailment: str
    rereads: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    keyed: list[Saved] = field(default_factory=list)
    keys: list[tuple[str, str, Micros, Ack]] = field(default_factory=list)
    """Version 0.1.0 kept the keys themselves here; they are read, no longer written."""
    mark: int = 0
    sources: dict[str, dict[str, SourceState]] = field(default_factory=dict)
    unrevised: dict[str, int] = field(default_factory=dict)
    instances: dict[int, dict[str, Instance]] = field(default_factory=dict)


def save_state(data_dir: Path, catalogue: Catalogue, keys: IdempotencyKeys, mark: int) -> None:
    """Save the keys that are new, and replace the state file in one step.

    `mark` is that of the log's frame that ends where the catalogue does.
    """
    keys.save()
    streams, queries, graphs = list(catalogue.streams.values()), list(catalogue.queries.values()), list(catalogue.graphs.values())
    state = _State(
        catalogue.position,
        streams,
        queries,
        graphs,
        catalogue.entailment,
        dict(catalogue.rereads),
        keys.saved,
        mark=mark,
        sources=catalogue.sources,
        unrevised=catalogue.unrevised,
        instances=catalogue.instances,
    )
    replace_file(data_dir / "catalogue.json", seal(msgspec.json.encode(state)))


def load_state(data_dir: Path, head: int, now: Micros) -> tuple[Catalogue, IdempotencyKeys, int]:
    """Return the saved state, and the position from which on the log tells the rest.

    The state is empty where there is none or it cannot be read: then the log is read from its beginning.
    Raises: NotOfOneLog where the log is not the one that was catalogued, or is less of it.
    """
    path = data_dir / "catalogue.json"
    try:
        data = path.read_bytes()
        state = msgspec.json.decode(unseal(data) or data, type=_State)  # version 0.1.0 did not seal its state
    except FileNotFoundError:
        return Catalogue(), IdempotencyKeys(data_dir / KEYS_FOLDER, head, now), 0
    except (msgspec.MsgspecError, ValueError) as fault:
        _log.warning("%s cannot be read (%s): the log is read from its beginning", path, fault)
        return Catalogue(), IdempotencyKeys(data_dir / KEYS_FOLDER, head, now), 0
    remedy = "restore log/ from a copy, or remove catalogue.json to go on with what is left"
    if state.position > head:
        raise NotOfOneLog(data_dir / "log", f"ends at position {head}, and catalogue.json was saved at {state.position}", remedy)
    with closing(Marks(data_dir)) as marks:
        if state.mark and (found := marks.mark_before(state.position)) and found != state.mark:
            raise NotOfOneLog(path, f"is of another log than log/, at position {state.position}", remedy)
    keys = IdempotencyKeys(data_dir / KEYS_FOLDER, head, now)
    streams, queries = {s.name: s for s in state.streams}, {q.name: q for q in state.queries}
    for stream, key, at, ack in state.keys:
        keys.remember(stream, key, at, ack)
    lacking = keys.lacks(state.keyed)
    if lacking is not None:
        _log.warning("a file of idempotency keys is missing: they are read from the log again, from position %d if it goes back so far", lacking)
    catalogue = Catalogue(
        state.position,
        streams,
        queries,
        {g.name: g for g in state.graphs},
        state.entailment,
        state.rereads,
        state.sources,
        state.unrevised,
        state.instances,
    )
    return catalogue, keys, state.position if lacking is None else min(lacking, state.position)
