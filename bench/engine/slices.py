"""This bench evaluates a day of events in slices of an hour against the same in one piece, in CPU seconds of one core.

It also lets partitions share a query without a key by time.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from bench.measurement import WrongCount, line, median, one_core
from bench.workloads import BEGIN, EVERY, PREFIXES, WORKLOADS, blocks, drawn
from engine.messages import INSTANT, Register, int64s
from engine.partitioning import PartitionShare
from pipeline.log import LogReader, LogWriter
from pipeline.runners.engine_host import EngineHost
from pipeline.slices.execution import SliceWork, run_slice
from pipeline.slices.runner import plan_log

_HOURS, _DAY = 24, 86_400_000_000
_TEXT = PREFIXES + WORKLOADS["W1"].replace("PT10S", "PT5M")
_ROUNDS = 5
_PARTITIONS = 1, 2, 4
_KEYLESS = f"{PREFIXES}SELECT ?s ?t WHERE {{ {{?s :a ?x}} SEQ {{?t :b ?y}} WITHIN 2 FILTER(?y > 500 * ?x) }}"
_KEYLESS_ROUNDS = 3


def measure(n: int) -> Iterator[str]:
    """Yield two lines: `n` events of W1 within five minutes, spread over a day, and events of a millisecond each in partitions.

    There are 100 events for each id. `ratio` is by how much all slices together take longer than one piece, and `read` how many rows the frames that they decode have for each event.
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
    yield _measure_partitions(n)


def _measure_partitions(n: int) -> str:
    """Return a line: a query without a key, which compares all pairs within two seconds, in 1, 2 and 4 partitions that have slices of time in turns.

    Partitions run one after the other, and their CPU seconds have reading the log in them. Raises: WrongCount.
    """
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place:
        root, rounds = Path(place), list[dict[int, list[float]]]()
        for number in _PARTITIONS:
            with LogWriter(root / str(number), lambda: BEGIN, partitions=number) as log:
                log.append(lambda offset: Register(offset, "q", _KEYLESS, by_time=True))
                for block in blocks(drawn(n, max(n // 1000, 1))):
                    log.append_events("default", block.rows)
        counts = dict[int, int]()
        for _ in range(_KEYLESS_ROUNDS + 1):
            found = {}
            for number in _PARTITIONS:
                found[number], counts[number] = _run_partitions(root / str(number), number)
            rounds.append(found)
    for number, count in counts.items():
        if count != counts[1]:
            raise WrongCount(f"{number} partitions", count, counts[1])
    taken = rounds[1:]  # the first one warms
    return line(
        "live slices",
        n=n,
        solutions=counts[1],
        busiest_s={str(number): round(median([max(each[number]) for each in taken]), 3) for number in _PARTITIONS},
        all_s={str(number): round(median([sum(each[number]) for each in taken]), 3) for number in _PARTITIONS},
        busiest_speedup_4=round(median([max(each[1]) / max(each[4]) for each in taken]), 2),
        cpu_growth_4=round(median([sum(each[4]) / sum(each[1]) for each in taken]) - 1, 3),
    )


def _run_partitions(data: Path, number: int) -> tuple[list[float], int]:
    """Return the CPU seconds of each partition, and how many solutions all have together."""
    seconds, solutions = list[float](), 0
    with closing(LogReader(data)) as log:
        head = log.head()
    for partition in range(number):
        with closing(EngineHost(data, PartitionShare(partition, number), snapshot_weight=1 << 62)) as host:
            for _ in host.run(0, 1):  # the registration
                pass
            began = time.process_time()
            solutions += sum(piece.outcome.solutions.num_rows for piece in host.run(1, head))
            seconds.append(time.process_time() - began)
    return seconds, solutions


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
