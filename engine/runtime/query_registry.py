"""This module holds what an engine has registered: its queries in networks, their rules, and the background that they
rest on.
"""

import json
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.errors import Refusal
from engine.instances.moments import InstanceMoments
from engine.instances.relation import InstanceRelation
from engine.kernel.state import layout as c
from engine.messages import REVISED, ChangeInstances, MessageKey, Micros, Register, StateChange
from engine.network.network import Network
from engine.network.placed_query import Answers, Planned, RegisteredQuery
from engine.network.stratification import Cycle
from engine.partitioning import ONE, Division, PartitionShare, Sets, TimeSlices
from engine.physical_plan.join_trees import PlanShape
from engine.physical_plan.plan import Read
from engine.planner.builder.join_order import Rates
from engine.planner.builder.plan_builder import IN_PARTITIONS
from engine.planner.detached_names import name_apart
from engine.planner.reach import Asked, Reach, find_longest, find_reaches
from engine.rewrite import name_own_stream, rewrite_query
from engine.runtime.dispatch import Layout, build_layout, find_sources
from engine.runtime.event_queue import Choice, Waiting
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached
from engine.runtime.introspection import OLDEST, MatchWish, OperatorState, PartialMatch, list_partial_matches, measure_progress
from engine.runtime.locality import find_described
from engine.runtime.watermarks import NO_TIME, StreamTime, find_query_time
from engine.snapshot.network_state import restore, snapshot_network
from engine.state_size import Quota, Usage
from engine.triples.quads import Quad
from epsparql import QueryError, parse
from epsparql import algebra as a
from epsparql.trees import walk_nodes

_MOST_REACHES = 4096
"""So many groups of queries have their reach kept."""


class Registry:
    """Places queries in networks: queries that reach the same streams, and are dealt out alike, share a network."""

    def __init__(self, share: PartitionShare = ONE, sets: Sets | None = None, terms: TermTable | None = None) -> None:
        """Begin without queries.

        `share` is the engine's part of the values that events are dealt out by; `sets` are those of an engine that
        this one stands beside.
        """
        self.live_as(share, sets or Sets(share.partitions))
        self.terms = TermTable() if terms is None else terms
        self.streams: dict[str, StreamTime] = {}
        self.message_keys: dict[str, MessageKey] = {}
        """These are the keys that streams declare, where there are several partitions."""
        self.known = FactIndex(self.terms)
        """This is the background."""
        self.registered: dict[int, Register] = {}
        """These queries run, by the offset of their registration."""
        self.fallen: dict[int, Register] = {}
        """These rules have failed, by offset, until they are dropped: what reads their streams goes on resting on
        what they read.
        """
        self.instances: dict[int, InstanceRelation] = {}
        """These are the instances of queries with PARAMETERS, by registration. Each partition has all of them."""
        self._moments: InstanceMoments | None = None
        self.members: list[ScheduledNetwork] = []
        self.shares = True
        """Queries that come share what they have in common if this is set; what they find is the same."""
        self.settled_layout: Layout | None = None
        """This is the layout, unless something has changed since it was built."""
        self._former: Layout | None = None  # the one before, which the next one may begin with
        self._reaches: dict[tuple[Register, ...], list[Reach]] = {}
        self._reached_over: FactIndex | None = None  # the background over which these were found

    def live_as(self, share: PartitionShare, sets: Sets) -> None:
        """Have this share of the events from now on."""
        self.share, self.sets = share, sets
        self.without: frozenset[str] = frozenset() if share.whole else IN_PARTITIONS
        """Queries that come are planned without these SIMPLIFICATIONS and CHOICES; what they find is the same."""

    def make_beside(self, before: int | None = None) -> "Registry":
        """Return a registry without queries over the same terms, for all events, which plans queries as this one does.

        With `before`, it has this one's share of the events, and queries live there as they do at that entry.
        """
        if before is not None:
            return Registry(self.share, self.sets.settled(before), self.terms)
        found = Registry(terms=self.terms)
        found.without = self.without
        return found

    @property
    def facts(self) -> list[Quad]:
        """Return the background as it was given."""
        return self.known.quads

    @property
    def layout(self) -> Layout:
        """Return which network listens to which stream, as registrations have it now."""
        if self.settled_layout is None:
            rules = self.rules
            self._former = self.settled_layout = build_layout(self.members, rules, self._former)
            described = find_described(rules)
            for member in self.members:
                member.network.slots.streams.set_locality(described)
        return self.settled_layout

    def forget_layout(self) -> None:
        """Have the layout built anew, because registrations or what is told have changed."""
        self.settled_layout = None

    def enrol_query(self, entry: Register, changes: list[StateChange]) -> None:
        """Take in a query that is not behind any other; a fault in it is a change of its state."""
        self.settled_layout = None
        try:
            self.place_query(entry, parse(entry.text).query)
        except (QueryError, Refusal, Cycle) as fault:
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", str(fault)))
        except Exception as fault:  # noqa: BLE001  # a fault of ours: the log is read again at every start, so it may not stop the others
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", f"internal error: {type(fault).__name__}: {fault}"))

    def is_home(self, registered: int) -> bool:
        """Return whether a query has state in this partition, or is gone."""
        route = self.sets.route(registered)
        return route is None or route.part is not None or route.home == self.share.partition

    def place_query(self, entry: Register, query: a.Query) -> Network:
        """Put a query into its network. Raises Refusal, Cycle; whatever is raised, nothing has changed."""
        assert not isinstance(query, a.BackgroundRule), "that is part of the background"
        members = list(self.members)
        try:
            member = self._choose_member(query, self._find_part(entry), revised=entry.emit == REVISED)
            self._add_query(member.network, entry, query, self.known)
        except BaseException:
            self.members = members
            raise
        if self.shares and not (isinstance(query, a.Select) and query.rules):  # its own stream is nobody else's
            member.share_query(entry.offset)
        self.registered[entry.offset] = entry
        return member.network

    def restore_query(self, network: Network, entry: Register, rates: Rates, shape: PlanShape | None, known: FactIndex | None = None) -> None:
        """Put a query that ran before into a network, planned as it was, over the background that it rests on.

        Raises QueryError, Refusal, Cycle.
        """
        self._add_query(network, entry, parse(entry.text).query, self.known if known is None else known, rates, shape)

    def _add_query(
        self, network: Network, entry: Register, query: a.Query, known: FactIndex, rates: Rates | None = None, shape: PlanShape | None = None
    ) -> None:  # fmt: skip
        written = rewrite_query(name_own_stream(query, entry.offset), entry.default_graph, entry.policy, self.without)
        assert not isinstance(written, a.BackgroundRule), "that is part of the background"
        after = entry.offset if entry.reads_from is None else entry.reads_from - 1
        source = RegisteredQuery(
            entry.offset, entry.name, written, after, entry.max_derivations, entry.policy, entry.node_names, entry.instants, frozenset(entry.local),
            self.prepare_instances(entry.offset, query),
        )  # fmt: skip
        network.host.add_query(source, known, rates, shape)
        if source.instances is not None:
            network.follow_instances(self.moments.table)
        network.quotas.set_quota(entry.offset, Quota(entry.max_goals, entry.max_state_bytes))

    # ------------------------------------------------------------ instances
    @property
    def moments(self) -> InstanceMoments:
        """Return the entries that changed instances."""
        if self._moments is None:
            self._moments = InstanceMoments(self.terms)
        return self._moments

    def restore_moments(self, offsets: Sequence[int]) -> None:
        self._moments = InstanceMoments(self.terms, offsets) if offsets else None

    def prepare_instances(self, registered: int, query: a.Query) -> InstanceRelation | None:
        """Return the relation of a query with PARAMETERS; None for any other query."""
        if not isinstance(query, a.Select) or not query.parameters:
            return None
        return self.instances.setdefault(registered, InstanceRelation.without_rows(self.terms, len(query.parameters)))

    def change_instances(self, entry: ChangeInstances) -> None:
        """Change the instances of a query that is here, from the next entry on."""
        relation = self.instances.get(entry.registered)
        if relation is None:
            return
        relation.change(entry.offset, json.loads(entry.changes))
        self.moments.note_change(entry.offset, min((member.pending.earliest_entry for member in self.members), default=entry.offset))
        for member in self.members:
            member.network.follow_instances(self.moments.table)

    def adopt_instances(self, side: "Registry", queries: Collection[int]) -> None:
        """Take over the relations of queries that come over with their networks. The rows are those that are here, if any."""
        for registered, relation in side.instances.items():
            if registered in queries:
                if (own := self.instances.get(registered)) is not None:
                    relation.replace_rows(own.live_rows)
                self.instances[registered] = relation
        for member in self.members:
            member.network.follow_instances(self.moments.table)

    def _find_part(self, entry: Register) -> Division | None:
        """Return what a query's events are dealt out by, if anything."""
        route = self.sets.route(entry.offset)
        return None if route is None else route.part

    @property
    def rules(self) -> list[a.Construct]:
        """Return all rules, those that have failed included."""
        fallen = [rule for entry in self.fallen.values() for rule in a.writing_rules(parse(entry.text).query)]
        return [*(rule for member in self.members for rule in member.rules), *fallen]

    def _choose_member(self, query: a.Query, part: Division | None, *, revised: bool) -> ScheduledNetwork:
        """Return the network that a query belongs to.

        That is the network of its cycle of rules. Else it is one that reaches the same streams and has read as far,
        or a new one.

        All queries of a network are dealt out by the same part, and all or none of them are revised.

        Raises Refusal if rules of several networks would feed each other.
        """
        rules = self.rules
        on_cycle = []
        if (into := a.written_stream(query)) is not None:
            rules = [*rules, *a.writing_rules(query)]
            below, reach = find_reached([into], rules, onwards=True), find_reached(query.streams, rules)
            on_cycle = [m for m in self.members if any(rule.into in reach and below & set(rule.streams) for rule in m.rules)]
        if len(on_cycle) > 1:
            raise Refusal("recursion over streams that other rules read separately (let the rules of a cycle read and write one stream)", "INTO")
        if any(member.revised or revised for member in on_cycle):
            raise Refusal("a revised rule that feeds itself through other rules (let a revised query read what the rules write)", "INTO")
        if on_cycle:
            return on_cycle[0]
        gate = find_reached(query.streams, rules)
        time, apart = self._find_query_time(gate, rules), False
        for member in self.members:
            alike = member.part == part and member.network.planning.without == self.without and member.revised == revised
            if alike and find_reached(member.network.reads, rules) == gate:
                # Who comes after a change has it from the first.
                if member.time == time and (time == NO_TIME or not member.network.background.is_due):
                    return member
                apart = True
        member = ScheduledNetwork(
            Network(self.terms, owns=self.make_owner_test(part), without=self.without), time, part=part, revised=revised, silent=revised, apart=apart
        )
        self.members.append(member)
        return member

    def make_owner_test(self, part: Division | None) -> Callable[[Quad], bool] | None:
        """Return a test for the background triples that the networks of a part take for theirs; None if they take all."""
        return None if part is None or isinstance(part, TimeSlices) else lambda quad: self.share.has(part.read_part(quad))

    def _find_query_time(self, gate: Collection[str], rules: Sequence[a.Construct]) -> int:
        """Return the time that a new network finds.

        A network whose rule was dropped may be further on than its streams say.
        """
        return find_query_time(gate, find_sources(rules), self.streams, NO_TIME)

    def accepts_background(self, known: FactIndex) -> bool:
        """Return whether a background closes no cycle.

        One that does is refused: the log is read again at every start, so it may not stop the queries.
        """
        try:
            for member in self.members:
                member.network.background.check_cycles(known)
        except Cycle:
            return False
        return True

    def announce_background(self, known: FactIndex) -> None:
        self.known = known
        for member in self.members:
            member.network.background.announce(known, member.time)

    def find_reaches(self, entries: Sequence[Register]) -> list[Reach]:
        """Return how far back each of these queries looks, through those of them that are rules, over the background
        as it is.

        Raises: QueryError.
        """
        if self._reached_over is not self.known or len(self._reaches) >= _MOST_REACHES:
            self._reaches, self._reached_over = {}, self.known
        if (found := self._reaches.get(tuple(entries))) is not None:
            return found
        found = self._reaches[tuple(entries)] = self._find_reaches_over(entries, self.known)
        return found

    def _find_reaches_over(self, entries: Sequence[Register], known: FactIndex) -> list[Reach]:
        asked = []
        for entry in entries:
            query = rewrite_query(name_own_stream(parse(entry.text).query, entry.offset), entry.default_graph, entry.policy, self.without)
            assert not isinstance(query, a.BackgroundRule), "that is part of the background"
            asked.append(Asked(query, entry.policy))
        return find_reaches(asked, name_apart(known).matches)

    def looks_further(self, entries: Sequence[Register], known: FactIndex) -> bool:
        """Return whether queries of a bounded reach look further back over another background than over the one that
        there is.
        """
        try:
            before = find_longest(self.find_reaches(entries))
            return before < c.FOREVER and find_longest(self._find_reaches_over(entries, known)) > before
        except (QueryError, Refusal):
            return False

    def find_reach(self, entry: Register) -> Micros | None:
        """Return how far back a query looks by itself, in µs; None without a bound, or to its first instant, and for
        a query that is refused.
        """
        try:
            return self.find_reaches([entry])[0].settled
        except (QueryError, Refusal):
            return None

    def is_concerned(self, entry: Register, known: FactIndex) -> bool:
        """Return whether another background may tell a query something else than the one that there is.

        Raises: QueryError.
        """
        query = rewrite_query(parse(entry.text).query, entry.default_graph, entry.policy, self.without)
        assert not isinstance(query, a.BackgroundRule), "that is part of the background"
        nodes = list(walk_nodes(query.pattern))
        if known.schema is not self.known.schema or any(isinstance(node, a.Graph | a.Path) for node in nodes):
            return True
        asked = [(triple, node.place) for node in nodes if isinstance(node, a.Bgp) for triple in node.triples]
        return not Answers({(triple, place): self.known.matching(triple, place) for triple, place in asked}).hold_over(known)

    def copy_network(self, member: ScheduledNetwork, queries: Sequence[Planned], needs: Choice | None = None) -> ScheduledNetwork:
        """Return a network with copies of some queries of another one, as they stand; they are registered here.

        Of what waits, it has what `needs` chooses by its ends.
        """
        meta, arrays = snapshot_network(member.network, queries)
        planning = member.network.planning
        network = Network(self.terms, known=planning.known, owns=self.make_owner_test(member.part), without=planning.without)

        def add(registered: int, rates: Rates, shape: PlanShape | None) -> None:
            self.restore_query(network, self.registered[registered], rates, shape, planning.knows[registered])

        restore(network, deepcopy(meta), arrays, add)  # collectors give what they work on
        network.planning.known = planning.known
        network.background.coming, network.background.begun = member.network.background.coming, member.network.background.begun
        return ScheduledNetwork(network, member.time, Waiting.from_table(member.pending.choose(needs)), member.part, member.revised, member.silent)

    def drop_query(self, registered: int) -> None:
        self.settled_layout, rules = None, self.rules
        self.registered.pop(registered, None)
        self.fallen.pop(registered, None)
        for member in self.members:
            if registered in member.network.planned:
                member.network.drop_query(registered)
        self.members = [member for member in self.members if member.network.planned]
        if self.rules != rules:
            self._part_networks()

    def _part_networks(self) -> None:
        """Part the queries of each network that reach the same streams no longer, because a rule has gone: none may
        wait for another's.

        What waits on streams that their network waits for no longer goes, because its end would move their first
        instant.
        """
        for member in list(self.members):
            by_gate: dict[frozenset[str], list[Planned]] = {}
            for planned in member.network.planned.values():
                by_gate.setdefault(frozenset(find_reached(planned.source.query.streams, self.rules)), []).append(planned)
            for queries in list(by_gate.values())[1:]:
                self.members.append(self.copy_network(member, queries))
                for planned in queries:
                    member.network.drop_query(planned.registered)
        for member in self.members:
            member.forget_unread()

    def fail_query(self, registered: int, at: int, reason: str) -> StateChange:
        """Drop a running query that failed elsewhere, at the entry `at`."""
        entry = self.registered[registered]
        self.drop_query(registered)
        self.fallen[registered] = entry
        return StateChange(registered, entry.name, at, "failed", reason)

    @property
    def times(self) -> dict[int, Micros]:
        """Return how far each query has come, by registration."""
        return {registered: member.time for member in self.members for registered in member.network.planned}

    # ------------------------------------------------------------ what a query keeps
    def usage(self, registered: int) -> Usage:
        """Return the size of a running query's state.

        Of partitions that share it by time, the one counts whose turn it is.
        """
        member, _ = self._find_query(registered)
        if not self._is_turn(member):
            return Usage(0, 0)
        return member.network.quotas.measure_usage(registered, member.passed)

    def quota(self, registered: int) -> Quota:
        """Return the quota of a running query."""
        return self._find_query(registered)[0].network.quotas.get_quota(registered)[0]

    def reads(self, registered: int) -> tuple[Read, ...]:
        """Return the parts of the background that a running query reads."""
        return self._find_query(registered)[1].reads

    def progress(self, registered: int) -> tuple[OperatorState, ...]:
        """Return how far a running query is, operator by operator."""
        member, planned = self._find_query(registered)
        return measure_progress(member.network, planned)

    def partial_matches(self, registered: int, wish: MatchWish = OLDEST) -> list[PartialMatch]:
        """Return partial matches of a running query, the oldest or those that are wanted."""
        member, planned = self._find_query(registered)
        if not self._is_turn(member):
            return []
        return list_partial_matches(member.network, planned, member.passed, wish)

    def _is_turn(self, member: ScheduledNetwork) -> bool:
        """Return whether a network counts for all that share its queries by time: the next partition reads its events
        as well.
        """
        if not isinstance(member.part, TimeSlices):
            return True
        latest = max((self.streams[name].latest for name in member.network.reads if name in self.streams), default=NO_TIME)
        return member.part.is_turn(min(member.time, latest), self.share)

    def _find_query(self, registered: int) -> tuple[ScheduledNetwork, Planned]:
        member = next(member for member in self.members if registered in member.network.planned)
        return member, member.network.planned[registered]
