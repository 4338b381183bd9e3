"""This module maps the nodes of a query's algebra to their places in its text: what planning doubts or refuses is
named by its place.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from epsparql.errors import Span
from epsparql.trees import walk_nodes

Places = Iterable[tuple[object, Span]]


def beginning(span: Span, keyword: str) -> Span:
    """Return the keyword that a stretch begins with."""
    return Span(span.start, span.start + len(keyword))


class SourceMap:
    """Keeps places by the identity of nodes, since equal ones may stand in several places. `sources` has those of
    FROM clauses by their name.

    A condition has the place of its FILTER or HAVING apart, since a place of its own may name a part of it.
    """

    __slots__ = ("_conditions", "_noted", "sources")

    def __init__(self, noted: Places = (), sources: Mapping[str, Span] = MappingProxyType({}), conditions: Places = ()) -> None:
        self.sources = dict(sources)
        self._noted = {id(node): (node, span) for node, span in noted}  # with the node, so that no other gets its identity
        self._conditions = {id(node): (node, span) for node, span in conditions}

    def __reduce__(self) -> tuple[type["SourceMap"], tuple[Places, dict[str, Span], Places]]:
        return SourceMap, (tuple(self._noted.values()), self.sources, tuple(self._conditions.values()))  # a copy's nodes have other identities

    def note(self, node: object, span: Span) -> None:
        self._noted[id(node)] = node, span

    def find_span(self, node: object) -> Span | None:
        found = self._noted.get(id(node))
        return None if found is None else found[1]

    def note_condition(self, condition: object, span: Span) -> None:
        self._conditions[id(condition)] = condition, span

    def find_condition(self, condition: object) -> Span | None:
        """Return the place of the FILTER or HAVING of a condition."""
        found = self._conditions.get(id(condition))
        return None if found is None else found[1]

    def moved(self, before: object, after: object) -> "SourceMap":
        """Return the places of `before` for a tree of the same shape."""
        pairs = list(zip(walk_nodes(before), walk_nodes(after), strict=True))
        noted = ((new, span) for old, new in pairs if (span := self.find_span(old)) is not None)
        return SourceMap(noted, self.sources, ((new, span) for old, new in pairs if (span := self.find_condition(old)) is not None))
