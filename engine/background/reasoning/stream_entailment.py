"""Triples of streams entail others by the background's schema; placeholders stand for the terms that a stream brings
(semantics.md section 10).

The rules are rdfs_schema.py's own, applied to a triple of each predicate that the schema speaks of. They are also
applied to a triple that types its subject with a class standing for all superclasses of the stream's own. Conclusions
that need a certain subject or object are found by applying the rules to that.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

from engine.background.reasoning.rdfs_schema import Schema, Triple, entailed
from epsparql.deferred_methods import dataclass
from epsparql.terms import RDF, Iri, Literal, Term

TYPE = Iri(RDF + "type")
SUBJECT, OBJECT = Iri("\0subject"), Iri("\0object")
"""They stand in a conclusion for the subject and object of the stream's triple."""
_CLASS = Iri("\0class")
_LITERAL = Literal("\0object")
Pattern = tuple[Term | None, Term | None]
"""A pattern is the predicate and object of a triple pattern; None is a variable."""
Pair = tuple[Term | None, Term]
"""A pair is the predicate (None for any) and object of a stream's triple."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Represents a triple that a stream's triple entails.

    The latter's object must be a `resource` where that matters, and its subject must be `of` where that does.
    """

    triple: Triple
    resource: bool = False
    of: Term | None = None


Conclusions = tuple[Conclusion, ...]


class Entailment:
    """Says what triples of each predicate entail, whatever their objects are.

    It also says what triples that type their subjects entail by the class's superclasses.
    """

    def __init__(self, schema: Schema[Term], before: "Entailment | None" = None) -> None:
        """Apply the rules to a schema, starting from `before` if the schema was another one."""
        self.schema = schema
        self.of_class = tuple(found for found in (Conclusion((SUBJECT, TYPE, _CLASS)), *self._conclusions(TYPE, _CLASS)) if _CLASS in found.triple)
        self.of_predicate: dict[Term, Conclusions]
        self.typing: tuple[Term, ...]
        """Triples of these predicates type their subjects with their objects."""
        self._concluding: dict[Pattern, list[Term]]  # by predicate and object of what they entail, once it is asked for
        touched = None if before is None else before.schema.differing(schema)[1]
        if before is not None and not touched:
            self.of_predicate, self.typing, self._concluding = before.of_predicate, before.typing, before._concluding
            return
        known: dict[Term, Conclusions] = {}
        if before is not None and touched and TYPE not in touched:  # whatever types something entails what rdf:type does
            known = {p: found for p, found in before.of_predicate.items() if p not in touched}
        properties = schema.speaking()
        found = known | {p: self._conclusions(p, OBJECT) for p in properties - known.keys()}
        self.of_predicate = {p: found[p] for p in sorted(found, key=str)}
        typed = SUBJECT, TYPE, OBJECT
        self.typing = (TYPE, *(p for p, conclusions in self.of_predicate.items() if any(each.triple == typed for each in conclusions)))
        self._concluding = {}

    # ------------------------------------------------------------ the rules
    def _conclusions(self, predicate: Term, object_: Term) -> Conclusions:
        """Return what a triple of a predicate and this object (or placeholder) entails."""
        anyway = entailed((SUBJECT, predicate, object_), self.schema)
        resources = self._of_resources((SUBJECT, predicate, object_), anyway)
        found = [Conclusion(triple, triple in resources) for triple in anyway]
        for subject in self._told_subjects(anyway):
            known = {_replace_term(triple, SUBJECT, subject) for triple in anyway}
            more = [triple for triple in entailed((subject, predicate, object_), self.schema) if triple not in known]
            resources = self._of_resources((subject, predicate, object_), more)
            found += [Conclusion(triple, triple in resources, subject) for triple in more]
        return tuple(found)

    def _of_resources(self, triple: Triple, conclusions: Iterable[Triple]) -> set[Triple]:
        """Return the conclusions that a triple has only if its object is a resource.

        There are none without a placeholder for the object, because its kind is known then.
        """
        subject, predicate, object_ = triple
        if object_ not in (OBJECT, _CLASS):
            return set()
        of_literal = {_replace_term(each, _LITERAL, object_) for each in entailed((subject, predicate, _LITERAL), self.schema)}
        return {each for each in conclusions if each not in of_literal}

    def _told_subjects(self, conclusions: Iterable[Triple]) -> tuple[Term, ...]:
        """Return the subjects of which more is known than of subjects in general, by a conclusion that has the
        subject as its object.
        """
        schema, turned = self.schema, {p for _, p, o in conclusions if o == SUBJECT}
        found = {value for p, value in schema.having if p in turned}
        if TYPE in turned:
            found |= {*schema.classes, *schema.values}
        return tuple(sorted(found, key=str))

    @cached_property
    def of_pair(self) -> dict[Pair, Conclusions]:
        """Return, by predicate and object of triples, what they entail because there are classes of what has that
        object, or classes that have values.
        """
        schema, found = self.schema, dict[Pair, Conclusions]()
        if not schema.values:
            return found
        for predicate in dict.fromkeys((TYPE, *self.of_predicate)):
            known = set(self.of_predicate.get(predicate, ()))
            for object_ in self._told_objects(predicate):
                conclusions = (_of_object(each, object_) for each in self._conclusions(predicate, object_))
                if more := tuple(each for each in conclusions if each not in known):
                    found[predicate, object_] = more
        return found

    def _told_objects(self, predicate: Term) -> tuple[Term, ...]:
        """Return the objects of which more is known than of objects in general, where triples of a predicate have them."""
        schema, keeping = self.schema, [each.triple for each in self.of_predicate.get(predicate, ()) if each.triple[2] == OBJECT]
        predicates = {predicate, *(p for _, p, _ in keeping)}
        found = {value for p, value in schema.having if p in predicates}
        if TYPE in predicates:
            found |= schema.values.keys()
            found |= schema.classes.all_below(found)
        if any(p == TYPE and s != SUBJECT for s, p, _ in keeping):  # another is typed, of which no list of superclasses tells
            found |= {*schema.classes}
        return tuple(sorted(found, key=str))

    # ------------------------------------------------------------ what is asked
    def concluding(self, pattern: Pattern) -> list[Term]:
        """Return the predicates whose triples entail one of a pattern, whatever their objects.

        OBJECT in the pattern stands for an object that stays.
        """
        if self.of_predicate and not self._concluding:
            self._index()
        predicate, object_ = pattern
        found = self._concluding.get(pattern, [])
        return found if object_ in (None, OBJECT) else [*dict.fromkeys((*found, *self._concluding.get((predicate, SUBJECT), ())))]

    def _index(self) -> None:
        found: dict[Pattern, dict[Term, None]] = {}
        for predicate, conclusions in self.of_predicate.items():
            for each in conclusions:
                _, p, o = each.triple
                for pattern in ((p, o), (p, None), (None, o), (None, None)):
                    found.setdefault(pattern, {})[predicate] = None
        self._concluding |= {pattern: list(predicates) for pattern, predicates in found.items()}

    def told(self, pattern: Pattern) -> list[Pair]:
        """Return the pairs of `of_pair` whose triples entail one of a pattern."""
        return [pair for pair, conclusions in self.of_pair.items() if any(is_of(each.triple, pattern) for each in conclusions)]

    def concludes_by_class(self, pattern: Pattern) -> bool:
        """Return whether what triples entail by superclasses of their objects may be of a pattern."""
        return any(is_of(each.triple, pattern) for each in self.of_class)

    def of_class_above(self, above: Term) -> Iterator[Conclusion]:
        """Yield what a triple entails because this class is above its object."""
        for each in self.of_class:
            s, p, o = each.triple
            if not (each.resource and isinstance(above, Literal)):
                yield Conclusion((above if s == _CLASS else s, p, above if o == _CLASS else o), of=each.of)

    def only_types(self, pattern: Pattern) -> bool:
        """Return whether conclusions by an object's superclasses are of the pattern only if the pattern's object is
        one of these superclasses.
        """
        predicate, object_ = pattern
        return all(o == _CLASS for _, p, o in (each.triple for each in self.of_class) if predicate in (None, p) and o in (_CLASS, SUBJECT, object_))

    def reaches(self, predicate: Term, pattern: Pattern) -> bool:
        """Return whether triples of a predicate, or what they entail, may be of a pattern."""
        if is_of((SUBJECT, predicate, OBJECT), pattern) or any(is_of(each.triple, pattern) for each in self.of_predicate.get(predicate, ())):
            return True
        return any(pair[0] == predicate for pair in self.told(pattern))


def is_of(conclusion: Triple, pattern: Pattern) -> bool:
    """Return whether a conclusion may be of a pattern."""
    _, p, o = conclusion
    return pattern[0] in (None, p) and (pattern[1] in (None, o) or o in (SUBJECT, OBJECT, _CLASS))


def _replace_term(triple: Triple, term: Term, other: Term) -> Triple:
    s, p, o = triple
    return other if s == term else s, p, other if o == term else o


def _of_object(conclusion: Conclusion, object_: Term) -> Conclusion:
    return Conclusion(_replace_term(conclusion.triple, object_, OBJECT), conclusion.resource, conclusion.of)
