"""This module marks groups that nothing inside an instant waits for: they may decide on many instants at once."""

from collections import Counter

from engine.aggregation import GroupCollector
from engine.aggregation.chains import ChainCollector
from engine.aggregation.runs import RunCollector
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Fragment
from epsparql.algebra import RangeWindow

DeferredCollector = GroupCollector | RunCollector | ChainCollector
"""These collectors may decide on many instants at once, and have state in tables."""
_STATELESS = frozenset({c.PASS, c.EXTEND, c.MOVE})


def defer_groups(fragment: Fragment) -> None:
    """Mark each group whose reports go on to the query's output alone, and only through nodes that keep nothing."""
    fed = Counter(target for node in range(len(fragment.nodes)) for target, _ in fragment.edges_of(node))
    fed.update(scan.node for scan in fragment.scans)
    fed.update(fact.node for fact in fragment.facts if len(fact.rows))
    for number, collector in fragment.collectors.items():
        if not isinstance(collector, DeferredCollector) or not _goes_out(fragment, fed, number) or not collector.defer():
            continue
        window, node = collector.window, fragment.nodes[number]
        if isinstance(window, RangeWindow) and window.step is not None:
            node.life_left, node.life_right = window.length, window.step
        elif isinstance(collector, RunCollector) and collector.closing:
            node.life_right = c.NONE
        node.once = fragment.nodes[fragment.out].once = 1


def _goes_out(fragment: Fragment, fed: Counter[int], number: int) -> bool:
    """Return whether all that a node gives reaches a plain output, which nothing else does; the last node before it
    may tell equal ones apart.
    """
    while number != fragment.out:
        readers = fragment.edges_of(number)
        if len(readers) != 1:
            return False
        ((number, _),) = readers
        node = fragment.nodes[number]
        if fed[number] > 1:
            return False
        if number != fragment.out and (node.kind not in _STATELESS or node.marks.n or (node.once and not _is_last(fragment, number))):
            return False
    out = fragment.nodes[number]
    return out.hide.n == 0 and out.templates.n == 0


def _is_last(fragment: Fragment, number: int) -> bool:
    return [reader for reader, _ in fragment.edges_of(number)] == [fragment.out]
