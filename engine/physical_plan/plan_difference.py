"""This module compares two plans of one query, over two backgrounds."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.physical_plan.plan import Fact, Fragment, PathJoin
from engine.triples.hash_index import Lookup
from engine.triples.relation import addition, without
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Difference:
    """Holds the difference of two plans of a query over two backgrounds: rows that they take in, and what they look
    up, by node of the join.

    `deepened` are the joins with paths that copied the background before and look it up now.
    """

    added: list[Fact]
    removed: list[Fact]
    more: dict[int, Ints]
    fewer: dict[int, Ints]
    deepened: list[PathJoin]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.more or self.fewer)

    @property
    def loses(self) -> bool:
        return bool(self.removed or self.fewer)

    @property
    def nodes(self) -> list[int]:
        return [fact.node for fact in (*self.added, *self.removed)] + [*self.more, *self.fewer]


def compare_plans(before: Fragment, now: Fragment) -> Difference:
    """Return what differs between two plans over two backgrounds.

    The same plan has the same places for rows, in the same order.
    """
    deepened = [path for was, path in zip(before.paths, now.paths, strict=True) if path.deep and not was.deep]
    found = Difference([], [], {}, {}, deepened)
    for old, new in zip(before.facts, now.facts, strict=True):
        if old.source is None or old.source is not new.source:
            if len(rows := without(new.rows, old.rows)):
                found.added.append(replace(new, rows=rows))
            if len(rows := without(old.rows, new.rows)):
                found.removed.append(replace(old, rows=rows))
    for node in now.lookups:
        one, other = before.lookups[node], now.lookups[node]
        if (one is None) != (other is None) or (one is not None and other is not None and one.source is not other.source):
            for here, there, where in ((other, one, found.more), (one, other, found.fewer)):
                if here is not None and len(rows := _beyond(here, there)):
                    where[node] = rows
    return found


def _beyond(here: Lookup, there: Lookup | None) -> Ints:
    """Return the rows that one lookup has and another has not."""
    if there is None:
        return here.rows
    if addition(here.source, there.source) is not None:
        return here.source[:0, here.parts]
    more = addition(there.source, here.source)
    return without(here.rows, there.rows) if more is None else more[:, here.parts]
