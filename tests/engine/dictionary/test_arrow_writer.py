"""Found rows in order of emission, with what they show, against Python's own sorting."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dictionary.arrow_encoding import is_packed
from engine.dictionary.batch_layout import FIRST_CONSTANT, MANY, MARKS, QUERY_WIDTH
from engine.dictionary.term_dictionary import FormTables, TermTable
from engine.kernel.state import layout as c
from engine.messages import SOLUTIONS, TIED
from engine.runtime.result_assembly import rank_starts
from tests.support.feeds import parse_feed, select
from tests.support.run_both import block, entries, in_order, run

TERMS = ["", "<a>", "<a>b", '"1"', '"a longer text"', '"a longer text, longer"', "_:ä"]
CELLS = 3
NAMES = ["a", "ab", "ä"]
FEW = st.integers(0, 2)


@dataclass(frozen=True)
class Row:
    entry: int
    end: int
    query: int
    start: int
    rank: int
    texts: tuple[str, ...]


ROWS = st.lists(st.builds(Row, FEW, FEW, FEW, FEW, st.integers(0, 2), st.tuples(*[st.sampled_from(TERMS)] * CELLS)), max_size=30)
CELL = st.integers(-1, CELLS - 1)
"""-1 for what is never bound."""
QUERIES = st.tuples(*[st.lists(CELL, max_size=CELLS, unique=True).flatmap(lambda cells: st.tuples(st.just(cells), st.permutations(cells)))] * 3)
"""Of three queries the cells that each shows, by name and as it shows them."""
Shown = Sequence[tuple[list[int], list[int]]]


Part = int | str
"""A part of a template's triple is a cell or a constant."""
Template = Sequence[tuple[Part, Part, Part]]
MAKING = 1
"""The query that makes triples, where there is a template."""


def forms_of(queries: Shown, ranked: bool, template: Template = ()) -> FormTables:
    """Query k comes out at node 2 k."""

    def column(cell: int) -> int:
        return c.NONE if cell < 0 else c.OUT_VAR + 1 + cell

    wanted, table = list[int](), np.zeros((len(queries), QUERY_WIDTH), np.int64)
    constants = [part for triple in template for part in triple if isinstance(part, str)]
    numbers = iter(range(FIRST_CONSTANT, FIRST_CONSTANT - len(constants), -1))
    parts = [next(numbers) if isinstance(part, str) else column(part) for triple in template for part in triple]
    for k, (by_name, shown) in enumerate(queries):
        name, makes = len("".join(NAMES[:k]).encode()), k == MAKING and bool(template)
        table[k] = name, len(NAMES[k].encode()), 10 + k, len(shown), len(wanted), by_name == shown and not makes, len(template) * makes
        wanted += [c.OUT_VAR if ranked else c.NONE, *map(column, by_name), *(parts if makes else map(column, shown))]
    names = np.frombuffer("".join(NAMES).encode(), np.uint8)
    return FormTables.from_queries(np.array([0, -1, 1, -1, 2]), table, np.array(wanted, np.int64), names, constants)


def found_by(rows: Sequence[Row], terms: TermTable) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    found = np.zeros((len(rows), c.OUT_VAR + 1 + CELLS), np.int64)
    for k, row in enumerate(rows):
        found[k, [c.OUT_ENTRY, c.OUT_END, c.OUT_NODE, c.OUT_START, c.OUT_VAR]] = row.entry, row.end, 2 * row.query, row.start, row.rank
        found[k, c.OUT_VAR + 1 :] = [terms.intern(text) if text else 0 for text in row.texts]
    return found


def in_order_of_emission(rows: Sequence[Row], queries: Shown, ranked: bool) -> list[Row]:
    """Order rows by the definition: each query's own order, in which starts are raised to those before, and then all
    by start and name.
    """

    def own(row: Row) -> tuple[object, ...]:
        texts = [row.texts[cell].encode() if cell >= 0 else b"" for cell in queries[row.query][0]]
        return row.entry, row.end, row.query, (ranked and row.rank) or row.start, texts

    placed, ordered = list[tuple[int, int, int, int, int, Row]](), sorted(rows, key=own)
    for k, row in enumerate(ordered):
        before = placed[-1] if placed else None
        same = before is not None and (before[0], before[1], before[3]) == (row.entry, row.end, row.query)
        placed.append((row.entry, row.end, max(row.start, before[2]) if before is not None and same else row.start, row.query, k, row))
    return [row for *_, row in sorted(placed, key=lambda each: each[:5])]


@given(ROWS, QUERIES, st.booleans(), st.booleans(), st.data())
def test_rows_are_emitted_in_order(rows: list[Row], queries: Shown, ranked: bool, tied: bool, data: st.DataObject) -> None:
    """The kernel gives rows by entry and end, or those of a query that decides late after the others.

    An instant may have few rows or many.
    """
    if data.draw(st.booleans()):
        rows = [replace(row, entry=0, end=0, start=row.start + k) for k in range(3) for row in rows]
    rows.sort(key=lambda row: (row.entry, row.end))
    if data.draw(st.booleans()):
        late = data.draw(FEW)
        rows.sort(key=lambda row: row.query == late)
    rows = [replace(row, entry=row.entry + 3 * k) for k in range(data.draw(st.sampled_from([1, 100]))) for row in rows]  # so many are packed
    terms, forms = TermTable(), forms_of(queries, ranked)
    found = terms.emitted(found_by(rows, terms), forms, TIED if tied else SOLUTIONS, tied=tied)
    found.validate(full=True)
    expected = in_order_of_emission(rows, queries, ranked)
    assert is_packed(found.column("values")) == (sum(len(queries[row.query][1]) for row in rows) >= MANY)
    texts = [[[row.texts[cell] or None if cell >= 0 else None for cell in cells] for cells in queries[row.query]] for row in expected]
    assert found.column("query").to_pylist() == [NAMES[row.query] for row in expected]
    assert found.column("registered").to_pylist() == [10 + row.query for row in expected]
    for name in ("entry", "start", "end"):
        assert found.column(name).cast(pa.int64()).to_pylist() == [getattr(row, name) for row in expected]
    assert found.column("values").to_pylist() == [shown for _, shown in texts]
    if tied:
        alike = [by_name == shown for by_name, shown in (queries[row.query] for row in expected)]
        assert found.column("by").to_pylist() == [None if same else by_name for same, (by_name, _) in zip(alike, texts, strict=True)]
    assert not forms.arrays[MARKS].any(), "as the next call needs them"


PART: st.SearchStrategy[Part] = st.one_of(CELL, st.sampled_from(TERMS[1:]))


@given(ROWS, QUERIES, st.lists(st.tuples(PART, PART, PART), min_size=1, max_size=3), st.booleans(), st.sampled_from([1, 100]))
def test_rows_are_stated_as_triples_in_order(rows: list[Row], queries: Shown, template: Template, tied: bool, times: int) -> None:
    """The statements are the triples with all their terms and none ill-placed, each once and sorted as lines; a row
    without any is left out.
    """

    def state(row: Row) -> list[str]:
        triples = [
            [row.texts[part] if isinstance(part, int) and part >= 0 else "" if isinstance(part, int) else part for part in t] for t in template
        ]
        return sorted({" ".join([*t, "."]) for t in triples if all(t) and not t[0].startswith('"') and t[1].startswith("<")})

    rows = [replace(row, entry=row.entry + 3 * k) for k in range(times) for row in sorted(rows, key=lambda row: (row.entry, row.end))]
    terms, forms = TermTable(), forms_of(queries, False, template)
    found = terms.emitted(found_by(rows, terms), forms, TIED if tied else SOLUTIONS, tied=tied)
    found.validate(full=True)
    expected = in_order_of_emission([row for row in rows if row.query != MAKING or state(row)], queries, False)
    assert is_packed(found.column("values")) == (sum(len(queries[row.query][1]) for row in rows if row.query != MAKING) >= MANY)
    assert found.column("query").to_pylist() == [NAMES[row.query] for row in expected]
    for name in ("entry", "start", "end"):
        assert found.column(name).cast(pa.int64()).to_pylist() == [getattr(row, name) for row in expected]
    shown = [[row.texts[cell] or None if cell >= 0 else None for cell in queries[row.query][1]] for row in expected]
    values = [state(row) if row.query == MAKING else texts for row, texts in zip(expected, shown, strict=True)]
    assert found.column("values").to_pylist() == values
    if tied:
        by = [[row.texts[cell] or None if cell >= 0 else None for cell in queries[row.query][0]] for row in expected]
        alike = [row.query != MAKING and queries[row.query][0] == queries[row.query][1] for row in expected]
        assert found.column("by").to_pylist() == [None if same else texts for same, texts in zip(alike, by, strict=True)]


def test_what_was_emitted_outlives_all_that_it_was_made_from() -> None:
    """Slices and columns keep the one allocation; Arrow gives it back with the last of them."""
    terms = TermTable()
    rows = [Row(k, k, 0, k, 0, (f'"{k}"', "<a>", "")) for k in range(1_000)]
    parts = [terms.emitted(found_by(rows, terms), forms_of([([0, 1], [0, 1])], False), SOLUTIONS, tied=False) for _ in range(50)]
    kept = [part.column("values").slice(500, 2) for part in parts]
    del parts, terms
    gc.collect()
    assert all(values.to_pylist() == [['"500"', "<a>"], ['"501"', "<a>"]] for values in kept)


def test_more_bytes_than_arrow_can_say_are_refused() -> None:
    terms = TermTable()
    row = Row(0, 0, 0, 0, 0, ('"' + "x" * (1 << 22) + '"', "", ""))
    many = np.repeat(found_by([row], terms), MANY - 1, axis=0)
    many[:, c.OUT_ENTRY] = np.arange(len(many))
    with pytest.raises(OverflowError, match="feed smaller blocks"):
        terms.emitted(many, forms_of([([0], [0])], False), SOLUTIONS, tied=False)


@given(ROWS, ROWS, QUERIES, st.booleans())
def test_starts_are_raised_as_one_part_has_them(first: list[Row], then: list[Row], queries: Shown, ranked: bool) -> None:
    """Parts tell by their order how starts were raised where they were sorted."""
    parts, expected = list[pa.RecordBatch](), list[int]()
    for rows in (first, then):
        terms, ordered = TermTable(), in_order_of_emission(rows, queries, ranked)
        parts.append(
            terms.emitted(found_by(sorted(rows, key=lambda row: (row.entry, row.end)), terms), forms_of(queries, ranked), SOLUTIONS, tied=False)
        )
        highest: dict[tuple[int, int, int], int] = {}
        for row in ordered:
            place = row.entry, row.end, row.query
            highest[place] = max(highest.get(place, row.start), row.start)
            expected.append(highest[place])
    if first and then:
        assert rank_starts(pa.concat_batches(parts), np.repeat([0, 1], [len(first), len(then)])).tolist() == expected


def test_one_query_keeps_its_order_beside_another() -> None:
    """ORDER BY puts a solution that starts later first; what the other query finds at the instant stands among them
    by its start.
    """
    queries = {
        "falling": select("{ ?s :a ?x } AND { ?t :b ?y } ", "SELECT ?x") + " ORDER BY DESC(?x)",
        "plain": select("{ ?s :a ?x } AND { ?t :b ?y }", "SELECT ?x"),
    }
    log = entries(queries, ["default"], in_order({"default": parse_feed("a(1)@1 a(2)@2 b(0)@3")}), ())
    found = run([block(log)]).emitted
    assert [(name, start, values[0]) for name, _, start, _, values in found if name == "falling"] == [
        ("falling", 2_000_000, integer(2)),
        ("falling", 1_000_000, integer(1)),
    ]
    assert [(start, values[0]) for name, _, start, _, values in found if name == "plain"] == [(1_000_000, integer(1)), (2_000_000, integer(2))]


def integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
