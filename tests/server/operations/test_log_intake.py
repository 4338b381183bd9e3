"""Small bodies and answers share wake-ups and writes."""

import asyncio
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pipeline.errors import FormatError, LogFailed, Overloaded
from pipeline.formats.body_parser import NDJSON, parse_frame
from pipeline.log import Ack, AckFuture, LogWriter
from pipeline.log.segments import FrameReader
from pipeline.mapping.mapper import MappedBody
from pipeline.mapping.stream_body import GROUP, SHORT, BodySettings, StreamBody, read_body, read_together
from server.connections import WholeAnswers
from server.http.auth import Gate
from server.log_intake import LogIntake, ShortBody
from server.routes import websockets
from server.service import Service
from server.settings import Settings
from tests.support.logs import Clock, occurrences

TOGETHER = 20
LINE = '{{"s":"<x:s{}>","p":"<x:p>","o":"\\"{}\\"","at":"2026-01-01T00:00:00Z"}}'


async def submit_together(log: LogWriter, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Ack], int, int]:
    """Return the acks of bodies that come in one turn of the event loop, and how often the committer and the event
    loop were woken.
    """
    intake, loop, woken, told = LogIntake(log), asyncio.get_running_loop(), list[None](), list[None]()
    wake_committer, call_soon = log.wakeups.wake_committer, loop.call_soon_threadsafe

    def count_committer() -> None:
        woken.append(None)
        wake_committer()

    def count_loop(*arguments: Any, **named: Any) -> asyncio.Handle:
        told.append(None)
        return call_soon(*arguments, **named)

    monkeypatch.setattr(log.wakeups, "wake_committer", count_committer)
    monkeypatch.setattr(loop, "call_soon_threadsafe", count_loop)
    submitted = [intake.submit("s", MappedBody(occurrences(end), (), 1), None, None, end) for end in range(TOGETHER)]
    await asyncio.gather(*map(intake.wait_for, submitted))
    return [each.result() for each in submitted], len(woken), len(told)


def test_bodies_that_come_together_wake_each_thread_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        acks, woken, told = asyncio.run(submit_together(log, monkeypatch))
        frames = len(list(FrameReader(tmp_path / "log").frames(0)))
    assert [ack.offset for ack in acks] == list(range(1, TOGETHER + 1))
    assert (woken, told <= frames) == (1, True)


def test_frames_that_come_at_once_are_read_as_each_alone() -> None:
    frames = ["\n".join(LINE.format(number % 7, number * 40 + k) for k in range(40)) for number in range(60)]
    assert 2_000 < len(frames[-1]) < SHORT
    assert sum(map(len, frames)) > 2 * GROUP
    found = read_together([frame.encode() for frame in frames], 1)
    assert found is not None
    alone = [parse_frame(frame.encode(), arrived=1)[0].to_pylist() for frame in frames]
    assert [each.to_pylist() for each in found] == alone


def test_bodies_that_are_submitted_at_once_are_entries_of_their_own_as_far_as_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.log.writer.QUEUED_REQUESTS", 3)
    with LogWriter(tmp_path, Clock()) as log:
        taken = log.submit_all("s", [occurrences(end) for end in range(5)], 1)
        with pytest.raises(Overloaded):
            log.submit_all("s", [occurrences(9)], 1)
        log.wakeups.wake_committer()
        assert [ack.result().offset for ack in taken] == [1, 2, 3]
    with pytest.raises(LogFailed):
        log.submit_all("s", [occurrences(9)], 1)


async def leave_while_the_queue_is_full(data: Path, log: LogWriter) -> tuple[int, int]:
    """Return how many bytes of two frames count while the log's queue is full, and once their sender has gone."""
    service = Service(Settings(data=data, runner="inprocess"), Clock(), Gate(None), log)
    answers = websockets._Answers(service.admission.bodies, service.intake)
    frames = [(LINE.format(number, number), None) for number in range(2)]
    feeder = asyncio.create_task(websockets._submit_together(service, "s", frames, answers))
    await asyncio.sleep(0)
    held = service.admission.bodies._held
    feeder.cancel()
    await asyncio.wait([feeder])
    answers.abandon()
    service.close()
    return held, service.admission.bodies._held


def test_frames_that_found_no_room_count_no_more_once_their_sender_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Overloaded("full")

    with LogWriter(tmp_path, Clock()) as log:
        monkeypatch.setattr(log, "submit_all", refuse)
        held, after = asyncio.run(leave_while_the_queue_is_full(tmp_path, log))
    assert (held, after) == (sum(len(LINE.format(number, number)) for number in range(2)), 0)


async def submit_short_bodies(log: LogWriter, contents: list[str]) -> tuple[list[Ack | BaseException], list[None]]:
    """Return what becomes of bodies that come in one turn, each for a stream of its own, and one entry for each that
    was read by itself.
    """
    intake, alone = LogIntake(log), list[None]()

    async def send(number: int, content: bytes) -> Ack:
        def read() -> tuple[StreamBody, str | None]:
            alone.append(None)
            return read_body(content, NDJSON, BodySettings(), default=None, arrived=1), None

        def submit(found: StreamBody) -> Future[Ack]:
            return intake.submit(f"s{number}", found.mapped, None, None, 1)

        told = asyncio.get_running_loop().create_future()
        intake.submit_short(ShortBody(content, 1, read, submit, lambda ack, _: told.set_result(ack)))
        ack: Future[Ack] = await told
        return ack.result()

    told = await asyncio.gather(*(send(number, content.encode()) for number, content in enumerate(contents)), return_exceptions=True)
    return told, alone


def test_short_bodies_of_one_turn_are_read_at_once_and_told_each_its_own(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        told, alone = asyncio.run(submit_short_bodies(log, [LINE.format(k, k) for k in range(3)]))
    assert ([ack.offset for ack in told if isinstance(ack, Ack)], alone) == ([1, 2, 3], [])


def test_a_short_body_that_cannot_be_read_is_refused_alone(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        told, alone = asyncio.run(submit_short_bodies(log, [LINE.format(1, 1), '{"s":"<x:a>"}', LINE.format(2, 2)]))
    assert [type(each) for each in told] == [Ack, FormatError, Ack]
    assert len(alone) == 3


def test_a_fault_in_reading_together_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the bodies of the turn would wait for ever, and those of all later ones."""

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("server.log_intake.read_together", fail)
    with LogWriter(tmp_path, Clock()) as log:
        told, alone = asyncio.run(submit_short_bodies(log, [LINE.format(k, k) for k in range(3)]))
    assert [type(each) for each in told] == [Ack] * 3
    assert len(alone) == 3


class Written(asyncio.Transport):
    """Records what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.writes.append(b"(end)")


HEAD, STREAMED = b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n", b"HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([HEAD, b"ok", b""], [HEAD + b"ok", b""]),
        ([HEAD, b""], [HEAD]),  # as HEAD is answered
        ([STREAMED, b"2\r\nok\r\n"], [STREAMED, b"2\r\nok\r\n"]),
        ([HEAD, b"ok", HEAD, b"no"], [HEAD + b"ok", HEAD + b"no"]),
        ([HEAD], [HEAD]),
    ],
)
def test_a_head_of_known_length_is_written_with_its_body(given: list[bytes], expected: list[bytes]) -> None:
    transport = Written()
    answers = WholeAnswers(transport)
    for data in given:
        answers.write(data)
    answers.close()
    assert transport.writes == [*expected, b"(end)"]


def test_acks_are_told_before_readers_wake_and_after_their_position_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[tuple[str, int]]()
    with LogWriter(tmp_path, Clock()) as log:
        wake_readers = log._published.wake_readers

        def note_readers() -> None:
            told.append(("readers", log.head()))
            wake_readers()

        monkeypatch.setattr(log._published, "wake_readers", note_readers)
        log.wakeups.on_answers(lambda: told.append(("acks", log.head())))
        log.append_events("s", occurrences(1))
    assert told == [("acks", 1), ("readers", 1)]


def test_an_ack_calls_each_once_and_a_fault_of_one_keeps_nobody_from_it() -> None:
    ack, called = AckFuture(), list[str]()

    def fail(_: Future[Ack]) -> None:
        raise ValueError

    ack.add_done_callback(lambda _: called.append("before"))
    ack.add_done_callback(fail)
    with pytest.raises(TimeoutError):
        ack.result(0.001)
    waiter = Thread(target=lambda: called.append(f"waited for {ack.result().offset}"))
    waiter.start()
    ack.set_result(Ack(7))
    waiter.join()
    ack.add_done_callback(lambda _: called.append("after"))
    assert sorted(called) == ["after", "before", "waited for 7"]
    assert not ack.cancel()
    refused = AckFuture()
    refused.set_exception(FormatError("json", "no"))
    with pytest.raises(FormatError):
        refused.result()
