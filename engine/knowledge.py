"""Background knowledge closed under RDFS: rdfs2, 3, 5, 7, 9, 11 and the reflexive facts (semantics.md section 10).

The schema of all graphs applies. What is entailed lies in the graph of its data premise: of the triple that a domain, range, superproperty
or superclass is applied to; of the left triple where subClassOf or subPropertyOf meets itself; of the triple that a reflexive fact is about.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from engine.quads import Quad
from epsparql.terms import RDF, Iri, Literal, Term

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_VOCABULARY = (
    Iri(RDF + "type"), Iri(RDF + "Property"), Iri(RDFS + "domain"), Iri(RDFS + "range"), Iri(RDFS + "subClassOf"), Iri(RDFS + "subPropertyOf"),
)  # fmt: skip
TYPE, PROPERTY, DOMAIN, RANGE, SUBCLASS, SUBPROPERTY = range(6)

Triple = tuple[Term, Term, Term]
Node = TypeVar("Node", bound=Hashable)
Numbers = tuple[int, int, int, int]
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
    relations = {_VOCABULARY[k]: k for k in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY)}
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
    kind = _VOCABULARY[TYPE]
    yield from ((subject, other, object_) for other in schema.predicates.get(predicate, ()))
    yield from ((subject, kind, of) for of in schema.subjects.get(predicate, ()))
    if not isinstance(object_, Literal):
        yield from ((object_, kind, of) for of in schema.objects.get(predicate, ()))
    if predicate == kind:
        yield from ((subject, kind, of) for of in schema.classes.get(object_, ()))


def closure(facts: Iterable[Quad]) -> list[Quad]:
    """The facts, each once, and then all that they entail."""
    return _Closure(facts).quads()


class _Closure:
    """Facts as numbers of terms, the graph last; each is expanded once for each schema, and the schema grows only where facts speak of it.

    A type or a superproperty that comes from closed relations is not expanded again: its own consequences come from them as well.
    """

    def __init__(self, facts: Iterable[Quad]) -> None:
        numbers: dict[Term | None, int] = {term: k for k, term in enumerate(_VOCABULARY)}
        numbered = [tuple(numbers.setdefault(part, len(numbers)) for part in fact) for fact in facts]
        self.terms = list(numbers)
        self.literal = [isinstance(term, Literal) for term in self.terms]
        self.known: dict[Numbers, None] = dict.fromkeys((s, p, o, g) for s, p, o, g in numbered)
        self.seen: set[tuple[int, int, int]] = set()  # classes and properties whose reflexive facts a graph has
        self.grown = True
        while self.grown:
            self._close()

    def quads(self) -> list[Quad]:
        terms = self.terms
        return [(terms[s], terms[p], terms[o], terms[g]) for s, p, o, g in self.known]  # type: ignore[misc]  # only a graph is None, or an IRI

    def _close(self) -> None:
        """Takes all facts through the schema as it stands now."""
        statements = ((s, p, o) for s, p, o, _ in self.known if DOMAIN <= p <= SUBPROPERTY)
        self.schema = Schema(statements, lambda number: isinstance(self.terms[number], Iri))
        self.about_types = self.schema.speaks_of(TYPE)
        self.grown = False
        self.pending = [*reversed(self.known)]
        while self.pending:
            self._expand(*self.pending.pop())

    def _expand(self, s: int, p: int, o: int, g: int) -> None:
        schema = self.schema
        for other in schema.predicates.get(p, ()):
            self._add(s, other, o, g, again=other <= SUBPROPERTY)
        for kind in schema.subjects.get(p, ()):
            self._add(s, TYPE, kind, g, again=self.about_types)
        if not self.literal[o]:
            for kind in schema.objects.get(p, ()):
                self._add(o, TYPE, kind, g, again=self.about_types)
        if p == TYPE:
            for kind in schema.classes.get(o, ()):
                self._add(s, TYPE, kind, g, again=self.about_types)
        elif p == SUBCLASS:
            for above in schema.classes.get(o, ()):
                self._add(s, SUBCLASS, above, g, again=True)
        elif p == SUBPROPERTY:
            for above in schema.properties.get(o, ()):
                self._add(s, SUBPROPERTY, above, g, again=True)
        self._reflect(s, p, o, g)

    def _add(self, s: int, p: int, o: int, g: int, *, again: bool) -> None:
        fact = s, p, o, g
        if fact in self.known:
            return
        self.known[fact] = None
        if DOMAIN <= p <= SUBPROPERTY and not self.schema.knows(s, p, o):
            self.grown = True
        if again:
            self.pending.append(fact)
        else:
            self._reflect(s, p, o, g)

    def _reflect(self, s: int, p: int, o: int, g: int) -> None:
        """The reflexive facts about the classes and properties of a triple."""
        self._property(p, g)
        if p in (TYPE, DOMAIN, RANGE):
            self._class(o, g)
        elif p == SUBCLASS:
            self._class(s, g)
            self._class(o, g)
        elif p == SUBPROPERTY:
            self._property(s, g)
            self._property(o, g)

    def _class(self, node: int, g: int) -> None:
        if (SUBCLASS, node, g) not in self.seen and not self.literal[node]:
            self.seen.add((SUBCLASS, node, g))
            self._add(node, SUBCLASS, node, g, again=True)

    def _property(self, node: int, g: int) -> None:
        if (SUBPROPERTY, node, g) not in self.seen and not self.literal[node]:
            self.seen.add((SUBPROPERTY, node, g))
            self._add(node, SUBPROPERTY, node, g, again=True)
            self._add(node, TYPE, PROPERTY, g, again=True)
