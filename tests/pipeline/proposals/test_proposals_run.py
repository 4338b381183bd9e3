"""A proposed mapping runs on each row of the file from which it was proposed: generated files, and the samples of the
repository.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsparql.events.media_types import CSV, JSON, LINES, MAPPED_SUFFIXES
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.body_parser import Interval
from pipeline.mapping.mapper import map_body
from pipeline.mapping.mapping import compile_mapping
from pipeline.proposals.proposal import AmbiguousDates, Choices, propose_mapping
from tests.soak import examples

EX = "http://example.org/"
CHOICES = Choices(instant("2026-11-29T12:00:00Z"))
WORDS = st.sampled_from(["", "-", "M", "unavailable", "unknown", "NaN", "null", "T", "on", "true", "°C", "a b", "{x}", "007", "10+", "é/%", "'", "#"])
NUMBERS = st.sampled_from(
    ["1", "-2", "1.5", "21,5", "1.234", "1,234.5", "1.234,5", "1e3", "5.", ".5", "+3", "9" * 30, "1772352000", "1772352000.1234567"]
)
TIMES = st.sampled_from(
    ["2026-03-01T08:00:00Z", "2026-03-01 08:00", "2026-03-01", "01.03.2026 08:00", "03/01/2026", "8:00 AM", "08:00:00", "20260301", "1/Mar/2026:08:00:00 +0100",
     "2026-03-01T08:00:00.123456789Z", "2026-02-30T00:00:00Z", "31.12.1989"]
)  # fmt: skip
CELLS = [WORDS, NUMBERS, TIMES, WORDS | NUMBERS, NUMBERS | TIMES]
NAMES = st.sampled_from(
    ["time", "Date", "ts", "sensor", "id", "temp", "temp C", "temp_C", "state", "a.b", "x[0]", "$.y", "{z}", "# t", "+n", "Zeit (UTC+1)", "tz", "year"]
)  # fmt: skip


def check_runs(body: bytes, media_type: str, rows: int | None = None) -> None:
    """Propose a mapping for a body, deciding day and month if asked, and map the body by it."""
    try:
        found = propose_mapping(body, media_type, EX, CHOICES)
    except AmbiguousDates:
        found = propose_mapping(body, media_type, EX, Choices(CHOICES.now, "day-first"))
    mapped = map_body(body, media_type, compile_mapping(json.dumps(found.document)), Interval(7, 7))
    assert mapped.rejected == ()
    passed_over = 0 if media_type == LINES else found.document.get("header_rows", 1) - 1 + found.document.get("skip", 0)
    assert rows is None or mapped.rows == rows - passed_over


@st.composite
def tables(draw: st.DrawFn) -> tuple[bytes, int]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5))
    columns = [draw(st.sampled_from(CELLS)) for _ in names]
    rows = draw(st.lists(st.tuples(*columns), min_size=1, max_size=5))
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=draw(st.sampled_from(",;\t")), lineterminator=draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerow([name if names.index(name) == k else f"{name} {k}" for k, name in enumerate(names)])
    writer.writerows([row if any(row) else ("x", *row[1:]) for row in rows])
    return out.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))), len(rows)


@settings(max_examples=examples(1000, 20), deadline=None)
@given(tables())
def test_generated_tables(table: tuple[bytes, int]) -> None:
    check_runs(table[0], CSV, table[1])


SCALARS = WORDS | NUMBERS | TIMES | st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats(allow_nan=False, allow_infinity=False)
MEMBERS = st.sampled_from(["a", "b", "id", "time", "a.b", "c[0]", "\\"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=3), max_leaves=6)
DOCUMENTS = st.dictionaries(st.sampled_from(["ts", "id", "v", "data", "rows", "payload", "schema"]), VALUES, max_size=5)


@settings(max_examples=examples(1000, 20), deadline=None)
@given(SCALARS, st.lists(DOCUMENTS, min_size=1, max_size=4))
def test_generated_documents(value: Any, documents: list[dict[str, Any]]) -> None:
    check_runs("\n".join(json.dumps(each) for each in [{"own": value}, *documents]).encode(), JSON)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(DOCUMENTS | st.lists(SCALARS | TIMES, max_size=6), min_size=1, max_size=4), st.sampled_from(["", "data"]))
def test_generated_arrays(rows: list[Any], name: str) -> None:
    rows = [{"own": 1} if isinstance(rows[0], dict) else [1772352000, 1.5], *(each for each in rows if type(each) is type(rows[0]))]
    check_runs(json.dumps({"own": 1, name: rows} if name else rows).encode(), JSON)


PARTS = st.sampled_from(["-", "frank", "10.0.0.1", "::1", "a b", "x[1]", "é", "{z}", "#", "200"])
LOG_LINES = [
    '{0} - {1} [13/Mar/2026:08:00:00 +0100] "GET /{2} HTTP/1.1" 200 - "{2}" "{1}"',
    '{0} - - [01/Mar/2026:08:00:00 +0000] "{1}" 408 0',
    "<34>1 2026-03-01T08:00:00.{3}Z {0} {0} - {0} - {1}",
    "2026-03-01T08:00:00.{3}+01:00 {0} sshd[{0}]: {1}",
    "<34>Mar  1 08:00:00 {0} su[{3}]: {2}",
    "2026-03-01 08:00:00,123 INFO {1}",
    "2026 03 01 08 {0} MM {3}",
]


@settings(max_examples=examples(500), deadline=None)
@given(st.integers(0, 6), st.lists(st.tuples(PARTS, PARTS, PARTS), min_size=1, max_size=4), st.sampled_from(["1", "123456", "123456789"]))
def test_generated_lines(kind: int, rows: list[tuple[str, ...]], fraction: str) -> None:
    rows = [(row[0].replace(" ", ""), *row[1:]) for row in rows]
    header = ["#YY MM DD hh wind gust x"] if kind == 6 else []
    body = "\n".join([*header, *(LOG_LINES[kind].format(*row, fraction) for row in rows), ""])
    check_runs(body.encode(), LINES, len(rows))


ROOT = Path(__file__).parents[3]
FOLDERS = [ROOT / "console" / "data", ROOT.parent / "shared" / "conformance" / "outside", ROOT.parent / "shared" / "data"]
SAMPLES = sorted(path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in MAPPED_SUFFIXES and path.suffix != ".ndjson")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_samples(path: Path) -> None:
    check_runs(path.read_bytes(), MAPPED_SUFFIXES[path.suffix])
