"""Bodies and files of text/x-etalis-stream: events as ETALIS writes them become the triples that stand for them."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from epsparql.etalis.parser.program import MAX_ARGUMENTS, Program
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.parser.vocabulary import EVENT_NODE, argument_predicate, event_node, name_of
from epsparql.etalis.streams import read_argument, read_stream
from pipeline.errors import FormatError, locate_undecodable
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.batches.fast_path import clauses_batch
from pipeline.formats.batches.row_builder import NO_TERM, RowBuilder

_NODE = f"<{EVENT_NODE}".encode()
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_ARGUMENTS = {str(argument_predicate(k)): k for k in range(1, MAX_ARGUMENTS + 1)}
_PREDICATES = (_TYPE, *_ARGUMENTS)
_PLAIN = pa.schema([*((name, pa.utf8()) for name in "spo"), ("start", pa.int64()), ("end", pa.int64())])
Event = Mapping[int, str]
"""The type of an event, and its arguments by their places from 1."""


def parse_etalis_stream(body: bytes, arrived: int | None) -> pa.RecordBatch:
    """Return OCCURRENCES of a stream's clauses; `arrived` (µs) is None for a file. Raises: FormatError."""
    now = 0 if arrived is None else arrived - 1
    found = clauses_batch(body, now, is_file=arrived is None, read_term=_write_argument, predicates=_PREDICATES)
    return _parse_exactly(body, arrived) if found is None else found


def _write_argument(argument: str) -> str:
    try:
        return str(read_argument(argument, Program(argument)))
    except EleRefused as refusal:
        raise ValueError(refusal.message) from None


def _parse_exactly(body: bytes, arrived: int | None) -> pa.RecordBatch:
    """Return the rows of any clauses. Raises: FormatError."""
    rows = RowBuilder(ExpansionBudget(len(body)))
    try:
        for event in read_stream(body.decode("utf-8"), arrived):
            for s, p, o in event.triples():
                rows.spend_row()
                rows.add((rows.number(s), rows.number(p), rows.number(o), NO_TERM), event.start, event.end)
    except UnicodeDecodeError as error:
        line, column = locate_undecodable(error)
        raise FormatError("syntax", "the body is not UTF-8", line, column, "UTF-8 text") from None
    except EleRefused as error:
        raise FormatError("syntax", error.message, error.line, error.column, error.expected) from None
    return rows.batch()


def may_name_events(batch: pa.RecordBatch) -> bool:
    """Return whether a batch may have subjects that are named as events; it costs less than to look at each."""
    texts = batch.column("s").dictionary.buffers()[2]
    return texts is not None and _NODE in bytes(texts)


def check_event_nodes(parts: Iterable[pa.RecordBatch]) -> None:
    """See that what the parts of a body say of nodes that are named as events is what these events are.

    So no other body describes such a node, and an atom that matches it is decided at once. Raises: FormatError.
    """
    found: dict[str, dict[tuple[int, int], dict[int, str]]] = {}
    for row in chain.from_iterable(_rows_of_events(part) for part in parts if may_name_events(part)):
        place = 0 if row["p"] == _TYPE else _ARGUMENTS.get(row["p"])
        event = found.setdefault(row["s"], {}).setdefault((row["start"], row["end"]), {})
        if place is None or event.setdefault(place, row["o"]) != row["o"]:
            _refuse_node(row["s"])
    for node, events in found.items():
        if len(events) > 1 or not all(_is_named(node, *interval, event) for interval, event in events.items()):
            _refuse_node(node)


def _rows_of_events(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows about nodes that are named as events."""
    mask = pc.starts_with(pc.cast(batch.column("s"), pa.utf8()), _NODE.decode())
    found: list[dict[str, Any]] = batch.filter(mask).select(["s", "p", "o", "start", "end"]).cast(_PLAIN).to_pylist()
    return found


def _is_named(node: str, start: int, end: int, event: Event) -> bool:
    """Return whether a node has the name of an event."""
    if event.keys() != set(range(len(event))):
        return False
    arguments = [event[k] for k in range(1, len(event))]
    return node == str(event_node(name_of(event[0][1:-1]), arguments, start, end))


def _refuse_node(node: str) -> None:
    raise FormatError("event-node", f"the body describes {node} otherwise than the event of this name", expected="other names for nodes of your own")
