"""This module lets another text take a query's place.

The text is registered there under the query's own number, and what it finds is not told. At one entry of the log both
stand at the same position and time. There the old plan goes, and the network of the new text comes in its place
(docs/decisions/0019-what-is-behind.md).
"""

from engine.engine_state import Behind, EngineState, join
from engine.messages import CatchUp, Promote, Register, StateChange
from engine.query_lifecycle.catch_up import begin_behind, fork
from engine.runtime.event_scheduler import ScheduledNetwork
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
    if entry.registered not in engine.registered:
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, _ENDED)
    begins = entry.offset + 1 if entry.reads_from is None else entry.reads_from
    limits, names = (entry.max_derivations, entry.max_goals, entry.max_state_bytes), engine.registered[entry.registered].node_names
    asked = entry.registered, entry.name, entry.text, entry.policy, entry.default_graph, *limits, begins
    query = Register(*asked, node_names=names, instants=entry.instants, local=entry.local)
    if entry.reads_from is not None:
        behind = engine.behind[entry.offset] = begin_behind(engine, entry.offset, query)
        behind.replaces = entry.registered
        if entry.begins is not None:  # nothing before matters, and the background is the same since
            behind.engine.position, behind.engine.known = entry.begins, engine.known
            behind.engine.streams = {name: StreamTime(watermark, latest, fed) for name, watermark, latest, fed in entry.marks}
        return None
    side, changes = fork(engine, entry.offset, set(), parse(entry.text).query.streams), list[StateChange]()
    side.enrol_query(query, changes)
    if changes:
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, changes[0].reason)
    return _take_over(engine, Behind(entry.offset, {entry.registered}, side, replaces=entry.registered), entry.name, entry.offset)


def read_promotion(engine: EngineState, behind: Behind, entry: CatchUp) -> StateChange | None:
    """Let the text of a promotion read on, and take over where it has read all.

    Return how the promotion ended, if it has.
    """
    assert behind.replaces is not None
    name = next((each.name for each in (engine.registered.get(behind.replaces), *behind.beginning) if each is not None), "")
    for outcome in behind.read(min(entry.upto, entry.offset)):
        for change in outcome.changes:
            if change.registered == behind.replaces:
                del engine.behind[behind.lead]
                return StateChange(behind.lead, name, entry.offset, FAILED, f"the new text {change.state} while it caught up: {change.reason}")
    if behind.engine.position < entry.offset:
        return None
    del engine.behind[behind.lead]
    return _take_over(engine, behind, name, entry.offset)


def _take_over(engine: EngineState, behind: Behind, name: str, at: int) -> StateChange:
    """Exchange a query's plan for that of its new text, which has read the log as far."""
    assert behind.replaces is not None
    old, new = (_find_member(each, behind.replaces) for each in (engine, behind.engine))
    if old is None or new is None:
        return StateChange(behind.lead, name, at, FAILED, _ENDED)
    if old.time != new.time:
        return StateChange(behind.lead, name, at, FAILED, _OTHER_TIME)
    engine.drop_query(behind.replaces)
    join(engine, behind.engine, {behind.replaces})
    return StateChange(behind.lead, name, at, PROMOTED, "")


def _find_member(engine: EngineState, registered: int) -> ScheduledNetwork | None:
    return next((member for member in engine.members if registered in member.network.planned), None)
