"""Compiling the kernel before it is needed: about a minute, once per machine; later a second or two to load it."""

import pyarrow as pa

from engine.entries import OCCURRENCES, Block, Events, Register
from engine.run import Engine

_QUERY = 'SELECT * WHERE { { ?s <p> ?v } SEQ { ?s <q> ?w } FILTER(?v < ?w && getDURATION() < "PT1H"^^<http://www.w3.org/2001/XMLSchema#duration>) }'


def warm() -> None:
    """One event through an engine compiles, or loads, all of the kernel: there is one, whatever the query."""
    event = {"s": "<s>", "p": "<p>", "o": '"1"', "g": None, "start": 0, "end": 0, "late": False}
    rows = pa.RecordBatch.from_pylist([event], schema=OCCURRENCES)
    Engine().feed(Block((Register(0, "warm", _QUERY), Events(1, "default", 1, 0)), rows))
