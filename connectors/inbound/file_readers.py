"""Reads the rows of one file, each with the offset after it: lines of text, rows of CSV, whole documents, and rows of
Parquet.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from connectors.errors import SystemFault
from connectors.inbound.bodies import MOST_BYTES
from connectors.inbound.source import BY_LINE, find_kind
from epsparql.events.frame_rows import documents_of_rows
from epsparql.events.media_types import CSV, JSON, LINES, NDJSON

MOST_DOCUMENT_BYTES = 64 << 20
"""A file that is one document has at most this many bytes; the server's max_body may be less."""
_BATCH = 1_000  # rows of Parquet that are decoded at a time
PARQUET = "application/vnd.apache.parquet"
MEDIA_TYPES = {
    ".csv": CSV,
    ".log": LINES,
    ".json": JSON,
    ".ndjson": NDJSON,
    ".jsonl": NDJSON,
    ".parquet": PARQUET,
    ".nt": "application/n-triples",
    ".nq": "application/n-quads",
    ".ttl": "text/turtle",
    ".trig": "application/trig",
    ".jsonld": "application/ld+json",
    ".rdf": "application/rdf+xml",
}


class FileRow(NamedTuple):
    """Holds a row and the offset after it: bytes from the file's beginning, of Parquet rows."""

    payload: bytes
    offset: int


class FileReader(Protocol):
    """Reads one file from an offset on."""

    media_type: str
    head: bytes
    """A body of rows begins with this: the header of a CSV file."""

    @property
    def size(self) -> int:
        """Return the offset of the file's end."""

    def read(self, most: int, *, finished: bool) -> Sequence[FileRow]:
        """Return up to `most` of the next rows.

        A row that does not end counts only in a file that is `finished`. Raises: SystemFault.
        """


def open_reader(path: Path, file: BinaryIO, media_type: str, offset: int) -> FileReader:
    """Return a reader of an open file from an offset on. Raises: SystemFault, OSError."""
    kind = find_kind(media_type)
    if kind == PARQUET:
        return _ParquetReader(path, file, offset)
    if kind in (CSV, *BY_LINE) or (kind == JSON and _holds_lines(file)):
        return _LineReader(path, file, media_type, offset)
    return _DocumentReader(path, file, media_type, offset)


def _holds_lines(file: BinaryIO) -> bool:
    """Return whether a file of JSON has an object on each line, which its first line tells."""
    try:
        return isinstance(json.loads(file.readline(MOST_BYTES)), dict)
    except (ValueError, RecursionError):
        return False


class _LineReader:
    """Reads lines, or rows of CSV, in which a quoted cell may hold line breaks."""

    def __init__(self, path: Path, file: BinaryIO, media_type: str, offset: int) -> None:
        self.media_type, self.head = media_type, b""
        self._path, self._file, self._offset = path, file, offset
        self._quoted = find_kind(media_type) == CSV
        self._begun = not self._quoted

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def read(self, most: int, *, finished: bool) -> Sequence[FileRow]:
        if not self._begun:
            self._begun = self._read_header(finished)
            if not self._begun:
                return ()
        self._file.seek(self._offset)
        found, size = list[FileRow](), 0
        while len(found) < most and size < MOST_BYTES:
            line = self._read_row(finished)
            if not line:
                break
            self._offset += len(line)
            if line.strip():
                found.append(FileRow(line.rstrip(b"\r\n"), self._offset))
                size += len(line)
        return found

    def _read_header(self, finished: bool) -> bool:
        self._file.seek(0)
        line = self._read_row(finished)
        self.head, self._offset = line.rstrip(b"\r\n"), max(self._offset, len(line))
        return bool(line)

    def _read_row(self, finished: bool) -> bytes:
        """Return the next whole row with its line break; nothing if there is none yet.

        Raises: SystemFault for one that is too long.
        """
        row = self._file.readline(MOST_BYTES + 1)
        if self._quoted and row.count(b'"') % 2:
            lines = [row]
            size, quotes = len(row), 1
            while quotes % 2 and size <= MOST_BYTES and (line := self._file.readline(MOST_BYTES + 1)):
                lines.append(line)
                size, quotes = size + len(line), quotes + line.count(b'"')
            row = b"".join(lines)
            if quotes % 2 and len(row) <= MOST_BYTES and not finished:
                return b""
        if len(row) > MOST_BYTES:
            raise SystemFault(f"{self._path}: the row at byte {self._offset} has more than {MOST_BYTES} bytes; is it another format?")
        return row if finished or row.endswith(b"\n") else b""


class _DocumentReader:
    """Reads a file that is one document."""

    def __init__(self, path: Path, file: BinaryIO, media_type: str, offset: int) -> None:
        self.media_type, self.head = media_type, b""
        self._path, self._file, self._offset = path, file, offset

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def read(self, most: int, *, finished: bool) -> Sequence[FileRow]:
        if self._offset:
            return ()
        self._file.seek(0)
        document = self._file.read(MOST_DOCUMENT_BYTES + 1)
        if len(document) > MOST_DOCUMENT_BYTES:
            raise SystemFault(f"{self._path} has more than {MOST_DOCUMENT_BYTES} bytes, too many for one document; split it")
        self._offset = len(document)
        return [FileRow(document, self._offset)] if document.strip() else ()


class _ParquetReader:
    """Reads the rows of a Parquet file as objects of JSON, a batch at a time.

    Row groups before the offset are not read.
    """

    def __init__(self, path: Path, file: BinaryIO, offset: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.media_type, self.head = JSON, b""
        self._path, self._offset, self._waiting = path, offset, list[FileRow]()
        try:
            found = pq.ParquetFile(file)
        except pa.ArrowException as fault:
            raise SystemFault(f"{path} is no whole Parquet file: {fault}") from None
        self.size = found.metadata.num_rows
        group, self._first = 0, 0  # the first row group that is not read as a whole, and its first row
        while group < found.num_row_groups and self._first + found.metadata.row_group(group).num_rows <= offset:
            self._first += found.metadata.row_group(group).num_rows
            group += 1
        self._batches = found.iter_batches(_BATCH, row_groups=list(range(group, found.num_row_groups)))

    def read(self, most: int, *, finished: bool) -> Sequence[FileRow]:
        import pyarrow as pa

        while len(self._waiting) < most:
            try:
                batch = next(self._batches, None)
            except pa.ArrowException as fault:
                raise SystemFault(f"{self._path}: it cannot be read behind row {self._offset}: {fault}") from None
            if batch is None:
                break
            skipped = min(max(self._offset - self._first, 0), batch.num_rows)
            self._first += batch.num_rows
            self._take_batch(batch.slice(skipped))
        found, self._waiting = self._waiting[:most], self._waiting[most:]
        return found

    def _take_batch(self, batch: Any) -> None:
        try:
            for document in documents_of_rows(batch.schema.names, _rows_of(batch), self._offset + 1):
                self._offset += 1
                self._waiting.append(FileRow(document.encode(), self._offset))
        except TypeError as fault:
            raise SystemFault(f"{self._path}: {fault}; leave the column out, or write it as text or numbers") from None


def _rows_of(batch: Any) -> Iterable[tuple[Any, ...]]:
    """Yield the rows of a record batch as Python has their values, times to the microsecond."""
    import pyarrow as pa

    columns = []
    for column in batch.columns:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        columns.append(column.to_pylist())
    return zip(*columns, strict=True)
