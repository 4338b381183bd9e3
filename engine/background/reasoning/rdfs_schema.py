"""A schema says, closed, what holds of classes and properties, and what a stream's triple entails by that
(semantics.md section 10).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from engine.background.reasoning.class_hierarchy import EMPTY, Closed, Hierarchy, Node, differing, linked, relinked, sort_nodes
from engine.triples.quads import Quad
from epsparql.terms import RDF, Iri, Literal, Term

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
VOCABULARY = (
    Iri(RDF + "type"), Iri(RDF + "Property"), Iri(RDFS + "domain"), Iri(RDFS + "range"), Iri(RDFS + "subClassOf"), Iri(RDFS + "subPropertyOf"),
    *(Iri("http://www.w3.org/2002/07/owl#" + name) for name in ("inverseOf", "hasValue", "onProperty")),
)  # fmt: skip
TYPE, PROPERTY, DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, INVERSE, VALUE, ON = range(9)
OF_OWL = INVERSE, VALUE, ON
"""These relations count where OWL does."""
SAME = Iri("http://www.w3.org/2002/07/owl#sameAs")
OWL_STATES = ((SAME, INVERSE, SAME),)
"""OWL 2 RL says this of its own words, and it makes more of a stream's triple (eq-sym)."""

Triple = tuple[Term, Term, Term]
Statement = tuple[Node, int, Node]
"""A statement is a subject, a relation (DOMAIN to SUBPROPERTY; those of OWL where it counts) and an object."""
Values = dict[Node, tuple[tuple[Node, Node], ...]]
"""Each class of all that have a value of a property has its pairs of property and value here."""


class Schema(Generic[Node]):
    """Holds what a schema says, closed: superclasses of classes, superproperties of properties, and what properties
    type their ends with.

    Only what is stated is kept; the rest is found when it is asked for. It never changes: `changed` gives another
    one, which shares with it what they have in common.
    """

    def __init__(self, statements: Iterable[Statement[Node]], is_property: Callable[[Node], bool]) -> None:
        """Make a schema of statements; only a property, which is an IRI, can stand as a predicate."""
        stated = _by_relation(statements)
        self._is_property = is_property
        self.inverses, self._valued, self._on = (linked(stated[relation]) for relation in OF_OWL)
        self._hold(Hierarchy(stated[SUBCLASS]), Hierarchy(stated[SUBPROPERTY]), linked(stated[DOMAIN]), linked(stated[RANGE]))

    def _hold(self, classes: Hierarchy[Node], properties: Hierarchy[Node], domains: Closed[Node], ranges: Closed[Node]) -> None:
        self.classes, self.properties, self._domains, self._ranges = classes, properties, domains, ranges
        self.predicates = Predicates(properties, self._is_property)
        self.subjects = Types(domains, properties, self.predicates, classes)
        self.objects = Types(ranges, properties, self.predicates, classes)
        self.values: Values[Node] = {
            kind: found
            for kind, values in self._valued.items()
            if (found := tuple((p, value) for p in self._on.get(kind, ()) if self._is_property(p) for value in values))
        }
        self.having: dict[tuple[Node, Node], list[Node]] = {}
        """Each pair of a property and a value has the classes of what has that value."""
        for kind, pairs in self.values.items():
            for pair in pairs:
                self.having.setdefault(pair, []).append(kind)

    def with_statements(self, added: Iterable[Statement[Node]], removed: Iterable[Statement[Node]] = ()) -> "Schema[Node]":
        """Return the schema with other statements, as a set.

        A statement that several graphs make is removed when the last of them has lost it.
        """
        more, fewer = _by_relation(added), _by_relation(removed)
        found: Schema[Node] = Schema((), self._is_property)
        found.inverses, found._valued, found._on = (
            relinked(stated, more[relation], fewer[relation])
            for stated, relation in zip((self.inverses, self._valued, self._on), OF_OWL, strict=True)
        )
        found._hold(
            self.classes.with_links(more[SUBCLASS], fewer[SUBCLASS]),
            self.properties.with_links(more[SUBPROPERTY], fewer[SUBPROPERTY]),
            relinked(self._domains, more[DOMAIN], fewer[DOMAIN]),
            relinked(self._ranges, more[RANGE], fewer[RANGE]),
        )
        return found

    @property
    def statements(self) -> Iterator[Statement[Node]]:
        """Yield the statements that the schema was made of, but for reflexive ones."""
        yield from ((node, SUBCLASS, above) for node, above in self.classes.links)
        yield from ((node, SUBPROPERTY, above) for node, above in self.properties.links)
        relations = ((DOMAIN, self._domains), (RANGE, self._ranges), (INVERSE, self.inverses), (VALUE, self._valued), (ON, self._on))
        for relation, stated in relations:
            yield from ((node, relation, kind) for node, kinds in stated.items() for kind in kinds)

    def differing(self, other: "Schema[Node]") -> tuple[set[Node], set[Node]]:
        """Return classes whose superclasses may be others in the other schema, and properties that may entail
        something else there.
        """
        classes = self.classes.differing(other.classes)
        properties = self.properties.differing(other.properties)
        for mine, others in ((self._domains, other._domains), (self._ranges, other._ranges)):
            stated = {*differing(mine, others), *_of_classes(mine, classes), *_of_classes(others, classes)}
            properties |= stated | self.properties.all_below(stated) | other.properties.all_below(stated)
        if properties or self.inverses != other.inverses:  # what is entailed of an inverse is entailed of the property itself
            for schema in (self, other):
                if schema.inverses:
                    properties.update(schema.speaking())
        if self.values != other.values or (self.values and (classes or properties)):  # a value may be told of anything, and of all that is typed
            properties.update(self.speaking(), other.speaking())
        return classes, properties

    def speaking(self) -> set[Node]:
        """Return the properties whose triples entail something."""
        return {*self.predicates, *self.subjects, *self.objects, *self.inverses, *(p for p, _ in self.having)}


class Predicates(Generic[Node]):
    """Maps a property to those above it that can stand as predicates."""

    def __init__(self, properties: Hierarchy[Node], is_property: Callable[[Node], bool]) -> None:
        self._properties, self._is_property = properties, is_property

    def __contains__(self, node: Node) -> bool:
        return node in self._properties

    def __iter__(self) -> Iterator[Node]:
        return iter(self._properties)

    def get(self, node: Node, default: tuple[Node, ...] = EMPTY) -> tuple[Node, ...]:
        return tuple(filter(self._is_property, self._properties.get(node))) if node in self._properties else default


class Types(Generic[Node]):
    """Maps a property to the types of its subjects (or objects).

    They are what the property and its superproperties state, and superclasses of that.
    """

    def __init__(self, stated: Closed[Node], properties: Hierarchy[Node], predicates: Predicates[Node], classes: Hierarchy[Node]) -> None:
        self._stated, self._properties, self._predicates, self._classes = stated, properties, predicates, classes
        self._found: Closed[Node] = {}

    def __contains__(self, node: Node) -> bool:
        return bool(self.get(node))

    def __iter__(self) -> Iterator[Node]:
        speaking = {*self._stated} | self._properties.all_below(self._stated)
        return (node for node in sort_nodes(speaking) if self.get(node))

    def get(self, node: Node, default: tuple[Node, ...] = EMPTY) -> tuple[Node, ...]:
        found = self._found.get(node)
        if found is None:
            if node not in self._stated and node not in self._properties:
                return default
            types = {kind for of in (node, *self._predicates.get(node)) for kind in self._stated.get(of, ())}
            found = self._found[node] = sort_nodes(types.union(*(self._classes.get(kind) for kind in types)))
        return found or default


def _by_relation(statements: Iterable[Statement[Node]]) -> dict[int, list[tuple[Node, Node]]]:
    found: dict[int, list[tuple[Node, Node]]] = {relation: [] for relation in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, *OF_OWL)}
    for subject, relation, value in statements:
        found[relation].append((subject, value))
    return found


def _of_classes(stated: Closed[Node], classes: set[Node]) -> Iterator[Node]:
    """Yield the properties for which a type among `classes` is stated."""
    return (node for node, types in stated.items() if not classes.isdisjoint(types))


def statements_of(facts: Iterable[Quad], owl: bool = False) -> Iterator[Statement[Term]]:
    """Yield the facts that are a schema's; with `owl` properties may have inverses, and classes values."""
    relations = {VOCABULARY[k]: k for k in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, *(OF_OWL if owl else ()))}
    yield from OWL_STATES if owl else ()
    yield from ((s, relations[p], o) for s, p, o, _ in facts if isinstance(p, Iri) and p in relations)


def schema_of(facts: Iterable[Quad], owl: bool = False) -> Schema[Term]:
    """Return the schema that facts hold."""
    return schema_stating(statements_of(facts, owl))


def schema_stating(statements: Iterable[Statement[Term]]) -> Schema[Term]:
    return Schema(statements, lambda term: isinstance(term, Iri))


def entailed(triple: Triple, schema: Schema[Term]) -> list[Triple]:
    """Return what a stream's triple entails by the background's schema, without itself.

    The rules are rdfs2, 3, 7, 9, and prp-inv, cls-hv1 and cls-hv2 of OWL 2 RL.
    """
    found = {triple: None}
    pending = [triple]
    while pending:
        new = [t for t in _list_entailed(pending.pop(), schema) if t not in found]
        found |= dict.fromkeys(new)
        pending += new
    return list(found)[1:]


def _list_entailed(triple: Triple, schema: Schema[Term]) -> Iterator[Triple]:
    subject, predicate, object_ = triple
    kind = VOCABULARY[TYPE]
    yield from ((subject, other, object_) for other in schema.predicates.get(predicate))
    yield from ((subject, kind, of) for of in schema.subjects.get(predicate))
    if not isinstance(object_, Literal):
        yield from ((object_, kind, of) for of in schema.objects.get(predicate))
        yield from ((object_, other, subject) for other in schema.inverses.get(predicate, ()) if isinstance(other, Iri))
    if predicate == kind:
        yield from ((subject, kind, of) for of in schema.classes.get(object_))
        yield from ((subject, of, value) for of, value in schema.values.get(object_, ()))
    yield from ((subject, kind, of) for of in schema.having.get((predicate, object_), ()))
