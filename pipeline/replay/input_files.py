"""Reads the events and the background that a replay is given, in files and in memory.

A fault names file, line and column.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import int64s
from epsparql.deferred_methods import dataclass
from epsparql.events.media_types import MAPPED_SUFFIXES, SUFFIXES
from pipeline.errors import FormatError, InvalidMapping, locate_undecodable
from pipeline.formats.background import graph_of, read_parts, syntax_of
from pipeline.formats.body_parser import NDJSON, RDF_XML, UNTIMED, Interval, media_type_of, parse_body
from pipeline.formats.etalis import check_event_nodes
from pipeline.formats.namespaces import NO_NAMES, Namespaces, find_prefix_fault
from pipeline.formats.ndjson import take_header
from pipeline.formats.reading_rules import ReadingRules, is_blank
from pipeline.formats.short_terms import ShortTerms
from pipeline.log.background_graphs import quads_of
from pipeline.log.encoding.own_terms import with_own_terms
from pipeline.mapping.mapper import LONGEST_TEXT, MOST_REJECTED, map_body, refuse_rejected
from pipeline.mapping.mapping import Mapping, compile_mapping
from pipeline.rejected_rows import Rejected
from pipeline.replay.dead_letters import DeadLetters
from pipeline.replay.query_files import NamedFile, SourceFault, read_file

_TIMED = {NDJSON: '"at", or "start" and "end"', RDF_XML: "prov:generatedAtTime of one of its subjects"}
_EVENT_MEMBERS = frozenset("spo"), frozenset({"triples"}), frozenset({"prefixes"})
_LONGEST_LOOK = 1 << 20  # bytes of a line that are looked at
_UNBOUNDED = 1 << 62  # a file is in memory as a whole, and so may its rows at fault be
_PART_BYTES = 4 << 20
"""About so many bytes of a file of lines are parsed at a time. So the parser's tables stay in the processor's caches."""
BLOCK_ROWS = 10_000
"""About this many occurrences of all streams together are fed at a time, since one message costs as much as many
occurrences.
"""


@dataclass(frozen=True, slots=True)
class NamedBody:
    """Holds events in memory, of the stream `name`; `path` is what messages call them.

    Events without a time stand at `at`, if that is given.
    """

    name: str
    path: Path
    body: bytes
    media_type: str
    at: Interval | None = None
    mapping: str = ""


def read_names(base: str, prefixes: Sequence[str]) -> Namespaces:
    """Return the names that events' terms may have: prefixes, each `NAME=IRI`, and a base, "" for none.

    Raises: SourceFault.
    """
    if base and find_prefix_fault({"": base}) is not None:
        raise SourceFault("--base", f"{base[:64]!r} is no absolute IRI", expected="an IRI such as http://example.org/")
    found = dict[str, str]()
    for each in prefixes:
        name, named, iri = each.partition("=")
        fault = find_prefix_fault({name.removesuffix(":"): iri}) if named else f"{each[:64]!r} names no IRI"
        if fault is not None:
            raise SourceFault("--prefix", fault, expected="NAME=IRI, such as ex=http://example.org/")
        found[name.removesuffix(":")] = iri
    return Namespaces(base, found)


def read_mapping_file(path: Path, base: str = "") -> Mapping:
    """Return the mapping of a file; `base` stands in for a base of its own. Raises: SourceFault."""
    try:
        return _compile(read_file(path).decode("utf-8-sig"), path, base)
    except UnicodeDecodeError as error:
        raise SourceFault(path, "the file is not UTF-8", *locate_undecodable(error), "UTF-8 text") from None


def _compile(text: str, path: Path, base: str) -> Mapping:
    try:
        return compile_mapping(text, base)
    except InvalidMapping as error:
        raise SourceFault(path, str(error)) from None


def map_rows(body: bytes, media_type: str, mapping: Mapping, path: Path, letters: DeadLetters) -> pa.RecordBatch:
    """Return the occurrences that a mapping makes of a body, which messages call `path`.

    Raises: SourceFault, also where a row does not map and `letters` refuse it.
    """
    if not mapping.time:
        raise SourceFault(path, "its mapping names no time, which a file's rows need", expected="time, the name of the field")
    try:
        mapped = map_body(body, media_type, mapping, Interval(UNTIMED, UNTIMED), MOST_REJECTED if letters.refuses else _UNBOUNDED)
        if letters.refuses:
            return refuse_rejected(mapped).batch
    except (FormatError, InvalidMapping) as error:
        raise SourceFault(path, error.message, expected=error.expected) from None
    _keep_apart(letters, path, mapped.rejected)
    return mapped.batch


def _keep_apart(letters: DeadLetters, path: Path, rows: Sequence[Rejected]) -> None:
    """Keep rows of a file apart. Raises: SourceFault where they cannot be written."""
    try:
        letters.add(path, rows)
    except OSError as error:
        raise SourceFault(letters.path, error.strerror or str(error), expected="a file of dead letters that can be written") from None


def occurrences_of(
    source: NamedFile | NamedBody,
    mapping: Mapping | None = None,
    letters: DeadLetters | None = None,
    *,
    rounds: bool = False,
    names: Namespaces = NO_NAMES,
) -> list[pa.RecordBatch]:
    """Return the occurrences of a stream's file or body, in parts. `letters` take the rows and lines of ndjson that
    cannot be read.

    With `rounds`, times finer than a microsecond are rounded. Terms of ndjson may have the names of the mapping, and
    `names`, which count before them.

    Raises: SourceFault, also for an event without a time, an empty file, or one that describes an event of ETALIS
    that it does not bring.
    """
    found = _read_occurrences(source, mapping, letters or DeadLetters(), names, rounds=rounds)
    try:
        check_event_nodes(found)
    except FormatError as error:
        raise SourceFault(source.path, error.message, expected=error.expected) from None
    return found


def _read_occurrences(
    source: NamedFile | NamedBody, mapping: Mapping | None, letters: DeadLetters, names: Namespaces, *, rounds: bool
) -> list[pa.RecordBatch]:
    path = source.path
    if isinstance(source, NamedBody) and source.mapping:
        mapping = _compile(source.mapping, path, names.base)
    known = mapping.names.declare(names.prefixes) if mapping is not None else names
    rules = ReadingRules(ShortTerms(known), rounds)
    mapped_type = source.media_type if isinstance(source, NamedBody) else MAPPED_SUFFIXES.get(path.suffix.lower(), "")
    if mapping is not None and mapped_type in MAPPED_SUFFIXES.values() and not _holds_events(source, mapping):
        return [map_rows(read_body(source), mapped_type, mapping.rounded() if rounds else mapping, path, letters)]
    is_ndjson = isinstance(source, NamedBody) and source.media_type == NDJSON  # whatever the body's name ends with
    if not is_ndjson and path.suffix.lower() in (".csv", ".tsv", ".json", ".log", ".txt"):
        raise SourceFault(path, "a mapping says what its fields mean, and none is given", expected="--mapping FILE, which epsparql map proposes")
    try:
        media_type = source.media_type if isinstance(source, NamedBody) else media_type_of(path)
    except FormatError as error:
        raise SourceFault(path, error.message, expected=error.expected) from None
    if media_type != NDJSON:
        return [_parse_part(read_body(source), 0, media_type, source, rules)]
    found, begin, blank = list[pa.RecordBatch](), 0, True
    for part in _read_parts(source):
        lines, rules = (part, rules) if begin else _take_header(part, rules, source)
        found.append(_parse_lines(lines, begin, source, letters, rules))
        begin, blank = begin + len(part), blank and is_blank(part)
    if blank and isinstance(source, NamedFile):
        raise _empty_file(path)
    return found


def _holds_events(source: NamedFile | NamedBody, mapping: Mapping) -> bool:
    """Tell whether a file of ndjson has events and no rows: its first object has an event's members, and the mapping
    reads none of them.
    """
    if isinstance(source, NamedBody) or SUFFIXES.get(source.path.suffix.lower()) != NDJSON:
        return False
    try:
        with source.path.open("rb") as file:
            first = next((line for line in iter(lambda: file.readline(_LONGEST_LOOK), b"") if not is_blank(line.removeprefix(BOM_UTF8))), b"")
        found = json.loads(first.removeprefix(BOM_UTF8))
    except (OSError, ValueError):
        return False  # reading the file says what is wrong
    members = next((each for each in _EVENT_MEMBERS if isinstance(found, dict) and each <= found.keys()), frozenset())
    return bool(members) and members.isdisjoint(mapping.fields)


def _take_header(part: bytes, rules: ReadingRules, source: NamedFile | NamedBody) -> tuple[bytes, ReadingRules]:
    """Return a body's first part, with an empty line for one that declares prefixes, and the rules that hold for all
    parts. Raises: SourceFault.
    """
    try:
        return take_header(part.removeprefix(BOM_UTF8), rules)
    except FormatError as error:
        raise SourceFault(source.path, error.message, error.line, error.column, error.expected) from None


def read_body(source: NamedFile | NamedBody) -> bytes:
    """Return the bytes of a stream's file or body. Raises: SourceFault, also for an empty file."""
    if isinstance(source, NamedBody):
        return source.body
    body = read_file(source.path)
    if is_blank(body):
        raise _empty_file(source.path)
    return body


def _empty_file(path: Path) -> SourceFault:
    return SourceFault(path, "the file is empty, so it brings no events", expected="at least one event")


def _read_parts(source: NamedFile | NamedBody) -> Iterator[bytes]:
    """Yield a body in parts of whole lines. Raises: SourceFault."""
    with ExitStack() as stack:
        try:
            file: BinaryIO = BytesIO(source.body) if isinstance(source, NamedBody) else stack.enter_context(source.path.open("rb"))
            while part := file.read(_PART_BYTES):
                yield part + file.readline()
        except OSError as error:
            raise SourceFault(source.path, error.strerror or str(error)) from None


def _parse_lines(part: bytes, begin: int, source: NamedFile | NamedBody, letters: DeadLetters, rules: ReadingRules) -> pa.RecordBatch:
    """Return the occurrences of lines of ndjson that begin at the byte `begin`. Lines at fault are kept apart, unless
    `letters` refuse them.

    Raises: SourceFault.
    """
    try:
        return _parse_part(part, begin, NDJSON, source, rules)
    except SourceFault:
        if letters.refuses:
            raise
    lines, before = part.split(b"\n"), _count_lines(source, begin)
    faults = _find_faults(lines, source, rules)
    rows = [Rejected(before + line + 1, "", reason, lines[line].decode(errors="replace")[:LONGEST_TEXT]) for line, reason in faults.items()]
    _keep_apart(letters, source.path, rows)
    return _parse_body(b"\n".join(line for number, line in enumerate(lines) if number not in faults), NDJSON, source, rules)


def _find_faults(lines: Sequence[bytes], source: NamedFile | NamedBody, rules: ReadingRules) -> dict[int, str]:
    """Return the lines that cannot be read, in order, with the reasons.

    Halves with a fault are halved again, so a fault costs some short parses.
    """
    found, waiting = dict[int, str](), [(0, len(lines))]
    while waiting:
        first, after = waiting.pop()
        try:
            _parse_body(b"\n".join(lines[first:after]), NDJSON, source, rules)
        except SourceFault as fault:
            middle = (first + after) // 2
            if after - first == 1:
                found[first] = fault.message + (f"; expected {fault.expected}" if fault.expected else "")
            else:
                waiting += [(middle, after), (first, middle)]
    return found


def _parse_part(part: bytes, begin: int, media_type: str, source: NamedFile | NamedBody, rules: ReadingRules) -> pa.RecordBatch:
    """Return the occurrences of the part of a body that begins at the byte `begin`. Raises: SourceFault."""
    try:
        return _parse_body(part, media_type, source, rules)
    except SourceFault as fault:
        line = None if fault.line is None else _count_lines(source, begin) + fault.line
        raise SourceFault(fault.path, fault.message, line, fault.column, fault.expected) from None


def _parse_body(part: bytes, media_type: str, source: NamedFile | NamedBody, rules: ReadingRules) -> pa.RecordBatch:
    """Return the occurrences of a part of a body. Raises: SourceFault, with the line in the part."""
    path, at = source.path, source.at if isinstance(source, NamedBody) else None
    try:
        batch = parse_body(part, media_type, default=at, arrived=UNTIMED, rules=rules)
    except FormatError as error:
        raise SourceFault(path, error.message, error.line, error.column, error.expected) from None
    untimed = int64s(batch.column("end")) == UNTIMED if batch.num_rows else np.empty(0, np.bool_)
    if untimed.any():
        line = _untimed_line(part) if media_type == NDJSON else 1
        first = batch.slice(int(np.argmax(untimed)), 1)
        triple = " ".join(first.column(name)[0].as_py() for name in ("s", "p", "o"))
        raise SourceFault(path, f"the event {triple} has no time", line, 1, _TIMED.get(media_type, "a graph that is timed"))
    if batch.column("late").true_count:
        raise SourceFault(path, "a replay takes nothing back", 1, 1, "events without retractions, for example those that remained")
    return batch


def _count_lines(source: NamedFile | NamedBody, end: int) -> int:
    """Return how many lines of a body end before a byte."""
    return read_body(source).count(b"\n", 0, end)


def _untimed_line(body: bytes) -> int:
    """Return the number of the first line without a time. The body was parsed before, so each line is an object."""
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip() and not {"at", "start"} & json.loads(line).keys():
            return number
    return 1


def facts_of(file: NamedFile) -> Iterator[tuple[str, str]]:
    """Yield the file's graphs ("" for none) with their triples as N-Triples text, large graphs in parts.

    Triples in no graph go to the graph that the command line names for the file.

    Raises: SourceFault.
    """
    try:
        syntax, graph = syntax_of(file.path), graph_of(file.name)
        with file.path.open("rb") as opened:
            if opened.read(len(BOM_UTF8)) != BOM_UTF8:
                opened.seek(0)
            yield from read_parts(opened, syntax, graph)
    except OSError as error:
        raise SourceFault(file.path, error.strerror or str(error)) from None
    except FormatError as error:
        raise SourceFault(file.path, error.message, error.line, error.column, error.expected) from None


def nquads_of(files: Sequence[NamedFile]) -> str:
    """Return the background of these files as N-Quads text. Raises: SourceFault."""
    return "".join(quads_of(triples.splitlines(), graph) for file in files for graph, triples in facts_of(file))


@dataclass(frozen=True, slots=True, eq=False)
class _OrderedRows:
    """Holds a stream's rows in order of `end`, in batches with dictionaries of their own; `begins` numbers the first
    row of each batch.
    """

    stream: str
    batches: Sequence[pa.RecordBatch]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def from_batches(cls, stream: str, batches: Sequence[pa.RecordBatch]) -> "_OrderedRows":
        """Sort rows by their ends. Those that stand in order already, as in most files, stay in their batches."""
        ends = np.concatenate([np.empty(0, np.int64), *(int64s(batch.column("end")) for batch in batches if batch.num_rows)])
        if bool((ends[1:] < ends[:-1]).any()):
            order = np.argsort(ends, kind="stable")
            batches = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().take(pa.array(order)).to_batches()
            ends = ends[order]
        sizes = [batch.num_rows for batch in batches]
        return cls(stream, batches, np.cumsum(sizes) - sizes, ends)

    def read_rows(self, first: int, count: int) -> pa.RecordBatch:
        """Return some rows, with their own terms alone in the dictionaries."""
        found, k = list[pa.RecordBatch](), int(np.searchsorted(self.begins, first, side="right")) - 1
        while count:
            part = self.batches[k].slice(first - int(self.begins[k]), count)
            found.append(with_own_terms(part))
            first, count, k = first + part.num_rows, count - part.num_rows, k + 1
        return found[0] if len(found) == 1 else pa.concat_batches(found)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedStreams:
    """Holds the occurrences of streams, which come in order of their first ends."""

    streams: Sequence[_OrderedRows]

    @classmethod
    def from_batches(cls, streams: Sequence[tuple[str, Sequence[pa.RecordBatch]]]) -> "OrderedStreams":
        """Sort the occurrences of streams. A stream without any is left out."""
        found = [_OrderedRows.from_batches(name, batches) for name, batches in streams]
        return cls(sorted((rows for rows in found if len(rows.ends)), key=lambda rows: int(rows.ends[0])))

    @property
    def names(self) -> list[str]:
        return [rows.stream for rows in self.streams]

    def read_blocks(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the streams' occurrences in blocks of about BLOCK_ROWS, each of whole instants, with the name of the
        stream.

        A span of time is over in all streams before the next begins, so no occurrence is late.
        """
        for index, first, count in _blocks([_find_instants(index, rows.ends) for index, rows in enumerate(self.streams)]):
            yield self.streams[index].stream, self.streams[index].read_rows(first, count)


@dataclass(frozen=True, slots=True)
class _Instants:
    """Holds the instants at which occurrences end, with the number of their stream, the first row there, and the
    number of rows.
    """

    ends: NDArray[np.int64]
    streams: NDArray[np.int64]
    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]


def _find_instants(stream: int, ends: NDArray[np.int64]) -> _Instants:
    firsts = np.flatnonzero(np.diff(ends, prepend=ends[0] - 1))
    return _Instants(ends[firsts], np.full(len(firsts), stream), firsts, np.diff(firsts, append=len(ends)))


def _blocks(pieces: Sequence[_Instants]) -> Iterator[tuple[int, int, int]]:
    """Yield streams with first row and number of rows, block by block. A stream's rows follow each other."""
    if not pieces:
        return
    ends, streams, firsts, counts = (np.concatenate([getattr(each, name) for each in pieces]) for name in ("ends", "streams", "firsts", "counts"))
    order = np.argsort(ends, kind="stable")  # at one instant, the streams stay in order
    streams, firsts, counts = streams[order], firsts[order], counts[order]
    taken, begin = np.cumsum(counts), 0
    while begin < len(order):
        before = int(taken[begin - 1]) if begin else 0
        after = max(int(np.searchsorted(taken, before + BLOCK_ROWS, side="right")), begin + 1)
        found, places = np.unique(streams[begin:after], return_index=True)
        sizes = np.bincount(streams[begin:after], weights=counts[begin:after])
        for place, stream in sorted(zip(places.tolist(), found.tolist(), strict=True)):
            yield stream, int(firsts[begin + place]), int(sizes[stream])
        begin = after
