"""These tests check the catalog: what the log's entries amount to."""

from msgspec.structs import replace

from engine.engine import Engine
from engine.messages import CatchUp, DropStream, Entail, Entry, Events, Facts, Finish, Pause, Register, Resume, SetStream, StateChange, Tick
from engine.messages import Drop as DropQuery
from pipeline.log.catalog import CLOCK_SILENCE, BackgroundGraph, Catalogue, Registration, Stream
from pipeline.log.codec import Record
from tests.support.run_both import block


def fold(*entries: Entry) -> Catalogue:
    catalogue = Catalogue()
    for entry in entries:
        catalogue.apply(Record(entry), 7)
    return catalogue


def test_a_stream_is_created_by_whatever_names_it_first() -> None:
    assert fold(Events(0, "s", 2, None)).streams == {"s": Stream("s", 0, accepted=2, arrived=7)}
    assert fold(SetStream(0, "s", 3, 4, 5, "d")).streams == {"s": Stream("s", 0, 3, 4, 5, "d")}
    assert fold(Finish(0, "s")).streams["s"].finished
    assert fold(Tick(0, "s", 9)).streams["s"].watermark == 9
    assert fold(Tick(0, None, None)).streams == {}


def test_a_dropped_stream_is_gone_and_may_come_again() -> None:
    again = fold(Finish(0, "s"), DropStream(1, "s"), DropStream(2, "s"), Events(3, "s", 1, None))
    assert again.streams == {"s": Stream("s", 3, accepted=1, arrived=7)}


def test_a_stream_goes_by_the_clock_while_no_event_has_a_time_of_its_own() -> None:
    catalogue, found = Catalogue(), []
    for offset, by_clock in enumerate((True, True, False, True)):
        catalogue.apply(Record(Events(offset, "s", 1, 5), latest=5, by_clock=by_clock), 7)
        found.append(catalogue.streams["s"].by_clock)
    assert found == [True, True, False, False]


def test_a_query_is_replaced_by_name_and_dropped_by_registration() -> None:
    replaced = fold(Register(0, "q", "a"), Register(1, "r", "b"), Register(2, "q", "c"), DropQuery(3, 0, "q"))
    assert list(replaced.queries.values()) == [Registration(1, "r", "b", at=7), Registration(2, "q", "c", at=7)]
    replaced.apply(Record(DropQuery(4, 2, "q")), 0)
    assert list(replaced.queries) == ["r"]
    assert replaced.position == 5


def test_states_come_from_the_runner_and_hold_for_their_registration_alone() -> None:
    catalogue = fold(Register(0, "q", "a"), Register(1, "r", "b"))
    shown = catalogue.with_changes([StateChange(0, "q", 3, "failed", "why"), StateChange(9, "r", 9, "completed", "")])
    assert (shown["q"].state, shown["q"].reason) == ("failed", "why")
    assert (shown["r"].state, shown["r"].reason) == ("running", "")


def test_background_graphs_name_the_entries_that_they_are_made_of() -> None:
    catalogue = fold(Facts(0, "", "ab"), Facts(1, "g", "a"), Facts(2, "g", "bc"), Facts(3, "h", "a"), Facts(4, "h", "", "drop"))
    assert catalogue.graphs == {"": BackgroundGraph("", (0,), 2), "g": BackgroundGraph("g", (1, 2), 3)}
    catalogue = fold(Facts(0, "g", "a"), Facts(1, "g", "bc", "replace"), Facts(2, "g", "d"), Entail(3, "owl-rl"))
    assert (catalogue.graphs, catalogue.entailment) == ({"g": BackgroundGraph("g", (1, 2), 3)}, "owl-rl")


def test_silence_is_judged_by_timeout_and_delay() -> None:
    stream = Stream("s", 0, max_delay=3, idle_timeout=10, latest=100, watermark=97, arrived=1000)
    assert [stream.advance(now, 100) for now in (1009, 1010, 1020)] == [None, 107, 117]
    assert [replace(stream, watermark=None).advance(now, 100) for now in (1009, 1010)] == [None, 107]
    assert Stream("s", 0, idle_timeout=10).advance(10**9, 0) is None
    assert Stream("s", 0, idle_timeout=10, latest=1, watermark=10**6, arrived=0).advance(100, 0) is None


def test_a_stream_without_times_of_its_own_needs_no_timeout() -> None:
    stream = Stream("s", 0, max_delay=3, latest=100, watermark=97, arrived=100, by_clock=True)
    due = 100 + CLOCK_SILENCE
    assert [stream.advance(now, 97) for now in (due - 1, due)] == [None, due - 3]
    assert replace(stream, by_clock=False).advance(due, 97) is None


def test_the_clock_advances_a_stream_only_past_what_queries_wait_for() -> None:
    stream = Stream("s", 0, idle_timeout=10, latest=100, watermark=100, arrived=100)
    assert [stream.advance(now, 150) for now in (149, 150, 151)] == [None, None, 151]
    assert replace(stream, watermark=151).advance(10**9, 150) is None


def test_a_clock_that_goes_back_brings_nothing() -> None:
    stream = Stream("s", 0, idle_timeout=10, latest=100, watermark=500, arrived=1000)
    assert [stream.advance(now, 500) for now in (0, 999, 1020, 1399, 1400, 1401)] == [None, None, None, None, None, 501]


def test_what_is_behind_says_from_where_the_log_is_needed() -> None:
    catalogue = fold(Register(0, "q", "a"), *(Tick(k, None, None) for k in range(1, 5)), Pause(5, 0, "q"), Tick(6, None, None))
    assert (catalogue.queries["q"].state, catalogue.queries["q"].reads, catalogue.leads) == ("paused", 5, frozenset({0}))
    assert catalogue.find_needed_position(7) == 5
    for entry in (Resume(7, 0, "q"), CatchUp(8, 0, 6), CatchUp(9, 0, 9)):
        catalogue.apply(Record(entry), 7)
    assert (catalogue.queries["q"].state, catalogue.queries["q"].reads, catalogue.leads) == ("running", None, frozenset())
    assert [catalogue.find_needed_position(start) for start in (6, 9, 10)] == [5, 5, 10]
    for oldest, kept in ((9, [5]), (10, [])):
        catalogue.forget_before(oldest)
        assert list(catalogue.rereads) == kept
    catalogue.apply(Record(Register(10, "r", "b", reads_from=8)), 7)
    assert catalogue.find_needed_position(11) == 0
    catalogue.forget_before(11)
    assert catalogue.find_needed_position(11) == 0, "it is behind still"


def test_an_entry_that_was_asked_for_before_a_pause_lets_nothing_be_read() -> None:
    """The engine passes over it too, so both agree that the query is behind still."""
    entries: list[Entry] = [Register(0, "q", "SELECT * WHERE { ?s ?p ?o }", reads_from=0), Pause(1, 0, "q"), CatchUp(2, 0, 2), Resume(3, 0, "q")]
    catalogue, engine = fold(*entries), Engine(past=lambda first, after: [block([(entry, ()) for entry in entries[first:after]])])
    engine.feed(block([(entry, ()) for entry in entries]))
    assert catalogue.find_reads(0) == 0
    assert catalogue.leads == engine.sides.keys() == {0}
    entries.append(CatchUp(4, 0, 4))
    catalogue.apply(Record(entries[-1]), 7)
    engine.feed(block([(entries[-1], ())]))
    assert catalogue.leads == engine.sides.keys() == set()
