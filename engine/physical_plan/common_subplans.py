"""This module names subplans, the joins of a fragment with all that feeds them.

Equal ones of other queries have the same name (docs/decisions/0014-shared-subpatterns.md).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.kernel.state import layout as c
from engine.physical_plan.filter_compiler import compile_filter
from engine.physical_plan.plan import Fragment
from engine.rewrite.rename_hidden import with_names
from engine.scope import asks
from epsparql import algebra as a
from epsparql.recursion import deep_stack
from epsparql.terms import Variable

MOST_JOINS = 16
"""A subplan has at most this many joins: names of larger ones would take longer to find than planning does."""
SIDES = {c.JOIN: (c.LEFT, c.RIGHT), c.PASS: (c.LEFT,)}
"""Subplans have these kinds of nodes, with the sides that are fed."""

Feeder = int | Sequence[int]
"""A feeder gives a side its rows: it is a node, or a scan as the fragment has it."""


@dataclass(frozen=True, slots=True)
class Subplan:
    """Holds nodes of a fragment, the root first and then as they feed it, left before right.

    The columns are in the order in which the scans bind them.

    `digest` names relations, windows, keys, conditions and triple patterns. Subplans of one name keep and give the same solutions, if
    the k-th columns, and the k-th nodes, are taken for each other.
    """

    digest: bytes
    nodes: tuple[int, ...]
    columns: tuple[int, ...]
    reach: int  # how long before now an occurrence that a goal rests on may have begun, in µs

    @property
    def root(self) -> int:
        return self.nodes[0]


def subplans(fragment: Fragment) -> dict[int, Subplan]:
    """Return the subplans by root. The solutions of all of them come from the streams alone."""
    feeders, found = _feeders(fragment), dict[int, Subplan]()
    with deep_stack():
        for node in range(len(fragment.nodes) - 1, -1, -1):  # what feeds a node was made after it
            if fragment.nodes[node][c.KIND] in SIDES and (subplan := _subplan(fragment, node, feeders, found)) is not None:
                found[node] = subplan
    return {node: subplan for node, subplan in found.items() if fragment.nodes[node][c.KIND] == c.JOIN}


def _feeders(fragment: Fragment) -> dict[tuple[int, int], list[Feeder]]:
    """Return the feeders of each side."""
    feeders: dict[tuple[int, int], list[Feeder]] = {}
    for scan in fragment.alpha:
        feeders.setdefault((scan[c.A_NODE], scan[c.A_SIDE]), []).append(scan)
    for node, row in enumerate(fragment.nodes):
        for target in fragment.edges[row[c.EDGE_AT] : row[c.EDGE_AT] + row[c.EDGE_N]]:
            feeders.setdefault(target, []).append(node)
    return feeders


def _subplan(fragment: Fragment, node: int, feeders: Mapping[tuple[int, int], list[Feeder]], below: Mapping[int, Subplan]) -> Subplan | None:
    row = fragment.nodes[node]
    if row[c.TIMELESS] or row[c.EDGE_N] != 1 or fragment.lookups.get(node) is not None:
        return None
    nodes, columns, reach = [node], list[int](), 0
    parts: list[object] = [row[c.KIND], row[c.RELATION], row[c.SPAN], row[c.LIFE_LEFT], row[c.LIFE_RIGHT]]
    for side in SIDES[row[c.KIND]]:
        for feeder in feeders.get((node, side), ()):
            if isinstance(feeder, int):
                if (inner := below.get(feeder)) is None:
                    return None
                nodes += inner.nodes
                bound, name, reach = inner.columns, inner.digest.hex(), max(reach, inner.reach)
            else:
                bound, name = _bound_by(feeder), _name_of(feeder)
            columns += [column for column in dict.fromkeys(bound) if column not in columns]
            parts.append((side, name, [columns.index(column) for column in bound]))
    if len(parts) < 5 + len(SIDES[row[c.KIND]]) or sum(fragment.nodes[each][c.KIND] == c.JOIN for each in nodes) > MOST_JOINS:
        return None
    compared = [fragment.slots[row[at] : row[at] + row[n]] for at, n in ((c.KEY_AT, c.KEY_N), (c.REST_AT, c.REST_N))]
    parts += [sorted(columns.index(column) for column in part) for part in compared]
    condition = condition_of(fragment, row[c.FILTER], columns)
    if condition is None:
        return None
    kept = max(row[c.LIFE_LEFT], row[c.LIFE_RIGHT]) + row[c.SPAN] if row[c.KIND] == c.JOIN else 0
    digest = hashlib.blake2b(repr([*parts, condition]).encode(), digest_size=16).digest()
    return Subplan(digest, tuple(nodes), tuple(columns), max(reach, kept))


_BINDS = (c.A_SVAR, c.A_PVAR, c.A_OVAR, c.A_GVAR)


def _bound_by(scan: Sequence[int]) -> tuple[int, ...]:
    """Return the columns that a scan binds."""
    return tuple(scan[k] for k in _BINDS if scan[k] != c.NONE)


def _name_of(scan: Sequence[int]) -> str:
    """Return a text of all of a scan but its place and its columns."""
    return repr([cell != c.NONE if k in _BINDS else cell for k, cell in enumerate(scan) if k != c.A_NODE])


def condition_of(fragment: Fragment, filter_: int, columns: Sequence[int]) -> a.Expression | int | None:
    """Return a node's condition over `variable(k)` for the k-th of these columns, a code for none at all; None if it looks at anything else."""
    if filter_ < 0:
        return filter_
    inquiry = fragment.inquiries[fragment.code[filter_][0]]
    numbers = {v: fragment.columns[v] for v in inquiry.variables}
    if inquiry.condition is None or asks(inquiry.condition) or not set(numbers.values()) <= set(columns):
        return None
    return with_names(inquiry.condition, {v: variable(columns.index(number)) for v, number in numbers.items()})


def variable(k: int) -> Variable:
    """Return the variable that names the k-th column of a subplan standing alone."""
    return Variable(f"_:shared@{k:02}")


def fragment_of(fragment: Fragment, subplan: Subplan, number: Callable[[str], int]) -> Fragment:
    """Return a subplan as a fragment of its own; `number` gives the number of a constant's term."""
    alone = Fragment(columns={variable(k): c.VAR + k for k in range(len(subplan.columns))})
    places, columns = {node: k for k, node in enumerate(subplan.nodes)}, {column: c.VAR + k for k, column in enumerate(subplan.columns)}
    for node in subplan.nodes:
        row = list(fragment.nodes[node])
        for at, n in ((c.KEY_AT, c.KEY_N), (c.REST_AT, c.REST_N)):
            slots = [columns[column] for column in fragment.slots[row[at] : row[at] + row[n]]]
            row[at] = len(alone.slots)
            alone.slots += slots
        condition = condition_of(fragment, row[c.FILTER], subplan.columns)
        if isinstance(condition, a.Expression):
            row[c.FILTER] = compile_filter(alone, condition, number)
        target, side = fragment.edges[row[c.EDGE_AT]]
        row[c.EDGE_AT], row[c.EDGE_N] = len(alone.edges), int(node != subplan.root)
        row[c.LOOK] = row[c.LOOK_VIA] = c.NONE
        row[c.LOOK_N] = 0
        if node != subplan.root:
            alone.edges.append((places[target], side))
        alone.nodes.append(row)
    for scan in fragment.alpha:
        if scan[c.A_NODE] in places:
            bound = {k: columns[scan[k]] for k in _BINDS if scan[k] != c.NONE} | {c.A_NODE: places[scan[c.A_NODE]]}
            alone.alpha.append([bound.get(k, cell) for k, cell in enumerate(scan)])
    return alone
