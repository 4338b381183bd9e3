"""Random programs: the engine gives what the naive evaluator gives, and what it gives when it is stopped half-way and
goes on from a snapshot.
"""

import json
from datetime import datetime
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.messages import Events, Finish, Register
from epsparql.etalis.parser.vocabulary import name_of
from epsparql.etalis.translator import query_text
from epsparql.trees import replace_fields
from pipeline.replay.query_files import SourceFault
from tests.etalis.naive import Ambiguous, Event, run_naively
from tests.etalis.programs import run_program
from tests.etalis.strategies import aggregates, occurrences, patterns, streams, written
from tests.soak import examples
from tests.support.run_both import block
from verification.definitions.model import Occurrence


@st.composite
def programs(draw: st.DrawFn) -> str:
    first, second = draw(patterns(("a", "b", "c"))), draw(patterns(("a", "b", "d")))
    functions = ("count", "sum(X)", "min(X)", "max(X + 1)", "last(X)", "spread(X)")
    third = draw(
        st.sampled_from(("f(X, N) <- d(X) seq aggregate(count, b(_), N).", "exceptionAlarm(f(X), 2) <- d(X)."))
        | st.builds("f(V) <- {}.".format, aggregates(("a", "b", "d"), functions))
    )
    spread = "spread(L, S) :- max_list(L, A), min_list(L, B), S is A - B."
    return f"d(X + 1) <- {first}.\ne(X) <- {second}.\n{third}\n{spread}\n"


def seconds(text: str) -> int:

    return int(datetime.fromisoformat(text).timestamp())


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(program=programs(), events=streams())
def test_engine_and_naive_evaluator(tmp_path: Path, program: str, events: list[Event]) -> None:
    try:
        lines = run_program(tmp_path, program, written(events))
    except SourceFault as fault:
        assume("on one side of an or alone" not in str(fault))
        raise
    found = [(line.event, tuple(json.loads(line.args)), seconds(line.start), seconds(line.end)) for line in lines]
    assert len(found) == len(set(found))
    try:
        wanted = run_naively(program, events)
    except Ambiguous:
        assume(False)
    assert set(found) == wanted


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs(), events=streams(), cut=st.integers(0, 7))
def test_restored_from_a_snapshot(program: str, events: list[Event], cut: int) -> None:
    """A run that goes on from a snapshot gives what is left: rules, stars of arguments, groups and alarms are kept."""
    whole, rest = emitted(program, events, None), emitted(program, events, cut)
    assert rest == whole


def emitted(program: str, events: list[Event], cut: int | None) -> list[tuple[str, ...]]:
    text, policy = query_text(program)
    engine, found = Engine(), list[tuple[str, ...]]()
    by_end: dict[int, list[Occurrence]] = {}
    for occurrence in occurrences(events):
        by_end.setdefault(occurrence.end, []).append(occurrence)
    log = [(Register(0, "p", text, policy), ())]
    log += [(Events(0, "default", len(part), end), tuple(part)) for end, part in sorted(by_end.items())]  # type: ignore[misc]
    log += [(Finish(0, "default"), ())]  # type: ignore[list-item]
    for offset, (entry, part) in enumerate(log):
        outcome = engine.feed(block([(replace_fields(entry, offset=offset), part)]))
        assert outcome.changes == ()
        found += [(name_of(str(row["values"][0])), str(row["values"]), str(row["start"]), str(row["end"])) for row in outcome.solutions.to_pylist()]
        if offset == cut:
            engine = Engine.restore(engine.snapshot())
    return found
