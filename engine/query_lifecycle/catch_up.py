"""This module lets queries fall behind the others: paused ones, and ones that read the log from before their
registration. `Behind` brings them up.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.dictionary.arrow_encoding import one_after_another
from engine.engine_state import Behind, EngineState, parse_entry
from engine.messages import TIED, Outcome, Pause, Register
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.physical_plan.join_trees import PlanShape
from engine.planner.builder.join_order import Rates
from engine.runtime.event_queue import Choice, Waiting
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached
from engine.snapshot.network_state import restore, snapshot_network
from epsparql import algebra as a


# ---------------------------------------------------------------- falling behind
def pause(engine: EngineState, entry: Pause) -> None:
    """Take a running query, and what rests on it, out of the engine. A query that is behind already reads no further."""
    if (known := engine.behind.get(entry.registered)) is not None:
        known.paused = True
    elif entry.registered in engine.registered:
        own = {entry.registered, *entry.holds}
        engine.behind[entry.registered] = Behind(entry.registered, own, fork(engine, entry.offset, own), paused=True)


def register_query(engine: EngineState, entry: Register) -> bool:
    """Take in a query that is behind from the first; return False for any other."""
    if entry.waits_for is not None and entry.waits_for in engine.behind:
        engine.behind[entry.waits_for].own.add(entry.offset)
        return True
    if entry.reads_from is None:
        return False
    engine.behind[entry.offset] = begin_behind(engine, entry.offset, entry)
    return True


def begin_behind(engine: EngineState, lead: int, entry: Register) -> Behind:
    """Return what is behind from the position `lead` on: a query that reads the past, which is not in the engine, and
    those that it holds.
    """
    held, streams = set(entry.holds), set(parse_entry(entry).streams)
    rests_on = find_reached(streams, engine.rules)
    rules = [rule for rule in engine.registered.values() if rule.offset not in held and _writes(rule) in rests_on]
    later = fork(engine, lead, held, streams)
    beginning = tuple(replace(rule, reads_from=entry.reads_from, holds=(), waits_for=None) for rule in (*rules, entry))
    return Behind(lead, {entry.offset, *held}, engine.beside(), beginning=beginning, later=later)


def fork(engine: EngineState, at: int, own: set[int], streams: Iterable[str] = ()) -> EngineState:
    """Return the engine at the position `at`, as far as `own` and `streams` rest on it.

    The queries `own` go over to it; it has copies of the rest.
    """
    side = engine.beside()
    side.position, side.known = at, engine.known
    side.streams = {name: replace(stream) for name, stream in engine.streams.items()}
    side.fallen = dict(engine.fallen)
    read = {stream for member in engine.members for p in member.network.planned.values() if p.registered in own for stream in p.source.query.streams}
    rests_on = find_reached(read | set(streams), engine.rules)
    for member in list(engine.members):
        wanted = [p for p in member.network.planned.values() if p.registered in own or p.writes in rests_on]
        going = [p.registered for p in wanted if p.registered in own]
        side.registered |= {p.registered: engine.registered[p.registered] for p in wanted if p.registered in engine.registered}
        if len(going) == len(member.network.planned):
            engine.members.remove(member)
            side.members.append(member)
        elif wanted:
            side.members.append(copied(side, member, wanted))
            for registered in going:
                member.network.drop_query(registered)
    for registered in own:
        engine.registered.pop(registered, None)
    return side


def copied(
    side: EngineState, member: ScheduledNetwork, queries: Sequence[Planned], needs: Choice | None = None
) -> ScheduledNetwork:  # fmt: skip
    """Return a network with copies of some queries of another one, as they stand.

    Of what waits, it has what `needs` chooses by its ends.
    """
    meta, arrays = snapshot_network(member.network, queries)
    network = Network(
        side.terms, known=member.network.planning.known, owns=side.make_owner_test(member.part), without=member.network.planning.without
    )

    def add(registered: int, rates: Rates, shape: PlanShape | None) -> None:
        side.restore_query(network, side.registered[registered], rates, shape, member.network.planning.knows[registered])

    restore(network, deepcopy(meta), arrays, add)  # collectors give what they work on
    network.planning.known = member.network.planning.known
    network.background.coming, network.background.begun = member.network.background.coming, member.network.background.begun
    return ScheduledNetwork(network, member.time, Waiting.from_table(member.pending.choose(needs)), member.part, member.revised, member.silent)


def _writes(entry: Register) -> str | None:
    return a.written_stream(parse_entry(entry))


# ---------------------------------------------------------------- what it brings
def of_own(outcome: Outcome, own: set[int], entry: int) -> Outcome:
    """Return the part of an outcome that is news, as of the entry that let it be read."""
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
