"""Turtle, TriG, N-Triples, N-Quads and JSON-LD, read with pyoxigraph."""

import re
from dataclasses import dataclass

import pyoxigraph as ox

from pipeline.errors import FormatError
from pipeline.ntriples import MAX_TERM, NO_DIRECTIONS, PLAIN_TAG
from pipeline.occurrences import Interval, Labels
from pipeline.times import instant
from pipeline.tokens import check_json, check_terms, place

GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
STARTS_AT = "http://streamreasoning.org/timeVocab#startsAtTime"
ENDS_AT = "http://streamreasoning.org/timeVocab#endsAtTime"
TIMING = {GENERATED_AT, STARTS_AT, ENDS_AT}
_REMOTE = re.compile(rb'"@(?:context|import)"\s*:\s*(?:\[\s*)?"')
_DATE_TIMES = {"http://www.w3.org/2001/XMLSchema#dateTime", "http://www.w3.org/2001/XMLSchema#dateTimeStamp"}

Node = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


@dataclass(frozen=True, slots=True)
class Statement:
    """One triple of a message with its canonical terms, graph (None for the default graph) and time (None: the request's)."""

    s: str
    p: str
    o: str
    g: str | None
    when: Interval | None


def parse_message(text: bytes, fmt: ox.RdfFormat, default: Interval | None, scope: bytes | None = None) -> list[Statement]:
    """The statements of one message. Raises: FormatError.

    `default` is the time of the untimed ones (None: the message's text states it) and `scope` the text that names its blank nodes (None: `text`).
    """
    quads = parse_quads(text, fmt)
    times = graph_times(quads, text)
    untimed = not all(quad.graph_name in times for quad in quads if not _timing(quad, times))
    labels = Labels(scope or text, default if untimed else None)
    return [
        Statement(
            term_text(quad.subject, labels, text),
            term_text(quad.predicate, labels, text),
            term_text(quad.object, labels, text),
            None if isinstance(quad.graph_name, ox.DefaultGraph) else term_text(quad.graph_name, labels, text),
            times.get(quad.graph_name),
        )
        for quad in quads
        if not _timing(quad, times)
    ]


def parse_quads(text: bytes, fmt: ox.RdfFormat, base: str | None = None) -> list[ox.Quad]:
    """The statements as they stand. Nothing external is resolved: JSON-LD's remote contexts are refused, and relative IRIs where there is no `base`.

    Raises: FormatError.
    """
    (check_json if fmt == ox.RdfFormat.JSON_LD else check_terms)(text)
    try:
        return list(ox.parse(text, fmt, base_iri=base))
    except SyntaxError as fault:
        message = re.sub(r"^Parser error .*?: ", "", fault.msg)
        if "LoadDocumentCallback" in message:
            line, column = place(text, named.start()) if (named := _REMOTE.search(text)) else (None, None)
            raise FormatError(
                "remote-context", "a context is named by its address, and nothing is fetched", line, column, "the context itself"
            ) from None
        raise FormatError("rdf", re.sub(r" \(line \d+\)$", "", message), fault.lineno, fault.offset) from None


def graph_times(quads: list[ox.Quad], text: bytes) -> dict[Node | ox.DefaultGraph, Interval]:
    """When each named graph holds, as the default graph says: timing triples whose subject is a graph of this message."""
    graphs = {quad.graph_name for quad in quads if not isinstance(quad.graph_name, ox.DefaultGraph)}
    stated: dict[Node, dict[str, Node]] = {}
    for quad in quads:
        if isinstance(quad.graph_name, ox.DefaultGraph) and quad.predicate.value in TIMING and quad.subject in graphs:
            known = stated.setdefault(quad.subject, {})
            if known.setdefault(quad.predicate.value, quad.object) != quad.object:
                raise _time_fault(text, quad.object, f"graph {quad.subject} has two times for <{quad.predicate.value}>")
    return {graph: _interval(graph, times, text) for graph, times in stated.items()}


def _interval(graph: Node, times: dict[str, Node], text: bytes) -> Interval:
    if GENERATED_AT in times:
        if len(times) > 1:
            raise _time_fault(text, times[GENERATED_AT], f"graph {graph} has both prov:generatedAtTime and startsAtTime or endsAtTime")
        at = _instant(times[GENERATED_AT], text)
        return Interval(at, at)
    if len(times) < 2:
        raise _time_fault(text, next(iter(times.values())), f"graph {graph} has only one of startsAtTime and endsAtTime")
    start, end = _instant(times[STARTS_AT], text), _instant(times[ENDS_AT], text)
    if start > end:
        raise _time_fault(text, times[STARTS_AT], f"graph {graph} starts after it ends")
    return Interval(start, end)


def _instant(literal: Node, text: bytes) -> int:
    if not isinstance(literal, ox.Literal) or literal.datatype.value not in _DATE_TIMES:
        raise _time_fault(text, literal, f"{literal} is no time", 'an xsd:dateTime such as "2026-01-01T00:00:01Z"^^xsd:dateTime')
    try:
        return instant(literal.value)
    except ValueError as fault:
        raise _time_fault(text, literal, str(fault)) from None


def _time_fault(text: bytes, culprit: Node, message: str, expected: str = "") -> FormatError:
    line, column = place_of(text, "<<" if isinstance(culprit, ox.Triple) else culprit.value)
    return FormatError("time", message, line, column, expected)


def place_of(text: bytes, needle: str) -> tuple[int, int]:
    """Line and code-point column of the first place where `needle` is written; the beginning if it is written otherwise."""
    before = text.partition(needle.encode() or b'""')[0]  # an empty literal
    if len(before) == len(text):
        return 1, 1
    return before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1


def term_text(term: Node, labels: Labels, text: bytes) -> str:
    """Canonical N-Triples text, blank nodes relabelled."""
    if isinstance(term, ox.BlankNode):
        return labels.of(term.value)
    if isinstance(term, ox.Triple):
        raise FormatError("rdf", "triple terms (RDF 1.2) are not supported", *place_of(text, "<<"))
    if isinstance(term, ox.Literal) and term.direction is not None:
        raise FormatError("rdf", NO_DIRECTIONS, *place_of(text, term.value), PLAIN_TAG)
    if len(term.value) > MAX_TERM:
        raise FormatError("term", f"a term of {len(term.value)} characters; the limit is {MAX_TERM}", *place_of(text, term.value[:64]))
    return str(term)


def _timing(quad: ox.Quad, times: dict[Node | ox.DefaultGraph, Interval]) -> bool:
    return isinstance(quad.graph_name, ox.DefaultGraph) and quad.subject in times and quad.predicate.value in TIMING
