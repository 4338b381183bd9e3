"""Replays files, or bodies in memory, as finished streams, in a temporary directory, with the same log, engine and
solution log as the server's.
"""

import json
import re
import shlex
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field
from pathlib import Path
from threading import Event
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import epsparql
from engine.messages import NODE_NAMES, RDFS, Entail, Facts, Finish, Micros, Register, SetStream
from epsparql.deferred_methods import dataclass
from epsparql.events.on_error import DEAD_LETTERS, REFUSE
from epsparql.solutions.policies import UNRESTRICTED, PolicyFault, read_policy
from pipeline.diagnosis.model import Diagnosis
from pipeline.formats.namespaces import NO_NAMES, Namespaces
from pipeline.log import LogWriter, Queueing
from pipeline.log.catalog import Stream
from pipeline.registrations.query_cache import Shape, check_registration, get_shape, refuse_instances
from pipeline.registrations.stream_dependencies import find_alive, find_sources, find_unfed, find_written
from pipeline.replay.dead_letters import DeadLetters, LeftOut
from pipeline.replay.input_files import NamedBody, OrderedStreams, facts_of, occurrences_of, read_mapping_file
from pipeline.replay.query_files import NamedFile, QueryFile, SourceFault
from pipeline.runners.in_process import InProcessRunner
from pipeline.runners.log_follower import LogRunner
from pipeline.slices.execution import SlicePiece, SliceWork
from pipeline.slices.runner import SliceRunner, plan_log
from pipeline.slices.workers import SliceThreads, count_cores
from pipeline.solutions.formats import CSV, NDJSON, SPARQL_JSON, TURTLE, Triples, ndjson, write_page
from pipeline.solutions.solution_log import NONE_STORED, SolutionReader
from pipeline.time_units import describe_wrong_unit

FORMATS = {"ndjson": NDJSON, "json": SPARQL_JSON, "csv": CSV, "turtle": TURTLE}
_DEFAULT_STREAM = "default"
_LOOK_S = 0.2
_WRITTEN_ROWS = 2_000
"""So many solutions are written at a time, so that their text stays in the processor's caches."""
_NAMED = 5  # a message names this many queries
_CLUSTER_TASKS = 16
"""So many slices are at work together on a cluster, whose size Spark alone knows."""


class RunnerFailed(Exception):
    """Reports that the runner gave up, which is not the user's fault."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Describes a run: the queries, and the streams and background that they read."""

    queries: Sequence[QueryFile]
    streams: Sequence[NamedFile | NamedBody]
    background: Sequence[NamedFile]
    runner: str = "inprocess"
    master: str = "local[*,4]"
    default_graph: str = "all"
    policies: Mapping[str, str] = field(default_factory=dict)  # by query; unrestricted where there is none
    entailment: str = RDFS
    mappings: Sequence[NamedFile] = ()  # by stream; one without a name is for all streams that have none of their own
    rounds: bool = False  # times finer than a microsecond are rounded
    slices: int | None = None  # into how many parts the log is cut; None: as many as the cores, or Spark's, are worth
    on_error: str = REFUSE
    dead_letters: Path = Path(DEAD_LETTERS)
    names: Namespaces = NO_NAMES  # terms of ndjson may have these prefixes; the base is also that of mappings without one


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """Reports how far a run has come: the log entries applied, and how many there are."""

    done: int
    of: int


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """Counts what went in, and the solutions by query. `silent` says why queries found nothing, if that was asked for."""

    entries: int
    occurrences: int
    solutions: dict[str, int]
    left_out: tuple[LeftOut, ...] = ()  # what `on_error` left out of files
    silent: tuple[Diagnosis, ...] = ()


@dataclass(frozen=True, slots=True)
class Unfed:
    """Names a stream for which queries wait in vain.

    `unread` is the first file whose stream no query reads; it may have been meant for this stream.
    """

    stream: str
    readers: tuple[str, ...]
    unread: Path | None

    def __str__(self) -> str:
        option = shlex.quote(f"{self.stream}={self.unread or 'FILE'}")
        return f"{_listed(self.readers)} the stream <{self.stream}>, which stays empty: no file and no rule writes it; give --stream {option}"


@dataclass(frozen=True, slots=True)
class Unsliced:
    """Names the queries for which the log cannot be cut into slices, with the reason of each."""

    reasons: Mapping[str, str]

    def __str__(self) -> str:
        told = "; ".join(f"{name}: {reason}" for name, reason in [*self.reasons.items()][:_NAMED])
        return f"the log is evaluated as a whole, because queries look back without a bound: {told}"


@dataclass(frozen=True, slots=True)
class WrongUnit:
    """Says that the times of a stream look like numbers of another unit."""

    stream: str
    reason: str

    def __str__(self) -> str:
        return f"stream {self.stream}: its {self.reason}"


Doubt = Unfed | Unsliced | LeftOut | WrongUnit


def run(
    replay: Replay,
    fmt: str,
    out: BinaryIO,
    clock: Callable[[], Micros],
    tell: Callable[[ReplayStep], None],
    doubt: Callable[[Doubt], None],
    *,
    explains: bool = False,
) -> ReplaySummary:
    """Write the solutions to `out`.

    If the run `explains`, queries without solutions are diagnosed. Raises: SourceFault, RunnerFailed.
    """
    _check_names(replay.queries)
    shapes = {query.name: _checked(query, replay.queries[:before], replay.policies) for before, query in enumerate(replay.queries)}
    _check_format(fmt, replay.queries, shapes)
    unfed = unfed_streams(replay.streams, shapes)
    for each in unfed:
        doubt(each)
    warned = _find_readers(unfed, shapes)
    with tempfile.TemporaryDirectory(prefix="epsparql-replay-") as directory, LogWriter(directory, clock) as log:
        letters = DeadLetters(replay.on_error, replay.dead_letters)
        entries, occurrences = write_log(log, replay, shapes, letters)
        with _solved(log, Path(directory), replay, tell, doubt) as solutions:
            _raise_failures(solutions, replay.queries)
            counts = _report(solutions, fmt, shapes, out)
        doubts: list[Doubt] = [*letters.left_out.values(), *_find_wrong_units(log.catalogue.streams.values(), clock())]
        for told in doubts:
            doubt(told)
        nothing = [name for name, count in counts.items() if not count and name not in warned] if explains else []
        silent = _explain(Path(directory), replay, nothing) if nothing else ()
        return ReplaySummary(entries, occurrences, counts, tuple(letters.left_out.values()), tuple(silent))


def _find_wrong_units(streams: Iterable[Stream], now: Micros) -> list[WrongUnit]:
    found = [(stream.name, describe_wrong_unit(stream.latest, now)) for stream in streams if stream.latest is not None]
    return [WrongUnit(name, reason) for name, reason in found if reason is not None]


def diagnose_files(replay: Replay, clock: Callable[[], Micros], doubt: Callable[[Doubt], None]) -> list[Diagnosis]:
    """Diagnose the queries of a replay, without running them.

    `doubt` is told what was left out of files. Raises: SourceFault.
    """
    _check_names(replay.queries)
    shapes = {query.name: _checked(query, replay.queries[:before], replay.policies) for before, query in enumerate(replay.queries)}
    with tempfile.TemporaryDirectory(prefix="epsparql-diagnose-") as directory, LogWriter(directory, clock) as log:
        letters = DeadLetters(replay.on_error, replay.dead_letters)
        write_log(log, replay, shapes, letters)
        for each in letters.left_out.values():
            doubt(each)
        return [*_explain(Path(directory), replay, list(shapes))]


def _explain(directory: Path, replay: Replay, names: Sequence[str]) -> Iterator[Diagnosis]:
    from pipeline.replay.silent_queries import explain_silent  # most replays find something, and start sooner without it

    return explain_silent(directory, {_stream_of(file) for file in replay.streams}, names)


# ---------------------------------------------------------------- what goes in
def policies_of(wishes: Sequence[str], queries: Sequence[QueryFile]) -> dict[str, str]:
    """Return the policies by query.

    `NAME=POLICY` is for one query, `POLICY` for all that have none of their own. Raises: PolicyFault.
    """
    names = [query.name for query in queries]
    common, own = dict[str, str](), dict[str, str]()
    for wish in wishes:
        name, named, policy = wish.rpartition("=")
        policy = read_policy(policy)
        if not named:
            common = dict.fromkeys(names, policy)
        elif name in names:
            own[name] = policy
        else:
            raise PolicyFault(f"there is no query {name!r} to give a policy to; there is {', '.join(names)}")
    return common | own


def _checked(query: QueryFile, before: Sequence[QueryFile], policies: Mapping[str, str]) -> Shape:
    try:
        check_registration(query.text, {other.name: other.text for other in before}, query.name, policies)
        refuse_instances(query.text)
        return get_shape(query.text)
    except epsparql.QueryError as error:
        raise query.fault(error) from None


def _check_names(queries: Sequence[QueryFile]) -> None:
    seen: dict[str, QueryFile] = {}
    for query in queries:
        if query.name in seen:
            raise SourceFault(query.path, f"{seen[query.name].path} has the same name {query.name!r}; rename one of the files")
        seen[query.name] = query


def _check_format(fmt: str, queries: Sequence[QueryFile], shapes: dict[str, Shape]) -> None:
    """Check that the format fits at least one query.

    `json` and `csv` hold the solutions of SELECT and ASK, `turtle` those of CONSTRUCT and DESCRIBE.

    Raises: SourceFault.
    """
    if fmt == "ndjson":
        return
    wanted = "CONSTRUCT and DESCRIBE" if fmt == "turtle" else "SELECT and ASK"
    if not any(_fits(fmt, found) for found in shapes.values()):
        raise SourceFault(queries[0].path, f"--format {fmt} writes solutions of {wanted} queries, and none is given", expected="--format ndjson")


def _fits(fmt: str, found: Shape) -> bool:
    return isinstance(found.form, Triples) == (fmt == "turtle")


def unfed_streams(files: Sequence[NamedFile | NamedBody], shapes: Mapping[str, Shape]) -> list[Unfed]:
    """Return the streams without events on which the queries rest, in order of their names."""
    given = {_stream_of(file) for file in files}
    read = {stream for found in shapes.values() for stream in found.streams}
    unread = next((file.path for file in files if _stream_of(file) not in read), None)
    written = find_written(shapes.values())
    empty = find_unfed(read, written, find_alive(written, given))
    return [Unfed(stream, tuple(name for name, found in shapes.items() if stream in found.streams), unread) for stream in empty]


def _find_readers(unfed: Sequence[Unfed], shapes: Mapping[str, Shape]) -> set[str]:
    """Return the queries that rest on streams without events, of which the user was told."""
    empty, written = {each.stream for each in unfed}, find_written(shapes.values())
    return {name for name, found in shapes.items() if not empty.isdisjoint(find_sources(found.streams, written))}


def _listed(names: Sequence[str]) -> str:
    """Return the names as a list with the verb that fits their number."""
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"{shown} {'reads' if len(names) == 1 else 'read'}"


def _stream_of(file: NamedFile | NamedBody) -> str:
    return file.name or _DEFAULT_STREAM


def _streams(replay: Replay, letters: DeadLetters) -> list[tuple[str, list[pa.RecordBatch]]]:
    by_stream = {file.name: read_mapping_file(file.path, replay.names.base) for file in replay.mappings}
    streams: dict[str, list[pa.RecordBatch]] = {}
    for file in replay.streams:
        stream = _stream_of(file)
        mapping = by_stream.get(stream, by_stream.get(""))
        streams.setdefault(stream, []).extend(occurrences_of(file, mapping, letters, rounds=replay.rounds, names=replay.names))
    return list(streams.items())


def write_log(log: LogWriter, replay: Replay, shapes: Mapping[str, Shape], letters: DeadLetters | None = None) -> tuple[int, int]:
    """Write the background, the queries, the events, and the end of every stream that has events, or is read and not
    derived.

    Return how many messages the events are, and how many occurrences. Raises: SourceFault.
    """
    if replay.entailment != RDFS:
        log.submit_entry(lambda offset: Entail(offset, replay.entailment), queueing=Queueing.WAIT)
    for graph, triples in (fact for file in replay.background for fact in facts_of(file)):
        log.append(lambda offset, graph=graph, triples=triples: Facts(offset, graph, triples))  # type: ignore[misc]  # written before the next part is read
    fed = OrderedStreams.from_batches(_streams(replay, letters or DeadLetters()))
    for query in replay.queries:
        policy = replay.policies.get(query.name, UNRESTRICTED)
        log.submit_entry(
            lambda offset, query=query, policy=policy: Register(offset, query.name, query.text, policy, replay.default_graph, node_names=NODE_NAMES),  # type: ignore[misc]
            queueing=Queueing.WAIT,
        )
    derived = {found.into for found in shapes.values()}
    read = {stream for found in shapes.values() for stream in found.streams} - derived
    streams = dict.fromkeys(fed.names) | dict.fromkeys(sorted(read))
    for name in streams:
        log.submit_entry(lambda offset, name=name: SetStream(offset, name), queueing=Queueing.WAIT)  # type: ignore[misc]
    entries = occurrences = 0
    for name, rows in fed.read_blocks():
        log.submit(name, rows, queueing=Queueing.WAIT)
        entries, occurrences = entries + 1, occurrences + rows.num_rows
    for name in streams:
        log.append(lambda offset, name=name: Finish(offset, name))  # type: ignore[misc]
    return entries, occurrences


# ---------------------------------------------------------------- the run
@contextmanager
def _solved(
    log: LogWriter, directory: Path, replay: Replay, tell: Callable[[ReplayStep], None], doubt: Callable[[Doubt], None]
) -> Iterator[SolutionReader]:
    """Run the log and yield the solution log once it holds everything."""
    runner, moved = _choose_runner(log, directory, replay, doubt), Event()
    runner.on_commit(lambda _position: moved.set())
    runner.start()
    try:
        with closing(SolutionReader(directory)) as solutions:
            head = log.head()
            while (position := solutions.position) < head:
                if runner.state.startswith(("failed", "waiting")):
                    raise RunnerFailed(runner.state)
                tell(ReplayStep(position, head))
                moved.wait(_LOOK_S)
                moved.clear()
            tell(ReplayStep(head, head))
            yield solutions
    finally:
        runner.stop()


def _choose_runner(log: LogWriter, directory: Path, replay: Replay, doubt: Callable[[Doubt], None]) -> LogRunner:
    """Return what evaluates the log: in slices where that is worth it and the queries allow it, else as a whole."""
    on_spark = replay.runner == "spark"
    cores = _count_cores(replay.master if on_spark else "local[*]")
    works, unbounded = plan_log(directory, cores, replay.slices) if replay.slices != 1 else ([], {})
    if len(works) > 1:
        return SliceRunner(directory, lambda: _evaluate_slices(directory, replay, works, cores))
    if replay.slices is not None and unbounded:
        doubt(Unsliced(unbounded))
    if on_spark:
        from pipeline.spark.supervisor import SparkRunner  # only where Spark is wanted

        return SparkRunner(directory, replay.master)
    return InProcessRunner(directory, log.reader())


def _evaluate_slices(directory: Path, replay: Replay, works: Sequence[SliceWork], cores: int) -> Generator[SlicePiece, None, None]:
    if replay.runner == "spark":
        from pipeline.spark.slice_tasks import run_with_session

        return run_with_session(replay.master, works, cores, directory / "spark.log")
    return SliceThreads(min(cores, len(works))).evaluate_slices(works)


def _count_cores(master: str) -> int:
    """Return how many cores a local master has; for a cluster, as many slices are at work as one machine of it may
    have cores.
    """
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if found is None:
        return _CLUSTER_TASKS
    return count_cores() if found[1] in (None, "*") else int(found[1])


def _raise_failures(solutions: SolutionReader, queries: Sequence[QueryFile]) -> None:
    for change in solutions.changes:
        if change.state == "failed":
            path = next(query.path for query in queries if query.name == change.name)
            raise SourceFault(path, f"the query failed: {change.reason}")


# ---------------------------------------------------------------- what comes out
def _report(solutions: SolutionReader, fmt: str, shapes: dict[str, Shape], out: BinaryIO) -> dict[str, int]:
    counts, forms = dict.fromkeys(shapes, 0), {name: found.form for name, found in shapes.items()}
    kept: dict[str, list[pa.RecordBatch]] = {name: [NONE_STORED] for name, found in shapes.items() if fmt != "ndjson" and _fits(fmt, found)}
    for page in solutions.emitted():
        _count(page, counts)
        if fmt == "ndjson":
            for first in range(0, page.num_rows, _WRITTEN_ROWS):
                out.write(ndjson(page.slice(first, _WRITTEN_ROWS), forms).text)
        for name in kept:
            kept[name].append(page.filter(pc.equal(page.column("query"), name)))
    pages = {name: pa.concat_batches(found) for name, found in kept.items()}
    if fmt == "turtle":
        out.write(write_page(TURTLE, pa.concat_batches(list(pages.values())), Triples()))
    elif fmt == "json" and len(pages) > 1:
        documents = {name: json.loads(write_page(SPARQL_JSON, page, forms[name])) for name, page in pages.items()}
        out.write(json.dumps(documents, ensure_ascii=False).encode() + b"\n")
    else:
        for name, page in pages.items():
            out.write(write_page(FORMATS[fmt], page, forms[name]).rstrip(b"\n") + b"\n")
    out.flush()
    return counts


def _count(page: pa.RecordBatch, counts: dict[str, int]) -> None:
    """Count the solutions of a page by query."""
    queries = page.column("query")
    for name, count in zip(
        queries.dictionary.to_pylist(), np.bincount(queries.indices.to_numpy(), minlength=len(queries.dictionary)).tolist(), strict=True
    ):
        counts[name] += count
