"""Tables of numbers are sets of rows, and may grow.

What is added to a table stands behind its rows in room that both tables share, so that growing costs no copy.
"""

import secrets
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engine.native.entries import spread_rows, unite_rows

Ints = NDArray[np.int64]
EMPTY: Ints = np.zeros((0, 3), np.int64)
FEW = 32
"""Up to so many rows are compared one by one."""
LEAST_ROOM = 1000
"""A table of so many rows is given room to grow."""
_NO_SLOTS: NDArray[np.int32] = np.zeros(0, np.int32)


class _Room(np.ndarray[tuple[int, int], np.dtype[np.int64]]):
    """Holds what tables that grow from each other share, column by column, which is how they are searched.

    The first `used` rows are some table's, and never change. `slots` finds them by hash once `united` has looked for
    many.
    """

    used: int
    slots: NDArray[np.int32]


_growing = Lock()
_SEED = secrets.randbits(63)
"""This seed of the hashes keeps anybody from preparing rows that collide. No output depends on it."""


def grown(rows: Ints, more: Ints) -> Ints:
    """Return the rows, and then more of as many columns."""
    if not len(more):
        return rows
    n = len(rows) + len(more)
    if n < LEAST_ROOM:
        return np.concatenate([rows, more])
    with _growing:
        room = _room_of(rows)
        if room is None or room.used != len(rows) or room.shape[1] < n:  # no room, or another table has grown from this one
            room = _new_room(rows, n)
        room[:, len(rows) : n] = more.T
        room.used, room.slots = n, _NO_SLOTS
    return room[:, :n].T.view(np.ndarray)


def united(rows: Ints, more: Ints) -> Ints:
    """Return the rows, no two of which are equal, and then those of more that are not among them, each once."""
    if len(rows) + len(more) < LEAST_ROOM or (len(more) <= FEW and not _is_hashed(rows)):
        return grown(rows, without(distinct(more), rows))
    n = len(rows) + len(more)
    with _growing:
        room = _room_of(rows)
        if room is None or room.used != len(rows) or room.shape[1] < n:  # as in `grown`
            room = _new_room(rows, n)
        if 4 * n > 3 * len(room.slots):
            room.slots = np.zeros(1 << (n + n // 3).bit_length(), np.int32)
            spread_rows(room, room.slots, room.used, _SEED)
        n = room.used = unite_rows(room, room.slots, room.used, _SEED, np.ascontiguousarray(more))
    return rows if n == len(rows) else room[:, :n].T.view(np.ndarray)


def _is_hashed(rows: Ints) -> bool:
    room = _room_of(rows)
    return room is not None and room.used == len(rows) and len(room.slots) > 0


def with_room(rows: Ints) -> Ints:
    """Return the same rows, able to grow without a copy if they are many."""
    if len(rows) < LEAST_ROOM or _room_of(rows) is not None:
        return rows
    return _new_room(rows, len(rows))[:, : len(rows)].T.view(np.ndarray)


def _new_room(rows: Ints, n: int) -> _Room:
    room = _Room((rows.shape[1], n + n // 2), np.int64)
    room[:, : len(rows)] = rows.T
    room.used, room.slots = len(rows), _NO_SLOTS
    return room


def addition(before: Ints, now: Ints) -> Ints | None:
    """Return what `now` has behind the rows of `before`; None if `now` has not grown from `before`."""
    return now[len(before) :] if len(before) <= len(now) and before.shape[1] == now.shape[1] and address(before) == address(now) else None


def difference(before: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Return stretches of both tables, outside of which they have the same rows at the same places from either end.

    So rows that are in one table alone are in its stretch. A row of a stretch may be in the other table too.
    """
    more = addition(before, now)
    if more is not None:
        return before[:0], more
    both = min(len(before), len(now))
    start = _count_equal(before[:both], now[:both])
    end = _count_equal(before[start:][::-1][: both - start], now[start:][::-1][: both - start])
    return before[start : len(before) - end], now[start : len(now) - end]


def _count_equal(one: Ints, other: Ints) -> int:
    """Return how many rows at the beginning of two tables of one length are equal."""
    differs = np.zeros(len(one), np.bool_)
    for column, its in zip(one.T, other.T, strict=True):
        differs |= column != its
    first = int(differs.argmax()) if len(differs) else 0
    return first if len(differs) and differs[first] else len(differs)


def address(rows: Ints) -> int:
    """Return the address of the first row; tables that have grown from each other have the same."""
    return int(rows.__array_interface__["data"][0])


def _room_of(rows: Ints) -> _Room | None:
    base = rows.base
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base if isinstance(base, _Room) and address(base) == address(rows) else None


def distinct(rows: Ints) -> Ints:
    """Return each row once, where the first of its kind stood."""
    if len(rows) < 2:
        return rows
    order, new = _grouped(rows)
    return rows if new.all() else rows[np.sort(order[new])]


def sort_values(values: Ints) -> Ints:
    """Return the values of an array in order, each once.

    From 3,000 values on, `np.unique` takes three to ten times as long, since it hashes them (numpy 2.3 and later).
    """
    sorted_ = np.sort(values)
    new = np.ones(len(sorted_), np.bool_)
    np.not_equal(sorted_[1:], sorted_[:-1], out=new[1:])
    return sorted_[new]


def without(rows: Ints, others: Ints) -> Ints:
    """Return the rows, no two of which are equal, that are not among others."""
    if not len(rows) or not len(others):
        return rows
    both = min(len(rows), len(others))
    if (rows[:both] == others[:both]).all():  # one goes on where the other ends
        return rows[both:]
    if len(rows) <= FEW:
        return rows[[not (others[others[:, 0] == row[0]] == row).all(axis=1).any() for row in rows]]
    order, new = _grouped(np.concatenate([others, rows]))
    first = order[new]
    return rows[np.sort(first[first >= len(others)]) - len(others)]


def _grouped(rows: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return an order in which equal rows stand together as they stood, and where a new kind begins."""
    order = np.lexsort(rows.T[::-1])
    sorted_ = rows[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (sorted_[1:] != sorted_[:-1]).any(axis=1)
    return order, new
