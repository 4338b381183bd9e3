"""This module gives what streams entail under OWL 2 RL in the reference evaluator.

It has each rule with one premise that is no schema's, as the profile prints it.

Source: OWL 2 Profiles, section 4.3. Beside its rules stands someValuesFrom where the property's range is known to be
of the class: then whatever has the property is of the restriction (docs/background.md).
"""

from collections.abc import Iterable, Iterator, Mapping

from epsparql.terms import RDF, Iri, Literal, Term
from verification.definitions.model import Fact, Occurrence, Triple
from verification.definitions.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, TYPE

OWL = "http://www.w3.org/2002/07/owl#"
INVERSE, SYMMETRIC, SAME, THING = (Iri(OWL + name) for name in ("inverseOf", "SymmetricProperty", "sameAs", "Thing"))
SAME_CLASS, SAME_PROPERTY = Iri(OWL + "equivalentClass"), Iri(OWL + "equivalentProperty")
ON, VALUE, SOME = (Iri(OWL + name) for name in ("onProperty", "hasValue", "someValuesFrom"))
INTERSECTION, UNION = Iri(OWL + "intersectionOf"), Iri(OWL + "unionOf")
FIRST, REST = Iri(RDF + "first"), Iri(RDF + "rest")
Pairs = list[tuple[Term, Term]]


def entailed(occurrences: Iterable[Occurrence], facts: Iterable[Fact]) -> frozenset[Occurrence]:
    """The occurrences with what they entail by facts as they are given, on their intervals and in their graphs."""
    schema = Schema(fact.triple for fact in facts)
    known = frozenset(occurrences)
    while True:
        found = {Occurrence(triple, o.start, o.end, o.graph) for o in known for triple in schema.given(o.triple) if _is_triple(triple)}
        if found <= known:
            return known
        known |= found


def _is_triple(triple: Triple) -> bool:
    return not isinstance(triple[0], Literal) and isinstance(triple[1], Iri)


class Schema:
    def __init__(self, facts: Iterable[Triple]) -> None:
        self.stated: dict[Term, Pairs] = {}
        for subject, predicate, object_ in facts:
            self.stated.setdefault(predicate, []).append((subject, object_))

    def of(self, relation: Term) -> Pairs:
        return self.stated.get(relation, [])

    def given(self, data: Triple) -> Iterator[Triple]:
        """Yield what one step makes of a triple."""
        yield from self._by_property(*data)
        yield from self._by_value(*data)
        if data[1] == TYPE:
            yield from self._by_class(data[0], data[2])

    def _by_property(self, x: Term, p: Term, y: Term) -> Iterator[Triple]:
        yield from ((x, TYPE, of) for property_, of in self.of(DOMAIN) if property_ == p)  # prp-dom
        yield from ((y, TYPE, of) for property_, of in self.of(RANGE) if property_ == p)  # prp-rng
        yield from ((x, above, y) for property_, above in self.of(SUBPROPERTY) if property_ == p)  # prp-spo1
        yield from ((x, other, y) for property_, other in self.of(SAME_PROPERTY) if property_ == p)  # prp-eqp1
        yield from ((x, property_, y) for property_, other in self.of(SAME_PROPERTY) if other == p)  # prp-eqp2
        yield from ((y, other, x) for property_, other in self.of(INVERSE) if property_ == p)  # prp-inv1
        yield from ((y, property_, x) for property_, other in self.of(INVERSE) if other == p)  # prp-inv2
        if (p, SYMMETRIC) in self.of(TYPE) or p == SAME:  # prp-symp, eq-sym
            yield y, p, x

    def _by_value(self, x: Term, p: Term, y: Term) -> Iterator[Triple]:
        for restriction, property_ in self.of(ON):
            if property_ == p:
                if (restriction, y) in self.of(VALUE):  # cls-hv2
                    yield x, TYPE, restriction
                if any(kind == THING or self._ranges(p, kind) for of, kind in self.of(SOME) if of == restriction):  # cls-svf2
                    yield x, TYPE, restriction

    def _by_class(self, x: Term, kind: Term) -> Iterator[Triple]:
        yield from ((x, TYPE, above) for of, above in self.of(SUBCLASS) if of == kind)  # cax-sco
        yield from ((x, TYPE, other) for of, other in self.of(SAME_CLASS) if of == kind)  # cax-eqc1
        yield from ((x, TYPE, of) for of, other in self.of(SAME_CLASS) if other == kind)  # cax-eqc2
        for of, property_ in self.of(ON):
            yield from ((x, property_, value) for having, value in self.of(VALUE) if having == of == kind)  # cls-hv1
        for of, parts in self.of(INTERSECTION):
            yield from ((x, TYPE, part) for part in self._listed(parts) if of == kind)  # cls-int2
        for of, parts in self.of(UNION):
            yield from ((x, TYPE, of) for part in self._listed(parts) if part == kind)  # cls-uni

    def _ranges(self, p: Term, kind: Term) -> bool:
        """Return whether the property's range is known to be of a class."""
        above = _closed({p}, [*self.of(SUBPROPERTY), *_both_ways(self.of(SAME_PROPERTY))])
        stated = {of for property_, of in self.of(RANGE) if property_ in above}
        return kind in _closed(stated, [*self.of(SUBCLASS), *_both_ways(self.of(SAME_CLASS))])

    def _listed(self, head: Term) -> list[Term]:
        first: Mapping[Term, Term] = dict(self.of(FIRST))
        rest: Mapping[Term, Term] = dict(self.of(REST))
        found = list[Term]()
        while head in first:
            found.append(first[head])
            head = rest[head]
        return found


def _both_ways(pairs: Pairs) -> Pairs:
    return [*pairs, *((y, x) for x, y in pairs)]


def _closed(nodes: set[Term], links: Pairs) -> set[Term]:
    while more := {above for below, above in links if below in nodes} - nodes:
        nodes = nodes | more
    return nodes
