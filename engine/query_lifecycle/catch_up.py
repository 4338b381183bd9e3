"""This module lets queries fall behind the others: paused ones, and ones that read the log from before their
registration. A side engine brings them up.

If a query reads from `reads_from` on, it is registered there in a side engine with today's rules on which it rests. At
its registration the rules as they run take the place of these rules, with what waits for the query. So the query's
solutions do not depend on when it catches up.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.dictionary.arrow_encoding import one_after_another
from engine.engine_state import Beginning, EngineState, SideEngine, join, parse_entry
from engine.messages import TIED, CatchUp, Outcome, Pause, Register
from engine.runtime.event_scheduler import find_reached
from engine.runtime.query_registry import Registry
from epsparql import algebra as a


# ---------------------------------------------------------------- falling behind
def pause(engine: EngineState, entry: Pause) -> None:
    """Take a running query, and what rests on it, out of the engine. A query that is behind already reads no further."""
    if (known := engine.sides.get(entry.registered)) is not None:
        known.paused = True
    elif entry.registered in engine.registry.registered:
        own = {entry.registered, *entry.holds}
        side = engine.make_beside(fork(engine.registry, own), entry.offset)
        engine.sides[entry.registered] = SideEngine(side, own, reader=entry.registered, paused=True)


def register_query(engine: EngineState, entry: Register) -> bool:
    """Take in a query that is behind from the first; return False for any other, which may be a rule that feeds those."""
    if entry.waits_for is not None and entry.waits_for in engine.sides:
        engine.sides[entry.waits_for].queries.add(entry.offset)
        return True
    if entry.reads_from is None:
        feed_behind(engine, entry)
        return False
    engine.sides[entry.offset] = begin_past(engine, entry.offset, entry, entry.reads_from)
    return True


def begin_past(engine: EngineState, at: int, entry: Register, reads_from: int) -> SideEngine:
    """Return a side engine for a query that is not in the engine, which stands at the position `at`.

    The query reads the past, and takes those with it that it holds.
    """
    registry, held, streams = engine.registry, set(entry.holds), parse_entry(entry).streams
    rests_on = find_reached(streams, registry.rules)
    rules = [rule for rule in registry.registered.values() if rule.offset not in held and a.written_stream(parse_entry(rule)) in rests_on]
    entries = (*(_read_from(rule, reads_from) for rule in rules), replace(entry, reads_from=reads_from, holds=(), waits_for=None))
    present = engine.make_beside(fork(registry, held, streams), at)
    past = engine.make_beside(registry.make_beside())
    return SideEngine(past, {entry.offset, *held}, deque([Beginning(reads_from, entries)]), reader=entry.offset, present=present)


def _read_from(rule: Register, reads_from: int) -> Register:
    """Return a rule that reads from an entry on. What the settings of its streams promise need not hold before it read."""
    found = replace(rule, reads_from=reads_from, holds=(), waits_for=None)
    first = rule.offset + 1 if rule.reads_from is None else rule.reads_from
    return found if first <= reads_from else replace(found, instants=False, local=())


def fork(registry: Registry, own: Collection[int], streams: Iterable[str] = ()) -> Registry:
    """Return a registry with the queries `own`, which go over to it, and copies of the rules on which these and
    `streams` rest.
    """
    side = registry.make_beside()
    side.known, side.fallen = registry.known, dict(registry.fallen)
    side.instances = {registered: registry.instances.pop(registered) for registered in own if registered in registry.instances}
    side.restore_moments(registry.moments.offsets if side.instances else ())
    side.streams = {name: replace(stream) for name, stream in registry.streams.items()}
    planned = [p for member in registry.members for p in member.network.planned.values() if p.registered in own]
    rests_on = find_reached({*streams, *(stream for p in planned for stream in p.source.query.streams)}, registry.rules)
    for member in list(registry.members):
        wanted = [p for p in member.network.planned.values() if p.registered in own or p.writes in rests_on]
        going = [p.registered for p in wanted if p.registered in own]
        side.registered |= {p.registered: registry.registered[p.registered] for p in wanted if p.registered in registry.registered}
        if len(going) == len(member.network.planned):
            registry.members.remove(member)
            side.members.append(member)
        elif wanted:
            side.members.append(side.copy_network(member, wanted))
            for registered in going:
                member.network.drop_query(registered)
    for registered in own:
        registry.registered.pop(registered, None)
    return side


def list_behind(engine: EngineState, lead: int, side: SideEngine) -> Iterable[Register]:
    """Return the registrations of what is behind; that of a promotion stands for its text."""
    known = {entry.offset: entry for beginning in side.begins for entry in beginning.entries}
    for each in side.engines:
        known |= each.registry.registered | each.registry.fallen
    if side.replaces:
        return [replace(known[side.reader], offset=lead, reads_from=lead, waits_for=side.reader)]
    unread = [offset for offset in side.queries - known.keys() if offset >= side.engine.position]  # any other has ended
    entries = [entry for offset in unread for block in engine.past(offset, offset + 1) for entry in block.entries]
    return [*(known[offset] for offset in side.queries & known.keys()), *(entry for entry in entries if isinstance(entry, Register))]


def feed_behind(engine: EngineState, entry: Register) -> None:
    """Give side engines copies of the rules to which a new rule joins their queries, as these rules run now."""
    query, rules = parse_entry(entry), engine.registry.rules
    into = a.written_stream(query)
    for lead, side in engine.sides.items() if into is not None else ():
        joined = find_reached({stream for each in list_behind(engine, lead, side) for stream in parse_entry(each).streams}, rules)
        if into in joined:
            new = find_reached({*joined, *query.streams}, rules) - joined
            if any(rule.into in new for rule in rules):
                side.feeding.append(engine.make_beside(fork(engine.registry, (), query.streams), entry.offset))


# ---------------------------------------------------------------- catching up
def catch_up(engine: EngineState, side: SideEngine, entry: CatchUp) -> list[Outcome]:
    """Let the queries of a side engine read on, and take them over where they have read all.

    Return the part of what they bring that is news, as of the entry.
    """
    news = [_select_own(outcome, side.queries, entry.offset) for outcome in side.read(min(entry.upto, entry.offset))]
    if side.engine.position == entry.offset:
        del engine.sides[entry.registered]
        join(engine.registry, side.engine.registry, side.queries)
    return news


def _select_own(outcome: Outcome, own: Collection[int], entry: int) -> Outcome:
    changes = tuple(replace(change, entry=entry) for change in outcome.changes if change.registered in own)
    found = outcome.solutions
    if found.num_rows:
        found = found.filter(pa.array(np.isin(found.column("registered").to_numpy(), list(own))))
        found = found.set_column(2, found.schema.field("entry"), pa.array(np.full(found.num_rows, entry, np.int64)))
    return Outcome(found, changes)


def merge_caught_up(solutions: pa.RecordBatch, caught: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Merge solutions with those that were caught up with, in order of entry."""
    if "by" in solutions.schema.names:
        caught = [part.append_column(TIED.field("by"), pa.nulls(part.num_rows, TIED.field("by").type)) for part in caught]
    parts = [part for part in (solutions, *caught) if part.num_rows]
    if len(parts) < 2:
        return parts[0] if parts else solutions
    whole = one_after_another(parts)
    return whole.take(pa.array(np.argsort(whole.column("entry").to_numpy(), kind="stable")))
