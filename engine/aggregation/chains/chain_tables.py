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
    says for each set function which operand binds its argument; None if each match counts. Behind the operands, `marks`
    has one for each of `gaps`: the number of a gap with WITHOUT, and whether its blockers have the key.
    """

    steps: int
    span: int
    keys: tuple[Variable, ...]
    marked: Variable
    marks: tuple[str, ...]
    operands: tuple[int | None, ...]
    gaps: tuple[tuple[int, bool], ...] = ()


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


EXTREMES = {AggregateFunction.MIN: g.MIN, AggregateFunction.MAX: g.MAX}


def count_parts(held: Sequence[Aggregate], operands: Sequence[int | None]) -> int:
    """Return how many parts the weights of these set functions have: the count, and those of COUNT and SUM."""
    own = {AggregateFunction.COUNT: 1, AggregateFunction.SUM: 2}
    return 1 + sum(0 if operand is None else own.get(a.function, 0) for a, operand in zip(held, operands, strict=True))


def chain_tables(shape: ChainShape, held: Sequence[Aggregate], reads: Sequence[Variable], groups: Sequence[Variable]) -> ChainTables:
    """Return empty tables of a chain whose rows have the columns `reads`, and whose matches are grouped by `groups`."""
    at, parts, steps = np.zeros(l.CHAIN_AT_WIDTH, np.int64), count_parts(held, shape.operands), shape.steps
    extremes = sum(a.function in EXTREMES for a in held)
    at[[l.STEPS, l.PARTS, l.SPAN, l.FREE_KEY, l.COMMON_KEY, l.EXTREMES]] = steps, parts, shape.span, g.NONE, g.NONE, extremes
    at[l.COUNTS_MATCHES] = extremes < len(held)
    at[l.CUTS_BY_KEY], at[l.CUTS_ALL] = (sum(1 << gap for gap, by_key in shape.gaps if by_key == keyed) for keyed in (True, False))
    stacks, entry = extremes > 0 or len(shape.gaps) > 0, extremes + 2
    if shape.gaps:
        entry = extremes + 1 + 2 * parts
    events = l.EVENT_WIDTH + 2 * (parts - 1) + g.VALUE_WIDTH * extremes + 2 * parts + len(reads)
    keys = l.KEY_WIDTH + len(shape.keys) + 2 * parts + parts * steps * (steps - 1)
    if stacks:
        events += l.PLACE_WIDTH + (steps - 1) * entry
        keys += l.STACKS_WIDTH + steps * (steps - 1) // 2 * entry
    key_columns, group_columns = (np.array([reads.index(v) for v in variables], np.int64) for variables in (shape.keys, groups))
    empty = np.zeros((_FIRST, events), np.int64), np.zeros((_FIRST, keys), np.int64)
    return ChainTables(at, *empty, _heads(_FIRST), _heads(_FIRST), key_columns, group_columns, _link(shape, held))


def _link(shape: ChainShape, held: Sequence[Aggregate]) -> Ints:
    """Return the links of the set functions to the parts of a weight and to its extremes."""
    links, part, extreme = np.zeros((len(held), l.LINK_WIDTH), np.int64), 1, 0
    for link, aggregate, operand in zip(links, held, shape.operands, strict=True):
        if aggregate.function in EXTREMES:
            link[l.LINK_OP], link[l.LINK_PART] = EXTREMES[aggregate.function], extreme
            extreme += 1
            continue
        counts = aggregate.function is AggregateFunction.COUNT
        link[l.LINK_OP] = g.COUNT_TOTAL if counts else g.SUM_TOTAL
        if operand is not None:
            link[l.LINK_PART], link[l.LINK_WIDE] = part, 0 if counts else part + 1
            part += 1 if counts else 2
    return links


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
    at = t.at.copy()  # older snapshots have fewer columns
    at[: len(kept["chain.at"])] = kept["chain.at"]
    t = t._replace(at=at, keys=np.zeros((max(_FIRST, len(keys)), t.keys.shape[1]), np.int64))
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
