"""This module reads streams of events as ETALIS writes them: `event(E).`, `event(E, [T1, T2]).`, `event(E, T).`,
`sleep(S).` and `halt.`
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from epsparql.etalis.parser.constants import ground_term, instant_micros
from epsparql.etalis.parser.program import MAX_ARGUMENTS, Program, duration_of
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, ParsedClause, Struct, Term, as_struct, refuse
from epsparql.etalis.parser.vocabulary import argument_predicate, event_node, iri_of
from epsparql.terms import RDF, Iri
from epsparql.terms import Term as RdfTerm

SECOND = 1_000_000
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
TYPE = Iri(RDF + "type")


@dataclass(frozen=True, slots=True)
class SentEvent:
    """Represents an event on an interval (µs), as streams have it."""

    name: str
    arguments: tuple[RdfTerm, ...]
    start: int
    end: int

    def triples(self) -> Iterator[tuple[str, str, str]]:
        """Yield the event's triples as N-Triples terms: its type, and its arguments."""
        node = str(event_node(self.name, self.arguments, self.start, self.end))
        yield node, str(TYPE), str(iri_of(self.name))
        for k, argument in enumerate(self.arguments, 1):
            yield node, str(argument_predicate(k)), str(argument)


def read_stream(text: str, arrived: int | None = None) -> Iterator[SentEvent]:
    """Yield the events of a stream's text. Raises EleRefused.

    In a file an event without a time comes 1 µs after the clause before it. `arrived` (µs) is the time at which a
    request came: its events without a time come from there on, 1 µs apart, and it may not sleep.
    """
    from epsparql.etalis.parser.grammar import parse_clauses  # as in program.py

    program = Program(text)
    now = 0 if arrived is None else arrived - 1
    for clause in parse_clauses(text, bounded=False)[0]:
        atom = as_struct(clause.head)
        if atom is None or clause.kind != "fact":
            _refuse_clause(clause, text)
        elif (atom.name, len(atom.args)) == ("halt", 0):
            return
        elif (atom.name, len(atom.args)) == ("sleep", 1):
            if arrived is not None:
                refuse("a request does not sleep", atom.span, text, "events with times")
            now += duration_of(text, atom.args[0])
        elif atom.name == "event" and len(atom.args) in (1, 2):
            start, end = (now + 1, now + 1) if len(atom.args) == 1 else _read_times(atom.args[1], program)
            now = max(now, end) if arrived is None else now + 1
            yield _read_event(atom.args[0], program, start, end)
        else:
            _refuse_clause(clause, text)


def _refuse_clause(clause: ParsedClause, text: str) -> None:
    refuse("this is no clause of a stream", clause.span, text, "event(E)., event(E, T)., event(E, [T1, T2])., sleep(S). or halt.")


def _read_event(term: Term, program: Program, start: int, end: int) -> SentEvent:
    atom = as_struct(term)
    if atom is None or atom.iri or "://" in atom.name:
        refuse("this is no event", term.span, program.text, "a plain name, with or without arguments")
    if len(atom.args) > MAX_ARGUMENTS:
        refuse(f"{atom.indicator} has more than {MAX_ARGUMENTS} arguments", atom.span, program.text, "lists or structs of arguments")
    if start > end:
        refuse("the event starts after its end", term.span, program.text, "[start, end]")
    return SentEvent(atom.name, tuple(ground_term(argument, program) for argument in atom.args), start, end)


def _read_times(term: Term, program: Program) -> tuple[int, int]:
    if isinstance(term, ListTerm):
        if len(term.items) != 2:
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


__all__ = ["SentEvent", "read_stream"]
