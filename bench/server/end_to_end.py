"""This bench goes from the bytes of request bodies to the bytes of solutions: N-Quads in, ndjson out, through what
the server calls for each.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pyarrow as pa

from bench.measurement import line, median, one_core, peak_rss_mb
from bench.workloads import BATCH, PREFIXES, WORKLOADS, Drawn, check, drawn, engine_with, texts_of, times_of
from engine.dictionary.arrow_encoding import plain
from engine.messages import Block, Events, int64s
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import N_QUADS, parse_body
from pipeline.formats.rdf.rdf import GENERATED_AT
from pipeline.solutions.json_encoder import ndjson
from pipeline.solutions.result_kinds import Bindings
from pipeline.solutions.solution_ids import STORED, Key, assign, last_keys

_ROUNDS = 3
_SHOWN = {"W1": "sxyz", "W2": "sxy", "W3": "sxyz", "W4": "sxy"}


@dataclass(slots=True)
class Run:
    """Holds the seconds of each step, and what came out."""

    parsing: float = 0.0
    engine: float = 0.0
    writing: float = 0.0
    matches: int = 0
    written: int = 0  # bytes

    @property
    def seconds(self) -> float:
        return self.parsing + self.engine + self.writing


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line with events a second over all, and where the time goes.

    Then yield one of `epsparql replay`. Raises: WrongCount.
    """
    one_core()
    log = bodies(drawn(n, k))
    _run(workload, log[:2])
    runs = [_run(workload, log) for _ in range(_ROUNDS)]
    for run in runs:
        check(workload, n, k, run.matches)
    middle = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    yield line(
        "end-to-end",
        workload=workload,
        n=n,
        k=k,
        matches=middle.matches,
        events_per_s=round(n / median([run.seconds for run in runs])),
        bytes_in=sum(map(len, log)),
        bytes_out=middle.written,
        parsing_s=round(middle.parsing, 3),
        engine_s=round(middle.engine, 3),
        writing_s=round(middle.writing, 3),
        peak_rss_mb=peak_rss_mb(),
    )

    yield _measure_replay(workload, n, k)


def _measure_replay(workload: str, n: int, k: int) -> str:
    """Replay a tenth of the events, and all of them.

    A file of twice the size should take twice as long, after the start. Raises: WrongCount.
    """
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
        query = Path(directory) / "q.rq"
        query.write_text(PREFIXES + WORKLOADS[workload])
        took_s, sizes = [], (n // 10, n)
        for size in sizes:
            file = Path(directory) / f"{size}.nq"
            file.write_bytes(b"".join(bodies(drawn(size, k))))
            command = [sys.executable, "-m", "server.cli", "replay", "--query", str(query), "--stream", str(file)]
            before = getrusage(RUSAGE_CHILDREN)
            found = subprocess.run(command, check=True, capture_output=True).stdout.count(b"\n")
            after = getrusage(RUSAGE_CHILDREN)
            check(workload, size, k, found)
            took_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    us = (took_s[1] - took_s[0]) / (sizes[1] - sizes[0]) * 1e6
    start_s = took_s[0] - us * sizes[0] / 1e6
    return line(
        "end-to-end",
        workload=f"{workload} by replay",
        n=n,
        k=k,
        matches=found,
        cpu_s=round(took_s[1], 2),
        start_cpu_s=round(start_s, 2),
        cpu_us_per_event=round(us, 2),
    )


def bodies(events: Drawn) -> list[bytes]:
    """Return bodies with each event in a graph of its own, which a second quad times."""
    subjects, predicates, objects = events.ids.tolist(), ["abc"[k] for k in events.types.tolist()], texts_of(events.values)
    instants = times_of(0, len(events)).tolist()
    return [_body(range(first, min(first + BATCH, len(events))), subjects, predicates, objects, instants) for first in range(0, len(events), BATCH)]


def _body(which: range, subjects: Sequence[int], predicates: Sequence[str], objects: Sequence[str], instants: Sequence[int]) -> bytes:
    lines = []
    for k in which:
        graph = f"<http://example.org/g/{k}>"
        lines.append(f"<http://example.org/id/{subjects[k]}> <http://example.org/{predicates[k]}> {objects[k]} {graph} .\n")
        lines.append(f'{graph} <{GENERATED_AT}> "{iso(instants[k])}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n')
    return "".join(lines).encode()


def _run(workload: str, log: Sequence[bytes]) -> Run:
    engine, run, last = engine_with(WORKLOADS[workload]), Run(), dict[int, Key]()
    form = Bindings(tuple(_SHOWN[workload]))
    for body in log:
        began = time.perf_counter()
        rows = parse_body(body, N_QUADS, default=None, arrived=0)
        parsed = time.perf_counter()
        watermark = int(int64s(rows.column("end")).max())
        solutions = plain(engine.feed(Block((Events(engine.position, "default", rows.num_rows, watermark),), rows)).solutions)
        solved = time.perf_counter()
        text = _write_lines(solutions, form, last)
        run.writing += time.perf_counter() - solved
        run.parsing, run.engine = run.parsing + parsed - began, run.engine + solved - parsed
        run.matches, run.written = run.matches + solutions.num_rows, run.written + len(text)
    return run


def _write_lines(solutions: pa.RecordBatch, form: Bindings, last: dict[int, Key]) -> bytes:
    """Return the lines of ndjson, with their ids."""
    ordinals, runs = assign(solutions.column("registered").to_numpy(), int64s(solutions.column("end")), last)
    last |= last_keys(runs)
    stored = pa.RecordBatch.from_arrays([*solutions.columns, pa.array(ordinals)], schema=STORED)
    return ndjson(stored, dict.fromkeys(stored.column("query").dictionary.to_pylist(), form)).text
