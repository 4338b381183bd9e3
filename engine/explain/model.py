"""This module explains a query: its algebra, its plan, its partition key, and the parts of its state that nothing
bounds.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from engine.background.fact_store import FactIndex
from engine.background.static_rules.description import describe_rules
from engine.dictionary.term_dictionary import TermTable
from engine.explain.algebra_outline import Item, Outliner, words, write_term
from engine.explain.live_counts import StepRows
from engine.explain.plan_reader import OperatorStep, Reader, is_for_ever
from engine.explain.source_attribution import Written
from engine.kernel.state import layout as c
from engine.messages import RDFS, MessageKey
from engine.network.network import Network
from engine.network.placed_query import list_reads
from engine.partitioning import TimeSlices, partition
from engine.physical_plan.join_trees import Linear, Pairing, Tree
from engine.physical_plan.plan import Fragment, Read
from engine.planner import PlanOptions, plan_query
from engine.planner.builder.join_order import NO_RATES, Rates
from engine.planner.detached_names import name_apart
from engine.planner.reach import Asked, Reach, find_reaches
from engine.rewrite import rewrite_query
from engine.triples.quads import Quad
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.etalis.binarization import BinaryRule
from epsparql.renderer.queries import render
from epsparql.solutions.policies import UNRESTRICTED

_OR_INSTANTS = "; if no event of its streams lasts, their setting instants: true bounds that"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Holds the canonical text, the algebra, the plan (outermost first), the partition key (None: none) with the
    reason, what is kept for ever, and the reach.

    The reach is that of the query alone, without the rules that write its streams.
    """

    query: str
    algebra: tuple[Item, ...]
    plan: tuple[OperatorStep, ...]
    key: str | None
    reason: str
    unbounded: tuple[str, ...]
    shape: str = ""  # the order of joins and its reason, where rates were given
    reads: tuple[Read, ...] = ()  # what the query reads of a background
    rows: tuple[StepRows | None, ...] = ()  # of each step, where the query runs
    reach: Reach | None = None  # of a query over streams
    message_key: MessageKey | None = None  # if its stream declared this, the query would have a partition key
    slices: TimeSlices | None = None  # by which partitions share a query without a key
    rules: tuple[BinaryRule, ...] = ()  # those of a program


@dataclass(frozen=True, slots=True)
class Declared:
    """Holds what streams declare: their message keys, and whether no event that the query reads lasts."""

    message_keys: Mapping[str, MessageKey] = field(default_factory=dict)
    instants: bool = False


NOTHING_DECLARED = Declared()


def explain(
    query: a.Query, default_graph: str = "all", policy: str = UNRESTRICTED, rates: Rates = NO_RATES, without: Collection[str] = (),
    reads: Sequence[Read] = (), declared: Declared = NOTHING_DECLARED,
) -> Explanation:  # fmt: skip
    """Return the plan of a query as it would be registered over an empty background where triples occur at these
    rates. Raises Refusal.

    The plan does without some of SIMPLIFICATIONS and CHOICES (`without`). `reads` is what the query reads of the
    background that there is, and `declared` is what its streams declare.
    """
    if isinstance(query, a.BackgroundRule):
        return _explain_rule(query, default_graph)
    terms = TermTable()
    network = Network(terms, without=frozenset(without))
    taken = rewrite_query(query, default_graph, policy, without)
    assert not isinstance(taken, a.BackgroundRule)
    options = PlanOptions(policy=policy, rates=rates, occurrence=0 if declared.instants else c.FOREVER)
    names, of_instants = (network.planning.make_names(FactIndex(terms), each) for each in (options, replace(options, occurrence=0)))
    fragment = plan_query(taken, names)
    algebra, reach = Outliner.from_query(query).outline_query(query), find_reaches([Asked(taken, policy)], names.matches)[0]
    apart = partition(query, policy, declared.message_keys, reach.settled)
    streams = {number: name for name, number in network.slots.streams.numbers.items()}
    outliner = Outliner.from_query(taken, fragment.columns)
    reader = Reader(fragment, algebra[0], outliner, Written.from_pattern(taken.pattern), streams, terms.text)
    steps = reader.steps()
    left = replace(reader, fragment=plan_query(taken, of_instants)).steps() if any(step.unbounded for step in steps) else steps
    unbounded = dict.fromkeys(
        _kept_for_ever(step, or_instants=not other.unbounded) for step, other in zip(steps, left, strict=True) if step.unbounded
    )
    return Explanation(
        render(query) if not (isinstance(query, a.Select) and query.program) else "an ETALIS program",
        algebra,
        steps,
        None if apart.key is None else write_term(apart.key),
        apart.reason,
        tuple(unbounded),
        shape_of(fragment, NO_RATES if "order" in without else rates),
        tuple(reads),
        reach=reach,
        message_key=apart.proposal,
        slices=apart.slices,
    )


def _explain_rule(query: a.BackgroundRule, default_graph: str) -> Explanation:
    """Explain a static rule by the rules of Datalog that it comes to. Raises StaticRuleRefused."""
    rules = describe_rules(query, default_graph)
    steps = [OperatorStep("INTO BACKGROUND", f"<{query.graph}>", inputs=tuple(range(1, len(rules) + 1)))]
    steps += [OperatorStep("DERIVE", rule) for rule in rules]
    reason = "every partition has the whole background"
    return Explanation(render(query), Outliner.from_query(query).outline_query(query), tuple(steps), None, reason, ())


def reads_over(quads: Iterable[Quad], query: a.Query, policy: str = UNRESTRICTED, regime: str = RDFS) -> tuple[Read, ...]:
    """Return what a query would read of a background. Raises Refusal."""
    facts = FactIndex.from_quads(quads, TermTable(), regime)
    taken = rewrite_query(query, "all", policy)
    if isinstance(taken, a.BackgroundRule):
        return ()  # what it reads is part of what it derives
    return list_reads(plan_query(taken, name_apart(facts, policy=policy)))


def shape_of(fragment: Fragment, rates: Rates) -> str:
    if not rates:
        return ""
    match fragment.shape:
        case Pairing.NEAREST:
            return "EQUALSOPTIONAL makes pairs with nothing between them, and no others"
        case Pairing.SUMMED:
            return "the aggregate needs no matches of its chain of SEQs, so no joins are made"
        case Linear() if fragment.pairs is not None:
            return "EQUALSOPTIONAL makes all pairs, because the background matches one of its operands"
        case None:
            return "triple patterns of a group are joined from the rarest on"
        case Linear.WRITTEN:
            return "the chain of SEQs is joined as it is written, because no other order promises half as much work"
        case Linear.FROM_END:
            return "the chain of SEQs is joined from its end, because its last operands are rarer than its first"
        case (left, right):
            return (
                f"the chain of SEQs is joined as {_braced(left)} SEQ {_braced(right)}, because that promises less than half as much "
                f"work as it is written"
            )


def _braced(tree: Tree) -> str:
    """Write a part of a chain by its operands, as they are counted in the text."""
    return str(tree + 1) if isinstance(tree, int) else f"{{{_braced(tree[0])} SEQ {_braced(tree[1])}}}"


def _kept_for_ever(step: OperatorStep, *, or_instants: bool) -> str:
    sides = " and ".join(kept.side for kept in step.keeps if is_for_ever(kept))
    return words(step.operator, f"on {' '.join(step.on)}" if step.on else "", f"keeps its {sides} for ever{_OR_INSTANTS if or_instants else ''}")
