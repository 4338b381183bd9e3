"""This module reads a plan's tables back into steps."""

from collections.abc import Callable
from dataclasses import field

from engine.aggregation import AskCollector, GroupCollector, ModifiersCollector
from engine.aggregation.alarms import AlarmCollector, InstantCollector
from engine.aggregation.chains import ChainCollector
from engine.aggregation.operator import Collector
from engine.aggregation.rsp_window_report import ReportCollector
from engine.aggregation.runs import RunCollector
from engine.explain.algebra_outline import Item, Outliner, from_, length, variables, words, write_term
from engine.explain.dataflow import Feeds
from engine.explain.source_attribution import Written
from engine.expressions.nondeterministic import NAMELESS
from engine.expressions.temporal import format_instant
from engine.kernel.state import layout as c
from engine.network.placed_query import POLICIES
from engine.pattern_scope import list_conjuncts, variables_of
from engine.physical_plan.filter_compiler import compile_filter
from engine.physical_plan.operator_names import OPERATORS, RELATION_WORDS
from engine.physical_plan.plan import Fragment, Node, RowRange, Scan
from engine.physical_plan.recipes import make_recipe
from engine.planner.operators.without import LIFTED
from engine.rewrite.join_instances import ADDED
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import CHRONOLOGICAL, RECENT, RECENT_LONGEST
from epsparql.terms import Variable
from epsparql.trees import replace_fields, walk_nodes


@dataclass(frozen=True, slots=True)
class Check:
    """Describes a filter at a step; `by` is `kernel` or `host`.

    If `pushed_down`, it stands below an operator that the query has inside it.
    """

    condition: str
    by: str
    pushed_down: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """Gives the longest duration that a step lets pass; `pushed_down` means the same as for a Check."""

    duration: str
    pushed_down: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """Says in words how long a step keeps the solutions of a side."""

    side: str
    time: str


@dataclass(frozen=True, slots=True)
class OperatorStep:
    """Describes one operator of a plan; `inputs` are the places in the plan of what feeds it."""

    operator: str
    detail: str = ""
    on: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    within: Limit | None = None
    filters: tuple[Check, ...] = ()
    keeps: tuple[Kept, ...] = ()
    inputs: tuple[int, ...] = ()
    sides: tuple[int, ...] = field(default=(), compare=False)  # at which side each of the inputs comes in
    kind: int = field(default=c.NONE, compare=False)  # of its node, if it has one

    @property
    def unbounded(self) -> bool:
        return any(is_for_ever(kept) for kept in self.keeps)


FOR_EVER, NOT_STORED, FOR_ENTRY = "kept for ever", "not stored", "kept for its entry"
OF_LOCAL = " (of a local node, for its entry)"
MILLISECOND = 1_000
ON_HOST = "(instant by instant on the host: about 10,000 events/s)"
COUNTED = frozenset(
    {c.JOIN, c.EXTEND, c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL, c.MINUS, c.EXISTS, c.NOTEXISTS, c.WITHOUT, c.WITHOUTFOR} | POLICIES
)
"""These kinds of nodes stand for an operator of the query, as `Written` counts them."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads steps from a fragment.

    Sources of rows are its nodes and, numbered behind them, its scans and the places where timeless rows begin.
    """

    fragment: Fragment
    query: Item
    outliner: Outliner
    written: Written
    streams: dict[int, str]
    terms: Callable[[int], str]
    names: dict[int, str] = field(init=False)  # the names of columns
    rows: list[tuple[int, int]] = field(init=False)  # (node, side) that timeless rows of the query come to

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", {column: write_term(variable) for variable, column in self.fragment.columns.items()})
        object.__setattr__(self, "rows", list(dict.fromkeys((fact.node, fact.side) for fact in self.fragment.facts if len(fact.rows))))

    # ------------------------------------------------------------ the whole
    def steps(self) -> tuple[OperatorStep, ...]:
        """Return all steps that lead to the node OUT, which comes first.

        Each step comes before what feeds it, except in cycles.
        """
        whole = Feeds.from_fragment(self.fragment, self.rows)
        feeds = whole.without_dead_sources()
        depths = self._depths(feeds)
        places: dict[int, int] = {}
        pending = [self.fragment.out]
        while pending:
            source = pending.pop()
            if source not in places:
                places[source] = len(places)
                pending += reversed(feeds[source])
        sides = {source: whole.list_sides(source) for source in places}
        return tuple(
            replace_fields(
                self._step(source, depths[source]),
                inputs=tuple(places[below] for below in feeds[source]),
                sides=tuple(sides[source][below] for below in feeds[source]),
            )
            for source in places
        )

    def _depths(self, feeds: dict[int, list[int]]) -> dict[int, int]:
        """Return the least number of operators above each source."""
        depths = {self.fragment.out: 0}
        level = [self.fragment.out]
        while level:
            following = []
            for source in level:
                counts = source < len(self.fragment.nodes) and self.fragment.nodes[source].kind in COUNTED
                for below in feeds[source]:
                    if below not in depths:
                        depths[below] = depths[source] + counts
                        following.append(below)
            level = following
        return depths

    def _step(self, source: int, depth: int) -> OperatorStep:
        nodes, scans = self.fragment.nodes, self.fragment.scans
        if source < len(nodes):
            return replace_fields(self._read_operator(source, nodes[source], depth), kind=nodes[source].kind)
        if source < len(nodes) + len(scans):
            return OperatorStep("scan", self._scanned(scans[source - len(nodes)]))
        place = self.rows[source - len(nodes) - len(scans)]
        n = sum(len(fact.rows) for fact in self.fragment.facts if (fact.node, fact.side) == place)
        return OperatorStep("rows", f"{n}, timeless, of the query itself")

    # ------------------------------------------------------------ one of them
    def _read_operator(self, node: int, row: Node, depth: int) -> OperatorStep:
        match row.kind:
            case c.OUT if node in self.fragment.rules:
                rules = self.outliner.whole.rules if isinstance(self.outliner.whole, a.Select) else ()
                return OperatorStep("CONSTRUCT", self.outliner.head(rules[self.fragment.rules.index(node)]))
            case c.OUT:
                return OperatorStep(self.query.node.upper(), self.query.detail)
            case c.COLLECT:
                return self._collector(node)
            case c.MOVE if (operand := self._operand_of(row)) is not None:
                return OperatorStep("operand", operand)
            case c.MOVE:
                return OperatorStep("DISTINCT" if row.once else "take", self._moved(row))
            case c.MARK:
                return OperatorStep("MARK", "with what EXISTS finds")
            case _:
                return OperatorStep(
                    operator_of(row),
                    self._detail(row),
                    self._columns(row.key),
                    self._columns(row.rest),
                    None if row.span >= LIFTED else Limit(length(row.span), depth > self.written.limits.get(row.span, depth)),
                    self._filters(row.filter, depth),
                    kept_by(row),
                )

    def _scanned(self, scan: Scan) -> str:
        def part(constant: int, column: int) -> str:
            return self.names[column] if column != c.NONE else self.terms(constant) if constant > 0 else "any"

        triple = " ".join(map(part, (scan.subject, scan.predicate, scan.object), scan.columns))
        graph = {c.NONE: "", c.UNBOUND: "in no graph", c.NAMED: "in a graph"}.get(scan.graph)
        bound = f"as {self.names[scan.graph_column]}" if scan.graph_column != c.NONE else ""
        return words(triple, f"of {self.streams[scan.stream]}", f"in {self.terms(scan.graph)}" if graph is None else graph, bound)

    def _operand_of(self, row: Node) -> str | None:
        """Return which operand of a summed chain a node marks, counted from 1, or between which two it has the blockers."""
        shapes = [collector.shape for collector in self.fragment.collectors.values() if isinstance(collector, ChainCollector)]
        for source, target in self.fragment.moves[row.moves.first : row.moves.first + row.moves.n]:
            for shape in shapes:
                if target == self.fragment.columns[shape.marked]:
                    place = shape.marks.index(self.terms(-source))
                    if place < shape.steps:
                        return f"{place + 1} of the chain"
                    gap, _ = shape.gaps[place - shape.steps]
                    return f"absent between {gap + 1} and {gap + 2} of the chain"
        return None

    def _moved(self, row: Node) -> str:
        pairs = self.fragment.moves[row.moves.first : row.moves.first + row.moves.n]
        found = []
        for source, target in pairs:
            if target <= 0:
                found.append(f"{self.names[source]} that is {self.terms(-target)}")
            else:
                origin = self.names[source] if source > 0 else self.terms(-source)
                found.append(origin if source == target else f"{origin} as {self.names[target]}")
        return ", ".join(found)

    def _detail(self, row: Node) -> str:
        named = f"as {self.names[row.column]}" if row.kind == c.EXISTS and row.column else ""
        condition = ""
        if row.kind == c.EXTEND:
            place = "in the kernel" if make_recipe(self.fragment.inquiries[row.ask], NAMELESS) else "by the host"
            condition = f"of {self.names[row.column]}{self._bound_to(row.ask)} {place}"
        elif row.condition >= 0:
            condition = f"if {' && '.join(self.outliner.texts.write_expression(each) for each in self._conditions(row.condition))}"
        policy = self._policy_of(row)
        absent = self._columns(row.key2)
        gated = "after the left side of SEQ" if row.kind == c.JOIN and row.gate != c.NONE else ""
        counted = "reset by" if row.kind == c.ONCE else "absent:"
        if row.kind == c.INSTANCES and row.column:
            condition = f"in order, up to {self.names[row.column]}"
        if row.kind == c.INSTANCES and row.keep:
            condition = words(condition, f"found in {self.names[row.keep]}")
        return words(policy, named, condition, gated, f"({counted} what agrees on {' '.join(absent)})" if absent else "")

    def _policy_of(self, row: Node) -> str:
        match row.kind, row.keep:
            case c.CHRONOLOGICAL, _:
                return CHRONOLOGICAL
            case c.RECENT, c.GREATEST:
                return f"recent-by {self.names[row.column]}"
            case c.RECENT, choice:
                return RECENT_LONGEST if choice == c.LONGEST else RECENT
            case _:
                return ""

    def _bound_to(self, ask: int) -> str:
        inquiry = self.fragment.inquiries[ask]
        return "" if inquiry.expression is None else f" as {self.outliner.texts.write_expression(inquiry.expression)}"

    def _collector(self, node: int) -> OperatorStep:
        collector: Collector = self.fragment.collectors[node]
        match collector:
            case GroupCollector():
                group = self._group_of(collector)
                matched = f"(its matches are made: {self.fragment.matched[node]})" if node in self.fragment.matched else ""
                return OperatorStep("GROUP", words(self.outliner.detail(group), matched), keeps=(Kept("groups", window_time(group.window)),))
            case ChainCollector(group=inner, shape=shape):
                group = self._group_of(inner)
                keeps = Kept("groups", window_time(group.window)), Kept("operands", f"kept {length(shape.span)}")
                detail = words(self.outliner.detail(group), f"(over a chain of {shape.steps} operands, whose matches are not made)")
                return OperatorStep("GROUP", detail, self._names_of(shape.keys), keeps=keeps)
            case RunCollector():
                group = self._group_of(collector)
                detail = words(self.outliner.detail(group), "" if collector.deferred else ON_HOST)
                return OperatorStep("RUN", detail, keeps=(Kept("open runs", window_time(group.window)),))
            case ModifiersCollector():
                return self._modifiers(collector)
            case ReportCollector():
                sources = self.outliner.whole.sources
                longest = max(window.length for window in sources.windows)
                return OperatorStep("WINDOWS", from_(sources), keeps=(Kept("contents", f"kept {length(longest)}"),))
            case AlarmCollector():
                return OperatorStep("ALARM", keeps=(Kept("rows", "kept until their instants"),))
            case InstantCollector():
                return OperatorStep("INSTANT", format_instant(collector.at))
            case AskCollector():
                return OperatorStep("ASK", keeps=(Kept("rows", "kept for the instant"),))
            case _:
                raise AssertionError(collector)

    def _modifiers(self, collector: ModifiersCollector) -> OperatorStep:
        """Describe a collector of modifiers as a step that is named after its first clause."""
        distinct = f"DISTINCT {variables(collector.projection)}" if collector.distinct else ""
        clauses = [self.outliner.modified(replace_fields(collector.modifiers, once=None)), distinct]
        text = words(*(clauses if collector.modifiers.order else reversed(clauses)))
        operator = "ORDER BY" if collector.modifiers.order else text.split(" ", 1)[0]
        return OperatorStep(operator, text.removeprefix(operator).strip(), keeps=(Kept("rows", "kept for the instant"),))

    def _group_of(self, collector: GroupCollector | RunCollector) -> a.Group:
        """Return the node of the algebra that a collector decides."""
        groups = (node for node in walk_nodes(self.outliner.whole) if isinstance(node, a.Group))
        return next(group for group in groups if (*group.keys, *(v for v, _ in group.aggregates)) == collector.writes)

    def _names_of(self, variables: tuple[Variable, ...]) -> tuple[str, ...]:
        return tuple(write_term(variable) for variable in variables)

    def _conditions(self, at: int) -> list[a.Expression]:
        condition = self.fragment.inquiries[self.fragment.code[at][0]].condition
        assert condition is not None
        return list_conjuncts(condition)

    def _filters(self, at: int, depth: int) -> tuple[Check, ...]:
        if at in (c.TIMED_ONLY, c.TIMELESS_ONLY):
            return (Check(f"the solution has {'an' if at == c.TIMED_ONLY else 'no'} interval", "kernel", False),)
        if at < 0:
            return ()
        texts, places = self.outliner.texts, self.written.conditions
        conditions = [each for each in self._conditions(at) if ADDED not in variables_of(each)]  # that an instance came before is no one's condition
        return tuple(Check(texts.write_expression(each), self._decider(each), depth > places.get(each, depth)) for each in conditions)

    def _decider(self, condition: a.Expression) -> str:
        """Return who decides a condition by itself. The host decides what the bytecode cannot say anything of."""
        alone = Fragment(columns=self.fragment.columns)
        return "host" if alone.code[compile_filter(alone, condition, lambda _text: 1) + 1][0] == c.ASK_HOST else "kernel"

    def _columns(self, rows: RowRange) -> tuple[str, ...]:
        return tuple(self.names[column] for column in self.fragment.columns_at(rows))


def operator_of(row: Node) -> str:
    """Return the name that a query has for a node's operator."""
    if row.kind in POLICIES and row.life_blocker != c.NEVER:
        return OPERATORS[c.WITHOUT]
    if row.kind == c.WITHOUT:
        return f"{RELATION_WORDS[row.relation]} ... WITHOUT"
    return RELATION_WORDS[row.relation] if row.kind in POLICIES | {c.JOIN} else OPERATORS[row.kind]


# ---------------------------------------------------------------- state
def kept_by(row: Node) -> tuple[Kept, ...]:
    """Return what a node stores, side by side. Where both sides describe one node, what they store of a local one goes
    with its entry.
    """
    found = _kept_at_all(row)
    if not row.star:
        return found
    return tuple(
        replace_fields(kept, time=FOR_ENTRY if row.local else f"{kept.time}{OF_LOCAL}") if kept.time != NOT_STORED else kept for kept in found
    )


def _kept_at_all(row: Node) -> tuple[Kept, ...]:
    left, right, absent = row.life_left, row.life_right, row.life_blocker
    match row.kind:
        case c.PASS | c.EXTEND | c.MARK | c.INSTANCES:
            return ()
        case c.ONCE:
            return (Kept("keys let through", _life(left if left == c.FOREVER else left + 1)),)
        case c.FIRST:
            return (Kept("first ones", _life(left)),)
        case c.EARLIEST | c.LATEST:
            return (Kept("rows", _life(left)),)
        case c.EXISTS | c.NOTEXISTS | c.MINUS:
            return (Kept("right side", _life(right)),)
        case c.RECENT | c.CHRONOLOGICAL:
            sides = ("latest of the left side", "right side") if row.kind == c.RECENT else ("unconsumed left side", "unserved right side")
            if row.relation == c.ANY:
                sides = (sides[0], "latest of the right side" if row.kind == c.RECENT else "unconsumed right side")
            between = () if absent == c.NEVER else (Kept("absent ones", _life(absent)),)
            return Kept(sides[0], _life(left)), Kept(sides[1], _life(right)), *between
        case c.WITHOUT if row.keep != c.NOT_PASSING:
            passed = (Kept("left side", _until_passed(left)), *((Kept("right side", _until_passed(right)),) if row.relation == c.ANY else ()))
            return *passed, Kept("absent ones", _life(absent))
        case c.WITHOUT if row.relation == c.ANY:
            return Kept("left side", _life(left)), Kept("right side", _life(right)), Kept("absent ones", _life(absent))
        case c.WITHOUT | c.WITHOUTFOR:
            return Kept("left side", _life(left)), Kept("absent ones", _life(absent))
        case _:
            return Kept("left side", _life(left)), Kept("right side", _life(right))


def is_for_ever(kept: Kept) -> bool:
    """Return whether a side is kept for ever, of nodes that are not local at least."""
    return kept.time.removesuffix(OF_LOCAL) == FOR_EVER


def _until_passed(life: int) -> str:
    return f"{'kept' if life >= LIFTED else f'{_life(life)}, or'} until an absent one has passed"


def window_time(window: a.GroupWindow | None) -> str:
    """Return how long a group keeps what it has seen."""
    match window:
        case None:
            return FOR_EVER
        case a.RangeWindow(size, _):
            return f"kept {length(size)}"
        case a.RowsWindow(count):
            return f"kept {count} rows each"
        case a.RunWindow(gap=gap, within=within):
            deadline = min((each for each in (gap, within) if each is not None), default=None)
            return FOR_EVER if deadline is None else f"kept {length(deadline)}"


def _life(life: int) -> str:
    if life == c.NEVER:
        return NOT_STORED
    if life >= LIFTED:
        return FOR_EVER
    if life == 0:
        return "kept for the instant"
    less = (life + 1) % MILLISECOND == 0  # as by `<` of a round duration
    return f"kept less than {length(life + 1)} after its end" if less else f"kept until {length(life)} after its end"
