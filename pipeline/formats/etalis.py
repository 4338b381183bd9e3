"""Bodies and files of text/x-etalis-stream: events as ETALIS writes them become the triples that stand for them."""

import pyarrow as pa

from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.streams import read_stream
from pipeline.errors import FormatError, locate_undecodable
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.batches.row_builder import NO_TERM, RowBuilder


def parse_etalis_stream(body: bytes, arrived: int | None) -> pa.RecordBatch:
    """Return OCCURRENCES of a stream's clauses; `arrived` (µs) is None for a file. Raises: FormatError."""
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
