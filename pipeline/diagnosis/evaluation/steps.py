"""This module takes a query apart into steps, each of which can be evaluated as a query of its own."""

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import assert_never

from engine.explain.algebra_outline import Outliner
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.renderer.terms import TermWriter
from epsparql.terms import Iri, Variable
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import replace_fields, walk_nodes

MOST_STEPS = 100
"""Queries with more steps are examined as a whole only."""
_PREFIX = re.compile(r"(?i)\bPREFIX\s+([\w.-]*:)\s*<([^>]*)>")
_LOCAL = re.compile(r"[A-Za-z_][\w-]*")
Wrap = Callable[[a.Pattern], a.Pattern]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Represents a step: `pattern` stands in the query, and `probe` is the pattern with the GRAPH or WINDOW around it.

    All `inputs` must let something through, or with `any_of` one of them. `graph` names the graph that a GRAPH around
    it asks for.
    """

    pattern: a.Pattern
    probe: a.Pattern
    inputs: tuple["Node", ...] = ()
    any_of: bool = False
    graph: Iri | Variable | None = None
    wrap: Wrap = field(default=lambda pattern: pattern)


def build_steps(pattern: a.Pattern, wrap: Wrap = lambda pattern: pattern, graph: Iri | Variable | None = None) -> Node:
    """Return the last step of a pattern, with those that it needs."""

    def below(inner: a.Pattern) -> Node:
        return build_steps(inner, wrap, graph)

    def make_node(*inputs: Node, any_of: bool = False) -> Node:
        return Node(pattern, wrap(pattern), inputs, any_of, graph, wrap)

    match pattern:
        case a.Graph(name, inner):
            return build_steps(inner, lambda inside: wrap(replace_fields(pattern, pattern=inside)), name)
        case a.InWindow(_, inner):
            return build_steps(inner, lambda inside: wrap(replace_fields(pattern, pattern=inside)), graph)
        case a.Bgp(triples) if len(triples) > 1:
            return _build_block(pattern, wrap, graph)
        case a.Bgp() | a.Path() | a.Values() | a.Instant():
            return make_node()
        case (
            a.Filter(_, inner)
            | a.Extend(inner, _, _)
            | a.Within(inner, _)
            | a.Alarm(inner, _)
            | a.Group(inner, _, _, _)
            | a.SubSelect(inner, _, _, _)
        ):
            return make_node(below(inner))
        case a.Union(left, right):
            return make_node(below(left), below(right), any_of=True)
        case a.LeftJoin(kept, _, _) | a.EqLeftJoin(kept, _, _) | a.SeqRightJoin(_, kept, _) | a.Minus(kept, _) | a.WithoutFor(kept, _, _):
            return make_node(below(kept))
        case a.SeqWithout() | a.JoinWithout():
            return make_node(below(_without_absence(pattern)))
        case a.Join(left, right) if left == a.Bgp(()):
            return below(right)
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
            return make_node(below(left), below(right))
        case _:
            assert_never(pattern)


def _without_absence(pattern: a.SeqWithout | a.JoinWithout) -> a.Pattern:
    """Return what a pattern would match if nothing were absent."""
    joined = a.SeqJoin(pattern.left, pattern.right) if isinstance(pattern, a.SeqWithout) else a.Join(pattern.left, pattern.right, unrestricted=False)
    return joined if pattern.within is None else a.Within(joined, pattern.within)


def _build_block(block: a.Bgp, wrap: Wrap, graph: Iri | Variable | None) -> Node:
    """Return the steps of several triple patterns: each by itself, and one more joined at a time, those with a common
    variable first.
    """
    rest = list(block.triples)
    taken = [rest.pop(0)]
    node = build_steps(a.Bgp((taken[0],), block.place), wrap, graph)
    while rest:
        known = {variable for triple in taken for variable in a.variables_in(triple.subject, triple.predicate, triple.object)}
        linked = (t for t in rest if known & {*a.variables_in(t.subject, t.predicate, t.object)})
        triple = next(linked, rest[0])
        rest.remove(triple)
        taken.append(triple)
        left, right = node, build_steps(a.Bgp((triple,), block.place), wrap, graph)
        node = Node(a.Join(left.pattern, right.pattern), wrap(a.Bgp(tuple(taken), block.place)), (left, right), graph=graph, wrap=wrap)
    return node


def list_steps(last: Node) -> list[Node]:
    """Return the steps, each after its inputs."""
    found: list[Node] = []
    pending = [last]
    while pending:
        node = pending.pop()
        found.append(node)
        pending += node.inputs
    return found[::-1]


# ---------------------------------------------------------------- words
_OPERATORS = {
    a.Bgp: "pattern", a.Path: "path", a.Values: "VALUES", a.Instant: "instant", a.Filter: "FILTER", a.Extend: "BIND", a.Within: "WITHIN",
    a.Alarm: "timer",
    a.Group: "GROUP BY", a.SubSelect: "sub-SELECT", a.Union: "UNION", a.LeftJoin: "OPTIONAL", a.EqLeftJoin: "EQUALSOPTIONAL",
    a.SeqRightJoin: "OPTIONALSEQ",
    a.Minus: "MINUS", a.WithoutFor: "WITHOUT FOR", a.SeqWithout: "WITHOUT", a.JoinWithout: "WITHOUT", a.Join: "join", a.SeqJoin: "SEQ",
    a.EqJoin: "EQUALS",
}  # fmt: skip


class Words:
    """Names the steps of a query in its own words, with its prefixes and places."""

    def __init__(self, parsed: ParsedQuery) -> None:
        self._parsed = parsed
        outliner = Outliner.from_query(parsed.query)
        spaces = sorted(_PREFIX.findall(parsed.text), key=lambda each: -len(each[1]))
        iris = dict.fromkeys(node.value for node in walk_nodes(parsed.query) if isinstance(node, Iri))
        names = {iri: short for iri in iris if (short := _abbreviate(iri, spaces)) is not None}
        self.texts = replace_fields(outliner.texts, terms=TermWriter("", names))
        self._outliner = replace_fields(outliner, texts=self.texts)

    def name_operator(self, node: Node) -> str:
        if isinstance(node.pattern, a.Filter) and any(isinstance(each.pattern, a.Group) for each in node.inputs):
            return "HAVING"
        if isinstance(node.pattern, a.RelationJoin):
            return node.pattern.relation.value
        return _OPERATORS[type(node.pattern)]

    def describe_pattern(self, pattern: a.Pattern) -> str:
        """Return what a step holds beside its inputs."""
        match pattern:
            case a.Bgp(triples):
                return self.texts.terms.triples(triples)
            case a.RelationJoin():
                return ""
            case _:
                return self._outliner.detail(pattern)

    def write_group(self, pattern: a.Pattern) -> str:
        """Return a pattern as it is written in braces, shortened."""
        triples = [node.triples for node in walk_nodes(pattern) if isinstance(node, a.Bgp)]
        written = " ".join(self.texts.terms.triples(each) for each in triples[:2]) + (" ..." if len(triples) > 2 else "")
        return f"{{ {written.strip()} }}"

    def find_place(self, pattern: a.Pattern) -> tuple[int | None, int | None]:
        """Return line and column of a pattern, or of the first thing in it that has a place."""
        own = self._parsed.places.find_span(pattern)
        if own is None and isinstance(pattern, a.Filter):
            spans = [self._parsed.places.find_condition(each) for each in walk_nodes(pattern.condition)]
            own = next((span for span in spans if span is not None), None)
        inner = (span for node in walk_nodes(pattern) if (span := self._parsed.places.find_span(node)) is not None)
        span = own or min(inner, key=lambda each: each.start, default=None)
        return (None, None) if span is None else span.place(self._parsed.text)


def _abbreviate(iri: str, spaces: list[tuple[str, str]]) -> str | None:
    for prefix, space in spaces:
        if space and iri.startswith(space) and _LOCAL.fullmatch(iri[len(space) :]):
            return prefix + iri[len(space) :]
    return None


def list_triples(pattern: a.Pattern) -> Iterator[a.TriplePattern]:
    return (node for node in walk_nodes(pattern) if isinstance(node, a.TriplePattern))
