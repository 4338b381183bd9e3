"""DESCRIBE gives concise bounded descriptions (semantics.md section 7).

Source: P. Stickler, CBD - Concise Bounded Description, W3C Member Submission, 2005.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from epsparql.terms import RDF, Iri, Term

Ints = NDArray[np.int64]
Triple = tuple[Term, Term, Term]

_PARTS = (Iri(RDF + "subject"), Iri(RDF + "predicate"), Iri(RDF + "object"))


class _Rows:
    """Holds rows by the number in one column."""

    def __init__(self, rows: Ints, column: int) -> None:
        self._rows = rows[np.argsort(rows[:, column], kind="stable")]
        self._keys = np.ascontiguousarray(self._rows[:, column])

    def find(self, key: int) -> Ints:
        first, after = np.searchsorted(self._keys, [key, key + 1])
        return self._rows[first:after]


class Descriptions:
    """Finds statements by what they are about, and by what they are reified by. Terms are numbers of a table."""

    def __init__(self, facts: Ints, terms: TermTable) -> None:
        """Index facts (n x subject, predicate, object), no two of which are equal."""
        self._terms = terms
        self._about = _Rows(facts, 0)
        parts = [facts[facts[:, 1] == terms.intern(str(part))] for part in _PARTS]
        self._reified = _Rows(parts[0], 2) if all(map(len, parts)) else None  # the statements about reifications, by the subject of what is reified
        self._others = [_Rows(part, 0) for part in parts[1:]]

    def describe_numbers(self, targets: Iterable[int]) -> Ints:
        """Return all statements about the terms, about the blank nodes these lead to, and about the reifications of
        all of these.
        """
        pending = list(dict.fromkeys(targets))
        described, found = set(pending), list[Ints]()
        while pending:
            statements = self._about.find(pending.pop())
            found.append(statements)
            for statement in statements.tolist():
                following = [*self._find_reifications(*statement), *([statement[2]] if self._is_blank(statement[2]) else [])]
                pending += (term for term in dict.fromkeys(following) if term not in described)
                described.update(following)
        return np.concatenate([np.zeros((0, 3), np.int64), *found])

    def _is_blank(self, number: int) -> bool:
        return self._terms.text(number).startswith("_:")

    def _find_reifications(self, subject: int, predicate: int, object_: int) -> list[int]:
        if self._reified is None:
            return []
        nodes = self._reified.find(subject)[:, 0].tolist()
        wanted = list(zip(self._others, (predicate, object_), strict=True))
        return [node for node in nodes if all((rows.find(node)[:, 2] == part).any() for rows, part in wanted)]

    def describe_terms(self, terms: Iterable[Term]) -> list[str]:
        """Return the statements of `describe_numbers` in N-Triples, sorted by the texts of their terms."""
        rows = self.describe_numbers([self._terms.intern(str(term)) for term in terms])
        return [f"{s} {p} {o} ." for s, p, o in sorted(tuple(map(self._terms.text, row)) for row in rows.tolist())]
