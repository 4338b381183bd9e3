"""This bench measures mappings: rows of CSV and JSON from the bytes of a body to the log, and the server's rate for
ndjson events beside them.
"""

import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence

from bench.measurement import WrongCount, line, median, one_core, peak_rss_mb
from bench.server.load import ingest, started
from epsparql.events.media_types import CSV, JSON
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import NDJSON, Interval
from pipeline.log import LogWriter, Queueing
from pipeline.mapping.mapper import map_body
from pipeline.mapping.mapping import compile_mapping

_ROUNDS = 3
_ROWS = 10_000  # in a body
_SENSORS = 1_000
_BASE_US = 1_767_225_600_000_000
_FIELDS = ("ts", "sensor", "temp", "humidity", "status", "volt")
MAPPING = {
    "time": "ts",
    "base": "http://example.org/",
    "subject": "sensor/{sensor}",
    "properties": {
        "temp": {"iri": ":temperature", "datatype": "xsd:decimal"},
        "humidity": ":humidity",
        "status": {"iri": ":status", "value": "status/{status}"},
        "volt": ":voltage",
    },
}
_LINE = '{{"ts":"{}","sensor":"{}","temp":{},"humidity":{},"status":"{}","volt":{}}}'
_OCCURRENCES = 4  # of a row


def measure(n: int) -> Iterator[str]:
    """Yield a line: `n` rows of four mapped fields each in CSV and in JSON, and as many ndjson events through a server."""
    with started() as child:
        served = json.loads(ingest(child, NDJSON, 1_000, n))
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    one_core()
    csv, lines = _bodies(n)
    figures = _rates("csv", CSV, csv, n) | _rates("json", JSON, lines, n)
    if cores is not None:
        os.sched_setaffinity(0, cores)
    yield line("mapping", n=n, body=_ROWS, **figures, ndjson_events_per_s=served["events_per_s"], peak_rss_mb=peak_rss_mb())


def _bodies(n: int) -> tuple[list[bytes], list[bytes]]:
    """Return the same rows as bodies of CSV and of one JSON object per line."""
    chance = random.Random(2011)
    rows = [
        (iso(_BASE_US + k * 100_000), f"s{k % _SENSORS}", f"{chance.gauss(20, 5):.2f}", str(chance.randrange(100)), chance.choice(("ok",
        "low")), f"{chance.random() * 5:.3f}")
        for k in range(n)
    ]  # fmt: skip
    parts = [rows[first : first + _ROWS] for first in range(0, n, _ROWS)]
    csv = ["\n".join([",".join(_FIELDS), *(",".join(row) for row in part)]) for part in parts]
    lines = ["\n".join(_LINE.format(*row) for row in part) for part in parts]
    return [body.encode() for body in csv], [body.encode() for body in lines]


def _rates(name: str, media_type: str, bodies: Sequence[bytes], n: int) -> dict[str, object]:
    """Return rows and occurrences a second of one core, by processor time, with the log's writer."""
    _map(media_type, bodies[:2], min(n, 2 * _ROWS))
    seconds = [_map(media_type, bodies, n) for _ in range(_ROUNDS)]
    rate = n / median(seconds)
    return {f"{name}_rows_per_s": round(rate), f"{name}_occurrences_per_s": round(_OCCURRENCES * rate), f"{name}_bytes": sum(map(len, bodies))}


def _map(media_type: str, bodies: Sequence[bytes], n: int) -> float:
    mapping = compile_mapping(json.dumps(MAPPING))
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory, LogWriter(directory, lambda: time.time_ns() // 1_000) as log:
        began = time.process_time()
        pending = []
        for body in bodies:
            mapped = map_body(body, media_type, mapping, Interval(0, 0))
            pending.append(log.submit("s", mapped.batch, unmapped=mapped.unmapped, queueing=Queueing.WAIT))
        accepted = sum(each.result().accepted for each in pending)
        took = time.process_time() - began
    if accepted != _OCCURRENCES * n:
        raise WrongCount(f"mapping {media_type}", accepted, _OCCURRENCES * n)
    return took
