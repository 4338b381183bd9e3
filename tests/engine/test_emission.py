"""Found rows in order of emission, with what they show, against Python's own sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.assemble import HEADER
from engine.kernel import columns as c
from engine.terms import TermTable
from engine.text.emission import BEGIN, END, ENTRY, WHICH
from tests.feeds import parse_feed, select
from tests.running import block, entries, in_order, run

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


def test_one_query_keeps_its_order_beside_another() -> None:
    """ORDER BY puts a solution that starts later first; what the other query finds at the instant stands among them by its start."""
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
