"""This module holds the targets that tests export to, and reads what is there afterwards."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from epsparql.client import Client
from epsparql.terms import XSD
from pipeline.formats.batches.timestamps import iso
from pipeline.object_store.backends import ObjectStore, open_store
from pipeline.parquet_export import Exporter
from pipeline.runners.in_process import InProcessRunner
from tests.support import spark_cases as cases


def run(data: Path) -> None:
    """Bring the solution log to the head."""
    runner = InProcessRunner(data)
    runner.start()
    try:
        cases.reached(data, cases.head_of(data), 120, lambda: runner.state)
    finally:
        runner.stop()


@dataclass(frozen=True, slots=True)
class Target:
    """Represents the place where a test exports to: a directory, or a prefix of an S3 store."""

    kind: str
    given: str

    def place(self) -> ObjectStore:
        return open_store(self.given)

    def rows(self) -> pa.Table:
        files, path = fs.FileSystem.from_uri(self.given) if self.kind == "s3" else (fs.LocalFileSystem(), self.given)
        partitions = ds.HivePartitioning(pa.schema([("query", pa.utf8()), ("date", pa.utf8())]), segment_encoding="uri")
        return ds.dataset(path, filesystem=files, partitioning=partitions).to_table()


def exporter(data: Path, out: Target) -> Exporter:
    """Return the exporter of a server whose queries are all gone: the log knows them."""
    return Exporter(data, out.place(), dict)


def exported(data: Path, out: Target) -> None:
    with closing_export(exporter(data, out)) as export:
        export.round()


@contextmanager
def closing_export(export: Exporter) -> Iterator[Exporter]:
    try:
        yield export
    finally:
        export.stop()


def values(table: pa.Table) -> "Counter[tuple[object, ...]]":
    times = [table.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    columns = [table.column(name).to_pylist() for name in ("query", "registered", "entry", "id", "binding", "triples", "boolean")]
    found: Counter[tuple[object, ...]] = Counter()
    for start, end, query, registered, entry, identifier, binding, triples, boolean in zip(*times, *columns, strict=True):
        verdict = [] if boolean is None else [f'"{str(boolean).lower()}"^^<http://www.w3.org/2001/XMLSchema#boolean>']
        found[query, registered, entry, identifier, start, end, (*(value for _, value in binding or ()), *(triples or ()), *verdict)] += 1
    return found


def logged(data: Path) -> "Counter[tuple[object, ...]]":
    return Counter(
        (s.query, s.registered, s.entry, s.id, s.start, s.end, tuple(v for v in s.values if v is not None)) for s in cases.found_in(data)[0]
    )


def feed(client: Client, numbers: range) -> None:
    with client.feed("default") as feed:
        for number in numbers:
            at = iso(cases.START + number * cases.SECOND)
            feed.send(json.dumps({"s": "<http://e/s>", "p": "<http://e/a>", "o": f'"{number + 30}"^^<{XSD}integer>', "at": at}))
        feed.flush()
