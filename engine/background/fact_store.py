"""The background's triples are kept as numbers of terms, by predicate, and triple patterns find at their places what
matches.

What follows from them by RDFS is not kept: the triples of one predicate are put together from those that entail them
when a pattern asks for it (docs/decisions/0017-knowledge-looked-up.md).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyoxigraph
from numpy.typing import NDArray

from engine.background.describe import Descriptions
from engine.background.ntriples_scanner import scan_triples
from engine.background.reasoning.owl_rl.closure import Closure
from engine.background.reasoning.owl_rl.rdfs_bridge import speaks_of_words
from engine.background.reasoning.rdfs_entailment import Entailed, close_triples, is_odd, of_several
from engine.background.reasoning.rdfs_schema import DOMAIN, OF_OWL, OWL_STATES, RANGE, SUBCLASS, SUBPROPERTY, TYPE, VOCABULARY, Schema, Statement
from engine.background.reasoning.stream_entailment import Entailment
from engine.background.routes import Graphs, search_route
from engine.background.static_rules.derivations import Derivations, Derived, RegisteredRule
from engine.dictionary.term_dictionary import Held, TermTable
from engine.errors import EntailmentLimit
from engine.expressions.background_functions import ShortestRoute
from engine.expressions.evaluator import parse_term
from engine.messages import ADD, DROP, RDFS
from engine.pattern_scope import ANY_TRIPLE
from engine.rewrite.resolve_datasets import BACKGROUND
from engine.triples.hash_index import Lookup, Table
from engine.triples.quads import GraphName, Quad, graph_named, name_of, written
from engine.triples.relation import EMPTY, FEW, addition, address, distinct, united, with_room, without
from engine.triples.row_index import RowIndex, is_among
from epsparql import algebra as a
from epsparql.terms import Iri, Term, TermOrVariable, Variable
from epsparql.trees import replace_fields

Ints = NDArray[np.int64]
Given = dict[int, Ints]
"""Each predicate has the subject, object and graph (0 for none) of its triples, no two of which are equal."""
SUBJECT, PREDICATE, OBJECT, GRAPH = range(4)
Kept = dict[object, tuple[tuple[object, ...], Ints]]


class FactIndex:
    """Holds one version of the background, which never changes.

    `changed` gives the next version, which shares what has not changed.
    """

    def __init__(self, terms: TermTable | None = None, regime: str = RDFS) -> None:
        self.terms = TermTable() if terms is None else terms
        self.regime = regime
        self.given: Given = {}
        self.base: Given = {}
        """The base is what was given and, under OWL 2 RL, what follows by that; RDFS is applied to the base."""
        self.schema: Schema[Term] = Schema((), _is_property)
        self.overflow: EntailmentLimit | None = None
        """The overflow says why OWL 2 RL is not applied, though it is the regime; or why static rules are not, though
        there are some.
        """
        self.rules: tuple[RegisteredRule, ...] = ()
        self._below: FactIndex | None = None  # the same without static rules, where there are any
        self._derivations: Derivations | None = None  # which go on from version to version
        self._derived: Derived | None = None
        self.is_derived = True
        """Whether the base has what the static rules derive: beyond their limits they derive nothing."""
        self._owl: Closure | None = None  # which goes on from version to version
        self._found: Kept = {}  # rows, with what they were made of
        self._asked: set[object] = set()  # for those of them
        self._matching: dict[tuple[a.TriplePattern, a.Place], Ints] = {}  # what matches each pattern that was asked for
        self._tables: dict[object, tuple[Ints, Table]] = {}  # with their sources, by address of these
        self._graphs: Graphs = {}  # of links, which versions share
        self._indexes: dict[tuple[int, int], RowIndex] = {}  # of all rows, by predicate and part
        self._walks: dict[tuple[TermOrVariable, a.Place], Ints] = {}  # what narrowed paths may use, by their links
        self.terms.holders.add(self)

    @classmethod
    def from_quads(cls, quads: Iterable[Quad], terms: TermTable, regime: str = RDFS) -> "FactIndex":
        found = cls(terms)
        by_graph: dict[str, list[tuple[Term, Term, Term]]] = {}
        for quad in quads:
            by_graph.setdefault(name_of(quad[3]), []).append(quad[:3])
        for graph, triples in by_graph.items():
            numbers = found.terms.intern_all([str(term) for triple in triples for term in triple])
            found = found.with_change(graph, numbers.reshape(-1, 3), ADD)
        return found if regime == RDFS else found.under(regime)

    @classmethod
    def given_as(cls, quads: Ints, terms: TermTable, regime: str = RDFS) -> "FactIndex":
        """Make an index of quads in the form of the property `numbers`, without static rules."""
        found = cls(terms)
        for graph in np.unique(quads[:, GRAPH]).tolist():
            name = name_of(found._read_graph(graph))
            found = found.with_change(name, quads[quads[:, GRAPH] == graph][:, [SUBJECT, PREDICATE, OBJECT]], ADD)
        return found if regime == RDFS else found.under(regime)

    @property
    def numbers(self) -> Ints:
        """Return s, p, o, g of all that was given."""
        return np.concatenate([NOTHING, *(_with_predicate(rows, predicate) for predicate, rows in self.given.items())])

    def count(self, predicate: str) -> int:
        """Return how many triples of `base` have a predicate, which is given by its text."""
        return len(self.base.get(self.terms.intern(predicate), EMPTY)) if self.base else 0

    def __len__(self) -> int:
        """Return how many triples were given."""
        return sum(map(len, self.given.values()))

    def with_change(self, graph: str, triples: Ints, change: str) -> "FactIndex":
        """Return the version after a change of one graph ("" for none).

        Triples (n x 3) are added to the graph's own or take their place, or the graph is dropped.
        """
        number = self.terms.intern(str(graph_named(graph))) if graph else 0
        given = self.given if change == ADD else _without_graph(self.given, number)
        if change != DROP:
            given = _with(given, number, triples)
        return self._make_version({predicate: _same(self.given.get(predicate), rows) for predicate, rows in given.items() if len(rows)}, self.regime)

    def under(self, regime: str) -> "FactIndex":
        """Return the same background under another regime of entailment."""
        return self._make_version(self.given, regime)

    def with_rules(self, rules: Sequence[RegisteredRule], most_work: int = 0) -> "FactIndex":
        """Return the same background with these static rules and no others. With `most_work`, changes from here on
        may take no more (`Joins`).

        Raises: StaticRuleRefused, NegativeRecursion.
        """
        below = self if self._below is None else self._below
        if not rules:
            return below
        return self._applying(below, tuple(rules), self._derivations or Derivations(self.terms, most_work))

    def _applying(self, below: "FactIndex", rules: tuple[RegisteredRule, ...], derivations: Derivations) -> "FactIndex":
        """Return the version over `below`, which has no static rules, with these rules."""
        found = FactIndex(self.terms, below.regime)
        found.given, found.base, found.overflow = below.given, below.base, below.overflow
        found.rules, found._below, found._derivations = rules, below, derivations
        try:
            found._derived = derivations.derive_again(below, rules)
            found.base = found._derived.base
        except EntailmentLimit as limit:
            found.overflow, found.is_derived = limit, False
        self._hand_on(found)
        return found

    def _hand_on(self, found: "FactIndex") -> None:
        """Let the next version have what was found for this one."""
        found._found = {key: kept for key, kept in self._found.items() if key in self._asked}
        kept = {address(rows) for _, rows in found._found.values()}
        found._tables = {key: made for key, made in self._tables.items() if address(made[0]) in kept}
        found._graphs = self._graphs
        same = found.regime == self.regime and self._states(found._effective) == self._states(self._effective)
        found.schema = self.schema if same else self._schema(found._effective, found.regime)

    def _make_version(self, given: Given, regime: str) -> "FactIndex":
        if self._below is not None and self._derivations is not None:
            return self._applying(self._below._make_version(given, regime), self.rules, self._derivations)
        found = FactIndex(self.terms, regime)
        found.given = found.base = given
        if regime != RDFS:
            found._owl = self._owl or Closure(self.terms)
            found._reason(self.base)
        self._hand_on(found)
        return found

    def derived(self, graph: str) -> Ints:
        """Return the triples (n x 3) that static rules derive in a graph."""
        return NOTHING[:, :3] if self._derived is None else self._derived.list_triples(self.terms.intern(str(Iri(graph))))

    def count_derived(self) -> dict[int, int]:
        """Return how many triples static rules derive of the predicates of each rule, in its graph, by the rule's
        registration.
        """
        counts = Counter[tuple[int, int]]()
        for key, rows in self._derived.written.items() if self._derived is not None else ():
            assert key.graphs is not None
            counts[key.graphs[0], key.predicate] += len(rows)
        found = {}
        for rule in self.rules:
            graph, predicates = self.terms.intern(str(Iri(rule.query.graph))), {str(triple.predicate) for triple in rule.query.template}
            found[rule.registered] = sum(counts[graph, self.terms.intern(predicate)] for predicate in predicates)
        return found

    def _reason(self, before: Given) -> None:
        """Apply OWL 2 RL, as far as its limits go."""
        assert self._owl is not None
        try:
            self._owl.close_again(self.given)
            base = self._owl.base
            if is_odd(base, self.vocabulary) or speaks_of_words(base, self.vocabulary, self._owl.names):
                base = self._one_by_one()
        except EntailmentLimit as limit:
            self.overflow = limit
            return
        self.base = {predicate: _same(before.get(predicate), rows) for predicate, rows in base.items()}

    def _one_by_one(self) -> Given:
        """Return the base where statements are about RDFS's own words: RDFS and OWL apply all their rules by turns.

        Raises: EntailmentLimit.
        """
        base = self.given
        while True:
            closed = close_triples(base, self.terms, self.vocabulary)
            owl = Closure(self.terms)
            owl.close_again(closed)
            more = {p: without(rows, closed.get(p, EMPTY)) for p, rows in owl.base.items()}
            if not any(map(len, more.values())):
                return base
            base = {p: of_several([base.get(p, EMPTY), more.get(p, EMPTY)]) for p in base | more if p in base or len(more[p])}

    def _states(self, given: Given) -> list[int]:
        return [id(given.get(number)) for number in self.vocabulary[DOMAIN:]]

    def _schema(self, given: Given, regime: str) -> Schema[Term]:
        added, removed = ([*(OWL_STATES if of != RDFS else ())] for of in (regime, self.regime))
        for relation in (DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, *OF_OWL):
            before, now = (
                EMPTY if relation in OF_OWL and of == RDFS else each.get(self.vocabulary[relation], EMPTY)
                for each, of in ((self._effective, self.regime), (given, regime))
            )
            if before is not now:
                one, other = distinct(before[:, :2]), distinct(now[:, :2])
                added += self._stated(without(other, one), relation)
                removed += self._stated(without(one, other), relation)
        return self.schema.with_statements(added, removed)

    def _stated(self, rows: Ints, relation: int) -> list[Statement[Term]]:
        return [(self.terms.get_term(s), relation, self.terms.get_term(o)) for s, o in rows.tolist()]

    @cached_property
    def vocabulary(self) -> list[int]:
        return self.terms.intern_terms(VOCABULARY)

    def hold(self, held: Held) -> None:
        held.add(np.array([*self.base, *self.__dict__.get("vocabulary", ())], np.int64))
        for rows in (*self.given.values(), *self.base.values(), *(rows for _, rows in self._found.values()), *self._cached_rows()):
            held.add(rows)

    def _cached_rows(self) -> Iterable[Ints]:
        for name in ("_effective", "_rows_of"):
            found: Given = self.__dict__.get(name, {})
            yield from found.values()

    # ------------------------------------------------------------ closed
    @cached_property
    def quads(self) -> list[Quad]:
        """Return all that was given."""
        return self._quads_of(self.given)

    @property
    def premises(self) -> list[Quad]:
        """Return the quads that RDFS is applied to, without what static rules derive."""
        return self._quads_of(self.base if self._below is None else self._below.base)

    @property
    def base_triples(self) -> Iterator[tuple[Term, Term, Term]]:
        """Yield the triples that RDFS is applied to, with what static rules derive."""
        return (quad[:3] for quad in self._quads_of(self.base))

    def explain_derived(self, triple: tuple[Term, Term, Term]) -> list[tuple[str, list[tuple[Term, Term, Term]], tuple[Term, Term, Term]]] | None:
        """Return the steps to a triple that static rules derive, premises first: the rule's name ("" for RDFS), the
        premises and the conclusion.

        None if no static rule writes the triple. Raises TooFar.
        """
        if self._below is None or self._derivations is None or not self.is_derived:
            return None
        self._derivations.derive_again(self._below, self.rules)  # where another version has been looked at meanwhile
        s, p, o = (self.terms.intern(str(term)) for term in triple)
        names = {rule.registered: rule.name for rule in self.rules}

        def read(numbers: tuple[int, int, int]) -> tuple[Term, Term, Term]:
            return self.terms.get_term(numbers[0]), self.terms.get_term(numbers[1]), self.terms.get_term(numbers[2])

        steps = self._derivations.explain((s, p, o))
        return None if steps is None else [(names.get(step.source, ""), [*map(read, step.premises)], read(step.conclusion)) for step in steps]

    def _quads_of(self, given: Given) -> list[Quad]:
        return [self.quad(s, predicate, o, g) for predicate, rows in given.items() for s, o, g in rows.tolist()]

    def __iter__(self) -> Iterator[Quad]:
        """Iterate over all that holds."""
        return (self.quad(*row) for row in self.everything().tolist())

    def quad(self, s: int, p: int, o: int, g: int) -> Quad:
        return self.terms.get_term(s), self.terms.get_term(p), self.terms.get_term(o), self.terms.term(g)  # type: ignore[return-value]  # a graph is an IRI or None

    @cached_property
    def descriptions(self) -> Descriptions:
        return Descriptions(self._find_statements, self.terms)

    def _find_statements(self, part: int, terms: Ints) -> Ints:
        """Return s, p, o of all that holds and has one of these terms, which are sorted, in a part."""
        return self.select_rows(ANY_TRIPLE, a.ANYWHERE, {part: terms})[:, [SUBJECT, PREDICATE, OBJECT]]

    def everything(self) -> Ints:
        """Return s, p, o, g of all that holds."""
        return np.concatenate([NOTHING, *(_with_predicate(rows, predicate) for predicate, rows in self._rows_of.items())])

    @property
    def _entailed(self) -> Entailed:
        return Entailed(self._effective, self.schema, self.terms, self.vocabulary)

    @cached_property
    def entailment(self) -> Entailment:
        return Entailment(self.schema)

    @cached_property
    def _effective(self) -> Given:
        """Return the triples that the rules are applied to.

        Where the schema speaks of RDFS's own words, they are applied until nothing new follows, and the result is all
        that holds.
        """
        if not is_odd(self.base, self.vocabulary):
            return self.base
        return close_triples(self.base, self.terms, self.vocabulary)

    def match_rows(self, predicate: int, object_: int | None = None) -> Ints:
        """Return subject, object and graph of all that holds with a predicate.

        If an object is given and that is worth while, only rows with this object are returned.
        """
        if self._effective is not self.base:
            return self._effective.get(predicate, EMPTY)
        entailed = self._entailed
        key = predicate, object_ if predicate == self.vocabulary[TYPE] else None
        return self._reuse_entailed(
            key, entailed.sources(*key), lambda: entailed.match_rows(*key), lambda there, before: self._more(key, there, before)
        )

    def _more(self, key: tuple[int, int | None], there: Ints, before: tuple[object, ...]) -> Ints | None:
        """Return the rows of a predicate that were made of other sources before, and what follows from what these
        have more.

        That is enough, since each rule has one premise. The result is None if the sources have not only grown.
        """
        entailed = self._entailed
        if not entailed.follows_one_by_one(*key) or any(there is each for each in before):
            return None
        more = additions(before, entailed.sources(*key))
        if more is None:
            return None
        given = {p: more[id(rows)] for p, rows in self._effective.items() if id(rows) in more}
        return united(there, replace_fields(entailed, given=given).match_rows(*key))

    def _reuse_entailed(
        self, key: object, sources: tuple[object, ...], make: Callable[[], Ints], more: Callable[[Ints, tuple[object, ...]],
        Ints | None] | None = None
    ) -> Ints:  # fmt: skip
        """Return what was made of the same sources before, be it for an older version.

        For other sources, return that with what `more` adds to it, else what `make` gives.
        """
        self._asked.add(key)
        there = self._found.get(key)
        if there is not None and len(there[0]) == len(sources) and all(x is y for x, y in zip(there[0], sources, strict=True)):
            return there[1]
        made = None if there is None or more is None else more(there[1], there[0])
        if made is None:
            made = make()
        self._found[key] = sources, made
        return made

    def table(self, lookup: Lookup) -> Table:
        """Return the table that the kernel uses for a lookup; queries that look up the same share it."""
        key = address(lookup.source), lookup.parts, lookup.keys
        source, table = self._tables.get(key, (lookup.source, None))
        more = addition(source, lookup.source)
        if table is None or more is None:
            table = Table.from_rows(lookup.rows, lookup.keys)
        elif len(more):
            table = table.with_more(more[:, lookup.parts])
        self._tables[key] = lookup.source, table
        return table

    def find_route(self, arguments: Sequence[Term]) -> ShortestRoute | None:
        """Return the shortest route for the arguments of ep:route, None if there is none. Raises: ExpressionError."""
        return search_route(self, self._graphs, arguments)

    # ------------------------------------------------------------ patterns
    def matching(self, pattern: a.TriplePattern, place: a.Place) -> Ints:
        """Return s, p, o, g of the triples that match.

        Under GRAPH a triple counts once for each graph that it lies in, elsewhere once, with graph 0. As long as the
        matches are the same, so is the array.
        """
        if place.window not in (None, BACKGROUND) or not self.given:
            return NOTHING  # a window holds what came on its stream
        if (known := self._matching.get((pattern, place))) is not None:
            return known
        if len(self._matching) >= MOST_ASKED:
            self._matching, self._found, self._asked = {}, {}, set()
        walked = self._walks.get((pattern.predicate, place)) if is_made_by_plan(pattern) else None
        if walked is None:
            found = self._match_pattern(unnamed(pattern), place)
        else:
            found = self._chosen(pattern, place, walked[:, [SUBJECT, OBJECT, GRAPH]], self._constants_of(pattern))
        self._matching[pattern, place] = found
        return found

    def _match_pattern(self, pattern: a.TriplePattern, place: a.Place) -> Ints:
        s, p, o = self._constants_of(pattern)
        source = self.match_rows(p, o) if p is not None else self._reuse_entailed("everything", tuple(self._rows_of.values()), self.everything)
        wanted = s, p, o
        return self._reuse_entailed(
            (pattern, place),
            (source,),
            lambda: with_room(self._chosen(pattern, place, source, wanted)),
            lambda there, before: self._more_chosen(pattern, place, wanted, there, additions(before, (source,))),
        )

    def _constants_of(self, pattern: a.TriplePattern) -> tuple[int | None, int | None, int | None]:
        s, p, o = (None if isinstance(part, Variable) else self.terms.intern(str(part)) for part in parts_of(pattern))
        return s, p, o

    # ------------------------------------------------------------ some of the matches
    def prepare_indexes(self) -> None:
        """Order all rows by their subjects and objects, for `select_rows`."""
        for predicate in self._rows_of:
            for part in _COLUMNS:
                self._index(predicate, part)

    @cached_property
    def _rows_of(self) -> dict[int, Ints]:
        """Return all that holds, by predicate."""
        return {predicate: self.match_rows(predicate) for predicate in self._entailed.predicates()}

    def select_rows(self, pattern: a.TriplePattern, place: a.Place, wanted: Mapping[int, Ints]) -> Ints:
        """Return the rows of `matching` that have one of the wanted terms, which are sorted, in each of these parts."""
        constants = self._constants_of(pattern)
        sets = self._with_constants(constants, wanted)
        parts = [_with_predicate(self._select_of(predicate, sets), predicate) for predicate in self._predicates_among(sets)]
        quads = np.concatenate([NOTHING, *parts])
        return self._chosen(pattern, place, quads if constants[PREDICATE] is None else quads[:, [SUBJECT, OBJECT, GRAPH]], constants)

    def match_in_pieces(self, pattern: a.TriplePattern, place: a.Place) -> Iterator[Ints]:
        """Yield the rows of `matching` in pieces, without making all of them first where that can be."""
        s, p, o = self._constants_of(pattern)
        for predicate in list(self._rows_of) if p is None else [p]:
            rows, wanted = self._rows_of.get(predicate, EMPTY), {PREDICATE: np.array([predicate], np.int64)}
            if s is not None or o is not None or (rows[:, 2] != rows[:1, 2]).any():  # a triple of several graphs counts once
                yield self.select_rows(pattern, place, wanted)
                continue
            for first in range(0, len(rows), PIECE):
                part = rows[first : first + PIECE]
                yield self._chosen(pattern, place, _with_predicate(part, predicate) if p is None else part, (s, p, o))

    def count_rows(self, pattern: a.TriplePattern, wanted: Mapping[int, Ints]) -> int:
        """Return how many rows `select_rows` would look at; all graphs count."""
        sets = self._with_constants(self._constants_of(pattern), wanted)
        return sum(self._choose_index(predicate, sets)[0] for predicate in self._predicates_among(sets))

    def count_all(self, pattern: a.TriplePattern) -> int:
        """Return how many rows have the predicate of a pattern."""
        sets = {part: terms for part, terms in self._with_constants(self._constants_of(pattern), {}).items() if part == PREDICATE}
        return sum(len(self._rows_of[predicate]) for predicate in self._predicates_among(sets))

    def _with_constants(self, constants: Sequence[int | None], wanted: Mapping[int, Ints]) -> dict[int, Ints]:
        return {**wanted, **{part: np.array([number], np.int64) for part, number in enumerate(constants) if number is not None}}

    def _predicates_among(self, sets: Mapping[int, Ints]) -> list[int]:
        if PREDICATE not in sets:
            return list(self._rows_of)
        return [predicate for predicate in sets[PREDICATE].tolist() if predicate in self._rows_of]

    def _select_of(self, predicate: int, sets: Mapping[int, Ints]) -> Ints:
        """Return the rows of a predicate that have wanted subjects and objects."""
        rows = self._rows_of[predicate]
        _, part = self._choose_index(predicate, sets)
        if part is None:
            return rows
        rows = rows[self._index(predicate, part).find_rows(sets[part])]
        other = SUBJECT + OBJECT - part
        return rows[is_among(rows[:, _COLUMNS[other]], sets[other])] if other in sets else rows

    def _choose_index(self, predicate: int, sets: Mapping[int, Ints]) -> tuple[int, int | None]:
        """Return how many rows of a predicate the best index finds, and of which part that is; None if it takes all."""
        counts: list[tuple[int, int | None]] = [(self._index(predicate, part).count_rows(sets[part]), part) for part in _COLUMNS if part in sets]
        return min(counts, key=lambda each: each[0], default=(len(self._rows_of[predicate]), None))

    def _index(self, predicate: int, part: int) -> RowIndex:
        index = self._indexes.get((predicate, part))
        if index is None:
            index = self._indexes[predicate, part] = RowIndex.from_column(self._rows_of[predicate][:, _COLUMNS[part]])
        return index

    def narrowed(self, rows: Mapping[tuple[a.TriplePattern, a.Place], Ints], walks: Mapping[tuple[TermOrVariable, a.Place], Ints]) -> "FactIndex":
        """Return the same background as a query sees it that needs no other `rows` of these patterns.

        `walks` are the rows that paths need, by their links.
        """
        found = copy(self)
        found._matching, found._walks = dict(rows), dict(walks)
        return found

    def _more_chosen(
        self, pattern: a.TriplePattern, place: a.Place, wanted: Sequence[int | None], there: Ints, added: dict[int, Ints] | None
    ) -> Ints | None:  # fmt: skip
        if added is None:
            return None
        (rows,) = added.values()
        new = self._chosen(pattern, place, rows, wanted)
        return united(there, new)

    def _chosen(self, pattern: a.TriplePattern, place: a.Place, source: Ints, wanted: Sequence[int | None]) -> Ints:
        predicate = wanted[PREDICATE]
        quads = source if predicate is None else _with_predicate(source, predicate)
        fits = np.ones(len(quads), np.bool_)
        for column, number in enumerate(wanted):
            if number is not None and column != PREDICATE:
                fits &= quads[:, column] == number
        parts = parts_of(pattern)
        for one, two in ((SUBJECT, PREDICATE), (SUBJECT, OBJECT), (PREDICATE, OBJECT)):
            if isinstance(parts[one], Variable) and parts[one] == parts[two]:
                fits &= quads[:, one] == quads[:, two]
        if place.among is not None:
            fits &= np.isin(quads[:, GRAPH], [self.terms.intern(str(graph_named(name))) if name else 0 for name in place.among])
        elif place.graph is not None:
            fits &= quads[:, GRAPH] != 0
        found = quads if fits.all() else quads[fits]
        if place.graph is not None or not len(found):
            return found
        elsewhere = found[:, GRAPH] != found[0, GRAPH]
        found = found.copy()
        found[:, GRAPH] = 0
        if not elsewhere.any():
            return found
        more = found[elsewhere]
        return of_several([found[~elsewhere], without(distinct(more), found[~elsewhere])]) if len(more) <= FEW else distinct(found)

    def graphs(self, place: a.Place) -> list[int]:
        """Return the graphs of a place that hold a triple, in order of their names."""
        there = {g for rows in self.base.values() for g in np.unique(rows[:, 2]).tolist() if lies_in(self._read_graph(g), place)}
        return sorted(there, key=self.terms.text)

    def any(self, place: a.Place) -> bool:
        """Return whether a place holds a triple."""
        return place.window in (None, BACKGROUND) and bool(self.graphs(place) if place.graph is not None or place.among is not None else self.given)

    def _read_graph(self, number: int) -> GraphName | None:
        return self.terms.term(number)  # type: ignore[return-value]  # as in `quad`


NOTHING: Ints = np.zeros((0, 4), np.int64)
PIECE = 1 << 14
_COLUMNS = {SUBJECT: 0, OBJECT: 1}
"""The columns of a predicate's rows that have these parts."""
MOST_ASKED = 1 << 16
"""So many patterns are remembered with what matches them, because queries may come and go for long over one background."""


def additions(before: Sequence[object], now: Sequence[object]) -> dict[int, Ints] | None:
    """Return what sources have more than before, by identity of the source; None if one of them has not only grown."""
    found = dict[int, Ints]()
    if len(before) != len(now):
        return None
    for old, new in zip(before, now, strict=True):
        if old is not new:
            more = addition(old, new) if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) else None
            if more is None:
                return None
            found[id(new)] = more
    return found


def parts_of(pattern: a.TriplePattern) -> tuple[Term | Variable, Term | Variable, Term | Variable]:
    return pattern.subject, pattern.predicate, pattern.object


def unnamed(pattern: a.TriplePattern) -> a.TriplePattern:
    """Return the same pattern, whatever its variables are called."""
    names: dict[Variable, Variable] = {}
    return a.TriplePattern(*(names.setdefault(part, Variable(str(len(names)))) if isinstance(part, Variable) else part for part in parts_of(pattern)))


def is_made_by_plan(pattern: a.TriplePattern) -> bool:
    """Return whether a plan has made the pattern for a step of a path, between hidden variables of its own."""
    return any(isinstance(part, Variable) and "@" in part.name for part in parts_of(pattern))


def _is_property(term: Term) -> bool:
    return isinstance(term, Iri)


def lies_in(graph: GraphName | None, place: a.Place) -> bool:
    if place.among is None:
        return place.graph is None or graph is not None
    return name_of(graph) in place.among


def _with_predicate(rows: Ints, predicate: int) -> Ints:
    quads = np.empty((len(rows), 4), np.int64)
    quads[:, [SUBJECT, OBJECT, GRAPH]], quads[:, PREDICATE] = rows, predicate
    return quads


def _without_graph(given: Given, graph: int) -> Given:
    found = dict(given)
    for predicate, rows in given.items():
        others = rows[:, 2] != graph
        if not others.all():
            found[predicate] = np.array([column[others] for column in rows.T]).T  # a tenth of the time of rows[others] where tables have room to grow
    return found


def _with(given: Given, graph: int, triples: Ints) -> Given:
    found = dict(given)
    order = np.argsort(triples[:, PREDICATE], kind="stable")
    sorted_ = triples[order]
    edges = np.flatnonzero(np.diff(sorted_[:, PREDICATE], prepend=-1, append=-1))
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        predicate, part = int(sorted_[first, PREDICATE]), sorted_[first:after]
        new = np.column_stack([part[:, SUBJECT], part[:, OBJECT], np.full(len(part), graph)])
        found[predicate] = united(found.get(predicate, EMPTY), new)
    return found


def _same(before: Ints | None, now: Ints) -> Ints:
    """Return the array from before if it holds the same rows, else the array of now."""
    if before is None or before is now or len(before) != len(now) or len(without(now, before)):
        return now
    return before


def numbers_of(ntriples: str, terms: TermTable) -> Ints:
    """Return the numbers of the terms of an N-Triples text, a triple a row."""
    text = ntriples.encode()
    scanned = scan_triples(text, terms)
    if scanned is not None:
        return scanned
    parsed = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_TRIPLES)
    texts = pa.array([written(term) for t in parsed for term in (t.subject, t.predicate, t.object)], pa.utf8()).dictionary_encode()
    distinct = [text if text.startswith(("<", "_")) and not text.startswith("<<") else str(parse_term(text)) for text in texts.dictionary.to_pylist()]
    found: Ints = terms.intern_all(distinct)[texts.indices.to_numpy()].reshape(-1, 3)
    return found
