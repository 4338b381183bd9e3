"""This module compiles the engine before it is needed.

This takes about one and a half minutes of processor time, once per machine. Later it takes a second or two to load.
"""

import pyarrow as pa

from engine.engine import Engine
from engine.jit import ENTRY_POINTS, has_code
from engine.messages import OCCURRENCES, Block, Events, Register
from engine.partitioning import PartitionShare

_QUERY = 'SELECT * WHERE { { ?s <p> ?v } SEQ { ?s <q> ?w } FILTER(?v < ?w && getDURATION() < "PT1H"^^<http://www.w3.org/2001/XMLSchema#duration>) }'
_GROUPS = "SELECT ?s (COUNT(?v) AS ?n) (SUM(?v) AS ?t) (AVG(?v) AS ?m) (MAX(?v) AS ?w) WHERE { ?s <p> ?v } GROUP BY ?s"
_RUNS = "SELECT ?s (COUNT(?v) AS ?n) WHERE { ?s <p> ?v } GROUP BY ?s WINDOW [SESSION 'PT1S'^^<http://www.w3.org/2001/XMLSchema#duration> CLOSED]"


def is_compiled() -> bool:
    """Return whether there is code of all that numba compiles, so that it is loaded and not compiled."""
    return all(has_code(each) for each in ENTRY_POINTS)


def compile_engine() -> None:
    """Feed a few events through an engine, which compiles or loads all of the kernel, and what groups and runs of numbers need.

    There is one kernel, whatever the query.
    """
    values = ("integer", "double", "double", "double")
    events = [
        {"s": f"<{k}>", "p": "<p>", "o": f'"1"^^<http://www.w3.org/2001/XMLSchema#{kind}>', "g": None, "start": k, "end": k, "late": False}
        for k, kind in enumerate(values)
    ]
    rows = pa.RecordBatch.from_pylist(events, schema=OCCURRENCES)
    PartitionShare(0, 2).select_rows(rows.column("s"))
    engine = Engine()
    engine.terms.spare = 0  # terms out of use are looked for at once
    begun = engine.feed(
        Block((Register(0, "warm", _QUERY), Register(1, "groups", _GROUPS), Register(2, "runs", _RUNS), Events(3, "default", 3, 1)), rows[:3])
    )
    assert not begun.changes, begun.changes  # a query that failed would have compiled nothing
    engine.feed(Block((Events(4, "default", 1, 3),), rows[3:]))
    terms = Engine.restore(engine.snapshot()).terms
    numbers = terms.intern_all([f"<{k}>" for k in range(100)])
    terms.text_array(terms.in_order(numbers) % 2)  # with 0, which has no text
    terms.places_in_order(numbers[:2].reshape(1, 2), 0, 1, numbers[:1], numbers[:1].reshape(1, 1))
