"""This bench runs aggregates over chains of SEQ, while ever more events have one id, so that matches multiply.

The cost of an event is not to depend on how many matches there are. Each line says what it costs where all are made.
"""

import time
from collections.abc import Iterator

import pyarrow as pa

from bench.measurement import WrongCount, line, one_core
from bench.workloads import PREFIXES, WITHIN, Drawn, blocks, drawn, registration
from engine.engine import Engine

_CHAINS = {
    "W1": "{?s :a ?x} SEQ {?s :b ?y} SEQ {?s :c ?z}",
    "W2": "{?s :a ?x} SEQ {?s :b ?y} WITHOUT {?s :c ?z}",
    "W4": "{?s :a ?x} SEQ { {?s :b ?y} UNION {?s :c ?y} }",
    "W1 without a key": "{?r :a ?x} SEQ {?s :b ?y} SEQ {?t :c ?z}",
}
_AGGREGATES = {"COUNT": "(COUNT(*) AS ?n)", "SUM": "(COUNT(*) AS ?n) (SUM(?y) AS ?sum)", "MIN": "(COUNT(*) AS ?n) (MIN(?y) AS ?min)"}
_IDS = (1_000, 100, 10, 1)
_LONGEST_S = 3.0
"""Making all matches ends after so many CPU seconds."""


def measure(n: int) -> Iterator[str]:
    """Yield a line for each chain, aggregate and number of ids.

    Raises WrongCount where the two ways do not report the same.
    """
    one_core()
    for chain, aggregates, ids in _list_cases():
        keyed = "key" not in chain
        shown = f"SELECT {'?s ' if keyed else ''}{_AGGREGATES[aggregates]}"
        text = f"{shown} WHERE {{ {_CHAINS[chain]} {WITHIN} }}{' GROUP BY ?s' if keyed else ''}"
        events = drawn(n, ids)
        summed, took = _run(text, events, frozenset(), float("inf"))
        made, made_in = _run(text, events, frozenset({"sums"}), _LONGEST_S)
        if any(not one.equals(other) for one, other in zip(summed, made, strict=False)):
            raise WrongCount(text, sum(map(len, summed[: len(made)])), sum(map(len, made)))
        fed, batches = len(events), len(summed)
        yield line(
            "chains", chain=chain, aggregates=aggregates, ids=ids, n=n, matches_an_event=round(_count_matches(summed, keyed=keyed) / fed, 1),
            us_an_event=round(took / fed * 1e6, 2), events_per_cpu_s=round(fed / took),
            us_an_event_with_matches=round(made_in / (fed * len(made) / batches) * 1e6, 2), events_with_matches=round(fed * len(made) / batches),
        )  # fmt: skip


def _list_cases() -> Iterator[tuple[str, str, int]]:
    for chain in _CHAINS:
        for aggregates in _AGGREGATES:
            for ids in _IDS if "key" not in chain else _IDS[:1]:
                yield chain, aggregates, ids


def _run(text: str, events: Drawn, without: frozenset[str], most_s: float) -> tuple[list[pa.RecordBatch], float]:
    """Return the reports of each batch, and the CPU seconds of the engine; no batch begins after `most_s`."""
    engine, found, took = Engine(), list[pa.RecordBatch](), 0.0
    engine.registry.without |= without
    changes = engine.feed(registration(text)).changes
    assert not changes, PREFIXES + text
    for batch in blocks(events, batch=500):
        began = time.process_time()
        found.append(engine.feed(batch).solutions)
        took += time.process_time() - began
        if took > most_s:
            break
    return found, took


def _count_matches(reports: list[pa.RecordBatch], *, keyed: bool) -> int:
    """Return how many matches there were in all: the last report of each group has those of the group."""
    last: dict[str, int] = {}
    for batch in reports:
        for values in batch["values"].to_pylist():
            last[values[0] if keyed else ""] = int(values[keyed].split('"')[1])
    return sum(last.values())
