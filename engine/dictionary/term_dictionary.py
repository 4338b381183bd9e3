"""The term table maps the N-Triples text of one engine's terms to numbers and back, with what the kernel knows of
each term.

Texts stand one after the other in an arena of UTF-8; a term that nothing holds any more is freed and its number given
to another (docs/decisions/0011-terms-in-arrays.md).
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary import layout as c
from engine.dictionary.arrow_encoding import packed_schema
from engine.dictionary.batch_layout import ARROW_WORDS, CONSTANTS, HEIGHT, MOST_BYTES
from engine.dictionary.float_bounds import approximation
from engine.expressions.evaluator import parse_term
from engine.native.entries import (
    emit,
    enter_terms,
    gather,
    intern_one,
    intern_strings,
    mark_all,
    mark_bound,
    mark_rows,
    measure,
    sort_places,
    sort_rows,
    spread_terms,
    sweep_terms,
    taken,
    value_from,
)
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term

IRI, BLANK, LITERAL, STRING = 1, 2, 3, 4
"""These are the kinds of the kernel's `kinds`, where 0 is no term. IRIs and blank nodes that one message alone
describes have theirs below 0.

A STRING is a literal of xsd:string, which has neither language nor another datatype.
"""

Ints = NDArray[np.int64]
SPARE = 1 << 16
"""So many terms come before the first search for those that are out of use."""
_SPARE_BYTES = 1 << 8  # for each of the spare terms
_CELLS_A_TERM = 16  # that a search may look at for each term that came since the last
_FEW = 1 << 6
_AT_ONCE = 1 << 14
_REMEMBERED, _SHORT = 1 << 12, 1 << 8  # texts, and of how many bytes, that are kept as Python has them


@dataclass(frozen=True, slots=True, eq=False)
class FormTables:
    """Holds the queries of a network whose solutions are terms or triples, in order of their names, and the texts of
    the constants in triples.

    Compiled code finds the arrays (PLACES to CONSTANTS of batch_layout.py) at `address`. The last one has the numbers
    of the constants, and behind them the generation of terms in which they are these.
    """

    arrays: tuple[NDArray[Any], ...]
    constants: Sequence[str]
    table: Ints
    address: int

    @classmethod
    def from_queries(cls, places: Ints, queries: Ints, wanted: Ints, names: NDArray[np.uint8], constants: Sequence[str] = ()) -> "FormTables":
        arrays = places, queries, wanted, names, np.zeros(len(queries), np.int64), np.full(len(constants) + 1, -1)
        table = handle_of(arrays)
        return cls(arrays, constants, table, int(table.ctypes.data))


class Holder(Protocol):
    """A holder keeps numbers of terms between feeds."""

    def hold(self, held: "Held") -> None:
        """Mark all terms that the holder keeps, and forget what it merely remembers of others."""
        ...


class Held:
    """Marks terms in use; `looked_at` counts the cells that were looked at."""

    def __init__(self, numbers: int) -> None:
        self.marks = np.zeros(numbers, np.bool_)
        self.looked_at = 0

    def add(self, numbers: Ints) -> None:
        """Mark numbers in an array of whatever shape; a cell that is no number of a term does no harm."""
        self.looked_at += numbers.size
        mark_all(self.marks, np.ascontiguousarray(numbers, np.int64))

    def add_rows(self, rows: NDArray[np.int32], free: NDArray[np.int32]) -> None:
        """Mark the columns of the rows whose numbers are not in `free`."""
        self.looked_at += rows.size
        freed = np.zeros(len(rows), np.bool_)
        freed[free] = True
        for first in range(0, len(rows), _AT_ONCE):  # rows are parts of longer ones
            part = slice(first, first + _AT_ONCE)
            mark_rows(self.marks, np.ascontiguousarray(rows[part]), freed[part])


class TermTable:
    """Maps terms to numbers, where number 0 stands for an unbound variable.

    Numbers tell nothing of order, and may be other ones for the same log.
    """

    def __init__(self, spare: int = SPARE) -> None:
        self._spare = spare
        self.holders: WeakSet[Holder] = WeakSet()
        """The terms of these holders stay."""
        self._at = np.zeros(c.AT_WIDTH, np.int64)
        self._at[c.USED], self._at[c.SEED] = 1, secrets.randbits(63)
        self._now = self._at.data  # which gives Python's own numbers
        self._cells: Ints = np.zeros((_FEW, c.CELL_WIDTH), np.int64)
        self._heads: NDArray[np.int32] = np.zeros(_FEW, np.int32)
        self._text: NDArray[np.uint8] = np.zeros(_FEW * _FEW, np.uint8)
        self._kinds: NDArray[np.int8] = np.zeros(_FEW, np.int8)
        self._values: NDArray[np.float64] = np.zeros((1, 2))
        self._hard = np.zeros(_FEW, np.int64)
        self._small: Ints = np.zeros(c.MOST_SMALL, np.int64)
        self._numbers_by_text: dict[str, int] = {}
        self._texts_by_number: dict[int, str] = {}
        self._table = np.zeros(2 * c.N_ARRAYS, np.int64)  # where these arrays are
        self._address = int(self._table.ctypes.data)
        self._show()
        self._struct = np.zeros(ARROW_WORDS, np.int64)  # by which Arrow and compiled functions hand batches to each other
        self._batch = int(self._struct.ctypes.data)
        self._last = (0, 0, 0)  # search: the terms and bytes that it left, and how many terms must come to be worth as long a one
        self._due_at = self._limits()
        self.generation = 0
        """The generation changes whenever numbers may have been given to other terms."""

    def __len__(self) -> int:
        """Return the number of terms, without number 0."""
        return int(self._at[c.LIVE])

    def __deepcopy__(self, memo: dict[int, Any]) -> "TermTable":
        """Return a table with the same numbers, and arrays of its own, which stand elsewhere."""
        table = TermTable.restored(self.arrays())
        table.spare, table.generation = self._spare, self.generation
        return table

    @property
    def size(self) -> int:
        """Return how many bytes the table occupies."""
        return sum(a.nbytes for a in (self._cells, self._heads, self._text, self._kinds, self._values))

    @property
    def address(self) -> int:
        """Return where compiled functions find the table; it stays there."""
        return self._address

    # ------------------------------------------------------------ terms in
    def intern(self, text: str) -> int:
        """Return the number of a term given as canonical N-Triples text."""
        number = self._numbers_by_text.get(text)
        if number is None:
            number = self._interned(text.encode())
            if len(self._numbers_by_text) >= _REMEMBERED:
                self._numbers_by_text.clear()
            if len(text) <= _SHORT:
                self._numbers_by_text[text] = number
        return number

    def _interned(self, written: bytes) -> int:
        while (number := intern_one(self._address, written)) < 0:
            self._make_room(len(written))
        return number

    def take(self, rows: pa.RecordBatch, wanted: int, since: int) -> Ints:
        """Take in OCCURRENCES, and return a table (HEIGHT x n) of those that are not late.

        The table has the numbers of s, p, o, g, start, end, which row each was, and `since`. Of s, p, o, g the first
        `wanted` have numbers, the others are 0.
        """
        n = rows.num_rows
        table = np.empty((HEIGHT, n), np.int64)
        rows._export_to_c(self._batch)
        while (kept := taken(self._address, self._batch, wanted, since, table)) < 0:
            dictionaries = [rows.column(k).dictionary for k in range(wanted)]  # room for all that they may bring, for the batch begins anew
            self._make_room(sum(each.nbytes for each in dictionaries), sum(min(len(each), n) for each in dictionaries))
        return table if kept == n else table[:, :kept].copy()

    def intern_all(self, texts: Sequence[str]) -> Ints:
        """Return the numbers of terms given as canonical N-Triples texts."""
        return self.intern_strings(pa.array(texts, pa.utf8()))

    def intern_strings(self, strings: pa.StringArray) -> Ints:
        """Return the numbers of terms given as an Arrow array's strings, of which none is null."""
        numbers = np.empty(len(strings), np.int64)
        _, offsets, data = strings.buffers()
        at, begin = offsets.address + 4 * strings.offset, 0 if data is None else data.address
        done = 0
        while (done := intern_strings(self._address, at, begin, done, numbers)) < len(numbers):
            self._make_room(len(strings[done].as_buffer()))
        return numbers

    def _show(self) -> None:
        """Tell compiled functions where the arrays are now."""
        arrays: Sequence[NDArray[Any]] = (self._at, self._cells, self._heads, self._text, self._kinds, self._values, self._hard, self._small)
        self._table[:] = handle_of(arrays)

    def _make_room(self, n: int, terms: int = 1) -> None:
        """Make room for terms of n bytes in all."""
        at = self._at
        if at[c.HARD] == len(self._hard):  # longer, because a batch that had no room begins anew
            self._settle()
            self._hard = longer(self._hard, 2 * len(self._hard))
        if at[c.BYTES] + n > len(self._text):
            needed = within(int(at[c.BYTES]) + n, c.MOST_PLACES, "bytes")
            self._text = longer(self._text, min(max(2 * len(self._text), needed), c.MOST_PLACES))
        if at[c.FREE] == c.NONE and at[c.USED] + terms > len(self._cells):
            length = double_until(len(self._cells), within(int(at[c.USED]) + terms, c.MOST_NUMBERS, "terms"))
            self._cells, self._kinds = longer(self._cells, length), longer(self._kinds, length)
            if at[c.VALUED]:
                self._values = longer(self._values, len(self._cells))
        if at[c.LIVE] + terms > 2 * len(self._heads):
            self._heads = np.zeros(double_until(len(self._heads), (int(at[c.LIVE]) + terms + 1) // 2), np.int32)
            self._show()
            spread_terms(self._address)
        self._show()

    # ------------------------------------------------------------ what the kernel knows
    @property
    def kinds(self) -> NDArray[np.int8]:
        """Return the kinds, IRI, BLANK, LITERAL or STRING, by number of term."""
        return self._kinds

    @property
    def cells(self) -> Ints:
        """Return the cells by number of term, in the columns of `engine.dictionary.layout`, of which LINK is for
        others.
        """
        return self._cells

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Return a numeric literal's value and an error bound, by number of term.

        Other terms have (0, inf), and number 0 has (0, nan). The array is made once it is asked for.
        """
        if not self._now[c.VALUED]:
            self._values = np.zeros((len(self._cells), 2))
            self._values[0] = (0.0, np.nan)
            self._show()
            self._at[c.VALUED], done = 1, 1
            while (done := value_from(self._address, done)) < self._at[c.USED]:
                self._settle()
        if self._now[c.HARD]:
            self._settle()
        return self._values

    def _settle(self) -> None:
        """Approximate the literals that compiled code leaves to the host."""
        for number in self._hard[: self._at[c.HARD]].tolist():
            self._values[number] = approximation(self.text(number))
        self._at[c.HARD] = 0

    # ------------------------------------------------------------ terms out
    def text(self, number: int) -> str:
        """Return the term as N-Triples text; "" for 0."""
        found = self._texts_by_number.get(number)
        if found is None:
            place, link = self._cells[number].tolist()
            start, length = place & (c.MOST_PLACES - 1), link >> c.LINK_BITS
            if len(self._texts_by_number) >= _REMEMBERED:
                self._texts_by_number.clear()
            found = self._text[start : start + length].tobytes().decode()
            if length <= _SHORT:
                self._texts_by_number[number] = found
        return found

    def term(self, number: int) -> Term | None:
        """Return the term itself; None for 0."""
        return parse_term(self.text(number)) if number else None

    def get_term(self, number: int) -> Term:
        """Return the term of a number other than 0."""
        return parse_term(self.text(number))

    def intern_terms(self, terms: Iterable[Term]) -> list[int]:
        """Return the numbers of terms."""
        return [self.intern(str(term)) for term in terms]

    def text_array(self, numbers: Ints) -> pa.StringArray:
        """Return the texts of a flat array of numbers; null for unbound."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        offsets = np.empty(len(numbers) + 1, np.int32)
        return self._strings(numbers, offsets, *measure(self._address, numbers, offsets))

    def emitted(self, rows: Ints, forms: FormTables, schema: pa.Schema, *, tied: bool) -> pa.RecordBatch:
        """Return the rows that the kernel found for the queries of `forms` as solutions in order of emission.

        They are SOLUTIONS, or TIED ones, as `schema` says; if there are many terms, the values are packed. A row
        without a triple is left out where its query makes triples. Raises: OverflowError, MemoryError.
        """
        if forms.constants and (numbers := forms.arrays[CONSTANTS])[-1] != self.generation:
            numbers[:-1], numbers[-1] = [self.intern(text) for text in forms.constants], self.generation
        code = emit(self._address, rows, forms.address, tied, self._batch)
        if code < 0:
            fitting(-1 - code)
        return pa.RecordBatch._import_from_c(self._batch, packed_schema(schema) if code else schema)

    def _strings(self, numbers: Ints, offsets: NDArray[np.int32], size: int, unbound: int) -> pa.StringArray:
        """Return the texts of numbers, `size` bytes in all, of which `unbound` are unbound."""
        data, bits = np.empty(fitting(size), np.uint8), None
        gather(self._address, numbers, data)
        if unbound:
            bits = np.zeros(len(numbers) + 7 >> 3, np.uint8)
            mark_bound(numbers, bits)
            bits = pa.py_buffer(bits)
        return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(data), bits, unbound)

    def in_order(self, numbers: Ints) -> Ints:
        """Return the ranks of terms by N-Triples text, unbound first; equal numbers have equal ranks."""
        distinct, which = np.unique(numbers.reshape(-1), return_inverse=True)
        order, spare, rank = np.empty((3, len(distinct)), np.int64)
        sort_rows(self._address, distinct, np.zeros(len(distinct), np.int64), order, spare)
        rank[order] = np.arange(len(distinct))
        return rank[which].reshape(numbers.shape)

    def places_in_order(self, rows: Ints, entry: int, end: int, by: Ints, numbers: Ints) -> Ints:
        """Return the order of rows in which those with equal columns `entry` and `end` stand together.

        Among these first `by` decides, then the texts of `numbers` (rows x columns).
        """
        order, spare = np.empty((2, len(rows)), np.int64)
        sort_places(self._address, rows, entry, end, by, numbers, order, spare)
        return order

    # ------------------------------------------------------------ terms out of use
    def collect(self, pending: Iterable[Ints] = ()) -> None:
        """Free, between feeds and if that is due, the terms that neither a holder nor `pending` has."""
        if not self.due:
            return
        held = Held(int(self._at[c.USED]))
        for holder in self.holders:
            holder.hold(held)
        for numbers in pending:
            held.add(numbers)
        size = int((self._cells[: len(held.marks), c.LINK][held.marks] >> c.LINK_BITS).sum())
        self._last = int(held.marks.sum()), size, held.looked_at // _CELLS_A_TERM
        self._due_at = self._limits()
        self._sweep(held.marks, *self._due_at)

    @property
    def due(self) -> bool:
        """Return whether enough terms have come for a search for those out of use to be a small part of the work."""
        terms, size = self._due_at
        return self._now[c.LIVE] >= terms or self._now[c.BYTES] >= size or not self._spare

    @property
    def spare(self) -> int:
        """Return how many terms come between two searches, at least; with 0 each feed is followed by one."""
        return self._spare

    @spare.setter
    def spare(self, terms: int) -> None:
        self._spare = terms
        self._due_at = self._limits()

    def _limits(self) -> tuple[int, int]:
        """Return the terms and the bytes with which the next search is due."""
        terms, size, looked_at = self._last
        patience = max(self._spare, terms, looked_at)
        return terms + patience, size + max(patience * _SPARE_BYTES, size)

    def _sweep(self, marks: NDArray[np.bool_], most: int, most_bytes: int) -> None:
        """Free the terms that are not marked.

        The room that so many terms and bytes may come to need stays, as far as it is there.
        """
        self._settle()
        self.generation += 1
        self._numbers_by_text.clear()
        self._texts_by_number.clear()
        used = int(np.flatnonzero(marks)[-1]) + 1 if marks.any() else 1
        moved = np.empty(max(min(len(self._text), most_bytes), _FEW * _FEW), np.uint8)
        heads = np.zeros(min(len(self._heads), 1 << max(most, _FEW).bit_length() - 1), np.int32)
        self._at[c.USED] = used
        self._small[:] = c.NONE
        sweep_terms(self._address, marks, moved)
        self._text, self._heads = moved, heads
        self._show()
        spread_terms(self._address)
        self._cells[used : len(marks)] = 0
        room = max(used, most, _FEW)
        if 4 * room < len(self._cells):
            self._cells, self._kinds = self._cells[:room].copy(), self._kinds[:room].copy()
            if self._at[c.VALUED]:
                self._values = self._values[:room].copy()
        self._show()

    # ------------------------------------------------------------ snapshots
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `restored` takes: the texts in order of number, where each ends, and what says when
        the next search is due.

        A number that is free has an empty text.
        """
        numbers = np.arange(1, self._at[c.USED])
        ends = np.cumsum(self._cells[1 : self._at[c.USED], c.LINK] >> c.LINK_BITS)
        data = np.empty(ends[-1] if len(ends) else 0, np.uint8)
        gather(self._address, numbers, data)
        return {"texts": data, "ends": ends, "searched": np.array(self._last, np.int64)}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> "TermTable":
        """Return a table with the same numbers.

        Arrays of earlier versions do not say when a search is due: it is due at once if there are many.
        """
        table, ends = cls(), arrays["ends"]
        if "searched" in arrays:
            terms, size, looked_at = arrays["searched"].tolist()
            table._last = terms, size, looked_at
            table._due_at = table._limits()
        table._text = np.require(arrays["texts"], np.uint8, ["C", "W"]) if len(ends) else table._text
        room = max(len(ends) + 1, _FEW)
        table._cells, table._kinds = np.zeros((room, c.CELL_WIDTH), np.int64), np.zeros(room, np.int8)
        table._heads = np.zeros(1 << room.bit_length() - 1, np.int32)
        table._show()
        enter_terms(table._address, np.ascontiguousarray(ends, np.int64))
        spread_terms(table._address)
        return table


def numbers_in(state: object) -> Ints:
    """Return all integers that may be the number of a term, flat, in what a collector gives as its state."""
    found: list[int] = []
    parts = [state]
    while parts:
        match parts.pop():
            case int() as number:
                if number.bit_length() < 64:  # a sum may be longer
                    found.append(number)
            case list() | tuple() as several:
                parts += several
            case dict() as named:
                parts += named.values()
            case str() | float() | None:
                pass
            case other:
                raise TypeError(f"a state may not have a {type(other).__name__}")
    return np.array(found, np.int64)


def handle_of(arrays: Sequence[NDArray[Any]]) -> Ints:
    """Return the addresses of arrays and their lengths, as compiled code takes them; their owner keeps them."""
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64).reshape(-1)


def fitting(size: int) -> int:
    """Return `size`, if Arrow's offsets can say it.

    Raises: OverflowError.
    """
    if size > MOST_BYTES:
        raise OverflowError(f"{size} bytes of terms at once, more than Arrow's utf8 holds (feed smaller blocks)")
    return size


def within(needed: int, most: int, things: str) -> int:
    """Return `needed`, if a table of terms can have so many things.

    Raises: MemoryError.
    """
    if needed > most:
        raise MemoryError(f"{needed} {things} of terms, more than the {most} that one engine holds (run the queries with more partitions)")
    return needed


def double_until(length: int, least: int) -> int:
    """Return the length, doubled until it is at least `least`."""
    while length < least:
        length *= 2
    return length


def longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return `array` with more rows, the new ones zero."""
    found = np.zeros((length, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found
