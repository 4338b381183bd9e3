"""The walks of a path are followed over the background from some nodes, all nodes of a step at once."""

from dataclasses import field
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import OBJECT, SUBJECT, FactIndex
from engine.triples.row_index import is_among
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Iri, Variable
from epsparql.trees import walk_nodes

Ints = NDArray[np.int64]
MOST_ROWS, MOST_ROUNDS = 1 << 17, 256
"""A walk gives up after so many rows, or so many steps of one closure."""


class WalkTooLong(Exception):
    """Signals a path that leads too far, or whose steps may have any predicate."""


def walk_path(known: FactIndex, path: a.Path, start: Ints, *, back: bool) -> tuple[Ints, dict[Iri, Ints]]:
    """Return the nodes that a path reaches from sorted nodes (`back`: that reach them), and the rows of each link on
    the way.

    Raises: WalkTooLong.
    """
    walk = _Walk(known, path.place)
    reached = walk.follow_path(path.path, start, back=back)
    return reached, {link: np.concatenate(walk.rows[link]) for link in list_links(path.path)}


def list_links(path: a.PropertyPath) -> list[Iri]:
    """Return the predicates of a path's links, each once."""
    return list(dict.fromkeys(node.predicate for node in walk_nodes(path) if isinstance(node, a.Link)))


@dataclass(slots=True)
class _Walk:
    known: FactIndex
    place: a.Place
    rows: dict[Iri, list[Ints]] = field(default_factory=dict)
    left: int = MOST_ROWS

    def follow_path(self, path: a.PropertyPath, nodes: Ints, *, back: bool) -> Ints:
        match path:
            case a.Link(predicate):
                return self._take_step(predicate, nodes, back=back)
            case a.Inverse(inner):
                return self.follow_path(inner, nodes, back=not back)
            case a.Sequence(left, right):
                first, last = (right, left) if back else (left, right)
                return self.follow_path(last, self.follow_path(first, nodes, back=back), back=back)
            case a.Alternative(left, right):
                return np.union1d(self.follow_path(left, nodes, back=back), self.follow_path(right, nodes, back=back))
            case a.ZeroOrOne(inner):
                return np.union1d(nodes, self.follow_path(inner, nodes, back=back))
            case a.OneOrMore(inner):
                return self._close(inner, nodes, back=back)
            case a.ZeroOrMore(inner):
                return np.union1d(nodes, self._close(inner, nodes, back=back))
            case a.Negated():
                raise WalkTooLong
            case _:
                assert_never(path)

    def _take_step(self, predicate: Iri, nodes: Ints, *, back: bool) -> Ints:
        here, there = (OBJECT, SUBJECT) if back else (SUBJECT, OBJECT)
        pattern, wanted = a.TriplePattern(Variable("s"), predicate, Variable("o")), {here: nodes}
        self.left -= self.known.count_rows(pattern, wanted)
        if self.left < 0:
            raise WalkTooLong
        rows = self.known.select_rows(pattern, self.place, wanted)
        self.rows.setdefault(predicate, []).append(rows)
        return np.unique(rows[:, there])

    def _close(self, inner: a.PropertyPath, nodes: Ints, *, back: bool) -> Ints:
        reached = new = self.follow_path(inner, nodes, back=back)
        for _ in range(MOST_ROUNDS):
            if not len(new):
                return reached
            found = self.follow_path(inner, new, back=back)
            new = found[~is_among(found, reached)]
            reached = np.union1d(reached, new)
        raise WalkTooLong
