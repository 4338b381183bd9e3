"""Notes between processes: whole or not there, whatever was there before."""

from pathlib import Path
from threading import Thread

import pytest

from pipeline.status_files import note_path, read_note, write_note


def test_a_shorter_note_takes_the_place_of_a_longer_one(tmp_path: Path) -> None:
    path = note_path(tmp_path, "0")
    assert read_note(path) is None
    for text in (b"a longer one", b"short", b""):
        write_note(path, text)
        assert read_note(path) == text


@pytest.mark.parametrize("torn", [b"", b"\x05", b"\x05\0\0\0\1\2\3\4short", b"\x09\0\0\0\1\2\3\4short"])
def test_what_is_torn_is_none(tmp_path: Path, torn: bytes) -> None:
    path = note_path(tmp_path, "0")
    write_note(path, b"")
    path.write_bytes(torn)
    assert read_note(path) is None


def test_a_reader_sees_whole_notes_while_they_are_written(tmp_path: Path) -> None:
    path, notes = note_path(tmp_path, "0"), [bytes([k]) * (5_000 * k) for k in range(1, 9)]
    write_note(path, notes[0])

    def write() -> None:
        for number in range(2_000):
            write_note(path, notes[number % len(notes)])

    writer = Thread(target=write)
    writer.start()
    seen = {read_note(path) for _ in range(500)}
    writer.join()
    assert seen <= {*notes, None}
    assert read_note(path) == notes[1999 % len(notes)]
