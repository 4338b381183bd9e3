"""This module reads the log again for queries whose state is not at hand.

A query keeps what decides on absence for its window alone. When a change of the background makes the decided side
timeless, all that ever came decides. So the query reads the log again from its beginning, planned without expiry.
From there it runs in a network of its own (docs/decisions/0036-what-a-window-let-go.md).
"""

from engine.background.changes import read_static_rule
from engine.engine_state import EngineState, join
from engine.errors import LogGap
from engine.messages import CatchUp, Entry, Fail, Pause, Promote, Register, Resume, StateChange, Withdraw
from engine.network.placed_query import Planned
from engine.runtime.event_scheduler import find_reached
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
        side = _replayed(engine, planned, after)
    except (LogGap, NotRepeatable) as fault:
        return LOST.format(fault if isinstance(fault, NotRepeatable) else "the log does not go back to where the query began")
    member = next(member for member in engine.members if planned.registered in member.network.planned)
    member.network.drop_query(planned.registered)
    join(engine, side, {planned.registered})
    return None


def _replayed(engine: EngineState, planned: Planned, after: int) -> EngineState:
    """Return an engine that has read the log before `after` with a query and all rules.

    A partition reads its own share of what is dealt out.
    """
    entry, side, changes, before = engine.registered[planned.registered], engine.beside_before(after), list[StateChange](), engine.caught_up
    if any(_is_on_cycle(engine, planned, rule) for rule in planned.written.values()):
        raise NotRepeatable("its rule is one of several that feed each other")
    begins = entry.offset if entry.reads_from is None else entry.reads_from
    side.without = engine.without | {"expiry"}
    side.heeds = lambda other: _concerns(other, entry)
    for until in (begins, after):
        for outcome in side.read_log(until):
            changes += outcome.changes
            if engine.caught_up - before > MOST_ROWS:
                raise NotRepeatable(f"the log has over {MOST_ROWS:,} rows")
        if until == begins:
            side.enrol_query(entry, changes)
    if planned.registered not in side.registered:
        raise NotRepeatable(next(change.reason for change in changes if change.registered == planned.registered))
    return side


def _concerns(entry: Entry, own: Register) -> bool:
    """Return whether a control entry matters to a query: none about queries but rules does. Raises NotRepeatable."""
    match entry:
        case Register():
            if read_static_rule(entry) is not None:
                return True
            if entry.offset == own.offset or not _is_rule(entry):
                return False
            if entry.reads_from is not None or own.reads_from is not None:
                raise NotRepeatable("rules stand beside a query that read the past")
            return True
        case Pause() | Resume() | CatchUp() | Promote() | Withdraw() | Fail():
            return False
        case _:
            return True


def _is_rule(entry: Register) -> bool:
    try:
        return a.written_stream(parse(entry.text).query) is not None
    except QueryError:
        return False  # refused when it came


def _is_on_cycle(engine: EngineState, planned: Planned, rule: a.Construct) -> bool:
    """Return whether a query's rule rests on rules of others that rest on it."""
    above, below = find_reached(rule.streams, engine.rules), find_reached([rule.into], engine.rules, onwards=True)
    others = [other for other in engine.rules if other not in planned.written.values()]
    return any(other.into in above and below & set(other.streams) for other in others)
