"""A hierarchy knows classes or properties with those above and below them."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import ref

Node = TypeVar("Node", bound=Hashable)
Closed = dict[Node, tuple[Node, ...]]
Links = Iterable[tuple[Node, Node]]
EMPTY: tuple[Any, ...] = ()
_REMEMBERED = 1 << 16


class Hierarchy(Mapping[Node, tuple[Node, ...]]):
    """Maps each node with something above it to all that stands above it.

    These nodes are found by walking what is stated, so a long chain costs no more room than its links. A node of a
    cycle stands above itself. The reflexive links lead nowhere and are left out.
    """

    def __init__(self, links: Links[Node] = ()) -> None:
        up = [link for link in links if link[0] != link[1]]
        self._above, self._below = linked(up), linked((below, above) for above, below in up)
        self._found: Closed[Node] = {}
        self._origin: tuple[ref[Hierarchy[Node]], set[Node]] | None = None  # what it was changed from, and the nodes that are linked otherwise

    def __contains__(self, node: object) -> bool:
        return node in self._above

    def __iter__(self) -> Iterator[Node]:
        return iter(self._above)

    def __len__(self) -> int:
        return len(self._above)

    def __getitem__(self, node: Node) -> tuple[Node, ...]:
        if node not in self._above:
            raise KeyError(node)
        found: tuple[Node, ...] = self.get(node)
        return found

    def get(self, node: Node, default: Any = EMPTY) -> Any:
        """Return all nodes above a node, in one order on every run."""
        found = self._found.get(node)
        if found is None:
            if node not in self._above:
                return default
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            found = self._found[node] = sort_nodes(reach_nodes([node], self._above))
        return found

    @property
    def links(self) -> Iterator[tuple[Node, Node]]:
        """Return the links that are stated, without the reflexive ones."""
        return ((node, above) for node, found in self._above.items() for above in found)

    def all_below(self, nodes: Iterable[Node]) -> set[Node]:
        """Return all nodes below any of these."""
        return reach_nodes(nodes, self._below)

    def with_links(self, added: Links[Node], removed: Links[Node]) -> "Hierarchy[Node]":
        """Return the hierarchy with other links; what is not changed is shared."""
        more, fewer = ([link for link in links if link[0] != link[1]] for links in (added, removed))
        if not more and not fewer:
            return self
        found = Hierarchy[Node]()
        found._above = relinked(self._above, more, fewer)
        found._below = relinked(self._below, _turned(more), _turned(fewer))
        found._origin = ref(self), {node for node, _ in (*more, *fewer)}
        return found

    def differing(self, other: "Hierarchy[Node]") -> set[Node]:
        """Return the nodes above which something else may stand in the other hierarchy."""
        if self is other:
            return set()
        origin = other._origin
        starts = origin[1] if origin is not None and origin[0]() is self else differing(self._above, other._above)
        return {*starts, *self.all_below(starts), *other.all_below(starts)}


def linked(links: Links[Node]) -> Closed[Node]:
    """Return what each node is linked to, each once."""
    found: dict[Node, dict[Node, None]] = {}
    for node, other in links:
        found.setdefault(node, {})[other] = None
    return {node: tuple(others) for node, others in found.items()}


def relinked(links: Closed[Node], added: Links[Node], removed: Links[Node]) -> Closed[Node]:
    """Return a copy with other links."""
    found = links.copy()
    for node, others in _together(removed).items():
        kept = tuple(other for other in found.get(node, ()) if other not in others)
        if kept:
            found[node] = kept
        else:
            found.pop(node, None)
    for node, others in _together(added).items():
        found[node] = tuple(dict.fromkeys((*found.get(node, ()), *others)))
    return found


def _together(links: Links[Node]) -> dict[Node, set[Node]]:
    found: dict[Node, set[Node]] = {}
    for node, other in links:
        found.setdefault(node, set()).add(other)
    return found


def _turned(links: Links[Node]) -> list[tuple[Node, Node]]:
    return [(other, node) for node, other in links]


def differing(links: Mapping[Node, tuple[Node, ...]], others: Mapping[Node, tuple[Node, ...]]) -> list[Node]:
    """Return the nodes that are linked otherwise; copies share their tuples, which makes this quick."""
    if links is others:
        return []
    found = [node for node, linked_to in links.items() if (there := others.get(node)) is not linked_to and set(there or ()) != set(linked_to)]
    if len(others) > len(links) - len(found):
        found += [node for node in others if node not in links]
    return found


def reach_nodes(nodes: Iterable[Node], links: Closed[Node]) -> set[Node]:
    """Return the nodes that links lead to."""
    found: set[Node] = set()
    pending = [*nodes]
    while pending:
        following = [other for other in links.get(pending.pop(), ()) if other not in found]
        found.update(following)
        pending += following
    return found


def sort_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes in one order on every run, which hashes of strings do not give."""
    return tuple(sorted(nodes, key=str))
