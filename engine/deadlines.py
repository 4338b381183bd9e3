"""This module finds deadlines: instants that time must pass, by an event or the clock, before waiting queries can go
on (semantics.md section 8).
"""

from collections.abc import Mapping

from engine.aggregation.operator import AT_LAST
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, Micros
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached
from engine.runtime.watermarks import StreamTime


def find_deadlines(engine: Engine) -> dict[str, Micros]:
    """Return, for each stream on which something waits, the least instant that its watermark has yet to pass."""
    found: dict[str, Micros] = {}
    registry = engine.registry
    rules = registry.rules
    for member in registry.members:
        deadline = find_deadline(member)
        if deadline is None:
            continue
        for name in find_reached(member.network.reads, rules):
            if _holds_back(registry.streams, name, deadline):
                found[name] = min(deadline, found.get(name, deadline))
    return found


def _holds_back(streams: Mapping[str, StreamTime], name: str, deadline: Micros) -> bool:
    """Return whether a stream was fed and its watermark has not passed the deadline yet."""
    stream = streams.get(name)
    return stream is not None and stream.fed and stream.watermark <= deadline


def find_deadline(member: ScheduledNetwork) -> Micros | None:
    """Return the least instant that a network's time has to pass for anything to happen in it; None where nothing
    waits for time.

    Waiting are timers and windows, decisions of the last instant, occurrences ahead of time, and queries without a
    first instant.
    """
    net, time = member.network.net, member.time
    if time >= END_OF_TIME:
        return None
    due = int(net.timers[: net.at[c.TIMER_NODES], c.T_DUE].min(initial=c.FOREVER))
    if len(member.pending):
        due = min(due, int(member.pending.end.min()) - 1 + member.revised)
    if net.at[c.WAITING] or member.network.slots.find_unopened():
        due = min(due, time)
    return max(due, time) if due < AT_LAST else None
