"""Random queries over streams with a background, on Spark against the reference evaluator: what comes late within its
delay, and schemas that change meanwhile.

All cases in one session, each a log of its own. In-process, tests/engine/semantics/test_equivalence.py and
tests/engine/background/test_entailment_queries.py draw the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.messages import Entry, Events, SetStream
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogWriter
from pipeline.spark.job import run_to_end
from tests.engine.background.test_entailment_queries import GROUPS, POLICIES, STEPS
from tests.engine.semantics.test_equivalence import accepted
from tests.reference.evaluator import Occurrence, Rows, Settings
from tests.soak import is_full
from tests.support import query_strategies
from tests.support.background_timelines import SCHEMAS, told
from tests.support.feeds import SECOND, show
from tests.support.run_both import entries, results, run_oracle
from tests.support.spark_cases import found_in, frozen_clock

pytestmark = pytest.mark.slow
CASES = 20 if is_full() else 8
"""Cases of each kind."""
Drawn = TypeVar("Drawn")
Log = list[tuple[Entry, tuple[Occurrence, ...]]]


@dataclass(frozen=True)
class SparkCase:
    """A log, and what its queries are to find."""

    queries: dict[str, str]
    log: Log
    max_delay: int
    expected: dict[str, Rows]

    def __str__(self) -> str:
        return "\n".join(f"{entry} {show(occurrences)}" for entry, occurrences in self.log)


@st.composite
def with_facts(draw: st.DrawFn) -> SparkCase:
    """A rule, and queries of any kind, over facts and a schema."""
    rules = {f"rule{k}": text for k, text in enumerate(draw(st.lists(query_strategies.rules(), max_size=1)))}
    queries = rules | {f"q{k}": text for k, text in enumerate(draw(st.lists(query_strategies.queries(), min_size=2, max_size=2)))}
    queries = {name: text for name, text in queries.items() if accepted(queries if name in rules else {name: text})}
    fed = {"default": draw(query_strategies.feeds(8)), query_strategies.OTHER: draw(query_strategies.feeds(4))}
    background = [*draw(query_strategies.facts()), *draw(SCHEMAS)]
    log = entries(queries, fed, draw(query_strategies.arrivals(fed)).bodies, background, query_strategies.MAX_DELAY)
    return SparkCase(queries, log, query_strategies.MAX_DELAY, run_oracle(queries, fed, background))


@st.composite
def with_changes(draw: st.DrawFn) -> SparkCase:
    """Queries over what occurrences entail by the schema of their instant."""
    queries = {f"q{k}": text for k, text in enumerate(draw(st.lists(query_strategies.within(":g", GROUPS), min_size=2, max_size=2)))}
    queries = {name: text for name, text in queries.items() if accepted({name: text})}
    delay, policy = draw(st.integers(0, 2)), draw(POLICIES)
    story = told(queries, draw(SCHEMAS), draw(STEPS), delay, policy)
    expected = run_oracle(queries, {"default": story.entailed}, settings=dict.fromkeys(queries, Settings(policy)))
    return SparkCase(queries, story.log, delay * SECOND, expected)


def drawn(cases: st.SearchStrategy[Drawn], number: int, chosen: int = 5) -> list[Drawn]:
    """The same ones in every run with the same seed."""
    found: list[Drawn] = []

    @seed(chosen)
    @settings(max_examples=number, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def draw(case: Drawn) -> None:
        found.append(case)

    draw()
    return found


@pytest.mark.parametrize("cases", [with_facts(), with_changes()], ids=["facts", "changes"])
def test_spark_finds_what_the_definitions_say(spark: SparkSession, tmp_path: Path, cases: st.SearchStrategy[SparkCase]) -> None:
    logs = {tmp_path / f"case{k}": case for k, case in enumerate(drawn(cases, CASES))}
    for data, case in logs.items():
        write(case, data)
    run_to_end(spark, [*logs])
    wrong = [f"{case}\n{found(case, data)}\n{case.expected}" for data, case in logs.items() if found(case, data) != case.expected]
    assert not wrong, wrong[0]
    assert sum(bool(rows) for case in logs.values() for rows in case.expected.values()) >= CASES // 2, "many find something"


def write(case: SparkCase, data: Path) -> None:
    with LogWriter(data, frozen_clock) as log:
        for stream in ("default", query_strategies.OTHER):
            log.append(lambda offset, stream=stream: SetStream(offset, stream, case.max_delay))  # type: ignore[misc]
        for entry, occurrences in case.log:
            if isinstance(entry, Events):
                log.append_events(entry.stream, batch(occurrences))
            else:
                log.append(lambda offset, entry=entry: replace(entry, offset=offset))  # type: ignore[misc]


def batch(occurrences: Sequence[Occurrence]) -> pa.RecordBatch:
    s, p, o = ([str(occurrence.triple[part]) for occurrence in occurrences] for part in range(3))
    graphs = [None if occurrence.graph is None else str(occurrence.graph) for occurrence in occurrences]
    return batch_of(s, p, o, graphs, [occurrence.start for occurrence in occurrences], [occurrence.end for occurrence in occurrences])


def found(case: SparkCase, data: Path) -> dict[str, Rows]:
    solutions, changes = found_in(data)
    assert all(change.state == "completed" for change in changes), changes
    return results(case.queries, ((x.query, x.entry, x.start, x.end, x.values) for x in solutions))
