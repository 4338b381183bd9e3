"""This module numbers the format of a data directory, so that a version refuses what it cannot read, before it
changes anything.

The file `format` holds the number of the version that wrote last, and the least number of a version that can read
what that wrote. Version 0.1.0 wrote format 1, without the file. `tests/fault_tolerance/test_stored_formats.py` fails
when a layout changes and the number does not.
"""

from pathlib import Path

import msgspec

from epsparql.durable_files import replace_file
from pipeline.errors import Corrupt, NewerFormat

FORMAT = 2
READABLE_FROM = 2
"""A version with this number or a later one reads what this version writes.

Raise it where earlier versions would fail, or would read something else.
"""
FORMAT_FILE = "format"


class FormatNote(msgspec.Struct, frozen=True):
    format: int
    readable_from: int


def check_format(place: Path | str, data: bytes | None) -> FormatNote | None:
    """Return the note that the file `format` of a place holds, None where there is no such file.

    Raises: NewerFormat, Corrupt.
    """
    if data is None:
        return None
    try:
        note = msgspec.json.decode(data, type=FormatNote)
    except msgspec.MsgspecError as fault:
        raise Corrupt(Path(place) / FORMAT_FILE, 0, str(fault)) from None
    if note.readable_from > FORMAT:
        raise NewerFormat(str(place), note.format, note.readable_from, FORMAT)
    return note


def read_format(data_dir: Path) -> FormatNote | None:
    """Return the note of a data directory, None where it is empty or of version 0.1.0. Raises: NewerFormat, Corrupt."""
    path = data_dir / FORMAT_FILE
    return check_format(data_dir, path.read_bytes() if path.exists() else None)


def write_format(data_dir: Path) -> None:
    """Note that this version writes to a data directory from now on. Raises: OSError."""
    ours = FormatNote(FORMAT, READABLE_FROM)
    if read_format(data_dir) != ours:
        replace_file(data_dir / FORMAT_FILE, msgspec.json.encode(ours))
