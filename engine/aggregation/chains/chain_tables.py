"""The live events of a chain stand in tables, with what is known of each key."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.chains import layout as l
from engine.aggregation.group_tables import layout as g
from engine.native.entries import spread_chains
from epsparql.algebra import Aggregate, AggregateFunction
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable

Ints = NDArray[np.int64]
_FIRST = 64


@dataclass(frozen=True, slots=True)
class ChainShape:
    """Describes a chain: how many operands it has, how long a match lasts at most (µs), and the variables that all
    operands share.

    The variable `marked` says of each row which operand it is a solution of, by one of the terms `marks`. `operands`
    says for each set function which operand binds its argument; None if each match counts.
    """

    steps: int
    span: int
    keys: tuple[Variable, ...]
    marked: Variable
    marks: tuple[str, ...]
    operands: tuple[int | None, ...]


class ChainTables(NamedTuple):
    """Holds what `sweep_chains` works on; widths depend on the chain, the columns of a row and the set functions."""

    at: Ints
    events: Ints
    keys: Ints
    heads: Ints
    labels: Ints
    key_columns: Ints
    group_columns: Ints
    links: Ints


def count_parts(held: Sequence[Aggregate], operands: Sequence[int | None]) -> int:
    """Return how many parts the weights of these set functions have: the count, and those of COUNT and SUM."""
    return 1 + sum(0 if operand is None else 1 if a.function is AggregateFunction.COUNT else 2 for a, operand in zip(held, operands, strict=True))


def chain_tables(shape: ChainShape, held: Sequence[Aggregate], reads: Sequence[Variable], groups: Sequence[Variable]) -> ChainTables:
    """Return empty tables of a chain whose rows have the columns `reads`, and whose matches are grouped by `groups`."""
    at, parts = np.zeros(l.CHAIN_AT_WIDTH, np.int64), count_parts(held, shape.operands)
    at[[l.STEPS, l.PARTS, l.SPAN, l.FREE_KEY]] = shape.steps, parts, shape.span, g.NONE
    links, part = np.zeros((len(held), l.LINK_WIDTH), np.int64), 1
    for link, aggregate, operand in zip(links, held, shape.operands, strict=True):
        counts = aggregate.function is AggregateFunction.COUNT
        link[l.LINK_OP] = g.COUNT_TOTAL if counts else g.SUM_TOTAL
        if operand is not None:
            link[l.LINK_PART], link[l.LINK_WIDE] = part, 0 if counts else part + 1
            part += 1 if counts else 2
    events = np.zeros((_FIRST, l.EVENT_WIDTH + 2 * (parts - 1) + 2 * parts + len(reads)), np.int64)
    width = l.KEY_WIDTH + len(shape.keys) + 2 * parts + parts * shape.steps * (shape.steps - 1)
    key_columns, group_columns = (np.array([reads.index(v) for v in variables], np.int64) for variables in (shape.keys, groups))
    return ChainTables(at, events, np.zeros((_FIRST, width), np.int64), _heads(_FIRST), _heads(_FIRST), key_columns, group_columns, links)


def with_room_for(t: ChainTables, n: int) -> ChainTables:
    """Return the tables with room for n more events, each of a key of its own."""
    live, keys = int(t.at[l.NEXT_EVENT] - t.at[l.OLDEST_EVENT]) + n, int(t.at[l.KEYS_TOP]) + n
    if live > len(t.events):
        t = t._replace(events=_in_ring(t, live_events(t), 2 * live))
    if keys > len(t.keys):
        larger = np.zeros((max(keys, 2 * len(t.keys)), t.keys.shape[1]), np.int64)
        larger[: len(t.keys)] = t.keys
        t = t._replace(keys=larger)
    if live > len(t.labels) or t.at[l.LIVE_KEYS] + n > len(t.heads):
        t = t._replace(heads=_heads(2 * int(t.at[l.LIVE_KEYS] + n)), labels=_heads(2 * live))
        spread_chains(*t)
    return t


def live_events(t: ChainTables) -> Ints:
    """Return the rows of the live events, oldest first."""
    found: Ints = t.events[np.arange(t.at[l.OLDEST_EVENT], t.at[l.NEXT_EVENT]) & (len(t.events) - 1)]
    return found


def kept_chains(t: ChainTables) -> dict[str, Ints]:
    """Return the part of the tables that a snapshot needs."""
    return {"chain.at": t.at, "chain.events": live_events(t), "chain.keys": t.keys[: t.at[l.KEYS_TOP]]}


def restored_chains(t: ChainTables, kept: dict[str, Ints]) -> ChainTables:
    """Return empty tables filled with what `kept_chains` gave."""
    events, keys = kept["chain.events"], kept["chain.keys"]
    t = t._replace(at=kept["chain.at"].copy(), keys=np.zeros((max(_FIRST, len(keys)), t.keys.shape[1]), np.int64))
    t.keys[: len(keys)] = keys
    t = t._replace(events=_in_ring(t, events, max(_FIRST, len(events))))
    t = t._replace(heads=_heads(2 * len(keys)), labels=_heads(2 * len(events)))
    spread_chains(*t)
    return t


def _in_ring(t: ChainTables, events: Ints, room: int) -> Ints:
    """Return a ring of at least so many rows in which the live events stand by their numbers."""
    ring = np.zeros((1 << (room - 1).bit_length(), t.events.shape[1]), np.int64)
    ring[np.arange(t.at[l.OLDEST_EVENT], t.at[l.NEXT_EVENT]) & (len(ring) - 1)] = events
    return ring


def _heads(rows: int) -> Ints:
    return np.full(1 << max(rows - 1, _FIRST).bit_length(), g.NONE, np.int64)
