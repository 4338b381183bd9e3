"""The framed file: what is written is read, a torn tail goes, damage is named."""

import os
import shutil
import signal
import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import Corrupt, Locked, OutOfOrder
from pipeline.log.segments import HEADER, FrameReader, FrameWriter, segment_path, segments
from tests.soak import examples, is_full
from tests.support.logs import until

PAYLOADS = [b"", b"a", b"eight by", b"\xffEPF" * 20, bytes(range(256)) * 40]


def write(directory: Path, payloads: list[bytes], *, durable: bool = True, segment_bytes: int = 1 << 20) -> None:
    writer = FrameWriter(directory, durable=durable, segment_bytes=segment_bytes)
    for payload in payloads:
        append(writer, payload)
    writer.close()


def append(writer: FrameWriter, payload: bytes) -> None:
    writer.append([payload[:3], payload[3:]], writer.position, writer.position + 1)
    writer.sync()
    writer.publish()


def read(directory: Path, position: int = 0) -> list[bytes]:
    reader = FrameReader(directory)
    try:
        return [bytes(reader.payload(frame)) for frame in reader.frames(position)]
    finally:
        reader.close()


@settings(max_examples=examples(60))
@given(
    parts=st.lists(st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 5)), max_size=6), min_size=1, max_size=4),
    segment_bytes=st.integers(1, 1500),
)
def test_what_is_written_is_read_whatever_the_cuts_and_restarts(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[bytes, int]]], segment_bytes: int
) -> None:
    directory = tmp_path_factory.mktemp("frames")
    follower = FrameReader(directory)
    expected: list[tuple[int, int, bytes]] = []
    followed: list[tuple[int, int, bytes]] = []
    for part in parts:
        writer = FrameWriter(directory, durable=True, segment_bytes=segment_bytes)
        for payload, count in part:
            first = writer.position
            writer.append([payload], first, first + count, rows=7, flags=1)
            writer.publish()
            expected.append((first, first + count, payload))
            position = followed[-1][1] if followed else 0
            followed += [(f.first, f.after, bytes(follower.payload(f))) for f in follower.frames(position)]
        writer.close()
    assert followed == expected
    for position in range(expected[-1][1] + 1 if expected else 1):
        fresh = FrameReader(directory)
        assert [(f.first, f.after, bytes(fresh.payload(f))) for f in fresh.frames(position)] == [e for e in expected if e[1] > position]
        fresh.close()
    follower.close()


def test_only_what_was_published_is_seen(tmp_path: Path) -> None:
    writer, reader = FrameWriter(tmp_path, durable=True), FrameReader(tmp_path)
    assert reader.head().position == 0
    writer.append([b"one"], 0, 1)
    assert list(reader.frames(0)) == []
    writer.publish()
    assert [frame.after for frame in reader.frames(0)] == [1]
    writer.close()


def test_a_torn_tail_is_cut_off_at_whatever_byte_it_tore(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    write(whole, PAYLOADS)
    published = (whole / "head").read_bytes()
    sound = segment_path(whole, 0).stat().st_size
    write(whole, [b"the last frame, which tears"])
    data = segment_path(whole, 0).read_bytes()
    for size in range(sound, len(data)):
        torn = tmp_path / f"torn{size}"
        torn.mkdir()
        (torn / "head").write_bytes(published)
        segment_path(torn, 0).write_bytes(data[:size])
        write(torn, [b"after"])
        assert read(torn) == [*PAYLOADS, b"after"]
        shutil.rmtree(torn)


def test_every_flipped_byte_of_an_unpublished_last_frame_cuts_it_off(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    write(whole, [b"first"])
    published, sound = (whole / "head").read_bytes(), segment_path(whole, 0).stat().st_size
    write(whole, [b"the last frame!!"])  # a multiple of 8, so that no byte is padding
    data = segment_path(whole, 0).read_bytes()
    for at in range(sound, len(data)):
        torn = tmp_path / f"flipped{at}"
        torn.mkdir()
        (torn / "head").write_bytes(published)
        segment_path(torn, 0).write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        write(torn, [])
        assert read(torn) == [b"first"]
        shutil.rmtree(torn)


def test_damage_before_the_end_is_an_error_that_names_file_and_byte(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    write(whole, [b"first!!!", b"second!!", b"third!!!"])
    size = HEADER.size + 8
    data = segment_path(whole, 0).read_bytes()
    for at in range(size, 2 * size):
        bad = tmp_path / f"bad{at}"
        shutil.copytree(whole, bad)
        segment_path(bad, 0).write_bytes(data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :])
        for look in (lambda bad=bad: read(bad), lambda bad=bad: write(bad, [])):
            with pytest.raises(Corrupt) as caught:
                look()
            assert (caught.value.path, caught.value.byte) == (segment_path(bad, 0), size)
        (bad / "head").unlink()  # even where nothing says what was published, a sound frame after a bad one is no torn tail
        with pytest.raises(Corrupt, match=f"byte {size}"):
            write(bad, [])
        shutil.rmtree(bad)


def test_a_log_shorter_than_published_is_damage_unless_it_can_be_computed_again(tmp_path: Path) -> None:
    write(tmp_path, [b"first", b"second"])
    os.truncate(segment_path(tmp_path, 0), HEADER.size + 8)
    with pytest.raises(Corrupt, match="written whole"):
        FrameWriter(tmp_path, durable=True)
    write(tmp_path, [b"again"], durable=False)
    assert read(tmp_path) == [b"first", b"again"]


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    write(tmp_path, [b"first", b"second", b"third"], segment_bytes=1)
    assert segments(tmp_path) == [0, 1, 2]
    segment_path(tmp_path, 2).unlink()
    for look in (lambda: read(tmp_path), lambda: write(tmp_path, [])):
        with pytest.raises(Corrupt, match="missing"):
            look()


def test_a_segment_begun_and_still_empty_is_taken_up(tmp_path: Path) -> None:
    write(tmp_path, [b"first", b"second"], segment_bytes=1)
    segment_path(tmp_path, 2).touch()
    write(tmp_path, [b"third"])
    assert read(tmp_path) == [b"first", b"second", b"third"]


def test_a_second_writer_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path, durable=True)
    with pytest.raises(Locked, match=rf"in use by process {os.getpid()}; stop it"):
        FrameWriter(tmp_path, durable=True)
    writer.close()
    FrameWriter(tmp_path, durable=True).close()


def test_a_frame_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path, durable=True)
    with pytest.raises(OutOfOrder):
        writer.append([], 1, 2)
    writer.close()


WRITER = """
import sys
from pathlib import Path
from pipeline.log.segments import FrameWriter
writer = FrameWriter(Path(sys.argv[1]), durable=True, segment_bytes=20_000)
while True:
    first = writer.position
    writer.append([first.to_bytes(8, "little")] * (first % 100), first, first + 1 + first % 3)
    writer.sync()
    writer.publish()
"""


def test_a_writer_killed_again_and_again_leaves_a_sound_log_to_readers_that_follow_it(tmp_path: Path) -> None:
    reader, position = FrameReader(tmp_path), 0
    for _ in range(5 if is_full() else 2):
        before = position
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
        until(lambda before=before: reader.head().position > before + 300, "the writer writes")  # type: ignore[misc]
        for frame in reader.frames(position):
            assert frame.first == position
            assert bytes(reader.payload(frame)) == frame.first.to_bytes(8, "little") * (frame.first % 100)
            position = frame.after
        process.send_signal(signal.SIGKILL)
        process.wait()
    reader.close()
    FrameWriter(tmp_path, durable=True).close()
    assert len(segments(tmp_path)) > 1
    whole = FrameReader(tmp_path)
    frames = list(whole.frames(0))
    assert [f.first for f in frames] == [0, *(f.after for f in frames[:-1])]
    whole.close()


def test_what_recovery_takes_over_is_on_disk_before_it_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FrameWriter(tmp_path, durable=True)
    append(writer, b"published")
    writer.append([b"neither synced ", b"nor published"], 1, 2)
    writer.close()
    seen: list[list[bytes]] = []
    sync = os.fdatasync

    def watched(fd: int) -> None:
        seen.append(read(tmp_path))
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", watched)
    FrameWriter(tmp_path, durable=True).close()
    assert seen == [[b"published"]]
    assert read(tmp_path) == [b"published", b"neither synced nor published"]


def test_a_segment_that_cannot_be_made_leaves_a_writer_that_can_be_closed(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path, durable=True, segment_bytes=1)
    append(writer, b"first")
    in_the_way = segment_path(tmp_path, 1)
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        append(writer, b"second")
    in_the_way.rmdir()
    append(writer, b"second")
    in_the_way = segment_path(tmp_path, 2)
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        append(writer, b"third")
    in_the_way.rmdir()
    writer.close()
    write(tmp_path, [b"third"])
    assert read(tmp_path) == [b"first", b"second", b"third"]


def test_a_writer_that_could_not_be_made_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            FrameWriter(tmp_path, durable=True)
    write(tmp_path, [b"after"])
    assert read(tmp_path) == [b"after"]
