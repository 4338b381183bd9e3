"""This module runs one kernel over the queries that are placed, and serves what it returns for: room, decisions and
exact answers.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.aggregation import Passage, RowBatch
from engine.background.fact_store import FactIndex
from engine.background.reasoning.stream_entailment import Entailment
from engine.dictionary.sort_keys import sort_key
from engine.dictionary.term_dictionary import Held, TermTable
from engine.errors import SolverStopped
from engine.expressions.background_functions import RouteSearch
from engine.expressions.etalis import KEY
from engine.expressions.evaluator import ExpressionError, evaluate, truth
from engine.expressions.nondeterministic import Identity, Naming
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net, to_width, width_of, write_whole
from engine.native.entries import clear_stores, run
from engine.network.collectors import Collectors
from engine.network.kernel_arrays import KernelArrays
from engine.network.placed_query import POLICIES, Answers, Planned, QueryPlanning, RegisteredQuery, SolverOf, describe_plan
from engine.network.query_slots import QuerySlots
from engine.network.quotas import Quotas
from engine.network.shares import Shares
from engine.network.stratification import find_affected, rank_nodes
from engine.network.subplan_sharing import SubplanSharing
from engine.physical_plan.bounding_boxes import BoundingBoxes
from engine.physical_plan.join_trees import PlanShape
from engine.physical_plan.plan import Fragment, Inquiry
from engine.physical_plan.string_tests import decide_strings
from engine.planner import plan_query
from engine.planner.builder.join_order import Rates
from engine.triples.quads import Quad
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.etalis.parser.vocabulary import key_of
from epsparql.terms import BlankNode, Term, Variable

Ints = NDArray[np.int64]
FEED = Net._fields.index("feed")
_OCCURRENCES = (c.OCCURRENCE, c.WHOLE)
FEW_COLUMNS = 8
"""A feed of at most this many columns has the tables of chains looked after only when pools grow."""
MANY_QUESTIONS = 64
"""From so many on, questions about strings and shapes are answered together, which has a price of its own."""
MOST_FOUND = 1 << 16
"""The host takes the rows of `out` when there are more than this, before it grants more room."""


@dataclass(frozen=True, slots=True, eq=False)
class StoppedQuery:
    """Says that a query was stopped at an entry because it was beyond a bound of its own."""

    planned: Planned
    entry: int
    reason: str


class KernelHost:
    """Composes a kernel's arrays with the queries that are placed there, and runs it."""

    def __init__(
        self,
        terms: TermTable,
        known: FactIndex,
        solver_of: SolverOf,
        owns: Callable[[Quad], bool] | None = None,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.arrays = KernelArrays(terms)
        self.slots = QuerySlots(self.arrays, Entailment(known.schema))
        self.planning = QueryPlanning(self.arrays, self.slots.streams.number_stream, known, owns, without, solver_of)
        self._boxes = BoundingBoxes(terms)
        self.collectors, self.shares = Collectors(self.slots), Shares(self.slots)
        self.quotas = Quotas(self.slots, self.collectors, self.shares)
        self.sharing = SubplanSharing(self.planning, self.slots, self.shares, self.quotas)
        self.failures: list[StoppedQuery] = []
        self._searches = False  # whether a query that was ever here has a function that searches the background
        few: Ints = np.empty((c.FEED_HEIGHT, FEW_COLUMNS), np.int64)  # the feed, where it has few columns
        self._few = [few[:, :n] for n in range(FEW_COLUMNS)] + [few]  # by their number
        self._lent = few[:, :0]  # the feed that the kernel sees, kept alive while it is there
        terms.holders.add(self)

    def hold(self, held: Held) -> None:
        """Mark the terms of program, goals and collectors; what was asked may be asked again."""
        net = self.arrays.net
        for table in (net.at[[c.TRUE_TERM, c.FALSE_TERM]], net.code, net.templates, net.moves, net.facts):
            held.add(table)
        self.slots.scans.hold_terms(held)
        held.add(net.seen[: net.at[c.SEEN_N], c.SEEN_VAR :])
        held.add_rows(net.rows["terms"][: net.at[c.USED]], net.free[: net.at[c.FREE]])
        self.collectors.hold_terms(held)
        self.arrays.forget_answers()
        self._boxes.forget()

    # ------------------------------------------------------------ queries
    def add_query(self, source: RegisteredQuery, facts: FactIndex, rates: Rates | None = None, shape: PlanShape | None = None) -> None:
        """Plan a rewritten query and put it into rows that are free. Raises Refusal, Cycle; whatever is raised,
        nothing has changed.

        If no rates are given, those observed are taken; if no shape is given, the rates decide the shape.
        """
        self.set_background(facts)
        rates = self.planning.estimate_rates(source.query) if rates is None else rates
        answers = Answers()
        fragment = plan_query(source.query, self.planning.make_names(facts, source.make_options(rates, shape), answers))
        self.place_plan(source, fragment, rates)
        self.planning.rest_on(source.registered, facts, answers)

    def place_plan(self, source: RegisteredQuery, fragment: Fragment, rates: Rates) -> None:
        """Put a plan into rows that are free. Raises Cycle; nothing has changed then."""
        number, at = self.slots.take_place(fragment)
        planned = describe_plan(source, number, fragment, at, rates)
        self.slots.enter_query(planned)
        try:
            self.slots.write_plan(planned, fragment)
            rank_nodes(self.slots, find_affected(self.slots, planned))
        except BaseException:
            self.slots.leave_query(planned)
            self.slots.free_rows(planned)
            raise
        self.slots.add_inquiries(planned)
        self._searches = self._searches or any(inquiry.searches for inquiry in fragment.inquiries)
        self.slots.lookups.set_tables(planned, fragment, self.planning.known)
        self.slots.add_readers(planned, fragment)
        self.collectors.add_collectors(planned, fragment, self.collectors.add_timers(fragment, at))

    def set_background(self, known: FactIndex) -> None:
        """Take up a background. The occurrences of an instant that has begun go on to entail what they did."""
        scans = self.slots.scans
        if self._searches and known is not self.planning.known:
            self.arrays.forget_answers()  # those of searches hold for one background
        self.planning.known, scans.entailment = known, scans.entailment_by(known)
        if scans.entails_otherwise and self.arrays.net.at[c.NOW] == -c.BIG:
            scans.entail_by(scans.entailment)

    def take_out(self, planned: Planned) -> None:
        """Take a query out with its goals; `free_dropped` is yet to come."""
        self.slots.remove_readers(planned)
        self.sharing.remove_query(planned)
        self.slots.leave_query(planned)
        self.planning.forget_query(planned.registered)
        net = self.arrays.net
        net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        clear_stores(self.arrays.address, c.SIDES * planned.at.node, c.SIDES * planned.after.node)
        self.collectors.remove_query(planned)
        self.quotas.remove_quota(planned.registered)
        self.slots.dropped.append(planned)

    def fail_query(self, planned: Planned, reason: str) -> None:
        """Stop a query; no other is touched. `free_dropped` is yet to come."""
        self.failures.append(StoppedQuery(planned, int(self.arrays.net.at[c.ENTRY]), reason))
        self.take_out(planned)

    def weigh_collectors(self, entry: int) -> None:
        """Stop the queries whose collectors hold more than their quotas allow, as of an entry between feeds."""
        for planned in self.quotas.weigh_collectors():
            self.arrays.net.at[c.ENTRY] = entry
            self._stop_excessive([planned])
        self.slots.free_dropped()

    def _stop_excessive(self, queries: Sequence[Planned]) -> None:
        """Stop those of these queries that are beyond one of their bounds."""
        for planned in queries:
            if (reason := self.quotas.explain_excess(planned)) is not None:
                self.fail_query(planned, reason)
        staying = [planned for planned in queries if planned.registered in self.slots.planned]
        for planned in staying[:1]:
            self.quotas.deal_anew(planned)
        for planned in staying[1:]:
            self.quotas.deal_goals(planned)

    def make_empty(self) -> "KernelHost":
        """Return a host without queries, over the same terms and background, that numbers streams alike."""
        host = KernelHost(self.arrays.terms, FactIndex(self.arrays.terms), self.planning.solver_of)
        for name in self.slots.streams.numbers:
            host.slots.streams.number_stream(name)
        host.planning.known = self.planning.known
        return host

    # ------------------------------------------------------------ what the kernel takes in
    def feed(self, columns: Ints) -> Ints:
        """Let the kernel take in a feed; return the rows found, in the columns of `out`."""
        chunks = list(self.feed_in_parts(columns))
        return np.concatenate(chunks) if len(chunks) > 1 else chunks[0]

    def feed_in_parts(self, columns: Ints) -> Iterator[Ints]:
        """Do as `feed` does, and yield the rows in parts, as they are found.

        A caller that does not want all of them has no more use for this host.
        """
        arrays, n = self.arrays, columns.shape[1]
        now = arrays.now
        if not n:
            yield arrays.net.out[:0]
            return
        if arrays.began is None:
            arrays.began = min(columns[c.IN_END, np.isin(columns[c.IN_KIND], _OCCURRENCES)].tolist(), default=None)
        now[c.EVENT], now[c.EVENTS] = 0, n
        self._lend_feed(columns)
        if self.collectors.placed and (n > FEW_COLUMNS or c.LAST in columns[c.IN_KIND].tolist()):  # a mask of one column costs more than the kernel
            for last in columns[c.IN_END, columns[c.IN_KIND] == c.LAST].tolist():
                self.collectors.announce_last(last)
        self._settle()
        while (code := run(arrays.address)) != c.DONE:
            if arrays.now[c.FOUND] > MOST_FOUND:
                yield self._take_found()
            self._serve_return(code)
        if n > FEW_COLUMNS:
            arrays.spread_heads()
        if self.slots.dropped:
            self.slots.free_dropped()
        yield self._take_found()

    def _settle(self) -> None:
        """Bring up to date what the kernel reads of queries and terms."""
        if self.slots.scans.is_margin_due:
            self.slots.scans.settle_margin()
        self.arrays.refresh_terms()

    def _lend_feed(self, columns: Ints) -> None:
        """Show a feed to the kernel. Few columns are copied to an array that the kernel sees already, which costs less."""
        n = columns.shape[1]
        if n <= FEW_COLUMNS:
            self._few[n][...] = columns
            columns = self._few[-1]
        if columns is not self._lent:
            self.arrays.show_array(FEED, columns)
            self._lent = columns

    def _take_found(self) -> Ints:
        now, out = self.arrays.now, self.arrays.net.out
        n = now[c.FOUND]
        if n == 0:  # as of most events
            return out[:0]
        now[c.FOUND] = 0
        return out[:n].copy()

    def replay_solutions(self, rows: Ints, places: Ints) -> None:
        """Let solutions of the past arrive at their nodes, instant by instant."""
        order = np.argsort(rows[:, c.END], kind="stable")
        self.enter_solutions(to_width(rows[order], width_of(self.arrays.net)), places[order], anew=True)

    def take_in_timeless(self, rows: Ints, places: Ints) -> None:
        """Let timeless solutions arrive at their nodes between two instants; none of them comes out, nor joins what
        has come.
        """
        self.arrays.net.at[c.NOW] += 1
        self.enter_solutions(rows, places)
        self.arrays.net.at[c.NOW] -= 1
        assert not self.arrays.net.at[c.FOUND]

    def enter_solutions(self, rows: Ints, places: Ints, *, anew: bool = False) -> None:
        """Let solutions from before arrive at their nodes, in order of end, since stores are kept in that order;
        `anew`: each at its own instant.
        """
        arrays = self.arrays
        at = arrays.net.at
        at[c.EVENT] = at[c.EVENTS] = 0
        self._settle()
        for end in np.unique(rows[:, c.END]).tolist():
            now = np.flatnonzero(rows[:, c.END] == end)
            if anew:
                at[c.NOW] = end
                at[c.SEEN_FIRST] += at[c.SEEN_N]
                at[c.SEEN_N] = 0
            numbers = arrays.take_rows(len(now))
            write_whole(arrays.net, numbers, rows[now])
            arrays.push_frames(places[now, 0], places[now, 1], numbers)
            while (code := run(arrays.address)) != c.DONE:
                self._serve_return(code)

    # ------------------------------------------------------------ what the kernel returns for
    def _serve_return(self, code: int) -> None:
        at = self.arrays.net.at
        if code == c.GROW:
            self.arrays.make_room(int(at[c.MARGIN]), int(at[c.WAITING]))
            self.arrays.spread_heads(int(at[c.MARGIN]))
        elif code == c.EXCEEDED:
            number = int(at[c.ENDLESS])
            at[c.ENDLESS] = c.NONE
            self._stop_excessive(self.shares.find_readers(number))
        elif code == c.COLLECTION:
            self._collect_gathered()
        elif code == c.DECISION:
            self._decide_deferred()
        else:
            self._answer_questions()
        if self.slots.scans.is_margin_due:
            self.slots.scans.settle_margin()

    def _collect_gathered(self) -> None:
        """Hand what has been gathered to the collectors, and what they give to their nodes' readers; policies' goals
        come back in order.
        """
        arrays = self.arrays
        gathered = arrays.net.gathered[: arrays.net.at[c.GATHERED]].copy()
        arrays.net.at[c.GATHERED] = 0
        to_order = gathered[:, c.FRAME_SIDE] == c.ORDER
        if to_order.any():
            self._order_goals(gathered[to_order])
            gathered = gathered[~to_order]
        choosing = gathered[:, c.FRAME_SIDE] == c.RIGHT_CHOICE
        if choosing.any():
            self._order_choices(gathered[choosing])
            gathered = gathered[~choosing]
        for node in np.unique(gathered[:, c.FRAME_NODE]).tolist():
            frames = gathered[gathered[:, c.FRAME_NODE] == node]
            if node in self.collectors.placed:
                try:
                    self._emit_rows(node, self.collectors.decide_rows(node, frames))
                except SolverStopped as stopped:
                    self.fail_query(self.slots.planned[self.collectors.placed[node].registered], str(stopped))
            arrays.release_rows(frames[:, c.FRAME_ROW])
        arrays.refresh_terms()

    def _emit_rows(self, node: int, given: RowBatch) -> None:
        """Put the collector's rows on the stack as the node's own, the first on top; a ONCE is yet to decide on them."""
        if not len(given):
            return
        numbers, net = self.arrays.take_rows(len(given)), self.arrays.net
        cells = np.zeros((len(given), width_of(net)), np.int64)
        cells[:, c.START], cells[:, c.END], cells[:, self.collectors.placed[node].writes] = given.start, given.end, given.cells
        write_whole(net, numbers, cells)
        self.arrays.push_frames(node, c.DECIDE_RIGHT if net.nodes[node, c.KIND] == c.ONCE else c.EMIT, numbers[::-1])

    def _order_goals(self, frames: Ints) -> None:
        """Put left goals that a policy's nodes cannot order on the stack, the oldest on top, with all of their
        instant and key.
        """
        net = self.arrays.net
        goals: dict[int, int] = {}  # and their nodes
        for node, goal in frames[:, [c.FRAME_NODE, c.FRAME_ROW]].tolist():
            if net.nodes[node, c.KIND] in POLICIES and goal not in goals:  # its query may have failed meanwhile
                goals |= dict.fromkeys(find_goals_beside(net, node, goal), node)
        numbers = np.array(list(goals), np.int64)
        numbers = numbers[sort_by_age(self.slots, numbers, np.array(list(goals.values()), np.int64))][::-1]
        self.arrays.make_room(0, len(numbers))
        self.arrays.push_frames(np.array([goals[goal] for goal in numbers.tolist()], np.int64), c.YOUNGEST, numbers)

    def _order_choices(self, frames: Ints) -> None:
        """Put right goals that a policy's nodes are to serve on the stack, the oldest on top."""
        net = self.arrays.net
        runs = np.isin(net.nodes[frames[:, c.FRAME_NODE], c.KIND], list(POLICIES))  # a query may have failed meanwhile
        self.arrays.release_rows(frames[~runs, c.FRAME_ROW])
        nodes, goals = frames[runs, c.FRAME_NODE], frames[runs, c.FRAME_ROW]
        order = sort_by_age(self.slots, goals, nodes)[::-1]
        self.arrays.make_room(0, len(order))
        self.arrays.push_frames(nodes[order], c.DECIDE_RIGHT, goals[order])

    def _decide_deferred(self) -> None:
        """Hand what was deferred to its collectors, and what they give back to the kernel, which takes it on instant
        by instant.
        """
        arrays = self.arrays
        net, at = arrays.net, arrays.net.at
        frames = net.deferred[: at[c.DEFERRED_N]].copy()
        at[c.DEFERRED_N] = 0
        nodes = [node for node in np.unique(frames[:, c.FRAME_NODE]).tolist() if node in self.collectors.placed]
        passage = self._find_passage()
        parts = []
        for node in nodes:
            own = frames[frames[:, c.FRAME_NODE] == node]
            try:
                parts.append(self.collectors.decide_reports(node, own, passage))
            except SolverStopped as stopped:
                self.fail_query(self.slots.planned[self.collectors.placed[node].registered], str(stopped))
        arrays.release_rows(frames[:, c.FRAME_ROW])
        reports = np.concatenate([net.reports[:0], *parts])
        at[c.REPORTED], at[c.REPORTS], at[c.STOOD] = 0, len(reports), at[c.NOW]
        arrays.replace_arrays(net._replace(reports=reports))
        arrays.refresh_terms()

    def _find_passage(self) -> Passage:
        """Return how time has passed with the columns of the feed that are taken in; one that tells the last instant
        moves no time.
        """
        columns = self._lent[:, : int(self.arrays.net.at[c.EVENT])]
        ends = np.where(columns[c.IN_KIND] == c.LAST, -c.BIG, columns[c.IN_END])
        return Passage(np.maximum.accumulate(ends), columns[c.IN_ENTRY])

    def _answer_questions(self) -> None:
        """Answer the kernel's open questions and hand the parked work back."""
        arrays = self.arrays
        at, questions = arrays.net.at, arrays.net.questions
        first = int(at[c.ANSWERED])
        asked = questions[first : at[c.ASKED]]
        if len(asked) >= MANY_QUESTIONS:
            self._decide_together(asked)
        for q in (first + np.flatnonzero(asked[:, c.ASK_ANSWER] == c.OPEN_QUESTION)).tolist():
            who, *arguments = questions[q, c.ASK_WHO :].tolist()
            inquiry, naming = self.slots.inquiries[who]
            given = answer_question(
                inquiry, arguments[c.ASK_ARG - c.ASK_WHO - 1 :], arrays.terms, naming, int(at[c.NOW]), self.planning.known.find_route
            )
            questions[q, c.ASK_ANSWER] = given
        at[c.ANSWERED] = at[c.ASKED]
        n, depth = int(at[c.PARKED]), int(at[c.DEPTH])
        if depth + n > len(arrays.net.stack):
            arrays.make_room(0, n)
        arrays.net.stack[depth : depth + n] = arrays.net.parked[:n]
        at[c.DEPTH], at[c.PARKED] = depth + n, 0
        arrays.refresh_terms()

    def _decide_together(self, asked: Ints) -> None:
        """Answer, among many questions, those that can be decided at once."""
        unanswered = np.flatnonzero(asked[:, c.ASK_ANSWER] == c.OPEN_QUESTION)
        for who in np.unique(asked[unanswered, c.ASK_WHO]).tolist():
            rows = unanswered[asked[unanswered, c.ASK_WHO] == who]
            inquiry, _ = self.slots.inquiries[who]
            verdicts = decide_strings(inquiry, asked[rows, c.ASK_ARG], self.arrays.terms)
            if verdicts is None:
                columns = {variable: asked[rows, c.ASK_ARG + k] for k, variable in enumerate(inquiry.variables)}
                verdicts = self._boxes.decide(inquiry.condition, columns)
            if verdicts is not None:
                asked[rows, c.ASK_ANSWER] = verdicts


# ---------------------------------------------------------------- goals of a policy
def find_goals_beside(net: Net, node: int, goal: int) -> list[int]:
    """Return the goals of one chain that have a goal's key and end at this instant, that goal included."""
    rows, now = net.rows, net.at[c.NOW]
    first, n = net.nodes[node, [c.KEY_AT, c.KEY_N]].tolist()
    columns = net.slots[first : first + n] - c.VAR
    hash_, key, found = rows["hash"][goal], rows["terms"][goal, columns].tolist(), [goal]
    for direction in ("older", "newer"):
        other = int(rows[direction][goal])
        while other != c.NONE and rows["end"][other] == now:
            if rows["hash"][other] == hash_ and rows["terms"][other, columns].tolist() == key:
                found.append(other)
            other = int(rows[direction][other])
    return found


def sort_by_age(slots: QuerySlots, goals: Ints, nodes: Ints) -> Ints:
    """Return the order of goals by end, start, then terms in N-Triples text by variable name, hidden ones last.

    Goals with the same end go first by the value that their node chooses by.
    """
    net, order = slots.arrays.net, np.zeros(len(goals), np.int64)
    for query in np.unique(net.nodes[nodes, c.QUERY]).tolist():
        planned = slots.numbered[query]
        columns = np.array([planned.columns[v] - c.VAR for v in sorted(planned.columns, key=lambda v: (v.hidden, v.name))], np.int64)
        own = np.flatnonzero(net.nodes[nodes, c.QUERY] == query)
        ranks = slots.arrays.terms.in_order(net.rows["terms"][np.ix_(goals[own], columns)].astype(np.int64))
        starts, choices = net.rows["start"][goals[own]], net.nodes[nodes[own], c.CHOICE]
        starts = np.where(choices == c.LONGEST, -starts, starts)
        deciding = np.where(choices == c.GREATEST, net.nodes[nodes[own], c.COLUMN] - c.VAR, c.NONE)
        values = _rank_values(slots, goals[own], deciding)
        order[own] = own[np.lexsort((*ranks.T[::-1], starts, values, net.rows["end"][goals[own]]))]
    return order


def _rank_values(slots: QuerySlots, goals: Ints, columns: Ints) -> Ints:
    """Return the ranks of the goals' terms in these columns, in the order of ORDER BY; 0 where the column is NONE."""
    ranks = np.zeros(len(goals), np.int64)
    by_value = np.flatnonzero(columns != c.NONE)
    if len(by_value):
        terms = slots.arrays.terms
        keys = [sort_key(terms.term(number)) for number in slots.arrays.net.rows["terms"][goals[by_value], columns[by_value]].tolist()]
        places = {key: place for place, key in enumerate(sorted(set(keys)))}
        ranks[by_value] = [places[key] for key in keys]
    return ranks


# ---------------------------------------------------------------- answers
_VERDICTS = {True: c.TRUE, False: c.FALSE, None: c.ERROR}


def answer_question(inquiry: Inquiry, arguments: Sequence[int], terms: TermTable, naming: Naming, now: int, search: RouteSearch | None = None) -> int:
    """Return a verdict (TRUE, FALSE or ERROR) or the number of a term (UNBOUND for an error).

    `arguments` start with the numbers of the inquiry's variables' terms, then start and end if it is timed. `now` is
    the instant at which the question is asked, where a timeless solution stands; `search` finds routes in the
    background.
    """
    n, asked = len(inquiry.variables), inquiry.expression
    bound = dict(zip(inquiry.variables, arguments[:n], strict=True))
    start, end = (arguments[n], arguments[n + 1]) if inquiry.timed else (None, None)
    if start is not None and end is not None and start > end:
        start = end = None  # timeless

    def lookup(variable: Variable) -> Term | None:
        return terms.term(bound.get(variable, c.UNBOUND))

    if isinstance(asked, a.Call) and asked.function == KEY:  # each event that a program derives and reads asks it, so its terms are not parsed
        texts = [terms.text(bound[part.variable]) if isinstance(part, a.Var) else str(evaluate(part, lookup, start, end)) for part in asked.arguments]
        return terms.intern(str(key_of(texts))) if all(texts) else c.UNBOUND
    if inquiry.fresh is not None:
        return terms.intern(str(make_blank_node(inquiry.fresh, naming, [terms.text(k) for k in bound.values()], start, end)))
    identity = None
    if inquiry.site or (inquiry.timed and (end is None or inquiry.searches)):
        identity = Identity(naming, inquiry.site, (*(terms.text(bound[v]) for v in inquiry.solution), str(start), str(end)), now, search=search)
    try:
        if inquiry.condition is not None:
            return _VERDICTS[truth(inquiry.condition, lookup, start, end, identity)]
        assert asked is not None
        return terms.intern(str(evaluate(asked, lookup, start, end, identity)))
    except (ExpressionError, ValueError, ArithmeticError, RecursionError):  # what a library makes of an odd term is SPARQL's error as well
        return c.UNBOUND if inquiry.condition is None else c.ERROR


def make_blank_node(label: str, naming: Naming, solution: Sequence[str], start: int | None, end: int | None) -> BlankNode:
    """Return a template's blank node, a function of rule, solution and label (semantics.md section 6)."""
    return BlankNode(f"c{naming.digest(label, str(start), str(end), *solution)}")
