"""This module writes rows as an Arrow stream: as one buffer, in a file, or as the parts it consists of; compressed
where there are many.
"""

import io
import struct
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
_ZSTD = pa.Codec("zstd", compression_level=1)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=_ZSTD, use_threads=False)
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
_PACKED = b"zstd"  # a stream begins by 0xffffffff
_HEAD = struct.Struct("<4sII")  # _PACKED, bytes of the stream, and those that it takes compressed


def write_rows(sink: pa.NativeFile, rows: pa.RecordBatch) -> None:
    """Write rows of the input log as a stream.

    Where there are many, its buffers are compressed, which any reader of Arrow undoes.
    """
    write_stream(sink, rows, _COMPRESSED if rows.num_rows >= COMPRESSED_ROWS else _AS_THEY_ARE)


def open_rows(payload: Part) -> pa.ipc.RecordBatchStreamReader:
    """Open a stream.

    Its buffers are decompressed by the caller's thread: to hand each to another thread costs a third of the time.
    """
    return pa.ipc.open_stream(pa.py_buffer(payload), options=_ONE_THREAD)


def pack_rows(rows: pa.RecordBatch) -> Part:
    """Return rows as a stream, padded to a multiple of 8 bytes. Where there are many, it is compressed as a whole.

    That takes half of the time of compressed buffers, because Zstandard prepares its memory once and not ten times
    (docs/decisions/0024-buckets.md).
    """
    stream = stream_of(rows)
    if rows.num_rows < COMPRESSED_ROWS:
        return memoryview(stream)
    packed: bytes = _ZSTD.compress(stream, asbytes=True)
    return _HEAD.pack(_PACKED, stream.size, len(packed)) + packed + bytes(-(_HEAD.size + len(packed)) % 8)


def unpack_rows(part: Part) -> pa.RecordBatch:
    """Return the rows that `pack_rows` packed, or of a stream."""
    if part[: len(_PACKED)] == _PACKED:
        _, size, packed = _HEAD.unpack_from(part)
        part = memoryview(_ZSTD.decompress(pa.py_buffer(part[_HEAD.size : _HEAD.size + packed]), size))
    return open_rows(part).read_next_batch()


def parts_of(batch: pa.RecordBatch) -> Sequence[Part]:
    """Return the same stream in parts, one after the other.

    Parts that are the batch's own memory are not copied, so they are good as long as the batch is. A small batch is
    one part, because Arrow waits for the interpreter's lock before each part.
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
