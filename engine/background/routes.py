"""This module finds shortest paths over the links of a background's predicate, for ep:route and ep:routeLength.

A route is found backwards and read forwards:

1. Distances. Beginning at the target, each node that can reach it gets its distance: the number of links, or the
   weights' sum and then the number of links. A node's distance never changes once its links have been followed.
2. Way. Beginning at the source, the next node is the one with the least text among those on a shortest way. So of
   several shortest routes, the one that is found has the least texts in order (semantics.md section 15).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from math import isfinite
from typing import Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.expressions import numeric
from engine.expressions.background_functions import ShortestRoute
from engine.expressions.literals import parse_number, term_of
from engine.expressions.values import ExpressionError, Number, NumericType
from engine.triples.relation import difference, sort_values
from epsparql.terms import RDF, BlankNode, Iri, Literal, Term, TripleTerm

Ints = NDArray[np.int64]
MOST_VISITED = 200_000
"""A search that has visited more nodes than this finds no route."""
_REMEMBERED = 1 << 16
"""The routes that are kept of one graph have at most about so many nodes in all."""
_MOST_GRAPHS = 16
_REIFIES = f"<{RDF}reifies>"
_SUBJECT, _OBJECT = 0, 1
_BITS = 32
_MASK = (1 << _BITS) - 1
Distance = tuple[Fraction, int]
"""The sum of a way's weights (0 if links have none), and its number of links."""
NextNodes = Callable[[int], list[int]]
"""It returns the next nodes on the shortest ways from a node to the target."""


class Triples(Protocol):
    """Gives the rows (subject, object, graph) of all that holds with a predicate in one version of the background."""

    @property
    def terms(self) -> TermTable: ...

    def match_rows(self, predicate: int) -> Ints: ...


@dataclass
class RouteGraph:
    """Holds the links of one predicate as they are in one version of the background.

    A link is a pair of term numbers in one integer. `forward` has the pairs of source and target, sorted, and
    `backward` those of target and source. `weights` has a link's weight by its pair in `forward`; None if links have
    none.
    """

    forward: Ints
    backward: Ints
    weights: dict[int, Number] | None = None
    nodes: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = sort_values(np.concatenate([_list_firsts(self.forward), _list_firsts(self.backward)]))

    @classmethod
    def from_rows(cls, rows: Ints) -> "RouteGraph":
        return cls(sort_values(_pair(rows, _SUBJECT, _OBJECT)), sort_values(_pair(rows, _OBJECT, _SUBJECT)))

    def with_change(self, gone: Ints, come: Ints, rows: Ints) -> "RouteGraph":
        """Return the graph when some rows are gone and others have come, which makes these `rows`.

        A link stays as long as a row has it. It costs a copy of the links, but no sorting of them.
        """
        less, more = _pair(gone, _SUBJECT, _OBJECT), _pair(come, _SUBJECT, _OBJECT)
        less = less[~np.isin(less, _pair(rows[np.isin(rows[:, _SUBJECT], gone[:, _SUBJECT])], _SUBJECT, _OBJECT))]
        return RouteGraph(_change(self.forward, less, more), _change(self.backward, _turn(less), _turn(more)))

    def with_weights(self, weights: dict[int, Number]) -> "RouteGraph":
        """Return the graph of those links that have a weight, which is given by their pairs in `forward`."""
        weighted = np.array(list(weights), np.int64)
        forward = np.intersect1d(self.forward, weighted)
        return RouteGraph(forward, np.sort(_turn(forward)), {pair: weights[pair] for pair in forward.tolist()})

    def list_targets(self, node: int) -> list[int]:
        found: list[int] = (_slice(self.forward, node) & _MASK).tolist()
        return found

    def _subtract_link(self, distance: Distance, source: int, target: int) -> Distance:
        """Return the distance that the link's target has if it is the next node of a shortest way."""
        assert self.weights is not None
        weight, steps = distance
        return weight - Fraction(self.weights[source << _BITS | target].value), steps - 1

    def find_way(self, source: int, target: int, text_of: Callable[[int], str]) -> list[int] | None:
        """Return the nodes of the shortest way, None if there is none within the bound."""
        list_next = self._count_steps(source, target) if self.weights is None else self._sum_weights(source, target)
        if list_next is None:
            return None
        way = [source]
        while way[-1] != target:
            way.append(min(list_next(way[-1]), key=text_of))
        return way

    def _count_steps(self, source: int, target: int) -> NextNodes | None:
        """Count the links from each node to the target, by a search level by level; None if the source does not reach it."""
        steps = np.full(len(self.nodes), -1, np.int64)
        level, last, reached, distance = np.searchsorted(self.nodes, [target]), np.searchsorted(self.nodes, source), 1, 0
        steps[level] = 0
        first, before = self._places
        while len(level) and reached <= MOST_VISITED and steps[last] < 0:
            distance += 1
            begin = first[level]
            counts = first[level + 1] - begin
            links = np.repeat(begin + counts - np.cumsum(counts), counts) + np.arange(counts.sum())
            new = before[links]
            steps[new[steps[new] < 0]] = distance
            level = sort_values(new[steps[new] == distance])
            reached += len(level)
        if steps[last] < 0:
            return None

        def list_next(node: int) -> list[int]:
            here, *targets = np.searchsorted(self.nodes, [node, *self.list_targets(node)]).tolist()
            return [int(self.nodes[place]) for place in targets if steps[place] == steps[here] - 1]

        return list_next

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """Return where each node's links begin in `backward`, and the place in `nodes` of the source of each link."""
        return np.searchsorted(self.backward, np.append(self.nodes, self.nodes[-1:] + 1) << _BITS), np.searchsorted(self.nodes, self.backward & _MASK)

    def _sum_weights(self, source: int, target: int) -> NextNodes | None:
        """Find the distances of all nodes nearer to the target than the source (Dijkstra); None if the source does
        not reach it.
        """
        assert self.weights is not None
        best, settled = {target: (Fraction(0), 0)}, dict[int, Distance]()
        queue = [(Fraction(0), 0, target)]
        while queue and len(settled) <= MOST_VISITED:
            weight, steps, node = heappop(queue)
            if node in settled:
                continue
            settled[node] = weight, steps
            if node == source:
                return lambda here: [node for node in self.list_targets(here) if settled.get(node) == self._subtract_link(settled[here], here, node)]
            for before in (_slice(self.backward, node) & _MASK).tolist():
                distance = weight + Fraction(self.weights[before << _BITS | node].value), steps + 1
                if before not in settled and (before not in best or distance < best[before]):
                    best[before] = distance
                    heappush(queue, (*distance, before))
        return None


def _pair(rows: Ints, first: int, second: int) -> Ints:
    return rows[:, first] << _BITS | rows[:, second]


def _turn(pairs: Ints) -> Ints:
    """Return the pairs with their parts exchanged."""
    return (pairs & _MASK) << _BITS | pairs >> _BITS


def _slice(pairs: Ints, first: int) -> Ints:
    """Return the sorted pairs that have this first part."""
    begin, end = np.searchsorted(pairs, [first << _BITS, (first + 1) << _BITS])
    return pairs[begin:end]


def _list_firsts(pairs: Ints) -> Ints:
    """Return the first parts of sorted pairs, each once."""
    firsts = pairs >> _BITS
    first: Ints = firsts[np.diff(firsts, prepend=-1) != 0]
    return first


def _change(pairs: Ints, less: Ints, more: Ints) -> Ints:
    """Return sorted pairs without some of them and with others, each once."""
    pairs = np.delete(pairs, np.searchsorted(pairs, less)) if len(less) else pairs
    more = sort_values(more)
    places = np.searchsorted(pairs, more)
    new = np.ones(len(more), np.bool_)
    inside = places < len(pairs)
    new[inside] = pairs[places[inside]] != more[inside]
    return np.insert(pairs, places[new], more[new])


@dataclass(slots=True)
class _Kept:
    """Holds a graph with the rows of which it was made, and the routes that were found in it."""

    made_of: tuple[Ints, ...]
    graph: RouteGraph
    routes: dict[tuple[int, int], ShortestRoute | None] = field(default_factory=dict)
    nodes: int = 0

    def keep_route(self, ends: tuple[int, int], route: ShortestRoute | None) -> None:
        """Keep a route, or that there is none. All others are forgotten first if they would have too many nodes with it."""
        size = 1 if route is None else len(route.nodes)
        if self.nodes + size > _REMEMBERED:
            self.routes.clear()
            self.nodes = 0
        self.routes[ends] = route
        self.nodes += size


Graphs = dict[tuple[int, int | None], _Kept]
"""By predicate and predicate of the weights, as term numbers. Versions of one background share them."""


def search_route(triples: Triples, graphs: Graphs, arguments: Sequence[Term]) -> ShortestRoute | None:
    """Return the shortest route of ep:route's arguments: from, to, the links' predicate and, if given, that of their
    weights.

    The result is None if there is no route, or it is beyond the bound of visited nodes. Raises: ExpressionError for
    arguments that are no nodes or predicates.
    """
    source, target, *predicates = arguments
    if not isinstance(source, Iri | BlankNode) or not isinstance(target, Iri | BlankNode):
        raise ExpressionError
    if not all(isinstance(predicate, Iri) for predicate in predicates):
        raise ExpressionError
    if source == target:
        return ShortestRoute((str(source),), term_of(Number(NumericType.INTEGER, 0)))
    terms = triples.terms
    numbers = [terms.intern(str(term)) for term in arguments]
    kept = _find_graph(triples, graphs, numbers[2], numbers[3] if len(numbers) > 3 else None)
    ends = numbers[0], numbers[1]
    if ends not in kept.routes:
        kept.keep_route(ends, _read_route(kept.graph, terms, *ends))
    return kept.routes[ends]


def _find_graph(triples: Triples, graphs: Graphs, predicate: int, weight: int | None) -> _Kept:
    """Return the graph of a predicate's links, made anew if one of its rows has changed."""
    asked = (predicate,) if weight is None else (predicate, weight, triples.terms.intern(_REIFIES))
    rows = tuple(triples.match_rows(each) for each in asked)
    kept = graphs.get((predicate, weight))
    if kept is None or any(x is not y for x, y in zip(kept.made_of, rows, strict=True)):
        graph = (
            RouteGraph.from_rows(rows[0])
            if kept is None or weight is not None
            else kept.graph.with_change(*difference(kept.made_of[0], rows[0]), rows[0])
        )
        if weight is not None:
            graph = graph.with_weights(_read_weights(triples.terms, predicate, *rows[1:]))
        if len(graphs) >= _MOST_GRAPHS:  # a predicate may come from events
            graphs.clear()
        kept = graphs[predicate, weight] = _Kept(rows, graph)
    return kept


def _read_weights(terms: TermTable, predicate: int, weights: Ints, reified: Ints) -> dict[int, Number]:
    """Return the least weight of each link, by the numbers of its ends; what is no number, or below 0, is passed over."""
    predicate_text, found = terms.text(predicate), dict[int, Number]()
    statements: dict[int, list[int]] = {}
    for reifier, statement, _ in reified.tolist():
        statements.setdefault(reifier, []).append(statement)
    for reifier, value, _ in weights.tolist():
        number = _read_weight(terms.term(value)) if reifier in statements else None
        if number is None:
            continue
        for statement in statements[reifier]:
            link = terms.term(statement)
            if isinstance(link, TripleTerm) and str(link.predicate) == predicate_text:
                pair = terms.intern(str(link.subject)) << _BITS | terms.intern(str(link.object))
                if pair not in found or Fraction(number.value) < Fraction(found[pair].value):
                    found[pair] = number
    return found


def _read_weight(term: Term | None) -> Number | None:
    number = parse_number(term) if isinstance(term, Literal) else None
    if number is None or (isinstance(number.value, float) and not isfinite(number.value)) or number.value < 0:
        return None
    return number


def _read_route(graph: RouteGraph, terms: TermTable, source: int, target: int) -> ShortestRoute | None:
    if not np.isin([source, target], graph.nodes).all():
        return None
    way = graph.find_way(source, target, terms.text)
    if way is None:
        return None
    texts = tuple(map(terms.text, way))
    if graph.weights is None:
        return ShortestRoute(texts, term_of(Number(NumericType.INTEGER, len(way) - 1)))
    return ShortestRoute(texts, term_of(_add_weights([graph.weights[x << _BITS | y] for x, y in pairwise(way)])))


def _add_weights(weights: Sequence[Number]) -> Number:
    """Return the exact sum of weights; a sum with a float or double is rounded once."""
    kind, total = max(weight.kind for weight in weights), sum((Fraction(weight.value) for weight in weights), Fraction(0))
    match kind:
        case NumericType.INTEGER:
            return numeric.bounded(int(total))
        case NumericType.DECIMAL:
            return numeric.add(Number(NumericType.INTEGER, 0), Number(kind, numeric.exact_decimal(total)))
        case NumericType.FLOAT:
            return Number(kind, numeric.nearest_single(total))
        case NumericType.DOUBLE:
            return Number(kind, numeric.to_float(total))
    assert_never(kind)
