"""This module picks a block's occurrences for the networks of one partition: those of its share, before any term of
the others is numbered.
"""

from collections.abc import Mapping, Set

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.batch_layout import TERMS
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.messages import (
    NO_END,
    Block,
    CatchUp,
    ChangeInstances,
    Drop,
    DropStream,
    Entail,
    Entry,
    Events,
    Facts,
    MessageKey,
    Pause,
    Promote,
    Register,
    RowSource,
    SetStream,
    int64s,
)  # fmt: skip
from engine.partitioning import Division, Part, PartitionShare, TimeSlices, events_of, key_column, number_bodies, source_of
from engine.runtime.watermarks import Arrivals, concatenate_arrivals, make_arrivals

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Feed = tuple[str, Division | None]
"""A feed is a stream, and what it is dealt out by to some networks; None: these see all of it."""
Wanted = Mapping[str, Set[Division | None]]
"""By stream, what it is dealt out by."""
ELSEWHERE = "<\0>"
"""This term stands for the terms of occurrences that another partition has: no query can name it."""


def route_rows(
    block: Block, wanted: Wanted, share: PartitionShare, terms: TermTable, keys: Mapping[str, MessageKey], *, marked: bool
) -> tuple[dict[Feed, Arrivals], dict[int, int]]:
    """Return what networks get by the feeds that are `wanted`, without the late occurrences.

    Return also, by entry, the latest end of all its timely occurrences, other partitions' included.

    `keys` are the message keys that streams declare. Where all that is wanted is dealt out as its stream is, only the
    share's rows are read. Something may come to pass at the first instant that there is, whatever happens at it. So
    another partition's instants are marked by occurrences of ELSEWHERE. They are marked everywhere if `marked`, else
    where instants wait for time, since a background may come before they are released. What is dealt out by time
    depends on no first instant.
    """
    events = events_of(block)
    source = source_of(block)
    latest = source.find_latest_ends(events)
    wanted = _without_idle(wanted, source, share)
    parts = {part for stream in wanted.values() for part in stream}
    if not parts:
        return {}, latest
    mine: dict[Division, Bools]
    if all(part is (Part.MESSAGE if name in keys else Part.SUBJECT) for name, stream in wanted.items() for part in stream):
        rows, places = source.read_own(share.partition, share.partitions, events, keys)
        mine = dict.fromkeys((Part.MESSAGE, Part.SUBJECT), np.ones(len(places), np.bool_))
    else:
        rows, places = _read_rows(source, parts, share)
        mine = {part: share.select_rows(rows.column(part.column)) for part in parts if isinstance(part, Part) and part is not Part.MESSAGE}
        mine |= {part: part.select_rows(int64s(rows.column("end")), share) for part in parts if isinstance(part, TimeSlices)}
        if Part.MESSAGE in parts:
            mine[Part.MESSAGE] = share.select_rows(key_column(rows, number_bodies(events), events, keys))
    counts, names = [e.rows for e in events], list(dict.fromkeys(e.stream for e in events))
    since, which = np.repeat([e.offset for e in events], counts), np.repeat([names.index(e.stream) for e in events], counts)
    timely = ~rows.column("late").to_numpy(zero_copy_only=False)
    chosen: dict[Feed, Bools] = {}
    for k, name in enumerate(names):
        here = timely & (which[places] == k)
        for part in wanted.get(name, ()):
            chosen[name, part] = here if part is None else here & mine[part]
    found = _number_terms(rows, chosen, since[places], terms)
    passed = {e.offset: -c.BIG if e.watermark is None else e.watermark for e in events}
    if marked or any(end > passed[offset] for offset, end in latest.items() if offset in passed):
        end = source.read_ends()
        waiting = (end != NO_END) & (marked | (end > np.repeat([*passed.values()], counts)))
        for (name, part), arrived in found.items():
            if isinstance(part, Part):
                others = waiting & (which == names.index(name))
                others[places[mine[part]]] = False
                found[name, part] = _with_marks(arrived, _mark_instants(others, since, end, terms))
    return found, latest


def _read_rows(source: RowSource, parts: Set[Division | None], share: PartitionShare) -> tuple[pa.RecordBatch, Ints]:
    """Return rows with their places: where all is dealt out by time, those of the share, else all."""
    by_time = [part for part in parts if isinstance(part, TimeSlices)]
    if len(by_time) < len(parts):
        return source.read_all(), np.arange(source.num_rows)
    ends = source.read_ends()
    return source.read_some(np.logical_or.reduce([part.select_rows(ends, share) for part in by_time]))


def _without_idle(wanted: Wanted, source: RowSource, share: PartitionShare) -> Wanted:
    """Return what is wanted without what is dealt out by time and has nothing for this share.

    Only the ends of rows are read for that.
    """
    by_time = {part for stream in wanted.values() for part in stream if isinstance(part, TimeSlices)}
    if not by_time:
        return wanted
    ends = source.read_ends()
    idle = {part for part in by_time if not part.select_rows(ends[ends != NO_END], share).any()}
    return {name: stream - idle for name, stream in wanted.items()}


def _with_marks(arrived: Arrivals, marks: Arrivals) -> Arrivals:
    if not len(marks):
        return arrived
    both = concatenate_arrivals([arrived, marks])
    return both.where(np.argsort(both.since, kind="stable"))


def _number_terms(rows: pa.RecordBatch, chosen: Mapping[Feed, Bools], since: Ints, terms: TermTable) -> dict[Feed, Arrivals]:
    kept = np.zeros(len(since), np.bool_)
    for mask in chosen.values():
        kept |= mask
    whole = np.flatnonzero(kept)
    arrived = Arrivals(terms.take(rows if len(whole) == len(since) else rows.take(pa.array(whole)), TERMS, 0))
    arrived.table[c.IN_SINCE] = since[whole]
    found = {}
    for feed, mask in chosen.items():
        own = mask[whole]
        found[feed] = arrived if own.all() else arrived.where(own)
    return found


def _mark_instants(mask: Bools, since: Ints, end: Ints, terms: TermTable) -> Arrivals:
    """Return one occurrence of ELSEWHERE for each instant of an entry; instants that do not come in order may have
    several.
    """
    which = np.flatnonzero(mask)
    first = np.ones(len(which), np.bool_)
    first[1:] = (np.diff(since[which]) != 0) | (np.diff(end[which]) != 0)
    which = which[first]
    nothing = np.full(len(which), terms.intern(ELSEWHERE), np.int64)
    return make_arrivals(nothing, nothing, nothing, np.zeros(len(which), np.int64), end[which], end[which], since[which])


_CUTS = Register | Pause | CatchUp | Promote | Drop | ChangeInstances | Facts | Entail | SetStream | DropStream


def cut_at_controls(block: Block) -> list[Block]:
    """Cut a block into parts, so that what an entry changes for those who are dealt to stands at the end of one."""
    if not any(isinstance(entry, _CUTS) for entry in block.entries):
        return [block]
    parts: list[Block] = []
    rows, taken_, begin, row = block.rows, list[Entry](), 0, 0
    for k, entry in enumerate(block.entries):
        taken_.append(entry)
        row += entry.rows if isinstance(entry, Events) else 0
        if isinstance(entry, _CUTS) or k == len(block.entries) - 1:
            parts.append(Block(tuple(taken_), rows.slice(begin, row - begin)))
            taken_, begin = [], row
    return parts
