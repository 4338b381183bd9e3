"""Compiling the kernel before it is needed."""

import pyarrow as pa

from engine.entries import Block, Events, Register
from engine.run import Engine
from pipeline.formats import NDJSON, parse_body

_QUERY = 'SELECT ?s WHERE { { ?s <p> ?v } SEQ { ?s <q> ?w } FILTER(?v < ?w && getDURATION() < "PT1H"^^<http://www.w3.org/2001/XMLSchema#duration>) }'
_EVENT = b'{"s":"<http://example.org/s>","p":"<http://example.org/p>","o":"\\"1\\"","at":"2026-01-01T00:00:00Z"}\n'


def warm() -> None:
    """One event through the engine compiles all of it: there is one kernel, whatever the query."""
    rows: pa.RecordBatch = parse_body(_EVENT, NDJSON, default=None, arrived=0)
    Engine().feed(Block((Register(0, "warm", _QUERY), Events(1, "default", 1, 0)), rows))
