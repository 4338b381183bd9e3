"""What triples of streams entail by the background's schema, with placeholders for the terms that a stream brings (semantics.md section 10).

The rules are schema.py's own, applied to a triple of each predicate that the schema speaks of, and to one that types its subject with a class that
stands for all superclasses of the stream's own.
"""

from collections.abc import Iterator

from engine.schema import Schema, Triple, entailed
from epsparql.terms import RDF, Iri, Literal, Term

TYPE = Iri(RDF + "type")
SUBJECT, OBJECT = Iri("\0subject"), Iri("\0object")
"""In a conclusion, the subject and object of the stream's triple."""
_CLASS = Iri("\0class")
Pattern = tuple[Term | None, Term | None]
"""Predicate and object of a triple pattern; None is a variable."""


class Entailment:
    """Of each predicate what its triples entail, whatever their objects are; and what those that type their subjects entail by the class's superclasses."""

    def __init__(self, schema: Schema[Term], before: "Entailment | None" = None) -> None:
        """`before`: what to start from, if the schema was another one."""
        self.schema = schema
        self.of_class = tuple(t for t in ((SUBJECT, TYPE, _CLASS), *entailed((SUBJECT, TYPE, _CLASS), schema)) if _CLASS in t)
        self.of_predicate: dict[Term, tuple[Triple, ...]]
        self.typing: tuple[Term, ...]
        """The predicates whose triples type their subjects with their objects."""
        self._concluding: dict[Pattern, list[Term]]  # by predicate and object of what they entail, once it is asked for
        touched = None if before is None else before.schema.differing(schema)[1]
        if before is not None and not touched:
            self.of_predicate, self.typing, self._concluding = before.of_predicate, before.typing, before._concluding
            return
        known: dict[Term, tuple[Triple, ...]] = {}
        if before is not None and touched and TYPE not in touched:  # whatever types something entails what rdf:type does
            known = {p: found for p, found in before.of_predicate.items() if p not in touched}
        properties = schema.speaking()
        found = known | {p: tuple(entailed((SUBJECT, p, OBJECT), schema)) for p in properties - known.keys()}
        self.of_predicate = {p: found[p] for p in sorted(found, key=str)}
        self.typing = (TYPE, *(p for p, conclusions in self.of_predicate.items() if (SUBJECT, TYPE, OBJECT) in conclusions))
        self._concluding = {}

    def concluding(self, pattern: Pattern) -> list[Term]:
        """The predicates whose triples entail one of a pattern, whatever their objects; OBJECT in it stands for an object that stays."""
        if self.of_predicate and not self._concluding:
            self._index()
        predicate, object_ = pattern
        found = self._concluding.get(pattern, [])
        return found if object_ in (None, OBJECT) else [*dict.fromkeys((*found, *self._concluding.get((predicate, SUBJECT), ())))]

    def _index(self) -> None:
        found: dict[Pattern, dict[Term, None]] = {}
        for predicate, conclusions in self.of_predicate.items():
            for _, p, o in conclusions:
                for pattern in ((p, o), (p, None), (None, o), (None, None)):
                    found.setdefault(pattern, {})[predicate] = None
        self._concluding |= {pattern: list(predicates) for pattern, predicates in found.items()}

    def concludes_by_class(self, pattern: Pattern) -> bool:
        """Whether what triples entail by superclasses of their objects may be of a pattern."""
        predicate, object_ = pattern
        return any(predicate in (None, p) and (object_ is None or o in (_CLASS, object_)) for _, p, o in self.of_class)

    def of_class_above(self, above: Term) -> Iterator[Triple]:
        """What a triple entails because this class is above its object."""
        for s, p, o in self.of_class:
            if s != _CLASS or not isinstance(above, Literal):
                yield above if s == _CLASS else s, p, above if o == _CLASS else o

    def only_types(self, pattern: Pattern) -> bool:
        """Whether what triples entail by superclasses of their object is of the pattern only if the pattern's object is one of these."""
        predicate, object_ = pattern
        return all(o == _CLASS for _, p, o in self.of_class if predicate in (None, p) and o in (_CLASS, object_))

    def reaches(self, predicate: Term, pattern: Pattern) -> bool:
        """Whether triples of a predicate, or what they entail, may be of a pattern."""
        conclusions = ((SUBJECT, predicate, OBJECT), *self.of_predicate.get(predicate, ()))
        return any(is_of(triple, pattern) for triple in conclusions)


def is_of(conclusion: Triple, pattern: Pattern) -> bool:
    """Whether a conclusion may be of a pattern."""
    _, p, o = conclusion
    return pattern[0] in (None, p) and (pattern[1] in (None, o) or o in (SUBJECT, OBJECT))
