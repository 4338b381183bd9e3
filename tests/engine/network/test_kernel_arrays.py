"""The arrays of one kernel: rows are taken and given back, goals are read and replaced, and tables of chains grow
with what they hold.
"""

import resource
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import FIRST_HEADS, FIRST_ROWS, POOLS, new_net, read_whole, width_of, with_rows, with_width, write_whole
from engine.network.host_calls import find_goals_beside
from engine.network.kernel_arrays import KernelArrays
from engine.network.network import Network
from engine.physical_plan.plan import code_constants
from tests.engine.network.books import check_books
from tests.engine.runtime.test_engine import Log

Ints = NDArray[np.int64]


def test_rows_given_back_are_taken_first_and_then_fresh_ones() -> None:
    arrays = KernelArrays(TermTable())
    at = arrays.net.at
    assert arrays.take_rows(4).tolist() == [0, 1, 2, 3]
    assert (at[c.USED], at[c.FREE]) == (4, 0)
    arrays.release_rows(np.array([1, 3]))
    assert (at[c.USED], at[c.FREE]) == (4, 2)
    assert arrays.take_rows(1).tolist() == [3]
    assert (at[c.USED], at[c.FREE]) == (4, 1)
    assert arrays.take_rows(3).tolist() == [1, 4, 5]
    assert (at[c.USED], at[c.FREE]) == (6, 0)
    assert arrays.take_rows(0).tolist() == []
    arrays.push_frames(7, c.LEFT, np.array([4, 5]))
    arrays.push_frames(np.array([8]), np.array([c.RIGHT]), np.array([1]))
    assert arrays.net.at[c.DEPTH] == 3
    assert arrays.net.stack[:3, : c.FRAME_GOAL].tolist() == [[7, c.LEFT, 4], [7, c.LEFT, 5], [8, c.RIGHT, 1]]


def test_the_kernel_sees_the_arrays_that_there_are() -> None:
    arrays = KernelArrays(TermTable())
    arrays.take_rows(5_000)  # more than there was room for
    for k, (name, array) in enumerate(arrays.net._asdict().items()):
        address, height, width = arrays._table[3 * k : 3 * k + 3].tolist()
        assert address == (array.ctypes.data if array.size else 0), name
        assert (height, width) == (array.shape if array.ndim == 2 else (len(array), width_of(arrays.net) if name == "rows" else 1)), name
    assert arrays.now.tolist() == arrays.net.at.tolist()


def joined(log: Log, text: str = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }") -> tuple[Network, int]:
    """The network of a query, and the store of its left goals."""
    registered = log.register("q", text)
    network = log.engine.registry.members[0].network
    planned = network.planned[registered]
    (node,) = (node for node in range(planned.at.node, planned.after.node) if network.net.nodes[node, c.KIND] == c.JOIN)
    return network, c.SIDES * node + c.LEFT


def test_goals_are_read_and_replaced() -> None:
    log = Log(Engine())
    network, store = joined(log)
    assert network.arrays.read_goals(0, store + 1) == {}
    log.send("A(1)@1 A(2)@2 A(3)@2")
    (goals,) = network.arrays.read_goals(store, store + 1).values()
    assert network.arrays.read_goals(0, store + 1).keys() == {store}
    assert goals.timed[:, c.END].tolist() == [1_000_000, 2_000_000, 2_000_000]
    assert len(goals.timeless) == 0
    without_end = goals.timed[:1].copy()
    without_end[:, [c.START, c.END]] = c.BIG, -c.BIG
    network.arrays.replace_goals(store, np.concatenate([goals.timed[1:], without_end]))
    check_books(log.engine)
    (replaced,) = network.arrays.read_goals(store, store + 1).values()
    assert (
        replaced.timed[:, [c.END, *range(c.VAR, replaced.timed.shape[1])]].tolist()
        == goals.timed[1:, [c.END, *range(c.VAR, goals.timed.shape[1])]].tolist()
    )
    assert replaced.timeless[:, c.VAR :].tolist() == without_end[:, c.VAR :].tolist()
    assert len(log.send("B(9)@5")) == 2, "this join looks at timed ones alone"
    network.arrays.replace_goals(store, replaced.timed[:0])
    assert network.arrays.read_goals(store, store + 1) == {}
    check_books(log.engine)


GROWING = [
    pytest.param("heads", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }", id="goals"),
    pytest.param("seen_heads", "SELECT * WHERE { { ?s :A ?x } UNION { ?s :B ?x } }", id="what an instant has met"),
    pytest.param("question_heads", "SELECT * WHERE { ?s :A ?x FILTER(REGEX(STR(?x), '^x')) }", id="questions"),
]


@pytest.mark.parametrize(("n", "size"), [(FIRST_HEADS, FIRST_HEADS), (FIRST_HEADS + 1, 2 * FIRST_HEADS)])
@pytest.mark.parametrize(("table", "text"), GROWING)
def test_tables_of_chains_have_as_many_heads_as_items(table: str, text: str, n: int, size: int) -> None:
    log = Log(Engine())
    log.register("q", text)
    network = log.engine.registry.members[0].network
    log.send(" ".join(f"A({k})@1" for k in range(n)))
    counts = {"heads": c.USED, "seen_heads": c.SEEN_N, "question_heads": c.ASKED}
    if network.net.at[counts[table]] == n:  # what is asked may be answered in the kernel
        assert len(getattr(network.net, table)) == size
    check_books(log.engine)


@pytest.mark.parametrize(("n", "size"), [(FIRST_HEADS, FIRST_HEADS), (FIRST_HEADS + 1, 2 * FIRST_HEADS)])
def test_the_table_of_timeless_goals_grows_too(n: int, size: int) -> None:
    log = Log(Engine())
    network, _ = joined(log, "SELECT * WHERE { VALUES ?x { " + " ".join(map(str, range(n))) + " } ?s :A ?x . }")
    log.send("A(7)@1 " + " ".join(f"Z({k})@1" for k in range(9)))
    assert network.net.at[c.TIMELESS_GOALS] == n
    assert len(network.net.timeless) == size
    assert len(log.send("A(7)@2 A(x)@2")) == 1


TERMS = [
    pytest.param("SELECT * WHERE { ?s :A ?x }", set[str](), id="no columns of terms"),
    pytest.param("SELECT * WHERE { ?s :A ?x FILTER(?x > 5) }", {"numbers", "kinds"}, id="a filter needs values and kinds"),
    pytest.param("CONSTRUCT { ?s :C ?x } WHERE { ?s :A ?x }", {"kinds", "terms"}, id="a rule needs kinds and lengths"),
]


@pytest.mark.parametrize(("text", "shown"), TERMS)
def test_the_kernel_sees_the_columns_of_terms_that_it_needs(text: str, shown: set[str]) -> None:
    log = Log(Engine())
    log.register("q", text)
    net, terms = log.engine.registry.members[0].network.net, log.engine.registry.terms
    assert len(log.send("A(6)@1")) == 1
    net = log.engine.registry.members[0].network.net
    columns: dict[str, NDArray[Any]] = {"numbers": terms.numbers, "kinds": terms.kinds, "terms": terms.cells}
    assert {name for name, column in columns.items() if getattr(net, name).ctypes.data == column.ctypes.data} == shown


def test_how_often_triples_occurred_is_taken_over() -> None:
    log = Log(Engine())
    network, _ = joined(log)
    log.send("A(1)@1 A(2)@2 B(3)@3 Z@4")
    observed = network.arrays.observed
    assert observed[0] == 4
    other = Network(log.engine.registry.terms)
    other.arrays.restore_observed(observed)
    assert other.arrays.observed[: len(observed)].tolist() == observed.tolist()
    assert not other.arrays.observed[len(observed) :].any()


def test_constants_of_code_are_no_numbers_of_questions() -> None:
    """The head of each condition names a question."""
    code = np.array([[c.PUSH_CONST, 0], [c.PUSH_VAR, 7], [c.PUSH_CONST, 0], [c.WITH_CONST + c.LT, 1], [c.STOP, 0], [c.WITH_CONST, 0], [c.STOP, 0]])
    assert code_constants(code, [0, 5]).tolist() == [2, 3]
    assert code_constants(code[:5], []).tolist() == [0, 2, 3]


def test_goals_beside_one_are_those_of_its_chain_with_its_key_and_end() -> None:
    log = Log(Engine())
    network, store = joined(log)
    net = network.net
    net.at[c.NOW] = 5
    rows = net.rows
    rows["end"], rows["older"], rows["newer"] = 5, c.NONE, c.NONE
    rows["hash"][:5], rows["terms"][:5] = 1, 0
    for older, newer in pairwise([4, 0, 1, 2, 3]):
        rows["older"][newer], rows["newer"][older] = older, newer
    rows["end"][4] = 4
    rows["hash"][2] = 2
    node = store // c.SIDES
    assert find_goals_beside(net, node, 1) == [1, 0, 3]
    assert find_goals_beside(net, node, 3) == [3, 1, 0]
    rows["older"][4], rows["hash"][-1], rows["older"][-1] = c.NONE, 1, 4
    assert find_goals_beside(net, node, 0) == [0, 1, 3], "no goal stands for the last row"


def test_an_instant_that_takes_in_facts_may_look_at_more() -> None:
    most = []
    for text in ("SELECT * WHERE { ?s :A ?x }", "SELECT * WHERE { VALUES ?x { 1 2 3 } ?s :A ?x }"):
        log = Log(Engine())
        log.register("q", text)
        log.send("A(1)@1")
        net = log.engine.registry.members[0].network.net
        most.append(net.at[c.MOST_NOW])
    assert most[1] - most[0] == 3 * net.at[c.MOST_EACH]


def test_a_row_has_long_and_short_columns() -> None:
    """Times and hashes have 64 bits, and numbers of rows and terms have 32."""
    net, most = with_width(new_net(4), 6), (1 << 31) - 1
    numbers = np.array([3, 7])
    cells = np.array([[-c.BIG, c.BIG, -(1 << 63), most, c.NONE, 5, *range(6)], [1, 2, 3, c.NONE, most, c.NONE, *range(most - 5, most + 1)]])
    write_whole(net, numbers, cells)
    assert read_whole(net, numbers).tolist() == cells.tolist()
    assert not read_whole(net, np.array([2, 4, 6, 8])).any()
    wider = with_width(net, 9)
    assert width_of(wider) == c.VAR + 9
    assert read_whole(wider, numbers).tolist() == [[*row, 0, 0, 0] for row in cells.tolist()]
    longer = with_rows(wider, 10 * FIRST_ROWS)
    assert len(longer.rows) >= 10 * FIRST_ROWS
    assert read_whole(longer, numbers).tolist() == read_whole(wider, numbers).tolist()
    assert net.rows.itemsize == 3 * 8 + 3 * 4 + 6 * 4


def test_rows_have_numbers_of_32_bits() -> None:
    net = new_net(4)
    net.at[c.USED] = c.MOST_ROWS - 5
    with pytest.raises(MemoryError, match="more than 2147483648 partial matches in one engine"):
        with_rows(net, 6)


def test_room_is_made_for_all_goals_of_a_snapshot_at_once() -> None:
    arrays = KernelArrays(TermTable())
    arrays.reserve_goals(5_000)
    rows, heads = arrays.net.rows, arrays.net.heads
    arrays.take_rows(5_000)
    arrays.spread_heads()
    assert arrays.net.rows is rows
    assert arrays.net.heads is heads
    assert len(heads) >= 5_000


def test_a_network_has_memory_only_for_what_it_keeps() -> None:
    """A server may have thousands of networks with a query each, and nothing has touched most of their rows and pools."""
    terms, statm = TermTable(), Path("/proc/self/statm")
    before = int(statm.read_text().split()[1])
    networks = [Network(terms) for _ in range(200)]
    for network in networks:
        network.arrays.make_room(1)  # it has room for some thousand
    pages = (int(statm.read_text().split()[1]) - before) / len(networks)
    assert pages * resource.getpagesize() < 100 << 10


def test_room_for_much_at_once_is_given_back() -> None:
    arrays = KernelArrays(TermTable())
    numbers = arrays.take_rows(5_000)
    arrays.push_frames(7, c.LEFT, numbers[:3])
    arrays.give_back_room()
    assert {len(getattr(arrays.net, name)) for name in POOLS} == {FIRST_ROWS}
    assert arrays.net.stack[:4, [c.FRAME_NODE, c.FRAME_ROW]].tolist() == [[7, 0], [7, 1], [7, 2], [0, 0]]
    arrays.make_room(0, 5_000)
    arrays.push_frames(8, c.RIGHT, numbers)
    arrays.give_back_room()
    assert len(arrays.net.out) == FIRST_ROWS
    assert arrays.net.stack[:5_003, c.FRAME_ROW].tolist() == [0, 1, 2, *range(5_000)]


def test_a_grouped_query_has_no_table_of_terms_of_its_own() -> None:
    log = Log(Engine())
    log.register("first", "SELECT ?s (SUM(?v) AS ?n) WHERE { ?s :p ?v } GROUP BY ?s")
    tracemalloc.start()
    for k in range(10):
        log.register(f"q{k}", f"SELECT ?s (SUM(?v) AS ?n) WHERE {{ ?s :p{k} ?v }} GROUP BY ?s")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / 10 < 100 << 10
