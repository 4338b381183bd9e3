"""This module holds the arrays that one kernel works on, makes room in them, and puts rows and goals there for the
host.
"""

from collections.abc import Callable
from ctypes import addressof, c_byte
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation import RowBatch
from engine.alpha.free_rows import Ranges, by_predicate, with_predicate
from engine.dictionary.layout import CELL_WIDTH, LINK, LINK_BITS
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.literals import FALSE, TRUE
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import CELL_BYTES, WORDS, Net, new_net, width_of, with_first_room, with_room, with_rows
from engine.native.entries import (
    clear_stores,
    enter_rows,
    read_goals,
    spread_goals,
    spread_questions,
    spread_seen,
    spread_timeless_goals,
    store_goals_in_order,
)
from engine.physical_plan.plan import TABLES
from engine.physical_plan.recipes import Recipes
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
assert (c.TERM_LINK, c.TERM_LINK_BITS, c.TERM_WIDTH) == (LINK, LINK_BITS, CELL_WIDTH), "the kernel reads what the term table writes"

SPREADERS: dict[str, Callable[..., None]] = {
    "heads": spread_goals,
    "timeless": spread_timeless_goals,
    "seen_heads": spread_seen,
    "question_heads": spread_questions,
}
"""Each table of chains has a function that moves it to a larger one."""


@dataclass(slots=True)
class Goals:
    """Holds the goals of one store as whole rows: the timed ones in order of end and then the timeless ones, the
    oldest first.
    """

    timed: Ints
    timeless: Ints


class KernelArrays:
    """Holds a kernel's arrays with the table of their addresses, and which rows of the program are in use."""

    def __init__(self, terms: TermTable) -> None:
        self.terms = terms
        self.net = new_net(4)
        self.now: memoryview = self.net.at.data  # `net.at`, which gives Python's own numbers
        self._table: Ints = np.zeros(WORDS * len(self.net), np.int64)  # (address, length, width) of each array of `net`
        self.address = int(self._table.__array_interface__["data"][0])  # where the table stands, which the kernel is given
        arrays: tuple[NDArray[Any], ...] = self.net
        for k, array in enumerate(arrays):
            self.show_array(k, array)
        self.used = {name: Ranges() for name in (*TABLES, "queries", "reads", "facts")}  # rows in use, by name of the table
        self.recipes = Recipes(terms.address)
        self.net.answers[:] = self.recipes.call
        self.asks_kinds = False  # whether it matters which kind of term an occurrence's object is
        self.began: int | None = None  # the instant from which on occurrences have been counted
        self.net.at[c.TRUE_TERM], self.net.at[c.FALSE_TERM] = terms.intern(str(TRUE)), terms.intern(str(FALSE))

    # ------------------------------------------------------------ arrays
    def replace_arrays(self, net: Net) -> None:
        """Make `net` the one that the kernel sees: the table of addresses follows, cell by cell where an array is
        another.
        """
        before = self.net
        if net is before:
            return
        arrays: tuple[NDArray[Any], ...] = net
        for k, array in enumerate(arrays):
            if array is not before[k]:
                self.show_array(k, array)
        self.net, self.now = net, net.at.data

    def show_array(self, k: int, array: NDArray[Any]) -> None:
        """Make an array the k-th that the kernel sees."""
        name = Net._fields[k]
        if name == "rows":
            height, width = len(array), c.VAR + array.dtype["terms"].shape[0]
        else:
            assert array.dtype.itemsize == CELL_BYTES.get(name, 8)
            height, width = array.shape if array.ndim == 2 else (len(array), 1)
        self._table[WORDS * k : WORDS * k + WORDS] = address_of(array), height, width

    def make_room(self, need: int, frames: int = 0) -> None:
        """Make room for `need` more rows and entries of each pool, and for `frames` more on the stack."""
        self._replace_grown(with_room(self.net, need, frames))

    def give_back_room(self) -> None:
        """Give back the room that reading much at once has needed, between feeds."""
        self.replace_arrays(with_first_room(self.net))

    def reserve_goals(self, n: int) -> None:
        """Make room for `n` more goals at once."""
        self._replace_grown(with_rows(self.net, n))
        if n > len(self.net.heads):
            self._spread_table("heads", n)

    def spread_heads(self, more: int = 0) -> None:
        """Give each hash table at least as many heads as there are items on its chains, and as `more` that one step
        may add.
        """
        at, net = self.now, self.net
        goals, seen = at[c.USED] - at[c.FREE] - at[c.TIMELESS_GOALS] + more, max(at[c.SEEN_N] + more, at[c.SEEN_MOST])
        if goals > len(net.heads):
            self._spread_table("heads", goals)
        if (timeless := at[c.TIMELESS_GOALS] + more) > len(net.timeless):
            self._spread_table("timeless", timeless)
        if seen > len(net.seen_heads):
            self._spread_table("seen_heads", seen)
        if at[c.ASKED] > len(net.question_heads):
            self._spread_table("question_heads", at[c.ASKED])

    def _spread_table(self, name: str, held: int) -> None:
        heads = np.full(1 << held.bit_length(), c.NONE, getattr(self.net, name).dtype)
        SPREADERS[name](self.address, heads)
        new: dict[str, Any] = {name: heads}
        self.replace_arrays(self.net._replace(**new))

    def _replace_grown(self, net: Net) -> None:
        self.replace_arrays(net)
        for name in ("rows", "links"):  # they grow at their place
            self.show_array(Net._fields.index(name), getattr(self.net, name))

    def refresh_terms(self) -> None:
        """Show the kernel the columns of terms that it needs: values and kinds if it has filters, kinds and lengths
        if it has rules.
        """
        net, terms = self.net, self.terms
        filters, rules = self.used["code"].end, self.used["templates"].end
        if filters and (numbers := terms.numbers) is not net.numbers:
            net = net._replace(numbers=numbers)
        if (filters or rules or self.asks_kinds) and (kinds := terms.kinds) is not net.kinds:
            net = net._replace(kinds=kinds)
        if rules and (cells := terms.cells) is not net.terms:
            net = net._replace(terms=cells)
        if net is not self.net:
            self.replace_arrays(net)

    def forget_answers(self) -> None:
        """Forget the host's answers, between feeds, when nothing waits for them."""
        self.net.at[c.ASKED] = self.net.at[c.ANSWERED] = 0
        self.net.question_heads[:] = c.NONE

    # ------------------------------------------------------------ rows and goals
    def take_rows(self, n: int) -> Ints:
        """Take rows to fill and to put on the stack, and return their numbers."""
        self.make_room(n)
        at, free, used = self.net.at, int(self.net.at[c.FREE]), int(self.net.at[c.USED])
        fresh = max(n - free, 0)
        at[c.FREE], at[c.USED] = free - (n - fresh), used + fresh
        return np.concatenate([self.net.free[free - (n - fresh) : free].astype(np.int64), np.arange(used, used + fresh)])

    def release_rows(self, numbers: Ints) -> None:
        at, n = self.net.at, len(numbers)
        self.net.free[at[c.FREE] : at[c.FREE] + n] = numbers
        at[c.FREE] += n

    def read_rows(self, numbers: Ints, columns: Ints) -> RowBatch:
        rows = self.net.rows[numbers]
        return RowBatch(rows["start"].astype(np.int64), rows["end"].astype(np.int64), rows["terms"][:, columns - c.VAR].astype(np.int64))

    def push_frames(self, nodes: Ints | int, sides: Ints | int, rows: Ints) -> None:
        """Put work on the stack, for which there is room."""
        depth = int(self.net.at[c.DEPTH])
        frames = self.net.stack[depth : depth + len(rows)]
        frames[:, c.FRAME_NODE], frames[:, c.FRAME_SIDE], frames[:, c.FRAME_ROW] = nodes, sides, rows
        self.net.at[c.DEPTH] = depth + len(rows)

    def read_goals(self, first: int, after: int) -> dict[int, Goals]:
        """Return the goals of the stores from `first` to `after` (exclusive) that hold any, by store."""
        n, width = int(self.net.stores[first:after, c.COUNT].sum()), width_of(self.net)
        stores, numbers, cells = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, width), np.int64)
        read_goals(self.address, np.arange(width), first, after, stores, numbers, cells)
        timeless = cells[:, c.START] > cells[:, c.END]
        edges = np.flatnonzero(np.diff(stores, prepend=-1, append=-1))
        found = {}
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            split = low + int((~timeless[low:high]).sum())
            found[int(stores[low])] = Goals(cells[low:split], cells[split:high])
        return found

    def replace_goals(self, store: int, rows: Ints) -> None:
        """Replace the goals of a join's store: timed ones in order of end, and timeless ones."""
        clear_stores(self.address, store, store + 1)
        self.make_room(len(rows))
        self.spread_heads()
        columns, numbers = np.arange(rows.shape[1]), np.empty(len(rows), np.int64)
        enter_rows(self.address, columns, np.ascontiguousarray(rows), numbers)
        store_goals_in_order(self.address, np.full(len(rows), store, np.int64), numbers)

    # ------------------------------------------------------------ how often triples occur
    @property
    def observed(self) -> Ints:
        """Return how many occurrences there were, of all predicates and then of each."""
        return by_predicate(self.net)[:, c.ALPHA_SEEN].copy()

    def restore_observed(self, observed: Ints) -> None:
        """Take over what `observed` gave."""
        self.replace_arrays(with_predicate(self.net, len(observed) - 1))
        by_predicate(self.net)[: len(observed), c.ALPHA_SEEN] = observed


def address_of(array: NDArray[Any]) -> int:
    """Return the address of a C-contiguous array; 0 for an empty one. This is several times faster than to ask numpy."""
    return addressof(c_byte.from_buffer(array.data)) if array.size else 0
