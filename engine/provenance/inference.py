"""This module finds the steps from given triples to one that follows from them: the rules of semantics.md section 10,
backwards.

Under OWL 2 RL what the background entails was given, and streams follow three rules more: inverses, and values of
classes either way.
"""

from collections.abc import Iterable

from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import (
    DOMAIN,
    INVERSE,
    ON,
    OWL_STATES,
    PROPERTY,
    RANGE,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    VALUE,
    VOCABULARY,
    Triple,
)
from engine.background.static_rules.explanation import TooFar
from engine.messages import RDFS as RDFS_ONLY
from epsparql.deferred_methods import dataclass
from epsparql.terms import Iri, Literal, Term

_KIND, _PROPERTY, _DOMAIN, _RANGE, _SUBCLASS, _SUBPROPERTY = (VOCABULARY[k] for k in (TYPE, PROPERTY, DOMAIN, RANGE, SUBCLASS, SUBPROPERTY))
_INVERSE, _VALUE, _ON = (VOCABULARY[k] for k in (INVERSE, VALUE, ON))


@dataclass(frozen=True, slots=True)
class Inference:
    """Holds a rule with what it was applied to.

    It is a rule of RDFS (`reflexive` for a reflexive fact), of OWL 2 RL, or `static rule` and its name.
    """

    rule: str
    premises: tuple[Triple, ...]
    conclusion: Triple


Steps = tuple[Inference, ...]


class Given:
    """Holds triples as they were given."""

    def __init__(self, triples: Iterable[Triple], *, owl: bool = False) -> None:
        self._owl = owl
        self._all: set[Triple] = set()
        self._by_predicate: dict[Term, list[Triple]] = {}
        for triple in (*triples, *((s, VOCABULARY[relation], o) for s, relation, o in (OWL_STATES if owl else ()))):
            self.add(triple)

    def add(self, triple: Triple) -> None:
        if triple not in self._all:
            self._all.add(triple)
            self._by_predicate.setdefault(triple[1], []).append(triple)

    def explained(self, triple: Triple, occurrence: Triple | None = None) -> Steps | None:
        """Return the steps to a triple, premises first; none for one that was given.

        With `occurrence` they rest on that and on the schema.
        """
        return self._explained(triple, occurrence, frozenset())

    def _explained(self, triple: Triple, occurrence: Triple | None, seen: frozenset[Triple]) -> Steps | None:
        if triple == occurrence or (triple in self._all and (occurrence is None or _is_schema(triple))):
            return ()
        if triple in seen:
            return None
        above = seen | {triple}
        for rule, premises in self._ways(triple, occurrence):
            found: list[Inference] = []
            for premise in premises:
                steps = self._explained(premise, occurrence, above)
                if steps is None:
                    break
                found += [step for step in steps if step not in found]
            else:
                return (*found, Inference(rule, premises, triple))
        return None

    def _ways(self, triple: Triple, occurrence: Triple | None) -> Iterable[tuple[str, tuple[Triple, ...]]]:
        """Yield rules that conclude a triple, with premises; premises of the schema stand as they were given."""
        s, p, o = triple
        for statement in self._of(_SUBPROPERTY, 2, p):
            if isinstance(statement[0], Iri) and statement[0] != p:
                yield "rdfs7", ((s, statement[0], o), statement)
        if p == _KIND:
            for statement in self._of(_SUBCLASS, 2, o):
                if statement[0] != o:
                    yield "rdfs9", ((s, _KIND, statement[0]), statement)
            for statement in self._of(_DOMAIN, 2, o):
                for data in self._with(statement[0], 0, s, occurrence):
                    yield "rdfs2", (data, statement)
            for statement in self._of(_RANGE, 2, o):
                for data in self._with(statement[0], 2, s, occurrence):
                    yield "rdfs3", (data, statement)
        if p in (_SUBCLASS, _SUBPROPERTY):
            if s == o or (p == _SUBCLASS and s == o):
                yield "reflexive", ()
            for statement in self._of(p, 2, o):
                if statement[0] not in (s, o):
                    yield "rdfs11" if p == _SUBCLASS else "rdfs5", ((s, p, statement[0]), statement)
        if p == _KIND and o == _PROPERTY:
            yield "reflexive", ()
        if self._owl:
            yield from self._ways_of_owl(triple)

    def _ways_of_owl(self, triple: Triple) -> Iterable[tuple[str, tuple[Triple, ...]]]:
        s, p, o = triple
        if not isinstance(o, Literal):
            for statement in self._of(_INVERSE, 2, p):
                yield "prp-inv", ((o, statement[0], s), statement)
        for valued in self._of(_VALUE, 2, o):
            for statement in self._of(_ON, 0, valued[0]):
                if statement[2] == p:
                    yield "cls-hv1", ((s, _KIND, valued[0]), valued, statement)
        for valued in self._of(_VALUE, 0, o) if p == _KIND else ():
            for statement in self._of(_ON, 0, o):
                yield "cls-hv2", ((s, statement[2], valued[2]), valued, statement)

    def _of(self, predicate: Term, place: int, term: Term) -> list[Triple]:
        return [triple for triple in self._by_predicate.get(predicate, ()) if triple[place] == term]

    def _with(self, predicate: Term, place: int, term: Term, occurrence: Triple | None) -> list[Triple]:
        """Return data of a property, or of one below it, as triples of the property itself."""
        if occurrence is not None:
            s, _, o = occurrence
            ways = [(s, predicate, o), *([(o, predicate, s)] if self._owl else [])]
            return [triple for triple in ways if triple[place] == term]
        below, pending = {predicate}, [predicate]
        while pending:
            new = {statement[0] for statement in self._of(_SUBPROPERTY, 2, pending.pop())} - below
            below |= new
            pending += new
        return [(triple[0], predicate, triple[2]) for each in sorted(below, key=str) for triple in self._of(each, place, term)]


class DerivedTriples:
    """Explains triples of the background that rest on static rules. `given` are those that rest on none."""

    def __init__(self, known: FactIndex, given: Given) -> None:
        self._known, self._given, self._all = known, given, Given(known.base_triples, owl=known.regime != RDFS_ONLY)

    def explained(self, triple: Triple) -> Steps | None:
        """Return the steps to a triple, premises first. One that rests on too much is told by the last step alone."""
        found: dict[Inference, None] = {}
        steps = self._all.explained(triple) or ()
        concluded = {step.conclusion for step in steps}
        for leaf in dict.fromkeys([premise for step in steps for premise in step.premises if premise not in concluded] or [triple]):
            if self._given.explained(leaf) is None:
                found |= dict.fromkeys(self._by_rules(leaf))
        return (*found, *(step for step in steps if step not in found))

    def _by_rules(self, triple: Triple) -> Iterable[Inference]:
        try:
            steps = self._known.explain_derived(triple)
        except TooFar:
            steps = None
        for rule, premises, conclusion in steps or ():
            for premise in premises:
                yield from self._given.explained(premise) or ()
            yield Inference(f"static rule {rule}" if rule else "rdfs", tuple(premises), conclusion)


def _is_schema(triple: Triple) -> bool:
    return triple[1] in VOCABULARY[DOMAIN:]
