"""This module maps the nodes of a query's algebra to their places in its text: what planning doubts or refuses is named by its place."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from epsparql.errors import Span
from epsparql.trees import walk_nodes


def beginning(span: Span, keyword: str) -> Span:
    """Return the keyword that a stretch begins with."""
    return Span(span.start, span.start + len(keyword))


class SourceMap:
    """Keeps places by the identity of nodes, since equal ones may stand in several places. `sources` has those of FROM clauses by their name."""

    __slots__ = ("_noted", "sources")

    def __init__(self, noted: Iterable[tuple[object, Span]] = (), sources: Mapping[str, Span] = MappingProxyType({})) -> None:
        self.sources = dict(sources)
        self._noted = {id(node): (node, span) for node, span in noted}  # with the node, so that no other gets its identity

    def __reduce__(self) -> tuple[type["SourceMap"], tuple[tuple[tuple[object, Span], ...], dict[str, Span]]]:
        return SourceMap, (tuple(self._noted.values()), self.sources)  # a copy's nodes have other identities

    def note(self, node: object, span: Span) -> None:
        self._noted[id(node)] = node, span

    def find_span(self, node: object) -> Span | None:
        found = self._noted.get(id(node))
        return None if found is None else found[1]

    def moved(self, before: object, after: object) -> "SourceMap":
        """Return the places of `before` for a tree of the same shape."""
        pairs = zip(walk_nodes(before), walk_nodes(after), strict=True)
        return SourceMap(((new, span) for old, new in pairs if (span := self.find_span(old)) is not None), self.sources)
