"""This module writes the changes of a revised query's solutions as JSON text (engine/runtime/standing_set.py has their form as rows)."""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from engine.messages import END_OF_TIME, INSTANT, SOLUTIONS, Micros, int64s
from engine.runtime.standing_set import ADDED
from engine.runtime.watermarks import NO_TIME
from pipeline.formats.batches.timestamps import iso
from pipeline.solutions.solution_ids import solution_id

_ID_LENGTH = len(solution_id(0, 0))


class ChangeHeader(NamedTuple):
    """Holds what the first value of a change says."""

    is_added: bool
    more: bool
    settled: Micros
    end: Micros
    id: str


def read_header(text: str) -> ChangeHeader:
    sign, more, settled, end, identifier = text.split(" ")
    return ChangeHeader(sign == ADDED, more == "1", int(settled), int(end), identifier)


def split_changes(changes: pa.RecordBatch) -> tuple[list[ChangeHeader], pa.RecordBatch]:
    """Return the headers of changes (STORED), and their solutions as rows of STORED. The ids of these rows are of no use."""
    values = changes.column("values").to_pylist()
    headers = [read_header(header) for header, *_ in values]
    ends = pa.array([header.end for header in headers], pa.int64()).cast(INSTANT)
    bound = pa.array([bound for _, *bound in values], pa.list_(pa.utf8()))
    return headers, changes.set_column(4, SOLUTIONS.field("end"), ends).set_column(5, SOLUTIONS.field("values"), bound)


def write_changes(changes: pa.RecordBatch, write_solutions: Callable[[pa.RecordBatch], list[str]]) -> Iterator[tuple[str, str]]:
    """Yield the `seq` and the JSON object of each change. `write_solutions` writes rows of one query as lines of ndjson."""
    headers, solutions = split_changes(changes)
    keys = zip(int64s(changes.column("end")).tolist(), int64s(changes.column("ordinal")).tolist(), strict=True)
    for header, line, key in zip(headers, write_solutions(solutions), keys, strict=True):
        seq = solution_id(*key)
        head, _, rest = line.partition('"id":"')  # a query's name is written before, with its quotation marks escaped
        solution = f'{{"id":"{header.id}{rest[_ID_LENGTH:]}'
        added, withdrawn = (f"[{solution}]", "[]") if header.is_added else ("[]", f"[{solution}]")
        more = ',"more":true' if header.more else ""
        yield seq, f'{head}"seq":"{seq}","added":{added},"withdrawn":{withdrawn},"settled":{_write_settled(header.settled)}{more}}}'


@lru_cache(maxsize=1 << 10)
def _write_settled(settled: Micros) -> str:
    """Write the instant; null before there is one, and "finished" once nothing can change any more."""
    if settled >= END_OF_TIME:
        return '"finished"'
    return "null" if settled == NO_TIME else json.dumps(iso(settled))
