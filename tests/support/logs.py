"""Small makings of the pipeline's tests: occurrences, a clock that is set, and waiting for what must come."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.messages import INSTANT, SOLUTIONS, Micros
from pipeline.formats.batches.batch_builder import batch_of

DEADLINE_S = 120.0  # the kernel may have to be compiled first


@dataclass(slots=True)
class Clock:
    """A clock that stands until it is set."""

    now: Micros = 1_000_000_000

    def __call__(self) -> Micros:
        return self.now


def occurrences(*ends: Micros, subject: str = "<http://e/s>") -> pa.RecordBatch:
    """One occurrence per end, each an instant, told apart by its object."""
    n = len(ends)
    return batch_of([subject] * n, ["<http://e/p>"] * n, [f'"{end}"' for end in ends], None, ends, ends)


def solutions(*rows: tuple[int, int, Micros, Sequence[str | None]]) -> pa.RecordBatch:
    """(registered, entry, end, values) each; a query is named by its registration."""
    columns = [
        pa.array([f"q{row[0]}" for row in rows], pa.utf8()).dictionary_encode(),
        pa.array([row[0] for row in rows], pa.int64()),
        pa.array([row[1] for row in rows], pa.int64()),
        pa.array([row[2] for row in rows], pa.int64()).cast(INSTANT),
        pa.array([row[2] for row in rows], pa.int64()).cast(INSTANT),
        pa.array([list(row[3]) for row in rows], pa.list_(pa.utf8())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOLUTIONS)


def until(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait for a condition. Raises: AssertionError when the deadline passes.

    It is asked more and more seldom: many are requests to a server, whose answers would take the time of what is
    waited for.
    """
    deadline, pause_s = time.monotonic() + deadline_s, 0.002
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.1)


def stream_of(columns: Mapping[str, Sequence[str | None] | pa.Array], options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """The columns as a stream of Arrow record batches."""
    batch, sink = pa.record_batch(dict(columns)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    body: bytes = sink.getvalue().to_pybytes()
    return body
