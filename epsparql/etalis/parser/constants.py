"""This module goes from the constants of a program to RDF terms: names, numbers, strings, instants, structs and lists."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import assert_never

from epsparql.etalis.parser.lexemes import NUMBER, content_of
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Str, Struct, Term, VariableTerm, refuse
from epsparql.etalis.parser.vocabulary import TERM, iri_of, is_iri, name_of, number_literal
from epsparql.ntriples import make_valid, parse_term
from epsparql.terms import XSD, XSD_STRING, Iri, Literal
from epsparql.terms import Term as RdfTerm
from epsparql.trees import replace_fields

_PLAIN = re.compile(r"[a-z]\w*")
_QUOTED, _STRING = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL), re.compile(r'"(?:[^"\\]|""|\\.)*"', re.DOTALL)
_NUMBER = re.compile(rf"-?{NUMBER}")
_OTHER = re.compile(rf"rdf\(({_STRING.pattern})\)", re.DOTALL)  # a term such as an instant, in N-Triples
_COMPOUND = re.compile(rf"({_PLAIN.pattern}|{_QUOTED.pattern})?((?(1)\(|\[)).*[)\]]", re.DOTALL)
_PIECE = re.compile(rf"{_QUOTED.pattern}|{_STRING.pattern}|[^'\"()\[\],]+|[()\[\],]", re.DOTALL)
MOST_CACHED = 1 << 10
"""The parts of texts of at most so many characters are cached, so the cache is some MB at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def name_iri(name: Name | Struct, program: Program) -> Iri:
    """Return the IRI of a name. Raises EleRefused for a prefix that is not declared."""
    text = name.text if isinstance(name, Name) else name.name
    if name.iri:
        prefix, _, local = text.partition(":")
        if prefix not in program.prefixes:
            refuse(f"the prefix {prefix} is not declared", name.span, program.text, f"prefix({prefix}, 'http://...')")
        return Iri(make_valid(program.prefixes[prefix] + local))
    if "" in program.prefixes and not is_iri(text):
        return Iri(make_valid(program.prefixes[""] + text))
    return iri_of(text)


def predicate_atom(atom: Struct, program: Program) -> Struct:
    """Return an atom whose predicate is a prefixed name with the whole IRI.

    Raises EleRefused for a triple of other than one or two arguments.
    """
    if atom.iri:
        atom = replace_fields(atom, name=name_iri(atom, program).value, iri=False)
    if is_iri(atom.name) and len(atom.args) not in (1, 2):
        refuse(
            f"the predicate {atom.name} is an IRI, and has {len(atom.args)} arguments",
            atom.span,
            program.text,
            "a subject, or a subject and an object",
        )
    return atom


def ground_term(term: Term, program: Program) -> RdfTerm:
    """Return the RDF term of a constant. Raises EleRefused for a variable in it."""
    match term:
        case Name():
            return name_iri(term, program)
        case Num(value, unit, span):
            if unit:
                refuse(f"a number with the unit {unit} is no constant", span, program.text, "a number")
            return number_literal(value)
        case Str(text):
            return Literal(text)
        case VariableTerm(name, span):
            refuse(f"variable {name} is not bound", span, program.text, "a constant")
        case Struct("datime", args) if len(args) in (6, 7):
            return instant_term(term, program)
        case Struct() if term.iri:
            refuse(f"a struct with the prefixed name {term.name}", term.span, program.text, "a plain name")
        case Struct(name, args):
            return struct_literal(name, [ground_term(part, program) for part in args])
        case ListTerm(items, tail=tail):
            return list_literal([ground_term(part, program) for part in (items if tail is None else (*items, tail))])
    assert_never(term)


def instant_term(term: Struct, program: Program) -> Literal:
    """Return the xsd:dateTime of datime(Y, Mo, D, H, Mi, S) with or without microseconds. Raises EleRefused."""
    return instant_literal(instant_micros(term, program))


def instant_micros(term: Struct, program: Program) -> int:
    """Return the microseconds since 1970 of datime(...). Raises EleRefused."""
    parts = [int(part.value) for part in term.args if isinstance(part, Num) and part.value == int(part.value) and not part.unit]
    try:
        return micros_of(parts)
    except (ValueError, OverflowError):
        refuse("this is no date and time", term.span, program.text, "datime(year, month, day, hour, minute, second, microseconds)")


def micros_of(parts: Sequence[int]) -> int:
    """Return the microseconds since 1970 of a year, month, day, hour, minute and second, and maybe microseconds.

    Raises: ValueError, OverflowError.
    """
    year, month, day, hour, minute, second, *micros = parts
    at = datetime(year, month, day, hour, minute, second, tzinfo=UTC) + timedelta(microseconds=sum(micros))
    return (at - _EPOCH) // timedelta(microseconds=1)


def instant_literal(micros: int) -> Literal:
    """Return the canonical xsd:dateTime of an instant (µs since 1970)."""
    at = _EPOCH + timedelta(microseconds=micros)
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return Literal(f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z", XSD + "dateTime")


def instant_parts(instant: Literal, size: int) -> tuple[RdfTerm, ...] | None:
    """Return the year, month, day, hour, minute and second of a canonical xsd:dateTime, and its microseconds if the
    `size` is 7; None for any other literal.
    """
    if instant.datatype != XSD + "dateTime" or size not in (6, 7):
        return None
    at = datetime.fromisoformat(instant.lexical)
    parts = (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)
    return tuple(number_literal(Decimal(part)) for part in parts[:size])


# ---------------------------------------------------------------- canonical text
def struct_literal(name: str, arguments: Sequence[RdfTerm]) -> Literal:
    return Literal(f"{_quoted(name)}({','.join(map(written_term, arguments))})", TERM)


def list_literal(items: Sequence[RdfTerm]) -> Literal:
    return Literal(f"[{','.join(map(written_term, items))}]", TERM)


def read_parts(text: str) -> tuple[str, tuple[RdfTerm, ...]] | None:
    """Return the name and the arguments of a struct in canonical text, or the items of a list with the name `.`; None
    for any other text.
    """
    return _read_short(text) if len(text) <= MOST_CACHED else _read_compound(text)


def _read_compound(text: str) -> tuple[str, tuple[RdfTerm, ...]] | None:
    found = _COMPOUND.fullmatch(text)
    if found is None or (found[2] == "[") != (text[-1] == "]"):
        return None
    name = content_of(found[1]) if found[1] else "."
    pieces = _split(text[found.end(2) : -1])
    parts = None if pieces is None else [read_canonical(piece) for piece in pieces]
    return None if parts is None or None in parts else (name, tuple(part for part in parts if part is not None))


_read_short = lru_cache(maxsize=1 << 10)(_read_compound)


def _split(text: str) -> list[str] | None:
    """Return what stands between the commas outside of brackets; None if brackets or quotes do not match."""
    pieces, opened, start, at = list[str](), 0, 0, 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            return None
        sign = found[0]
        opened += (sign in "([") - (sign in ")]")
        if opened < 0:
            return None
        if sign == "," and opened == 0:
            pieces.append(text[start:at].strip())
            start = found.end()
        at = found.end()
    return None if opened else [*pieces, text[start:].strip()] if text.strip() else []


def nesting(text: str) -> int:
    """Return how deep the brackets of a canonical text stand in one another."""
    opened = most = 0
    for found in _PIECE.finditer(text):
        opened += (found[0] in "([") - (found[0] in ")]")
        most = max(most, opened)
    return most


def read_canonical(text: str) -> RdfTerm | None:
    """Return the constant that a canonical text stands for; None if it stands for none."""
    if _PLAIN.fullmatch(text):
        return iri_of(text)
    if _NUMBER.fullmatch(text):
        return number_literal(Decimal(text))
    if _QUOTED.fullmatch(text):
        return iri_of(content_of(text))
    if _STRING.fullmatch(text):
        return Literal(content_of(text))
    if other := _OTHER.fullmatch(text):
        with suppress(ValueError):  # a struct of the program's own with this name
            return parse_term(content_of(other[1]))
    return Literal(text, TERM) if _COMPOUND.fullmatch(text) else None


def written_term(term: RdfTerm) -> str:
    """Return a constant in canonical text, as it stands inside structs and lists."""
    match term:
        case Iri(value):
            return _quoted(name_of(value))
        case Literal(lexical, datatype, None) if datatype == TERM:
            return lexical
        case Literal(lexical, datatype, None) if datatype == XSD_STRING:
            return '"' + lexical.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Literal(lexical, datatype, None) if datatype in (XSD + "integer", XSD + "decimal", XSD + "double"):
            return str(number_literal(Decimal(lexical))).split('"')[1]
        case _:
            return "rdf(" + '"' + str(term).replace("\\", "\\\\").replace('"', '\\"') + '")'


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
