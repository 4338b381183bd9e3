"""Queries of certain subjects stand in order of these in the tables, so that an event finds its own; all find what
they ask for.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.messages import Drop, Events, Register
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.feeds import PREFIXES, parse_feed
from tests.support.run_both import block

SUBJECTS = 12
OBJECTS = ("?o", ":o1", ":o2")
Asked = tuple[int | None, int, str]
"""The subject, None for any; the predicate; and the object as it is written."""
ASKED = st.tuples(st.none() | st.integers(0, SUBJECTS - 1), st.integers(0, 1), st.sampled_from(OBJECTS))
EVENT = st.tuples(st.integers(0, SUBJECTS - 1), st.integers(0, 1), st.integers(1, 3))


def text_of(asked: Asked) -> str:
    subject, predicate, value = asked
    return f"{PREFIXES}SELECT * WHERE {{ {'?s' if subject is None else f':s{subject}'} :p{predicate} {value} }}"


def is_met(asked: Asked, event: tuple[int, int, int]) -> bool:
    subject, predicate, value = asked
    return subject in (None, event[0]) and predicate == event[1] and value in ("?o", f":o{event[2]}")


@settings(max_examples=examples(20))
@given(st.lists(ASKED, min_size=1, max_size=16), st.data())
def test_each_query_finds_the_events_of_its_subject(asked: list[Asked], data: st.DataObject) -> None:
    engine, standing = Engine(), dict[int, Asked]()

    def put(entry: Register | Drop | Events, occurrences: tuple[Occurrence, ...] = ()) -> list[str]:
        outcome = engine.feed(block([(entry, occurrences)]))
        assert not outcome.changes
        found: list[str] = outcome.solutions.column("query").to_pylist()
        return found

    for turn, each in enumerate(asked):
        if standing and data.draw(st.integers(0, 3)) == 0:
            gone = data.draw(st.sampled_from(sorted(standing)))
            put(Drop(engine.position, gone, str(gone)))
            del standing[gone]
        standing[engine.position] = each
        put(Register(engine.position, str(engine.position), text_of(each)))
        if data.draw(st.integers(0, 5)) == 0:
            engine = Engine.restore(engine.snapshot())
        event = data.draw(EVENT)
        (occurrence,) = parse_feed(f"p{event[1]}(s{event[0]},o{event[2]})@{turn + 1}")
        found = put(Events(engine.position, "default", 1, 1_000_000 * (turn + 1)), (occurrence,))
        assert sorted(map(int, found)) == [number for number, query in standing.items() if is_met(query, event)]
