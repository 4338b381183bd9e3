"""This module finds how late a query may begin to read a log. From the log's end on, it must find what it would find
after reading all.

That is as far back as the query reaches. Only the end of the log is read, and more of it as long as that does not
suffice.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from engine.background.changes import read_static_rule
from engine.background.fact_store import FactIndex
from engine.messages import Micros, Register
from engine.runtime.event_scheduler import find_reached
from engine.runtime.query_registry import Registry
from epsparql import algebra as a
from epsparql import parse
from epsparql.deferred_methods import dataclass
from pipeline.log import LogReader
from pipeline.log.segments import oldest
from pipeline.slices.outline import LogOutline
from pipeline.slices.plan import SlicedQuery, SlicePlanner

FIRST_ENTRIES, MOST_ENTRIES = 1 << 10, 1 << 16
"""So many entries at the log's end are read first. Each time that they do not suffice, four times as many are read,
but no more than these: a look at an entry takes longer than an event does in an engine."""


@dataclass(frozen=True, slots=True)
class LateBeginning:
    """Says from which entry on a query reads; `marks` has each stream's watermark and latest end before it, and
    whether it was fed.
    """

    begins: int
    marks: tuple[tuple[str, Micros, Micros, bool], ...]


def find_late_beginning(
    data: Path, queries: Sequence[Register], known: FactIndex, fed: Collection[str], span: tuple[int, int]
) -> LateBeginning | None:  # fmt: skip
    """Return how late the last of some queries, of which the others are rules, may begin to read the entries [first,
    until) of `span`.

    `known` is the background at the end, and `fed` are the streams that have a time there. None stands for no better
    place than the log's first entry, or none near the end. Raises: Gone, Corrupt, QueryError.
    """
    first, until = span
    begin, count = oldest(data / "log"), FIRST_ENTRIES
    query, written = _look_at(queries, known)
    while True:
        since = max(until - count, begin)
        outline = LogOutline(data, (since, until), query.rests_on, {}, ())
        found = SlicePlanner(outline, [query], written, since, until).find_settled_begin(until)
        place = first if found is None else max(found, first)
        if max([*outline.breaks, *_dropped_rules(data, outline, since)], default=-1) >= max(place, since):
            return None  # the background at the end is not that of the place
        courses = outline.courses_at(place) if place > since else {}
        if since == 0 or (query.rests_on.intersection(fed) <= courses.keys() and not outline.reads_rows and place > since):
            return LateBeginning(place, tuple((name, each.time.watermark, each.time.latest, each.time.fed) for name, each in courses.items()))
        if since == begin or count >= MOST_ENTRIES:
            return None
        count *= 4


def _dropped_rules(data: Path, outline: LogOutline, since: int) -> Iterator[int]:
    """Yield the offsets at which static rules went that were registered before a position."""
    with closing(LogReader(data)) as reader:
        for drop in outline.drops:
            if drop.registered < since:
                entry = reader.entry(drop.registered) if drop.registered >= oldest(data / "log") else None
                if not isinstance(entry, Register) or read_static_rule(entry) is not None:
                    yield drop.offset


def _look_at(queries: Sequence[Register], known: FactIndex) -> tuple[SlicedQuery, set[str]]:
    """Return the last of some queries, and the streams that the others write."""
    registry = Registry(terms=known.terms)
    registry.known = known
    reach = registry.find_reaches(queries)[-1]
    *others, query = (parse(entry.text).query for entry in queries)
    rules = [rule for other in others for rule in a.writing_rules(other)]
    return SlicedQuery(frozenset(query.streams), frozenset(find_reached(query.streams, rules)), reach), {rule.into for rule in rules}
