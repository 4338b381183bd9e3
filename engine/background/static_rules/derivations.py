"""Static rules are applied to a background that changes: what they derive is a layer above what is given and what OWL
entails of that.

Rules read what holds by RDFS, and what they derive entails by RDFS: the schema's part of that is rules too, from each
relation that static rules write to those that they read. So all of it is one program
(docs/decisions/0075-static-rules.md).
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.background.reasoning.rdfs_entailment import find_above, is_odd, of_several
from engine.background.reasoning.rdfs_schema import PROPERTY, SUBCLASS, SUBPROPERTY, TYPE, Schema
from engine.background.static_rules.explanation import Explainer, RuleStep
from engine.background.static_rules.joins import Joins
from engine.background.static_rules.maintenance import NO_DELTA, Change, Delta, Maintenance
from engine.background.static_rules.monotone_folds import Made, compose_folds
from engine.background.static_rules.program import (
    LIST,
    VIEW,
    WRITTEN,
    Argument,
    Atom,
    DatalogRule,
    NegativeCycle,
    Program,
    Relation,
    RelationKey,
    constants_of,
)  # fmt: skip
from engine.background.static_rules.sorted_rows import LOW, NO_INTS, NO_ROWS, SHIFT, SortedRows, is_among, pack_pairs, unite
from engine.background.static_rules.translate import Translation
from engine.dictionary.term_dictionary import Held, TermTable
from engine.errors import EntailmentLimit
from engine.triples.relation import EMPTY, addition, difference, grown, united
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term

Ints = NDArray[np.int64]
Given = dict[int, Ints]
X, Y = -1, -2
MONOTONE = "a value that the loop hands on as it is, or in a sum with numbers not below 0 (MIN) or not above 0 (MAX)"
"""The remedy for a loop through MIN or MAX that is refused."""
_ABOVE = "above"
"""Relations of this role hold pairs of the schema: a class, and one above it."""


class Layer(Protocol):
    """A layer is a background without static rules."""

    @property
    def base(self) -> Given: ...

    @property
    def schema(self) -> Schema[Term]: ...

    @property
    def vocabulary(self) -> list[int]: ...

    def match_rows(self, predicate: int, object_: int | None = None) -> Ints: ...


@dataclass(frozen=True, slots=True)
class RegisteredRule:
    """Holds a static rule by the offset of its registration."""

    registered: int
    name: str
    text: str
    default_graph: str
    query: a.BackgroundRule


@dataclass(frozen=True, slots=True)
class Derived:
    """Holds what static rules make of a background: all its triples, and those that rules write, given ones included."""

    base: Given
    written: dict[RelationKey, SortedRows]

    def list_triples(self, graph: int) -> Ints:
        """Return the triples (n x 3) that rules write to a graph."""
        found = [np.zeros((0, 3), np.int64)]
        for key, written in self.written.items():
            if key.graphs == (graph,):
                rows = _as_rows(key, written.packed())
                found.append(np.column_stack([rows[:, 0], np.full(len(rows), key.predicate), rows[:, 1]]))
        return np.concatenate(found)


class NegativeRecursion(Exception):
    """Signals static rules that depend on their own negation; the text is the cycle.

    The `remedy` is one for a loop through MIN or MAX, else empty.
    """

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text, remedy)
        self.remedy = remedy

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(slots=True, eq=False)
class _Compiled:
    rules: list[DatalogRule]
    lists: dict[Relation, Ints]


class Derivations:
    """Holds what static rules derive, and what is needed to follow a change.

    `move` goes on from whatever was derived last.
    """

    def __init__(self, terms: TermTable, most_work: int = 0) -> None:
        self.terms = terms
        self.joins = Joins(terms, most_work=most_work)
        self._forget()
        terms.holders.add(self)

    def _forget(self) -> None:
        self._relations: dict[RelationKey, Relation] = {}
        self._compiled: dict[int, _Compiled] = {}
        self._edges: dict[tuple[object, ...], DatalogRule] = {}
        self._composed = Made()
        self._lower: Layer | None = None
        self._rules: tuple[RegisteredRule, ...] = ()
        self.program = Program((), ())
        self._sources: dict[Relation, Ints] = {}  # the rows that a view's given tuples were made of
        self._shown: Given = {}  # what is given and derived, over `_base`
        self._base: Given = {}
        self._written: Set[int] = frozenset()  # the predicates that rules write
        self._above: tuple[object, dict[int, list[int]]] = None, {}  # a schema, and written predicates with those above them

    def hold(self, held: Held) -> None:
        for relation in self._relations.values():
            for run in relation.rows.runs:
                held.add(run.packed & LOW)
                held.add(run.packed >> SHIFT)
        held.add(self.joins.tuples.pairs & LOW)
        held.add(self.joins.tuples.pairs >> SHIFT)
        for compiled in self._compiled.values():
            held.add(constants_of(compiled.rules))
            for packed in compiled.lists.values():
                held.add(packed & LOW)
                held.add(packed >> SHIFT)
        held.add(constants_of(self._edges.values()))
        held.add(np.array([n for above in self._above[1].values() for n in above], np.int64))
        held.add(np.array([n for key in self._relations for n in (key.predicate, key.kind, *(key.graphs or ()))], np.int64))

    def _relation(self, key: RelationKey, arity: int) -> Relation:
        found = self._relations.get(key)
        if found is None:
            found = self._relations[key] = Relation(key, arity)
        return found

    # ------------------------------------------------------------ a change
    def derive_again(self, lower: Layer, rules: tuple[RegisteredRule, ...]) -> "Derived":
        """Apply the rules to a background without them.

        Raises: EntailmentLimit, NegativeRecursion, StaticRuleRefused.
        """
        if is_odd(lower.base, lower.vocabulary):
            raise EntailmentLimit("static rules are not applied where the schema speaks of RDFS's own words (a property above rdf:type, say)")
        self.joins.work = 0
        before, program = self.program, self.program
        if rules != self._rules or self._lower is None or lower.schema is not self._lower.schema:
            program = self._compile(rules, lower)
        fresh = [] if program is before else [rule for rule in program.rules if rule not in before.rules]
        dropped = [] if program is before else [rule for rule in before.rules if rule not in program.rules]
        given = dict(self._given_changes(lower, program))
        left = [] if program is before else [each for each in before.relations if each not in program.relations]
        for relation in left:
            self._relations.pop(relation.key, None)
            self._sources.pop(relation, None)
        if program is not before:
            self._relations |= {relation.key: relation for relation in program.relations}
        change = Maintenance(self.joins, Change(program, dropped, fresh, given))
        try:
            change.run()
        except BaseException:
            self._forget()
            raise
        for relation in left:  # a rule that was left out may have it again
            relation.rows = relation.given = NO_ROWS
        removed = {each.key.predicate for each in before.relations if each.key.role == WRITTEN and each not in program.relations}
        self.program, self._lower, self._rules = program, lower, rules
        self._show(lower, change.deltas, removed)
        return Derived(self._shown, {each.key: each.rows for each in program.relations if each.key.role == WRITTEN})

    def explain(self, triple: tuple[int, int, int]) -> list[RuleStep] | None:
        """Return the steps to a triple as rules derive it from where `move` came last; None if no static rule writes
        it. Raises TooFar.
        """
        return Explainer(self.program, self.joins).explain(triple)

    def _compile(self, rules: tuple[RegisteredRule, ...], lower: Layer) -> Program:
        if (program := self._extended(rules, lower)) is not None:
            return program
        standing = {rule.registered for rule in rules}
        for registered in [each for each in self._compiled if each not in standing]:
            del self._compiled[registered]
        own = [each for rule in rules for each in self._compile_rule(rule)]
        reads = dict.fromkeys(atom.relation for rule in own for atom in (*rule.atoms, *rule.absent))
        writes = dict.fromkeys(rule.head.relation for rule in own if rule.head.relation.key.role == WRITTEN)
        edges = _Edges(self, lower)
        entailed = edges.between(writes, [each for each in reads if each.key.role == VIEW])
        self._edges = {key: rule for key, rule in self._edges.items() if key in edges.used}
        try:
            return Program(compose_folds([*own, *entailed], self._composed), reads)
        except NegativeCycle as cycle:
            raise self._describe_cycle(cycle, rules) from None

    def _compile_rule(self, rule: RegisteredRule) -> list[DatalogRule]:
        if rule.registered not in self._compiled:
            translation = Translation(self.terms, self._relation, rule.registered)
            translation.translate(rule.query, rule.default_graph)
            self._compiled[rule.registered] = _Compiled(translation.rules, translation.lists)
        return self._compiled[rule.registered].rules

    def _extended(self, rules: tuple[RegisteredRule, ...], lower: Layer) -> Program | None:
        """Return the program with the rules that have come, if these derive what no other rule reads or derives yet;
        else None.
        """
        if self._lower is None or lower.schema is not self._lower.schema or rules[: len(self._rules)] != self._rules:
            return None
        own = [each for rule in rules[len(self._rules) :] for each in self._compile_rule(rule)]
        there = self.program.relations
        reads = dict.fromkeys(atom.relation for rule in own for atom in (*rule.atoms, *rule.absent) if atom.relation not in there)
        writes = dict.fromkeys(rule.head.relation for rule in own if rule.head.relation.key.role == WRITTEN)
        edges = _Edges(self, lower)
        entailed = edges.between((each for each in there if each.key.role == WRITTEN), [each for each in reads if each.key.role == VIEW])
        entailed += edges.between(writes, [each for each in (*there, *reads) if each.key.role == VIEW])
        try:
            made = Made()
            found = self.program.extended(compose_folds([*own, *entailed], made), reads)
            self._composed |= made
            return found
        except NegativeCycle as cycle:
            raise self._describe_cycle(cycle, rules) from None

    def _describe_cycle(self, cycle: NegativeCycle, rules: Sequence[RegisteredRule]) -> NegativeRecursion:
        if not cycle.reason:
            return NegativeRecursion(self._told(cycle.way, rules))
        return NegativeRecursion(f"{self._told(cycle.way, rules)}: {cycle.reason}", MONOTONE)

    def _told(self, way: Sequence[Relation], rules: Sequence[RegisteredRule]) -> str:
        """Describe a cycle for its reader: the predicates on it, and the rules that write them."""
        names = {rule.registered: rule.name for rule in rules}
        steps = []
        for relation in way:
            if relation.key.role in (VIEW, WRITTEN):
                writers = sorted({names[rule.source] for rule in self._writers(relation) if rule.source in names})
                written = f" of {', '.join(writers)}" if writers else ""
                text = self.terms.text(relation.key.kind or relation.key.predicate) + written
                if text not in steps:
                    steps.append(text)
        return " -> ".join([*steps, f"not {steps[0]}"] if steps else ["a path"])

    def _writers(self, relation: Relation) -> Iterator[DatalogRule]:
        return (rule for each in self._compiled.values() for rule in each.rules if rule.head.relation is relation)

    # ------------------------------------------------------------ what is given
    def _given_changes(self, lower: Layer, program: Program) -> Iterator[tuple[Relation, Delta]]:
        """Yield how the tuples of relations that need no rule have changed."""
        affected = self._affected(lower)
        for relation in program.relations:
            key = relation.key
            if key.role == VIEW and (relation not in self._sources or affected is None or self._is_affected(key, affected, lower)):
                rows = lower.match_rows(key.predicate, key.kind or None)
                delta = self._delta(relation, rows)
                self._sources[relation] = rows
            elif (key.role in (LIST, _ABOVE) and relation not in self._sources) or (key.role == _ABOVE and affected is None):
                now = self._sources[relation] = self._tuples_of(relation, lower)
                delta = Delta(now[~relation.given.contains(now)], _apart(relation.given, now))
            else:
                continue
            if len(delta.more) or len(delta.fewer):
                yield relation, delta

    def _affected(self, lower: Layer) -> set[int] | None:
        """Return the predicates whose triples may be others than before, or None for all."""
        before = self._lower
        if before is None or before.schema is not lower.schema:
            return None
        found = set[int]()
        for predicate in before.base.keys() | lower.base.keys():
            if before.base.get(predicate) is not lower.base.get(predicate):
                found.add(predicate)
                term = self.terms.get_term(predicate)
                found.update(self.terms.intern_terms(lower.schema.predicates.get(term, ())))
                if term in lower.schema.subjects or term in lower.schema.objects:
                    found.add(lower.vocabulary[TYPE])
        return found

    def _is_affected(self, key: RelationKey, affected: set[int], lower: Layer) -> bool:
        vocabulary = lower.vocabulary
        if key.predicate in (vocabulary[SUBCLASS], vocabulary[SUBPROPERTY]) or (
            key.predicate == vocabulary[TYPE] and key.kind in (0, vocabulary[PROPERTY])
        ):
            return bool(affected)
        return key.predicate in affected

    def _delta(self, relation: Relation, rows: Ints) -> Delta:
        """Return which tuples of a view come and go. A tuple stays as long as a row of some graph has it."""
        before = self._sources.get(relation)
        if before is rows:
            return NO_DELTA
        gone, come = difference(rows[:0] if before is None else before, rows)
        more, fewer = _packed(relation, come), _packed(relation, gone)
        if len(fewer):
            fewer = fewer[~is_among(fewer, _packed(relation, rows[np.isin(rows[:, 0], gone[:, 0])]))]
        return Delta(more[~relation.given.contains(more)], fewer[relation.given.contains(fewer)])

    def _tuples_of(self, relation: Relation, lower: Layer) -> Ints:
        if relation.key.role == LIST:
            return self._compiled[relation.key.of[0]].lists[relation]
        classes = lower.schema.classes
        pairs = [(self.terms.intern(str(below)), self.terms.intern(str(above))) for below in [*classes] for above in classes.get(below)]
        return unite([pack_pairs(*np.array(pairs, np.int64).T)]) if pairs else NO_INTS

    # ------------------------------------------------------------ what is shown
    def _show(self, lower: Layer, deltas: dict[Relation, Delta], removed: set[int]) -> None:
        """Bring together what is given and what is derived, predicate by predicate; what is the same stays the same
        array.
        """
        written: dict[int, list[Relation]] = {}
        for relation in self.program.relations:
            if relation.key.role == WRITTEN:
                written.setdefault(relation.key.predicate, []).append(relation)
        changed = {relation.key.predicate for relation in deltas if relation.key.role == WRITTEN}
        before, base, self._shown, self._base = self._shown, self._base, dict(lower.base), lower.base
        for predicate, relations in written.items():
            rows, earlier = lower.base.get(predicate, EMPTY), base.get(predicate, EMPTY)
            there = None if predicate in removed or predicate not in self._written else before.get(predicate, EMPTY)
            if there is None or rows is not earlier or predicate in changed:
                there = self._combined(rows, relations, there, addition(earlier, rows) if len(earlier) else None, deltas)
            if len(there):
                self._shown[predicate] = there
        self._written = written.keys()

    def _combined(self, rows: Ints, relations: Sequence[Relation], there: Ints | None, more: Ints | None, deltas: dict[Relation, Delta]) -> Ints:
        """Return given rows with those that relations of their predicate derive.

        `there` is what that was before, when `more` of the given rows had not come; None if they have not only become
        more.
        """
        if there is not None and more is not None and not any(len(deltas.get(relation, NO_DELTA).fewer) for relation in relations):
            there = united(there, more)
            new = [_apart_from(there, _as_rows(relation.key, deltas.get(relation, NO_DELTA).more)) for relation in relations]
            return grown(there, of_several(new))
        return of_several([rows, *(_apart_from(rows, _as_rows(relation.key, relation.rows.packed())) for relation in relations)])


def _packed(relation: Relation, rows: Ints) -> Ints:
    """Return a view's tuples of rows of subject, object and graph."""
    graphs = relation.key.graphs
    if graphs is not None:
        rows = rows[np.isin(rows[:, 2], graphs)]
    return unite([rows[:, 0] if relation.arity == 1 else pack_pairs(rows[:, 0], rows[:, 1])])


def _as_rows(key: RelationKey, packed: Ints) -> Ints:
    """Return the tuples that a rule writes as rows of subject, object and graph."""
    assert key.graphs is not None
    graph = np.full(len(packed), key.graphs[0])
    if key.kind:
        return np.column_stack([packed, np.full(len(packed), key.kind), graph])
    return np.column_stack([packed >> SHIFT, packed & LOW, graph])


def _apart_from(rows: Ints, others: Ints) -> Ints:
    """Return those of other rows, which lie in one graph, that are not among the rows."""
    if not len(rows) or not len(others):
        return others
    same = rows[rows[:, 2] == others[0, 2]]
    return others[~is_among(pack_pairs(others[:, 0], others[:, 1]), np.sort(pack_pairs(same[:, 0], same[:, 1])))]


def _apart(rows: SortedRows, sorted_: Ints) -> Ints:
    """Return the tuples that are not among sorted ones, in order."""
    there = np.sort(rows.packed())
    return there[~is_among(there, sorted_)]


def _sees(view: Relation, source: Relation) -> bool:
    """Return whether a view looks at the graph that a relation is written to."""
    return view.key.graphs is None or source.key.graphs is None or source.key.graphs[0] in view.key.graphs


@dataclass(slots=True, eq=False)
class _Edges:
    """Makes rules of RDFS: from what static rules write to a view that they read.

    A rule that there was before is used again.
    """

    made: Derivations
    lower: Layer
    used: set[tuple[object, ...]] = field(default_factory=set)

    @property
    def _schema(self) -> Schema[Term]:
        return self.lower.schema

    def between(self, written: Iterable[Relation], views: Iterable[Relation]) -> list[DatalogRule]:
        """Return the rules by which what is written comes into views."""
        by_predicate: dict[int, list[Relation]] = {}
        for view in views:
            by_predicate.setdefault(view.key.predicate, []).append(view)
        if not by_predicate:
            return []
        kind, subclass, subproperty = (self.lower.vocabulary[k] for k in (TYPE, SUBCLASS, SUBPROPERTY))
        found: list[DatalogRule] = []
        for source in written:
            for number, make in ((kind, self._types), (subclass, self._classes), (subproperty, self._properties)):
                found += [edge for view in by_predicate.get(number, ()) if _sees(view, source) for edge in make(view, source)]
            found += [
                self._edge(view, (X, Y), source, (X, Y))
                for number in self._predicates(source)
                if number not in (kind, subclass, subproperty)
                for view in by_predicate.get(number, ())
                if _sees(view, source)
            ]
        return found

    def _edge(self, head: Relation, arguments: tuple[Argument, ...], source: Relation, body: tuple[Argument, ...], *more: Atom) -> DatalogRule:
        key = head, arguments, source, body, *((atom.relation, atom.arguments) for atom in more)
        self.used.add(key)
        found = self.made._edges.get(key)
        if found is None:
            found = self.made._edges[key] = DatalogRule(Atom(head, arguments), (Atom(source, body), *more), resource=True, variables=3)
        return found

    @property
    def _terms(self) -> TermTable:
        return self.made.terms

    def _predicates(self, source: Relation) -> list[int]:
        """Return a written predicate and those above it."""
        number = source.key.predicate
        known = self.made._above
        if known[0] is not self._schema:
            known = self.made._above = self._schema, {}
        if number not in known[1]:
            above = find_above(self._terms, self._schema.predicates, number)
            known[1][number] = list(dict.fromkeys([number, *above]))
        return known[1][number]

    def _kinds(self, source: Relation, place: int) -> list[int]:
        types = self._schema.subjects if place == X else self._schema.objects
        return find_above(self._terms, types, source.key.predicate)

    def _class_pairs(self) -> Relation:
        return self.made._relation(RelationKey(_ABOVE), 2)

    def _types(self, view: Relation, source: Relation) -> Iterator[DatalogRule]:
        """Yield rules for what a written relation says of types."""
        wanted, own = view.key.kind, source.key.kind
        body: tuple[Argument, ...] = (X,) if own else (X, Y)

        def typed(node: Argument, kind: int) -> Iterator[DatalogRule]:
            if wanted in (0, kind):
                yield self._edge(view, (node, kind) if not wanted else (node,), source, body)

        is_type = source.key.predicate == self.lower.vocabulary[TYPE]
        for predicate in (*self._predicates(source), *(self.lower.vocabulary[k] for k in (TYPE, SUBCLASS, SUBPROPERTY))):
            yield from typed(predicate, self.lower.vocabulary[PROPERTY])
        for place in (X,) if own else (X, Y):
            for kind in self._kinds(source, place):
                yield from typed(place, kind)
        if own:
            for kind in dict.fromkeys((own, *find_above(self._terms, self._schema.classes, own))):
                yield from typed(X, kind)
        elif is_type and not wanted:
            yield self._edge(view, (X, Y), source, (X, Y))
            yield self._edge(view, (X, -3), source, (X, Y), Atom(self._class_pairs(), (Y, -3)))
        elif is_type:
            yield self._edge(view, (X,), source, (X, wanted))
            yield self._edge(view, (X,), source, (X, Y), Atom(self._class_pairs(), (Y, wanted)))

    def _classes(self, view: Relation, source: Relation) -> Iterator[DatalogRule]:
        """Yield rules for the classes that a written relation speaks of, each of which is below itself."""
        own = source.key.kind
        body: tuple[Argument, ...] = (X,) if own else (X, Y)
        kinds = [self.lower.vocabulary[PROPERTY], *self._kinds(source, X), *([] if own else self._kinds(source, Y)), *([own] if own else [])]
        for kind in dict.fromkeys(kinds):
            for each in dict.fromkeys((kind, *find_above(self._terms, self._schema.classes, kind))):
                yield self._edge(view, (each, each), source, body)
                for above in find_above(self._terms, self._schema.classes, each):
                    yield self._edge(view, (each, above), source, body)
        if source.key.predicate == self.lower.vocabulary[TYPE] and not own:
            yield self._edge(view, (Y, Y), source, (X, Y))
            yield self._edge(view, (Y, -3), source, (X, Y), Atom(self._class_pairs(), (Y, -3)))
            yield self._edge(view, (-3, -3), source, (X, Y), Atom(self._class_pairs(), (Y, -3)))

    def _properties(self, view: Relation, source: Relation) -> Iterator[DatalogRule]:
        """Yield rules for the properties that a written relation speaks of, each of which is below itself."""
        own: tuple[Argument, ...] = (X,) if source.key.kind else (X, Y)
        spoken = [*self._predicates(source), *(self.lower.vocabulary[k] for k in (TYPE, SUBCLASS, SUBPROPERTY))]
        for each in dict.fromkeys(spoken):
            for above in dict.fromkeys((each, *find_above(self._terms, self._schema.properties, each))):
                yield self._edge(view, (each, above), source, own)
                yield self._edge(view, (above, above), source, own)
