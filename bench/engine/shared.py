"""This bench runs queries that begin alike: what their common part costs them, carried out once and by each of them."""

import time
from collections.abc import Iterator, Sequence

from bench.measurement import line, one_core
from bench.workloads import WITHIN, blocks, drawn, registration
from engine.engine import Engine
from engine.messages import Block

_IDS = 1_000


def measure(queries: int, n: int) -> Iterator[str]:
    """Yield a line: CPU time for each event, goals at the end and matches, with and without sharing.

    Half of the events are of the three steps that all queries have in common.
    """
    one_core()
    names = ["a", "b", "c"] * queries + [f"p{k}" for k in range(queries)] * 3
    log = list(blocks(drawn(n, _IDS, len(names)), names=names, first_offset=queries))
    shared, matches = _feed_log(queries, log, shares=True)
    alone, same = _feed_log(queries, log, shares=False)
    assert matches == same, "sharing changes nothing that is found"
    seconds, goals, shares = shared
    seconds_alone, goals_alone, _ = alone
    yield line(
        "shared",
        queries=queries,
        n=n,
        matches=matches,
        shares=shares,
        events_per_s=round(n / seconds),
        unshared_events_per_s=round(n / seconds_alone),
        ratio=round(seconds_alone / seconds, 2),
        goals=goals,
        unshared_goals=goals_alone,
    )


def _feed_log(queries: int, log: Sequence[Block], *, shares: bool) -> tuple[tuple[float, int, int], int]:
    """Feed a log. Return seconds of CPU time, goals and shares; and solutions."""
    engine = Engine()
    engine.registry.shares = shares
    for k in range(queries):
        text = f"SELECT * WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} SEQ {{?s :c ?z}} SEQ {{?s :p{k} ?w}} {WITHIN} }}"
        changes = engine.feed(registration(text, k, f"q{k}")).changes
        assert not changes, changes
    began, matches = time.process_time(), 0
    for block in log:
        matches += engine.feed(block).solutions.num_rows
    seconds = time.process_time() - began
    return (seconds, engine.goals, sum(len(member.network.host.shares.numbered) for member in engine.registry.members)), matches
