"""A query's algebra and plan, its partition key, and what of its state nothing bounds."""

from dataclasses import dataclass

from engine.entries import UNRESTRICTED
from engine.explain.outline import Item, Outliner, shown, words
from engine.explain.partition import partition
from engine.explain.steps import FOR_EVER, Reader, Step
from engine.explain.written import Written
from engine.facts import FactIndex
from engine.network import Network
from engine.planning import plan
from engine.rewrite import rewritten
from engine.terms import TermTable
from epsparql import algebra as a
from epsparql.render import render


@dataclass(frozen=True, slots=True)
class Explanation:
    """The canonical text, the algebra, the plan (outermost first); the partition key (None: none) and the reason; what is kept for ever."""

    query: str
    algebra: tuple[Item, ...]
    plan: tuple[Step, ...]
    key: str | None
    reason: str
    unbounded: tuple[str, ...]


def explain(query: a.Query, default_graph: str = "all", policy: str = UNRESTRICTED) -> Explanation:
    """The plan of a query as it would be registered now, over an empty background. Raises Refusal."""
    network = Network(TermTable())
    taken = rewritten(query, default_graph)
    fragment = plan(taken, network.names(FactIndex(), policy=policy))
    algebra, apart = Outliner.of(query).query(query), partition(query)
    streams = {number: name for name, number in network.streams.items()}
    outliner = Outliner.of(taken, fragment.columns)
    steps = Reader(fragment, algebra[0], outliner, Written.of(taken.pattern), streams, network.terms.text).steps()
    unbounded = dict.fromkeys(_kept_for_ever(step) for step in steps if step.unbounded)
    return Explanation(render(query), algebra, steps, None if apart.key is None else shown(apart.key), apart.reason, tuple(unbounded))


def _kept_for_ever(step: Step) -> str:
    sides = " and ".join(kept.side for kept in step.keeps if kept.time == FOR_EVER)
    return words(step.operator, f"on {' '.join(step.on)}" if step.on else "", f"keeps its {sides} for ever")
