"""Source positions: each part of a source is accepted once, and a watermark is the least over the declared sources
(semantics.md section 8).
"""

import json
import shutil
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import NO_ROWS, DropStream, Events, Finish, SetStream, Tick
from pipeline import source_positions
from pipeline.errors import FormatError, LogFailed, SourceConflict, SourceSilent, StreamFinished, TooFarAhead, TooManySources
from pipeline.log import Ack, LogReader, LogWriter
from pipeline.log.codec import decode, encode
from pipeline.log.lag import Waiting, add_waiting, count_waiting, release_waiting
from pipeline.log.segments import oldest
from pipeline.retention import Limits, Retention
from pipeline.solutions.solution_log import SolutionReader
from pipeline.source_positions import LONGEST_HEADER, LONGEST_ID, LONGEST_POSITION, Source, parse_source
from tests.soak import examples
from tests.support.logs import Clock, occurrences

SECOND = 1_000_000


def come(after: str | None, position: str | None, source: str = "a", *, reset: bool = False) -> Source:
    return Source(source, position, after, reset)


def positions(log: LogWriter, stream: str = "s") -> dict[str, str]:
    return {name: state.position for name, state in log.read_sources(stream).items()}


def appended(reader: LogReader) -> list[str]:
    """The objects of all rows, in the order of the log."""
    return [row["o"].strip('"') for block in reader.blocks(0, 1000) for row in block.rows.to_pylist()]


# ---------------------------------------------------------------- answers, beside those of the naive model below
def test_the_message_tells_both_positions() -> None:
    assert str(SourceConflict("s", "a", "12", "17")) == (
        "source 'a' of stream 's' is at '17', and the body begins after '12'; read on from there, or send \"reset\": true"
    )
    assert "has no position, and the body begins at the source's beginning" in str(SourceConflict("s", "a", None, None))
    assert len(str(SourceConflict("s", "a", "x" * LONGEST_POSITION, "y" * LONGEST_POSITION))) < 500


def test_a_dropped_stream_forgets_its_sources_and_a_finished_one_keeps_them(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1), source=come(None, "1"))
        log.append(lambda offset: Finish(offset, "s"))
        assert log.append_events("s", occurrences(1), source=come(None, "1")).duplicate, "the answer to a repeat does not depend on what came since"
        with pytest.raises(StreamFinished):
            log.append_events("s", occurrences(2), source=come("1", "2"))
        assert positions(log) == {"a": "1"}
        log.append(lambda offset: DropStream(offset, "s"))
        assert positions(log) == {}
        assert log.append_events("s", occurrences(1), source=come(None, "1")).accepted == 1


def test_a_body_that_is_refused_moves_no_position(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock(1000)) as log:
        log.append(lambda offset: SetStream(offset, "s", max_ahead=10))
        with pytest.raises(TooFarAhead):
            log.append_events("s", occurrences(5000), source=come(None, "1"))
        assert positions(log) == {}


def test_a_write_that_fails_takes_the_position_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1), source=come(None, "1"))
        with monkeypatch.context() as patch:
            patch.setattr("pipeline.log.writer.FrameWriter.append", full)
            with pytest.raises(LogFailed):
                log.append_events("s", occurrences(2), source=come("1", "2"))
        assert positions(log) == {"a": "1"}
        assert log.append_events("s", occurrences(2), source=come("1", "2")) == Ack(2, 1)


def test_the_number_of_sources_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_positions, "MOST_SOURCES", 3)
    with LogWriter(tmp_path, Clock()) as log:
        for name in "abc":
            log.append_events("s", occurrences(), source=come(None, "1", name))
        with pytest.raises(TooManySources, match=r"stream 's' stores the positions of 3 sources; let it forget old ones by \"position\": null"):
            log.append_events("s", occurrences(1), source=come(None, "1", "d"))
        log.append_events("s", occurrences(), source=come("1", "2", "a"))
        log.append_events("s", occurrences(), source=come("1", None, "b"))
        assert log.append_events("s", occurrences(1), source=come(None, "1", "d")).accepted == 1
        log.append_events("t", occurrences(), source=come(None, "1", "d"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "truncated"),
        ("[]", "array"),
        ('{"id": "a"}', "missing required field `position`"),
        ('{"position": "1"}', "missing required field `id`"),
        ('{"id": "", "position": "1"}', "length >= 1"),
        ('{"id": "a", "position": ""}', "length >= 1"),
        ('{"id": "a", "position": 1}', "Expected `str | null`"),
        (json.dumps({"id": "a" * (LONGEST_ID + 1), "position": "1"}), f"length <= {LONGEST_ID}"),
        (json.dumps({"id": "a", "position": "1" * (LONGEST_POSITION + 1)}), f"length <= {LONGEST_POSITION}"),
        ('{"id": "a", "position": "1", "resets": true}', "unknown field `resets`"),
        ('{"id": "a", "position": "1", "reset": "yes"}', "Expected `bool`"),
        ('{"id": "a", "after": "1", "position": "1"}', "each body has a new position"),
        ('{"id": "a", "position": null}', "each body has a new position"),
        (r'{"id": "a", "position": "\ud800"}', "cannot be read"),
        ('{"id":' + "[" * 100_000, ""),
    ],
)
def test_a_source_that_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_source(text)
    assert reason in str(caught.value)
    assert "expected an object such as" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_longest_source_fits_into_the_header() -> None:
    found = Source("\U0001f600" * LONGEST_ID, "\U0001f601" * LONGEST_POSITION, "\U0001f602" * LONGEST_POSITION, reset=True)
    text = json.dumps({"id": found.id, "after": found.after, "position": found.position, "reset": True})
    assert parse_source(text) == found
    assert len(text) <= LONGEST_HEADER


# ---------------------------------------------------------------- storage
def test_an_entry_of_an_earlier_version_has_no_source() -> None:
    sink = pa.BufferOutputStream()
    batch = NO_ROWS.replace_schema_metadata(
        {b"entries": b'[5,[["events",["s",0,3,"k"],0,null,4,false],["set",["s",1,null,null,"d"],0,null,null,false]]]'}
    )
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    old = decode(7, memoryview(sink.getvalue()))
    assert [record.entry for record in old.records] == [Events(7, "s", 0, 3, "k"), SetStream(8, "s", 1, description="d")]
    assert decode(7, memoryview(b"".join(encode(old.at, old.records, old.rows)[0]))).records == old.records


def test_a_position_outlives_the_segment_that_it_was_stored_in(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock(), segment_bytes=2000) as log, closing(SolutionReader(tmp_path)) as solutions:
        log.append_events("s", occurrences(1), source=come(None, "1", "old"))
        for number in range(20):
            log.append_events("s", occurrences(number), source=come(str(number) if number else None, str(number + 1)))
        Retention(tmp_path, Limits(bytes=1), solutions, lambda: log.saved, log.head).sweep(0)
        assert oldest(tmp_path / "log") > 1
    with LogWriter(tmp_path, Clock()) as log:
        assert positions(log) == {"old": "1", "a": "20"}
        assert log.append_events("s", occurrences(1), source=come(None, "1", "old")).duplicate


# ---------------------------------------------------------------- against a naive model
NAMES, PLACES = st.sampled_from("ab"), st.sampled_from([None, "1", "2", "3"])
STEPS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from("st"), NAMES, PLACES, PLACES, st.booleans(), st.integers(0, 2)),
    st.tuples(st.just("stop"), st.sampled_from(["clean", "no state", "killed"])),
    st.tuples(st.just("drop"), st.sampled_from("st")),
)


@settings(max_examples=examples(150, 5), deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_random_histories_go_as_the_naive_model_does(steps: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as scratch:
        data, stored, rows = Path(scratch) / "0", dict[tuple[object, object], object](), list[str]()
        log = LogWriter(data, Clock())
        try:
            for number, step in enumerate(steps):
                match step:
                    case ("send", stream, name, after, position, reset, size):
                        known = stored.get((stream, name))
                        if (after == position and not reset) or (position is None and size):
                            expected = "format"
                        elif reset or after == known:
                            expected = "accepted"
                            rows += [str(number)] * int(str(size))
                            stored[stream, name] = position
                        else:
                            expected = "duplicate" if position == known else "conflict"
                        assert outcome(log, str(stream), name, after, position, reset, [number] * int(str(size))) == expected
                    case ("drop", stream):
                        log.append(lambda offset, stream=stream: DropStream(offset, str(stream)))  # type: ignore[misc]  # a default that captures
                        stored = {key: position for key, position in stored.items() if key[0] != stream}
                    case (_, how):
                        if how == "killed":  # what a kill leaves: the log as it is now, and the state as it was saved
                            data = Path(shutil.copytree(data, data.with_name(f"{number + 1}"), ignore=shutil.ignore_patterns("*lock*")))
                        log.close()
                        if how == "no state":
                            (data / "catalogue.json").unlink()
                        log = LogWriter(data, Clock())
                for stream in "st":
                    assert positions(log, stream) == {name: at for (of, name), at in stored.items() if of == stream and at is not None}
            assert appended(log.reader()) == rows
        finally:
            log.close()


def outcome(log: LogWriter, stream: str, name: object, after: object, position: object, reset: object, ends: list[int]) -> str:
    try:
        source = parse_source(json.dumps({"id": name, "after": after, "position": position, "reset": reset}))
        return "duplicate" if log.append_events(stream, occurrences(*ends), source=source).duplicate else "accepted"
    except FormatError:
        return "format"
    except SourceConflict:
        return "conflict"


def test_of_writers_at_once_one_is_accepted_for_each_position(tmp_path: Path) -> None:
    """Each writer sends its own body for each position, and goes on from where the stream stands."""
    upto = 60

    def write(log: LogWriter, writer: int) -> int:
        at, won = 0, 0
        while at < upto:
            source = come(str(at) if at else None, f"{at + 1}")
            try:
                won += not log.append_events("s", occurrences(1000 * writer + at), source=source).duplicate
                at += 1
            except SourceConflict as conflict:
                at = int(conflict.stored or 0)
        return won

    with LogWriter(tmp_path, Clock()) as log, ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda writer: write(log, writer), range(4)))
        found = [int(each) % 1000 for each in appended(log.reader())]
    assert found == list(range(upto))
    assert sum(won) == upto


# ---------------------------------------------------------------- watermarks of declared sources
def declare(log: LogWriter, *sources: str, max_delay: int = 0, idle_timeout: int | None = None) -> None:
    log.append(lambda offset: SetStream(offset, "s", max_delay=max_delay, idle_timeout=idle_timeout, sources=sources))


def watermark(log: LogWriter) -> int | None:
    return log.catalogue.streams["s"].watermark


def send(log: LogWriter, source: str, *ends: int) -> int:
    """Send from a source, wherever it is; return how many are late."""
    state = log.catalogue.sources.get("s", {}).get(source)
    at = 0 if state is None else int(state.position)
    return log.append_events("s", occurrences(*ends), source=come(None if state is None else str(at), str(at + 1), source)).late


def test_a_watermark_is_the_least_over_the_declared_sources(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        declare(log, "a", "b", max_delay=5)
        send(log, "a", 100)
        assert watermark(log) is None
        assert log.append_events("s", occurrences(90)).late == 0, "a body without a source is judged, and moves nothing"
        send(log, "other", 300)
        assert watermark(log) is None
        send(log, "b", 60)
        assert watermark(log) == 55
        assert log.append_events("s", occurrences(54, 55, 400)).late == 1
        assert send(log, "a", 200, 20) == 1
        assert watermark(log) == 55
        send(log, "b", 150)
        assert watermark(log) == 145
        declare(log, "a", "b", "c", max_delay=5)
        send(log, "a", 500)
        assert watermark(log) == 145, "a new source holds the watermark, which never falls"
        log.append_events("s", occurrences(), source=come("4", None, "a", reset=True))
        send(log, "c", 300)
        assert watermark(log) == 145, "a forgotten source is one without events"
        declare(log, max_delay=5)
        log.append_events("s", occurrences(1))
        assert watermark(log) == 495, "without a declaration, the latest end of all decides"


def waiting(log: LogWriter) -> int:
    return count_waiting(log.catalogue.streams["s"].waiting)


@pytest.mark.parametrize("catalogued", [True, False])
def test_what_waits_for_a_silent_source_is_bounded(tmp_path: Path, catalogued: bool) -> None:
    with LogWriter(tmp_path, Clock(), max_waiting=10) as log:
        declare(log, "a", "b", "c")
        for end in range(20, 30):
            send(log, "a", end)
        with pytest.raises(
            SourceSilent,
            match=r"^10 events of stream 's' wait for its sources 'b', 'c'; send their events, remove them from `sources`, or set `idle_timeout`$",
        ):
            send(log, "a", 30)
        with pytest.raises(SourceSilent):
            log.append_events("s", occurrences(30))
        assert log.append_events("s", occurrences()).accepted == 0, "a body without events adds nothing that waits"
        send(log, "b", 25)
    if not catalogued:
        (tmp_path / "catalogue.json").unlink()
    with LogWriter(tmp_path, Clock(), max_waiting=10) as log:
        assert (waiting(log), log.find_awaited("s")) == (11, ["c"])
        with pytest.raises(SourceSilent, match="its source 'c'"):
            send(log, "b", 30)
        assert send(log, "c", *range(10, 28)) == 0, "the one that all wait for is always taken"
        assert (watermark(log), waiting(log), log.find_awaited("s")) == (25, 4 + 18, ["b"])
        send(log, "b", 27)
        assert (watermark(log), waiting(log)) == (27, 2)
        assert send(log, "a", 30) == 0, "what was refused is taken, and is not late"
        assert log.catalogue.streams["s"].accepted == 10 + 1 + 18 + 1 + 1
        log.append(lambda offset: Finish(offset, "s"))
        assert (waiting(log), log.find_awaited("s")) == (0, [])


def test_a_remedy_frees_what_waits_for_a_silent_source(tmp_path: Path) -> None:
    clock = Clock()
    with LogWriter(tmp_path, clock, max_waiting=2) as log:
        declare(log, "a", "b", idle_timeout=10 * SECOND)
        send(log, "a", 1, 2, 3)
        with pytest.raises(SourceSilent, match="or shorten `idle_timeout`"):
            send(log, "a", 4)
        clock.now += 10 * SECOND
        send(log, "a", 4)
        assert (watermark(log), waiting(log)) == (4, 0)
        declare(log, "a", "c")
        send(log, "a", 5, 6)
        with pytest.raises(SourceSilent, match="or set `idle_timeout`"):
            send(log, "a", 7)
        declare(log, "a")
        send(log, "a", 7)
        assert (watermark(log), waiting(log)) == (7, 0)


@settings(max_examples=examples(100))
@given(steps=st.lists(st.tuples(st.integers(0, 500), st.integers(1, 3)), max_size=300), watermark=st.integers(0, 500))
def test_no_event_that_waits_is_left_out_of_the_count(steps: list[tuple[int, int]], watermark: int) -> None:
    found: Waiting = ()
    for end, rows in steps:
        found = add_waiting(found, end, rows)
        assert len(found) <= 64
    assert count_waiting(found) == sum(rows for _, rows in steps)
    assert count_waiting(release_waiting(found, watermark)) >= sum(rows for end, rows in steps if end > watermark)
    assert not release_waiting(found, 500)


def test_the_clock_passes_a_silent_source_where_a_query_waits(tmp_path: Path) -> None:
    clock = Clock()
    with LogWriter(tmp_path, clock) as log:
        declare(log, "a", "b", max_delay=3, idle_timeout=10 * SECOND)
        send(log, "b", 50)
        clock.now += 6 * SECOND
        send(log, "a", 100)
        head = log.head()
        log.pass_time({"s": 60})
        assert log.head() == head, "both count, and the least is not beyond what waits"
        clock.now += 4 * SECOND
        log.pass_time({"s": 97})
        log.pass_time({})
        assert log.head() == head
        log.pass_time({"s": 60})
        log.pass_time({"s": 60})
        assert [entry for block in log.reader().blocks(head, 100) for entry in block.entries] == [Tick(head, "s", 97)]
        clock.now += 6 * SECOND
        log.pass_time({"s": 97})
        assert watermark(log) == 100 - 3 + 10 * SECOND, "with no source that counts, the stream is one without a declaration"


def test_bodies_without_events_say_nothing_of_times(tmp_path: Path) -> None:
    """A first body without events does not make the stream one of arrival times, whose silence is a second."""
    clock = Clock()
    with LogWriter(tmp_path, clock) as log:
        declare(log, "a", "b")
        log.append_events("s", occurrences(), source=come(None, "1"), arrived=clock.now)
        clock.now += 5 * SECOND
        log.append_events("s", occurrences(100), source=come("1", "2"), arrived=clock.now)
        assert watermark(log) is None
        log.append_events("s", occurrences(clock.now), source=come("2", "3"), arrived=clock.now)
        assert not log.catalogue.streams["s"].by_clock


def test_events_without_times_pass_a_silent_source_after_a_second(tmp_path: Path) -> None:
    clock = Clock()
    with LogWriter(tmp_path, clock) as log:
        declare(log, "a", "b")
        for _ in range(2):
            log.append_events("s", occurrences(clock.now), arrived=clock.now)
            clock.now += SECOND
        log.append_events("s", occurrences(clock.now), source=come(None, "1"), arrived=clock.now)
        assert watermark(log) == clock.now
        assert log.append_events("s", occurrences(5), source=come(None, "1", "b"), arrived=clock.now).late == 1, "a time of its own"


@dataclass
class Naive:
    """The definition of a watermark over declared sources, from all that ever came; the clock counts seconds."""

    declared: tuple[str, ...]
    delay: int
    timeout: int | None
    now: int = 0
    opened: int = 0
    watermark: int | None = None
    sent: list[tuple[str | None, int, tuple[int, ...]]] = field(default_factory=list)

    def send(self, source: str | None, ends: tuple[int, ...]) -> int:
        late = sum(self.watermark is not None and end < self.watermark for end in ends)
        self.sent.append((source, self.now, ends))
        counting = [name for name in self.declared if self.timeout is None or self.now - self.heard(name) < self.timeout]
        reached = [self.latest({name}) for name in counting] or [self.latest({source for source, _, _ in self.sent})]
        if None not in reached:
            least = min(end for end in reached if end is not None) - self.delay
            self.watermark = least if self.watermark is None else max(least, self.watermark)
        return late

    def heard(self, name: str) -> int:
        return max([self.opened, *(at for source, at, _ in self.sent if source == name)])

    def latest(self, sources: Collection[str | None]) -> int | None:
        return max((end for source, _, ends in self.sent if source in sources for end in ends), default=None)


BODIES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["a", "b", "c", None]), st.lists(st.integers(0, 50), max_size=3).map(tuple)),
        st.integers(1, 6),
        st.just("restart"),
    ),
    max_size=30,
)


@settings(max_examples=examples(150, 5), deadline=None)
@given(st.sampled_from([(), ("a",), ("a", "b")]), st.integers(0, 5), st.sampled_from([None, 5]), BODIES)
def test_watermarks_are_those_of_the_definition(
    declared: tuple[str, ...], delay: int, timeout: int | None, steps: list[tuple[str | None, tuple[int, ...]] | int | str]
) -> None:
    with TemporaryDirectory() as scratch:
        clock, naive = Clock(0), Naive(declared, delay, timeout)
        log = LogWriter(Path(scratch), clock)
        try:
            declare(log, *declared, max_delay=delay, idle_timeout=None if timeout is None else timeout * SECOND)
            for step in steps:
                if isinstance(step, int):
                    naive.now += step
                    clock.now += step * SECOND
                elif isinstance(step, str):
                    naive.opened = naive.now
                    log.close()
                    log = LogWriter(Path(scratch), clock)
                else:
                    source, ends = step
                    late = log.append_events("s", occurrences(*ends)).late if source is None else send(log, source, *ends)
                    assert (late, watermark(log)) == (naive.send(source, ends), naive.watermark)
        finally:
            log.close()
