"""Values over a dictionary are the same values, whole or in part, alone or joined with others that are not packed."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.workloads import blocks, drawn, engine_with
from engine.dictionary.arrow_encoding import concat_lists, is_packed, packed, plain, unpacked

LISTS = st.lists(st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "<x:é>", '"b"'])), max_size=3), max_size=6)
PART = st.tuples(LISTS, st.booleans(), st.integers(0, 3), st.integers(0, 3))


def made(lists: list[list[str | None]], small: bool, front: int, back: int) -> pa.ListArray:
    """The lists, packed if `small`, as a part of an array with others before and after them."""
    more = [["z"]] * front + lists + [[None, "z"]] * back
    whole = pa.array(more, pa.list_(pa.utf8()))
    return (packed(whole) if small else whole).slice(front, len(lists))


@given(PART)
def test_packed_and_unpacked(part: tuple[list[list[str | None]], bool, int, int]) -> None:
    values = made(*part)
    for found in (packed(values), unpacked(values)):
        found.validate(full=True)
        assert found.to_pylist() == part[0]
    assert is_packed(packed(values))
    assert not is_packed(unpacked(values))


@given(st.lists(PART, min_size=1, max_size=4))
def test_joined(parts: list[tuple[list[list[str | None]], bool, int, int]]) -> None:
    found = concat_lists([made(*part) for part in parts])
    found.validate(full=True)
    assert found.to_pylist() == [values for lists, *_ in parts for values in lists]


QUERIES = {
    "all bound": "SELECT ?s ?x WHERE { ?s :a ?x }",
    "some unbound": "SELECT * WHERE { { ?s :a ?x } UNION { ?t :b ?x } }",
}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_many_solutions_come_packed(text: str) -> None:
    """The same events one by one bring the same values, never packed."""
    events = drawn(2_000, 10)
    engine = engine_with(text)
    together = [engine.feed(block).solutions for block in blocks(events, len(events))]
    engine = engine_with(text)
    apart = [engine.feed(block).solutions for block in blocks(events, 1)]
    assert all(is_packed(batch.column("values")) for batch in together)
    assert not any(is_packed(batch.column("values")) for batch in apart)
    found = [plain(batch).drop_columns(["entry"]).to_pylist() for batch in together]
    assert [row for rows in found for row in rows] == [row for batch in apart for row in batch.drop_columns(["entry"]).to_pylist()]
