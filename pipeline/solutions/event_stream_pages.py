"""This module writes solutions as the pages of a Linked Data Event Stream, of which each solution is a member: a
named graph with its time.

```
root ──relation──> page 0 ──relation──> page 1 ──relation──> page 2, the last one
                   full: immutable      full: immutable      grows
```
Source: https://w3id.org/ldes/specification and https://w3id.org/ldes/server-primer.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import pyoxigraph as ox

from epsparql.deferred_methods import dataclass
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.rdf.rdf import ENDS_AT, GENERATED_AT, STARTS_AT
from pipeline.solutions.formats import LD_JSON, N_QUADS, TRIG, triples_of
from pipeline.solutions.solution_log import StoredSolution

PAGE = 250
"""A page has this many solutions. It must never change, for pages are immutable and positions of clients name them."""
MEDIA_TYPES = {TRIG: ox.RdfFormat.TRIG, N_QUADS: ox.RdfFormat.N_QUADS, LD_JSON: ox.RdfFormat.JSON_LD}
_LDES, _TREE = "https://w3id.org/ldes#", "https://w3id.org/tree#"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_DATE_TIME, _BOOLEAN = (ox.NamedNode(f"http://www.w3.org/2001/XMLSchema#{name}") for name in ("dateTime", "boolean"))
_MEMBER, _VIEW, _RELATION, _NODE, _PATH, _VALUE, _AFTER = (
    ox.NamedNode(_TREE + name) for name in ("member", "view", "relation", "node", "path", "value", "GreaterThanOrEqualToRelation")
)
_EVENT_STREAM, _TIMESTAMP_PATH, _IMMUTABLE = (ox.NamedNode(_LDES + name) for name in ("EventStream", "timestampPath", "immutable"))
_GENERATED = ox.NamedNode(GENERATED_AT)


@dataclass(frozen=True, slots=True)
class EventStreamAddresses:
    """Gives the addresses of the event stream of one registration of a query. Clients begin at `root`."""

    root: str
    registered: int

    @property
    def stream(self) -> ox.NamedNode:
        """Return the name of the stream. A query that is registered again has another one."""
        return ox.NamedNode(f"{self.root}?registered={self.registered}#stream")

    def page(self, number: int) -> ox.NamedNode:
        return ox.NamedNode(f"{self.root}?registered={self.registered}&page={number}")


def write_root(addresses: EventStreamAddresses, first: int, media_type: str) -> bytes:
    """Write the root, which describes the stream and leads to the page `first`, the first one that is kept whole."""
    stream, root, relation = addresses.stream, ox.NamedNode(addresses.root), ox.BlankNode()
    found = [
        ox.Quad(stream, _TYPE, _EVENT_STREAM),
        ox.Quad(stream, _VIEW, root),
        ox.Quad(stream, _TIMESTAMP_PATH, _GENERATED),
        ox.Quad(root, _RELATION, relation),
        ox.Quad(relation, _TYPE, ox.NamedNode(f"{_TREE}Relation")),
        ox.Quad(relation, _NODE, addresses.page(first)),
    ]
    return _serialize(found, media_type)


def write_event_page(addresses: EventStreamAddresses, page: int, solutions: Sequence[StoredSolution], media_type: str) -> bytes:
    """Write a page.

    If it is full, it is immutable and leads to the next one. A description without triples is no member.
    """
    stream, node = addresses.stream, addresses.page(page)
    found = [ox.Quad(stream, _TYPE, _EVENT_STREAM), ox.Quad(stream, _VIEW, node), ox.Quad(stream, _TIMESTAMP_PATH, _GENERATED)]
    if len(solutions) == PAGE:
        relation = ox.BlankNode()
        found += [
            ox.Quad(node, _IMMUTABLE, ox.Literal("true", datatype=_BOOLEAN)),
            ox.Quad(node, _RELATION, relation),
            ox.Quad(relation, _TYPE, _AFTER),
            ox.Quad(relation, _NODE, addresses.page(page + 1)),
            ox.Quad(relation, _PATH, _GENERATED),
            ox.Quad(relation, _VALUE, _time_literal(solutions[-1].end)),
        ]
    for solution in solutions:
        found += _describe_member(stream, solution)
    return _serialize(found, media_type)


def _describe_member(stream: ox.NamedNode, solution: StoredSolution) -> Iterator[ox.Quad]:
    """Yield a member: its triples in the graph that it names, and its time.

    One that is no instant also has its start and end.
    """
    triples = triples_of(solution)
    if not triples:
        return
    member = ox.NamedNode(f"urn:epsparql:{quote(solution.query, safe='')}:{solution.registered}-{solution.id}")
    yield ox.Quad(stream, _MEMBER, member)
    yield ox.Quad(member, _GENERATED, _time_literal(solution.end))
    if solution.start != solution.end:
        yield ox.Quad(member, ox.NamedNode(STARTS_AT), _time_literal(solution.start))
        yield ox.Quad(member, ox.NamedNode(ENDS_AT), _time_literal(solution.end))
    for triple in triples:
        yield ox.Quad(triple.subject, triple.predicate, triple.object, member)


def _time_literal(micros: int) -> ox.Literal:
    return ox.Literal(iso(micros), datatype=_DATE_TIME)


def _serialize(found: Sequence[ox.Quad], media_type: str) -> bytes:
    prefixes = {"ldes": _LDES, "tree": _TREE, "prov": "http://www.w3.org/ns/prov#", "xsd": "http://www.w3.org/2001/XMLSchema#"}
    written = ox.serialize(found, format=MEDIA_TYPES[media_type], prefixes=prefixes if media_type == TRIG else None)
    assert written is not None
    return written
