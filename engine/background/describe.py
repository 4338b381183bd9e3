"""DESCRIBE gives concise bounded descriptions (semantics.md section 7).

Source: P. Stickler, CBD - Concise Bounded Description, W3C Member Submission, 2005.
"""

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state.layout import BLANK_KIND
from epsparql.terms import RDF, Iri, Term

Ints = NDArray[np.int64]

_PARTS = (Iri(RDF + "subject"), Iri(RDF + "predicate"), Iri(RDF + "object"))


Find = Callable[[int, Ints], Ints]
"""The function returns all statements (s, p, o) that have one of the terms, which are sorted, in a part (0, 1 or 2)."""


class Descriptions:
    """Finds statements by what they are about, and by what they are reified by. Terms are numbers of a table."""

    def __init__(self, find: Find, terms: TermTable) -> None:
        self._find, self._terms = find, terms

    def describe_numbers(self, targets: Iterable[int]) -> Ints:
        """Return all statements about the terms, about the blank nodes these lead to, and about the reifications of
        all of these.
        """
        pending = np.unique(np.array(list(targets), np.int64))
        described, found = set(pending.tolist()), [np.zeros((0, 3), np.int64)]
        while len(pending):
            statements = self._find(0, pending)
            found.append(statements)
            blank = statements[abs(self._terms.kinds[statements[:, 2]]) == BLANK_KIND, 2]
            following = {*blank.tolist(), *self._find_reifications(statements)} - described
            described |= following
            pending = np.array(sorted(following), np.int64)
        return np.concatenate(found)

    def _find_reifications(self, statements: Ints) -> list[int]:
        """Return the nodes that reify one of these statements."""
        if not self._has_reifications:
            return []
        stated = self._find(2, np.unique(statements[:, 0]))
        nodes = np.unique(stated[stated[:, 1] == self._reifying[0]][:, 0])
        if not len(nodes):
            return []
        said = self._find(0, nodes)
        subjects, predicates, objects = (_group(said[said[:, 1] == part][:, [0, 2]]) for part in self._reifying)
        about = _group(statements)

        def reifies(node: int) -> bool:
            return any((p,) in predicates.get(node, ()) and (o,) in objects.get(node, ()) for (s,) in subjects[node] for p, o in about.get(s, ()))

        return [node for node in nodes.tolist() if reifies(node)]

    @cached_property
    def _reifying(self) -> list[int]:
        return [self._terms.intern(str(part)) for part in _PARTS]

    @cached_property
    def _has_reifications(self) -> bool:
        return len(self._find(1, np.array(self._reifying[:1], np.int64))) > 0

    def describe_terms(self, terms: Iterable[Term]) -> list[str]:
        """Return the statements of `describe_numbers` in N-Triples, sorted by the texts of their terms."""
        rows = self.describe_numbers([self._terms.intern(str(term)) for term in terms])
        return [f"{s} {p} {o} ." for s, p, o in sorted(tuple(map(self._terms.text, row)) for row in rows.tolist())]


def _group(rows: Ints) -> dict[int, set[tuple[int, ...]]]:
    """Return the further columns of rows by their first one."""
    found: dict[int, set[tuple[int, ...]]] = {}
    for key, *rest in rows.tolist():
        found.setdefault(key, set()).add(tuple(rest))
    return found
