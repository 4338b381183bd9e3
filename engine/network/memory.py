"""This module makes room for goals, and puts goals of the host into a store."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernel.goal_maintenance import enter_rows, store_goals_in_order
from engine.kernel.operators.filter import spread_questions
from engine.kernel.state import layout as c
from engine.kernel.state.goal_store import clear_stores, spread_goals, spread_timeless_goals
from engine.kernel.state.seen_solutions import spread_seen
from engine.network.query_slots import Residents

Ints = NDArray[np.int64]

SPREADERS: dict[str, Callable[[int, Ints], None]] = {
    "heads": spread_goals,
    "timeless": spread_timeless_goals,
    "seen_heads": spread_seen,
    "question_heads": spread_questions,
}
"""Each table of chains has a function that moves it to a larger one."""


@dataclass(slots=True, eq=False)
class Stores(Residents):
    """Represents residents with their goals."""

    def make_room(self, n: int) -> None:
        """Make room for `n` more rows, and for as many entries of each pool."""
        self._make_room(n)
        self._spread_heads()

    def _spread_heads(self) -> None:
        """Give each hash table at least as many heads as there are items on its chains."""
        at, net = self.now, self.net
        goals, seen = at[c.USED] - at[c.FREE] - at[c.TIMELESS_GOALS], max(at[c.SEEN_N], at[c.SEEN_MOST])
        if goals > len(net.heads):
            self._spread("heads", goals)
        if at[c.TIMELESS_GOALS] > len(net.timeless):
            self._spread("timeless", at[c.TIMELESS_GOALS])
        if seen > len(net.seen_heads):
            self._spread("seen_heads", seen)
        if at[c.ASKED] > len(net.question_heads):
            self._spread("question_heads", at[c.ASKED])

    def _spread(self, name: str, held: int) -> None:
        heads = np.full(1 << held.bit_length(), c.NONE, np.int64)
        SPREADERS[name](self.address, heads)
        new: dict[str, Any] = {name: heads}
        self._hold(self.net._replace(**new))

    def replace_goals(self, store: int, rows: Ints) -> None:
        """Replace the goals of a join's store: timed ones in order of end, and timeless ones."""
        clear_stores(self.address, store, store + 1)
        self.make_room(len(rows))
        columns, numbers = np.arange(rows.shape[1]), np.empty(len(rows), np.int64)
        enter_rows(self.address, columns, rows, numbers)
        store_goals_in_order(self.address, np.full(len(rows), store, np.int64), numbers)
