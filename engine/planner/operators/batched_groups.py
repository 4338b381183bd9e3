"""This module marks groups that nothing inside an instant waits for: they may decide on many instants at once."""

from engine.aggregation import GroupCollector
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Fragment
from epsparql.algebra import RangeWindow

_STATELESS = frozenset({c.PASS, c.EXTEND, c.MOVE})


def defer(fragment: Fragment) -> None:
    """Mark each group whose reports go on to the query's output alone, and only through nodes that keep nothing."""
    readers = [fragment.edges[row[c.EDGE_AT] : row[c.EDGE_AT] + row[c.EDGE_N]] for row in fragment.nodes]
    fed = (
        [target for edges in readers for target, _ in edges]
        + [row[c.A_NODE] for row in fragment.alpha]
        + [fact.node for fact in fragment.facts if len(fact.rows)]
    )
    for node, collector in fragment.collectors.items():
        if isinstance(collector, GroupCollector) and _goes_out(fragment, readers, fed, node):
            window = collector.window
            if isinstance(window, RangeWindow) and window.step is not None:
                fragment.nodes[node][c.WINDOW], fragment.nodes[node][c.STEP] = window.length, window.step
            collector.defer()
            fragment.nodes[node][c.DEFERRED] = fragment.nodes[fragment.out][c.APART] = 1


def _goes_out(fragment: Fragment, readers: list[list[tuple[int, int]]], fed: list[int], node: int) -> bool:
    """Return whether all that a node gives reaches a plain output, which nothing else does."""
    while node != fragment.out:
        if len(readers[node]) != 1:
            return False
        ((node, _),) = readers[node]
        row = fragment.nodes[node]
        if fed.count(node) > 1 or (node != fragment.out and (row[c.KIND] not in _STATELESS or row[c.MARK_N] or row[c.ONCE_ONLY])):
            return False
    out = fragment.nodes[node]
    return out[c.HIDE_N] == 0 and out[c.TEMPLATE_N] == 0
