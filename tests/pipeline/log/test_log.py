"""The input log: order, lateness, keys, recovery, group commit."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from errno import EIO
from pathlib import Path
from weakref import ref

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import END_OF_TIME, NO_ROWS, Block, Drop, DropStream, Entail, Entry, Events, Facts, Finish, Register, SetStream, Tick
from pipeline.errors import Corrupt, LogFailed, NotOfOneLog, Overloaded, StoreFailed, StreamFinished, TooFarAhead
from pipeline.log import Ack, LogReader, LogWriter, SharedReader
from pipeline.log import reader as reader_module
from pipeline.log import writer as writer_module
from pipeline.log.catalog import Catalogue
from pipeline.log.codec import decode
from pipeline.log.segments import HEADER, FrameReader, segment_path, segments
from pipeline.log.writer_state import load_state
from tests.soak import examples, is_full
from tests.support.logs import Clock, occurrences

CONTROLS: list[Callable[[int], Entry]] = [
    lambda offset: SetStream(offset, "s", max_delay=5, idle_timeout=7, max_ahead=None, description="d\u00e9s"),
    lambda offset: SetStream(offset, "t", key="http://e/by", parts=("http://e/result",)),
    lambda offset: Register(offset, "q", "SELECT * WHERE { ?s ?p ?o }", "recent", "unnamed"),
    lambda offset: Drop(offset, 1, "q"),
    lambda offset: Facts(offset, "", "<http://e/s> <http://e/p> <http://e/o> .\n"),
    lambda offset: Facts(offset, "http://e/g", "<http://e/s> <http://e/p> <http://e/o> .\n", "replace"),
    lambda offset: Facts(offset, "http://e/g", "", "drop"),
    lambda offset: Entail(offset, "owl-rl"),
    lambda offset: Tick(offset, None, None),
    lambda offset: Finish(offset, "s"),
    lambda offset: DropStream(offset, "s"),
]


def entries(reader: LogReader, position: int = 0, max_rows: int = 1000, until: int | None = None) -> list[Entry]:
    return [entry for block in reader.blocks(position, max_rows, until) for entry in block.entries]


def rows(blocks: list[Block]) -> list[dict[str, object]]:
    return [row for block in blocks for row in block.rows.to_pylist()]


def test_every_kind_of_entry_comes_back_as_it_was(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        offsets = [log.append(build) for build in CONTROLS]
        log.append_events("t", occurrences(3, 4), "key")
        assert offsets == list(range(len(CONTROLS)))
        found = entries(LogReader(tmp_path))
        assert entries(log.reader()) == found
    assert found == [*(build(offset) for offset, build in enumerate(CONTROLS)), Events(len(CONTROLS), "t", 2, 4, "key")]


def test_facts_from_before_they_could_be_taken_back_are_added() -> None:
    """An old log has them without the field that says what becomes of the graph."""
    sink = pa.BufferOutputStream()
    entries = b'[0,[["facts",["http://e/g","<http://e/s> <http://e/p> <http://e/o> .\\n"],0,null,null]]]'
    batch = NO_ROWS.replace_schema_metadata({b"entries": entries})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found = decode(7, memoryview(sink.getvalue())).records[0].entry
    assert found == Facts(7, "http://e/g", "<http://e/s> <http://e/p> <http://e/o> .\n", "add")


def test_lateness_is_judged_against_the_watermark_before_the_entry(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock := Clock()) as log:
        log.append(lambda offset: SetStream(offset, "s", max_delay=5))
        assert log.append_events("s", occurrences(10, 1)) == Ack(2, 2, 0)
        assert log.append_events("s", occurrences(5, 4, 20, 3)) == Ack(3, 4, 2)
        clock.now = 77
        assert log.append_events("s", occurrences(14, 15)) == Ack(4, 2, 1)
        assert log.append_events("other", occurrences(1)) == Ack(5, 1, 0)
        reader = log.reader()
        watermarks = [entry.watermark for entry in entries(reader) if isinstance(entry, Events)]
        assert watermarks == [5, 15, 15, 1]
        flags = [row["late"] for row in rows(list(reader.blocks(0, 1000)))]
        assert flags == [False, False, False, True, False, True, True, False, False]
        late = reader.late("s", 0, 100)
        assert [(row.o, row.end, row.watermark, row.offset) for row in late] == [('"4"', 4, 5, 3), ('"3"', 3, 5, 3), ('"14"', 14, 15, 4)]
        assert (late[2].arrived, late[2].reason) == (77, "its end is below the stream's watermark")
        assert [row.o for row in reader.late("s", late[0].offset, 100)] == ['"14"']
        assert [row.o for row in reader.late("s", 0, 1)] == ['"4"', '"3"']
        assert reader.late("other", 0, 100) == []
        assert (log.catalogue.streams["s"].accepted, log.catalogue.streams["s"].late) == (8, 3)


def test_a_watermark_never_falls_whatever_becomes_of_the_delay(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(100))
        log.append(lambda offset: SetStream(offset, "s", max_delay=50))
        log.append_events("s", occurrences(101))
        assert log.catalogue.streams["s"].watermark == 100
        log.append_events("s", occurrences(160))
        assert log.catalogue.streams["s"].watermark == 110


def test_a_key_answers_again_for_a_day_restarts_included(tmp_path: Path) -> None:
    clock = Clock()
    with LogWriter(tmp_path, clock) as log:
        log.append_events("s", occurrences(10))
        first = log.append_events("s", occurrences(5, 20), "k")
        assert first == Ack(2, 2, 1)
        assert log.append_events("s", occurrences(5, 20), "k") == first
        assert log.append_events("t", occurrences(20), "k") == Ack(3, 1, 0)
    (tmp_path / "catalogue.json").unlink()
    for _ in range(2):  # once from the log, once from the saved state
        with LogWriter(tmp_path, clock) as log:
            assert log.append_events("s", occurrences(5, 20), "k") == first
            assert log.head() == 3
    clock.now += 24 * 3600 * 1_000_000 + 1
    with LogWriter(tmp_path, clock) as log:
        assert log.append_events("s", occurrences(30), "k") == Ack(4, 1, 0)


def test_a_finished_stream_refuses_until_it_is_dropped(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(10))
        log.append(lambda offset: Finish(offset, "s"))
        assert log.catalogue.streams["s"].watermark == END_OF_TIME
        with pytest.raises(StreamFinished, match="'s' is finished"):
            log.append_events("s", occurrences(11))
        with pytest.raises(StreamFinished):
            log.append(lambda offset: Finish(offset, "s"))
        assert log.head() == 2
        log.append(lambda offset: DropStream(offset, "s"))
        assert log.append_events("s", occurrences(1)) == Ack(4, 1, 0)


def test_an_end_too_far_ahead_refuses_the_body_whole(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock(1000)) as log:
        log.append(lambda offset: SetStream(offset, "s", max_ahead=10))
        with pytest.raises(TooFarAhead, match=r"occurrence 2 ends .* raise max_ahead") as caught:
            log.append_events("s", occurrences(1, 1011, 5))
        assert (caught.value.row, caught.value.end, caught.value.limit) == (1, 1011, 1010)
        assert log.head() == 1
        log.append_events("s", occurrences(1010))


def test_silence_advances_a_stream_by_the_clock_and_each_advance_is_an_entry(tmp_path: Path) -> None:
    clock = Clock(1000)
    with LogWriter(tmp_path, clock) as log:
        log.append(lambda offset: SetStream(offset, "s", max_delay=3, idle_timeout=100))
        log.append_events("s", occurrences(50))
        log.append_events("never idle", occurrences(50))
        waits = {"s": 50, "never idle": 50, "never fed": 50}
        clock.now += 99
        log.pass_time(waits)
        assert log.head() == 3
        clock.now += 1
        log.pass_time({})
        log.pass_time(waits | {"s": 147})
        assert log.head() == 3, "nothing that waits is reached"
        log.pass_time(waits)
        log.pass_time(waits)
        assert entries(log.reader(), 3) == [Tick(3, "s", 147)]
        assert log.append_events("s", occurrences(146, 147)) == Ack(5, 2, 1)


def test_untimed_events_are_never_late_whatever_the_clock_does(tmp_path: Path) -> None:
    """The clock advances their stream while a body is on its way; then it goes back by an hour."""
    clock, hour = Clock(10**12), 3_600_000_000
    with LogWriter(tmp_path, clock) as log:
        for _ in range(2):
            log.append_events("s", occurrences(clock.now), arrived=clock.now)
        begun = clock.now
        clock.now += 5_000_000
        log.pass_time({"s": begun})
        assert log.append_events("s", occurrences(begun), arrived=begun).late == 0
        clock.now -= hour
        log.pass_time({"s": begun})
        assert log.append_events("s", occurrences(clock.now, clock.now), arrived=clock.now).late == 0
        assert {row["end"].timestamp() for row in rows(list(log.reader().blocks(3, 1000)))} == {(begun + 5_000_000) / 1e6}  # type: ignore[attr-defined]
        assert log.catalogue.streams["s"].watermark == begun + 5_000_000
        assert log.append_events("s", occurrences(begun)).late == 1, "a time of its own may be late"
        assert not log.catalogue.streams["s"].by_clock
    with LogWriter(tmp_path, clock) as log:
        log.pass_time({"s": begun + 5_000_000})
        assert log.head() == 6


def test_a_builder_that_raises_gets_its_error_back_and_writes_nothing(tmp_path: Path) -> None:
    def refuse(offset: int) -> Entry:
        raise KeyError(offset)

    with LogWriter(tmp_path, Clock()) as log:
        with pytest.raises(KeyError):
            log.append(refuse)
        assert log.append(CONTROLS[0]) == 0


@pytest.mark.parametrize(("bound", "most"), [("QUEUED_ROWS", 10), ("QUEUED_BYTES", 400)])
def test_a_full_queue_refuses_or_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(writer_module, bound, most)
    with LogWriter(tmp_path, Clock()) as log:
        entered, leave = threading.Event(), threading.Event()

        def stall(offset: int) -> Entry:
            entered.set()
            leave.wait()
            return Tick(offset, None, None)

        stalled = log.submit_entry(stall)
        assert entered.wait(60)
        larger_than_the_queue = log.submit("s", occurrences(*range(20)))
        with pytest.raises(Overloaded, match="send more slowly"):
            log.submit("s", occurrences(20))
        patient = threading.Thread(target=log.append_events, args=("s", occurrences(21)))
        patient.start()
        leave.set()
        patient.join()
        assert (stalled.result().offset, larger_than_the_queue.result().offset, log.head()) == (1, 2, 3)


def test_a_write_that_fails_fails_its_callers_and_the_log_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1))
        with monkeypatch.context() as patch:
            patch.setattr("pipeline.log.writer.FrameWriter.append", full)
            with pytest.raises(LogFailed, match="No space left"):
                log.append_events("s", occurrences(50), "k")
            assert (log.catalogue.position, log.catalogue.streams["s"].latest) == (1, 1), "what is not in the log is shown to nobody"
        assert log.append_events("s", occurrences(2), "k") == Ack(2, 1, 0)  # neither the watermark nor the key of the failed one is left
        assert [row["o"] for row in rows(list(log.reader().blocks(0, 10)))] == ['"1"', '"2"']


def test_what_could_not_be_saved_at_the_end_is_read_again_from_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    in_the_way = tmp_path / "catalogue.tmp"
    in_the_way.mkdir()
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1))
    assert "the next start reads the log from position 0" in caplog.text
    assert "Traceback" not in caplog.text
    in_the_way.rmdir()
    with LogWriter(tmp_path, Clock()) as log:
        assert log.catalogue.streams["s"].latest == 1


def test_a_body_of_nothing_is_an_entry(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        assert log.append_events("s", occurrences()) == Ack(1, 0, 0)
        assert entries(log.reader()) == [Events(0, "s", 0, None)]
        assert log.catalogue.streams["s"].watermark is None


def test_the_catalogue_says_what_must_be_there(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(5), "k")
    shutil.rmtree(tmp_path / "log")
    for _ in range(2):
        with pytest.raises(NotOfOneLog, match=r"log ends at position 0, and catalogue.json was saved at 1; restore log/ .* or remove catalogue.json"):
            LogWriter(tmp_path, Clock())
    shutil.rmtree(tmp_path / "log")
    with LogWriter(tmp_path / "other", Clock(7)) as log:
        log.append_events("t", occurrences(5, 6))
    shutil.copytree(tmp_path / "other" / "log", tmp_path / "log")
    with pytest.raises(NotOfOneLog, match=r"catalogue.json is of another log than log/, at position 1"):
        LogWriter(tmp_path, Clock())
    (tmp_path / "catalogue.json").unlink()
    with LogWriter(tmp_path, Clock()) as log:
        assert log.catalogue.streams.keys() == {"t"}


def test_every_flipped_byte_of_the_catalogue_is_seen(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(5, 6), "k")
        expected = log.catalogue
    data = (tmp_path / "catalogue.json").read_bytes()
    for at in range(len(data)):
        (tmp_path / "catalogue.json").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        catalogue, _, _ = load_state(tmp_path, 1, 0)
        assert catalogue == Catalogue() != expected


def test_a_sync_that_fails_takes_the_entry_back_and_the_next_is_read_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is taken back with and without a segment that was begun for it."""

    def failing(_: int) -> None:
        raise OSError(EIO, "Input/output error")

    with LogWriter(tmp_path, Clock(), segment_bytes=2000) as log:
        reader = log.reader()
        seen: list[str] = []
        for end in range(12):
            with monkeypatch.context() as patch:
                patch.setattr(os, "fdatasync", failing)
                with pytest.raises(LogFailed, match="Input/output"):
                    log.append_events("s", occurrences(1000 + end), f"key{end}")
                assert (log.head(), log.catalogue.position) == (end, end)
            assert log.append_events("s", occurrences(end), f"key{end}") == Ack(end + 1, 1, 0)
            seen += [str(row["o"]) for row in rows(list(reader.blocks(len(seen), 100)))]
        assert seen == [f'"{end}"' for end in range(12)]
    assert len(segments(tmp_path / "log")) > 2
    with LogWriter(tmp_path, Clock()) as log:
        assert [row["o"] for row in rows(list(log.reader().blocks(0, 100)))] == seen


def test_what_a_store_may_have_is_published_once_it_answers_and_is_refused_after_one_wait(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []
    answers = threading.Event()
    answers.set()

    def keep(segment: int, size: int) -> None:
        asked.append((segment, size))
        if not answers.is_set():
            raise StoreFailed("it does not answer")

    with LogWriter(tmp_path, Clock(), keep=keep) as log:
        log.append_events("s", occurrences(1))
        reader, before = log.reader(), len(asked)
        answers.clear()
        with pytest.raises(LogFailed, match="does not answer"):
            log.append_events("s", occurrences(2), "k")
        assert len(asked) == before + 1, "it waits for the store once"
        assert (log.catalogue.position, log.head()) == (1, 1)
        answers.set()
        assert log.append_events("s", occurrences(2), "k") == Ack(2, 1, 0)
        log.append_events("s", occurrences(3))
        assert [row["o"] for row in rows(list(reader.blocks(0, 10)))] == ['"1"', '"2"', '"3"']
        assert log.backlog.beyond(0) == 3


def test_nothing_is_written_after_damage(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock(), segment_bytes=2000) as log:
        for end in range(reader_module.KEPT_CONTENTS + 10):
            log.append_events("s", occurrences(end))
        path = segment_path(tmp_path / "log", 0)
        data = bytearray(path.read_bytes())
        data[HEADER.size] ^= 1
        path.write_bytes(data)
        log.append_events("s", occurrences(5000))  # nobody has read that far back yet
        with pytest.raises(Corrupt):
            list(log.reader().blocks(0, 1000))
        with pytest.raises(LogFailed, match=r"is damaged at byte 0.*restore it from a copy"):
            log.append_events("s", occurrences(5001))


def test_a_damaged_log_is_refused_and_the_directory_free_again(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        for end in range(3):
            log.append_events("s", occurrences(end))
    (tmp_path / "catalogue.json").unlink()
    path = segment_path(tmp_path / "log", 0)
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    for _ in range(2):
        with pytest.raises(Corrupt, match="damaged at byte 0"):
            LogWriter(tmp_path, Clock())
    path.write_bytes(data)
    with LogWriter(tmp_path, Clock()) as log:
        assert log.head() == 3


def test_a_queued_body_keeps_its_place_though_its_sender_has_gone(tmp_path: Path) -> None:
    """The sender of several bodies loses its connection: were the first one left out, the second would make its
    repeat late.
    """
    with LogWriter(tmp_path, Clock()) as log:
        entered, leave = threading.Event(), threading.Event()

        def stall(offset: int) -> Entry:
            entered.set()
            leave.wait()
            return Tick(offset, None, None)

        log.submit_entry(stall)
        assert entered.wait(60)
        bodies = [log.submit("s", occurrences(n)) for n in (1, 2)]
        assert not bodies[0].cancel()
        leave.set()
        assert [body.result() for body in bodies] == [Ack(2, 1, 0), Ack(3, 1, 0)]


def test_closed_is_closed(tmp_path: Path) -> None:
    log = LogWriter(tmp_path, Clock())
    waiting = [log.submit("s", occurrences(n)) for n in range(100)]
    log.close()
    assert [ack.result().offset for ack in waiting] == list(range(1, 101))
    with pytest.raises(LogFailed, match="closed"):
        log.append_events("s", occurrences(1))


def test_many_threads_share_frames_and_each_gets_its_own_ack(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        with ThreadPoolExecutor(8) as pool:
            acks = list(pool.map(lambda n: log.append_events(f"s{n % 8}", occurrences(n, n, subject=f"<http://e/{n}>")), range(400)))
        assert sorted(ack.offset for ack in acks) == list(range(1, 401))
        assert sum(1 for _ in FrameReader(tmp_path / "log").frames(0)) < 400
        found = {entry.offset + 1: entry for entry in entries(log.reader()) if isinstance(entry, Events)}
        assert all(found[ack.offset].stream == f"s{n % 8}" for n, ack in enumerate(acks))
        blocks = list(log.reader().blocks(0, 1))
        assert {block.after: block.rows.column("s")[0].as_py() for block in blocks} == {ack.offset: f"<http://e/{n}>" for n, ack in enumerate(acks)}


@settings(max_examples=examples(25))
@given(data=st.data(), sizes=st.lists(st.integers(0, 6), min_size=1, max_size=30), seed=st.integers(0, 1000))
def test_blocks_are_the_log_however_they_are_cut(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, sizes: list[int], seed: int) -> None:
    directory, pick = tmp_path_factory.mktemp("log"), random.Random(seed)
    with LogWriter(directory, Clock()) as log:
        waiting = []
        for n, size in enumerate(sizes):
            if size == 0:
                waiting.append(log.submit_entry(lambda offset: Tick(offset, None, None)))
            else:
                waiting.append(log.submit("s", occurrences(*(pick.randrange(100) for _ in range(size)), subject=f"<http://e/{n % 3}>")))
            if pick.random() < 0.4:
                waiting[-1].result()
        for each in waiting:
            each.result()
        reader = log.reader()
        whole = list(reader.blocks(0, 10_000))
        assert len(whole) == 1
        first = data.draw(st.integers(0, len(sizes)), "position")
        last = data.draw(st.integers(first, len(sizes)), "until")
        max_rows = data.draw(st.integers(1, 12), "max_rows")
        blocks = list(reader.blocks(first, max_rows, last))
    expected = whole[0].entries[first:last]
    assert [entry for block in blocks for entry in block.entries] == list(expected)
    skipped = sum(entry.rows for entry in whole[0].entries[:first] if isinstance(entry, Events))
    taken = sum(entry.rows for entry in expected if isinstance(entry, Events))
    assert rows(blocks) == whole[0].rows.slice(skipped, taken).to_pylist()
    for block in blocks:
        assert block.rows.num_rows == sum(entry.rows for entry in block.entries if isinstance(entry, Events))
        assert len(block.entries) == 1 or (block.rows.num_rows <= max_rows and len(block.entries) <= max_rows)


def test_advance_goes_by_whole_frames_to_the_head_at_most(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        for end in range(10):
            log.append_events("s", occurrences(end, end, end))
        reader = LogReader(tmp_path)
        assert [reader.advance(position, 7) for position in (0, 2, 9, 10)] == [2, 4, 10, 10]
        assert reader.advance(0, 1) == 1


def test_waiting_in_this_process_and_across_processes(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        for reader in (log.reader(), LogReader(tmp_path)):
            head = reader.head()
            assert reader.wait(head, 0.01) == head
            assert reader.wait(head - 1, 0) == head
            feeder = threading.Timer(0.05, lambda: log.append_events("s", occurrences(1)))
            feeder.start()
            assert reader.wait(head, 10) == head + 1
            feeder.join()


def test_all_state_is_recovered_from_the_log_alone_or_from_the_saved_state(tmp_path: Path) -> None:
    clock = Clock()
    log = LogWriter(tmp_path, clock, segment_bytes=50_000)
    pick = random.Random(5)
    for n in range(60):
        clock.now += 1000
        if n % 7 == 0:
            log.append(lambda offset, n=n: SetStream(offset, f"s{n % 3}", max_delay=n, description=str(n)))  # type: ignore[misc]
        if n % 11 == 0:
            log.append(lambda offset, n=n: Register(offset, f"q{n % 2}", f"text {n}"))  # type: ignore[misc]
        log.append_events(f"s{n % 3}", occurrences(*(pick.randrange(n * 10, n * 10 + 200) for _ in range(5))), f"key{n % 50}")
    expected = log.catalogue
    log.close()
    with LogWriter(tmp_path, clock) as again:
        assert again.catalogue == expected
    (tmp_path / "catalogue.json").write_bytes(b'{"position": 3')
    with LogWriter(tmp_path, clock) as again:
        assert again.catalogue == expected
    assert any(stream.late for stream in expected.streams.values())


def test_segments_rotate_and_the_state_is_saved_as_they_do(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock(), segment_bytes=5000) as log:
        reader = log.reader()
        seen = 0
        for end in range(30):
            log.append_events("s", occurrences(end))
            seen += len(entries(reader, seen))
        assert seen == 30
        assert len(segments(tmp_path / "log")) > 3
        assert (tmp_path / "catalogue.json").exists()
        assert len(entries(LogReader(tmp_path), 13)) == 17


FEEDER = """
import sys
from pipeline.log import LogWriter
from tests.support.logs import Clock, occurrences
with LogWriter(sys.argv[1], Clock(), segment_bytes=4000) as log:
    while True:
        ack = log.append_events("s", occurrences(log.head()), f"key{log.head()}")
        print(ack.offset, flush=True)
"""


def test_what_was_acknowledged_outlives_kills(tmp_path: Path) -> None:
    acknowledged = 0
    for _ in range(3 if is_full() else 1):
        with subprocess.Popen([sys.executable, "-c", FEEDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(200 if is_full() else 50):
                acknowledged = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        with LogWriter(tmp_path, Clock()) as log:
            assert log.head() >= acknowledged
            assert [row["o"] for row in rows(list(log.reader().blocks(0, 100)))] == [f'"{n}"' for n in range(log.head())]
            assert log.append_events("s", occurrences(0), f"key{acknowledged - 1}").offset == acknowledged


def test_a_reader_in_another_process_follows(tmp_path: Path) -> None:
    code = "import sys; from pipeline.log import LogReader; r = LogReader(sys.argv[1]); print(r.wait(4, 20), len(list(r.blocks(0, 2))))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    with LogWriter(tmp_path, Clock()) as log, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for end in range(5):
            log.append_events("s", occurrences(end))
        assert process.communicate()[0].split() == ["5", "3"]


def test_who_follows_closely_is_handed_the_last_small_frames(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        bodies = [occurrences(*range(3000)), *(occurrences(end) for end in range(3000, 3000 + reader_module.KEPT_CONTENTS))]
        for body in bodies:
            log.append_events("s", body)
        assert rows(list(log.reader().blocks(0, 1000))) == [row for body in bodies for row in body.to_pylist()]
        damage_payloads(tmp_path)
        assert rows(list(log.reader().blocks(1, 1000))) == [row for body in bodies[1:] for row in body.to_pylist()]
        log.append_events("s", occurrences(9999))
        for reader, position in ((log.reader(), 0), (log.reader(), 1), (LogReader(tmp_path), 2)):  # large; no longer at hand; of another process
            with pytest.raises(Corrupt):
                list(reader.blocks(position, 1000))


def damage_payloads(data_dir: Path) -> None:
    """Another first byte in each frame of the only segment."""
    path = segment_path(data_dir / "log", 0)
    data = bytearray(path.read_bytes())
    for frame in FrameReader(data_dir / "log").frames(0):
        data[frame.byte + HEADER.size] ^= 1
    path.write_bytes(data)


def test_an_empty_log_reads_as_empty(tmp_path: Path) -> None:
    reader = LogReader(tmp_path)
    assert (reader.head(), list(reader.blocks(0, 10)), reader.advance(0, 10), reader.late("s", 0, 10)) == (0, [], 0, [])
    assert reader_module.merge([Block((Tick(n, None, None),), occurrences()) for n in range(2)]).rows.num_rows == 0


@pytest.mark.parametrize("size", [1, 7, 50])
def test_threads_that_share_a_reader_read_what_each_would_alone(size: int, tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        for k in range(60):
            log.append_events("s", occurrences(*range(10 * k, 10 * k + k % 9 + 1)))
    alone = list(LogReader(tmp_path).blocks(0, size, 60))
    shared = SharedReader(tmp_path, 3, 60)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: list(shared.blocks(0, size, 60)), range(3)))
    for blocks in found:
        assert {id(block) for block in blocks} == {id(block) for block in found[0]}
        assert [block.entries for block in blocks] == [block.entries for block in alone]
        assert rows(blocks) == rows(alone)
    assert list(shared.blocks(60, size, 60)) == []


def test_what_a_reader_leaves_is_not_kept_for_it(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        for k in range(60):
            log.append_events("s", occurrences(k))
    shared = SharedReader(tmp_path, 2, 3)
    first = [ref(block.rows) for block in shared.blocks(0, 1, 60)]
    assert sum(each() is not None for each in first) <= 5
    assert [block.entries for block in shared.blocks(0, 1, 60)] == [block.entries for block in LogReader(tmp_path).blocks(0, 1, 60)]
