"""Reads one page of a Linked Data Event Stream: its members with their triples and times, and the page that it leads
to.

Source: https://w3id.org/ldes/specification and https://w3id.org/tree/specification.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from connectors.errors import SystemFault
from epsparql.deferred_methods import dataclass
from epsparql.isolation.isolated_parser import BeyondLimits, parse_isolated

MOST_QUADS = 1_000_000
"""A page has at most this many statements."""
MOST_WRITTEN = 128 << 20
"""A page has at most this many bytes, once its prefixes, contexts and entities are written out in each statement."""
_TREE, _LDES, _TIME = "https://w3id.org/tree#", "https://w3id.org/ldes#", "http://streamreasoning.org/timeVocab#"
_GENERATED, _STARTS, _ENDS = "http://www.w3.org/ns/prov#generatedAtTime", f"{_TIME}startsAtTime", f"{_TIME}endsAtTime"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@dataclass(frozen=True, slots=True)
class PageMember:
    """Holds a member: its name, and its triples as N-Quads of a graph of that name, with the times of that graph."""

    name: str
    text: bytes


@dataclass(frozen=True, slots=True)
class EventPage:
    """Holds what a page says: the property that times members, the members in order of time, and the address of the
    page after it.
    """

    timestamp: str | None
    members: tuple[PageMember, ...]
    following: str | None


def parse_page(text: bytes, media_type: str, address: str, timestamp: str | None) -> EventPage:
    """Parse a page, whose members have their time by `timestamp` where the page names no other property.

    Raises: SystemFault.
    """
    import pyoxigraph as ox

    form = ox.RdfFormat.from_media_type(media_type)
    if form is None:
        raise SystemFault(f"{address} answers with {media_type or 'no media type'}, which is no RDF")
    try:
        quads = list(islice(parse_isolated(text, form.media_type, address, most=MOST_WRITTEN, rename_blank_nodes=True), MOST_QUADS + 1))
    except SyntaxError as fault:
        raise SystemFault(f"{address} cannot be read as {media_type}: {fault}") from None
    except BeyondLimits:
        reason = f"takes too much memory or time, or more than {MOST_WRITTEN} bytes when it is written out"
        raise SystemFault(f"{address} {reason}; ask its publisher for smaller pages") from None
    if len(quads) > MOST_QUADS:
        raise SystemFault(f"{address} has more than {MOST_QUADS} statements; ask its publisher for smaller pages")
    statements = _Statements(quads)
    timestamp = statements.find_path() or timestamp
    nodes = (quad.object for quad in quads if quad.predicate.value == f"{_TREE}member")
    names = list(dict.fromkeys(node for node in nodes if isinstance(node, ox.NamedNode | ox.BlankNode)))
    times = {name: statements.read_times(name, timestamp) for name in names}
    names.sort(key=lambda name: times[name].get(_GENERATED) or times[name].get(_ENDS) or "")  # stable, so the page's order decides ties
    members = tuple(PageMember(name.value, statements.write_member(name, times[name])) for name in names)
    return EventPage(timestamp, members, statements.find_following(address))


class _Statements:
    """Looks up the statements of a page by subject and by graph."""

    def __init__(self, quads: Sequence[Any]) -> None:
        import pyoxigraph as ox

        self._by_subject: dict[Any, list[Any]] = defaultdict(list)
        self._by_graph: dict[Any, list[Any]] = defaultdict(list)
        for quad in quads:
            if isinstance(quad.graph_name, ox.DefaultGraph):
                self._by_subject[quad.subject].append(quad)
            else:
                self._by_graph[quad.graph_name].append(quad)

    def _values(self, subject: Any, predicate: str) -> Iterator[Any]:
        """Yield the values of a property that have a text, which a triple term has not."""
        return (quad.object for quad in self._by_subject.get(subject, ()) if quad.predicate.value == predicate and hasattr(quad.object, "value"))

    def find_path(self) -> str | None:
        """Return the property by which members have their time, if the page names one.

        Paths of several steps are not followed.
        """
        import pyoxigraph as ox

        found = (path for subject in self._by_subject for path in self._values(subject, f"{_LDES}timestampPath"))
        return next((path.value for path in found if isinstance(path, ox.NamedNode)), None)

    def find_following(self, address: str) -> str | None:
        """Return the page that this one leads to.

        Relations to what is earlier are left out. Raises: SystemFault for several pages.
        """
        found = set()
        for subject in list(self._by_subject):
            for relation in self._values(subject, f"{_TREE}relation"):
                kinds = {kind.value for kind in self._values(relation, _TYPE)}
                if not any(kind.startswith(f"{_TREE}LessThan") for kind in kinds):
                    found |= {node.value for node in self._values(relation, f"{_TREE}node")} - {address}
        if len(found) > 1:
            raise SystemFault(f"{address} leads to {len(found)} pages; only event streams whose pages are a chain are followed")
        return next(iter(found), None)

    def read_times(self, name: Any, timestamp: str | None) -> Mapping[str, str]:
        """Return the texts of a member's times: the instant, or start and end, or neither."""
        starts, ends = (next((value.value for value in self._values(name, time)), None) for time in (_STARTS, _ENDS))
        if starts is not None and ends is not None:
            return {_STARTS: starts, _ENDS: ends}
        said = (quad.object for quad in self._describe(name) if quad.subject == name and quad.predicate.value == timestamp)
        at = next((value.value for value in said if hasattr(value, "value")), None)
        return {} if at is None else {_GENERATED: at}

    def _describe(self, name: Any) -> Iterator[Any]:
        """Yield the statements of a member: those of its graph and, of the default graph, those about it and its
        blank nodes.
        """
        import pyoxigraph as ox

        yield from self._by_graph.get(name, ())
        waiting, seen = [name], {name}
        while waiting:
            for quad in self._by_subject.get(waiting.pop(), ()):
                yield quad
                if isinstance(quad.object, ox.BlankNode) and quad.object not in seen:
                    seen.add(quad.object)
                    waiting.append(quad.object)

    def write_member(self, name: Any, times: Mapping[str, str]) -> bytes:
        """Return a member as N-Quads.

        If it has a graph of its own, that is the member, and else what the page says about it.
        """
        import pyoxigraph as ox

        found = [ox.Quad(quad.subject, quad.predicate, quad.object, name) for quad in self._by_graph.get(name) or self._describe(name)]
        if not found:
            return b""
        date_time = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
        found += [ox.Quad(name, ox.NamedNode(time), ox.Literal(value, datatype=date_time)) for time, value in times.items()]
        written: bytes = ox.serialize(found, format=ox.RdfFormat.N_QUADS)  # type: ignore[assignment]  # it is written to no file
        return written.rstrip(b"\n")
