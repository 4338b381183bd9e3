"""A triple that static rules derive is explained by the rules and the triples that it rests on, from those that need
no rule on.

The search goes back from the triple over all ways in which it may have come, and then forward from what was given: so
no triple rests on itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from engine.background.static_rules.groups import list_members
from engine.background.static_rules.joins import Joins, rows_now
from engine.background.static_rules.program import VIEW, WRITTEN, Atom, DatalogRule, Program, Relation
from epsparql.deferred_methods import dataclass

MOST_FACTS, MOST_WAYS = 20_000, 100
"""So many tuples are gone through, and so many ways for each."""
Fact = tuple[Relation, int]
"""A relation with one of its tuples, packed."""
Numbers = tuple[int, int, int]
"""A triple as numbers of terms."""


class TooFar(Exception):
    """Signals that a triple rests on more tuples than are gone through."""


@dataclass(frozen=True, slots=True)
class RuleStep:
    """Says that a rule concludes a triple from premises: a static rule by its registration, or 0 for RDFS."""

    source: int
    premises: tuple[Numbers, ...]
    conclusion: Numbers


@dataclass(slots=True)
class Explainer:
    """Explains triples that the rules of a program derive."""

    program: Program
    joins: Joins
    _proofs: dict[Fact, tuple[DatalogRule, tuple[Fact, ...]]] = field(default_factory=dict)

    def explain(self, triple: Numbers) -> list[RuleStep] | None:
        """Return the steps to a triple that a static rule writes, premises first; None for any other. Raises TooFar."""
        target = next(self._find_written(triple), None)
        if target is None:
            return None
        self._prove(target)
        steps: dict[RuleStep, None] = {}
        self._tell(target, steps, set())
        return list(steps)

    def _find_written(self, triple: Numbers) -> Iterator[Fact]:
        s, p, o = triple
        for relation in self.program.relations:
            key = relation.key
            if key.role == WRITTEN and key.predicate == p and key.kind in (0, o):
                columns = [np.array([s])] if key.kind else [np.array([s]), np.array([o])]
                packed = self.joins.tuples.find(columns)
                if relation.rows.contains(packed).all():
                    yield relation, int(packed[0])

    def _prove(self, target: Fact) -> None:
        ways: dict[Fact, list[tuple[DatalogRule, tuple[Fact, ...]]]] = {}
        needs: dict[Fact, list[Fact]] = {}
        pending, proven = [target], list[Fact]()
        while pending:
            fact = pending.pop()
            if fact in ways:
                continue
            if len(ways) >= MOST_FACTS:
                raise TooFar
            ways[fact] = []
            if fact[0].given.contains(np.array([fact[1]])).all():
                proven.append(fact)
                continue
            ways[fact] = list(self._ways(fact))
            if any(not body for _, body in ways[fact]):
                proven.append(fact)
            for _, body in ways[fact]:
                for each in body:
                    needs.setdefault(each, []).append(fact)
                    pending.append(each)
        done = set[Fact]()
        while proven:
            following: dict[Fact, None] = {}
            for fact in proven:
                if fact not in done:
                    way = next((way for way in ways[fact] if done.issuperset(way[1])), None)
                    if way is not None:
                        self._proofs[fact] = way
            done.update(proven)
            for fact in proven:
                following |= {each: None for each in needs.get(fact, ()) if each not in done and any(done.issuperset(body) for _, body in ways[each])}
            proven = list(following)

    def _ways(self, fact: Fact) -> Iterator[tuple[DatalogRule, tuple[Fact, ...]]]:
        relation, packed = fact
        found = 0
        for rule in self.program.by_head.get(relation, ()):
            if rule.fold is not None:
                yield rule, tuple((rule.source_atom.relation, member) for member in list_members(self.joins, rule, packed))
                continue
            for columns, n in self.joins.solve(rule, rows_now, rule.head, np.array([packed])):
                for row in range(min(n, MOST_WAYS - found)):
                    found += 1
                    values = {argument: int(column[row]) for argument, column in columns.items()}
                    yield rule, tuple(self._fact(atom, values) for atom in rule.atoms)

    def _fact(self, atom: Atom, values: Mapping[int, int]) -> Fact:
        numbers = [np.array([argument if argument > 0 else values[argument]]) for argument in atom.arguments]
        return atom.relation, int(self.joins.tuples.find(numbers)[0])

    def _tell(self, fact: Fact, steps: dict[RuleStep, None], seen: set[Fact]) -> None:
        """Add the steps to a fact, those to its premises first. The order of proofs has no circle."""
        pending = [(fact, False)]
        while pending:
            fact, ready = pending.pop()
            proof = self._proofs.get(fact)
            if proof is None or (fact in seen and not ready):
                continue
            rule, body = proof
            if not ready:
                seen.add(fact)
                pending += [(fact, True), *((each, False) for each in reversed(body))]
                continue
            conclusion = self.triple(fact)
            if conclusion is not None:
                step = RuleStep(rule.source, tuple(dict.fromkeys(self._premises(body))), conclusion)
                if step.premises != (conclusion,):
                    steps[step] = None

    def _premises(self, body: tuple[Fact, ...]) -> Iterator[Numbers]:
        """Yield the triples of a body; for what is no triple, those that it rests on."""
        for fact in body:
            triple = self.triple(fact)
            if triple is not None:
                yield triple
            elif fact in self._proofs:
                yield from self._premises(self._proofs[fact][1])

    def triple(self, fact: Fact) -> Numbers | None:
        relation, packed = fact
        if relation.key.role not in (VIEW, WRITTEN):
            return None
        numbers = [int(column[0]) for column in self.joins.tuples.unpack(np.array([packed]), relation.arity)]
        return numbers[0], relation.key.predicate, relation.key.kind or numbers[1]
