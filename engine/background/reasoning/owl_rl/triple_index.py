"""Triples that rules of OWL may be about are found by any of their parts, and joined."""

from collections.abc import Iterator, KeysView, Sequence

from engine.background.reasoning.owl_rl.rules import Atom
from engine.errors import EntailmentLimit

Fact = tuple[int, int, int]
WORK = 20_000_000
"""Joins may look at so many triples for one change: about a minute."""


class Store:
    """Holds a set of triples of numbers; `work` counts what joins have looked at."""

    def __init__(self) -> None:
        self.work = 0
        self._objects: dict[int, dict[int, set[int]]] = {}  # by predicate and subject
        self._subjects: dict[int, dict[int, set[int]]] = {}  # by predicate and object

    def __contains__(self, fact: Fact) -> bool:
        s, p, o = fact
        return o in self.objects(s, p)

    def add(self, fact: Fact) -> None:
        s, p, o = fact
        self._objects.setdefault(p, {}).setdefault(s, set()).add(o)
        self._subjects.setdefault(p, {}).setdefault(o, set()).add(s)

    def remove_triple(self, fact: Fact) -> None:
        s, p, o = fact
        for index, one, other in ((self._objects, s, o), (self._subjects, o, s)):
            index[p][one].discard(other)
            if not index[p][one]:
                del index[p][one]

    def look(self) -> None:
        """Count one triple more. Raises: EntailmentLimit."""
        self.work += 1
        if self.work > WORK:
            raise EntailmentLimit(f"OWL 2 RL: one change of the background takes more than {WORK:,} steps")

    def objects(self, s: int, p: int) -> set[int]:
        found = self._objects.get(p)
        return _NONE if found is None else found.get(s, _NONE)

    def subjects(self, p: int, o: int) -> set[int]:
        found = self._subjects.get(p)
        return _NONE if found is None else found.get(o, _NONE)

    def all_subjects(self, p: int) -> KeysView[int]:
        return self._objects.get(p, _NOTHING).keys()

    def about(self, node: int) -> Iterator[Fact]:
        """Yield the triples with a node as a subject or an object."""
        for p in self._objects:
            yield from ((node, p, o) for o in self.objects(node, p))
            yield from ((s, p, node) for s in self.subjects(p, node) if s != node)

    def solutions(self, atoms: Sequence[Atom], values: list[int]) -> Iterator[list[int]]:
        """Yield the values with which all atoms are there, in one list that is written over.

        The atom that has the fewest matches is joined first. Raises: EntailmentLimit.
        """
        self.look()
        if not atoms:
            yield values
            return
        best, fewest = atoms[0], -1
        for atom in atoms:
            n = self._count_triples(*bound(atom, values))
            if not n:
                return
            if fewest < 0 or n < fewest:
                best, fewest = atom, n
        rest = [atom for atom in atoms if atom is not best]
        s, p, o = bound(best, values)
        if s and o:
            yield from self.solutions(rest, values)
        elif s:
            for values[~best[2]] in self.objects(s, p):
                yield from self.solutions(rest, values)
            values[~best[2]] = 0
        elif o:
            for values[~best[0]] in self.subjects(p, o):
                yield from self.solutions(rest, values)
            values[~best[0]] = 0
        else:
            for values[~best[0]], objects in self._objects[p].items():
                for values[~best[2]] in objects:
                    yield from self.solutions(rest, values)
            values[~best[0]] = values[~best[2]] = 0

    def _count_triples(self, s: int, p: int, o: int) -> int:
        if s and o:
            return int(o in self.objects(s, p))
        return len(self.objects(s, p)) if s else len(self.subjects(p, o)) if o else len(self._objects.get(p, ()))


_NONE: set[int] = set()
_NOTHING: dict[int, set[int]] = {}


def bound(atom: Atom, values: Sequence[int]) -> Fact:
    """Return an atom with what its variables have, 0 where they have nothing."""
    s, p, o = atom
    return s if s >= 0 else values[~s], p if p >= 0 else values[~p], o if o >= 0 else values[~o]


def unified(atom: Atom, fact: Fact, values: Sequence[int]) -> list[int] | None:
    """Return the values with which an atom is a triple; None if there are none."""
    found = list(values)
    for part, number in zip(atom, fact, strict=True):
        if part >= 0:
            if part != number:
                return None
        elif found[~part] in (0, number):
            found[~part] = number
        else:
            return None
    return found
