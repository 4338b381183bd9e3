"""The last rows of a stream, read from the log's end: as reading it forward gives them, within bounds, after segments
have gone.
"""

import random
from pathlib import Path

import pytest

from engine.messages import DropStream, Events, SetStream
from pipeline.inspection.backward_reader import BackwardReader
from pipeline.inspection.stream_profile import RATE_SPAN, profile_of
from pipeline.log import LogReader, LogWriter
from pipeline.log.catalog import Stream
from pipeline.log.segments import segment_path, segments
from tests.support.logs import Clock, occurrences

Row = tuple[int, str]


def forward(data: Path, stream: str, created: int = 0) -> list[Row]:
    """Every row of a stream with the offset of its entry, the newest first."""
    found: list[Row] = []
    for block in LogReader(data).blocks(0, 10):
        begin = 0
        for entry in block.entries:
            if isinstance(entry, Events):
                rows = block.rows.slice(begin, entry.rows)
                begin += entry.rows
                if entry.stream == stream and entry.offset >= created:
                    found += [(entry.offset, o) for o in rows.column("o").to_pylist()]
    return found[::-1]


def backward(reader: BackwardReader, stream: str, count: int, created: int = 0, before: int | None = None) -> list[Row]:
    look = reader.read_last(stream, created, count, before)
    assert not look.is_cut
    return [(piece.offset, o) for piece in look.pieces for o in reversed(piece.rows.column("o").to_pylist())]


@pytest.mark.parametrize(("chunk", "segment_bytes"), [(1, 10_000), (4_000, 20_000), (256 << 10, 64 << 20)])
def test_like_reading_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, segment_bytes: int) -> None:
    """The log goes on between the looks, so places that are kept are used again; chunk and segment sizes vary how
    many there are.
    """
    monkeypatch.setattr("pipeline.inspection.backward_reader.CHUNK", chunk)
    chance, reader = random.Random(7), BackwardReader(tmp_path)
    with LogWriter(tmp_path, Clock(), segment_bytes=segment_bytes) as log:
        for end in range(300):
            stream = chance.choice("aab")
            log.append_events(stream, occurrences(*range(end * 10, end * 10 + chance.randint(0, 6))))
            if chance.random() < 0.1:
                log.append(lambda offset: SetStream(offset, "other", max_delay=offset))
            if end % 50 == 49:
                for name in "ab":
                    whole, middle = forward(tmp_path, name), chance.randrange(log.head())
                    assert backward(reader, name, 10_000) == whole
                    assert backward(reader, name, 5) == whole[:5]
                    assert backward(reader, name, 7, before=middle) == [row for row in whole if row[0] < middle][:7]
                    assert backward(reader, name, 10_000, created=middle) == [row for row in whole if row[0] >= middle]
    assert (len(segments(tmp_path / "log")) > 3) == (segment_bytes < 64 << 20)
    reader.close()


def test_nothing_yet(tmp_path: Path) -> None:
    assert BackwardReader(tmp_path).read_last("s", 0, 5).pieces == ()


def test_a_bound_of_bytes_says_where_it_stopped(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        for end in range(20):
            log.append_events("s", occurrences(end))
        look = BackwardReader(tmp_path, most_bytes=5_000).read_last("s", 0, 20)
        assert look.is_cut
        assert 0 < len(look.pieces) < 20
        assert look.read_from == look.pieces[-1].offset
        rest = BackwardReader(tmp_path).read_last("s", 0, 20, look.read_from)
        assert [piece.offset for piece in (*look.pieces, *rest.pieces)] == list(reversed(range(20)))


def test_a_bound_of_time(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", occurrences(1))
        assert BackwardReader(tmp_path, most_s=-1).read_last("s", 0, 20).is_cut


def test_a_profile_of_a_part(tmp_path: Path) -> None:
    clock = Clock()
    with LogWriter(tmp_path, clock) as log:
        log.append_events("s", occurrences(1, 2, subject="<http://e/s>"))
        log.append_events("t", occurrences(3))
        clock.now += 60_000_000
        log.append_events("s", occurrences(4))
        log.append(lambda offset: DropStream(offset, "t"))
    found = profile_of(BackwardReader(tmp_path), Stream("s", 0, accepted=5), 100, clock())
    assert (found.events, found.is_complete, [each.count for each in found.predicates]) == (3, False, [3])
    assert found.rate == pytest.approx(3 / 60), "the events cover a minute"


def test_a_profile_of_more_rows_than_are_counted_at_once(tmp_path: Path) -> None:
    """Counts, times and rates are those of all rows, and the example is the newest one."""
    clock = Clock()
    with LogWriter(tmp_path, clock) as log:
        for number in range(3):
            log.append_events("s", occurrences(*range(5000 * number, 5000 * (number + 1)), subject=f"<http://e/s{number}>"))
            clock.now += RATE_SPAN
    found = profile_of(BackwardReader(tmp_path), Stream("s", 0, accepted=15_000), 100_000, clock())
    (seen,) = found.predicates
    assert (found.events, found.is_complete, seen.count, seen.first, seen.last) == (15_000, True, 15_000, 0, 14_999)
    assert found.rate == seen.rate == 5000 * 1e6 / RATE_SPAN
    assert seen.example.startswith("<http://e/s2> ")
    some = profile_of(BackwardReader(tmp_path), Stream("s", 0, accepted=15_000), 7_000, clock())
    assert (some.events, some.is_complete, some.predicates[0].count, some.predicates[0].first) == (7_000, False, 7_000, 8_000)


def test_after_segments_were_removed(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock(), segment_bytes=10_000) as log:
        for end in range(50):
            log.append_events("s", occurrences(end))
        kept = segments(tmp_path / "log")[-2:]
        for first in segments(tmp_path / "log")[:-2]:
            segment_path(tmp_path / "log", first).unlink()
        look = BackwardReader(tmp_path).read_last("s", 0, 100)
        assert (look.read_from, look.is_cut) == (kept[0], False)
        assert [piece.offset for piece in look.pieces] == list(reversed(range(kept[0], 50)))
        assert not profile_of(BackwardReader(tmp_path), Stream("s", 0, accepted=50), 100, 0).is_complete
