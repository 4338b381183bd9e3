"""This module runs queries over events in this process, without a server: the engine and the logs of `epsparql replay`."""

import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypedDict, Unpack

from epsparql.events.event_text import write_events
from epsparql.events.frame_rows import documents_of, is_frame, triples_of
from epsparql.events.media_types import N_QUADS, NDJSON
from epsparql.events.on_error import DEAD_LETTERS, ON_ERROR, REFUSE, read_on_error
from epsparql.events.rdflib_events import is_rdflib_graph, n_quads_of
from epsparql.extras import load_extra
from epsparql.solutions.solution import solution_of
from epsparql.solutions.solution_list import Solutions

Queries: TypeAlias = str | Path | Mapping[str, str | Path] | Sequence[Path]
Events: TypeAlias = Any
ENTAILMENTS, DEFAULT_GRAPHS = ("rdfs", "owl-rl"), ("all", "unnamed")  # the engine has them too, but may not be installed
_MAPPED = {".csv": "text/csv", ".json": "application/json"}
_USER = "epsparql.run()"


class FaultyRows(TypedDict, total=False):
    """Says what becomes of rows of CSV and JSON, and lines of ndjson, that cannot be read or do not map.

    With `on_error` refuse (the default) all is refused. With skip such rows are left out. With dead_letter they are
    written to the file `dead_letters` with their reasons. A warning counts them.
    """

    on_error: str
    dead_letters: str | Path


def run(
    queries: Queries,
    events: Events = (),
    *,
    mapping: Mapping[str, Any] | None = None,
    background: str | Path | Iterable[str | Path] = (),
    entailment: str = "rdfs",
    default_graph: str = "all",
    policies: Mapping[str, str] = MappingProxyType({}),
    **faulty: Unpack[FaultyRows],
) -> dict[str, Solutions]:
    """Run queries over events that are all there, and return the solutions of each query by its name, in the order of emission.

    `queries` is a query's text, which is then named `query`; a Path, named by its stem; several Paths; or texts and Paths by name.

    `events` is, for the stream `default`:
    - a file in any format that `epsparql replay` reads, as a Path or a text;
    - triples `(s, p, o, at)` or `(s, p, o, start, end)`, in any order. Terms are those of rdflib, or N-Triples texts; an object
      may also be a Python number, bool or datetime. Times are datetimes or xsd:dateTime texts, UTC where they have no zone;
    - a frame of pandas or polars with the columns s, p, o, and at, or start and end, as such triples;
    - a Graph or Dataset of rdflib whose graphs are timed by `prov:generatedAtTime`.
    Events of several streams are a dict by the stream's name.
    With a `mapping`, a document as streams have it, frames may have any columns, and files may be `.csv` or `.json`.
    `background` names files with triples that always hold. `entailment` is rdfs or owl-rl. `default_graph` is all or unnamed.
    `policies` gives consumption policies by query (`epsparql.solutions.policies.POLICIES`). FaultyRows tells of `on_error` and `dead_letters`.
    Raises: MissingExtra without the extra `engine`; ValueError for a fault of a query, an event or a file, with its place; TypeError for events of no
    such kind. Warns of streams that a query reads and nothing feeds.
    """
    replay = load_extra("engine", _USER, "pipeline.replay.replay")
    files, bodies = load_extra("engine", _USER, "pipeline.replay.query_files"), load_extra("engine", _USER, "pipeline.replay.input_files")
    _check_choice("entailment", entailment, ENTAILMENTS)
    _check_choice("default_graph", default_graph, DEFAULT_GRAPHS)
    asked = _named(queries, files)
    streams = events.items() if isinstance(events, Mapping) else [("default", events)]
    plan = replay.Replay(
        asked,
        [_source_of(name, found, bodies, mapping) for name, found in streams],
        [files.named_file(str(path)) for path in ([background] if isinstance(background, str | Path) else background)],
        default_graph=default_graph,
        policies=replay.policies_of([f"{name}={policy}" for name, policy in policies.items()], asked),
        entailment=entailment,
        **_read_faulty(faulty),
    )
    out = BytesIO()
    replay.run(plan, "ndjson", out, _clock, lambda _: None, _warn_of_doubt)
    found = {query.name: Solutions() for query in asked}
    for line in out.getvalue().splitlines():
        solution = solution_of(json.loads(line))
        found[solution.query].append(solution)
    return found


def _read_faulty(given: FaultyRows) -> dict[str, Any]:
    """Return the options for rows at fault as a replay takes them. Raises: ValueError, TypeError for another name."""
    for name in given:
        if name not in FaultyRows.__annotations__:
            raise TypeError(f"run() has no option {name!r}; expected {', '.join(FaultyRows.__annotations__)}")
    word = given.get("on_error", REFUSE)
    rule = read_on_error(word)
    if rule is None:
        raise ValueError(f"on_error={word!r} is not known; expected {', '.join(ON_ERROR[:-1])} or {ON_ERROR[-1]}")
    return {"on_error": rule, "dead_letters": Path(given.get("dead_letters", DEAD_LETTERS))}


def _check_choice(name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ValueError(f"{name}={given!r} is not known; expected {' or '.join(known)}")


def _named(queries: Queries, files: Any) -> list[Any]:
    """Return the queries with their names, as a replay takes them."""
    if isinstance(queries, str):
        return [files.QueryFile(Path("query"), queries)]
    if isinstance(queries, Path):
        return [files.read_query(queries)]
    if isinstance(queries, Mapping):
        return [_named_query(name, query, files) for name, query in queries.items()]
    return [files.read_query(path) for path in queries]


def _named_query(name: str, query: str | Path, files: Any) -> Any:
    path, text = (query, files.read_query(query).text) if isinstance(query, Path) else (Path(name), query)
    return files.QueryFile(path, text, name)


def _source_of(stream: str, events: Events, bodies: Any, mapping: Mapping[str, Any] | None) -> Any:
    """Return a stream's events as a replay takes them. Raises: TypeError."""
    if isinstance(events, str | Path):
        path = Path(events)
        if mapping is None or path.suffix.lower() not in _MAPPED:
            return bodies.NamedFile(stream, path)
        return bodies.NamedBody(stream, path, bodies.read_file(path), _MAPPED[path.suffix.lower()], mapping=json.dumps(mapping))
    if mapping is not None and is_frame(events):
        body = f"[{','.join(documents_of(events))}]"
        return bodies.NamedBody(stream, Path("events"), body.encode(), _MAPPED[".json"], mapping=json.dumps(mapping))
    if is_rdflib_graph(events):
        return bodies.NamedBody(stream, Path("events"), n_quads_of(events).encode(), N_QUADS)
    triples = triples_of(events) if is_frame(events) else events
    if not isinstance(triples, Iterable):
        raise TypeError(f"events of type {type(events).__name__}; expected a file, triples, a frame, or an rdflib Graph")
    return bodies.NamedBody(stream, Path("events"), write_events(triples).encode(), NDJSON)


def _clock() -> int:
    return time.time_ns() // 1000


def _warn_of_doubt(doubt: Any) -> None:
    if hasattr(doubt, "readers"):  # the words of the command line name its options
        text = f"the stream <{doubt.stream}>, which {', '.join(doubt.readers)} reads, stays empty: no events are given for it"
    else:
        text = str(doubt)
    warnings.warn(text, stacklevel=4)
