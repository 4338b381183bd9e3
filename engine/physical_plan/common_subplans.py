"""This module names subplans, the joins of a fragment with all that feeds them.

Equal ones of other queries have the same name (docs/decisions/0002-networks-by-reach.md).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from engine.kernel.state import layout as c
from engine.pattern_scope import has_exists
from engine.physical_plan.filter_compiler import add_slots, compile_filter
from engine.physical_plan.plan import Fragment, RowRange, Scan
from engine.rewrite.rename_hidden import rename_variables
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.recursion import deep_stack
from epsparql.terms import Variable
from epsparql.trees import replace_fields

MOST_JOINS = 16
"""A subplan has at most this many joins: names of larger ones would take longer to find than planning does."""
SIDES = {c.JOIN: (c.LEFT, c.RIGHT), c.PASS: (c.LEFT,)}
"""Subplans have these kinds of nodes, with the sides that are fed."""

Feeder = int | Scan
"""A feeder gives a side its rows: it is a node, or a scan as the fragment has it."""


@dataclass(frozen=True, slots=True)
class Subplan:
    """Holds nodes of a fragment, the root first and then as they feed it, left before right.

    The columns are in the order in which the scans bind them.

    `digest` names relations, windows, keys, conditions and triple patterns. Subplans of one name keep and give the
    same solutions, if the k-th columns, and the k-th nodes, are taken for each other.
    """

    digest: bytes
    nodes: tuple[int, ...]
    columns: tuple[int, ...]
    memory: int  # how long before now an occurrence that a goal rests on may have begun, in µs
    gates: frozenset[int] = frozenset()  # nodes outside of it without whose goals it keeps nothing: it does not stand alone

    @property
    def root(self) -> int:
        return self.nodes[0]


def find_subplans(fragment: Fragment) -> dict[int, Subplan]:
    """Return the subplans by root. The solutions of all of them come from the streams alone."""
    feeders, found = _feeders(fragment), dict[int, Subplan]()
    with deep_stack():
        for node in range(len(fragment.nodes) - 1, -1, -1):  # what feeds a node was made after it
            if fragment.nodes[node].kind in SIDES and (subplan := _subplan(fragment, node, feeders, found)) is not None:
                found[node] = subplan
    return {node: subplan for node, subplan in found.items() if fragment.nodes[node].kind == c.JOIN and not subplan.gates}


def _feeders(fragment: Fragment) -> dict[tuple[int, int], list[Feeder]]:
    """Return the feeders of each side."""
    feeders: dict[tuple[int, int], list[Feeder]] = {}
    for scan in fragment.scans:
        feeders.setdefault((scan.node, scan.side), []).append(scan)
    for node in range(len(fragment.nodes)):
        for target in fragment.edges_of(node):
            feeders.setdefault(target, []).append(node)
    return feeders


def _subplan(fragment: Fragment, number: int, feeders: Mapping[tuple[int, int], list[Feeder]], below: Mapping[int, Subplan]) -> Subplan | None:
    node = fragment.nodes[number]
    if node.timeless or node.edges.n != 1 or fragment.lookups.get(number) is not None:
        return None
    nodes, columns, memory, gates = [number], list[int](), 0, {node.gate} - {c.NONE}
    parts: list[object] = [node.kind, node.relation, node.span, node.life_left, node.life_right]
    for side in SIDES[node.kind]:
        for feeder in feeders.get((number, side), ()):
            if isinstance(feeder, int):
                if (inner := below.get(feeder)) is None:
                    return None
                nodes += inner.nodes
                gates |= inner.gates - {number}
                bound, name, memory = inner.columns, inner.digest.hex(), max(memory, inner.memory)
            else:
                bound, name = feeder.binds, _name_of(feeder)
            columns += [column for column in dict.fromkeys(bound) if column not in columns]
            parts.append((side, name, [columns.index(column) for column in bound]))
    if len(parts) < 5 + len(SIDES[node.kind]) or sum(fragment.nodes[each].kind == c.JOIN for each in nodes) > MOST_JOINS:
        return None
    parts += [sorted(columns.index(column) for column in fragment.columns_at(part)) for part in (node.key, node.rest)]
    condition = condition_of(fragment, node.filter, columns)
    if condition is None:
        return None
    parts += ["local"] * node.local  # whose goals others would keep
    kept = max(node.life_left, node.life_right) + node.span if node.kind == c.JOIN else 0
    digest = hashlib.blake2b(repr([*parts, condition]).encode(), digest_size=16).digest()
    return Subplan(digest, tuple(nodes), tuple(columns), max(memory, kept), frozenset(gates))


def _name_of(scan: Scan) -> str:
    """Return a text of all of a scan but its place and its columns. Snapshots have names made of it, so it must stay."""
    s, p, o, g = (column != c.NONE for column in (*scan.columns, scan.graph_column))
    found = [scan.stream, scan.subject, scan.object, s, p, o, 0, scan.side, scan.graph, g, scan.predicate]
    return repr(found if scan.moment == c.NONE else [*found, "moment"])


def condition_of(fragment: Fragment, filter_: int, columns: Sequence[int]) -> a.Expression | int | None:
    """Return a node's condition over `variable(k)` for the k-th of these columns, a code for none at all; None if it
    looks at anything else.
    """
    if filter_ < 0:
        return filter_
    inquiry = fragment.inquiries[fragment.code[filter_][0]]
    numbers = {v: fragment.columns[v] for v in inquiry.variables}
    if inquiry.condition is None or has_exists(inquiry.condition) or not set(numbers.values()) <= set(columns):
        return None
    return rename_variables(inquiry.condition, {v: variable(columns.index(number)) for v, number in numbers.items()})


def variable(k: int) -> Variable:
    """Return the variable that names the k-th column of a subplan standing alone."""
    return Variable(f"_:shared@{k:02}")


def copy_subplan(fragment: Fragment, subplan: Subplan, number: Callable[[str], int]) -> Fragment:
    """Return a subplan as a fragment of its own; `number` gives the number of a constant's term."""
    alone = Fragment(columns={variable(k): c.VAR + k for k in range(len(subplan.columns))})
    places, columns = {node: k for k, node in enumerate(subplan.nodes)}, {column: c.VAR + k for k, column in enumerate(subplan.columns)}

    def copy_slots(rows: RowRange) -> RowRange:
        return add_slots(alone, [columns[column] for column in fragment.columns_at(rows)])

    for each in subplan.nodes:
        before = fragment.nodes[each]
        gate = places.get(before.gate, c.NONE)
        look = RowRange(before.look.first, 0)
        subject = columns[before.subject] if before.subject else 0
        node = replace_fields(
            before, key=copy_slots(before.key), rest=copy_slots(before.rest), look=look, look_via=c.NONE, gate=gate, subject=subject
        )
        condition = condition_of(fragment, before.filter, subplan.columns)
        if isinstance(condition, a.Expression):
            node.filter = compile_filter(alone, condition, number)
        ((target, side),) = fragment.edges_of(each)
        node.edges = RowRange(len(alone.edges), int(each != subplan.root))
        if each != subplan.root:
            alone.edges.append((places[target], side))
        alone.nodes.append(node)
    for scan in fragment.scans:
        if scan.node in places:
            s, p, o, g, moment = (column if column == c.NONE else columns[column] for column in (*scan.columns, scan.graph_column, scan.moment))
            alone.scans.append(replace_fields(scan, node=places[scan.node], columns=(s, p, o), graph_column=g, moment=moment))
    return alone
