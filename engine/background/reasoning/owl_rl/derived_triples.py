"""Conclusions of OWL's rules are kept, with their rows and those of what is given together."""

from collections.abc import Iterable, Iterator, Set

import numpy as np
from numpy.typing import NDArray

from engine.background.reasoning.owl_rl.triple_index import Fact
from engine.background.reasoning.rdfs_entailment import of_several
from engine.errors import EntailmentLimit
from engine.triples.relation import EMPTY, FEW, without

Ints = NDArray[np.int64]
Given = dict[int, Ints]
Pair = tuple[int, int]
MOST = 1_000_000
"""OWL may entail so many triples: beyond, there is a clique of equals or a chain that is closed, and the triples grow
with its square.
"""


class Conclusions:
    """Holds all that rules conclude, be it given or not.

    `base` is what is given, in its graphs, and what is concluded beside it, in none.
    """

    def __init__(self) -> None:
        self.base: Given = {}
        self._pairs: dict[int, dict[Pair, None]] = {}  # subject and object by predicate
        self._n = 0
        self._touched: dict[int, set[Pair]] = {}

    def __contains__(self, fact: Fact) -> bool:
        s, p, o = fact
        return (s, o) in self._pairs.get(p, ())

    @property
    def predicates(self) -> Set[int]:
        return self._pairs.keys()

    def list_conclusions(self, p: int, nodes: Set[int] | None = None) -> Iterator[Fact]:
        """Yield conclusions of a predicate with any of these nodes as a subject or object; None stands for all."""
        pairs = self._pairs.get(p, {}) if nodes is None or nodes else {}
        return ((s, p, o) for s, o in pairs if nodes is None or s in nodes or o in nodes)

    def add(self, fact: Fact, predicate: str) -> None:
        """Take in a triple that is not there yet.

        Raises: EntailmentLimit, which names `predicate`.
        """
        s, p, o = fact
        self._n += 1
        if self._n > MOST:
            raise EntailmentLimit(f"OWL 2 RL entails more than {MOST:,} triples beyond RDFS; the last one is of the predicate {predicate}")
        self._pairs.setdefault(p, {})[s, o] = None
        self._touched.setdefault(p, set()).add((s, o))

    def remove_triple(self, fact: Fact) -> None:
        s, p, o = fact
        del self._pairs[p][s, o]
        if not self._pairs[p]:
            del self._pairs[p]
        self._n -= 1
        self._touched.setdefault(p, set()).add((s, o))

    def show(self, given: Given, removed: Given, added: Given) -> None:
        """Bring `base` up to date with what is given now and its changes; an array of which nothing has changed stays."""
        for p in {*removed, *added, *self._touched}:
            pairs = self._touched.get(p, set()).union((s, o) for part in (removed, added) for s, o in part.get(p, EMPTY)[: FEW + 1, :2].tolist())
            concluded, kept, stated = self._pairs.get(p, {}), EMPTY, given.get(p, EMPTY)
            if len(pairs) <= FEW:
                kept = self.base.get(p, EMPTY)
                kept, stated = kept[~_among(kept, pairs)], stated[_among(stated, pairs)]
                concluded = {pair: None for pair in pairs if pair in concluded}
            only = without(np.array([*concluded], np.int64).reshape(-1, 2), stated[:, :2])
            rows = of_several([kept, stated, np.column_stack([only, np.zeros(len(only), np.int64)])])
            if len(rows):
                self.base[p] = rows
            else:
                self.base.pop(p, None)
        self._touched = {}


def _among(rows: Ints, pairs: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    """Return which rows are of a few pairs."""
    found = np.zeros(len(rows), np.bool_)
    for s, o in pairs:
        found |= (rows[:, 0] == s) & (rows[:, 1] == o)
    return found
