"""This module lets another text take a query's place.

The text is registered in a side engine under the query's own number, and what it finds is not told. At one entry of the
log both stand at the same position and time. There the old plan goes, and the network of the new text comes in its
place (docs/decisions/0019-what-is-behind.md).
"""

from engine.engine_state import EngineState, join
from engine.messages import CatchUp, Promote, Register, StateChange
from engine.query_lifecycle.catch_up import begin_past, fork
from engine.runtime.event_scheduler import ScheduledNetwork
from engine.runtime.query_registry import Registry
from engine.runtime.watermarks import StreamTime
from epsparql import QueryError, parse

FAILED, PROMOTED = "failed", "promoted"
_ENDED = "the query has failed, completed or been paused, or waits for a rule that has"
_OTHER_TIME = "the new text does not stand at the time of the old one, because it waits for other streams: register it under another name"


def promote(engine: EngineState, entry: Promote) -> StateChange | None:
    """Let a text take a query's place at once, or let it read the past first. Return how that ended, if it has."""
    try:
        return _promote(engine, entry)
    except QueryError as fault:  # another version took the text
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, str(fault))


def _promote(engine: EngineState, entry: Promote) -> StateChange | None:
    if entry.keeps:  # the plan that runs finds what the text asks for
        return StateChange(entry.offset, entry.name, entry.offset, PROMOTED, "")
    if (known := engine.registry.registered.get(entry.registered)) is None:
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, _ENDED)
    begins = entry.offset + 1 if entry.reads_from is None else entry.reads_from
    limits = entry.max_derivations, entry.max_goals, entry.max_state_bytes
    asked = entry.registered, entry.name, entry.text, entry.policy, entry.default_graph, *limits, begins
    query = Register(*asked, node_names=known.node_names, instants=entry.instants, local=entry.local)
    if entry.reads_from is None:
        side, changes = fork(engine.registry, (), parse(entry.text).query.streams), list[StateChange]()
        side.enrol_query(query, changes)
        if changes:
            return StateChange(entry.offset, entry.name, entry.offset, FAILED, changes[0].reason)
        return _take_over(engine.registry, side, query, entry.offset, entry.offset)
    past = engine.sides[entry.offset] = begin_past(engine, entry.offset, query, begins)
    past.replaces = True
    if entry.begins is not None:  # nothing before matters, and the background is the same since
        past.engine.position, past.engine.registry.known = entry.begins, engine.registry.known
        past.engine.registry.streams = {name: StreamTime(watermark, latest, fed) for name, watermark, latest, fed in entry.marks}
    return None


def read_promotion(engine: EngineState, entry: CatchUp) -> StateChange | None:
    """Let the text of a promotion read on, and take over where it has read all.

    Return how the promotion ended, if it has.
    """
    side, registry = engine.sides[entry.registered], engine.registry
    begun = {each.offset: each for beginning in side.begins for each in beginning.entries} | side.engine.registry.registered
    query = registry.registered.get(side.reader) or begun[side.reader]
    for outcome in side.read(min(entry.upto, entry.offset)):
        for change in outcome.changes:
            if change.registered == side.reader:
                del engine.sides[entry.registered]
                reason = f"the new text {change.state} while it caught up: {change.reason}"
                return StateChange(entry.registered, query.name, entry.offset, FAILED, reason)
    if side.engine.position < entry.offset:
        return None
    del engine.sides[entry.registered]
    return _take_over(registry, side.engine.registry, query, entry.registered, entry.offset)


def _take_over(registry: Registry, side: Registry, query: Register, promotion: int, at: int) -> StateChange:
    """Exchange a query's plan for that of its new text, which has read the log as far."""
    old, new = (_find_member(each, query.offset) for each in (registry, side))
    if old is None or new is None:
        return StateChange(promotion, query.name, at, FAILED, _ENDED)
    if old.time != new.time:
        return StateChange(promotion, query.name, at, FAILED, _OTHER_TIME)
    registry.drop_query(query.offset)
    join(registry, side, {query.offset})
    return StateChange(promotion, query.name, at, PROMOTED, "")


def _find_member(registry: Registry, registered: int) -> ScheduledNetwork | None:
    return next((member for member in registry.members if registered in member.network.planned), None)
