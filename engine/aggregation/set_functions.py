"""Set functions over a group's solutions (SPARQL 1.1, 18.5.1) are accumulators that solutions enter and, in windows,
leave.

COUNT, SAMPLE, FIRST, LAST, MIN and MAX leave out errors; SUM, AVG and GROUP_CONCAT with one are errors. MIN and MAX
are by the order of ORDER BY.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import gt, lt
from typing import Any, Protocol, assert_never

from engine.aggregation.exact_sum import Sum
from engine.aggregation.term_values import TermValues, Value
from engine.dictionary.sort_keys import SortKey
from engine.expressions.values import MAX_TEXT
from engine.kernel.state import layout as c
from epsparql.algebra import Aggregate, AggregateFunction
from epsparql.deferred_methods import dataclass
from epsparql.terms import Literal
from epsparql.trees import replace_fields

_INDIFFERENT = (AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.SAMPLE)
"""These functions give the first of equals with DISTINCT and without."""


@dataclass(frozen=True, slots=True)
class Folding:
    """Holds the aggregates of a group.

    `held` are those whose values are taken in; `shown` says which of them gives each result, and what of it.
    """

    held: tuple[Aggregate, ...]
    shown: tuple[tuple[int, AggregateFunction], ...]


def folding(aggregates: Sequence[Aggregate]) -> Folding:
    """Fold aggregates so that SUM and AVG of one argument are held once."""
    held: dict[Aggregate, int] = {}
    shown = []
    for aggregate in aggregates:
        mean = aggregate.function is AggregateFunction.AVG
        of = replace_fields(aggregate, function=AggregateFunction.SUM) if mean else aggregate
        shown.append((held.setdefault(of, len(held)), aggregate.function))
    return Folding(tuple(held), tuple(shown))


class Accumulator(Protocol):
    """Accumulates one aggregate of one group.

    Values come in the order of solutions, and leave in it.
    """

    def add(self, value: Value, worth: TermValues) -> None: ...

    def drop(self, value: Value, worth: TermValues) -> None:
        """Forget the oldest value, of a window."""
        ...

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        """Return the number of the result's term, c.UNBOUND for an error; `values` are those in the window, in order."""
        ...

    def state(self) -> Any:
        """Return the state of a group without window; a group with a window takes in its solutions again."""
        ...

    def restore(self, state: Any) -> None: ...


def accumulator(aggregate: Aggregate, *, sliding: bool) -> Accumulator:
    """Make an aggregate's accumulator; with `sliding`, values also leave."""
    found = _make_accumulator(aggregate, sliding=sliding)
    return Distinct(found) if aggregate.distinct and aggregate.function not in _INDIFFERENT else found


def _make_accumulator(aggregate: Aggregate, *, sliding: bool) -> Accumulator:
    match aggregate.function:
        case AggregateFunction.COUNT:
            return Count()
        case AggregateFunction.SUM | AggregateFunction.AVG:
            return Sum()
        case AggregateFunction.MIN:
            return SlidingExtreme(lt) if sliding else Extreme(lt)
        case AggregateFunction.MAX:
            return SlidingExtreme(gt) if sliding else Extreme(gt)
        case AggregateFunction.SAMPLE | AggregateFunction.FIRST:
            return SlidingExtreme(_never) if sliding else Extreme(_never)
        case AggregateFunction.LAST:
            return SlidingExtreme(_always) if sliding else Extreme(_always)
        case AggregateFunction.GROUP_CONCAT:
            return Concatenation(aggregate.separator, sliding)
    assert_never(aggregate.function)


def _never(_new: SortKey, _old: SortKey) -> bool:
    """SAMPLE and FIRST are the first of a group, so no later value beats it."""
    return False


def _always(_new: SortKey, _old: SortKey) -> bool:
    """LAST is the last of a group, so each later value beats it."""
    return True


class Count:
    def __init__(self) -> None:
        self.n = 0

    def add(self, value: Value, worth: TermValues) -> None:
        self.n += value["n"] if isinstance(value, dict) else value != c.UNBOUND

    def drop(self, value: Value, worth: TermValues) -> None:
        self.n -= value["n"] if isinstance(value, dict) else value != c.UNBOUND

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        return worth.integer(self.n)

    def state(self) -> int:
        return self.n

    def restore(self, state: int) -> None:
        self.n = state


class Distinct:
    """Lets the first of equal values through, and takes it out with the last of them, which need not be in the order
    of coming.
    """

    def __init__(self, inner: Accumulator) -> None:
        self.inner = inner
        self.times: dict[Value, int] = {}

    def add(self, value: Value, worth: TermValues) -> None:
        times = self.times[value] = self.times.get(value, 0) + 1
        if times == 1:
            self.inner.add(value, worth)

    def drop(self, value: Value, worth: TermValues) -> None:
        self.times[value] -= 1
        if not self.times[value]:
            del self.times[value]
            self.inner.drop(value, worth)

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        return self.inner.result(function, dict.fromkeys(values), worth)

    def state(self) -> Any:
        return [list(self.times), self.inner.state()]

    def restore(self, state: Any) -> None:
        seen, inner = state
        self.times = {tuple(value) if isinstance(value, list) else value: 1 for value in seen}
        self.inner.restore(inner)


# ---------------------------------------------------------------- MIN, MAX, SAMPLE, FIRST, LAST
class Extreme:
    """Keeps the first of the values that no other beats."""

    def __init__(self, beats: Callable[[SortKey, SortKey], bool]) -> None:
        self.beats = beats
        self.best = c.UNBOUND

    def add(self, value: Value, worth: TermValues) -> None:
        assert isinstance(value, int)
        if value != c.UNBOUND and (self.best == c.UNBOUND or self.beats(worth.read_sort_key(value), worth.read_sort_key(self.best))):
            self.best = value

    def drop(self, value: Value, worth: TermValues) -> None:
        raise AssertionError("nothing leaves a group without window")

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        return self.best

    def state(self) -> int:
        return self.best

    def restore(self, state: int) -> None:
        self.best = state


class SlidingExtreme:
    """Does what `Extreme` does, for a window.

    `chain` has what may yet be the answer, oldest first, each with its place; none beats the one before.
    """

    def __init__(self, beats: Callable[[SortKey, SortKey], bool]) -> None:
        self.beats = beats
        self.chain: deque[tuple[int, SortKey, int]] = deque()
        self.added = self.dropped = 0

    def add(self, value: Value, worth: TermValues) -> None:
        assert isinstance(value, int)
        if value != c.UNBOUND:
            key = worth.read_sort_key(value)
            while self.chain and self.beats(key, self.chain[-1][1]):
                self.chain.pop()
            self.chain.append((self.added, key, value))
        self.added += 1

    def drop(self, value: Value, worth: TermValues) -> None:
        if self.chain and self.chain[0][0] == self.dropped:
            self.chain.popleft()
        self.dropped += 1

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        return self.chain[0][2] if self.chain else c.UNBOUND

    def state(self) -> Any:
        raise AssertionError("a window's extreme is made anew")

    def restore(self, state: Any) -> None:
        raise AssertionError("a window's extreme is made anew")


# ---------------------------------------------------------------- GROUP_CONCAT
class Concatenation:
    """Joins each value's STR, in order; a window has its values itself."""

    def __init__(self, separator: str, sliding: bool) -> None:
        self.separator = separator
        self.sliding = sliding
        self.values: list[Value] = []

    def add(self, value: Value, worth: TermValues) -> None:
        if not self.sliding:
            self.values.append(value)

    def drop(self, value: Value, worth: TermValues) -> None:
        """Do nothing: the window has the values."""

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        texts = [worth.read_text(value) for value in (values if self.sliding else self.values)]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts) or sum(map(len, known)) + len(self.separator) * len(known) > MAX_TEXT:
            return c.UNBOUND
        return worth.terms.intern(str(Literal(self.separator.join(known))))

    def state(self) -> list[Value]:
        return self.values

    def restore(self, state: list[Value]) -> None:
        self.values = state
