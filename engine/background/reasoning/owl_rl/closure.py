"""OWL 2 RL applies to a background that changes: what follows beyond RDFS is kept up to date
(docs/decisions/0075-static-rules.md).

RDFS is looked up in the schema and not kept. Of what follows by it, rules see what they have premises for (`Lift`);
what they conclude is kept, and treated as if it had been given. A change goes through what it concerns (delete and
rederive). First all that may have rested on what is gone is taken back. Then what stands for another reason comes
again, and then what is new. What is entailed lies in no graph.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, KeysView, Set
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from engine.background.reasoning.owl_rl.derived_triples import Conclusions
from engine.background.reasoning.owl_rl.rdf_lists import Lists
from engine.background.reasoning.owl_rl.rdfs_bridge import Key, Lift
from engine.background.reasoning.owl_rl.rules import UP, Atom, Axioms, EntailmentRule, Instance, RuleVocabulary, rules
from engine.background.reasoning.owl_rl.triple_index import Fact, Store, bound, unified
from engine.background.reasoning.rdfs_schema import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, Schema, Statement, schema_stating
from engine.dictionary.term_dictionary import IRI, LITERAL, Held, TermTable
from engine.errors import EntailmentLimit
from engine.triples.relation import EMPTY, distinct, without
from epsparql.terms import Term

Ints = NDArray[np.int64]
Given = dict[int, Ints]


class Closure:
    """Holds what OWL entails of given triples, and what is needed to follow a change of these.

    `move` goes on from whatever was closed last.
    """

    def __init__(self, terms: TermTable) -> None:
        self.terms = terms
        self.names = RuleVocabulary(terms.intern)
        self._axioms = Axioms(self.names)
        self._static: dict[Key, list[tuple[EntailmentRule, int]]] = {}  # premises of schemas
        self._concluding: dict[int, list[EntailmentRule]] = {}  # rules of schemas alone, by the predicate that they conclude
        for rule in rules(self.names):
            for k, (_, p, o) in enumerate(rule.schema):
                self._static.setdefault((p, o) if o > 0 else p, []).append((rule, k))
            if not rule.data:
                self._concluding.setdefault(rule.head[1], []).append(rule)
        names = self.names
        self._relations = {names.domain: DOMAIN, names.range: RANGE, names.subclass: SUBCLASS, names.subproperty: SUBPROPERTY}
        self._beyond: tuple[Given, EntailmentLimit] | None = None
        self._forget()
        terms.holders.add(self)

    def _forget(self) -> None:
        self.given: Given = {}
        self.schema: Schema[Term] = schema_stating(())
        self._concluded = Conclusions()
        self._seen = Store()
        self._by_given, self._by_derived = Counter[Fact](), Counter[Fact]()  # how many triples let rules see one
        self._active = Counter[Instance]()
        self._premises: dict[Key, dict[tuple[Instance, int], None]] = {}
        self._heads: dict[Key, dict[Instance, None]] = {}
        self._wanted = Counter[Key](key if isinstance(key, int) or key[0] in self.names.typing else key[0] for key in self._static)
        self._wanted.update([self.names.same, *self.names.lists])
        self._lift = self._lifted()
        self._equals: dict[int, set[int]] = {}  # of what is the same as something all that are, itself included: one set of each clique
        self._parted: set[int] = set()  # what was in a clique that has lost a link
        self._lists = Lists(EMPTY, EMPTY, self.terms.text)
        self._listed: dict[Fact, list[Instance]] = {}
        self._entering, self._leaving = deque[Fact](), deque[Fact]()
        self._coming, self._gone = deque[Fact](), deque[Fact]()
        self._stated, self._unstated = list[Fact](), list[Fact]()  # of the schema
        self._suspects: dict[Fact, None] = {}  # what was taken back
        self._left: dict[Fact, None] = {}

    @property
    def base(self) -> Given:
        """Return what was given and what OWL entails."""
        return self._concluded.base

    def hold(self, held: Held) -> None:
        held.add(np.array([*self.names.numbers], np.int64))
        for rows in (*self.given.values(), *self.base.values(), *(() if self._beyond is None else self._beyond[0].values())):
            held.add(rows)
        self._lift.forget()

    # ------------------------------------------------------------ a change
    def close_again(self, given: Given) -> None:
        """Close these triples (subject, object, graph by predicate).

        Raises: EntailmentLimit; then nothing is kept, and it is raised for more triples at once.
        """
        if self._beyond is not None:
            known, limit = self._beyond
            if not any(len(without(rows, given.get(p, EMPTY))) for p, rows in known.items()):
                raise limit
        self._beyond = None
        try:
            self._move(given)
        except EntailmentLimit as limit:
            self._forget()
            self._beyond = given, limit
            raise

    def _move(self, given: Given) -> None:
        before, self._seen.work = self.given, 0
        changed = [p for p in before | given if before.get(p) is not given.get(p)]
        removed = {p: without(before.get(p, EMPTY), given.get(p, EMPTY)) for p in changed}
        added = {p: without(given.get(p, EMPTY), before.get(p, EMPTY)) for p in changed}
        self.given = before | {p: without(before[p], removed[p]) for p in changed if p in before}
        relisted = self._relist(given) if self.names.first in changed or self.names.rest in changed else []
        for p, rows in removed.items():
            self._count_instances(p, rows, self._lose)
            if p in self._relations:
                self._unstated += ((s, p, o) for s, o in rows[:, :2].tolist())
        self._take_back()
        self._stated += ((s, p, o) for p in self._relations.keys() & added.keys() for s, o in added[p][:, :2].tolist())
        self._state()
        self.given = given
        for p, rows in added.items():
            self._count_instances(p, rows, self._gain)
        self._come_again(relisted)
        self._conclude_all()
        self._tidy()
        self._concluded.show(given, removed, added)

    def _count_instances(self, p: int, rows: Ints, change: Callable[[Fact, Counter[Fact]], None]) -> None:
        for s, o in self._lift.noticed(p, rows)[:, :2].tolist():
            for seen in self._lift.lift_triple((s, p, o)):
                change(seen, self._by_given)

    def _come_again(self, relisted: Iterable[Fact]) -> None:
        """Conclude again what was taken back and stands for another reason."""
        self._entering += (seen for seen in self._left if seen in self._by_given or seen in self._by_derived)
        for fact in self._suspects:
            if self._derivable(fact):
                self._conclude(fact)
        for axiom in relisted:
            if axiom in self._listed:
                self._list(axiom)
        for one in self._parted:
            for other in self._seen.objects(one, self.names.same):
                self._equate(one, other)
        self._suspects, self._left, self._parted = {}, {}, set()

    def _take_back(self) -> None:
        """Take back all that may rest on what is gone."""
        while True:
            while self._gone or self._leaving:
                while self._gone:
                    fact = self._gone.popleft()
                    for seen in self._lift.lift_triple(fact):
                        self._lose(seen, self._by_derived)
                    if fact[1] in self._relations:
                        self._unstated.append(fact)
                if self._leaving:
                    self._leave(self._leaving.popleft())
            if not self._unstated:
                return
            self.schema = self.schema.with_statements((), self._no_longer_stated())
            self._unstated = []
            self._shift(self._lifted())

    def _no_longer_stated(self) -> list[Statement[Term]]:
        """Return the statements that are neither given any more nor concluded."""
        found = []
        for p in {p for _, p, _ in self._unstated}:
            rows = distinct(np.array([(s, o) for s, each, o in self._unstated if each == p], np.int64))
            found += [
                self._statement(s, p, o) for s, o in without(rows, self.given.get(p, EMPTY)[:, :2]).tolist() if (s, p, o) not in self._concluded
            ]
        return found

    def _conclude_all(self) -> None:
        """Conclude all that follows from what has come."""
        while True:
            while self._coming or self._entering:
                while self._coming:
                    fact = self._coming.popleft()
                    for seen in self._lift.lift_triple(fact):
                        self._gain(seen, self._by_derived)
                    if fact[1] in self._relations:
                        self._stated.append(fact)
                if self._entering:
                    self._enter(self._entering.popleft())
            if not self._stated and self._wanted.keys() <= self._lift.wanted and self._same() <= self._lift.same:
                return
            self._state()

    def _state(self) -> None:
        """Take what has been stated into the schema, and let rules see what follows by it."""
        if self._stated:
            self.schema = self.schema.with_statements(self._statement(*fact) for fact in self._stated)
            self._stated = []
        self._shift(self._lifted())

    def _statement(self, s: int, p: int, o: int) -> Statement[Term]:
        return self.terms.get_term(s), self._relations[p], self.terms.get_term(o)

    def _tidy(self) -> None:
        """Remove what rules have seen that no rule asks for any more, because those that did are gone."""
        self._wanted += Counter()  # without those that are zero
        if self._wanted.keys() == self._lift.wanted and self._same() == self._lift.same:
            return
        self._shift(self._lifted())
        while self._leaving:
            seen = self._leaving.popleft()
            if seen in self._seen and seen not in self._by_given and seen not in self._by_derived:
                self._seen.remove_triple(seen)

    # ------------------------------------------------------------ what rules see
    def _lifted(self) -> Lift:
        return Lift(self.terms, self.names, self.schema, self._wanted, self._same())

    def _same(self) -> KeysView[int]:
        return self._seen.all_subjects(self.names.same)

    def _shift(self, lift: Lift) -> None:
        """Bring what rules see from one lift to another."""
        before, concerned = self._lift, lift.concerned(self._lift)
        for p in {*self.given, *self._concluded.predicates}:
            chosen = None if before.use(p) != lift.use(p) or p in concerned.same else concerned.same
            if chosen is not None and (before.reads_objects(p) or lift.reads_objects(p)):
                chosen = chosen | concerned.kinds
            for facts, counts in ((self._given_with(p, chosen), self._by_given), (self._concluded.list_conclusions(p, chosen), self._by_derived)):
                for fact in facts:
                    old, new = before.lift_triple(fact), lift.lift_triple(fact)
                    for seen in old - new:
                        self._lose(seen, counts)
                    for seen in new - old:
                        self._gain(seen, counts)
        self._lift = lift

    def _given_with(self, p: int, nodes: Set[int] | None) -> Iterator[Fact]:
        """Yield given triples of a predicate with any of these nodes as a subject or object; None stands for all."""
        rows = self.given.get(p, EMPTY)[:, :2]
        if nodes is not None:
            rows = rows[np.isin(rows, np.array([*nodes], np.int64)).any(axis=1)] if nodes else rows[:0]
        return ((s, p, o) for s, o in rows.tolist())

    def _gain(self, seen: Fact, counts: Counter[Fact]) -> None:
        counts[seen] += 1
        if seen not in self._seen:
            self._entering.append(seen)

    def _lose(self, seen: Fact, counts: Counter[Fact]) -> None:
        counts[seen] -= 1
        if not counts[seen]:
            del counts[seen]
        if seen not in self._by_given:  # what is concluded may in the end rest on itself
            self._leaving.append(seen)

    # ------------------------------------------------------------ rules
    def _enter(self, seen: Fact) -> None:
        if seen in self._seen:
            return
        self._seen.add(seen)
        self._apply(seen, self._activate, self._conclude)
        if seen[1] in self.names.lists:
            self._list(seen)
        elif seen[1] == self.names.same:
            self._equate(seen[0], seen[2])

    def _leave(self, seen: Fact) -> None:
        if seen not in self._seen:
            return
        self._apply(seen, self._deactivate, self._retract)
        for instance in self._listed.pop(seen, ()):
            self._deactivate(instance)
        if seen[1] == self.names.same:
            self._part(seen[0])
        self._seen.remove_triple(seen)
        self._left[seen] = None

    def _apply(self, seen: Fact, instance: Callable[[Instance], None], conclusion: Callable[[Fact], None]) -> None:
        """Call `instance` and `conclusion` with all that follows from a triple and others that are seen."""
        _, p, o = seen
        instances = []
        for key in (p, (p, o)):
            for rule, k in self._static.get(key, ()):
                for values in self._joined(rule.schema, k, seen, (0,) * rule.variables):
                    if rule.data:
                        instances.append(Instance(rule, tuple(values)))
                    else:
                        conclusion(bound(rule.head, values))
        for key in (p, (p, o)):
            for (rule, known), k in self._premises.get(key, ()):
                for values in self._joined(rule.data, k, seen, known):
                    conclusion(bound(rule.head, values))
        for each in instances:
            instance(each)
        for fact in self._replaced(seen):
            conclusion(fact)

    def _joined(self, atoms: tuple[Atom, ...], k: int, seen: Fact, known: tuple[int, ...]) -> Iterator[list[int]]:
        values = unified(atoms[k], seen, known)
        return iter(()) if values is None else self._seen.solutions(atoms[:k] + atoms[k + 1 :], values)

    def _replaced(self, seen: Fact) -> Iterator[Fact]:
        """Yield a triple with what is the same instead of its subject or object (eq-rep).

        If the triple says that two things are the same, yield all triples about the first, with the second in its
        place.
        """
        s, p, o = seen
        same = self.names.same
        copies: Iterator[Fact]
        if p == same:
            copies = (copy for x, each, y in self._seen.about(s) for copy in ((o if x == s else x, each, y), (x, each, o if y == s else y)))
        elif p < UP:
            copies = chain(((other, p, o) for other in self._seen.objects(s, same)), ((s, p, other) for other in self._seen.objects(o, same)))
        else:
            return
        for fact in copies:
            self._seen.look()
            if fact[1] < UP and fact[1] != same:
                yield fact

    def _equate(self, one: int, other: int) -> None:
        """Conclude that all of both cliques are the same (eq-trans)."""
        if self.terms.kinds[other] >= LITERAL:
            return
        left, right = (self._equals.setdefault(each, {each}) for each in (one, other))
        if left is right:
            return
        for x in left:
            for y in right:
                self._conclude((x, self.names.same, y))
                self._conclude((y, self.names.same, x))
        large, small = (left, right) if len(left) >= len(right) else (right, left)
        large |= small
        self._equals |= dict.fromkeys(small, large)

    def _part(self, one: int) -> None:
        """Retract that all of a clique are the same, because they may not be."""
        clique = self._equals.get(one, set())
        for x in clique:
            del self._equals[x]
        self._parted |= clique
        for x in clique:
            for y in clique:
                self._retract((x, self.names.same, y))

    def _activate(self, instance: Instance) -> None:
        self._active[instance] += 1
        if self._active[instance] > 1:
            return
        for k, key in enumerate(_keys(instance)):
            self._premises.setdefault(key, {})[instance, k] = None
            self._wanted[self._seen_by(key)] += 1
        self._heads.setdefault(_head(instance), {})[instance] = None
        for values in self._seen.solutions(instance.rule.data, list(instance.values)):
            self._conclude(bound(instance.rule.head, values))

    def _deactivate(self, instance: Instance) -> None:
        self._active[instance] -= 1
        if self._active[instance]:
            return
        del self._active[instance]
        for k, key in enumerate(_keys(instance)):
            del self._premises[key][instance, k]
            if not self._premises[key]:
                del self._premises[key]
            self._wanted[self._seen_by(key)] -= 1
        del self._heads[_head(instance)][instance]
        for values in self._seen.solutions(instance.rule.data, list(instance.values)):
            self._retract(bound(instance.rule.head, values))

    def _seen_by(self, key: Key) -> Key:
        return key if isinstance(key, int) or key[0] in self.names.typing else key[0]

    def _conclude(self, fact: Fact) -> None:
        s, p, o = fact
        kinds = self.terms.kinds
        if fact not in self._concluded and kinds[s] < LITERAL and kinds[p] == IRI and not self._idle(s, p, o):
            self._concluded.add(fact, self.terms.text(p))
            self._coming.append(fact)

    def _idle(self, s: int, p: int, o: int) -> bool:
        """Return whether a triple says what holds of everything, or that a literal is the same as a thing."""
        names = self.names
        if p == names.same:
            return s == o or bool(self.terms.kinds[o] >= LITERAL)
        return (s == o and p in (names.subclass, names.subproperty)) or (p == names.type and o == names.thing) or s in (names.thing, names.nothing)

    def _retract(self, fact: Fact) -> None:
        if fact in self._concluded:
            self._concluded.remove_triple(fact)
            self._gone.append(fact)
            self._suspects[fact] = None

    def _derivable(self, fact: Fact) -> bool:
        """Return whether a rule concludes a triple from what is seen."""
        s, p, o = fact
        for rule in self._concluding.get(p, ()):
            if self._concludes(rule.schema, rule.head, (0,) * rule.variables, fact):
                return True
        for key in (p, (p, o)):
            for rule, known in self._heads.get(key, ()):
                if self._concludes(rule.data, rule.head, known, fact):
                    return True
        same = self.names.same
        return any((one, p, o) in self._seen for one in self._seen.subjects(same, s)) or any(
            (s, p, one) in self._seen for one in self._seen.subjects(same, o)
        )

    def _concludes(self, premises: tuple[Atom, ...], head: Atom, known: tuple[int, ...], fact: Fact) -> bool:
        values = unified(head, fact, known)
        return values is not None and any(True for _ in self._seen.solutions(premises, values))

    # ------------------------------------------------------------ collections
    def _list(self, axiom: Fact) -> None:
        s, p, o = axiom
        members = self._lists.members(o)
        self._listed[axiom] = [*self._axioms.list_instances(self.names.lists[p], s, members)] if members else []
        for instance in self._listed[axiom]:
            self._activate(instance)

    def _relist(self, given: Given) -> list[Fact]:
        """Take collections as they are given now, and return the axioms of those that are others, which count no
        longer.

        What is entailed of a collection's cells says nothing more of its members.
        """
        before = {axiom: self._lists.members(axiom[2]) for axiom in self._listed}
        self._lists = Lists(given.get(self.names.first, EMPTY), given.get(self.names.rest, EMPTY), self.terms.text)
        changed = [axiom for axiom, members in before.items() if self._lists.members(axiom[2]) != members]
        for axiom in changed:
            for instance in self._listed[axiom]:
                self._deactivate(instance)
            self._listed[axiom] = []
        return changed


def _keys(instance: Instance) -> Iterator[Key]:
    """Yield the keys by which an instance's premises are found."""
    return (_key(bound(atom, instance.values)) for atom in instance.rule.data)


def _head(instance: Instance) -> Key:
    return _key(bound(instance.rule.head, instance.values))


def _key(fact: Fact) -> Key:
    _, p, o = fact
    return (p, o) if o else p
