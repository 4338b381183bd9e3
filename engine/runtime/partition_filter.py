"""This module picks a block's occurrences for the networks of one bucket: those of its share, before any term of the others is numbered."""

from collections.abc import Mapping, Sequence, Set

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.native.arrow_import import TERMS
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.messages import Block, Drop, Entail, Entry, Events, Facts, Register, int64s
from engine.partitioning.hash_partitioner import Part, PartitionShare
from engine.runtime.watermarks import Arrivals, concatenate_arrivals, import_arrivals, make_arrivals

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Feed = tuple[str, Part | None]
"""A feed is a stream, and the part that it is dealt out by to some networks; None: these see all of it."""
ELSEWHERE = "<\0>"
"""This term stands for the terms of occurrences that another bucket has: no query can name it."""


def route_rows(
    rows: pa.RecordBatch, events: Sequence[Events], wanted: Mapping[str, Set[Part | None]], share: PartitionShare, terms: TermTable, *, marked: bool
) -> tuple[dict[Feed, Arrivals], dict[int, int]]:
    """Return what networks get by the feeds that are `wanted`, without the late occurrences.

    Return also, by entry, the latest end of all its timely occurrences, other buckets' included.

    Something may come to pass at the first instant that there is, whatever happens at it. So another bucket's instants are marked by occurrences of
    ELSEWHERE. They are marked everywhere if `marked`, else where instants wait for time, since a background may come before they are released.
    """
    end, timely = int64s(rows.column("end")), ~rows.column("late").to_numpy(zero_copy_only=False)
    counts = [e.rows for e in events]
    since = np.repeat([e.offset for e in events], counts)
    waiting = np.ones(len(end), np.bool_) if marked else end > np.repeat([-c.BIG if e.watermark is None else e.watermark for e in events], counts)
    mine: dict[Part, Bools] = {
        part: share.select_rows(rows.column(part.column)) for part in {p for parts in wanted.values() for p in parts if p is not None}
    }
    names = list(dict.fromkeys(e.stream for e in events))
    which = np.repeat([names.index(e.stream) for e in events], counts)
    chosen: dict[Feed, Bools] = {}
    others: dict[Feed, Bools] = {}
    for k, name in enumerate(names):
        here = timely & (which == k)
        for part in wanted.get(name, ()):
            chosen[name, part] = here if part is None else here & mine[part]
            if part is not None:
                others[name, part] = here & ~mine[part] & waiting
    found = _number_terms(rows, chosen, since, terms)
    for feed, mask in others.items():
        marks = _mark_instants(mask, since, end, terms)
        if len(marks):
            both = concatenate_arrivals([found[feed], marks])
            found[feed] = both.where(np.argsort(both.since, kind="stable"))
    return found, _find_latest_ends(since[timely], end[timely])


def _number_terms(rows: pa.RecordBatch, chosen: Mapping[Feed, Bools], since: Ints, terms: TermTable) -> dict[Feed, Arrivals]:
    kept = np.zeros(len(since), np.bool_)
    for mask in chosen.values():
        kept |= mask
    whole = np.flatnonzero(kept)
    arrived = import_arrivals(rows if len(whole) == len(since) else rows.take(pa.array(whole)), terms, TERMS)
    arrived.table[c.IN_SINCE] = since[whole]
    found = {}
    for feed, mask in chosen.items():
        own = mask[whole]
        found[feed] = arrived if own.all() else arrived.where(own)
    return found


def _mark_instants(mask: Bools, since: Ints, end: Ints, terms: TermTable) -> Arrivals:
    """Return one occurrence of ELSEWHERE for each instant of an entry; instants that do not come in order may have several."""
    which = np.flatnonzero(mask)
    first = np.ones(len(which), np.bool_)
    first[1:] = (np.diff(since[which]) != 0) | (np.diff(end[which]) != 0)
    which = which[first]
    nothing = np.full(len(which), terms.intern(ELSEWHERE), np.int64)
    return make_arrivals(nothing, nothing, nothing, np.zeros(len(which), np.int64), end[which], end[which], since[which])


def _find_latest_ends(since: Ints, end: Ints) -> dict[int, int]:
    if not len(end):
        return {}
    first = np.flatnonzero(np.diff(since, prepend=-1))
    return dict(zip(since[first].tolist(), np.maximum.reduceat(end, first).tolist(), strict=True))


def cut_at_controls(block: Block) -> list[Block]:
    """Cut a block into parts, so that what an entry changes for those who are dealt to stands at the end of one."""
    if not any(isinstance(entry, Register | Drop | Facts | Entail) for entry in block.entries):
        return [block]
    parts: list[Block] = []
    taken_, begin, row = list[Entry](), 0, 0
    for k, entry in enumerate(block.entries):
        taken_.append(entry)
        row += entry.rows if isinstance(entry, Events) else 0
        if isinstance(entry, Register | Drop | Facts | Entail) or k == len(block.entries) - 1:
            parts.append(Block(tuple(taken_), block.rows.slice(begin, row - begin)))
            taken_, begin = [], row
    return parts
