"""This bench runs a chain of SEQs in each of three shapes: the one that rates ask for, as written, from its end."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bench.measurement import line, one_core
from bench.workloads import BATCH, Drawn, blocks, moved, registration
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, Drop
from engine.physical_plan.join_trees import Linear, Shape, tree_of

_TEXT = "SELECT * WHERE { {?s :a ?x} SEQ {?s :b ?y} SEQ {?s :c ?z} SEQ {?s :d ?x} WITHIN 10 }"
_RATES = "SELECT * WHERE { ?s :a ?x . ?s :b ?x . ?s :c ?x . ?s :d ?x . ?s :never ?x }"
_SHARES = (0.003, 0.489, 0.488, 0.02)
"""These are the shares of a, b, c and d: a chain's begin and end are rare, so its middle makes many partial solutions."""
_IDS, _CODES = 50, 50
_SEEN = 20_000
"""The rates are known from this many events."""


class _Run(NamedTuple):
    """Holds the outcome of a run; `seconds` are of CPU time."""

    shape: Shape
    seconds: float
    goals: int
    matches: int


def measure(n: int) -> Iterator[str]:
    """Yield a line: events for each second of CPU time, and goals at the end."""
    one_core()
    log = list(blocks(_drawn(_SEEN + n), names="abcd"))
    chosen, written, from_end = (_feed_log(log, shape) for shape in (None, Linear.WRITTEN, Linear.FROM_END))
    assert chosen.matches == written.matches == from_end.matches, "the shape changes nothing that is found"
    yield line(
        "shapes",
        n=n,
        matches=chosen.matches,
        shape=tree_of(chosen.shape, len(_SHARES)),
        events_per_s=round(n / chosen.seconds),
        written_events_per_s=round(n / written.seconds),
        from_end_events_per_s=round(n / from_end.seconds),
        ratio=round(min(written.seconds, from_end.seconds) / chosen.seconds, 2),
        goals=chosen.goals,
        written_goals=written.goals,
        from_end_goals=from_end.goals,
    )


def _drawn(n: int) -> Drawn:
    rng = np.random.default_rng(42)
    return Drawn(rng.choice(len(_SHARES), n, p=_SHARES), rng.integers(0, _IDS, n), rng.integers(0, _CODES, n).astype(np.float64))


def _feed_log(log: Sequence[Block], shape: Shape | None) -> _Run:
    """Feed a log. The query comes when rates are known, and is planned by them unless in a shape that is given."""
    engine, seen = Engine(), -(-_SEEN // BATCH)
    for block in (registration(_RATES), *log[:seen]):
        engine.feed(block)
    entry = registration(_TEXT, engine.position, "chain")
    assert not engine.feed(entry).changes
    engine.feed(Block((Drop(engine.position, 0, "q"),), pa.RecordBatch.from_pylist([], schema=OCCURRENCES)))
    network = engine.members[0].network
    (planned,) = network.planned.values()
    if shape is not None:
        network.drop_query(planned.registered)
        engine.restore_query(network, engine.registered[planned.registered], planned.rates, shape)
        (planned,) = network.planned.values()
    assert isinstance(planned.shape, Linear | tuple)
    rest = [moved(block, engine.position + k, _SEEN + k * BATCH) for k, block in enumerate(log[seen:])]
    began, matches = time.process_time(), 0
    for block in rest:
        matches += engine.feed(block).solutions.num_rows
    return _Run(planned.shape, time.process_time() - began, engine.goals, matches)
