"""OWL's rules see those of a triple's consequences by RDFS that a rule has a premise for (and triples of things that
are the same).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.background.reasoning.owl_rl.rules import UP, RuleVocabulary
from engine.background.reasoning.owl_rl.triple_index import Fact
from engine.background.reasoning.rdfs_entailment import find_above
from engine.background.reasoning.rdfs_schema import Schema
from engine.dictionary.term_dictionary import LITERAL, TermTable
from engine.triples.relation import EMPTY
from epsparql.terms import Term

Ints = NDArray[np.int64]
Key = int | tuple[int, int]
"""A key is what rules have premises for: a predicate, or one of `Names.typing` with a class."""


class Use(NamedTuple):
    """Says what rules see of a predicate's triples: the classes of its subjects and of its objects, and properties
    above it.

    They see all triples of `plain` properties. Of `closed` ones they see those whose objects stand below what they
    ask for.
    """

    plain: tuple[int, ...]
    closed: tuple[int, ...]
    subjects: tuple[int, ...]
    objects: tuple[int, ...]


class Concerned(NamedTuple):
    """Holds classes and properties above which something else stands, or that are asked for.

    `same` are things that are the same as others, or no longer are.
    """

    kinds: set[int]
    same: set[int]


_UNSEEN = Use((), (), (), ())


class Lift:
    """Lifts triples to what rules see of them, for one schema and one set of premises.

    A lift never changes; it only keeps what is seen of predicates and classes.
    """

    def __init__(self, terms: TermTable, names: RuleVocabulary, schema: Schema[Term], wanted: Mapping[Key, int], same: Iterable[int]) -> None:
        self.terms, self.names, self.schema = terms, names, schema
        self.wanted = set(wanted)
        self.predicates = {key for key in wanted if isinstance(key, int)}
        self.classes = {key for key in wanted if not isinstance(key, int)}
        self.same = set(same)
        self.uses: dict[int, Use] = {}
        self.kinds: dict[int, tuple[int, ...]] = {}
        """Each class has those above it, itself included, that a rule asks for."""
        self._asked = {kind for _, kind in self.classes}

    @cached_property
    def _below(self) -> set[Term]:
        """Return the classes that rules ask for, and those below these."""
        asked = [*map(self.terms.get_term, self._asked)]
        return self.schema.classes.all_below(asked).union(asked)

    def forget(self) -> None:
        """Forget what can be found again."""
        self.uses.clear()
        self.kinds.clear()

    def concerned(self, before: "Lift") -> Concerned:
        """Return what rules may see otherwise than by another lift."""
        asked = {kind for _, kind in self.classes ^ before.classes}
        classes = (
            (before.schema.classes.differing(self.schema.classes) & (before._below | self._below)) if before.schema is not self.schema else set()
        )
        for lift in (before, self) if asked else ():
            terms = [*map(self.terms.get_term, asked)]
            classes |= lift.schema.classes.all_below(terms).union(terms)
        properties = before.schema.properties.differing(self.schema.properties)
        return Concerned({*self.terms.intern_terms(classes), *self.terms.intern_terms(properties)}, self.same ^ before.same)

    def reads_objects(self, predicate: int) -> bool:
        """Return whether it matters what is above an object."""
        closed = {self.names.type, self.names.on_property, *self.names.of_classes}
        return not closed.isdisjoint(self.use(predicate).closed)

    def noticed(self, predicate: int, rows: Ints) -> Ints:
        """Return the rows of a predicate that rules may see something of."""
        use, chosen = self.use(predicate), np.zeros(len(rows), np.bool_)
        if predicate in self.same or use.plain or use.subjects or use.objects or any(each != self.names.type for each in use.closed):
            return rows
        if use.closed:
            kinds = [kind for kind in np.unique(rows[:, 1]).tolist() if self.kind(kind)]
            chosen |= np.isin(rows[:, 1], np.array(kinds, np.int64))
        if self.same:
            chosen |= np.isin(rows[:, :2], np.array([*self.same], np.int64)).any(axis=1)
        return rows[chosen]

    def use(self, predicate: int) -> Use:
        found = self.uses.get(predicate)
        if found is None:
            found = self.uses[predicate] = self._use(predicate)
        return found

    def _use(self, predicate: int) -> Use:
        schema, names, term = self.schema, self.names, self.terms.get_term(predicate)
        above = {predicate, *self.terms.intern_terms(schema.predicates.get(term, ()))}
        typed = (
            [kind for kind in self.terms.intern_terms(kinds) if (names.type, kind) in self.classes]
            for kinds in (schema.subjects.get(term), schema.objects.get(term))
        )
        closed = {names.type, names.on_property, *names.of_classes, *names.most}
        found = Use(tuple(p for p in above if p in self.predicates), tuple(p for p in above if p in closed), *map(tuple, typed))
        return found if any(found) else _UNSEEN

    def kind(self, class_: int) -> tuple[int, ...]:
        found = self.kinds.get(class_)
        if found is None:
            term = self.terms.get_term(class_)
            above = find_above(self.terms, self.schema.classes, class_) if term in self._below else []
            found = self.kinds[class_] = tuple(each for each in dict.fromkeys((class_, *above)) if each in self._asked)
        return found

    def lift_triple(self, fact: Fact) -> set[Fact]:
        """Return what rules see of a triple."""
        s, p, o = fact
        names, use = self.names, self.use(p)
        found = {(s, names.type, kind) for kind in use.subjects} | {(s, above, o) for above in use.plain}
        if use.objects and self.terms.kinds[o] < LITERAL:
            found.update((o, names.type, kind) for kind in use.objects)
        for above in use.closed:
            if above == names.type or above in names.of_classes:
                closed = above if above == names.type else UP + above
                found.update((s, closed, kind) for kind in self.kind(o) if (closed, kind) in self.classes)
            elif above == names.on_property:
                found.update((s, UP + above, each) for each in (o, *find_above(self.terms, self.schema.properties, o)))
            elif above in names.most and is_one(self.terms.text(o)):
                found.add((s, UP + above, names.one))
        if self.same:
            found.update(self._of_same(s, p, o))
        return found

    def _of_same(self, s: int, p: int, o: int) -> Iterator[Fact]:
        """Yield the triple, if it is about something that is the same as another.

        Yield also that such a thing is a property or a class, if it is used as one.
        """
        names = self.names
        if s in self.same or o in self.same:
            yield s, p, o
        if p in self.same:
            yield p, names.subproperty, p
        if o in self.same and p in (names.type, names.domain, names.range):
            yield o, names.subclass, o
        if p in (names.subclass, names.subproperty):
            yield from ((each, p, each) for each in (s, o) if each in self.same)


def is_one(literal: str) -> bool:
    """Return whether a number of values is one, in whatever type, with or without a plus sign and leading zeros."""
    return literal.startswith('"') and literal.partition('"^^')[0].strip('"').lstrip("+0") == "1"


def speaks_of_words(given: Mapping[int, Ints], words: Sequence[int], names: RuleVocabulary) -> bool:
    """Return whether a statement that rules are about is about RDFS's own words: then rules see more than is lifted."""
    of_schema = [*names.schema, *names.lists, names.first]
    kinds = given.get(names.type, EMPTY)
    return any(np.isin(given[p][:, :2], words).any() for p in of_schema if p in given) or bool(
        (np.isin(kinds[:, 0], words) & np.isin(kinds[:, 1], [*names.kinds])).any()
    )
