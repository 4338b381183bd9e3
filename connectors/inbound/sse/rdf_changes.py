"""Writes the events of a change of a graph, which has the form of Wikidata's mutation stream.

    {"dt": T, "entity_id": "Q1", "rev_id": 7, "operation": "diff",    ──▶  <Q1> :operation "diff" ; :revision 7   at T
     "rdf_added_data":   {"mime_type": …, "data": "s p o ."},         ──▶  s p o  in the graph :added             at T
     "rdf_deleted_data": {"mime_type": …, "data": "s p o ."}, …}      ──▶  s p o  in the graph :deleted           at T

A deletion is an event of its own, and takes nothing back. A change that was split (`sequence_length`) has one time in
all its messages, so each message is written alone. Source:
https://wikitech.wikimedia.org/wiki/Wikidata_Query_Service/Streaming_Updater/Public_Update_Stream
"""

import json
from collections.abc import Iterator
from typing import Any

from epsparql.events.media_types import N_TRIPLES, TURTLE

NAMESPACE = "urn:epsparql:change:"
GRAPHS = {
    "rdf_added_data": "added",
    "rdf_deleted_data": "deleted",
    "rdf_linked_shared_data": "linked",
    "rdf_unlinked_shared_data": "unlinked",
}
"""The graph of each member's triples, below NAMESPACE."""


def write_events(text: bytes) -> bytes:
    """Return the events of a message as lines of ndjson, whose triples the server parses. Raises: ValueError."""
    try:
        return b"\n".join(_write_lines(json.loads(text)))
    except (KeyError, TypeError, AttributeError) as fault:
        raise ValueError(f"a member is missing, or is of another type: {fault}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _write_lines(change: dict[str, Any]) -> Iterator[bytes]:
    """Yield the change itself, in its first message, and then the triples of each member."""
    time = change["dt"]
    if change["sequence"] == 0:
        entity = f"<http://{change['meta']['domain']}/entity/{change['entity_id']}>"
        yield _write_line(s=entity, p=f"<{NAMESPACE}operation>", o=json.dumps(change["operation"]), at=time)
        yield _write_line(s=entity, p=f"<{NAMESPACE}revision>", o=int(change["rev_id"]), at=time)
    for member, graph in GRAPHS.items():
        if chunk := change.get(member):
            media_type = chunk["mime_type"].partition(";")[0].strip()
            if media_type not in (TURTLE, N_TRIPLES):
                raise ValueError(f"{member} is in {media_type}; expected {TURTLE} or {N_TRIPLES}")
            yield _write_line(triples=chunk["data"], g=f"<{NAMESPACE}{graph}>", at=time)


def _write_line(**members: object) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
