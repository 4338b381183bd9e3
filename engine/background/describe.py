"""DESCRIBE gives concise bounded descriptions (semantics.md section 7).

Source: P. Stickler, CBD - Concise Bounded Description, W3C Member Submission, 2005.
"""

from collections import defaultdict
from collections.abc import Iterable

from epsparql.terms import RDF, BlankNode, Iri, Term

Triple = tuple[Term, Term, Term]

_PARTS = (Iri(RDF + "subject"), Iri(RDF + "predicate"), Iri(RDF + "object"))


class Descriptions:
    """Finds statements by what they are about, and by what they are reified by."""

    def __init__(self, facts: Iterable[Triple]) -> None:
        self._about: defaultdict[Term, list[Triple]] = defaultdict(list)
        parts: tuple[defaultdict[Term, list[Term]], ...] = (defaultdict(list), defaultdict(list), defaultdict(list))
        for fact in dict.fromkeys(facts):
            self._about[fact[0]].append(fact)
            if fact[1] in _PARTS:
                parts[_PARTS.index(fact[1])][fact[0]].append(fact[2])
        subjects, predicates, objects = parts
        self._reified: defaultdict[Triple, list[Term]] = defaultdict(list)
        for node, found in subjects.items():
            for triple in ((s, p, o) for s in found for p in predicates.get(node, ()) for o in objects.get(node, ())):
                self._reified[triple].append(node)

    def describe_terms(self, terms: Iterable[Term]) -> list[Triple]:
        """Return all statements about the terms, about the blank nodes these lead to, and about the reifications of all of these, sorted by text."""
        pending = list(terms)
        described = set(pending)
        found: list[Triple] = []
        while pending:
            for statement in self._about.get(pending.pop(), ()):
                found.append(statement)
                object_ = statement[2]
                following = [*self._reified.get(statement, ()), *((object_,) if isinstance(object_, BlankNode) else ())]
                pending += (term for term in dict.fromkeys(following) if term not in described)
                described.update(following)
        return sorted(found, key=lambda triple: tuple(map(str, triple)))


def description(terms: Iterable[Term], facts: Iterable[Triple]) -> list[Triple]:
    """Return the concise bounded description of the terms over the facts."""
    return Descriptions(facts).describe_terms(terms)
