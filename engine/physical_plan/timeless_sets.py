"""This module places sets of timeless solutions in a plan: each solution passes once for as long as it stands.

A change of the background may bring a solution that stands already: another triple gives it too, or it was looked up
before and is copied now. A node that decides on absence must not decide on it again
(docs/decisions/0036-what-a-window-let-go.md).
"""

from dataclasses import replace

from engine.kernel.state import layout as c
from engine.physical_plan.plan import Fragment, Node, RowRange

Target = tuple[int, int]
SETS_THEMSELVES = (c.OUT, c.COLLECT)
"""Nodes of these kinds take a timeless solution once."""


def add_sets(fragment: Fragment) -> None:
    """Place a set behind each join with a path, and one before each side that decides.

    Another stands behind each optional join below a DISTINCT, whose rows do not tell which pairs brought them.

    They stand behind all other nodes, and a plan has the same nodes over every background. Where no timeless solution
    may come, nothing goes through them.
    """
    for path in fragment.paths:
        edge = fragment.nodes[path.operand[0]].edges.first
        reader = fragment.edges[edge]
        used = path.timeless and fragment.nodes[reader[0]].kind not in SETS_THEMSELVES
        if used:
            fragment.edges[edge] = len(fragment.nodes), c.LEFT
        _add_set(fragment, reader, used=used)
    decided = enumerate(fragment.deciding.items(), len(fragment.nodes))
    instead = {target: (number, c.LEFT) for number, (target, timeless) in decided if timeless}
    fragment.edges[:] = [instead.get(edge, edge) for edge in fragment.edges]
    for k, scan in enumerate(fragment.scans):
        if (scan.node, scan.side) in instead:
            fragment.scans[k] = replace(scan, node=instead[scan.node, scan.side][0], side=c.LEFT)
    for k, fact in enumerate(fragment.facts):
        if (fact.node, fact.side) in instead:
            fragment.facts[k] = replace(fact, node=instead[fact.node, fact.side][0], side=c.LEFT)
    for target, timeless in fragment.deciding.items():
        _add_set(fragment, target, used=timeless)
    _add_pair_sets(fragment)


def _add_pair_sets(fragment: Fragment) -> None:
    """Place the sets behind optional joins last, since snapshots of before have the others at their places."""
    for number, side in fragment.optionals.items():
        if not any(number in nodes for nodes in fragment.projected):
            continue
        first, n = fragment.nodes[number].edges
        reader = fragment.edges[first]
        used = n > 0 and fragment.deciding[side.decided] and fragment.nodes[reader[0]].kind not in SETS_THEMSELVES
        if used:
            fragment.edges[first], fragment.paired[len(fragment.nodes)] = (len(fragment.nodes), c.LEFT), side
        _add_set(fragment, reader, used=used)


def _add_set(fragment: Fragment, reader: Target, *, used: bool) -> None:
    fragment.sets[len(fragment.nodes)] = reader
    fragment.nodes.append(Node(c.MOVE, keep=1, once=1, edges=RowRange(len(fragment.edges), int(used))))
    fragment.edges.append(reader)
