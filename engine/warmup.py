"""This module compiles the engine before it is needed.

This takes about two minutes of processor time, once per machine, most of it for the kernel. Two processes share it. Later it takes a second or two to
load.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numba import typeof, types

from engine.aggregation.native.runs.sweep import judge_elements, place_elements, sweep_runs
from engine.aggregation.native.runs.tables import ElementColumns, RunTables
from engine.aggregation.native.sweep import sweep
from engine.aggregation.native.tables import MomentColumns, Tables
from engine.compiling import telling_of_functions
from engine.dictionary.native.arrow_import import taken
from engine.dictionary.native.arrow_writer import emit
from engine.dictionary.native.ntriples_writer import settle
from engine.engine import Engine
from engine.jit import has_code
from engine.kernel.operators.join import arrive_join
from engine.kernel.operators.negation import arrive_negative, arrive_without, decide, emit_looked_up
from engine.kernel.operators.output import write_solution
from engine.kernel.operators.policies import arrive_policy
from engine.kernel.scheduler import advance_feed, arrive_elsewhere, go_on, run
from engine.kernel.state.handle import net_type
from engine.messages import OCCURRENCES, Block, Events, Register
from engine.partitioning import PartitionShare

_QUERY = 'SELECT * WHERE { { ?s <p> ?v } SEQ { ?s <q> ?w } FILTER(?v < ?w && getDURATION() < "PT1H"^^<http://www.w3.org/2001/XMLSchema#duration>) }'
_GROUPS = "SELECT ?s (COUNT(?v) AS ?n) (SUM(?v) AS ?t) (AVG(?v) AS ?m) (MAX(?v) AS ?w) WHERE { ?s <p> ?v } GROUP BY ?s"
_RUNS = "SELECT ?s (COUNT(?v) AS ?n) WHERE { ?s <p> ?v } GROUP BY ?s WINDOW [SESSION 'PT1S'^^<http://www.w3.org/2001/XMLSchema#duration> CLOSED]"


def _kernel(*functions: Any) -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """Return functions of the kernel with the types of their arguments, which are a network and whole numbers."""
    return tuple((each, (net_type, *[types.int64] * (each.py_func.__code__.co_argcount - 1))) for each in functions)


def _types(*examples: Any) -> tuple[Any, ...]:
    return tuple(map(typeof, examples))


_LINE, _ROWS, _NUMBERS = np.zeros(0, np.int64), np.zeros((0, 0), np.int64), np.zeros((0, 0))
_GROUP_TABLES, _RUN_TABLES = Tables(_LINE, _ROWS, _ROWS, _LINE, _ROWS, _ROWS), RunTables(_LINE, _ROWS, _LINE)
_ELEMENTS = ElementColumns(_ROWS, _ROWS, _ROWS, _ROWS, _ROWS, _LINE, _LINE, _ROWS, _NUMBERS, _LINE, np.zeros(0), _NUMBERS, _LINE)

HERE = (
    *_kernel(arrive_policy),
    (sweep, _types(_GROUP_TABLES, MomentColumns(_ROWS, _ROWS, _ROWS), _LINE, _ROWS)),
    (judge_elements, _types(_GROUP_TABLES, _ELEMENTS)),
    (place_elements, _types(_GROUP_TABLES, _RUN_TABLES, _ELEMENTS)),
    (sweep_runs, _types(_GROUP_TABLES, _RUN_TABLES, _ELEMENTS, _LINE, _ROWS)),
)
BESIDE = (
    *_kernel(arrive_join, decide, emit_looked_up, go_on, arrive_negative, write_solution, advance_feed, arrive_without, arrive_elsewhere),
    (taken, _types(0, 0, 0, 0, _ROWS)),
    (emit, _types(0, _ROWS, 0, True, 0)),
    (settle, _types(_ROWS, _LINE, np.zeros(0, np.uint8), np.zeros((0, 0, 0), np.int64), _LINE)),
)
"""These are the functions that take longest to compile, with the types of their arguments. `arrive_elsewhere` calls one that is compiled HERE meanwhile."""


@contextmanager
def compiling_beside(*, shown: bool = False) -> Iterator[None]:
    """Compile half of the engine in a process of its own, and part of it here before the block runs; wait for that process after the block.

    Do nothing where the kernel is compiled, or there is one core. What fails in that process is compiled when it is called. It says on standard error
    how far it is if that is to be `shown`.
    """
    if is_kernel_compiled() or (os.cpu_count() or 1) == 1:
        yield
        return
    with subprocess.Popen([sys.executable, "-m", "engine.warmup"], stderr=None if shown else subprocess.DEVNULL) as beside:
        try:
            compile_parts(HERE)
            yield
        except BaseException:
            beside.kill()
            raise


def is_kernel_compiled() -> bool:
    """Return whether there is code of the whole kernel, which is compiled last."""
    return has_code(run)


def compile_parts(parts: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
    """Compile functions for arguments of these types."""
    for function, arguments in parts:
        function.compile(arguments)


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
    terms.statements(numbers[:3].reshape(1, 1, 3))
    terms.places_in_order(numbers[:2].reshape(1, 2), 0, 1, numbers[:1], numbers[:1].reshape(1, 1))


if __name__ == "__main__":
    with telling_of_functions():
        compile_parts(BESIDE)
