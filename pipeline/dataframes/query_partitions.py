"""This module shares out the queries over a DataFrame among engines.

Queries whose events can be dealt out by subject or object get several engines; the rest get one engine, which sees
all events.
"""

from collections.abc import Mapping

from engine.partitioning import NoKey, Part, keys_of
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.trees import walk_nodes
from pipeline.dataframes.asked import Share

_TOGETHER = (a.Values, a.Group, a.SubSelect, a.InWindow)
"""These nodes depend on when the streams begin, or on their time, which each engine of a frame has for itself.

Their queries are not dealt out.
"""


def shares(queries: Mapping[str, a.Query], policies: Mapping[str, str], *, background: bool, partitions: int) -> tuple[Share, ...]:
    """Put every query into one share.

    With background one share has all queries, for solutions of the background alone would come from each partition.
    """
    background = background or any(isinstance(query, a.BackgroundRule) for query in queries.values())
    derived = {into for query in queries.values() if (into := a.written_stream(query)) is not None}
    by_column: dict[str | None, list[str]] = {}
    for name, query in queries.items():
        alone = partitions == 1 or background or policies.get(name, UNRESTRICTED) != UNRESTRICTED or derived & {*query.streams}
        read = any(a.written_stream(query) in other.streams for other in queries.values())
        by_column.setdefault(None if alone or read else _column(query), []).append(name)
    found, first = [], 0
    for column, names in by_column.items():
        found.append(Share(tuple(names), column, first, 1 if column is None else partitions))
        first += found[-1].partitions
    return tuple(found)


def _column(query: a.Query) -> str | None:
    """Return the column in which every triple pattern has the key, `s` or `o`; None where there is no common one."""
    if any(isinstance(node, _TOGETHER) or node == a.Bgp(()) for node in walk_nodes(query.pattern)):
        return None
    try:
        return next((key.part.column for key in keys_of(query) if key.part is not Part.GRAPH), None)
    except NoKey:
        return None
