"""Terms are sorted by text, because bytes of UTF-8 stand in the order of code points.

0, the unbound, comes first, because it has no bytes.
"""

from typing import Any, NamedTuple

from engine.dictionary.native import borrowing, entry_point, inlined
from engine.dictionary.native.handle import length_of, text_at
from engine.dictionary.native.memory import big_end_first, byte, word

RUN = 8  # rows that are sorted by insertion


@borrowing
def text_before(cells, text, a, b):
    """Return whether the text of number a is less than that of number b."""
    m, n = length_of(cells, a), length_of(cells, b)
    p, q = text_at(cells, text, a), text_at(cells, text, b)
    k, common = 0, min(m, n)
    while k + 8 <= common:
        x, y = word(p + k), word(q + k)
        if x != y:
            return big_end_first(x) < big_end_first(y)
        k += 8
    while k < common:
        if byte(p + k) != byte(q + k):
            return byte(p + k) < byte(q + k)
        k += 1
    return m < n


class RowKeys(NamedTuple):
    """Holds what rows are sorted by: `by`, `then`, and the texts of the rows' `numbers`, column by column."""

    by: Any
    then: Any
    numbers: Any
    cells: Any
    text: Any


@inlined
def row_before(keys, i, j):
    """Return whether row i comes before row j."""
    if keys.by[i] != keys.by[j]:
        return keys.by[i] < keys.by[j]
    if keys.then[i] != keys.then[j]:
        return keys.then[i] < keys.then[j]
    for k in range(keys.numbers.shape[1]):
        a, b = keys.numbers[i, k], keys.numbers[j, k]
        if a != b:
            return text_before(keys.cells, keys.text, a, b)
    return False


@inlined
def insert_rows(keys, order, first, after):
    """Sort order[first:after] by insertion, for a few rows."""
    for k in range(first + 1, after):
        row, at = order[k], k
        while at > first and row_before(keys, row, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = row


@borrowing
def merge_runs(keys, order, spare, low, middle, high):
    """Merge order[low:middle] and order[middle:high] into one run; of equals, those of the former come first."""
    left, right = low, middle
    for k in range(low, high):
        if left < middle and (right == high or not row_before(keys, order[right], order[left])):
            spare[k] = order[left]
            left += 1
        else:
            spare[k] = order[right]
            right += 1
    for k in range(low, high):
        order[k] = spare[k]


@borrowing
def sort_order(keys, order, spare, first, after):
    """Sort order[first:after]; equal rows stay as they stand."""
    for low in range(first, after, RUN):
        insert_rows(keys, order, low, min(low + RUN, after))
    width = RUN
    while width < after - first:
        for low in range(first, after - width, 2 * width):
            merge_runs(keys, order, spare, low, low + width, min(low + 2 * width, after))
        width *= 2


@entry_point
def sort_places(rows, when, keys, order, spare):
    """Fill `order` with rows of which those with equal entry and end (`when`: their columns in `rows`) stand together, and stay there."""
    entry, end = when
    first = 0
    while first < len(rows):
        order[first], after = first, first + 1
        while after < len(rows) and rows[after, end] == rows[first, end] and rows[after, entry] == rows[first, entry]:
            order[after] = after
            after += 1
        if after > first + 1:
            sort_order(keys, order, spare, first, after)
        first = after


@entry_point
def sort_rows(keys, order, spare):
    """Fill `order` with all rows in their order."""
    for k in range(len(order)):
        order[k] = k
    sort_order(keys, order, spare, 0, len(order))
