"""One group holds everything since the start, or the solutions in its window."""

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

from engine.aggregation.set_functions import Folding, accumulator
from engine.aggregation.term_values import TermValues, Value
from engine.kernel.state import layout as c


class Ever:
    """Takes in all solutions since the start, of which the set functions' values are kept."""

    def __init__(self, folding: Folding) -> None:
        self.folding = folding
        self.accumulators = [accumulator(aggregate, sliding=False) for aggregate in folding.held]
        self.least = c.BIG

    def add(self, start: int, end: int, values: Sequence[Value], worth: TermValues) -> None:
        self.least = min(self.least, start)
        for held, value in zip(self.accumulators, values, strict=True):
            held.add(value, worth)

    def results(self, worth: TermValues) -> list[int]:
        return [self.accumulators[k].result(function, (), worth) for k, function in self.folding.shown]

    def copied(self) -> "Ever":
        """Return a copy to which more may be added; only set functions of constant size have one."""
        other = copy(self)
        other.accumulators = [copy(held) for held in self.accumulators]
        return other

    def state(self) -> Any:
        return [self.least, [held.state() for held in self.accumulators]]

    def restore(self, state: Any, worth: TermValues) -> None:
        self.least, held = state
        for own, state_of_own in zip(self.accumulators, held, strict=True):
            own.restore(state_of_own)


class Sliding:
    """Holds the solutions in a window, oldest first; `starts` has, rising, those that may yet be the least."""

    def __init__(self, folding: Folding) -> None:
        self.folding = folding
        self.accumulators = [accumulator(aggregate, sliding=True) for aggregate in folding.held]
        self.rows: deque[tuple[int, int, Sequence[Value]]] = deque()
        self.starts: deque[int] = deque()

    @property
    def least(self) -> int:
        return self.starts[0] if self.starts else c.BIG

    def add(self, start: int, end: int, values: Sequence[Value], worth: TermValues) -> None:
        self.rows.append((start, end, values))
        while self.starts and start < self.starts[-1]:
            self.starts.pop()
        self.starts.append(start)
        for held, value in zip(self.accumulators, values, strict=True):
            held.add(value, worth)

    def drop(self, worth: TermValues) -> None:
        """Forget the oldest solution."""
        start, _, values = self.rows.popleft()
        if start == self.starts[0]:
            self.starts.popleft()
        for held, value in zip(self.accumulators, values, strict=True):
            held.drop(value, worth)

    def results(self, worth: TermValues) -> list[int]:
        return [self.accumulators[k].result(function, self._list_values(k), worth) for k, function in self.folding.shown]

    def _list_values(self, k: int) -> Iterator[Value]:
        for _, _, values in self.rows:
            yield values[k]

    def state(self) -> Any:
        return list(self.rows)

    def restore(self, state: Any, worth: TermValues) -> None:
        for start, end, values in state:
            self.add(start, end, [tuple(value) if isinstance(value, list) else value for value in values], worth)
