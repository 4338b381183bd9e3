"""Reads a file, or the files of a directory in order of name, and goes on with what is appended and what comes later.

A position is `NAME@OFFSET#MARK`. The mark is a digest of the file's first bytes, which tells a file that was
replaced, as by rotation.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from connectors.configuration import Connector
from connectors.errors import SystemFault, WrongOption
from connectors.inbound.file_readers import MEDIA_TYPES, FileReader, open_reader
from connectors.inbound.source import Message, Source
from epsparql.deferred_methods import dataclass

_MARKED = 1_024
"""A mark is made of at most so many bytes."""
_NO_MARK = f"0-{hashlib.sha256().hexdigest()[:12]}"
_POSITION = re.compile(r"(.+)@(\d+)#(\d{1,4}-[0-9a-f]{12})", re.DOTALL)
_LOOK_S = 0.1
_LISTED_S = 1.0  # a directory is listed again after this time


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Says up to where which file was read; the offset of Parquet is a number of rows.

    `mark` is `SIZE-DIGEST` of the first bytes.
    """

    name: str
    offset: int = 0
    mark: str = _NO_MARK

    def __str__(self) -> str:
        return f"{self.name}@{self.offset}#{self.mark}"


def parse_position(text: str) -> FilePosition:
    """Return the position that `str` wrote. Raises: SystemFault for another text."""
    found = _POSITION.fullmatch(text)
    if found is None:
        raise SystemFault(f"the stored position {text!r} is none of a file; give the connector another source")
    return FilePosition(found[1], int(found[2]), found[3])


class FileSource(Source):
    """Reads the files of one path. With `tail`, the last file may grow; else its last row counts without a line break."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options, self._places = connector.options, connector.places
        self._path, self._pattern, self._format, self._tail = Path(options["path"]), options["pattern"], options["format"], options["tail"]
        if ".." in Path(self._pattern).parts or Path(self._pattern).is_absolute():
            raise WrongOption("pattern must lead to files below path, so it neither begins with / nor has ..")
        self._file: BinaryIO | None = None
        self._reader: FileReader | None = None
        self._at: FilePosition | None = None
        self._listed, self._listed_s = list[str](), 0.0

    def seek(self, position: str | None) -> None:
        self.close()
        self._listed = []
        if not self._path.exists():
            raise SystemFault(f"there is no file or directory {self._path}")
        self._at = None if position is None else parse_position(position)
        if self._at is not None and not self._path.is_dir() and self._at.name != self._path.name:
            raise SystemFault(f"the stored position is of the file {self._at.name!r}, not of {self._path}; give the connector another source")
        if self._at is not None and not self._is_removed(self._at.name):
            self._open_file(self._at)

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        deadline = time.monotonic() + wait_s
        while not (found := self._read_present(most)) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return found

    def _read_present(self, most: int) -> list[Message]:
        """Return messages of what is there now, from one file or several."""
        found = list[Message]()
        while len(found) < most:
            rows = self._read_rows(most - len(found), finished=not self._tail)
            if not rows:
                following = self._find_following()
                if following is None:
                    break
                rows = self._read_rows(most - len(found), finished=True)  # they may have been written just before that file came
                if not rows:
                    self._open_file(FilePosition(following))
            found += rows
        return found

    def _read_rows(self, most: int, *, finished: bool) -> list[Message]:
        """Return messages of the open file. Raises: SystemFault where it was rotated or truncated."""
        if self._reader is None or self._file is None or self._at is None:
            return []
        with _faults(self._find(self._at.name)):
            rows = self._reader.read(most, finished=finished)
            if not rows:
                self._check_present(self._file, self._reader, self._at)
                return []
            if _marked_bytes(self._at) < _MARKED:
                self._at = replace(self._at, mark=_mark(self._file, _MARKED))
        media_type, head, origin = self._reader.media_type, self._reader.head, f"file {self._at.name!r}"
        found = [Message(row.payload, str(replace(self._at, offset=row.offset)), media_type, head, origin=origin) for row in rows]
        self._at = replace(self._at, offset=rows[-1].offset)
        return found

    # ------------------------------------------------------------ files
    def _find(self, name: str) -> Path:
        return self._path / name if self._path.is_dir() else self._path

    def _is_removed(self, name: str) -> bool:
        """Return whether a file of a directory is gone, which is no fault: it may have been removed after it was read."""
        return self._path.is_dir() and not (self._path / name).exists()

    def _find_following(self) -> str | None:
        """Return the name of the next file. A listing is used for a while, since directories may be large."""
        if not self._path.is_dir():
            return self._path.name if self._at is None else None
        if not self._listed or time.monotonic() - self._listed_s > _LISTED_S:
            with _faults(self._path):
                names = (
                    path.relative_to(self._path).as_posix() for path in self._path.glob(self._pattern) if path.is_file() and self._places.allows(path)
                )
                self._listed = sorted((name for name in names if not _is_hidden(name)), reverse=True)
            self._listed_s = time.monotonic()
        while self._listed and self._at is not None and self._listed[-1] <= self._at.name:
            self._listed.pop()
        return self._listed[-1] if self._listed else None

    def _open_file(self, position: FilePosition) -> None:
        """Open a file at a position. Raises: SystemFault where another file stands there."""
        self.close()
        path = self._find(position.name)
        media_type = self._format or MEDIA_TYPES.get(path.suffix.lower())
        if media_type is None:
            raise SystemFault(f"{path}: no format is known by the suffix {path.suffix!r}; give format, or a pattern without such files")
        with _faults(path):
            if not self._places.allows(path):
                raise SystemFault(f"{path} leads outside of the directory of the setting connector_files")
            self._file = path.open("rb")
            if _mark(self._file, _marked_bytes(position)) != position.mark:
                raise _replaced(path)
            self._reader = open_reader(path, self._file, media_type, position.offset)
            self._check_present(self._file, self._reader, position)
        self._at = position

    def _check_present(self, file: BinaryIO, reader: FileReader, position: FilePosition) -> None:
        """Check that an open file still has its name, and that it is not shorter than what was read of it.

        Raises: SystemFault, OSError.
        """
        if self._is_removed(position.name):
            return
        path = self._find(position.name)
        if reader.size < position.offset or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            raise _replaced(path)

    def get_lag(self) -> int | None:
        """Return what is left of the open file: bytes, or rows of Parquet."""
        return 0 if self._reader is None or self._at is None else self._reader.size - self._at.offset

    def close(self) -> None:
        file, self._file, self._reader = self._file, None, None
        if file is not None:
            file.close()


def _mark(file: BinaryIO, size: int) -> str:
    """Return the mark of a file's first bytes, at most `size`."""
    beginning = os.pread(file.fileno(), size, 0)
    return f"{len(beginning)}-{hashlib.sha256(beginning).hexdigest()[:12]}"


def _marked_bytes(position: FilePosition) -> int:
    return int(position.mark.partition("-")[0])


def _is_hidden(name: str) -> bool:
    """Return whether a name says that the file is not for readers, or not yet."""
    return any(part.startswith((".", "_")) for part in name.split("/")) or name.endswith((".tmp", ".part"))


def _replaced(path: Path) -> SystemFault:
    return SystemFault(
        f"{path} is not the file that was read before: it was rotated, truncated or written anew. "
        "Give the connector another source, and it reads the present file from its beginning"
    )


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turn faults of the file system into SystemFault."""
    try:
        yield
    except OSError as fault:
        raise SystemFault(f"{path} cannot be read: {fault.strerror or fault}") from None
