"""This module plans the query forms: from the solutions of the pattern to the node OUT."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from engine.aggregation import AskCollector
from engine.aggregation.window_report import ReportCollector
from engine.alpha.alpha_nodes import AS_SENT
from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Inquiry
from engine.planner import groups_and_modifiers
from epsparql import algebra as a
from epsparql.terms import BlankNode, TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target

RANK = Variable("_:rank")
"""The variable holds the place of a solution among those of its instant, where ORDER BY gives one."""
MOST_REPORTS = 10_000
"""One occurrence may bring about at most this many evaluations of a query over windows."""
ANSWER = Variable("_:ask")
"""The variable holds the answer of an ASK."""


def query(planner: "Planner") -> None:
    whole = planner.query
    out = planner.node(c.OUT, None)
    shown, target = _form(planner, out)
    if whole.sources.windows:
        _report(planner, target)
    elif isinstance(whole, a.Select) and whole.modifiers != a.PLAIN:
        planner.fragment.last = groups_and_modifiers.modified(planner, whole, target, RANK if whole.modifiers.order else None)
    else:
        first = len(planner.fragment.nodes)
        planner.pattern(whole.pattern, target)
        if isinstance(whole.pattern, a.SubSelect) and whole.pattern.modifiers != a.PLAIN and planner.fragment.last is None:
            planner.fragment.last = next(node for node in range(first, len(planner.fragment.nodes)) if node in planner.fragment.collectors)
    hidden = set() if shown is None else set(planner.fragment.columns) - shown
    at, n = planner.slots(hidden)
    planner.assign(out, HIDE_AT=at, HIDE_N=n)


def _form(planner: "Planner", out: int) -> "tuple[set[Variable] | None, Target]":
    """Return what of a solution is kept at the node OUT (None: everything), and where the pattern's solutions go."""
    match planner.query:
        case a.Select(projection=projection, distinct=distinct, modifiers=modifiers):
            if modifiers.order:
                planner.column(RANK)
            return {*projection, *([RANK] if modifiers.order else [])} if distinct else None, (out, c.LEFT)
        case a.Construct(template=template, into=into):
            target, kept = _template(planner, out, template, into)
            return kept, target
        case a.Ask():
            node = planner.node(c.COLLECT, (out, c.LEFT))
            planner.column(ANSWER)
            planner.fragment.collectors[node] = AskCollector(())
            planner.fragment.last = node
            return {ANSWER}, (planner.move((node, c.LEFT), [], once=True), c.LEFT)  # solutions that differ by their interval alone
        case a.Describe(targets=targets):
            return {t for t in targets if isinstance(t, Variable)}, (out, c.LEFT)
        case _:
            assert_never(planner.query)


def _template(planner: "Planner", out: int, template: Sequence[a.TriplePattern], into: str) -> "tuple[Target, set[Variable] | None]":
    """Plan the rule's triples; a blank node of the template becomes a column that the host fills for each solution."""
    target = (out, c.LEFT)
    blank: dict[BlankNode, Variable] = {}
    parts = [t for triple in template for t in (triple.subject, triple.predicate, triple.object)]
    everything = tuple(sorted(planner.fragment.columns, key=lambda v: v.name))
    for label in dict.fromkeys(t for t in parts if isinstance(t, BlankNode)):
        blank[label] = variable = Variable(f"_:template {label.label}")
        inquiry = Inquiry(everything, timed=True, fresh=label.label)
        target = planner.extend_node(variable, inquiry, target), c.LEFT

    def code(part: TermOrVariable) -> int:
        if isinstance(part, BlankNode):
            return -planner.column(blank[part])
        return -planner.column(part) if isinstance(part, Variable) else planner.names.term(str(part))

    stream = planner.names.stream(into)
    planner.fragment.templates = [[code(t.subject), code(t.predicate), code(t.object), stream] for t in template]
    planner.assign(out, TEMPLATE_N=len(template))
    kept = {t for t in parts if isinstance(t, Variable)} | set(blank.values())
    return target, None if blank else kept


def _report(planner: "Planner", target: "Target") -> None:
    """Plan an RSP-QL report: the contents of the windows go to a collector, which reports what the query finds in them."""
    for window in planner.query.sources.windows:
        if window.length > MOST_REPORTS * window.step:
            raise Refusal(f"a window of more than {MOST_REPORTS:,} steps", "STEP")
    node = planner.node(c.COLLECT, target)
    cells = []
    for window in planner.query.sources.windows:
        s, p, o, g = (planner.fresh(f"{what} of {window.name}") for what in "spog")
        cells.append((s, p, o, g))
        stream = planner.names.stream(window.stream)
        columns = [planner.column(v) for v in (s, p, o)]
        planner.fragment.alpha.append([stream, c.NONE, c.NONE, *columns, 0, node, c.LEFT, c.NONE, planner.column(g), AS_SENT])
    assert planner.names.once is not None
    shown, number = _shown(planner.query), planner.fresh("report")
    for variable in (*shown, RANK):
        planner.column(variable)
    planner.fragment.collectors[node] = ReportCollector(planner.query, cells, shown, RANK, number, planner.names.once)


def _shown(query: a.Query) -> tuple[Variable, ...]:
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
