"""This bench evaluates a day of events in slices of an hour against the same in one piece, in CPU seconds of one core."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from bench.measurement import WrongCount, line, median, one_core
from bench.workloads import BEGIN, EVERY, PREFIXES, WORKLOADS, blocks, drawn
from engine.messages import INSTANT, Register, int64s
from pipeline.log import LogReader, LogWriter
from pipeline.slices.execution import SliceWork, run_slice
from pipeline.slices.runner import plan_log

_HOURS, _DAY = 24, 86_400_000_000
_TEXT = PREFIXES + WORKLOADS["W1"].replace("PT10S", "PT5M")
_ROUNDS = 5


def measure(n: int) -> Iterator[str]:
    """Yield a line: `n` events of W1 within five minutes, spread over a day. There are 100 events for each id.

    `ratio` is by how much all slices together take longer than one piece, and `read` how many rows the frames that they decode have for each event.
    Raises: WrongCount where the slices give other solutions than the piece.
    """
    one_core()
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place:
        data = Path(place)
        _write_day(data, n)
        whole, hours = (plan_log(data, 1, count)[0] for count in (1, _HOURS))
        rounds = [(_run(whole), _run(hours)) for _ in range(_ROUNDS + 1)][1:]  # the first one warms
        with closing(LogReader(data)) as log:
            read = sum(log.rows(work.part.first, work.part.until) for work in hours) / n
    for (_, expected), (_, found) in rounds:
        if found != expected:
            raise WrongCount("slices of an hour", found, expected)
    yield line(
        "slices",
        n=n,
        slices=len(hours),
        whole_s=round(median([sum(piece) for (piece, _), _ in rounds]), 3),
        all_s=round(median([sum(slices) for _, (slices, _) in rounds]), 3),
        busiest_s=round(median([max(slices) for _, (slices, _) in rounds]), 3),
        ratio=round(median([sum(slices) / sum(piece) for (piece, _), (slices, _) in rounds]), 2),
        read=round(read, 2),
    )


def _write_day(data: Path, n: int) -> None:
    with LogWriter(data, lambda: BEGIN) as log:
        log.append(lambda offset: Register(offset, "q", _TEXT))
        for block in blocks(drawn(n, max(n // 100, 1))):
            rows = block.rows
            at = pa.array(BEGIN + (int64s(rows.column("start")) - BEGIN) // EVERY * (_DAY // n)).cast(INSTANT)
            for name in ("start", "end"):
                rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), at)
            log.append_events("default", rows)


def _run(works: Sequence[SliceWork]) -> tuple[list[float], int]:
    """Return the CPU seconds of each slice, and how many solutions there are."""
    seconds, solutions = [], 0
    for work in works:
        began = time.process_time()
        solutions += sum(piece.outcomes[0].solutions.num_rows for piece in run_slice(work) if piece is not None)
        seconds.append(time.process_time() - began)
    return seconds, solutions
