"""This module writes rows as an Arrow stream: as one buffer, in a file, or as the parts it consists of; compressed where there are many."""

import io
from collections.abc import Sequence

import pyarrow as pa

Part = bytes | memoryview


_AS_THEY_ARE = pa.ipc.IpcWriteOptions()
"""Without options, Arrow would look at variables of the environment for each stream."""


def stream_of(rows: pa.RecordBatch | pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    write_stream(sink, rows)
    return sink.getvalue()


def write_stream(sink: pa.NativeFile, rows: pa.RecordBatch | pa.Table, options: pa.ipc.IpcWriteOptions = _AS_THEY_ARE) -> None:
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write(rows)


_FEW_ROWS = 64
COMPRESSED_ROWS = 512
"""Fewer rows of the input log are written as they are, because it takes 0.2 ms to compress a stream, whatever its size."""
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)


def write_rows(sink: pa.NativeFile, rows: pa.RecordBatch) -> None:
    """Write rows of the input log as a stream. Where there are many, its buffers are compressed, which any reader of Arrow undoes."""
    write_stream(sink, rows, _COMPRESSED if rows.num_rows >= COMPRESSED_ROWS else _AS_THEY_ARE)


def parts_of(batch: pa.RecordBatch) -> Sequence[Part]:
    """Return the same stream in parts, one after the other.

    Parts that are the batch's own memory are not copied, so they are good as long as the batch is. A small batch is one part, because Arrow waits for
    the interpreter's lock before each part.
    """
    if batch.num_rows <= _FEW_ROWS:
        return (memoryview(stream_of(batch)),)
    found = _Parts()
    with pa.PythonFile(found, "w") as sink:
        write_stream(sink, batch)
    return found.parts


class _Parts(io.RawIOBase):
    def __init__(self) -> None:
        self.parts: list[Part] = []

    def writable(self) -> bool:
        return True

    def write(self, part: bytes | pa.Buffer) -> int:
        self.parts.append(part if isinstance(part, bytes) else memoryview(part))
        return len(self.parts[-1])
