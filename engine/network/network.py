"""This module runs one kernel with its queries, which share a clock because they reach the same streams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation import GroupCollector, Moments, Rows
from engine.alpha.free_rows import Ranges, by_predicate, ranges_around, with_predicate
from engine.background.fact_store import FactIndex
from engine.kernel.operators.policies import RIGHT_TAG
from engine.kernel.scheduler import run
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import KEPT, Net, to_width, with_width
from engine.kernel.state.goal_store import clear_stores
from engine.network import host_calls
from engine.network.background_update import OPTIONALS, difference, held_to
from engine.network.chain_replanning import straighten
from engine.network.placed_query import Planned
from engine.network.query_slots import Collecting
from engine.network.quotas import Quotas
from engine.network.stratification import POLICIES, rank
from engine.network.subplan_sharing import Sharing
from engine.physical_plan.plan import TABLES, Fragment, ranges_of
from epsparql import algebra as a

Ints = NDArray[np.int64]


FEED = Net._fields.index("feed")
FEW_COLUMNS = 8
"""A feed of at most this many columns has the tables of chains looked after only when pools grow."""
MOST_FOUND = 1 << 16
"""The host takes the rows of `out` when there are more than this, before it grants more room."""


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """Says that a query was stopped at an entry because it was beyond a bound of its own."""

    planned: Planned
    entry: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """Says that a query has given, at an entry, all solutions that it ever will."""

    planned: Planned
    entry: int
    reason: str


@dataclass(slots=True, eq=False)
class Network(Sharing):
    """Holds the kernel's arrays and the host's side of its returns."""

    failures: list[Failure] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    coming: FactIndex | None = None  # the background from the next instant on
    begun: int = -c.BIG  # the instant that time had reached when it came, which is decided without it
    completed: set[int] = field(default_factory=set)  # nodes of collectors whose queries have been reported as completed
    _few: Ints = field(init=False)  # the feed, where it has few columns
    _lent: Ints | None = None  # the feed that the kernel sees, kept alive while it is there

    def __post_init__(self) -> None:
        Sharing.__post_init__(self)  # `super()` means the class before its slots were made
        self.quotas = Quotas(self)
        self._few = np.empty((c.FEED_HEIGHT, FEW_COLUMNS), np.int64)

    def learn(self, known: FactIndex, time: int) -> None:
        """Set the background that holds from the instant after `time` on, whatever its queries have seen of that instant.

        The background closes no cycle.
        """
        self.coming, self.begun = known, max(self.begun, time)

    @property
    def changes(self) -> bool:
        """Return whether the instant that has begun goes by another background than later ones."""
        return self.coming is not None or self.entails_otherwise

    def take_for(self, known: FactIndex, other: FactIndex) -> None:
        """Replace the background `known` by `other`, which is the same background."""
        self.knows = {registered: other if each is known else each for registered, each in self.knows.items()}
        self.known = other if self.known is known else self.known
        self.coming = other if self.coming is known else self.coming

    def _learn(self, known: FactIndex) -> None:
        """Change the background between two instants. What the queries keep is held to it, and what it brings they take in at their next instant."""
        self.coming = None
        self.part_from_what_changes(known)
        for planned in [p for p in self.planned.values() if p.shape != self._planned_anew(p, known).shape]:
            straighten(self, planned)
        self._know(known)
        before = list(self.planned.values())
        fragments = self._replan(known)
        rank(self, list(self.planned.values()))
        for planned in self.planned.values():
            self.numbered[planned.number] = planned
            if planned.writes is not None:
                self.rules[planned.registered] = planned
        for planned, fragment in zip(before, fragments, strict=True):
            self.scan_again(planned, fragment)
        self._note_scans()
        for planned, fragment in zip([*self.planned.values()], fragments, strict=True):
            self.look_up(planned, fragment)
            self.list_again(planned, fragment)
            was = self._planned_anew(planned, self.knows[planned.registered])
            self.knows[planned.registered] = known
            if change := difference(was, fragment):
                added = held_to(self, planned, fragment, change) if self.net.queries[planned.number, c.Q_OPEN] else change.added
                if planned.registered in self.planned:
                    self._await(planned, added, change.removed)
        self.free_dropped()

    def needs_past(self, known: FactIndex, time: int) -> list[Planned]:
        """Return the queries that, over another background, decide by goals which have outlived the window that they had for them.

        Time has come to `time`.
        """
        return [planned for planned in self.planned.values() if self._decides_by_window(planned) and self._needs_past(planned, known, time)]

    def _decides_by_window(self, planned: Planned) -> bool:
        """Return whether an open query may decide by less than all that ever came."""
        nodes = self.net.nodes[planned.at.node : planned.after.node]
        windowed = (nodes[:, c.LIFE_BLOCKER] != c.FOREVER) & np.isin(nodes[:, c.KIND], (c.WITHOUT, *POLICIES))
        windowed |= (nodes[:, [c.LIFE_LEFT, c.LIFE_RIGHT]] != c.FOREVER).all(axis=1) & np.isin(nodes[:, c.KIND], OPTIONALS)
        return bool(self.net.queries[planned.number, c.Q_OPEN] and windowed.any())

    def _needs_past(self, planned: Planned, known: FactIndex, time: int) -> bool:
        was, now = self._planned_anew(planned, self.knows[planned.registered]), self._planned_anew(planned, known)
        if planned.shape != now.shape:
            return False  # nothing of it decides on absence
        passed = max(time, int(self.net.at[c.NOW])) - int(self.net.queries[planned.number, c.Q_T0])
        lives = [(one[c.LIFE_BLOCKER], other[c.LIFE_BLOCKER]) for one, other in zip(was.nodes, now.nodes, strict=True)]
        if any(before < after and before <= passed for before, after in lives):
            return True
        change = difference(was, now)
        return bool(now.forgetful and (change.added or change.more))

    def empty_like(self) -> "Network":
        """Return a network without queries that numbers streams alike."""
        network = Network(self.terms)
        for name in self.streams:
            network.number_of(name)
        return network

    def replay(self, rows: Ints, places: Ints) -> None:
        """Let solutions of the past arrive at their nodes, instant by instant."""
        order = np.argsort(rows[:, c.END], kind="stable")
        self.take_over(to_width(rows[order], self.net.rows.shape[1]), places[order], anew=True)

    def take_in(self, rows: Ints, places: Ints) -> None:
        """Let timeless solutions arrive at their nodes between two instants; none of them comes out, nor joins what has come."""
        self.net.at[c.NOW] += 1
        self.take_over(rows, places)
        self.net.at[c.NOW] -= 1

    def take_over(self, rows: Ints, places: Ints, *, anew: bool = False) -> None:
        """Let solutions from before arrive at their nodes, in order of end, since stores are kept in that order; `anew`: each at its own instant."""
        self.net.at[c.EVENT] = self.net.at[c.EVENTS] = 0
        self._hold(self._with_terms(self.net))
        for end in np.unique(rows[:, c.END]).tolist():
            now = np.flatnonzero(rows[:, c.END] == end)
            if anew:
                self.net.at[c.NOW] = end
                self.net.at[c.SEEN_FIRST] += self.net.at[c.SEEN_N]
                self.net.at[c.SEEN_N] = 0
            numbers, depth = self._rows_taken(len(now)), int(self.net.at[c.DEPTH])
            self.net.rows[numbers] = rows[now]
            frames = self.net.stack[depth : depth + len(now)]
            frames[:, [c.FRAME_NODE, c.FRAME_SIDE]], frames[:, c.FRAME_ROW] = places[now], numbers
            self.net.at[c.DEPTH] = depth + len(now)
            while (code := run(self.address)) != c.DONE:
                self._serve(code)
        assert anew or not self.net.at[c.FOUND], "the last operand keeps no goals"

    def drop(self, registered: int) -> None:
        """Take a query out between feeds, with its goals; no other is touched."""
        self.take_out(self.planned[registered])
        self.free_dropped()

    def take_out(self, planned: Planned) -> None:
        """Take a query out with its goals; `free_dropped` is yet to come."""
        self._without_readers(planned)
        self.forget(planned)
        self._leave(planned)
        self.net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        clear_stores(self.address, c.SIDES * planned.at.node, c.SIDES * planned.after.node)
        self._without_timers(planned)
        self.quotas.forget(planned.registered)
        self.completed.difference_update(range(planned.at.node, planned.after.node))  # others may take these nodes
        self._dropped.append(planned)

    def free_dropped(self) -> None:
        """Free the rows of dropped queries. What waits for the close of the instant, what the instant has met and the memo may name them still."""
        net, at = self.net, self.net.at
        waiting = net.waiting[: at[c.WAITING]]
        gone, side = net.nodes[waiting[:, c.FRAME_NODE], c.KIND] == c.DROPPED, waiting[:, c.FRAME_SIDE]
        stored = (side >= c.ORDER) & (side != c.RIGHT_CHOICE)  # goals of a policy, which their stores freed
        self._release(waiting[gone & ~stored, c.FRAME_ROW])
        kept = waiting[~gone]
        waiting[: len(kept)] = kept
        at[c.WAITING] = len(kept)
        for planned in self._dropped:
            tags, who = net.seen[: at[c.SEEN_N], c.SEEN_TAG], net.questions[: at[c.ASKED], c.ASK_WHO]
            nodes = tags % RIGHT_TAG
            tags[(tags >= 0) & (planned.at.node <= nodes) & (nodes < planned.after.node)] = c.BIG
            who[(planned.at.ask <= who) & (who < planned.after.ask)] = c.NONE
            for ask in range(planned.at.ask, planned.after.ask):
                del self._inquiries[ask]
            self._free(planned)
        self._dropped.clear()

    def unopened(self) -> list[Planned]:
        """Return the queries that no occurrence has opened yet."""
        closed = self.net.queries[: self._used["queries"].end, c.Q_OPEN] == 0
        return [self.numbered[number] for number in np.flatnonzero(closed).tolist()]

    def feed(self, columns: Ints) -> Ints:
        """Take in a feed (FEED_HEIGHT x n, in order); return the rows found, in the columns of `out`."""
        if self._due < self.now[c.NOW]:
            self.meet()
        if not self.changes:
            return self._feed(columns)
        now = max(int(self.net.at[c.NOW]), self.begun)
        later = np.flatnonzero(columns[c.IN_END] > now)
        if not len(later):
            return self._feed(columns)
        k, parts = int(later[0]), list[Ints]()
        if now > -c.BIG:  # the instant closes with the background that it has had
            before = columns[:, : k + 1].copy()
            before[c.IN_KIND, k], before[c.IN_END, k] = c.TICK, now + 1
            parts.append(self._feed(before))
        if self.coming is not None:
            outs = {planned.out: planned.registered for planned in self.planned.values()}
            self._learn(self.coming)
            for part in parts:
                self._follow(part, outs)
        if self.entails_otherwise:
            self._entail_anew()
        parts.append(self._feed(np.ascontiguousarray(columns[:, k:])))
        width = self.net.out.shape[1]
        return np.concatenate([to_width(part, width) for part in parts])

    def _follow(self, found: Ints, outs: Mapping[int, int]) -> None:
        """Rename rows found by queries that have been placed elsewhere since, because they are theirs still."""
        for node in np.unique(found[:, c.OUT_NODE]).tolist():
            if node in outs and self.planned[outs[node]].out != node:  # else it has failed
                found[found[:, c.OUT_NODE] == node, c.OUT_NODE] = -1 - self.planned[outs[node]].out
        moved = found[:, c.OUT_NODE] < 0
        found[moved, c.OUT_NODE] = -1 - found[moved, c.OUT_NODE]

    def _feed(self, columns: Ints) -> Ints:
        now, n = self.now, columns.shape[1]
        if not n:
            return self.net.out[:0]
        if self.began is None:
            self.began = min(columns[c.IN_END, columns[c.IN_KIND] == c.OCCURRENCE].tolist(), default=None)
        now[c.EVENT], now[c.EVENTS] = 0, n
        self._lend(columns)
        if (net := self._with_terms(self.net)) is not self.net:
            self._hold(net)
        chunks: list[Ints] = []
        while (code := run(self.address)) != c.DONE:
            if now[c.FOUND] > MOST_FOUND:
                chunks.append(self._take_found())
            self._serve(code)
        if n > FEW_COLUMNS:
            self._spread_heads()
        if self._dropped:
            self.free_dropped()
        found = self._take_found()
        return np.concatenate([*chunks, found]) if chunks else found

    def _lend(self, columns: Ints) -> None:
        """Show a feed to the kernel. Few columns are copied to an array that the kernel sees already, which costs less."""
        n = columns.shape[1]
        if n <= FEW_COLUMNS:
            self._few[:, :n] = columns
            columns = self._few
        if columns is not self._lent:
            self._show(FEED, columns)
            self._lent = columns

    def _take_found(self) -> Ints:
        n = self.now[c.FOUND]
        if n == 0:
            return self.net.out[:0]
        self.now[c.FOUND] = 0
        return self.net.out[:n].copy()

    def _serve(self, code: int) -> None:
        if code == c.GROW:
            at = self.net.at
            self._make_room(int(at[c.MARGIN]), int(at[c.WAITING]))
            self._spread_heads()
        elif code == c.EXCEEDED:
            self._exceeded()
        elif code == c.COLLECTION:
            self._collect()
        elif code == c.DECISION:
            self._decide()
        else:
            self._answer()

    def _exceeded(self) -> None:
        """Look into the query that is beyond a bound of its own."""
        number = int(self.net.at[c.ENDLESS])
        self.net.at[c.ENDLESS] = c.NONE
        self.quotas.look_into(self.readers_of(number))

    def fail(self, planned: Planned, reason: str) -> None:
        """Stop a query; no other is touched. `free_dropped` is yet to come."""
        self.failures.append(Failure(planned, int(self.net.at[c.ENTRY]), reason))
        self.take_out(planned)

    def _collect(self) -> None:
        """Hand what has been gathered to the collectors, and what they give to their nodes' readers; policies' goals come back in order."""
        net = self.net
        gathered = net.gathered[: net.at[c.GATHERED]].copy()
        net.at[c.GATHERED] = 0
        to_order = gathered[:, c.FRAME_SIDE] == c.ORDER
        if to_order.any():
            self._order(gathered[to_order])
            gathered = gathered[~to_order]
        for node in np.unique(gathered[:, c.FRAME_NODE]).tolist():
            frames = gathered[gathered[:, c.FRAME_NODE] == node]
            if node in self.collecting:
                self._emit(node, self._decided(self.collecting[node], frames))
            self._release(frames[:, c.FRAME_ROW])
        self._hold(self._with_terms(self.net))

    def _order(self, frames: Ints) -> None:
        """Put left goals that a policy's nodes cannot order on the stack, the oldest on top, with all of their instant and key."""
        goals: dict[int, int] = {}  # and their nodes
        for node, goal in frames[:, [c.FRAME_NODE, c.FRAME_ROW]].tolist():
            if self.net.nodes[node, c.KIND] in POLICIES and goal not in goals:  # its query may have failed meanwhile
                goals |= dict.fromkeys(self._beside(node, goal), node)
        numbers = np.array(list(goals), np.int64)
        numbers = numbers[self._by_age(numbers, np.array(list(goals.values()), np.int64))][::-1]
        self._make_room(0, len(numbers))
        at, depth = self.net.at, int(self.net.at[c.DEPTH])
        stack = self.net.stack[depth : depth + len(numbers)]
        stack[:, c.FRAME_NODE], stack[:, c.FRAME_SIDE], stack[:, c.FRAME_ROW] = (
            [goals[goal] for goal in numbers.tolist()],
            c.YOUNGEST,
            numbers,
        )
        at[c.DEPTH] = depth + len(numbers)

    def _beside(self, node: int, goal: int) -> list[int]:
        """Return the goals of one chain that have a goal's key and end at this instant, that goal included."""
        rows, now = self.net.rows, self.net.at[c.NOW]
        first, n = self.net.nodes[node, [c.KEY_AT, c.KEY_N]].tolist()
        columns = [c.HASH, *self.net.slots[first : first + n].tolist()]
        key, found = rows[goal, columns].tolist(), [goal]
        for direction in (c.OLDER, c.NEWER):
            other = int(rows[goal, direction])
            while other != c.NONE and rows[other, c.END] == now:
                if rows[other, columns].tolist() == key:
                    found.append(other)
                other = int(rows[other, direction])
        return found

    def _by_age(self, goals: Ints, nodes: Ints) -> Ints:
        """Return the order of goals of one instant by start, then terms in N-Triples text by variable name, hidden ones last."""
        order = np.zeros(len(goals), np.int64)
        for query in np.unique(self.net.nodes[nodes, c.QUERY]).tolist():
            planned = self.numbered[query]
            columns = np.array([planned.columns[v] for v in sorted(planned.columns, key=lambda v: (v.hidden, v.name))], np.int64)
            own = np.flatnonzero(self.net.nodes[nodes, c.QUERY] == query)
            ranks = self.terms.in_order(self.net.rows[np.ix_(goals[own], columns)])
            order[own] = own[np.lexsort((*ranks.T[::-1], self.net.rows[goals[own], c.START]))]
        return order

    def _decided(self, collecting: Collecting, frames: Ints) -> Rows:
        at, collector = self.net.at, collecting.collector
        rows, wakes = (self._rows(frames[frames[:, c.FRAME_SIDE] == side, c.FRAME_ROW], collecting.reads) for side in (c.LEFT, c.BLOCKER))
        horizon = int(at[c.HORIZON]) if at[c.HORIZON] < c.FOREVER else None
        given = collector.decide(int(at[c.NOW]), rows, wakes, horizon, self.terms)
        if collecting.timer is not None:
            self.net.timers[collecting.timer, c.T_DUE] = collector.due()
        planned = self.planned[collecting.registered]
        if collector.done and collecting.node == planned.last and collecting.node not in self.completed:
            self.completed.add(collecting.node)
            reason = "ASK is answered" if isinstance(planned.query, a.Ask) else "LIMIT is reached"
            self.completions.append(Completion(planned, int(at[c.ENTRY]), reason))
        return given

    def _decide(self) -> None:
        """Hand what was deferred to its collectors, and what they give back to the kernel, which takes it on instant by instant."""
        net, at = self.net, self.net.at
        frames = net.deferred[: at[c.DEFERRED_N]].copy()
        at[c.DEFERRED_N] = 0
        parts = [self._reports(self.collecting[node], frames) for node in np.unique(frames[:, c.FRAME_NODE]).tolist() if node in self.collecting]
        self._release(frames[:, c.FRAME_ROW])
        reports = np.concatenate([net.reports[:0], *parts])
        at[c.REPORTED], at[c.REPORTS], at[c.STOOD] = 0, len(reports), at[c.NOW]
        self._hold(self._with_terms(self.net._replace(reports=reports)))

    def _reports(self, collecting: Collecting, frames: Ints) -> Ints:
        """Return what one collector makes of its frames, in the kernel's columns."""
        frames, horizon = frames[frames[:, c.FRAME_NODE] == collecting.node], int(self.net.at[c.HORIZON])
        rows = self._rows(frames[:, c.FRAME_ROW], collecting.reads)
        assert isinstance(collecting.collector, GroupCollector)
        moments = Moments(frames[:, c.D_NOW], frames[:, c.D_ENTRY], frames[:, c.FRAME_SIDE], rows)
        given = collecting.collector.decide_all(moments, horizon if horizon < c.FOREVER else None, self.terms)
        reports = np.zeros((len(given), self.net.reports.shape[1]), np.int64)
        reports[:, c.G_NODE], reports[:, c.G_ENTRY] = collecting.node, given.entry
        reports[:, c.G_START], reports[:, c.G_END] = given.rows.start, given.rows.end
        reports[:, collecting.writes + (c.G_VAR - c.VAR)] = given.rows.cells
        return reports

    def _rows(self, numbers: Ints, columns: Ints) -> Rows:
        rows = self.net.rows[numbers]
        return Rows(rows[:, c.START], rows[:, c.END], rows[:, columns])

    def _emit(self, node: int, given: Rows) -> None:
        """Put the collector's rows on the stack as the node's own."""
        n, at = len(given), self.net.at
        if not n:
            return
        numbers, net, depth = self._rows_taken(n), self.net, int(at[c.DEPTH])
        net.rows[numbers] = 0
        net.rows[numbers, c.START], net.rows[numbers, c.END] = given.start, given.end
        net.rows[np.ix_(numbers, self.collecting[node].writes)] = given.cells
        frames = net.stack[depth : depth + n]
        frames[:, c.FRAME_NODE], frames[:, c.FRAME_SIDE], frames[:, c.FRAME_ROW] = node, c.EMIT, numbers[::-1]
        at[c.DEPTH] = depth + n

    def _answer(self) -> None:
        """Answer the kernel's open questions and hand the parked work back."""
        at, questions = self.net.at, self.net.questions
        for q in range(int(at[c.ANSWERED]), int(at[c.ASKED])):
            who, *arguments = questions[q, c.ASK_WHO :].tolist()
            inquiry, name = self._inquiries[who]
            questions[q, c.ASK_ANSWER] = host_calls.answer(inquiry, arguments[c.ASK_ARG - c.ASK_WHO - 1 :], self.terms, name, int(at[c.NOW]))
        at[c.ANSWERED] = at[c.ASKED]
        n, depth = int(at[c.PARKED]), int(at[c.DEPTH])
        self._make_room(0, n)
        net = self.net
        net.stack[depth : depth + n] = net.parked[:n]
        at[c.DEPTH], at[c.PARKED] = depth + n, 0
        self._hold(self._with_terms(net))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return program and state, by name. Between feeds nothing is on its way, so answers may be asked for again and pools be left out."""
        net = self.net
        assert not net.at[c.DEPTH]
        assert not net.at[c.PARKED]
        assert not net.at[c.DEFERRED_N]
        ends = {name: used.end for name, used in self._used.items()} | {"stores": c.SIDES * self._used["nodes"].end}
        filled = {name: getattr(net, name)[:end] for name, end in ends.items()} | {"timers": net.timers[: net.at[c.TIMER_NODES]]}
        pools = {"waiting": net.waiting[: net.at[c.WAITING]], "seen": net.seen[: net.at[c.SEEN_N]]}
        return {name: getattr(net, name) for name in KEPT} | filled | pools

    def restore(self, arrays: dict[str, NDArray[Any]], fragments: Sequence[tuple[Planned, Fragment]]) -> None:
        """Take over what `arrays` gave, with the queries at their places, whose collectors were never used."""
        planned = [p for p, _ in fragments]
        width = arrays["rows"].shape[1] - c.VAR
        self._hold(with_width(self.net, width)._replace(**arrays))
        self._forget_answers()  # if it was used, they have no place any more
        self.planned, self.numbered, self.rules, self._readers, self._inquiries = {}, {}, {}, {}, {}
        for p in planned:
            self._enter(p)
            self._inquiries |= {p.at.ask + k: (inquiry, p.name) for k, inquiry in enumerate(p.inquiries)}
        self._used = self._rows_in_use()
        timers = {node: k for k, node in enumerate(self.net.timers[:, c.T_NODE].tolist())}
        for p, fragment in fragments:
            self._collect_with(p, fragment, timers)
        self.completed = set()

    def _rows_in_use(self) -> dict[str, Ranges]:
        """Return the ranges of rows in use in a network that was restored."""
        placed = [ranges_of(p.at, p.after) for p in self.planned.values()]
        used = {name: ranges_around(ranges[name] for ranges in placed) for name in TABLES}
        used["queries"] = ranges_around((p.number, 1) for p in self.planned.values())
        used["reads"] = ranges_around((k, 1) for k in np.flatnonzero(self.net.reads[:, c.R_QUERY] != c.NONE).tolist())
        used["facts"] = Ranges(len(self.net.facts))
        return used

    def observed(self) -> Ints:
        """Return how many occurrences there were, of all predicates and then of each."""
        return by_predicate(self.net)[:, c.ALPHA_SEEN].copy()

    def observe(self, observed: Ints) -> None:
        """Take over what `observed` gave."""
        self._hold(with_predicate(self.net, len(observed) - 1))
        by_predicate(self.net)[: len(observed), c.ALPHA_SEEN] = observed

    def await_facts(self, facts: Sequence[tuple[Planned, Ints]]) -> None:
        """Set what each query is yet to take in; whatever stood there before goes.

        The rows are those of `facts`; their cells may be fewer, or more than any query has.
        """
        self._used["facts"] = Ranges()
        self.net.queries[:, c.Q_FACTS_N], self.net.streams[:, c.S_PENDING] = 0, 0
        for planned, rows in facts:
            own = np.zeros((len(rows), self.net.facts.shape[1]), np.int64)
            cells = min(rows.shape[1], own.shape[1])
            assert not rows[:, cells:].any(), "columns of wider queries, which are gone"
            own[:, :cells] = rows[:, :cells]
            self._with_fact_rows(planned, own)
            pending = self.net.queries[planned.number, c.Q_OPEN] == 0 or len(rows) > 0
            for stream in dict.fromkeys(planned.query.streams):
                self.net.streams[self.streams[stream], c.S_PENDING] += pending
