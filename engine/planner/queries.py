"""This module plans the query forms: from the solutions of the pattern to the node OUT."""

from collections.abc import Sequence
from typing import assert_never

from engine.aggregation import AskCollector
from engine.aggregation.rsp_window_report import ReportCollector
from engine.alpha.alpha_nodes import AS_SENT
from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.pattern_scope import sort_by_name
from engine.physical_plan.plan import Inquiry, Node, RowRange, Scan, TemplateTriple
from engine.planner.builder.plan_builder import PlanBuilder, Target
from engine.planner.groups_and_modifiers import gathers_instant, plan_modifiers
from engine.rewrite.join_instances import ADDED
from epsparql import algebra as a
from epsparql.etalis.parser.vocabulary import OWN
from epsparql.terms import BlankNode, TermOrVariable, Variable

RANK = Variable("_:rank")
"""The variable holds the place of a solution among those of its instant, where ORDER BY gives one."""
MOST_REPORTS = 10_000
"""One occurrence may bring about at most this many evaluations of a query over windows."""
ANSWER = Variable("_:ask")
"""The variable holds the answer of an ASK."""


def plan_query_form(builder: PlanBuilder) -> None:
    whole = builder.query
    out = builder.add_node(Node(c.OUT))
    if isinstance(whole, a.Select):
        _plan_rules(builder, whole)
    shown, target = _plan_form(builder, out)
    if whole.sources.windows:
        _plan_report(builder, target)
    elif isinstance(whole, a.Select) and whole.modifiers != a.PLAIN:
        builder.fragment.last = plan_modifiers(builder, whole, target, RANK if whole.modifiers.order else None)
    else:
        first = len(builder.fragment.nodes)
        builder.plan_pattern(whole.pattern, target)
        if isinstance(whole.pattern, a.SubSelect) and whole.pattern.modifiers != a.PLAIN and builder.fragment.last is None:
            collecting = (node for node in range(first, len(builder.fragment.nodes)) if builder.fragment.nodes[node].kind == c.COLLECT)
            builder.fragment.last = next(collecting) if gathers_instant(whole.pattern) else None
    if shown is None and builder.moments:  # what came again after a change of instances is no solution more
        shown = set(builder.fragment.columns) - {ADDED, *builder.moments}
    _hide_rest(builder, out, shown)


def _plan_rules(builder: PlanBuilder, query: a.Select) -> None:
    """Plan a query's own rules, each with an output of its own, which is silent. Events on its own stream may have
    literals as subjects.

    What a rule writes for others the query itself does not read.
    """
    for rule in query.rules:
        out = builder.add_node(Node(c.OUT))
        target, shown = _plan_template(builder, out, rule.template, rule.into)
        builder.fragment.rules.append(out)
        builder.node(out).keep = all(str(triple.predicate).startswith(f"<{OWN}") for triple in rule.template)
        builder.node(out).by_right = int(rule.into == query.into)  # a plan without such rules is signed as it was
        builder.plan_pattern(rule.pattern, target)
        _hide_rest(builder, out, shown)


def _hide_rest(builder: PlanBuilder, out: int, shown: set[Variable] | None) -> None:
    """Let an output tell solutions apart by what is shown alone; None stands for everything."""
    hidden = set() if shown is None else set(builder.fragment.columns) - shown
    builder.node(out).hide = builder.add_slots(hidden)


def _plan_form(builder: PlanBuilder, out: int) -> tuple[set[Variable] | None, Target]:
    """Return what of a solution is kept at the node OUT (None: everything), and where the pattern's solutions go."""
    match builder.query:
        case a.Select(projection=projection, distinct=distinct, modifiers=modifiers):
            if modifiers.order:
                builder.column(RANK)
            return {*projection, *([RANK] if modifiers.order else [])} if distinct else None, (out, c.LEFT)
        case a.Construct(template=template, into=into):
            target, kept = _plan_template(builder, out, template, into)
            return kept, target
        case a.Ask():
            node = builder.add_node(Node(c.COLLECT), (out, c.LEFT))
            builder.column(ANSWER)
            builder.fragment.collectors[node] = AskCollector(())
            builder.fragment.last = node
            return {ANSWER}, (builder.add_move((node, c.LEFT), [], once=True), c.LEFT)  # solutions that differ by their interval alone
        case a.Describe(targets=targets):
            return {t for t in targets if isinstance(t, Variable)}, (out, c.LEFT)
        case _:
            assert_never(builder.query)


def _plan_template(builder: PlanBuilder, out: int, template: Sequence[a.TriplePattern], into: str) -> tuple[Target, set[Variable] | None]:
    """Plan the rule's triples; a blank node of the template becomes a column that the host fills for each solution."""
    target = (out, c.LEFT)
    blank: dict[BlankNode, Variable] = {}
    parts = [t for triple in template for t in (triple.subject, triple.predicate, triple.object)]
    everything = sort_by_name(builder.fragment.columns)
    for label in dict.fromkeys(t for t in parts if isinstance(t, BlankNode)):
        blank[label] = variable = Variable(f"_:template {label.label}")
        inquiry = Inquiry(everything, timed=True, fresh=label.label)
        target = builder.add_extend(variable, inquiry, target), c.LEFT

    def cell(part: TermOrVariable) -> int:
        return -builder.column_or_constant(blank[part] if isinstance(part, BlankNode) else part)

    stream = builder.names.stream(into)
    builder.node(out).templates = RowRange(len(builder.fragment.templates), len(template))
    builder.fragment.templates += [TemplateTriple(cell(t.subject), cell(t.predicate), cell(t.object), stream) for t in template]
    kept = {t for t in parts if isinstance(t, Variable)} | set(blank.values())
    return target, None if blank else kept


def _plan_report(builder: PlanBuilder, target: Target) -> None:
    """Plan an RSP-QL report: the contents of the windows go to a collector, which reports what the query finds in them."""
    for window in builder.query.sources.windows:
        if window.length > MOST_REPORTS * window.step:
            raise Refusal(f"a window of more than {MOST_REPORTS:,} steps", "STEP")
    node = builder.add_node(Node(c.COLLECT), target)
    cells = []
    for window in builder.query.sources.windows:
        s, p, o, g = (builder.add_variable(f"{what} of {window.name}") for what in "spog")
        cells.append((s, p, o, g))
        stream = builder.names.stream(window.stream)
        columns = builder.column(s), builder.column(p), builder.column(o)
        builder.fragment.scans.append(Scan(stream, c.NONE, AS_SENT, c.NONE, columns, node, c.LEFT, c.NONE, builder.column(g)))
    assert builder.names.once is not None
    shown, number = _shown(builder.query), builder.add_variable("report")
    for variable in (*shown, RANK):
        builder.column(variable)
    builder.fragment.collectors[node] = ReportCollector(builder.query, cells, shown, RANK, number, builder.names.once)


def _shown(query: a.StreamQuery) -> tuple[Variable, ...]:
    """Return the variables that a report of windows must have."""
    match query:
        case a.Select(projection=projection):
            return projection
        case a.Construct(template=template):
            parts = [t for triple in template for t in (triple.subject, triple.predicate, triple.object)]
            return tuple(dict.fromkeys(t for t in parts if isinstance(t, Variable)))
        case a.Describe(targets=targets):
            return tuple(t for t in targets if isinstance(t, Variable))
        case a.Ask():
            return ()
        case _:
            assert_never(query)
