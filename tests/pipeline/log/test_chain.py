"""Segments that are lost, swapped, cut or replaced; and writers that are killed at each call of the system."""

import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.errors import Corrupt, Gone
from pipeline.log import segments as frames_module
from pipeline.log.segments import FrameReader, FrameWriter, check_chain, pack_header, read_opening, segment_path, segments, write_begin
from pipeline.scrub import Scrubber

SEGMENT_BYTES = 400


def write(directory: Path, count: int, *, text: str = "payload", durable: bool = True) -> None:
    with closing(FrameWriter(directory, durable=durable, segment_bytes=SEGMENT_BYTES)) as writer:
        for _ in range(count):
            append(writer, text)


def append(writer: FrameWriter, text: str = "payload") -> None:
    position = writer.position
    writer.append([f"{text} {position:04d}".encode()], position, position + 1)
    writer.sync()
    writer.publish()


def read(directory: Path) -> list[bytes]:
    with closing(FrameReader(directory)) as reader:
        return [bytes(reader.payload(frame)) for frame in reader.frames(0)]


def payloads(count: int) -> list[bytes]:
    return [f"payload {position:04d}".encode() for position in range(count)]


def write_unlinked(directory: Path, count: int, each: int = 4) -> None:
    """Write frames without links, as version 0.1.0 did."""
    directory.mkdir(parents=True)
    for first in range(0, count, each):
        data = b""
        for position in range(first, min(first + each, count)):
            payload = f"payload {position:04d}".encode()
            data += pack_header(zlib.crc32(payload), len(payload), position, position + 1, 0, 0) + payload + bytes(-len(payload) % 8)
        segment_path(directory, first).write_bytes(data)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write(tmp_path / "log", 30)
    assert len(segments(tmp_path / "log")) > 5
    return tmp_path / "log"


def lose(log: Path) -> None:
    segment_path(log, segments(log)[2]).unlink()


def lose_first(log: Path) -> None:
    segment_path(log, segments(log)[0]).unlink()


def lose_last(log: Path) -> None:
    segment_path(log, segments(log)[-1]).unlink()


def lose_all(log: Path) -> None:
    for first in segments(log):
        segment_path(log, first).unlink()


def swap(log: Path) -> None:
    one, other = (segment_path(log, first) for first in segments(log)[2:4])
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def cut(log: Path) -> None:
    """At the end of a frame."""
    first = segments(log)[2]
    with closing(FrameReader(log)) as reader:
        end = next(frame.end for frame in reader.frames(0) if frame.segment == first)
    os.truncate(segment_path(log, first), end)


def empty(log: Path) -> None:
    os.truncate(segment_path(log, segments(log)[2]), 0)


def replace(log: Path) -> None:
    """Replace a segment by one of the same size, of another log."""
    write(log.parent / "other", 30, text="PAYLOAD")
    shutil.copy(segment_path(log.parent / "other", segments(log)[2]), segment_path(log, segments(log)[2]))


def insert(log: Path) -> None:
    """Insert a file that is no segment of the log, after the log's end."""
    segment_path(log, 999).write_bytes(b"stray")


DAMAGES = [lose, lose_first, lose_last, lose_all, swap, cut, empty, replace, insert]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_start_sees_that_the_chain_is_broken(log: Path, damage: Callable[[Path], None], durable: bool) -> None:
    damage(log)
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"\d{20}\.frames is damaged"):
            FrameWriter(log, durable=durable)


@pytest.mark.parametrize("damage", [lose, cut, empty, swap])
def test_who_reads_is_not_led_past_a_gap(log: Path, damage: Callable[[Path], None]) -> None:
    damage(log)
    with pytest.raises((Corrupt, Gone)):
        read(log)


def test_a_start_reads_the_begins_of_segments_alone(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    pread = os.pread

    def counted(fd: int, count: int, at: int) -> bytes:
        nonlocal seen
        data = pread(fd, count, at)
        seen += len(data)
        return data

    path = segment_path(log, segments(log)[-1])
    monkeypatch.setattr(os, "pread", counted)
    FrameWriter(log, durable=True).close()
    assert seen < 2 * path.stat().st_size + len(segments(log)) * frames_module._OPENING_BYTES + 1000


def test_damage_inside_a_full_segment_is_found_beside_the_work(log: Path) -> None:
    path = segment_path(log, segments(log)[2])
    data = bytearray(path.read_bytes())
    found: list[Corrupt] = []
    Scrubber(log.parent, found.append).scrub()
    with closing(FrameReader(log)) as reader:
        frame = next(frame for frame in reader.frames(0) if frame.segment == segments(log)[2])
    data[frame.byte + 45] ^= 1
    path.write_bytes(data)
    scrubber = Scrubber(log.parent, found.append)
    scrubber.start()
    scrubber._thread.join()
    assert [(fault.path, fault.byte) for fault in found] == [(path, frame.byte)]
    assert str(path) in scrubber.damage
    FrameWriter(log, durable=True).close()  # a start does not read that far


def test_a_directory_without_links_is_read_and_gone_on_with(tmp_path: Path) -> None:
    """The chain begins with the first segment that is written now."""
    log = tmp_path / "log"
    write_unlinked(log, 10)
    write(log, 20)
    assert read(log) == payloads(30)
    links = [read_opening(log, first).link for first in segments(log)]
    begun = next(n for n, link in enumerate(links) if link is not None)
    assert segments(log)[:3] == [0, 4, 8]
    assert begun >= 3
    assert all(links[begun:])
    Scrubber(tmp_path, lambda _: None).scrub()
    segment_path(log, 8).unlink()
    with pytest.raises(Corrupt, match="the file is missing"):
        check_chain(log)


def test_segments_without_links_are_compared_where_they_are_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_unlinked(log, 14)
    segment_path(log, 4).unlink()
    with pytest.raises(Corrupt, match="positions from 4 to 8 are missing"):
        read_unpublished(log)
    with pytest.raises(Corrupt, match="it ends at position 4, and the next segment begins at 8"):
        Scrubber(tmp_path, lambda _: None).scrub()
    segment_path(log, 8).unlink()
    with pytest.raises(Corrupt, match="the segment before it ends at position 4"):
        FrameWriter(log, durable=True)


def read_unpublished(log: Path) -> None:
    FrameWriter(log, durable=True).close()
    read(log)


def test_what_was_removed_on_purpose_is_not_missed(log: Path) -> None:
    first = segments(log)[2]
    write_begin(log, first)
    for each in segments(log)[:1]:  # killed between two removals
        segment_path(log, each).unlink()
    write(log, 1)
    segment_path(log, segments(log)[0]).unlink()
    write(log, 1)
    segment_path(log, first).unlink()
    with pytest.raises(Corrupt, match="the file is missing"):
        write(log, 1)


def test_what_is_named_otherwise_is_not_the_logs(log: Path) -> None:
    for name in ("notes.frames", "1.frames", "head.frames.orig", "-0000000000000000001.frames"):
        (log / name).write_bytes(b"stray")
    write(log, 1)
    assert read(log) == payloads(31)


# ---------------------------------------------------------------- kills
class Killed(BaseException):
    """The process has ended here."""


CALLS = ("open", "pwritev", "pwrite", "truncate", "fsync", "fdatasync", "replace", "unlink")


class Death:
    """Ends the process at the n-th call of the system: before its effect, after it, or half-way through a write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, how: str) -> None:
        self.count, self._at, self._how = 0, at, how
        for name in CALLS:
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def watched(*arguments: object, **named: object) -> object:
            self.count += 1
            if self.count != self._at:
                return call(*arguments, **named)
            if self._how == "half":
                if name != "pwritev":
                    return call(*arguments, **named)
                fd, parts, at = arguments
                data = b"".join(parts)  # type: ignore[arg-type]
                os.write(_sought(fd, at), data[: len(data) // 2])
            elif self._how == "after":
                call(*arguments, **named)
            raise Killed

        return watched


def _sought(fd: object, at: object) -> int:
    assert isinstance(fd, int)
    assert isinstance(at, int)
    os.lseek(fd, at, os.SEEK_SET)
    return fd


def life(directory: Path, published: list[int], durable: bool) -> None:
    """Five frames, among which a segment begins, and the removal of the oldest segment."""
    writer = FrameWriter(directory, durable=durable, segment_bytes=SEGMENT_BYTES)
    try:
        for _ in range(5):
            append(writer)
            published.append(writer.position)
        known = segments(directory)
        write_begin(directory, known[1])
        os.unlink(segment_path(directory, known[0]))
    finally:
        writer.close()


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("how", ["before", "after", "half"])
def test_no_kill_is_refused_and_what_was_published_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, durable: bool) -> None:
    """A life is killed at its first call, at its second, and so on, until it lives to its end."""
    for name in ("fsync", "fdatasync"):  # a killed process loses nothing that it wrote, and a disk takes its time
        monkeypatch.setattr(os, name, lambda _: None)
    write(tmp_path / "whole", 11, durable=durable)
    ended = at = 0
    lived = False
    while not lived:
        at += 1
        directory, published = tmp_path / f"{how}{at}" / "log", [11]
        shutil.copytree(tmp_path / "whole", directory)
        with pytest.MonkeyPatch.context() as patch:
            death = Death(patch, at, how)
            try:
                life(directory, published, durable)
            except Killed:
                ended += 1
            lived = death.count < at
        write(directory, 2, durable=durable)
        with closing(FrameReader(directory)) as reader:
            kept = [bytes(reader.payload(frame)) for frame in reader.frames(segments(directory)[0])]
        whole = payloads(published[-1] + 10)
        assert len(kept) + segments(directory)[0] >= published[-1] + 2, (how, at)
        assert kept == whole[segments(directory)[0] :][: len(kept)], (how, at)
        Scrubber(directory.parent, lambda _: None, rests=0).scrub()
        shutil.rmtree(directory)
    assert ended > (4 if how == "half" else 25)


# ---------------------------------------------------------------- syncs that fail
def test_bytes_whose_sync_failed_are_written_again_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system calls them clean, so that a second sync alone says nothing of them."""
    writer = FrameWriter(tmp_path, durable=False)
    append(writer)
    sync, pwrite = os.fdatasync, os.pwrite
    written: list[tuple[int, bytes]] = []

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    def noted(fd: int, data: bytes, at: int) -> int:
        written.append((at, data))
        return pwrite(fd, data, at)

    writer.append([b"lost"], 1, 2)
    end = segment_path(tmp_path, 0).stat().st_size
    begin = end - 48
    monkeypatch.setattr(os, "fdatasync", failing)
    monkeypatch.setattr(os, "pwrite", noted)
    with pytest.raises(OSError, match="Input"):
        writer.sync()
    monkeypatch.setattr(os, "fdatasync", sync)
    assert [(at, len(data)) for at, data in written] == [(begin, 48)]
    assert zlib.crc32(written[0][1]) == zlib.crc32(segment_path(tmp_path, 0).read_bytes()[begin:])
    writer.sync()
    writer.close()


def test_what_was_not_published_is_written_again_by_the_next_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FrameWriter(tmp_path, durable=True)
    append(writer)
    published = segment_path(tmp_path, 0).stat().st_size
    writer.append([b"not synced"], 1, 2)
    writer.close()
    pwrite, sync = os.pwrite, os.fdatasync
    done: list[tuple[str, int]] = []

    def written(fd: int, data: bytes, at: int) -> int:
        done.append(("write", at))
        return pwrite(fd, data, at)

    def synced(fd: int) -> None:
        done.append(("sync", 0))
        sync(fd)

    monkeypatch.setattr(os, "pwrite", written)
    monkeypatch.setattr(os, "fdatasync", synced)
    FrameWriter(tmp_path, durable=True).close()
    assert done[-3:-1] == [("write", published), ("sync", 0)]
