"""This module reads streams of events as ETALIS writes them: `event(E).`, `event(E, [T1, T2]).`, `event(E, T).`,
`sleep(S).` and `halt.`
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.etalis.parser.constants import ground_term, instant_micros, micros_of
from epsparql.etalis.parser.lexemes import END, NAME, NUMBER, SKIP, content_of
from epsparql.etalis.parser.program import MAX_ARGUMENTS, Program, duration_of
from epsparql.etalis.parser.syntax import EleRefused, ListTerm, Name, Num, ParsedClause, Str, Struct, Term, as_struct, refuse
from epsparql.etalis.parser.vocabulary import argument_predicate, event_node, iri_of
from epsparql.terms import RDF, Iri
from epsparql.terms import Term as RdfTerm

SECOND = 1_000_000
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
_TYPE = str(Iri(RDF + "type"))


@dataclass(frozen=True, slots=True)
class SentEvent:
    """Represents an event on an interval (µs), as streams have it."""

    name: str
    arguments: tuple[RdfTerm, ...]
    start: int
    end: int

    def triples(self) -> Iterator[tuple[str, str, str]]:
        """Yield the event's triples as N-Triples terms: its type, and its arguments."""
        arguments = [str(argument) for argument in self.arguments]
        node = str(event_node(self.name, arguments, self.start, self.end))
        yield node, _TYPE, str(iri_of(self.name))
        for k, argument in enumerate(arguments, 1):
            yield node, str(argument_predicate(k)), argument


class _Clause(NamedTuple):
    """Holds an event with its times (µs), None for none; or without a name, for how long the stream sleeps."""

    name: str
    arguments: tuple[RdfTerm, ...] = ()
    times: tuple[int, int] | None = None
    pause: int = 0


def read_stream(text: str, arrived: int | None = None, *, plain: bool = True) -> Iterator[SentEvent]:
    """Yield the events of a stream's text. Raises EleRefused.

    In a file an event without a time comes 1 µs after the clause before it. `arrived` (µs) is the time at which a
    request came: its events without a time come from there on, 1 µs apart, and it may not sleep. If not `plain`, the
    grammar reads all clauses.
    """
    now = 0 if arrived is None else arrived - 1
    for clause in _read_clauses(text, arrived, plain):
        now += clause.pause
        if clause.name:
            start, end = clause.times or (now + 1, now + 1)
            now = max(now, end) if arrived is None else now + 1
            yield SentEvent(clause.name, clause.arguments, start, end)


def _read_clauses(text: str, arrived: int | None, plain: bool) -> Iterator[_Clause]:
    """Yield the clauses of a stream: plain ones by regular expressions, and from the first other one on by the
    grammar, which also says what is wrong.
    """
    program, done = Program(text), 0
    if plain:
        reader, at = _PlainReader(program), 0
        while (found := _PLAIN.match(text, at)) is not None and (clause := reader.read_clause(found)) is not None:
            if not clause.name and arrived is not None:  # a request does not sleep
                break
            yield clause
            done, at = done + 1, found.end()
        if _BLANKS.fullmatch(text, at):
            return
    yield from _parse_clauses(program, arrived, done)


def _parse_clauses(program: Program, arrived: int | None, done: int) -> Iterator[_Clause]:
    """Yield the clauses of a stream after the first `done` ones, by the grammar. Raises EleRefused."""
    from epsparql.etalis.parser.grammar import parse_clauses  # as in program.py

    text = program.text
    for clause in parse_clauses(text, bounded=False)[0][done:]:
        atom = as_struct(clause.head)
        if atom is None or clause.kind != "fact":
            _refuse_clause(clause, text)
        elif (atom.name, len(atom.args)) == ("halt", 0):
            return
        elif (atom.name, len(atom.args)) == ("sleep", 1):
            if arrived is not None:
                refuse("a request does not sleep", atom.span, text, "events with times")
            yield _Clause("", pause=duration_of(text, atom.args[0]))
        elif atom.name == "event" and len(atom.args) in (1, 2):
            yield _read_event(atom.args[0], program, None if len(atom.args) == 1 else _read_times(atom.args[1], program))
        else:
            _refuse_clause(clause, text)


def _refuse_clause(clause: ParsedClause, text: str) -> None:
    refuse("this is no clause of a stream", clause.span, text, "event(E)., event(E, T)., event(E, [T1, T2])., sleep(S). or halt.")


def _read_event(term: Term, program: Program, times: tuple[int, int] | None) -> _Clause:
    atom = as_struct(term)
    if atom is None or atom.iri or "://" in atom.name:
        refuse("this is no event", term.span, program.text, "a plain name, with or without arguments")
    if len(atom.args) > MAX_ARGUMENTS:
        refuse(f"{atom.indicator} has more than {MAX_ARGUMENTS} arguments", atom.span, program.text, "lists or structs of arguments")
    if times is not None and times[0] > times[1]:
        refuse("the event starts after its end", term.span, program.text, "[start, end]")
    return _Clause(atom.name, tuple(ground_term(argument, program) for argument in atom.args), times)


def _read_times(term: Term, program: Program) -> tuple[int, int]:
    if isinstance(term, ListTerm):
        if len(term.items) != 2 or term.tail is not None:
            refuse("an interval has a start and an end", term.span, program.text, "[start, end]")
        return _read_time(term.items[0], program), _read_time(term.items[1], program)
    at = _read_time(term, program)
    return at, at


def _read_time(term: Term, program: Program) -> int:
    match term:
        case Num(value, "", span):
            if value * SECOND != int(value * SECOND):
                refuse("a time has at most six fraction digits", span, program.text, "whole microseconds")
            return int(value * SECOND)
        case Struct("datime", _):
            return instant_micros(term, program)
        case Name(text, span):
            if _FINER.search(text):
                refuse(f"'{text}' is finer than a microsecond", span, program.text, "whole microseconds")
            try:
                at = datetime.fromisoformat(text)
            except ValueError:
                refuse(f"'{text}' is no time", span, program.text, "'2026-01-01T00:00:00Z'")
            at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
            return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        case _:
            return refuse("this is no time", term.span, program.text, "seconds since 1970, datime(...) or 'xsd:dateTime'")


# ---------------------------------------------------------------- plain clauses
_DATIME = r"datime\(\d{1,6}(?:,\d{1,6}){5,6}\)"
_TIME = rf"(?>{_DATIME}|\d{{1,12}}(?:\.\d{{1,6}})?(?![\w.])|'[^'\\%\n]*'(?!['(]))"
_ARGUMENT = rf"(?>-?{NUMBER}(?![\w.])|{NAME}(?![:(\w])|\"[^\"\\\n]*\"(?!\")|'[^'\\\n]*'(?!['(]))"
_PLAIN = re.compile(
    rf"{SKIP}(?:event\({SKIP}(?P<name>(?!not\(|prolog\(){NAME}(?!:))(?:\((?P<arguments>\s*+{_ARGUMENT}(?:\s*+,\s*+{_ARGUMENT})*+){SKIP}\))?"
    rf"(?:{SKIP},{SKIP}(?:(?P<at>{_TIME})|\[{SKIP}(?P<start>{_TIME}){SKIP},{SKIP}(?P<end>{_TIME}){SKIP}\]))?"
    rf"|sleep\({SKIP}(?P<pause>\d{{1,9}}(?:\.\d{{1,6}})?)){SKIP}\){SKIP}{END}"
)
"""A clause whose arguments are one token each, as nearly all are: the grammar takes a hundred times as long for it.

A comment between arguments may hold what looks like one, so such a clause is the grammar's.
"""
_ARGUMENTS = re.compile(_ARGUMENT)
_BLANKS = re.compile(SKIP)
_NOWHERE = Span(0, 0)
_MOST_TERMS = 65_536


def read_argument(text: str, program: Program) -> RdfTerm:
    """Return the term of an argument that is one token. Raises EleRefused, ValueError."""
    if text[0] == '"':
        return ground_term(Str(content_of(text), _NOWHERE), program)
    is_number = text[0] == "-" or text[0].isdigit()
    return ground_term(Num(Decimal(text), "", _NOWHERE) if is_number else Name(content_of(text), _NOWHERE), program)


class _PlainReader:
    """Reads clauses that `_PLAIN` has matched. Terms are cached by their texts."""

    def __init__(self, program: Program) -> None:
        self._program, self._terms = program, dict[str, RdfTerm]()

    def read_clause(self, found: re.Match[str]) -> _Clause | None:
        """Return the clause, or None where something is wrong with it."""
        name, arguments, at, start, end, pause = found.group("name", "arguments", "at", "start", "end", "pause")
        try:
            if pause is not None:
                return _Clause("", pause=int(Decimal(pause) * SECOND))
            terms = () if arguments is None else tuple(map(self._find_term, _ARGUMENTS.findall(arguments)))
            if at is not None or start is not None:
                first = self._read_time(at or start)
                last = first if end is None or end == start else self._read_time(end)
                return None if first > last or len(terms) > MAX_ARGUMENTS else _Clause(name, terms, (first, last))
        except (EleRefused, ValueError, OverflowError):
            return None
        return None if len(terms) > MAX_ARGUMENTS else _Clause(name, terms)

    def _find_term(self, text: str) -> RdfTerm:
        term = self._terms.get(text)
        if term is None:
            if len(self._terms) >= _MOST_TERMS:
                self._terms.clear()
            term = self._terms[text] = read_argument(text, self._program)
        return term

    def _read_time(self, text: str) -> int:
        if text[0] == "d":
            return micros_of([int(part) for part in text[7:-1].split(",")])
        if text[0] == "'":
            return _read_time(Name(content_of(text), _NOWHERE), self._program)
        return int(text) * SECOND if text.isdigit() else int(Decimal(text) * SECOND)


__all__ = ["SentEvent", "read_argument", "read_stream"]
