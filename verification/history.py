"""This module holds what the input log of a data directory says, by stream and in order of time."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import epsparql
from epsparql.algebra import Query
from epsparql.errors import QueryError
from epsparql.terms import Iri
from verification.definitions.model import Fact, Micros, Occurrence
from verification.definitions.patterns import Settings
from verification.definitions.rdfs import closed
from verification.frames import read_begin
from verification.log_files import OCCURRENCE_COLUMNS, Entry, parse_term, parse_triples, read_log

MARK = (1 << 31) - 1
"""A mark has so many bits of the checksum of a frame's payload."""
END_OF_TIME: Micros = 1 << 61
"""A finished stream has this watermark."""


@dataclass(frozen=True, slots=True)
class Registration:
    """Represents a query as it was registered; `query` is None for a text that is not EP-SPARQL alone."""

    offset: int
    name: str
    query: Query | None
    settings: Settings
    reads_from: int
    revised: bool


@dataclass
class StreamHistory:
    """Holds the occurrences of a stream that were in time, by their ends, and its watermark after each entry."""

    parts: list[pa.Table] = field(default_factory=list)
    rows: pa.Table | None = None
    ends: Sequence[Micros] = ()
    watermarks: list[tuple[int, Micros]] = field(default_factory=list)

    def sort(self) -> None:
        if self.parts:
            self.rows = pa.concat_tables(self.parts).sort_by("end").combine_chunks()
            self.ends, self.parts = self.rows.column("end").to_pylist(), []

    def watermark(self, position: int) -> Micros | None:
        """Return the watermark after the entries before a position, None while there is none."""
        known = bisect_left(self.watermarks, (position,))
        return self.watermarks[known - 1][1] if known else None


class History:
    """Reads a whole input log. Raises: Unreadable, FileNotFoundError."""

    def __init__(self, data_dir: Path) -> None:
        self.streams: dict[str, StreamHistory] = {}
        self.registrations: dict[int, Registration] = {}
        self.others: list[Entry] = []
        self.retractions: dict[str, int] = {}  # by stream, the first entry that takes occurrences back
        self.first = self.position = read_begin(data_dir / "log")
        self._ends, self._marks = list[int](), list[int]()
        for number, (frame, entries, rows) in enumerate(read_log(data_dir)):
            self.first = frame.first if number == 0 else self.first
            self._ends.append(frame.after)
            self._marks.append(frame.crc & MARK)
            begin = 0
            for entry in entries:
                self.position = entry.offset + 1
                if entry.kind == "events":
                    self._add_rows(entry["stream"], rows.slice(begin, entry["rows"]))
                    begin += entry["rows"]
                    if entry.members.get("retracts"):
                        self.retractions.setdefault(entry["stream"], entry.offset)
                self._apply_entry(entry)
        for stream in self.streams.values():
            stream.sort()

    def find_mark(self, position: int) -> int | None:
        """Return the mark of the frame that holds the entry before a position; None where retention has removed it,
        or there is none.
        """
        at = bisect_left(self._ends, position)
        return self._marks[at] if self.first < position <= self.position and at < len(self._marks) else None

    def _add_rows(self, name: str, rows: pa.Table) -> None:
        timely = rows.filter(pa.compute.invert(rows.column("late")))
        self.streams.setdefault(name, StreamHistory()).parts.append(timely)

    def _apply_entry(self, entry: Entry) -> None:
        match entry.kind:
            case "events" | "tick" | "finish":
                watermark = END_OF_TIME if entry.kind == "finish" else entry["watermark"]
                if entry["stream"] is not None and watermark is not None:
                    self.streams.setdefault(entry["stream"], StreamHistory()).watermarks.append((entry.offset, watermark))
            case "register":
                start = entry.members.get("reads_from")
                settings = Settings(entry["policy"], entry["default_graph"])
                query = _parse(entry["text"])
                self.registrations[entry.offset] = Registration(
                    entry.offset, entry["name"], query, settings, entry.offset if start is None else start, entry.members.get("emit") == "revised"
                )
            case _:
                self.others.append(entry)

    def facts(self, position: int) -> frozenset[Fact]:
        """Return the background after the entries before a position, with what RDFS entails. Raises: SyntaxError."""
        graphs: dict[str, list[Fact]] = {}
        for entry in self.others:
            if entry.kind == "facts" and entry.offset < position:
                graph = Iri(entry["graph"]) if entry["graph"] else None
                brought = [Fact(triple, graph) for triple in parse_triples(entry["triples"])] if entry["change"] != "drop" else []
                graphs[entry["graph"]] = [*(graphs.get(entry["graph"], []) if entry["change"] == "add" else ()), *brought]
        return closed(fact for graph in graphs.values() for fact in graph)

    def occurrences(self, name: str, after: Micros, until: Micros, reads_from: int, predicates: Collection[str] | None) -> Iterator[Occurrence]:
        """Yield the occurrences that end in (after, until], of entries from an offset on, with one of these
        predicates (None: any).
        """
        stream = self.streams.get(name)
        if stream is None or stream.rows is None:
            return
        low, high = bisect_right(stream.ends, after), bisect_right(stream.ends, until)
        part = stream.rows.slice(low, max(high - low, 0))
        columns = (part.column(column).to_pylist() for column in (*OCCURRENCE_COLUMNS, "offset"))
        for s, p, o, g, start, end, offset in zip(*columns, strict=True):
            if offset >= reads_from and (predicates is None or p in predicates):
                triple = parse_term(s), parse_term(p), parse_term(o)
                yield Occurrence(triple, start, end, None if g is None else parse_term(g))

    def has_divided_instant(self, names: Collection[str]) -> bool:
        """Return whether several entries brought occurrences of these streams that end at one instant."""
        parts = [stream.rows for name in names if (stream := self.streams.get(name)) is not None and stream.rows is not None]
        brought = {
            (end, offset) for rows in parts for end, offset in zip(rows.column("end").to_pylist(), rows.column("offset").to_pylist(), strict=True)
        }
        return len({end for end, _ in brought}) < len(brought)

    def ends(self, names: Collection[str], reads_from: int, predicates: Collection[str] | None) -> list[Micros]:
        """Return the ends of such occurrences of several streams, in order."""
        found: list[Micros] = []
        for name in names:
            stream = self.streams.get(name)
            if stream is not None and stream.rows is not None:
                columns = (stream.rows.column(column).to_pylist() for column in ("p", "end", "offset"))
                found += [end for p, end, offset in zip(*columns, strict=True) if offset >= reads_from and (predicates is None or p in predicates)]
        return sorted(found)


def _parse(text: str) -> Query | None:
    try:
        return epsparql.parse(text).query
    except QueryError:
        return None
