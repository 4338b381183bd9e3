"""This module reads the log again for queries whose state is not at hand.

A query keeps what decides on absence for its window alone. When a change of the background makes the decided side
timeless, all that ever came decides. So the query reads the log again from its beginning, planned without expiry.
From there it runs in a network of its own (docs/decisions/0036-what-a-window-let-go.md).
"""

from collections import deque

from engine.engine_state import Beginning, EngineState, SideEngine, join
from engine.errors import LogGap
from engine.messages import Register, StateChange
from engine.network.placed_query import Planned
from engine.runtime.event_scheduler import find_reached
from engine.runtime.query_registry import Registry
from epsparql import QueryError, parse
from epsparql import algebra as a

MOST_ROWS = 50_000_000
"""The log is read again up to this many rows, because all other queries wait meanwhile."""
LOST = "the background now matches a part alone for which older solutions were let go, and {}: register the query again"


class NotRepeatable(Exception):
    """Signals that a query's state does not follow from the log as it can be read here."""


def read_again(engine: EngineState, planned: Planned, after: int) -> str | None:
    """Let a query stand where it would stand before the entry `after` if nothing of it expired.

    Return why that cannot be, if it cannot.
    """
    try:
        side = _replay(engine, planned, after)
    except (LogGap, NotRepeatable) as fault:
        return LOST.format(fault if isinstance(fault, NotRepeatable) else "the log does not go back to where the query began")
    member = next(member for member in engine.registry.members if planned.registered in member.network.planned)
    member.network.drop_query(planned.registered)
    join(engine.registry, side, {planned.registered})
    return None


def _replay(engine: EngineState, planned: Planned, after: int) -> Registry:
    """Return what a side engine has once it has read the log before `after` with a query and all rules.

    A partition reads its own share of what is dealt out.
    """
    entry, registry, changes, before = engine.registry.registered[planned.registered], engine.registry, list[StateChange](), engine.caught_up
    if any(_is_on_cycle(registry, planned, rule) for rule in planned.written.values()):
        raise NotRepeatable("its rule is one of several that feed each other")
    begins = Beginning(entry.offset if entry.reads_from is None else entry.reads_from, (entry,))
    queries = registry.make_beside(before=after)
    queries.without = registry.without | {"expiry"}
    side = SideEngine(engine.make_beside(queries), {entry.offset}, deque([begins]), lambda other: _is_other_rule(other, entry))
    for outcome in side.read(after):
        changes += outcome.changes
        if engine.caught_up - before > MOST_ROWS:
            raise NotRepeatable(f"the log has over {MOST_ROWS:,} rows")
    if entry.offset not in queries.registered:
        raise NotRepeatable(next(change.reason for change in changes if change.registered == entry.offset))
    return queries


def _is_other_rule(entry: Register, own: Register) -> bool:
    """Return whether an entry registers a rule, but the query itself. Raises NotRepeatable."""
    try:
        is_rule = a.written_stream(parse(entry.text).query) is not None
    except QueryError:
        return False  # refused when it came
    if entry.offset == own.offset or not is_rule:
        return False
    if entry.reads_from is not None or own.reads_from is not None:
        raise NotRepeatable("rules stand beside a query that read the past")
    return True


def _is_on_cycle(registry: Registry, planned: Planned, rule: a.Construct) -> bool:
    """Return whether a query's rule rests on rules of others that rest on it."""
    above, below = find_reached(rule.streams, registry.rules), find_reached([rule.into], registry.rules, onwards=True)
    others = [other for other in registry.rules if other not in planned.written.values()]
    return any(other.into in above and below & set(other.streams) for other in others)
