"""Reads and writes timelines: pictures of the events that a query reads, and of the solutions that it has.

    seconds                                  | 0    5
    :acme :price 100 on <trades>             | o
    :acme :price 120 on <trades>             |         o
    => ?company=:acme ?before=100 ?after=120 | [-------]

The first line names the unit of one column. The other lines show a triple, or after `=>` a solution, and when it
holds: `o` is an instant, `[--]` an interval, and `always` marks background. `in :g` puts a triple into a graph, and
`on <trades>` into a stream.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import pyoxigraph as ox

from engine.triples.quads import written
from epsparql.deferred_methods import dataclass
from pipeline.formats.batches.timestamps import instant, iso
from pipeline.query_tests.solutions import Solution, parse_solution, term_object
from pipeline.replay.query_files import SourceFault

ORIGIN = instant("2026-01-01T00:00:00Z")
"""This is the time of the first column, in microseconds since 1970."""
PREFIXES = {"": "http://example.org/", "xsd": "http://www.w3.org/2001/XMLSchema#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
"""These are declared where the query declares no prefix of the same name."""
UNITS = {"seconds": 1_000_000, "minutes": 60_000_000, "hours": 3_600_000_000, "days": 86_400_000_000}
MAX_LINES = 10_000
_MARK = re.compile(r"o|\[-*\]")
_PREFIX = re.compile(r"\bPREFIX\s+([\w.-]*):\s*<([^<>\s]*)>", re.IGNORECASE)
_PAIR = re.compile(r"\?(\w+)=")
_NUMBER = re.compile(r"[+-]?\d+")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Holds what a picture shows.

    `streams` has ndjson events by stream, `background` has N-Quads.
    """

    streams: Mapping[str, str]
    background: str
    expected: tuple[Solution, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    label: str
    times: tuple[tuple[int, int], ...]  # first and last instant, in microseconds; none: always

    @property
    def is_solution(self) -> bool:
        return self.label.startswith("=>")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the lines of one picture. `path` and `first`, the number of the line before it, are for messages."""

    path: Path
    first: int
    prefixes: Mapping[str, str]

    def lines(self, text: str) -> Iterator[_Line]:
        head, *rest = text.splitlines() or [""]
        unit = UNITS.get(head.partition("|")[0].strip())
        if unit is None:
            raise self.fault(0, f"the first line of a timeline begins with one of {', '.join(UNITS)}, and counts the columns", "seconds | 0    5")
        if len(rest) > MAX_LINES:
            raise self.fault(MAX_LINES, f"the timeline has more than {MAX_LINES:,} lines; give the events in a file such as stream.ndjson")
        for number, line in enumerate(rest, 1):
            if line.strip() and not line.startswith("#"):
                yield self._line(number, line, unit)

    def _line(self, number: int, line: str, unit: int) -> _Line:
        label, bar, marks = line.partition(" | ")
        if not bar:
            raise self.fault(number, "the line has no ` | ` between what it shows and when that holds")
        if marks.strip() == "always":
            return _Line(number, label.strip(), ())
        if _MARK.sub("", marks).strip():
            raise self.fault(number, f"{marks.strip()!r} shows no times", "o for an instant, [--] for an interval, or always")
        times = tuple((ORIGIN + found.start() * unit, ORIGIN + (found.end() - 1) * unit) for found in _MARK.finditer(marks))
        if not times:
            raise self.fault(number, "the line shows no time", "o for an instant, [--] for an interval, or always")
        return _Line(number, label.strip(), times)

    def event(self, line: _Line) -> tuple[str, ox.Quad]:
        """Return the stream and the quad of a line."""
        triple, _, stream = line.label.partition(" on ")
        triple, _, graph = triple.partition(" in ")
        return stream.strip().strip("<>") or "default", self.quad(line, triple, graph.strip())

    def quad(self, line: _Line, text: str, graph: str = "") -> ox.Quad:
        body = f"{graph} {{ {text} }}" if graph else f"{text} ."
        head = "".join(f"@prefix {name}: <{iri}> ." for name, iri in self.prefixes.items())
        try:
            quads = list(ox.parse(head + body, ox.RdfFormat.TRIG))
        except SyntaxError as error:
            reason = error.msg.partition(": ")[2]  # before it stands a column of a text with the prefixes
            raise self.fault(line.number, f"{text!r} is no triple: {reason}", "a triple as Turtle writes it, without the dot") from None
        if len(quads) != 1:
            raise self.fault(line.number, f"{text!r} is {len(quads)} triples", "one triple in each line")
        found: ox.Quad = quads[0]
        return found

    def solution(self, line: _Line) -> Solution:
        label = line.label.removeprefix("=>").strip()
        if len(line.times) != 1:
            raise self.fault(line.number, "a solution has one interval")
        (start, end), told = line.times[0], dict[str, object]()
        if label in ("true", "false"):
            told["boolean"] = label == "true"
        elif label.startswith("?") or not label:
            told["binding"] = {name: term_object(self.quad(line, f"[] <x:p> {value}").object) for name, value in _pairs(label)}
        else:
            found = self.quad(line, label)
            told["triples"] = f"{found.subject} {found.predicate} {found.object} ."
        return parse_solution({"start": iso(start), "end": iso(end), **told})

    def fault(self, number: int, message: str, expected: str = "") -> SourceFault:
        return SourceFault(self.path, message, self.first + number + 1, None, expected)


def _pairs(label: str) -> Iterator[tuple[str, str]]:
    """Yield the variables and their terms of `?a=:x ?b="a text"`."""
    found = list(_PAIR.finditer(label))
    for pair, after in zip_longest(found, found[1:]):
        yield pair[1], label[pair.end() : after.start() if after else None].strip()


def prefixes_of(query: str) -> dict[str, str]:
    """Return the prefixes with which the timeline of a query is written."""
    return PREFIXES | dict(_PREFIX.findall(query))


def declare_prefixes(query: str) -> str:
    """Return the query with those of `PREFIXES` declared that it does not declare; its lines keep their numbers."""
    declared = dict(_PREFIX.findall(query))
    return "".join(f"PREFIX {name}: <{iri}> " for name, iri in PREFIXES.items() if name not in declared) + query


def parse_timeline(text: str, path: Path, query: str, first: int = 0) -> Timeline:
    """Parse a picture. `first` is the number of lines of the file before it. Raises: SourceFault."""
    reader = _Reader(path, first, prefixes_of(query))
    streams: dict[str, list[str]] = {}
    background: list[str] = []
    expected: list[Solution] = []
    for line in reader.lines(text):
        if line.is_solution:
            expected.append(reader.solution(line))
            continue
        stream, quad = reader.event(line)
        if not line.times:
            background.append(f"{quad} .\n")
        named = {} if isinstance(quad.graph_name, ox.DefaultGraph) else {"g": str(quad.graph_name)}
        event = {"s": str(quad.subject), "p": str(quad.predicate), "o": written(quad.object)} | named
        for start, end in line.times:
            streams.setdefault(stream, []).append(json.dumps(event | {"start": iso(start), "end": iso(end)}) + "\n")
    return Timeline({name: "".join(lines) for name, lines in streams.items()}, "".join(background), tuple(expected))


def update_timeline(text: str, path: Path, query: str, found: Iterable[Solution]) -> str:
    """Return the picture with the solutions that were found in place of those that it shows.

    Raises: SourceFault where they cannot be drawn.
    """
    reader = _Reader(path, 0, prefixes_of(query))
    unit = UNITS[text.partition("|")[0].strip()]
    kept = [line for line in text.splitlines() if not line.startswith("=>")]
    drawn = [(f"=> {_draw_label(solution, reader.prefixes)}", _draw_interval(solution, unit, reader)) for solution in found]
    width = max((len(label) for label in [*(label for label, _ in drawn), *(line.partition(" | ")[0].rstrip() for line in kept)]), default=0)
    lines = [(line.partition(" | ")[0].rstrip().ljust(width) + " | " + line.partition(" | ")[2] if " | " in line else line) for line in kept]
    return "\n".join([*lines, *(f"{label.ljust(width)} | {interval}" for label, interval in drawn)]) + "\n"


def _draw_interval(solution: Solution, unit: int, reader: _Reader) -> str:
    start, end = (instant(time) - ORIGIN for time in (solution.start, solution.end))
    if start < 0 or start % unit or end % unit or end // unit > 10_000:
        raise reader.fault(0, f"a solution on [{solution.start}, {solution.end}] cannot be drawn in this unit; use stream.ndjson and expected.ndjson")
    first, last = start // unit, end // unit
    return " " * first + ("o" if first == last else "[" + "-" * (last - first - 1) + "]")


def _draw_label(solution: Solution, prefixes: Mapping[str, str]) -> str:
    if solution.boolean is not None:
        return str(solution.boolean).lower()
    if solution.triples is not None:
        (quad,) = ox.parse(solution.triples, ox.RdfFormat.N_TRIPLES)
        return " ".join(_shorten_term(written(term), prefixes) for term in (quad.subject, quad.predicate, quad.object))
    return " ".join(f"?{name}={_shorten_term(term, prefixes)}" for name, term in solution.binding)


def _shorten_term(term: str, prefixes: Mapping[str, str]) -> str:
    """Return a term in N-Triples as Turtle writes it shortly."""
    if term.startswith("<"):
        for name, iri in prefixes.items():
            rest = term[1:-1].removeprefix(iri)
            if len(rest) < len(term) - 2 and re.fullmatch(r"\w+", rest, re.ASCII):
                return f"{name}:{rest}"
    text, _, datatype = term.partition('"^^<http://www.w3.org/2001/XMLSchema#')
    plain = text[1:]
    if (datatype == "integer>" and _NUMBER.fullmatch(plain)) or (datatype == "decimal>" and re.fullmatch(r"[+-]?\d*\.\d+", plain)):
        return plain
    return plain if datatype == "boolean>" and plain in ("true", "false") else term
