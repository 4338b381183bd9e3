"""The term table: numbers, texts, what literals are worth, and what is freed."""

import struct
from collections.abc import Iterator, Sequence
from copy import deepcopy

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.dictionary.float_bounds import approximation
from engine.dictionary.layout import LONGEST_NUMERAL
from engine.dictionary.term_dictionary import BLANK, IRI, LITERAL, SPARE, STRING, Held, TermTable, numbers_in
from engine.engine import Engine
from engine.expressions.numeric import DIGITS, INTEGERS
from engine.messages import OCCURRENCES, Block, Events, Register
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import XSD
from tests.reference.evaluator import Fact, Occurrence
from tests.soak import examples, is_full
from tests.support import query_strategies
from tests.support.run_both import block, blocks, entries, run

DOUBLE, DECIMAL, INTEGER = XSD + "double", XSD + "decimal", XSD + "integer"


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{datatype}>'


# ---------------------------------------------------------------- numbers and texts
def test_a_term_has_one_number_however_it_comes_in() -> None:
    table = TermTable()
    texts = ["<a>", "_:b", '"c"', '"ü\U0001f600"@de', "<" + "long" * 100 + ">", '"1234567"', '"12345678"']
    numbers = [table.intern(text) for text in texts]
    assert len(set(numbers)) == len(table) == len(texts)
    assert 0 not in numbers
    assert table.intern_all(texts).tolist() == numbers
    assert [table.text(number) for number in numbers] == texts
    assert table.text_array(np.array([0, *numbers, 0])).to_pylist() == [None, *texts, None]
    assert table.kinds[numbers].tolist() == [IRI, BLANK, STRING, LITERAL, IRI, STRING, STRING]


def test_strings_are_read_from_wherever_their_buffers_begin() -> None:
    table, whole = TermTable(), pa.array(["<a>", "<b>", "<a>", "<c>"])
    assert table.text_array(table.intern_strings(whole)).to_pylist() == whole.to_pylist()
    assert table.text_array(table.intern_strings(whole[2:])).to_pylist() == ["<a>", "<c>"]
    assert len(table.intern_strings(whole[:0])) == 0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=300))
def test_any_texts_come_back(texts: list[str]) -> None:
    table = TermTable()
    numbers = table.intern_all(texts)
    assert table.text_array(numbers).to_pylist() == texts
    assert [table.intern(text) for text in texts] == numbers.tolist()
    ranks = dict(zip(table.in_order(numbers).tolist(), texts, strict=True))
    assert [ranks[rank] for rank in sorted(ranks)] == sorted(set(texts))


def test_unbound_comes_first_in_order() -> None:
    table = TermTable()
    b, a = table.intern("<b>"), table.intern("<a>")
    assert table.in_order(np.array([[b, 0], [a, b]])).tolist() == [[2, 0], [1, 2]]


def test_many_terms() -> None:
    """Every array grows many times over, and each time all that stands there stays."""
    table, n = TermTable(), 1_000_000 if is_full() else 200_000
    texts = pa.array([f"<http://example.org/{k}>" for k in range(n)])
    numbers = table.intern_strings(texts)
    assert len(np.unique(numbers)) == n
    assert table.text_array(numbers).equals(texts)
    assert table.size < 150 * n


def test_texts_beyond_what_arrow_can_index_are_refused() -> None:
    table = TermTable()
    number = table.intern('"' + "x" * (1 << 20) + '"')
    with pytest.raises(OverflowError, match="smaller blocks"):
        table.text_array(np.full(2048, number))


# ---------------------------------------------------------------- what literals are worth
@st.composite
def numerals(draw: st.DrawFn) -> str:
    digits, sign = st.text("0123456789", max_size=25), st.sampled_from(["", "-", "+"])
    whole, fraction = draw(digits), draw(st.one_of(st.just(""), digits.map(lambda d: "." + d)))
    exponent = draw(st.one_of(st.just(""), st.integers(-350, 350).map(lambda e: f"e{e}"), st.sampled_from(["E+", "e1e", "E007"])))
    return draw(sign) + whole + fraction + exponent


def doubles() -> st.SearchStrategy[str]:
    """Bits of any double, as shortest text, and what lies half-way between two of them."""
    any_ = st.binary(min_size=8, max_size=8).map(lambda bits: repr(struct.unpack("<d", bits)[0]))
    half_way = st.builds(lambda odd, shift: str((2 * odd + 1) << shift), st.integers(2**52, 2**53 - 1), st.integers(0, 10))
    near = st.builds(lambda whole, shift: f"{whole / 2**shift}", st.integers(1, 2**53), st.integers(0, 60))
    return st.one_of(any_, half_way, near, st.sampled_from(["INF", "-INF", "NaN", "+INF", "1e400", "-1e-400", "5e-324", "1e23", "-0"]))


def worth(texts: Sequence[str], *, later: bool) -> list[tuple[str, str]]:
    """Return the numbers of a table for the texts, asked before or after they come in.

    They are returned as written, since -0.0 and 0.0 are equal.
    """
    table = TermTable()
    if not later:
        assert table.numbers[0].tolist()[0] == 0.0
    numbers = table.intern_all(texts)
    return [(repr(value), repr(slack)) for value, slack in table.numbers[numbers].tolist()]


def expected(texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(repr(float(value)), repr(float(slack))) for value, slack in map(approximation, texts)]


@settings(max_examples=examples(500))
@given(st.lists(st.tuples(st.one_of(numerals(), doubles(), st.text("+-.0e5IN", max_size=6)), st.sampled_from(
    [DOUBLE, DECIMAL, INTEGER, XSD + "byte", XSD + "float", XSD + "string", XSD + "doubles", "http://x/double"]
)), min_size=1, max_size=20), st.booleans())  # fmt: skip
def test_numbers_are_what_the_definition_says(literals: list[tuple[str, str]], later: bool) -> None:
    texts = [typed(lexical, datatype) for lexical, datatype in literals]
    assert worth(texts, later=later) == expected(texts)


def test_many_that_only_the_host_can_read_are_taken_in_at_once() -> None:
    texts = [typed(f"0.{k:030}", DECIMAL) for k in range(5000)]
    assert worth(texts, later=False) == worth(texts, later=True) == expected(texts)


ODD = [
    *(typed(str(value), XSD + name) for name, bounds in INTEGERS.items() for bound in (*bounds, 0, 12) if bound is not None for value in range(bound - 1, bound + 2)),
    *(typed(lexical, XSD + name) for name in ("nonNegativeInteger", "negativeInteger", "integer") for lexical in ("-0", "+0", "-" + "9" * 30)),
    *(typed("1" * n, INTEGER) for n in (19, 20, 400, DIGITS, DIGITS + 1)),
    *(typed("0" * n + "1", DECIMAL) for n in (DIGITS - 1, DIGITS)),
    typed("0." + "0" * 400 + "1", DECIMAL), typed("9007199254740993", INTEGER), typed("0.1", DECIMAL), typed("0.5", DECIMAL),
    typed("5" * 19, DECIMAL), typed("1.", DECIMAL), typed(".", DECIMAL), typed("", INTEGER), typed("1 ", INTEGER), typed("\u0661", INTEGER),
    "<a>", "_:b", '"12"', '"12"@en', '"', f'"^^<{DOUBLE}>', f'"1\\"^^<{DOUBLE}>', f'"a\\"^^<{DOUBLE}>"@en', f"<{DOUBLE}>",
]  # fmt: skip


@pytest.mark.parametrize("later", [False, True])
def test_odd_literals(later: bool) -> None:
    assert worth(ODD, later=later) == expected(ODD)
    assert LONGEST_NUMERAL == DIGITS


# ---------------------------------------------------------------- terms out of use
class Keeper:
    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def hold(self, held: Held) -> None:
        held.add(np.array(self.numbers, np.int64))


def test_what_nothing_holds_is_freed_and_its_number_given_again() -> None:
    table = TermTable(spare=0)
    kept, pending, gone = (table.intern(typed(text, INTEGER)) for text in ("1", "2", "3"))
    assert table.numbers[gone].tolist() == [3.0, 0.0]
    keeper = Keeper(kept, -1, 1 << 62)
    table.holders.add(keeper)
    generation = table.generation
    table.collect([np.array([pending])])
    assert (len(table), table.generation > generation) == (2, True)
    assert table.intern('"new"') == gone
    assert [table.text(number) for number in (kept, pending, gone)] == [typed("1", INTEGER), typed("2", INTEGER), '"new"']
    assert table.numbers[[kept, pending, gone]].tolist() == [[1.0, 0.0], [2.0, 0.0], [0.0, np.inf]]
    assert table.kinds[gone] == STRING
    assert table.intern(typed("1", INTEGER)) == kept


def test_a_table_that_has_become_small_gives_its_room_back() -> None:
    table = TermTable(spare=0)
    first = table.intern("<a>")
    table.intern_all([f"<{k}>" for k in range(100_000)])
    large, keeper = table.size, Keeper(first)
    table.holders.add(keeper)
    table.collect()
    assert (len(table), table.text(first)) == (1, "<a>")
    assert 100 * table.size < large
    table.intern_all([f"<{k}>" for k in range(1000)])
    assert table.text(first) == "<a>"


def test_room_that_the_next_terms_need_stays() -> None:
    table, sizes = TermTable(spare=5_000), list[int]()
    for round_ in range(6):
        table.intern_all([f"<{round_}/{k}>" for k in range(5_000)])
        table.collect()
        sizes.append(table.size)
        assert len(table) == 0
    assert len(set(sizes)) == 1


def test_the_search_waits_until_it_pays() -> None:
    table, keeper = TermTable(), Keeper()
    table.holders.add(keeper)
    table.intern_all([f"<{k}>" for k in range(SPARE - 1)])
    table.collect()
    assert len(table) == SPARE - 1
    table.intern("<one more>")
    table.collect()
    assert len(table) == 0


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60))), max_size=8))
def test_kept_terms_keep_their_numbers(rounds: list[tuple[set[int], set[int]]]) -> None:
    """Some texts come, some of those that are there go, over and over; also through a snapshot."""
    table, there = TermTable(spare=0), dict[str, int]()
    for come, stay in rounds:
        for text in (f"<{'x' * k}>" for k in come):
            number = table.intern(text)
            assert there.setdefault(text, number) == number
        there = {text: number for text, number in there.items() if len(text) - 2 in stay}
        keeper = Keeper(*there.values())
        table.holders.add(keeper)
        table.collect()
        table = TermTable.restored(table.arrays())
        table.spare = 0
        assert (len(table), [table.text(number) for number in there.values()]) == (len(there), list(there))


def test_a_copy_goes_its_own_way() -> None:
    table = TermTable()
    number = table.intern("<a>")
    other = deepcopy(table)
    assert [other.intern(f"<{k}>") for k in range(1_000)] == [*range(number + 1, number + 1_001)]
    assert (other.text(number), other.text(number + 1), len(table)) == ("<a>", "<0>", 1)
    assert table.intern("<b>") == number + 1


def test_numbers_in_a_state() -> None:
    assert sorted(numbers_in([1, (2, None), {"a": [3, "4", 5.0]}, True]).tolist()) == [1, 1, 2, 3]
    with pytest.raises(TypeError, match="bytes"):
        numbers_in([b"1"])


def rising(n: int, each: int) -> Iterator[Block]:
    """Ever new subjects and objects, one a second, in entries of `each`."""
    seconds = 1_000_000
    for offset, first in enumerate(range(0, n, each), 1):
        numbers = range(first, first + each)
        rows = [
            {"s": f"<s{k // 4}>", "p": f"<p{k % 2}>", "o": typed(str(k), INTEGER), "g": None, "start": k * seconds, "end": k * seconds, "late": False}
            for k in numbers
        ]
        yield Block((Events(offset, DEFAULT_STREAM, each, numbers[-1] * seconds),), pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES))


@pytest.mark.parametrize(
    "where",
    [
        '{ ?s <p0> ?v } SEQ { ?s <p1> ?w } FILTER(getDURATION() < "PT1M"^^<http://www.w3.org/2001/XMLSchema#duration> && ?v < ?w)',
        '{ ?s <p0> ?v } SEQ { ?s <p1> ?w } BIND(?v + ?w AS ?sum) FILTER(getDURATION() < "PT1M"^^<http://www.w3.org/2001/XMLSchema#duration>)',
    ],
)
def test_ever_new_terms_under_a_window_leave_the_table_as_it_is(where: str) -> None:
    engine, query, empty = Engine(), f"SELECT ?s ?v ?w WHERE {{ {where} }}", pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
    engine.registry.terms.spare = 1000
    engine.feed(Block((Register(0, "q", query),), empty))
    sizes, found, n = [], set(), 20_000
    for part in rising(n, 500):
        found |= {tuple(row) for row in engine.feed(part).solutions["values"].to_pylist()}
        sizes.append(engine.registry.terms.size)
    pairs = ((4 * s + k, 4 * s + m) for s in range(n // 4) for k, m in ((0, 1), (0, 3), (2, 3)))
    assert found == {(f"<s{v // 4}>", typed(str(v), INTEGER), typed(str(w), INTEGER)) for v, w in pairs}
    assert max(sizes[20:]) <= max(sizes[:20])


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])
@given(
    st.one_of(query_strategies.selects(), query_strategies.groupings(), query_strategies.orderings(), query_strategies.window_queries()),
    query_strategies.feeds(12),
    query_strategies.facts(),
    st.data(),
)
def test_collecting_at_every_feed_changes_nothing(query: str, fed: list[Occurrence], background: list[Fact], data: st.DataObject) -> None:
    sent = {DEFAULT_STREAM: fed}
    arrival = data.draw(query_strategies.arrivals(sent))
    log = entries({"q": query}, sent, arrival.bodies, background, query_strategies.MAX_DELAY)
    assert run(blocks(log, arrival.cuts), restore_before=arrival.restores, spare_terms=0) == run([block(log)])


# ---------------------------------------------------------------- limits of cells
@pytest.mark.parametrize(("n", "terms", "said"), [(1 << 40, 1, "1099511627[0-9]+ bytes"), (1, 1 << 31, "214748[0-9]+ terms")])
def test_a_table_is_full_before_its_cells_overflow(n: int, terms: int, said: str) -> None:
    table = TermTable()
    table.intern("<a>")
    with pytest.raises(MemoryError, match=f"{said} of terms, more than the [0-9]+ that one engine holds"):
        table._make_room(n, terms)
    assert table.text(table.intern("<a>")) == "<a>"


def test_terms_whose_hashes_begin_alike_are_told_apart() -> None:
    """A cell has 24 bits of its hash, which some of so many terms share."""
    table, texts = TermTable(), [f"<{k}><{k}><{k}>" for k in range(20_000)]
    numbers = table.intern_all(texts)
    marks = table.cells[numbers, 0] >> 40
    assert len(np.unique(marks)) < len(texts), "some begin alike"
    assert len(np.unique(numbers)) == len(texts)
    assert table.intern_all(texts).tolist() == numbers.tolist()
    assert table.text_array(numbers).to_pylist() == texts


def test_what_is_no_array_of_strings_is_refused() -> None:
    """A file may be damaged where no checksum shows it; compiled code reads nothing outside of the arrays."""
    table, times = TermTable(), pa.array([1]).cast(OCCURRENCES.field("start").type)
    terms = [pa.DictionaryArray.from_arrays(pa.array([index], pa.int32()), pa.array(["<a>"]), safe=False) for index in (0, 0, 1, 0)]
    rows = pa.RecordBatch.from_arrays([*terms, times, times, pa.array([False])], schema=OCCURRENCES)
    assert table.take(rows, 2, 0).shape[1] == 1
    falling = pa.Array.from_buffers(pa.utf8(), 2, [None, pa.py_buffer(np.array([0, 3, 1], np.int32)), pa.py_buffer(b"<a>")])
    arrays = table.arrays()
    for refused in (
        lambda: table.take(rows, 3, 0),
        lambda: table.intern_strings(falling),
        lambda: table.text_array(np.array([1 << 20])),
        lambda: TermTable.restored(arrays | {"ends": arrays["ends"] + 1}),
    ):
        with pytest.raises(IndexError, match="an array is too short for what another one names"):
            refused()
    assert table.text(table.intern("<b>")) == "<b>"


def test_a_restored_table_is_searched_when_the_first_one_would_be() -> None:
    table = TermTable()
    numbers = table.intern_all([f"<{k}>" for k in range(SPARE)])
    table.collect([numbers])
    arrays = table.arrays()
    later = TermTable.restored(arrays)
    del arrays["searched"]  # earlier versions had none
    assert (table.due, later.due, TermTable.restored(arrays).due) == (False, False, True)
    assert later._due_at == table._due_at


@pytest.mark.parametrize("sum_", ["SUM(?v * 1.5e-300)", "SUM(?v * 1e300)", f"SUM(?v * {10**40})"])
def test_a_search_passes_over_sums_that_are_no_term(sum_: str) -> None:
    """A sum on the host is an integer of any length: doubles are added in units of the least of them."""
    engine, empty = Engine(), pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
    engine.registry.terms.spare = 0
    query = f"SELECT ?s ({sum_} AS ?n) WHERE {{ ?s <p0> ?v }} GROUP BY ?s ORDER BY ?n"
    engine.feed(Block((Register(0, "q", query),), empty))
    first, *rest = rising(40, 5)
    assert engine.feed(first).solutions.num_rows > 0
    engine = Engine.restore(engine.snapshot())
    engine.registry.terms.spare = 0
    assert sum(engine.feed(part).solutions.num_rows for part in rest) > 0
