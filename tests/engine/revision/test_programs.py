"""Random revised programs: what stands after late events and retractions is what the naive evaluator gives."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.messages import REVISED, Finish, Register, Revise, SetStream
from epsparql.etalis.parser.vocabulary import name_of
from epsparql.etalis.translator import query_text
from epsparql.ntriples import parse_term
from epsparql.terms import Literal
from tests.engine.revision.revised_streams import RevisedStreams
from tests.engine.revision.test_revision import Reader, Scenario
from tests.etalis.naive import Event, run_naively
from tests.etalis.strategies import occurrences
from tests.etalis.test_equivalence import programs
from tests.soak import examples
from tests.support.feeds import SECOND
from tests.support.run_both import past_of

HORIZON_S = 4
Sent = tuple[Event, bool]
"""An event, and whether it is taken back."""


@st.composite
def bodies(draw: st.DrawFn) -> list[tuple[list[Sent], bool]]:
    """Bodies that go on in time by about two seconds each, with late events and retractions, and perhaps a revision."""
    found: list[tuple[list[Sent], bool]] = []
    known: list[Event] = []
    for k in range(draw(st.integers(1, 7))):
        sent: list[Sent] = []
        for _ in range(draw(st.integers(1, 3))):
            if known and draw(st.sampled_from((False, False, True))):
                sent.append((draw(st.sampled_from(known)), True))
                continue
            end = max(2 * k + draw(st.sampled_from((0, 0, 1, -1, -2, -4, -6))), 0)
            start = max(end - draw(st.sampled_from((0, 0, 0, 1, 3))), 0)
            sent.append(((draw(st.sampled_from("abc")), (draw(st.integers(0, 2)),), start, end), False))
        known += [event for event, back in sent if not back]
        found.append((sent, draw(st.booleans())))
    return found


@pytest.mark.slow
@settings(max_examples=examples(500, 50), deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), sent=bodies(), cuts=st.sets(st.integers(0, 16), max_size=5), restores=st.sets(st.integers(0, 16), max_size=3))
def test_what_stands_of_a_program_is_what_the_naive_evaluator_gives(
    program: str, sent: list[tuple[list[Sent], bool]], cuts: set[int], restores: set[int]
) -> None:
    scenario, universe = Scenario(RevisedStreams(HORIZON_S * SECOND)), set[Event]()
    scenario.add(SetStream, "default", revisable=HORIZON_S * SECOND)
    scenario.add(Register, "p", *query_text(program), emit=REVISED)
    expected: dict[int, tuple[set[Event], int | None]] = {}
    for body, revise in [*sent, ([], True)]:
        if body:
            scenario.send("default", [(each, back) for event, back in body for each in occurrences([event])])
            universe |= {event for event, _ in body}
        else:
            scenario.add(Finish, "default")
        if revise:
            scenario.add(Revise)
            before = scenario.streams.latest.get("default") if body else None
            if before is not None or not body:
                expected[len(scenario.log)] = run_naively(program, present(scenario.streams, universe)), before
    parts = scenario.blocks(cuts | expected.keys())
    engine, reader = Engine(past=partial(past_of, parts)), Reader()
    for number, part in enumerate(parts):
        if number in restores:
            engine = Engine.restore(engine.snapshot())
            engine.look_back_by(partial(past_of, parts))
        outcome = engine.feed(part)
        assert not outcome.changes, outcome.changes
        rows = outcome.solutions
        for row in rows.set_column(3, "start", rows["start"].cast(pa.int64())).to_pylist():
            reader.read(row)
        if part.after in expected:
            events, before = expected[part.after]
            assert find_standing(reader, before) == sorted(each for each in events if before is None or each[3] * SECOND < before)


def present(streams: RevisedStreams, universe: Iterable[Event]) -> list[Event]:
    """Return the events all of whose triples are on the stream."""
    held = streams.present.get("default", [])
    return [event for event in universe if all(each in held for each in occurrences([event]))]


def find_standing(reader: Reader, before: int | None) -> list[Event]:
    """Return the events that stand and end before an instant, as often as they do."""
    rows = ((values, start, end) for values, start, end in reader.standing.values() if before is None or end < before)
    return sorted((name_of(str(values[0])[1:-1]), read_numbers(values[1:]), start // SECOND, end // SECOND) for values, start, end in rows)


def read_numbers(texts: Sequence[Any]) -> tuple[int, ...]:
    terms = [parse_term(text) for text in texts if text is not None]
    return tuple(int(term.lexical) for term in terms if isinstance(term, Literal))
