"""This module writes the events that an ETALIS program reports, and their changes: a line of JSON each, with the
arguments as values (docs/etalis.md).
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from engine.expressions.evaluator import parse_term
from engine.messages import END_OF_TIME, Micros
from engine.revision.change_rows import parse_header
from engine.runtime.watermarks import NO_TIME
from epsparql.etalis.parser.constants import ground_term
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import ListTerm, Struct, Term
from epsparql.etalis.parser.vocabulary import TERM, name_of
from epsparql.terms import XSD, XSD_STRING, Iri, Literal
from epsparql.terms import Term as RdfTerm
from pipeline.formats.batches.timestamps import iso
from pipeline.solutions.solution_ids import solution_id

_NUMBERS = frozenset({XSD + "integer", XSD + "decimal"})
_PLAIN = Program("")


def write_event(row: pa.RecordBatch, *, listed: bool) -> bytes:
    """Return the line, with its newline, of one solution as stored; `listed`: the second value, if it is there, is
    the list of all arguments.
    """
    start, end, identifier = _read_place(row)
    head = {"query": row.column("query")[0].as_py(), "id": identifier}
    return f"{_write_reported(head, row.column('values')[0].as_py(), (start, end), listed=listed)}\n".encode()


def write_event_change(row: pa.RecordBatch, *, listed: bool) -> bytes:
    """Return the line of one change, as `write_event` does of a solution."""
    header, *values = row.column("values")[0].as_py()
    start, _, seq = _read_place(row)
    change = parse_header(header)
    solution = _write_reported({"id": change.id}, values, (start, change.end), listed=listed)
    added, withdrawn = (solution, "") if change.is_added else ("", solution)
    head = _members({"query": row.column("query")[0].as_py(), "seq": seq})
    more = ', "more": true' if change.has_more else ""
    return f'{head}, "added": [{added}], "withdrawn": [{withdrawn}], "settled": {_write_settled(change.settled)}{more}}}\n'.encode()


def _read_place(row: pa.RecordBatch) -> tuple[Micros, Micros, str]:
    """Return the columns `start` and `end` of one solution or change, and its id or `seq`."""
    start, end = (row.column(name).view(pa.int64())[0].as_py() for name in ("start", "end"))
    return start, end, solution_id(end, row.column("ordinal")[0].as_py())


def _write_reported(head: dict[str, str], values: Sequence[str | None], interval: tuple[Micros, Micros], *, listed: bool) -> str:
    """Return an event as a JSON object, with the members of `head` first."""
    name, *arguments = values
    assert name is not None
    texts = ", ".join(_json_text(argument) for argument in arguments if argument is not None)
    if listed and arguments[0] is not None:
        texts = _json_text(arguments[0])[1:-1]
    tail = _members(dict(zip(("start", "end"), map(iso, interval), strict=True)))
    return f'{_members(head)}, "event": {_quote(name_of(name[1:-1]))}, "args": [{texts}], {tail[1:]}}}'


def _write_settled(instant: Micros) -> str:
    """Return the JSON value of a change's `settled`."""
    if instant == NO_TIME:
        return "null"
    return _quote("finished" if instant >= END_OF_TIME else iso(instant))


def _members(document: dict[str, str]) -> str:
    return json.dumps(document, ensure_ascii=False)[:-1]


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@lru_cache(maxsize=1 << 14)
def _json_text(text: str) -> str:
    """Return an argument, given as N-Triples text, as JSON text; exact numbers stay as they are written."""
    return _write(parse_term(text))


def _write(term: RdfTerm) -> str:
    match term:
        case Iri(value):
            return _quote(name_of(value))
        case Literal(lexical, datatype) if datatype in _NUMBERS:
            return lexical
        case Literal(lexical, datatype) if datatype == XSD + "double":
            return json.dumps(float(lexical))
        case Literal(lexical, datatype) if datatype == XSD + "dateTime":
            return json.dumps({"datime": lexical})
        case Literal(lexical, datatype) if datatype == TERM:
            from epsparql.etalis.parser.grammar import read_one_term  # only processes that parse load pyparsing

            return json.dumps(_write_term(read_one_term(lexical)), ensure_ascii=False)
        case Literal(lexical, datatype, None) if datatype == XSD_STRING:
            return json.dumps({"string": lexical}, ensure_ascii=False)
        case _:
            return _quote(str(term))


def _write_term(term: Term) -> Any:
    match term:
        case Struct(name, args):
            return {"functor": name, "args": [_write_term(part) for part in args]}
        case ListTerm(items, tail=None):
            return [_write_term(item) for item in items]
        case _:
            return json.loads(_write(ground_term(term, _PLAIN)))
