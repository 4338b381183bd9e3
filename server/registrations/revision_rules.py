"""Decides which queries may be revised, and when the log needs an entry `Revise` (docs/decisions/0081-revision.md)."""

from http import HTTPStatus
from pathlib import Path

import epsparql
from engine.messages import REVISED
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.trees import walk_nodes
from pipeline.log.catalog import Catalogue
from pipeline.partition_count import recorded
from pipeline.registrations.query_cache import get_shape
from pipeline.registrations.stream_dependencies import find_sources, find_written
from server.http.problem_details import Fault, Problem
from server.registrations.catch_up_rules import conflict_fault

_INSTEAD = "emit certain, which gives each solution once nothing can change it"


def check_revised_text(name: str, text: str, policy: str) -> None:
    """Check that the solutions of a text can be revised. Raises: Fault 400."""
    query = epsparql.parse(text).query
    if isinstance(query, a.BackgroundRule):
        raise _text_fault(name, "a rule over the background, which reads no stream,")
    if isinstance(query, a.Ask):
        raise _text_fault(name, "ASK, which answers once,")
    if policy != UNRESTRICTED:
        raise _text_fault(name, f"the policy {policy}, which consumes what it used,")
    if any(isinstance(node, a.Modifiers) and (node.limit is not None or node.offset) for node in walk_nodes(query)):
        raise _text_fault(name, "LIMIT or OFFSET, which count what was given,")
    if any(isinstance(node, a.Once) for node in walk_nodes(query)):
        raise _text_fault(name, "ONCE PER, which goes by what was given,")


def _text_fault(name: str, what: str) -> Fault:
    return Fault(Problem(HTTPStatus.BAD_REQUEST, "not-revised", f"{what} cannot be emitted as revised", expected=_INSTEAD, query=name))


def check_revised_place(data: Path, name: str) -> None:
    """Check that the server can revise. Raises: Fault 409."""
    partitions = recorded(data) or 1
    if partitions > 1:
        detail = f"streams and queries are revised only with one partition, and this server has {partitions}: start it with --partitions 1"
        raise conflict_fault("several-buckets", detail, name)


def is_unrevised(catalogue: Catalogue) -> bool:
    """Return whether revised queries rest on something that has changed since the log's last entry `Revise`."""
    if not catalogue.unrevised:
        return False
    queries = list(catalogue.queries.values())
    written = find_written(get_shape(query.text) for query in queries)
    read = {name for query in queries if query.emit == REVISED for name in find_sources(get_shape(query.text).streams, written)}
    return not read.isdisjoint(catalogue.unrevised) or (bool(read) and "" in catalogue.unrevised)
