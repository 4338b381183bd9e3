"""This module reads RDF in any of its syntaxes with pyoxigraph, statement by statement."""

import re
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence

import pyoxigraph as ox

from engine.triples.quads import written
from epsparql.deferred_methods import dataclass
from epsparql.isolation.isolated_parser import BeyondLimits, parse_isolated
from epsparql.terms import MAX_TRIPLE_DEPTH
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ROW_BYTES, ExpansionBudget
from pipeline.formats.batches.ntriples import MAX_TERM, labelled
from pipeline.formats.batches.row_builder import NO_TERM, RowBuilder
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.rdf.json_ld import is_small_when_expanded
from pipeline.formats.rdf.turtle_lexer import check_json, check_terms, is_small_when_resolved, place

GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
STARTS_AT = "http://streamreasoning.org/timeVocab#startsAtTime"
ENDS_AT = "http://streamreasoning.org/timeVocab#endsAtTime"
TIMING = frozenset({GENERATED_AT, STARTS_AT, ENDS_AT})
_REMOTE = re.compile(rb'"@(?:context|import)"\s*:\s*(?:\[\s*)?"')
_WRITTEN = 8
"""A text may be this many times as large as its budget when it is written as N-Quads, in which each term stands for
itself.
"""
_SHOWN = 512  # characters of what the parser says, which may hold a token of any length
_DATE_TIMES = {"http://www.w3.org/2001/XMLSchema#dateTime", "http://www.w3.org/2001/XMLSchema#dateTimeStamp"}

Node = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


@dataclass(frozen=True, slots=True)
class Said:
    """Represents a triple of a message's default graph that may state a time; `subject` is also the number of a
    graph, if it names one.
    """

    row: int
    subject: int
    name: Node
    predicate: str
    value: Node


@dataclass(frozen=True, slots=True)
class MessageTime:
    """Says when the rows of a message are: those without a time of their own at `otherwise`, which may be `stated` in
    the text.

    `find` gives the time of the whole message, and which rows say only that. It is given the statements of the
    default graph that have a property of `timing`.
    """

    otherwise: Interval
    stated: bool = False
    timing: Collection[str] = TIMING
    find: Callable[[Sequence[Said]], tuple[Interval | None, Collection[int]]] | None = None


def read_message(
    text: bytes, fmt: ox.RdfFormat, time: MessageTime, rows: RowBuilder, *, scope: bytes | None = None, graph: str | None = None
) -> None:
    """Add the rows of one message.

    Triples in no graph go to `graph`. Blank nodes are named by `scope`, or else by the text. Raises: FormatError.
    """
    cells, blanks, said = _read_cells(text, fmt, time.timing, rows)
    graphs = set(cells[3::4])
    own = [each for each in said if each.subject in graphs and each.predicate in TIMING]
    times, left_out = _graph_times(own, text, rounds=rows.rounds), {each.row for each in own}
    when = None
    if time.find is not None:
        when, alone = time.find([each for each in said if each.row not in left_out])
        left_out.update(alone)
    kept = [at for at in range(0, len(cells), 4) if at // 4 not in left_out] if left_out else range(0, len(cells), 4)
    untimed = when is None and (not times or not all(cells[at + 3] in times for at in kept))
    labels = Labels(scope or text, time.otherwise if untimed and not time.stated else None)
    names: dict[int, int] = {}
    for at in kept:
        terms = cells[at : at + 4]
        interval = times.get(terms[3]) or when or time.otherwise
        for column in range(4) if blanks else ():
            if (blank := terms[column]) < NO_TERM:
                if blank not in names:
                    names[blank] = rows.number(labelled(blanks[NO_TERM - 1 - blank], labels.blank_node))
                terms[column] = names[blank]
        if terms[3] == NO_TERM and graph is not None:
            terms[3] = rows.number(graph)
        rows.add(terms, interval.start, interval.end)


def _read_cells(text: bytes, fmt: ox.RdfFormat, timing: Collection[str], rows: RowBuilder) -> tuple["array[int]", list[str], list[Said]]:
    """Return four numbers a statement, the terms with blank nodes as written, and what may state a time.

    Terms with blank nodes have their numbers below NO_TERM, until the nodes are named.
    """
    cells, blanks, said = array("i"), dict[str, int](), list[Said]()

    count_written = rows.budget.count_written

    def number(term: Node) -> int:
        found = unlabelled_text(term, text)
        count_written(len(found))
        if isinstance(term, ox.BlankNode) or (isinstance(term, ox.Triple) and "_:" in found):
            return blanks.setdefault(found, NO_TERM - 1 - len(blanks))
        return rows.number(found)

    spend = rows.budget.spend
    for s, p, o, g in parse_quads(text, fmt, budget=rows.budget):
        spend(ROW_BYTES)
        subject, of, predicate = number(s), NO_TERM if isinstance(g, ox.DefaultGraph) else number(g), unlabelled_text(p, text)
        count_written(len(predicate))
        if of == NO_TERM and (name := predicate[1:-1]) in timing:
            said.append(Said(len(cells) // 4, subject, s, name, o))
        cells.extend((subject, rows.number(predicate), number(o), of))
    return cells, list(blanks), said


def parse_quads(text: bytes, fmt: ox.RdfFormat, base: str | None = None, *, budget: ExpansionBudget) -> Iterator[ox.Quad]:
    """Yield the statements as they stand, one after the other. JSON-LD's remote contexts are refused, and relative
    IRIs where there is no `base`.

    All RDF from outside passes here. A text of which the parser might make much is parsed in another process.
    Raises: FormatError, also where the parser would take memory or time out of proportion to the text.
    """
    if fmt == ox.RdfFormat.JSON_LD:
        check_json(text)
    else:
        check_terms(text)
    try:
        if _is_small(text, fmt):
            yield from ox.parse(text, fmt, base_iri=base)
        else:
            yield from parse_isolated(text, fmt.media_type, base, most=_WRITTEN * budget.most)
    except BeyondLimits:
        raise budget.fault() from None
    except SyntaxError as fault:
        message = re.sub(r"^Parser error .*?: ", "", fault.msg)
        if "LoadDocumentCallback" in message:
            line, column = place(text, named.start()) if (named := _REMOTE.search(text)) else (None, None)
            raise FormatError(
                "remote-context", "a context is named by its address, and nothing is fetched", line, column, "the context itself"
            ) from None
        raise FormatError("rdf", re.sub(r" \(line \d+\)$", "", message)[:_SHOWN], fault.lineno, fault.offset) from None


def _is_small(text: bytes, fmt: ox.RdfFormat) -> bool:
    """Tell whether the parser surely holds little of a text.

    That of N-Triples and N-Quads holds one line, and that of RDF/XML the open elements.
    """
    if fmt == ox.RdfFormat.JSON_LD:
        return is_small_when_expanded(text)
    return fmt not in (ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG) or is_small_when_resolved(text)


def _graph_times(said: Sequence[Said], text: bytes, *, rounds: bool) -> dict[int, Interval]:
    """Return when each named graph holds, as the default graph says: by timing triples whose subject is a graph of
    this message.
    """
    stated: dict[int, dict[str, Node]] = {}
    for each in said:
        known = stated.setdefault(each.subject, {})
        if known.setdefault(each.predicate, each.value) != each.value:
            raise _time_fault(text, each.value, f"graph {each.name} has two times for <{each.predicate}>")
    named = {each.subject: each.name for each in said}
    return {graph: _interval(named[graph], times, text, rounds=rounds) for graph, times in stated.items()}


def _interval(graph: Node, times: dict[str, Node], text: bytes, *, rounds: bool) -> Interval:
    if GENERATED_AT in times:
        if len(times) > 1:
            raise _time_fault(text, times[GENERATED_AT], f"graph {graph} has both prov:generatedAtTime and startsAtTime or endsAtTime")
        at = time_of(times[GENERATED_AT], text, rounds=rounds)
        return Interval(at, at)
    if len(times) < 2:
        raise _time_fault(text, next(iter(times.values())), f"graph {graph} has only one of startsAtTime and endsAtTime")
    start, end = (time_of(times[name], text, rounds=rounds) for name in (STARTS_AT, ENDS_AT))
    if start > end:
        raise _time_fault(text, times[STARTS_AT], f"graph {graph} starts after it ends")
    return Interval(start, end)


def time_of(literal: Node, text: bytes, *, rounds: bool) -> int:
    """Return the instant that a literal says. Raises: FormatError."""
    if not isinstance(literal, ox.Literal) or literal.datatype.value not in _DATE_TIMES:
        raise _time_fault(text, literal, f"{literal} is no time", 'an xsd:dateTime such as "2026-01-01T00:00:01Z"^^xsd:dateTime')
    try:
        return instant(literal.value, rounds)
    except ValueError as fault:
        raise _time_fault(text, literal, str(fault)) from None


def _time_fault(text: bytes, culprit: Node, message: str, expected: str = "") -> FormatError:
    line, column = place_of(text, written_part(culprit))
    return FormatError("time", message, line, column, expected)


def place_of(text: bytes, needle: str) -> tuple[int, int]:
    """Return line and code-point column of the first place where `needle` is written; the beginning if it is written
    otherwise.
    """
    before = text.partition(needle.encode() or b'""')[0]  # an empty literal
    if len(before) == len(text):
        return 1, 1
    return before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1


def unlabelled_text(term: Node, text: bytes) -> str:
    """Return the canonical N-Triples text of a term, whose blank nodes keep their labels. Raises: FormatError."""
    if isinstance(term, ox.Triple):
        _check_depth(term, text)
    found = written(term)
    if len(found) > MAX_TERM:  # this length includes quotes and escapes
        if isinstance(term, ox.Triple):
            parts: tuple[str, ...] = (found,)
        else:
            parts = (term.value, term.datatype.value, term.language or "") if isinstance(term, ox.Literal) else (term.value,)
        if (size := max(map(len, parts))) > MAX_TERM:
            raise FormatError("term", f"a term of {size} characters; the limit is {MAX_TERM}", *place_of(text, written_part(term)[:64]))
    return found


def _check_depth(term: ox.Triple, text: bytes) -> None:
    depth, inner = 1, term.object
    while isinstance(inner, ox.Triple):
        depth, inner = depth + 1, inner.object
    if depth > MAX_TRIPLE_DEPTH:
        raise FormatError("too-deep", f"triple terms are nested deeper than {MAX_TRIPLE_DEPTH}", *place_of(text, "<<"))


def written_part(term: Node) -> str:
    """Return a text that stands where the term stands."""
    return "<<" if isinstance(term, ox.Triple) else term.value
