"""This module finds which network listens to which stream.

Registrations settle that, so it is worked out once for all that is fed until the next one.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from engine.dictionary.batch_layout import TERMS
from engine.network.placed_query import Planned
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached, sort_by_rules
from engine.runtime.partition_filter import Feed
from engine.runtime.result_assembly import Outlets, add_outlet, make_outlets
from engine.runtime.watermarks import Arrivals
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass

_FEW = 16


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """Holds a network with the streams that it reads, and those whose time it waits for (its gate)."""

    member: ScheduledNetwork
    reads: tuple[str, ...]
    feeds: tuple[Feed, ...]  # the feeds of the streams that it reads
    gate: tuple[str, ...]
    outlets: Outlets
    queries: Sequence[Planned]  # those of the outlets
    silent: bool  # as the network was when these were made

    def select_feeds(self, new: Mapping[Feed, Arrivals]) -> list[tuple[str, Arrivals]]:
        found = []
        for feed in self.feeds:  # which costs half of what a comprehension does
            if (part := new.get(feed)) is not None:
                found.append((feed[0], part))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Holds what registrations settle: networks in order of their rules."""

    order: tuple[Listener, ...]
    by_stream: Mapping[str, tuple[Listener, ...]]  # those that wait for a stream, in the same order
    sources: Mapping[str, frozenset[str]]  # for each stream that rules write, the others that it rests on
    terms_wanted: int  # how many of subject, predicate, object and graph the queries look at


def build_layout(members: Sequence[ScheduledNetwork], rules: Sequence[a.Construct], former: Layout | None = None) -> Layout:
    """Return the layout of these networks; `rules` are all of the engine's, those that have failed included.

    The `former` layout saves work.
    """
    known = {} if former is None else {listener.member: listener for listener in former.order}
    order = tuple(make_listener(member, rules, known.get(member)) for member in sort_by_rules(members))
    by_stream: dict[str, list[Listener]] = {}
    for listener in order:
        for name in listener.gate:
            by_stream.setdefault(name, []).append(listener)
    graphs = any(planned.graphs for member in members for planned in member.network.planned.values())
    wanted = TERMS if graphs else TERMS - 1 if members else 0
    return Layout(order, {name: tuple(listeners) for name, listeners in by_stream.items()}, find_sources(rules), wanted)


def make_listener(member: ScheduledNetwork, rules: Sequence[a.Construct], former: Listener | None) -> Listener:
    reads, queries = tuple(sorted(member.network.reads)), list(member.network.planned.values())
    outlets = _find_outlets(queries, former, silent=member.silent)
    return Listener(
        member, reads, tuple((name, member.part) for name in reads), tuple(sorted(find_reached(reads, rules))), outlets, queries, member.silent
    )


def _find_outlets(queries: Sequence[Planned], former: Listener | None, *, silent: bool) -> Outlets:
    """Return where the solutions of queries come out.

    A few that have come to thousands are added to what is known of these.
    """
    known = 0 if former is None else len(former.queries)
    if former is None or former.silent != silent or len(queries) > known + _FEW or queries[:known] != former.queries:
        return make_outlets(queries, silent=silent)
    return reduce(lambda outlets, planned: add_outlet(outlets, planned, silent=silent), queries[known:], former.outlets)


def find_sources(rules: Sequence[a.Construct]) -> dict[str, frozenset[str]]:
    """Return, for each stream that rules write, the others that it rests on."""
    written = {rule.into for rule in rules}
    return {into: frozenset(find_reached([s for rule in rules if rule.into == into for s in rule.streams], rules) - {into}) for into in written}
