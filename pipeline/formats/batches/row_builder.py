"""This module holds the rows of a body while it is read.

Terms have numbers, so a term is kept once however many rows have it.
"""

from array import array
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from engine.messages import OCCURRENCES, Micros
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.formats.batches.expansion_budget import ROW_BYTES, ExpansionBudget, size_of
from pipeline.formats.batches.fast_path import batch_of_numbers

NO_TERM = -1
_FEW = 128
"""Up to this many rows, columns are made faster from texts, 0.1 ms a body.

With more rows a text in many rows would be hashed for each.
"""


def mark_retractions(batch: pa.RecordBatch, ranges: Iterable[tuple[int, int]]) -> pa.RecordBatch:
    """Mark rows of a body as retractions. They are late from the first, so that nobody takes them for occurrences."""
    marked = np.zeros(batch.num_rows, np.bool_)
    for begin, after in ranges:
        marked[begin:after] = True
    return batch.set_column(OCCURRENCES.get_field_index("late"), OCCURRENCES.field("late"), pa.array(marked))


class RowBuilder:
    """Collects occurrences in the order in which they came; their size is spent from `budget`.

    `rounds` says that times finer than a microsecond are rounded, and not refused.
    """

    def __init__(self, budget: ExpansionBudget, *, rounds: bool = False) -> None:
        self.budget, self.rounds = budget, rounds
        self._numbers: dict[str, int] = {}
        self._cells, self._times = array("i"), array("q")  # four and two a row
        self._retractions: list[tuple[int, int]] = []

    def number(self, term: str | None) -> int:
        """Return the number of a canonical term, NO_TERM for none. Raises: FormatError, code `expansion`."""
        if term is None:
            return NO_TERM
        found = self._numbers.get(term)
        if found is None:
            self.budget.spend(size_of(term))
            found = self._numbers[term] = len(self._numbers)
        return found

    def spend_row(self) -> None:
        """Spend the size of a row; call this once for each row, before the row is kept anywhere."""
        self.budget.spend(ROW_BYTES)

    def add(self, terms: Iterable[int], start: Micros, end: Micros) -> None:
        """Add a row of four numbers."""
        self._cells.extend(terms)
        self._times.extend((start, end))

    def __len__(self) -> int:
        return len(self._times) // 2

    def retract_from(self, row: int) -> None:
        """Mark the rows from one on as retractions."""
        self._retractions.append((row, len(self)))

    def batch(self) -> pa.RecordBatch:
        """Return OCCURRENCES; late are those that were marked."""
        return mark_retractions(self._batch(), self._retractions) if self._retractions else self._batch()

    def _batch(self) -> pa.RecordBatch:
        if len(self._times) <= 2 * _FEW:
            texts = [*self._numbers, None]
            s, p, o, g = ([texts[number] for number in self._cells[place::4]] for place in range(4))
            return batch_of(s, p, o, g, self._times[::2], self._times[1::2])  # type: ignore[arg-type]  # s, p and o have no NO_TERM
        cells, times = np.array(self._cells, np.int32).reshape(-1, 4), np.array(self._times, np.int64).reshape(-1, 2)
        start, end = (np.ascontiguousarray(column) for column in times.T)
        return batch_of_numbers(pa.array(list(self._numbers), pa.utf8()), np.ascontiguousarray(cells.T), start, end)
