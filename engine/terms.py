"""Terms of one engine: N-Triples text to a number and back, with what the kernel knows of each."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.approximation import approximation
from engine.expressions import parse_term
from epsparql.terms import Term

IRI, BLANK, LITERAL, STRING = 1, 2, 3, 4
"""Kinds, as the kernel's `kinds` has them; 0 is no term. A STRING is a literal of xsd:string, which has neither language nor another datatype."""

_KINDS = {"<": IRI, "_": BLANK, '"': LITERAL}
_FIRST = 1 << 10


class TermTable:
    """Numbers terms in the order in which they are met; number 0 stands for an unbound variable."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._kinds: NDArray[np.int64] = np.zeros(_FIRST, np.int64)
        self._numbers: NDArray[np.float64] = np.zeros((_FIRST, 2))
        self._numbers[0] = (0.0, np.nan)
        self._settled = self._approximated = 1
        self.texts: list[str] = [""]

    def __len__(self) -> int:
        return len(self.texts)

    def intern(self, text: str) -> int:
        """The number of a term given as canonical N-Triples text."""
        number = self._ids.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def intern_all(self, texts: Iterable[str]) -> NDArray[np.int64]:
        number_of, known = self._ids.setdefault, self.texts
        found = []
        for text in texts:
            number = number_of(text, len(known))
            if number == len(known):
                known.append(text)
            found.append(number)
        return np.array(found, np.int64)

    @property
    def kinds(self) -> NDArray[np.int64]:
        """IRI, BLANK or LITERAL by number of term; made for new terms when it is asked for."""
        first, after = self._settled, len(self.texts)
        if after > len(self._kinds):
            self._kinds = np.concatenate([self._kinds, np.zeros(max(after, len(self._kinds)), np.int64)])
        self._kinds[first:after] = [STRING if text[-1] == '"' else _KINDS[text[0]] for text in self.texts[first:after]]
        self._settled = after
        return self._kinds

    @property
    def numbers(self) -> NDArray[np.float64]:
        """By number of term: a numeric literal's value and an error bound; (0, inf) for other terms, (0, nan) for 0. Made when asked for."""
        first, after = self._approximated, len(self.texts)
        if after > len(self._numbers):
            self._numbers = np.concatenate([self._numbers, np.zeros((max(after, len(self._numbers)), 2))])
        if first < after:
            self._numbers[first:after] = [approximation(text) for text in self.texts[first:after]]
        self._approximated = after
        return self._numbers

    def map_dictionary(self, column: pa.DictionaryArray) -> NDArray[np.int64]:
        """Term numbers of a dictionary-encoded column; null gives 0."""
        if column.null_count == len(column):
            return np.zeros(len(column), np.int64)
        ids = self.intern_all(column.dictionary.to_pylist())
        if column.null_count == 0:
            found: NDArray[np.int64] = ids[column.indices.to_numpy()]
        else:
            found = np.append(ids, 0)[column.indices.fill_null(len(ids)).to_numpy()]
        return found

    def term(self, number: int) -> Term | None:
        """The term itself; None for 0."""
        return parse_term(self.texts[number]) if number else None

    def in_order(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ranks of terms by N-Triples text, unbound first; equal numbers have equal ranks."""
        distinct, which = self._distinct(numbers.reshape(-1))
        texts = self.texts
        order = sorted(range(len(distinct)), key=lambda k: texts[distinct[k]])
        rank = np.empty(len(distinct), np.int64)
        rank[order] = np.arange(len(distinct))
        return rank[which].reshape(numbers.shape)

    def text_array(self, numbers: NDArray[np.int64]) -> pa.Array:
        """Texts of a flat array of numbers; null for unbound."""
        distinct, which = self._distinct(numbers)
        texts = self.texts
        return pa.array([texts[k] if k else None for k in distinct.tolist()], pa.utf8()).take(pa.array(which))

    def _distinct(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct numbers, and which of them stands at each place: by sorting a few, by marking among all terms when there are many."""
        if 8 * len(numbers) < len(self.texts):
            distinct, which = np.unique(numbers, return_inverse=True)
            return distinct, which
        marked = np.zeros(len(self.texts), np.bool_)
        marked[numbers] = True
        places = np.cumsum(marked)
        return np.flatnonzero(marked), places[numbers] - 1

    def snapshot(self) -> pa.Array:
        return pa.array(self.texts[1:], pa.utf8())

    @classmethod
    def restored(cls, texts: Sequence[str]) -> "TermTable":
        table = cls()
        for text in texts:
            table.intern(text)
        return table
