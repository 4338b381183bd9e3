"""What the background's schema says of classes and properties, closed, and what it makes of a triple of a stream (semantics.md section 10)."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from engine.quads import Quad
from epsparql.terms import RDF, Iri, Literal, Term

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
VOCABULARY = (
    Iri(RDF + "type"), Iri(RDF + "Property"), Iri(RDFS + "domain"), Iri(RDFS + "range"), Iri(RDFS + "subClassOf"), Iri(RDFS + "subPropertyOf"),
)  # fmt: skip
TYPE, PROPERTY, DOMAIN, RANGE, SUBCLASS, SUBPROPERTY = range(6)

Triple = tuple[Term, Term, Term]
Node = TypeVar("Node", bound=Hashable)
Closed = dict[Node, tuple[Node, ...]]


class Schema(Generic[Node]):
    """What a schema says, closed: of each class its superclasses, of each property its superproperties and what it types its ends with."""

    def __init__(self, statements: Iterable[tuple[Node, int, Node]], is_property: Callable[[Node], bool]) -> None:
        """`statements` are (subject, DOMAIN to SUBPROPERTY, object). Only a property can stand as a predicate: an IRI."""
        stated: dict[int, dict[Node, set[Node]]] = {relation: {} for relation in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY)}
        for subject, relation, value in statements:
            if subject != value or relation in (DOMAIN, RANGE):  # reflexive facts lead nowhere
                stated[relation].setdefault(subject, set()).add(value)
        self.classes: Closed[Node] = {node: _in_order(_reached(node, stated[SUBCLASS])) for node in stated[SUBCLASS]}
        self.properties: Closed[Node] = {node: _in_order(_reached(node, stated[SUBPROPERTY])) for node in stated[SUBPROPERTY]}
        self.predicates: Closed[Node] = {node: tuple(filter(is_property, found)) for node, found in self.properties.items()}
        self.subjects = self._types(stated[DOMAIN])
        self.objects = self._types(stated[RANGE])

    def _types(self, stated: dict[Node, set[Node]]) -> Closed[Node]:
        """The types of a property's subjects (or objects): what it and its superproperties state, and superclasses of that."""
        found: Closed[Node] = {}
        for node in {*stated, *self.predicates}:
            types = {kind for of in (node, *self.predicates.get(node, ())) for kind in stated.get(of, ())}
            if types:
                found[node] = _in_order(types.union(*(self.classes.get(kind, ()) for kind in types)))
        return found

    def speaks_of(self, predicate: Node) -> bool:
        """Whether a triple entails something by its predicate."""
        return predicate in self.predicates or predicate in self.subjects or predicate in self.objects

    def knows(self, subject: Node, relation: int, value: Node) -> bool:
        """Whether a statement of the schema's vocabulary adds nothing to it."""
        if relation in (SUBCLASS, SUBPROPERTY):
            return subject == value or value in (self.classes if relation == SUBCLASS else self.properties).get(subject, ())
        return value in (self.subjects if relation == DOMAIN else self.objects).get(subject, ())


def _reached(node: Node, edges: dict[Node, set[Node]]) -> set[Node]:
    found: set[Node] = set()
    pending = [node]
    while pending:
        following = edges.get(pending.pop(), set()) - found
        found |= following
        pending += following
    return found


def _in_order(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """One order on every run, which hashes of strings do not give."""
    return tuple(sorted(nodes, key=str))


def schema_of(facts: Iterable[Quad]) -> Schema[Term]:
    """The schema that facts hold."""
    relations = {VOCABULARY[k]: k for k in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY)}
    statements = ((s, relations[p], o) for s, p, o, _ in facts if isinstance(p, Iri) and p in relations)
    return Schema(statements, lambda term: isinstance(term, Iri))


def entailed(triple: Triple, schema: Schema[Term]) -> list[Triple]:
    """What a stream's triple entails by B's schema (rdfs2, 3, 7, 9), without itself."""
    found = {triple: None}
    pending = [triple]
    while pending:
        new = [t for t in _given(pending.pop(), schema) if t not in found]
        found |= dict.fromkeys(new)
        pending += new
    return list(found)[1:]


def _given(triple: Triple, schema: Schema[Term]) -> Iterator[Triple]:
    subject, predicate, object_ = triple
    kind = VOCABULARY[TYPE]
    yield from ((subject, other, object_) for other in schema.predicates.get(predicate, ()))
    yield from ((subject, kind, of) for of in schema.subjects.get(predicate, ()))
    if not isinstance(object_, Literal):
        yield from ((object_, kind, of) for of in schema.objects.get(predicate, ()))
    if predicate == kind:
        yield from ((subject, kind, of) for of in schema.classes.get(object_, ()))
