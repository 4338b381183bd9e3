"""RDFS entails rows of subject, object and graph from given triples, predicate by predicate (semantics.md section 10).

Each rule has one premise beside the schema. So a predicate's triples follow from those of properties below it, and
for rdf:type from those of properties with a domain or a range. The facts about classes and properties themselves
follow from which of them a graph speaks of. The schema of all graphs applies, and what is entailed lies in the graph
of its data premise. Where the schema speaks of RDFS's own words, what is entailed may be schema again; then the same
rules are applied until nothing new follows.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.background.reasoning.class_hierarchy import Hierarchy
from engine.background.reasoning.rdfs_schema import DOMAIN, PROPERTY, RANGE, SUBCLASS, SUBPROPERTY, TYPE, Predicates, Schema, Types, schema_stating
from engine.dictionary.term_dictionary import LITERAL, TermTable
from engine.triples.relation import EMPTY, distinct, grown, without
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term

Ints = NDArray[np.int64]
Given = dict[int, Ints]
Above = Hierarchy[Term] | Predicates[Term] | Types[Term]
Pairs = set[tuple[int, int]]
"""Each pair is a class or a property, and a graph that speaks of it."""


def is_odd(given: Mapping[int, Ints], vocabulary: Sequence[int]) -> bool:
    """Return whether the schema speaks of RDFS's own words: then more may follow than the rules below say."""
    return any(np.isin(given[number][:, :2], vocabulary).any() for number in vocabulary[DOMAIN : SUBPROPERTY + 1] if number in given)


def close_triples(given: Given, terms: TermTable, vocabulary: Sequence[int]) -> Given:
    """Return all that holds, whatever the schema speaks of: rounds follow until one brings nothing new."""
    closed = given
    while True:
        entailed = Entailed(closed, _read_schema(closed, terms, vocabulary), terms, vocabulary)
        found = {predicate: without(entailed.derive_rows(predicate), closed.get(predicate, EMPTY)) for predicate in entailed.predicates()}
        if not any(map(len, found.values())):
            return closed
        closed = closed | {predicate: of_several([closed.get(predicate, EMPTY), rows]) for predicate, rows in found.items() if len(rows)}


def _read_schema(given: Given, terms: TermTable, vocabulary: Sequence[int]) -> Schema[Term]:
    rows = ((s, relation, o) for relation in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY) for s, o, _ in given.get(vocabulary[relation], EMPTY).tolist())
    return schema_stating(
        (term, relation, value) for s, relation, o in rows if (term := terms.term(s)) is not None and (value := terms.term(o)) is not None
    )


def of_several(parts: Sequence[Ints]) -> Ints:
    filled = [part for part in parts if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate(filled) if filled else EMPTY


def find_above(terms: TermTable, above: Above, number: int) -> list[int]:
    """Return the numbers of what a relation of the schema has for a term, such as the classes above a class."""
    return terms.intern_terms(above.get(terms.get_term(number), ()))


@dataclass(frozen=True, slots=True)
class Entailed:
    """Finds the closed triples of a background, all at once if its schema leaves RDFS's own words alone."""

    given: Given
    schema: Schema[Term]
    terms: TermTable
    vocabulary: Sequence[int]

    def predicates(self) -> list[int]:
        """Return all predicates that there are triples of."""
        if not self.given:
            return []
        found = dict.fromkeys(self.given)
        for predicate in self.given:
            found |= dict.fromkeys(find_above(self.terms, self.schema.predicates, predicate))
        return list(found | dict.fromkeys(self.vocabulary[k] for k in (TYPE, SUBCLASS, SUBPROPERTY)))

    def sources(self, predicate: int, object_: int | None) -> tuple[object, ...]:
        """Return the sources that the rows are made of: as long as these are the same, so are the rows."""
        if predicate == self.vocabulary[TYPE] and object_ not in (None, self.vocabulary[PROPERTY]):
            return (self.schema, *(self.given[each] for each in self._typing()))
        if predicate in (self.vocabulary[k] for k in (TYPE, SUBCLASS, SUBPROPERTY)):
            return (self.schema, *self.given.values())
        return tuple(self.given[each] for each in self._below(predicate))

    def follows_one_by_one(self, predicate: int, object_: int | None) -> bool:
        """Return whether a predicate's rows follow from the sources' triples one by one, and say nothing of which
        classes and properties there are.
        """
        about = [self.vocabulary[k] for k in (SUBCLASS, SUBPROPERTY)]
        return predicate not in about and (predicate != self.vocabulary[TYPE] or object_ not in (None, self.vocabulary[PROPERTY]))

    def match_rows(self, predicate: int, object_: int | None) -> Ints:
        """Return all rows of a predicate; of rdf:type those with this object alone, if one is given."""
        if predicate == self.vocabulary[TYPE]:
            return self._types(object_)
        if predicate == self.vocabulary[SUBCLASS]:
            return self._about(self._classes(), self.schema.classes)
        if predicate == self.vocabulary[SUBPROPERTY]:
            return self._about(self._properties(), self.schema.properties)
        parts = [self.given[each] for each in self._below(predicate)]
        return parts[0] if len(parts) == 1 else grown(EMPTY, distinct(of_several(parts)))

    def derive_rows(self, predicate: int) -> Ints:
        """Return all rows of a predicate, which may also be a word of RDFS's own with properties below it."""
        return distinct(of_several([self.match_rows(predicate, None), *(self.given[each] for each in self._below(predicate))]))

    def _below(self, predicate: int) -> list[int]:
        """Return the given predicates whose triples are of this one too."""
        term, schema = self.terms.get_term(predicate), self.schema
        return [each for each in self.given if each == predicate or term in schema.predicates.get(self.terms.get_term(each), ())]

    # ------------------------------------------------------------ rdf:type
    def _typing(self) -> list[int]:
        """Return the given predicates whose triples say of what class something is."""
        schema = self.schema
        return [
            each
            for each in self.given
            if each == self.vocabulary[TYPE] or (term := self.terms.get_term(each)) in schema.subjects or term in schema.objects
        ]

    def _types(self, class_: int | None) -> Ints:
        parts = [self._stated_types(class_)]
        for predicate in self._typing():
            rows, term = self.given[predicate], self.terms.get_term(predicate)
            for kind in self._chosen(self.schema.subjects.get(term, ()), class_):
                parts.append(self._typed(rows[:, [0, 2]], kind))
            for kind in self._chosen(self.schema.objects.get(term, ()), class_):
                parts.append(self._typed(rows[self.terms.kinds[rows[:, 1]] < LITERAL][:, [1, 2]], kind))
        if class_ in (None, self.vocabulary[PROPERTY]):
            parts.append(_sort_rows((node, self.vocabulary[PROPERTY], graph) for node, graph in self._properties()))
        return distinct(of_several(parts))

    def _chosen(self, kinds: Iterable[Term], class_: int | None) -> list[int]:
        return [number for number in self.terms.intern_terms(kinds) if class_ in (None, number)]

    def _typed(self, nodes: Ints, kind: int) -> Ints:
        nodes = distinct(nodes)
        return np.column_stack([nodes[:, 0], np.full(len(nodes), kind), nodes[:, 1]])

    def _stated_types(self, class_: int | None) -> Ints:
        """Return types that are given, and their superclasses."""
        rows = self.given.get(self.vocabulary[TYPE], EMPTY)
        kinds, place = np.unique(rows[:, 1], return_inverse=True)
        above = [list(dict.fromkeys((kind, *find_above(self.terms, self.schema.classes, kind)))) for kind in kinds.tolist()]
        if class_ is not None:
            above = [[class_] if class_ in each else [] for each in above]
        counts = np.array([len(each) for each in above], np.int64)
        first = np.cumsum(counts) - counts
        flat = np.array([kind for each in above for kind in each], np.int64)
        times = counts[place]
        within = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        row = np.repeat(np.arange(len(rows)), times)
        return np.column_stack([rows[row, 0], flat[first[place[row]] + within], rows[row, 2]])

    # ------------------------------------------------------------ what graphs speak of
    def _about(self, pairs: Pairs, above: Above) -> Ints:
        """Return rows of each node with itself and with what is above it, in its graphs."""
        return _sort_rows((node, other, graph) for node, graph in pairs for other in dict.fromkeys((node, *find_above(self.terms, above, node))))

    def _graphs(self) -> set[int]:
        return {graph for rows in self.given.values() for graph in np.unique(rows[:, 2]).tolist()}

    def _properties(self) -> Pairs:
        found = {(self.vocabulary[k], graph) for k in (TYPE, SUBCLASS, SUBPROPERTY) for graph in self._graphs()}
        for predicate, rows in self.given.items():
            graphs = np.unique(rows[:, 2]).tolist()
            found |= {
                (each, graph)
                for each in self.terms.intern_terms((self.terms.get_term(predicate), *self.schema.predicates.get(self.terms.get_term(predicate), ())))
                for graph in graphs
            }
        rows = self.given.get(self.vocabulary[SUBPROPERTY], EMPTY)
        found |= {(node, graph) for s, o, graph in rows.tolist() for node in (s, o)}
        return self._with_above(found, self.schema.properties)

    def _classes(self) -> Pairs:
        found = {(self.vocabulary[PROPERTY], graph) for graph in self._graphs()}
        for relation in (TYPE, DOMAIN, RANGE):
            rows = self.given.get(self.vocabulary[relation], EMPTY)
            found |= set(map(tuple, np.unique(rows[:, 1:], axis=0).tolist()))
        for s, o, graph in self.given.get(self.vocabulary[SUBCLASS], EMPTY).tolist():
            found |= {(s, graph), (o, graph)}
        for predicate in self._typing():
            rows, term = self.given[predicate], self.terms.get_term(predicate)
            resources = rows[self.terms.kinds[rows[:, 1]] < LITERAL]
            for part, kinds in ((rows, self.schema.subjects.get(term, ())), (resources, self.schema.objects.get(term, ()))):
                found |= {(kind, graph) for kind in self.terms.intern_terms(kinds) for graph in np.unique(part[:, 2]).tolist()}
        return self._with_above(found, self.schema.classes)

    def _with_above(self, pairs: Pairs, above: Above) -> Pairs:
        found = pairs | {(other, graph) for node, graph in pairs for other in find_above(self.terms, above, node)}
        return {(node, graph) for node, graph in found if self.terms.kinds[node] < LITERAL}


def _sort_rows(rows: Iterable[tuple[int, int, int]]) -> Ints:
    found = list(rows)
    return np.array(found, np.int64) if found else EMPTY
