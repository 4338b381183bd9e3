"""This module holds what a proposal knows about each field of a file: its distinct values, and in how many rows it
has one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.mapping.columns import ABSENT, BOOLEAN, BROKEN, CELL, NESTED, NUMBER, STRING, Column
from pipeline.mapping.json_reader import ROOT
from pipeline.mapping.mapping import steps_of

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def split_words(name: str) -> tuple[str, ...]:
    """Return the words of a name in small letters: `lastReported` and `last_reported` have the same."""
    return tuple(word.lower() for word in _WORD.findall(name))


@dataclass(frozen=True)
class Field:
    """Holds a field: its distinct values by first appearance, and how many of the `rows` rows have one.

    `is_cell` says that it is a column of CSV.
    """

    path: str
    values: Column
    present: int
    rows: int
    is_cell: bool

    @classmethod
    def from_column(cls, path: str, column: Column, null: Sequence[str], *, is_cell: bool) -> "Field":
        """Keep the values of a column that occur in rows, without the words that mean no value."""
        own = column.without(null)
        present = own.indices[own.indices != ABSENT]
        numbers, firsts = np.unique(present, return_index=True)
        used = numbers[np.argsort(firsts, kind="stable")]
        values = Column(np.arange(len(used), dtype=np.int32), own.texts.take(pa.array(used)), own.kinds[used])
        return cls(path, values, len(present), len(own.indices), is_cell)

    @cached_property
    def texts(self) -> list[str]:
        found: list[str] = self.values.texts.to_pylist()
        return found

    @property
    def is_whole(self) -> bool:
        """Tell whether each row has a value."""
        return self.rows > 0 and self.present == self.rows

    @property
    def is_around(self) -> bool:
        """Tell whether the field stands around the row, and not in it."""
        return not self.is_cell and self.path.startswith(ROOT)

    @cached_property
    def steps(self) -> tuple[str | int, ...]:
        """Return the names and positions of the path; a column of CSV is one name."""
        return (self.path,) if self.is_cell else steps_of(self.path.removeprefix(ROOT).replace("[*]", ""))

    @property
    def last_name(self) -> str:
        """Return the last name of the path."""
        return next((step for step in reversed(self.steps) if isinstance(step, str)), "")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of the last name in small letters."""
        return split_words(self.last_name)

    @property
    def is_scalar(self) -> bool:
        """Tell whether all values are texts or numbers."""
        return bool(np.isin(self.values.kinds, (CELL, STRING, NUMBER)).all())

    @property
    def is_usable(self) -> bool:
        """Tell whether each value can become a literal."""
        return not bool(np.isin(self.values.kinds, (NESTED, BROKEN)).any())

    @property
    def has_booleans(self) -> bool:
        return bool((self.values.kinds == BOOLEAN).any())

    def matches(self, form: str) -> bool:
        """Tell whether there are values and all of them have this form."""
        return len(self.texts) > 0 and bool(pc.all(pc.match_substring_regex(self.values.texts, form)).as_py())

    def without(self, words: Sequence[str]) -> "Field":
        """Return the field without these values."""
        kept = [k for k, text in enumerate(self.texts) if text not in words]
        values = Column(np.arange(len(kept), dtype=np.int32), self.values.texts.take(pa.array(kept, pa.int32())), self.values.kinds[kept])
        return Field(self.path, values, min(self.present, len(kept)), self.rows, self.is_cell)
