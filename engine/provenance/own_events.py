"""This module finds which of a program's rules derived its events, and from what (docs/etalis.md)."""

from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field

from engine.messages import Micros
from engine.provenance.derivation import Derivation
from engine.provenance.justify import unify_triple
from engine.provenance.model import Members, Occurrence, OwnEvent, Proof, Step, TimeBounds, Used, World
from epsparql import algebra as a
from epsparql.etalis.parser.constants import struct_literal
from epsparql.etalis.parser.vocabulary import OWN, read_event_predicate
from epsparql.terms import Iri, Term
from epsparql.trees import replace_fields

_Key = tuple[object, ...]
"""It tells an event on the own stream from others: triples of one node and interval are one event."""


@dataclass(slots=True)
class OwnEvents:
    """Explains proofs that rest on events of a program. The world has the triples of its own stream, which are `own`."""

    rules: tuple[a.Construct, ...]
    world: World
    t0: Micros
    own: InitVar[Iterable[Occurrence]]
    _arguments: dict[tuple[Term, Micros, Micros], dict[int, Term]] = field(
        default_factory=dict
    )  # of events with three and more, by node and interval
    _found: dict[_Key, tuple[Step, ...]] = field(default_factory=dict)
    _above: set[_Key] = field(default_factory=set)

    def __post_init__(self, own: Iterable[Occurrence]) -> None:
        for each in own:
            node, predicate, value = each.triple
            if isinstance(predicate, Iri) and (read := read_event_predicate(predicate.value)) is not None and read[2]:
                self._arguments.setdefault((node, each.start, each.end), {})[read[2]] = value

    def explain(self, proof: Proof) -> Proof | None:
        """Return a proof in which each event of the program has the rule that derived it; None if that would be a
        circle.
        """
        steps: dict[object, tuple[Step, ...]] = {}
        for k, step in enumerate(proof.steps):
            if isinstance(step, Used) and isinstance(step.given, Occurrence) and step.given.stream == OWN:
                if (key := _key_of(step.given)) in steps:
                    continue
                found = self._derive(step.given, key)
                if found is None:
                    return None
                steps[key] = found
            elif isinstance(step, Members):
                shown = [self.explain(each) for each in step.shown]
                if None in shown:
                    return None
                steps[k] = (replace_fields(step, shown=tuple(each for each in shown if each is not None)),)
            else:
                steps[k] = (step,)
        return replace_fields(proof, steps=tuple(each for found in steps.values() for each in found))

    def _derive(self, given: Occurrence, key: _Key) -> tuple[Step, ...] | None:
        """Return the steps to an event: itself, with the rule that derived it, or what was sent of it."""
        if key in self._above:
            return None
        if key not in self._found:
            self._above.add(key)
            found = self._find_rule(given)
            self._above.discard(key)
            if found is None:
                return None
            self._found[key] = found
        return self._found[key]

    def _find_rule(self, given: Occurrence) -> tuple[Step, ...] | None:
        derivation = Derivation(self.world, self.t0, given.end)
        for rule in self.rules:
            for bound in filter(None, (unify_triple(pattern, given.triple) for pattern in rule.template)):
                for proof in derivation.proofs(rule.pattern, bound, TimeBounds(given.start, given.end)):
                    if (proof.start, proof.end) == (given.start, given.end) and (told := self.explain(proof)) is not None:
                        return (OwnEvent(self._write(given), rule.label, told),) if rule.label else told.steps
        return None

    def _write(self, given: Occurrence) -> str:
        """Return an event as programs have it; one that is a triple, in N-Triples."""
        subject, predicate, value = given.triple
        read = read_event_predicate(predicate.value) if isinstance(predicate, Iri) else None
        if read is None:
            return "{} {} {} .".format(*given.triple)
        name, arity, _ = read
        known = self._arguments.get((subject, given.start, given.end), {}) if arity > 2 else {}
        parts = [known[k] for k in sorted(known)] if known else (subject, value)[2 - arity :]
        return struct_literal(name, parts).lexical.removesuffix("()")


def _key_of(given: Occurrence) -> _Key:
    subject, predicate, value = given.triple
    read = read_event_predicate(predicate.value) if isinstance(predicate, Iri) else None
    one_of_many = read is not None and read[2] > 0
    return str(predicate) if read is None else read[:2], subject, None if one_of_many else value, given.start, given.end


__all__ = ["OwnEvents"]
