"""Background knowledge is closed under RDFS: rdfs2, 3, 5, 7, 9, 11 and the reflexive facts (semantics.md section 10).

The schema of all graphs applies. What is entailed lies in the graph of its data premise: of the triple that a domain, range, superproperty
or superclass is applied to; of the left triple where subClassOf or subPropertyOf meets itself; of the triple that a reflexive fact is about.
"""

from collections.abc import Iterable

from engine.background.reasoning.rdfs_schema import DOMAIN, PROPERTY, RANGE, SUBCLASS, SUBPROPERTY, TYPE, VOCABULARY, Schema
from engine.triples.quads import Quad
from epsparql.terms import Iri, Literal, Term

Fact = tuple[int, int, int, int]


def closure(facts: Iterable[Quad]) -> list[Quad]:
    """Return the facts, each once, and then all that they entail."""
    return _Closure(facts).quads()


class _Closure:
    """Closes facts, which are numbers of terms, the graph last.

    Each fact is expanded once for each schema, and the schema grows only where facts speak of it.

    A type or a superproperty that comes from closed relations is not expanded again: its own consequences come from them as well.
    """

    def __init__(self, facts: Iterable[Quad]) -> None:
        numbers: dict[Term | None, int] = {term: k for k, term in enumerate(VOCABULARY)}
        numbered = [tuple(numbers.setdefault(part, len(numbers)) for part in fact) for fact in facts]
        self.terms = list(numbers)
        self.literal = [isinstance(term, Literal) for term in self.terms]
        self.known: dict[Fact, None] = dict.fromkeys((s, p, o, g) for s, p, o, g in numbered)
        self.seen: set[tuple[int, int, int]] = set()  # classes and properties whose reflexive facts a graph has
        self.grown = True
        while self.grown:
            self._close_facts()

    def quads(self) -> list[Quad]:
        terms = self.terms
        return [(terms[s], terms[p], terms[o], terms[g]) for s, p, o, g in self.known]  # type: ignore[misc]  # only a graph is None, or an IRI

    def _close_facts(self) -> None:
        """Take all facts through the schema as it stands now."""
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
            self._add_fact(s, other, o, g, again=other <= SUBPROPERTY)
        for kind in schema.subjects.get(p, ()):
            self._add_fact(s, TYPE, kind, g, again=self.about_types)
        if not self.literal[o]:
            for kind in schema.objects.get(p, ()):
                self._add_fact(o, TYPE, kind, g, again=self.about_types)
        if p == TYPE:
            for kind in schema.classes.get(o, ()):
                self._add_fact(s, TYPE, kind, g, again=self.about_types)
        elif p == SUBCLASS:
            for above in schema.classes.get(o, ()):
                self._add_fact(s, SUBCLASS, above, g, again=True)
        elif p == SUBPROPERTY:
            for above in schema.properties.get(o, ()):
                self._add_fact(s, SUBPROPERTY, above, g, again=True)
        self._reflect(s, p, o, g)

    def _add_fact(self, s: int, p: int, o: int, g: int, *, again: bool) -> None:
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
        """Add the reflexive facts about the classes and properties of a triple."""
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
            self._add_fact(node, SUBCLASS, node, g, again=True)

    def _property(self, node: int, g: int) -> None:
        if (SUBPROPERTY, node, g) not in self.seen and not self.literal[node]:
            self.seen.add((SUBPROPERTY, node, g))
            self._add_fact(node, SUBPROPERTY, node, g, again=True)
            self._add_fact(node, TYPE, PROPERTY, g, again=True)
