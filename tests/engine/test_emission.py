"""Found rows in order of emission, with what they show, against Python's own sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.assemble import HEADER
from engine.kernel import columns as c
from engine.terms import TermTable
from engine.text.emission import BEGIN, END, ENTRY, WHICH

TERMS = ["", "<a>", "<a>b", '"1"', '"a longer text"', '"a longer text, longer"', "_:ä"]
CELLS = 3
FEW = st.integers(0, 2)
ROWS = st.lists(st.tuples(FEW, FEW, FEW, FEW, st.integers(0, 1), st.tuples(*[st.sampled_from(TERMS)] * CELLS)), min_size=1, max_size=30)
QUERIES = st.integers(0, CELLS).flatmap(lambda n: st.tuples(*[st.permutations(range(-1, CELLS - 1)).map(lambda order: order[:n])] * 3))
"""Of three queries the cells that each shows, by name; -1 for what is never bound."""


@given(ROWS, QUERIES, st.booleans())
def test_rows_are_arranged(drawn: list[tuple[int, int, int, int, int, tuple[str, ...]]], queries: tuple[list[int], ...], ranked: bool) -> None:
    """A row is (query, entry, end, start, rank, texts); the kernel gives each query's by entry and end."""
    drawn.sort(key=lambda row: row[:3])
    terms, shown = TermTable(), len(queries[0])
    rows = np.zeros((len(drawn), c.OUT_VAR + 1 + CELLS), np.int64)
    rows[:, [c.OUT_ENTRY, c.OUT_END, c.OUT_START, c.OUT_VAR]] = [row[1:5] for row in drawn]
    rows[:, c.OUT_VAR + 1 :] = [[terms.intern(text) if text else 0 for text in row[5]] for row in drawn]
    columns = [[c.NONE if cell < 0 else c.OUT_VAR + 1 + cell for cell in query] for query in queries]
    wanted = np.array([[c.OUT_VAR if ranked else c.NONE, *by_name, *reversed(by_name)] for by_name in columns], np.int64)

    def texts(row: tuple[int, int, int, int, int, tuple[str, ...]]) -> list[str]:
        return ["" if cell < 0 else row[5][cell] for cell in queries[row[0]]]

    placed, found = terms.arranged(np.array([row[0] for row in drawn]), rows, HEADER, wanted, shown)
    expected = sorted(drawn, key=lambda row: (*row[:3], (ranked and row[4]) or row[3], [text.encode() for text in texts(row)]))
    assert placed[[WHICH, ENTRY, END, BEGIN]].T.tolist() == [list(row[:4]) for row in expected]
    assert found.to_pylist() == [text or None for row in expected for text in reversed(texts(row))]
