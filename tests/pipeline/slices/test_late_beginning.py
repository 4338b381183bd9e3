"""A query that begins to read a log late finds, from the log's end on, what one finds that has read all."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex
from engine.engine import Engine
from engine.messages import Events, Facts, Register
from pipeline.log import LogReader, LogWriter
from pipeline.slices import late_beginning
from pipeline.slices.execution import SliceWork
from pipeline.slices.late_beginning import LateBeginning, find_late_beginning
from pipeline.slices.plan import Slice, StreamMark
from tests.pipeline.slices.test_operators import RUNS, random_bodies
from tests.pipeline.slices.test_reach import feeds, programs
from tests.soak import examples
from tests.support.feeds import Body
from tests.support.query_strategies import MAX_DELAY, OTHER, arrivals
from tests.support.slices import SliceSolution, by_one_engine, in_slices, rows_of, written_log

pytestmark = pytest.mark.slow


def find(data: Path, registrations: Sequence[Register], first: int, until: int) -> LateBeginning | None:
    with closing(LogReader(data)) as reader:
        records = list(reader.records(0, until))
    fed = {record.entry.stream for record in records if isinstance(record.entry, Events) and record.latest is not None}
    return find_late_beginning(data, registrations, FactIndex(), fed, (first, until))


def solutions_from(data: Path, registrations: Sequence[Register], late: LateBeginning, until: int) -> list[SliceSolution]:
    """Return the solutions of the entries from a position on, of queries that have begun late before it."""
    with closing(LogReader(data)) as reader:
        part = Slice(late.begins, until, reader.head(), tuple(StreamMark(*mark) for mark in late.marks))
    return in_slices([SliceWork(str(data), (tuple(registrations),), Engine().snapshot(), part)])


@given(queries=programs(), data=st.data())
@settings(max_examples=examples(300, 20))
def test_random_queries_begin_late(queries: Mapping[str, str], data: st.DataObject) -> None:
    streams = {"default": data.draw(feeds(), "default"), OTHER: data.draw(feeds(), "other")}
    if "r" in queries:
        streams[OTHER] = []
    bodies = data.draw(arrivals(streams), "arrivals").bodies
    check(queries, bodies, tuple(streams), data.draw(st.integers(len(bodies) // 2, len(bodies)), "bodies before"))


def check(queries: Mapping[str, str], bodies: tuple[Body, ...], streams: tuple[str, ...], count: int) -> None:
    with written_log(queries, bodies, streams, max_delay=MAX_DELAY) as (data, registrations, first), patch.object(late_beginning, "FIRST_ENTRIES", 3):
        expected, refused = by_one_engine(data)
        assume(not refused)
        until = first + len(streams) + count
        late = find(data, registrations, first, until)
        assert late is not None
        event(f"begins late: {late.begins > first}")
        found = solutions_from(data, registrations, late, until)
        assert [each for each in found if each.query == "q"] == [each for each in expected if each.query == "q" and each.entry >= until]


@pytest.mark.parametrize("name", RUNS)
def test_only_the_end_of_a_long_log_is_read(name: str) -> None:
    """The reach is a few seconds of the hours that the log has."""
    with written_log({"q": RUNS[name]}, random_bodies(900), ["default"]) as (data, registrations, first), closing(LogReader(data)) as reader:
        until = reader.head() - 20
        late = find(data, registrations, first, until)
        assert late is not None
        assert until - 20 < late.begins < until
        expected = [each for each in by_one_engine(data)[0] if each.entry >= until]
        assert solutions_from(data, registrations, late, until) == expected
        assert expected


def test_without_a_bound_it_begins_where_the_query_does() -> None:
    text = RUNS["keyed SEQ"].replace("WITHIN 20", "")
    with written_log({"q": text}, random_bodies(300), ["default"]) as (data, registrations, _), closing(LogReader(data)) as reader:
        late = find(data, registrations, 60, reader.head() - 1)
        assert late is not None
        assert late.begins == 60
        assert late.marks[0][2] == max(body.occurrences[-1].end for body in random_bodies(300)[: 60 - 2])


def test_a_change_of_the_background_is_read(tmp_path: Path) -> None:
    """The background before it is not known, so the whole log is read where it lies in what the query looks back to."""
    bodies, query = random_bodies(300), Register(0, "q", RUNS["keyed SEQ"])
    with LogWriter(tmp_path, lambda: 0) as log:
        for body in bodies[:60]:
            log.append_events(body.stream, rows_of(body.occurrences))
        log.append(lambda offset: Facts(offset, "", "<http://e/a> <http://e/b> <http://e/c> .\n"))
        for body in bodies[60:]:
            log.append_events(body.stream, rows_of(body.occurrences))
    assert find(tmp_path, [query], 0, 63) is None
    late = find(tmp_path, [query], 0, 101)
    assert late is not None
    assert late.begins > 60
