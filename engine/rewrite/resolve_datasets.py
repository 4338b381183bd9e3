"""GRAPH, FROM, FROM NAMED and WINDOW become the places of triple patterns (semantics.md section 1)."""

from dataclasses import field
from itertools import count

from engine.pattern_scope import find_scope, has_exists
from engine.rewrite.transform import Node, replace_patterns
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Iri, Variable
from epsparql.trees import replace_fields

UNNAMED = ""
"""UNNAMED stands in `Place.among` for the triples that lie in no graph."""
BACKGROUND = ""
"""BACKGROUND stands in `Place.window` for no stream, the background alone."""


def resolve_datasets(query: a.Query, default_graph: str) -> a.Query:
    """Return the query whose triple patterns say where they look; under GRAPH all rows carry the graph in a hidden
    variable.
    """
    dataset = query.sources.dataset
    among = dataset.default if dataset is not None else (UNNAMED,) if default_graph == "unnamed" else None
    window = BACKGROUND if query.sources.windows else None
    step = _Placing(None if dataset is None else dataset.named, among)
    return replace_patterns(query, lambda pattern: step.place_pattern(pattern, a.Place(None, among, window)))


@dataclass(slots=True)
class _Placing:
    named: tuple[str, ...] | None
    default: tuple[str, ...] | None
    _numbers: "count[int]" = field(default_factory=count)

    def place_pattern(self, pattern: a.Pattern, place: a.Place) -> a.Pattern:
        match pattern:
            case a.Bgp(triples):
                return a.Bgp(triples, place)
            case a.Path():
                return replace_fields(pattern, place=place)
            case a.Graph():
                return self._place_graph(pattern, place)
            case a.InWindow(name, content):
                return self.place_pattern(content, a.Place(None, self.default, name))
            case a.Group() if place.graph is not None:
                below = self._below(pattern, place)
                if isinstance(below.window, a.RunWindow) and below.window.until is not None:
                    below = replace_fields(below, window=replace_fields(below.window, until=join_graph_names(below.window.until, place)))
                return replace_fields(below, pattern=join_graph_names(below.pattern, place), keys=(place.graph, *pattern.keys))
            case a.SubSelect() if place.graph is not None:
                inner = self._below(pattern, place)
                modifiers = _join_once(inner.modifiers, place)
                return replace_fields(
                    inner, pattern=join_graph_names(inner.pattern, place), projection=(*pattern.projection, place.graph), modifiers=modifiers
                )
            case _:
                return join_kept_side(self._below(pattern, place), place)

    def _below(self, pattern: Node, place: a.Place) -> Node:
        return replace_patterns(pattern, lambda part: self.place_pattern(part, place))

    def _place_graph(self, graph: a.Graph, place: a.Place) -> a.Graph:
        among = self.named
        if isinstance(graph.name, Iri):
            name = graph.name.value
            among = (name,) if among is None or name in among else ()
        inner = a.Place(Variable(f"_:graph#{next(self._numbers)}"), among, place.window)
        return a.Graph(graph.name, join_graph_names(self.place_pattern(graph.pattern, inner), inner), inner)


def _join_once(modifiers: a.Modifiers, place: a.Place) -> a.Modifiers:
    """Return modifiers whose ONCE PER tells graphs apart."""
    once = modifiers.once
    if once is None or place.graph is None:
        return modifiers
    until = None if once.until is None else join_graph_names(once.until, place)
    return replace_fields(modifiers, once=replace_fields(once, keys=(place.graph, *once.keys), until=until))


def join_graph_names(pattern: a.Pattern, place: a.Place) -> a.Pattern:
    """Return the pattern so that all its solutions say in which graph of the place they are.

    Solutions that look at no graph are in each.
    """
    if place.graph is None or place.graph in find_scope(pattern, lambda triple, where: True).certain:
        return pattern
    if isinstance(pattern, a.Union):
        return a.Union(join_graph_names(pattern.left, place), join_graph_names(pattern.right, place))
    return a.Join(a.Bgp((), place), pattern)


def join_kept_side(pattern: a.Pattern, place: a.Place) -> a.Pattern:
    """Make the side on which absence is decided say in which graph it is, because absence is decided graph by graph."""
    match pattern:
        case a.Minus(left, _) | a.LeftJoin(left, _, _) | a.EqLeftJoin(left, _, _) | a.SeqWithout(left, _, _, _) | a.JoinWithout(left, _, _, _):
            return replace_fields(pattern, left=join_graph_names(left, place))
        case a.SeqRightJoin(_, right, _):
            return replace_fields(pattern, right=join_graph_names(right, place))
        case a.WithoutFor(inner, _, _):
            return replace_fields(pattern, pattern=join_graph_names(inner, place))
        case a.Filter(condition, inner) if has_exists(condition):
            return a.Filter(condition, join_graph_names(inner, place))
        case a.Extend(inner, variable, expression) if has_exists(expression):
            return a.Extend(join_graph_names(inner, place), variable, expression)
        case _:
            return pattern
