"""This module makes the plan of a query in which negative parts let all solutions pass, in each way in which they may.

`kept_goals` finds by it which timeless solutions there may be over a background.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import NamedTuple

from engine.aggregation.order_limit import ModifiersCollector
from engine.kernel.state import layout as c
from engine.network.host_calls import KernelHost
from engine.network.placed_query import OPTIONALS
from engine.physical_plan.plan import NO_ROWS, Fragment, LastingSide, Node, RowRange
from epsparql.deferred_methods import dataclass

Target = tuple[int, int]
"""A node and its side."""


class Deciding(NamedTuple):
    """Says how a side that decides lets solutions pass in a network of its own."""

    held: int  # the store of that network, from the query's first on, that has the side's solutions
    alone: Target  # where those go by themselves that may pass so
    decided: Target | None  # where those go that were decided on, as they are kept; None: they do not pass by themselves
    pairs: LastingSide | None = None  # of a set behind an optional join: where that decided; a new pair of such a solution does not pass


@dataclass(slots=True)
class _Permissive:
    fragment: Fragment
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    moves: list[tuple[int, int]] = field(default_factory=list)
    instead: dict[Target, Target] = field(default_factory=dict)  # the new target of what went to a side
    direct: set[int] = field(default_factory=set)  # edges that go where they say
    deciding: dict[int, Deciding] = field(default_factory=dict)  # by store

    def __post_init__(self) -> None:
        self.nodes, self.edges, self.moves = [replace(row) for row in self.fragment.nodes], list(self.fragment.edges), list(self.fragment.moves)

    def passing(self, targets: Sequence[Target], filter_: int = c.NONE, *, direct: bool = False) -> Target:
        row = Node(c.PASS, filter=filter_, edges=RowRange(len(self.edges), len(targets)))
        if direct:
            self.direct.add(len(self.edges))
        self.edges += targets
        self.nodes.append(row)
        return len(self.nodes) - 1, c.LEFT

    def moving(self, target: Target, pairs: Sequence[tuple[int, int]], *, keep: bool) -> Target:
        node, side = self.passing([target])
        row = self.nodes[node]
        row.kind, row.keep, row.moves = c.MOVE, keep, RowRange(len(self.moves), len(pairs))
        self.moves += pairs
        return node, side

    def holding(self) -> Target:
        """Return a node that keeps timeless solutions, each once, and hands none on."""
        self.nodes.append(Node(c.MOVE, keep=True, once=True))
        return len(self.nodes) - 1, c.LEFT

    def readers(self, node: int) -> list[Target]:
        return self.fragment.edges_of(node)


def make_permissive(fragment: Fragment, host: KernelHost) -> tuple[Fragment, dict[int, Deciding]]:
    made = _Permissive(replace(fragment, nodes=[replace(row, gate=c.NONE) for row in fragment.nodes]))
    for node, row in enumerate(fragment.nodes):
        _let_pass(made, node, row.kind, host)
    for number, side in fragment.paired.items():
        _let_decided_pass(made, (number, c.LEFT), (number, c.LEFT), (number, c.LEFT), side)
    edges = [edge if k in made.direct else made.instead.get(edge, edge) for k, edge in enumerate(made.edges)]
    facts = [
        replace(fact, node=at[0], side=at[1]) for fact in fragment.facts for at in [made.instead.get((fact.node, fact.side), (fact.node, fact.side))]
    ]
    return replace(fragment, nodes=made.nodes, edges=edges, moves=made.moves, facts=facts, scans=[], collectors={}), made.deciding


def _let_pass(made: _Permissive, node: int, kind: int, host: KernelHost) -> None:
    row, readers = made.nodes[node], made.readers(node)
    if kind in (c.MINUS, c.EXISTS, c.NOTEXISTS) and readers:
        _let_decided_pass(made, (node, c.LEFT), made.passing(readers, row.filter))
    elif kind == c.MARK:
        passing = made.passing(readers, row.filter)
        _let_decided_pass(made, (node, c.LEFT), _mark_either(made, node, host, passing), passing)
    elif kind in OPTIONALS:
        target = node, c.RIGHT if kind == c.OPTIONALSEQ else c.LEFT
        finds = [(row.look_via, c.LEFT)] if row.look_via != c.NONE else []
        passing = made.passing(readers, row.filter)
        _let_decided_pass(made, target, passing)
        made.instead[target] = made.passing([target, *finds, made.instead[target]], direct=True)
        if row.condition != c.NONE and not row.marks.n and made.fragment.find_inquiry(row.condition).lasts:
            row.filter, row.edges = row.condition, RowRange(len(made.edges), 1)
            made.edges.append(passing)
        _as_join(row)
    elif kind == c.FIND:
        row.kind = c.JOIN
    elif kind in (c.WITHOUT, c.RECENT, c.CHRONOLOGICAL):
        _as_join(row)
    elif kind == c.WITHOUTFOR:
        made.instead[node, c.LEFT] = made.passing([])
    elif kind == c.ONCE:
        made.instead[node, c.LEFT] = made.passing(readers, row.filter)
    elif kind == c.COLLECT:
        collector = made.fragment.collectors[node]
        columns = [made.fragment.columns[v] for v in collector.writes]
        onwards = [made.moving(made.passing(readers), [(k, k) for k in columns], keep=False)] if isinstance(collector, ModifiersCollector) else []
        made.instead[node, c.LEFT] = made.passing([(node, c.LEFT), *onwards], direct=True)


def _let_decided_pass(
    made: _Permissive, target: Target, alone: Target, decided: Target | None = None, pairs: LastingSide | None = None
) -> None:  # fmt: skip
    made.instead[target] = held = made.holding()
    made.deciding[c.SIDES * target[0] + target[1]] = Deciding(c.SIDES * held[0] + held[1], alone, decided, pairs)


def _as_join(row: Node) -> None:
    """Turn a node into a join of all pairs, whatever a condition or an absence says."""
    row.kind, row.timeless, row.life_left, row.life_right, row.marks = c.JOIN, 1, c.FOREVER, c.FOREVER, NO_ROWS


def _mark_either(made: _Permissive, node: int, host: KernelHost, target: Target) -> Target:
    """Place nodes before `target` that make each EXISTS of the node both true and false."""
    for mark in made.fragment.marks_of(node):
        column = made.fragment.nodes[mark].column
        values = [int(host.arrays.net.at[c.TRUE_TERM]), int(host.arrays.net.at[c.FALSE_TERM])]
        target = made.passing([made.moving(target, [(-value, column)], keep=True) for value in values])
    return target
