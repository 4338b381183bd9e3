"""This bench measures how the work of a query with a key is shared by partitions, in CPU seconds.

The tasks run on a standalone Spark cluster of this machine, over a real log, each on a worker of one core. CPU
seconds say what machines of their own would take. The front is what one process does whatever the number of
partitions: it parses bodies, appends them to the log, and merges what the partitions found.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from bench.measurement import line, median
from bench.spark.cluster import running_cluster
from bench.workloads import BATCH, BEGIN, PREFIXES, WORKLOADS, Drawn, check, drawn, texts_of, times_of
from engine.messages import Events, Register, SetStream
from engine.partitioning import PartitionShare
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import NDJSON, parse_body
from pipeline.log import LogReader, LogWriter
from pipeline.runners.engine_host import EngineHost, block_rows
from pipeline.runners.merge import MergeWork
from pipeline.solutions.partition_log import PartitionLogs, PartitionWriter
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.long_running_task import count_slots
from pipeline.spark.spark_session import session

PARTITIONS = (1, 2, 4)
_WARM_EVENTS, _WARMING, _ROUNDS, _LOOK_S = 20_000, 1, 9, 0.1
_AT_ONCE = os.cpu_count() or 1
_BY = "http://example.org/by"


@dataclass(frozen=True, slots=True)
class Asked:
    """Says what is measured: `n` events of `k` ids, dealt out by the subject, or each as an observation whose message
    has its id for its key.
    """

    workload: str
    n: int
    k: int
    by: str

    @property
    def text(self) -> str:
        text = PREFIXES + WORKLOADS[self.workload]
        return text if self.by == "subject" else re.sub(r"{\?s (:\w) \?(\w)}", r"{?o_\2 :by ?s ; \1 ?\2}", text)

    @property
    def registered(self) -> int:
        """Return the offset of the query's registration, which the stream's key precedes."""
        return 0 if self.by == "subject" else 1


@dataclass(frozen=True, slots=True)
class Shared:
    """Holds the CPU seconds of each partition's task in one round, and those of the merge."""

    tasks: tuple[float, ...]
    merging: float

    @property
    def all(self) -> float:
        return sum(self.tasks)


Rounds = list[dict[int, Shared]]


def measure(workload: str, n: int, k: int, by: str = "subject") -> Iterator[str]:
    """Yield a line: the busiest task and all tasks with 1, 2 and 4 partitions, the front, and the bound that follows.

    Each number of partitions has a log of its own, which is written in slices for them. Single tasks vary a lot from run to run. So the numbers of
    partitions take turns, body by body when they append and round by round when they evaluate. Ratios are those of one round,
    and their median counts.
    The busiest task is that of the partition whose median ratio is the largest: a task that was disturbed once does not count as a larger partition.

    `busiest_speedup_4` says how much less the busiest of four tasks takes than one task does, and `cpu_growth_4` how much more all four take.
    `end_to_end_bound` is by how much four executors can speed up the whole: the front goes beside them, and the slower of the two counts.
    """
    asked = Asked(workload, n, k, by)
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place:
        root = Path(place)
        _append_bodies({number: root / f"of {number}" / "warm" for number in PARTITIONS}, asked, drawn(min(_WARM_EVENTS, n), k))
        parsing, appending = _append_bodies({number: root / f"of {number}" for number in PARTITIONS}, asked, drawn(n, k))
        rounds = _run_rounds(root, asked.registered, lambda matches: check(workload, n, k, matches))

    def medians(read: Callable[[Shared], float]) -> dict[str, float]:
        return {str(number): round(median([read(each[number]) for each in rounds]), 3) for number in PARTITIONS}

    def front(number: int, found: Shared) -> float:
        return parsing + appending[number] + found.merging

    def tasks_of(number: int) -> list[float]:
        return [median([each[number].tasks[partition] for each in rounds]) for partition in range(number)]

    def share_of_busiest(number: int) -> float:
        return max(median([each[number].tasks[partition] / each[1].all for each in rounds]) for partition in range(number))

    def bound(found: dict[int, Shared]) -> float:
        return max(found[1].all, front(1, found[1])) / max(share_of_busiest(4) * found[1].all, front(4, found[4]))

    yield line(
        "scale",
        workload=workload,
        key=by,
        n=n,
        k=k,
        rounds=len(rounds),
        busiest_s={str(number): round(max(tasks_of(number)), 3) for number in PARTITIONS},
        all_s=medians(lambda found: found.all),
        parsing_s=round(parsing, 3),
        appending_s={str(number): round(seconds, 3) for number, seconds in appending.items()},
        merging_s=medians(lambda found: found.merging),
        busiest_speedup_4=round(1 / share_of_busiest(4), 2),
        cpu_growth_4=round(median([each[4].all / each[1].all for each in rounds]) - 1, 3),
        front_cpu_s=round(median([front(4, each[4]) for each in rounds]), 3),
        end_to_end_bound=round(median([bound(each) for each in rounds]), 2),
    )


# ---------------------------------------------------------------- the front
def _append_bodies(places: Mapping[int, Path], asked: Asked, events: Drawn) -> tuple[float, dict[int, float]]:
    """Parse the events as bodies of ndjson, and append each to the log of each number of partitions, after a query.

    Return the CPU seconds of parsing, and those of appending by number.
    """
    parsing, appending = 0.0, dict.fromkeys(places, 0.0)
    with ExitStack() as stack:
        logs = {number: stack.enter_context(LogWriter(data, lambda: BEGIN, partitions=number)) for number, data in places.items()}
        for log in logs.values():
            if asked.by == "message":
                log.append(lambda offset: SetStream(offset, "default", key=_BY))
            log.append(lambda offset: Register(offset, "q", asked.text))
        for body in _ndjson_bodies(events, asked.by):
            began = time.process_time()
            rows = parse_body(body, NDJSON, default=None, arrived=BEGIN)
            parsing += time.process_time() - began
            for number, log in logs.items():
                began = time.process_time()
                log.append_events("default", rows)
                appending[number] += time.process_time() - began
    return parsing, appending


def _ndjson_bodies(events: Drawn, by: str) -> Iterator[bytes]:
    for first in range(0, len(events), BATCH):
        after = min(first + BATCH, len(events))
        instants, texts = times_of(first, after).tolist(), texts_of(events.values[first:after])
        ids, types = events.ids[first:after].tolist(), events.types[first:after].tolist()
        lines = []
        for i in range(after - first):
            node, at = f"<http://example.org/id/{ids[i]}>", f'"at":"{iso(instants[i])}"}}\n'
            if by == "message":
                observation = f"<http://example.org/observation/{first + i}>"
                lines.append(f'{{"s":"{observation}","p":"<{_BY}>","o":"{node}",{at}')
                node = observation
            lines.append(f'{{"s":"{node}","p":"<http://example.org/{"abc"[types[i]]}>","o":{_quoted(texts[i])},{at}')
        yield "".join(lines).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _merge_logs(data: Path, logs: PartitionLogs, number: int, registered: int) -> tuple[float, int]:
    """Merge the partitions' logs into a new solution log.

    Return CPU seconds, and the solutions of the query that was registered at an offset.
    """
    shutil.rmtree(data / "solutions", ignore_errors=True)
    began = time.process_time()
    work = MergeWork(data, logs, number)
    with closing(work.open_output()) as writer, closing(work.open_host(writer)) as host:
        for piece in host.run(0, work.head()):
            writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
    seconds = time.process_time() - began
    with closing(SolutionReader(data)) as solutions:
        return seconds, solutions.tally(registered).count


# ---------------------------------------------------------------- the tasks
@dataclass(frozen=True, slots=True)
class _Task:
    """Says which partition a task evaluates, over which log, and where that goes."""

    data: Path
    logs: PartitionLogs
    share: PartitionShare


def _run_rounds(root: Path, registered: int, counted: Callable[[int], None]) -> Rounds:
    """Run the tasks of each number of partitions over its log, in turns, on a cluster; merge what they find, and
    count solutions.

    As many tasks of one number run at once as the machine has cores, each on a worker of its own: they are a barrier
    job. More tasks would take turns on a core, and each would find its caches emptied, which tasks on machines of
    their own do not.
    """
    rounds = Rounds()
    with running_cluster(root, max(PARTITIONS)) as (url, _), session(url) as spark:
        while count_slots(spark) < max(PARTITIONS):  # executors take a while to come
            time.sleep(_LOOK_S)
        for turn in range(-_WARMING, _ROUNDS):  # the first ones, over a small log, warm the processes
            found = {}
            for number in PARTITIONS if turn >= 0 else PARTITIONS[-1:] * len(PARTITIONS):
                data = root / f"of {number}" if turn >= 0 else root / f"of {number}" / "warm"
                logs = PartitionLogs(data / "partitions" / uuid4().hex, 0)
                tasks = [_Task(data, logs, PartitionShare(partition, number)) for partition in range(number)]
                waves = [tasks[first : first + _AT_ONCE] for first in range(0, number, _AT_ONCE)]
                seconds = [
                    each for wave in waves for each in spark.sparkContext.parallelize(wave, len(wave)).barrier().mapPartitions(_solve_logs).collect()
                ]
                merging, matches = _merge_logs(data, logs, number, registered)
                found[number] = Shared(tuple(seconds), merging)
                if turn >= 0:
                    counted(matches)
            rounds += [found] if turn >= 0 else []
    return rounds


def _solve_logs(tasks: Iterable[_Task]) -> Iterable[float]:
    return (_solve_log(task.data, task.logs, task.share) for task in tasks)


def _solve_log(data: Path, logs: PartitionLogs, share: PartitionShare) -> float:
    """Return the CPU seconds that the events take, once the query is registered: a task does that when it starts."""
    with closing(LogReader(data)) as log, closing(EngineHost(data, share)) as host, closing(PartitionWriter(logs, share.partition)) as writer:
        begin = next(entry.offset for block in log.blocks(0, 1) for entry in block.entries if isinstance(entry, Events))
        _commit_range(host, writer, (0, begin), share)
        began = time.process_time()
        _commit_range(host, writer, (begin, log.head()), share)
        return time.process_time() - began


def _commit_range(host: EngineHost, writer: PartitionWriter, entries: tuple[int, int], share: PartitionShare) -> None:
    for piece in host.run(*entries, block_rows(share)):
        writer.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
