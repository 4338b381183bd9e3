"""A block's occurrences as the kernel's feed: what compiled code reads of Arrow's buffers is what Arrow says they hold."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.messages import OCCURRENCES
from engine.runtime.watermarks import Arrivals, find_latest_ends

TEXTS = st.sampled_from(["<a>", "<b>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"ä"@de', "_:b", '""', '"a text of more than eight bytes"'])
INSTANTS = st.integers(-(2**40), 2**40)
ROWS = st.fixed_dictionaries({"s": TEXTS, "p": TEXTS, "o": TEXTS, "g": st.none() | TEXTS, "start": INSTANTS, "end": INSTANTS, "late": st.booleans()})


def batch_of(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES)


def rows_of(arrived: Arrivals, terms: TermTable) -> list[tuple[object, ...]]:
    cells = arrived.table[[c.IN_S, c.IN_P, c.IN_O, c.IN_G, c.IN_START, c.IN_END, c.IN_ENTRY]].T.tolist()
    return [(*(terms.text(number) or None for number in row[:4]), *row[4:]) for row in cells]


def expected(rows: pa.RecordBatch) -> list[tuple[object, ...]]:
    columns = [rows.column(name).to_pylist() for name in "spog"] + [rows.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    late = rows.column("late").to_pylist()
    return [(*cells, k) for k, cells in enumerate(zip(*columns, strict=True)) if not late[k]]


@given(st.lists(ROWS, max_size=40), st.data())
def test_every_stretch_of_a_batch_is_taken_as_it_is(rows: list[dict[str, object]], data: st.DataObject) -> None:
    whole, terms = batch_of(rows), TermTable()
    first = data.draw(st.integers(0, len(rows)))
    part = whole.slice(first, data.draw(st.integers(0, len(rows) - first)))
    for batch in (whole, part):  # the part has dictionaries with more texts than rows
        arrived = Arrivals(terms.take(batch, 4, 0))
        assert rows_of(arrived, terms) == expected(batch)
        assert arrived.table.flags.c_contiguous, "the kernel takes nothing else"


def test_of_a_long_dictionary_only_what_rows_have_is_numbered() -> None:
    rows = batch_of([{"s": f"<{k}>", "p": "<p>", "o": "<o>", "g": None, "start": 0, "end": 0, "late": False} for k in range(1_000)])
    terms = TermTable()
    Arrivals(terms.take(rows.slice(500, 2), 4, 0))
    assert len(terms) == 4


def test_nothing_is_numbered_that_is_not_wanted() -> None:
    terms = TermTable()
    arrived = Arrivals(terms.take(batch_of([{"s": "<a>", "p": "<p>", "o": "<o>", "g": None, "start": 3, "end": 5, "late": False}]), 0, 0))
    assert len(terms) == 0
    assert arrived.end.tolist() == [5]


def test_a_graph_is_numbered_only_where_it_is_wanted() -> None:
    terms = TermTable()
    rows = batch_of([{"s": "<a>", "p": "<p>", "o": "<o>", "g": "<g>", "start": 3, "end": 5, "late": False}])
    assert rows_of(Arrivals(terms.take(rows, 3, 0)), terms) == [("<a>", "<p>", "<o>", None, 3, 5, 0)]
    assert len(terms) == 3


def test_terms_beyond_all_room_are_taken() -> None:
    """Room grows while a batch is taken, for terms and for their bytes."""
    texts = [f'"{"x" * (k % 700)}{k}"' for k in range(3_000)]
    rows = batch_of([{"s": "<a>", "p": "<p>", "o": text, "g": text, "start": 0, "end": 0, "late": False} for text in texts])
    terms = TermTable()
    assert [row[2] for row in rows_of(Arrivals(terms.take(rows, 4, 0)), terms)] == texts


@pytest.mark.parametrize(
    ("since", "end", "found"),
    [
        pytest.param([], [], {}, id="none"),
        pytest.param([7], [3], {7: 3}, id="one"),
        pytest.param([7, 7, 7], [3, 9, 4], {7: 9}, id="one entry"),
        pytest.param([2, 2, 5, 6, 6], [3, 1, -4, 0, 8], {2: 3, 5: -4, 6: 8}, id="several entries"),
    ],
)
def test_latest_ends(since: list[int], end: list[int], found: dict[int, int]) -> None:
    table = np.zeros((c.FEED_HEIGHT, len(end)), np.int64)
    table[c.IN_SINCE], table[c.IN_END] = since, end
    assert find_latest_ends(Arrivals(table)) == found
