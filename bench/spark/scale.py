"""This bench measures how the work of a query with a key is shared by partitions, in CPU seconds.

Each partition's task runs in a process of its own, over a real log, one after the other: CPU seconds then say what executors of their own would take.
The front is what one process does whatever the number of partitions: it parses bodies, appends them to the log, and merges what the partitions found.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bench.measurement import line, median
from bench.workloads import BATCH, BEGIN, PREFIXES, WORKLOADS, Drawn, check, drawn, texts_of, times_of
from engine.messages import Register
from engine.partitioning import PartitionShare
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import NDJSON, parse_body
from pipeline.log import LogReader, LogWriter
from pipeline.runners.engine_host import EngineHost
from pipeline.runners.merge import MergeWork
from pipeline.solutions.partition_log import PartitionLogs, PartitionWriter
from pipeline.solutions.solution_log import SolutionReader

PARTITIONS = (1, 2, 4)
_WARM_EVENTS, _ROUNDS = 20_000, 3


@dataclass(frozen=True, slots=True)
class Shared:
    """Holds the CPU seconds of each partition's task, and those of the merge: medians of some rounds."""

    tasks: tuple[float, ...]
    merging: float

    @property
    def busiest(self) -> float:
        return max(self.tasks)

    @property
    def all(self) -> float:
        return sum(self.tasks)


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line: the busiest task and all tasks with 1, 2 and 4 partitions, the front, and the bound that follows.

    Each number of partitions has a log of its own, for the log is written in slices for them; `appending_s` is for four, as `front_cpu_s` is.
    `busiest_speedup_4` says how much less the busiest of four tasks takes than one task does, and `cpu_growth_4` how much more all four take.
    `end_to_end_bound` is by how much four executors can speed up the whole: the front goes beside them, and the slower of the two counts.
    """
    events = drawn(n, k)
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place:
        root = Path(place)
        for number in PARTITIONS:
            _append_bodies(root / f"of {number}" / "warm", workload, drawn(min(_WARM_EVENTS, n), k), number)
        written = {number: _append_bodies(root / f"of {number}", workload, events, number) for number in PARTITIONS}
        found = {number: _shared(root / f"of {number}", number, lambda matches: check(workload, n, k, matches)) for number in PARTITIONS}
    one, four = found[1], found[4]
    front = {number: sum(written[number]) + each.merging for number, each in found.items()}
    yield line(
        "scale",
        workload=workload,
        n=n,
        k=k,
        busiest_s={str(number): round(each.busiest, 3) for number, each in found.items()},
        all_s={str(number): round(each.all, 3) for number, each in found.items()},
        parsing_s=round(written[4][0], 3),
        appending_s=round(written[4][1], 3),
        merging_s={str(number): round(each.merging, 3) for number, each in found.items()},
        busiest_speedup_4=round(one.busiest / four.busiest, 2),
        cpu_growth_4=round(four.all / one.all - 1, 3),
        front_cpu_s=round(front[4], 3),
        end_to_end_bound=round(max(one.busiest, front[1]) / max(four.busiest, front[4]), 2),
    )


# ---------------------------------------------------------------- the front
def _append_bodies(data: Path, workload: str, events: Drawn, partitions: int) -> tuple[float, float]:
    """Parse the events as bodies of ndjson and append them to a log after a query. Return the CPU seconds of both."""
    parsing = appending = 0.0
    with LogWriter(data, lambda: BEGIN, partitions=partitions) as log:
        log.append(lambda offset: Register(offset, "q", PREFIXES + WORKLOADS[workload]))
        for body in _ndjson_bodies(events):
            began = time.process_time()
            rows = parse_body(body, NDJSON, default=None, arrived=BEGIN)
            parsed = time.process_time()
            log.append_events("default", rows)
            parsing, appending = parsing + parsed - began, appending + time.process_time() - parsed
    return parsing, appending


def _ndjson_bodies(events: Drawn) -> Iterator[bytes]:
    for first in range(0, len(events), BATCH):
        after = min(first + BATCH, len(events))
        instants, texts = times_of(first, after).tolist(), texts_of(events.values[first:after])
        ids, types = events.ids[first:after].tolist(), events.types[first:after].tolist()
        yield "".join(
            f'{{"s":"<http://example.org/id/{ids[i]}>","p":"<http://example.org/{"abc"[types[i]]}>",'
            f'"o":{_quoted(texts[i])},"at":"{iso(instants[i])}"}}\n'
            for i in range(after - first)
        ).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _merge_logs(data: Path, logs: PartitionLogs, number: int) -> tuple[float, int]:
    """Merge the partitions' logs into a new solution log. Return CPU seconds and solutions."""
    shutil.rmtree(data / "solutions", ignore_errors=True)
    began = time.process_time()
    work = MergeWork(data, logs, number)
    with closing(work.open_output()) as writer, closing(work.open_host()) as host:
        for piece in host.run(0, work.head()):
            writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
    seconds = time.process_time() - began
    with closing(SolutionReader(data)) as solutions:
        return seconds, solutions.tally(0).count


# ---------------------------------------------------------------- the tasks
def _shared(data: Path, number: int, counted: Callable[[int], None]) -> Shared:
    """Run the tasks of so many partitions over the log, merge what they find, and have the solutions counted."""
    logs = [PartitionLogs(data / "partitions" / str(number), 0) for number in range(_ROUNDS)]
    tasks = []
    for bucket in range(number):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            tasks.append(process.submit(_solved, data, logs, PartitionShare(bucket, number)).result())
    merges = [_merge_logs(data, each, number) for each in logs]
    for _, matches in merges:
        counted(matches)
    return Shared(tuple(tasks), median([seconds for seconds, _ in merges]))


def _solved(data: Path, logs: Sequence[PartitionLogs], share: PartitionShare) -> float:
    """Run a partition's task to the end of the log, once into each of `logs`, after a small log that warms the process. Return the median CPU seconds."""
    _solve_log(data / "warm", PartitionLogs(data / "warm" / "partitions", 0), share)
    return median([_solve_log(data, each, share) for each in logs])


def _solve_log(data: Path, logs: PartitionLogs, share: PartitionShare) -> float:
    """Return the CPU seconds that the events take, once the query is registered: a task does that when it starts."""
    with closing(LogReader(data)) as log, closing(EngineHost(data, share)) as host, closing(PartitionWriter(logs, share.bucket)) as writer:
        _commit_range(host, writer, 0, 1)
        began = time.process_time()
        _commit_range(host, writer, 1, log.head())
        return time.process_time() - began


def _commit_range(host: EngineHost, writer: PartitionWriter, lo: int, hi: int) -> None:
    for piece in host.run(lo, hi):
        writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
