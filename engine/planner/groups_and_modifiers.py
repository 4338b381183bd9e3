"""This module plans what collectors decide: groups, the modifiers of a SELECT, alarms and instants."""

from engine.aggregation import GroupCollector, ModifiersCollector, OnceCollector, Projection, SolutionOrder
from engine.aggregation.alarms import AlarmCollector, InstantCollector
from engine.aggregation.runs import RunCollector, RunShape
from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, sort_by_name
from engine.physical_plan.plan import Node
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.chain_aggregates import SummedChain, find_summed_chain, plan_summed_chain
from engine.planner.operators.exists import add_marks
from engine.planner.operators.graph import plan_empty_group
from engine.rewrite.rename_hidden import restore_name
from engine.rewrite.separate_runs import merges_reports
from epsparql import algebra as a
from epsparql.terms import XSD, Literal, Variable
from epsparql.trees import replace_fields, walk_nodes

MOST_STEPS = 100_000
"""One solution may have at most this many reports while it is in a window."""


def plan_group(builder: PlanBuilder, pattern: a.Group, target: Target) -> None:
    window = pattern.window
    if isinstance(window, a.RangeWindow) and window.step is not None and window.length > MOST_STEPS * window.step:
        raise Refusal(f"a window of more than {MOST_STEPS:,} steps", "STEP")
    if isinstance(window, a.RunWindow):
        plan_run(builder, pattern, window, target)
        return
    node = builder.add_node(Node(c.COLLECT), target)
    found = find_summed_chain(builder, pattern)
    if isinstance(found, SummedChain):
        builder.fragment.collectors[node] = plan_summed_chain(builder, node, found, pattern)
        if not pattern.keys:
            plan_empty_group(builder, a.ANYWHERE, (node, c.BLOCKER))
        return
    if found is not None:
        builder.fragment.matched[node] = found
    builder.plan_pattern(pattern.pattern, (node, c.LEFT))
    reads = sort_by_name(set(builder.fragment.columns))  # also what tells equal solutions apart
    graph = next((key for key in pattern.keys if key.name.startswith("_:graph#")), None)
    visible = sort_by_name({v for v in builder.scope(pattern.pattern).possible if restore_name(v) is not None})
    builder.fragment.collectors[node] = GroupCollector(pattern.keys, pattern.aggregates, window, reads, graph, builder.options.naming, visible)
    if not set(pattern.keys) - {graph}:
        plan_empty_group(builder, a.ANYWHERE if graph is None else _place_of(pattern.pattern, graph), (node, c.BLOCKER))


def plan_run(builder: PlanBuilder, pattern: a.Group, run: a.RunWindow, target: Target) -> None:
    """Plan a run.

    Timed solutions of UNTIL go to the collector; elements are marked where a timeless one agrees with their key.
    """
    elements = builder.scope(pattern.pattern)
    keys = frozenset(pattern.keys)
    node = builder.add_node(Node(c.COLLECT), target)
    solutions: Target = (node, c.LEFT)
    broken: Variable | None = None
    if run.until is not None:
        broken = builder.add_variable("exists")
        absent = builder.scope(run.until)
        mark = builder.add_node(Node(c.EXISTS, column=builder.column(broken), life_right=c.FOREVER, timeless=True))
        held = Scope(elements.certain & keys, elements.possible & keys, elements.timeless)
        builder.node(mark).key, builder.node(mark).rest = builder.key_columns(held, absent)
        timed = builder.add_node(Node(c.PASS, filter=c.TIMED_ONLY), (node, c.BLOCKER))
        timeless = builder.add_node(Node(c.PASS, filter=c.TIMELESS_ONLY), (mark, c.RIGHT))
        builder.plan_pattern(run.until, builder.add_fork([(timed, c.LEFT), (timeless, c.LEFT)]), longest_gap(run))
        solutions = add_marks(builder, [mark], elements, solutions)
    builder.plan_pattern(pattern.pattern, solutions)
    reads = sort_by_name(set(builder.fragment.columns))
    visible = sort_by_name({v for v in elements.possible if restore_name(v) is not None})
    shape = RunShape(pattern.keys, pattern.aggregates, run, broken, certain=keys <= elements.certain)
    builder.fragment.collectors[node] = RunCollector(shape, reads, visible, builder.options.naming)


def longest_gap(run: a.RunWindow) -> int:
    """Return how long an open run waits at most for what lies between its last element and the next one."""
    return min((part for part in (run.gap, run.within) if part is not None), default=c.FOREVER)


def _place_of(node: object, graph: Variable) -> a.Place:
    """Return the place of the triple patterns below that carry this graph."""
    return [part for part in walk_nodes(node) if isinstance(part, a.Place) and part.graph == graph][-1]


def plan_alarm(builder: PlanBuilder, pattern: a.Alarm, target: Target) -> None:
    """Plan an alarm. What it brings is strictly later than what sets it."""
    node = builder.add_node(Node(c.COLLECT), target)
    reads = sort_by_name(builder.scope(pattern.pattern).possible | {pattern.at})
    builder.fragment.collectors[node] = AlarmCollector(reads, pattern.at)
    builder.fragment.strict.add((node, c.LEFT))
    builder.plan_pattern(pattern.pattern, (node, c.LEFT))


def plan_instant(builder: PlanBuilder, pattern: a.Instant, target: Target) -> None:
    node = builder.add_node(Node(c.COLLECT), target)
    builder.fragment.collectors[node] = InstantCollector(pattern.at)


def plan_sub_select(builder: PlanBuilder, pattern: a.SubSelect, target: Target, span: int, wanted: Conditions) -> None:
    if not pattern.distinct:  # one sub-SELECT's rows are not another's
        row = builder.column(builder.add_variable("row"))
        target = builder.add_move(target, [(-builder.names.term(str(Literal("true", XSD + "boolean"))), row)], keep=True), c.LEFT
    if pattern.modifiers == a.PLAIN and not pattern.distinct:
        builder.plan_pattern(pattern.pattern, target, span, wanted)  # hidden variables have names of their own
        return
    target = builder.enforce(target, span, wanted)
    if not gathers_instant(pattern):
        columns = [builder.column(v) for v in pattern.projection]
        target = (builder.add_move(target, [(k, k) for k in columns], once=True), c.LEFT) if pattern.distinct else target
    first = len(builder.fragment.nodes)
    if pattern.modifiers == a.PLAIN:
        builder.plan_pattern(pattern.pattern, target, span)
    else:
        plan_modifiers(builder, pattern, target)
    if pattern.distinct:
        builder.fragment.projected.append(range(first, len(builder.fragment.nodes)))


def plan_modifiers(builder: PlanBuilder, select: a.Select | a.SubSelect, target: Target, rank: Variable | None = None) -> int | None:
    """Plan ONCE PER, ORDER BY, OFFSET, LIMIT and DISTINCT of a SELECT, over all columns that tell its solutions apart.

    Return the collector's node; None if ONCE PER stands alone.
    """
    modifiers, collecting = select.modifiers, None
    if gathers_instant(select):
        collecting = builder.add_node(Node(c.COLLECT), target)
        target = collecting, c.LEFT
    choosing = None if modifiers.once is None else _plan_once(builder, modifiers.once, select.pattern, target)
    builder.plan_pattern(select.pattern, target if choosing is None else (choosing, c.LEFT))
    reads = sort_by_name(set(builder.fragment.columns) - {rank})
    if collecting is not None:
        graph = next((v for v in select.projection if v.name.startswith("_:graph#")), None)
        projection = Projection(reads, select.projection, select.distinct, rank, graph)
        builder.fragment.collectors[collecting] = ModifiersCollector(
            modifiers, projection, has_window(select.pattern), builder.options.naming, stands=isinstance(select, a.Select)
        )
    if choosing is not None:
        order = SolutionOrder(modifiers.order, Projection(reads, select.projection), builder.options.naming)
        builder.fragment.collectors[choosing] = OnceCollector(order, reads)
    return collecting


def gathers_instant(select: a.Select | a.SubSelect) -> bool:
    """Return whether ORDER BY, OFFSET or LIMIT wait for all solutions of an instant.

    With ONCE PER a sub-SELECT's ORDER BY only chooses what passes.
    """
    modifiers = select.modifiers
    if modifiers.once is not None and isinstance(select, a.SubSelect):
        modifiers = replace_fields(modifiers, order=())
    return modifiers.gathers


def _plan_once(builder: PlanBuilder, once: a.Once, pattern: a.Pattern, target: Target) -> int:
    """Plan ONCE PER, whose node keeps a goal for each key that is closed, and what UNTIL waits for. Return its node."""
    x, keys = builder.scope(pattern), frozenset(once.keys)
    node = Node(c.ONCE, life_left=c.FOREVER if once.within is None else once.within - 1)
    number = builder.add_node(node, target)
    builder.fragment.deciding[number, c.LEFT] = x.timeless
    chained = keys
    if once.until is not None:
        z = builder.scope(once.until)
        node.key2, node.rest2 = builder.key_columns(Scope(x.certain & keys, x.possible & keys, x.timeless), z)
        node.timeless, node.life_blocker = z.timeless, c.FOREVER
        chained = x.certain & z.certain & keys or keys
        builder.plan_pattern(once.until, (number, c.BLOCKER))
    node.key, node.rest = builder.add_slots(chained), builder.add_slots(keys - chained)
    return number


def has_window(pattern: a.Pattern) -> bool:
    """Return whether a SELECT's solutions are reports of a window."""
    match pattern:
        case a.Extend(inner, _, _) | a.Filter(_, inner):
            return has_window(inner)
        case a.Join(left, a.Values()):
            return has_window(left)
        case a.Group(_, _, _, window):
            return window is not None
        case a.SubSelect(inner) if merges_reports(pattern):
            return has_window(inner)
        case _:
            return False
