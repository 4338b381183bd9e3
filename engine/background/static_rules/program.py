"""A program is what static rules come to: Datalog rules over relations of term numbers, in the order in which their
relations are settled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from engine.background.static_rules.sorted_rows import NO_ROWS, SortedRows
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable

TRUE, VALUE, ERROR = range(3)
"""A condition wants its expression to be true, to have a value, which it binds, or to have none."""
Argument = int
"""An argument is the number of a term; or, below zero, a variable: -1 is the first of the rule's."""
UNBOUND: Argument = 0
"""It stands for no term among the members of a group."""


@dataclass(frozen=True, slots=True)
class RelationKey:
    """Names a relation: the triples of a predicate that rules read (VIEW) or write (WRITTEN), or what a rule needs
    beside these.

    `kind` is the class where it is of rdf:type with one class, else 0. `graphs` are those it looks at, None for all.
    """

    role: str
    predicate: int = 0
    kind: int = 0
    graphs: tuple[int, ...] | None = None
    of: tuple[int, int] = (0, 0)  # the rule's number and a number in it


VIEW, WRITTEN, PART, LIST = "view", "written", "part", "list"


@dataclass(slots=True, eq=False)
class Relation:
    """Holds a relation and its tuples as they stand, whatever rule needs them.

    `given` are those that need no rule. While a change goes on, `before` is what was there before it.
    """

    key: RelationKey
    arity: int
    rows: SortedRows = NO_ROWS
    given: SortedRows = NO_ROWS
    before: SortedRows | None = None

    @property
    def old(self) -> SortedRows:
        return self.rows if self.before is None else self.before


@dataclass(frozen=True, slots=True)
class Atom:
    relation: Relation
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """Wants something of an expression over those variables that are in its scope; all others are unbound in it."""

    expression: a.Expression
    scope: tuple[tuple[Variable, Argument], ...]
    wants: int = TRUE
    target: Argument = 0


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Folds the tuples of a relation, whose terms are of `names`: those that agree in the first `keys` terms are a
    group.

    UNBOUND stands for no term. `result` is the aggregate's variable, and `scope` are the variables that its argument
    looks at.
    """

    names: tuple[Variable, ...]
    keys: int
    aggregate: a.Aggregate
    result: Variable
    scope: frozenset[Variable]


@dataclass(frozen=True, slots=True)
class Best:
    """Says that a relation keeps the least (MIN) or greatest value of each group: its last term, by the others.

    `inner` is the value in the atom that is of the same loop; 0 if the rule has no such atom.
    """

    function: a.AggregateFunction
    inner: Argument = 0


@dataclass(frozen=True, slots=True, eq=False)
class DatalogRule:
    """Derives `head` where all atoms hold, none of `absent` does, and the conditions are met.

    With `resource` no tuple is derived whose first term is a literal. With `fold` it derives the groups' keys with
    the aggregate of each. The tuples that it folds stand as the one that is absent, because all of them are settled
    before. With `best` its relation keeps the best value of each group.
    """

    head: Atom
    atoms: tuple[Atom, ...]
    absent: tuple[Atom, ...] = ()
    conditions: tuple[Condition, ...] = ()
    resource: bool = False
    source: int = 0  # the registration that it comes from; 0 for RDFS
    variables: int = 0
    fold: Fold | None = None
    best: Best | None = None

    @property
    def source_atom(self) -> Atom:
        """Return the atom whose tuples are folded."""
        return self.absent[0]

    @property
    def makes_values(self) -> bool:
        """Return whether the rule makes values; where the best is kept, those of groups have an end by themselves."""
        made = {condition.target for condition in self.conditions if condition.wants == VALUE and not isinstance(condition.expression, a.Var)}
        return bool(made if self.best is None else made.intersection(self.head.arguments[:-1]))


@dataclass(slots=True, eq=False)
class Stratum:
    """Holds relations that depend on each other, or one alone."""

    relations: list[Relation]
    rules: list[DatalogRule] = field(default_factory=list)
    inner: dict[Relation, list[tuple[DatalogRule, int]]] = field(default_factory=dict)
    """By relation of the stratum, the rules of the stratum that read it, and at which atom."""
    best: dict[Relation, a.AggregateFunction] = field(default_factory=dict)
    """The relations that keep the best value of each group, by MIN or MAX."""

    @property
    def grows(self) -> bool:
        """Return whether a rule makes values out of what the stratum itself derives."""
        return any(rule.makes_values for readers in self.inner.values() for rule, _ in readers)


class NegativeCycle(Exception):
    """Signals relations that depend on their own absence: `way` is the cycle, from the relation whose absence is
    asked for.

    The `reason` says why a loop through MIN or MAX is none that a better value only makes better.
    """

    def __init__(self, way: Sequence[Relation], reason: str = "") -> None:
        super().__init__(way, reason)
        self.way, self.reason = way, reason


class Program:
    """Orders rules by strata. Raises NegativeCycle."""

    def __init__(self, rules: Iterable[DatalogRule], views: Iterable[Relation]) -> None:
        self.rules: dict[DatalogRule, None] = {}
        self.by_head: dict[Relation, list[DatalogRule]] = {}
        self.relations: dict[Relation, dict[Relation, None]] = {}
        """The relations, each with those that it leads to."""
        self.strata: list[Stratum] = []
        self.place: dict[Relation, int] = {}
        self.readers: dict[Relation, set[int]] = {}
        """By relation, the strata of the rules that read it."""
        self._add_rules(rules, views)

    def extended(self, rules: Sequence[DatalogRule], views: Iterable[Relation]) -> "Program | None":
        """Return the program with more rules and views; None if one of them derives what there is already, since then
        the order may be another.

        Raises NegativeCycle.
        """
        if any(rule.head.relation in self.relations for rule in rules):
            return None
        found = Program((), ())
        found.rules, found.by_head, found.strata, found.place = dict(self.rules), dict(self.by_head), list(self.strata), dict(self.place)
        found.relations, found.readers = dict(self.relations), dict(self.readers)
        found._add_rules(rules, views)
        return found

    def _add_rules(self, rules: Iterable[DatalogRule], views: Iterable[Relation]) -> None:
        """Add rules whose heads are new.

        Relations that were there before may be shared with another program, so they are replaced and not changed.
        """
        fresh = dict.fromkeys(rules)
        onwards = list_edges(fresh, (view for view in views if view not in self.relations))
        read = {relation: onwards.pop(relation) for relation in [*onwards] if relation in self.relations}
        for rule in fresh:
            self.by_head.setdefault(rule.head.relation, []).append(rule)
        for relations in list_components(onwards):
            for relation in relations:
                self.place[relation] = len(self.strata)
            self.strata.append(Stratum(relations))
        for relation, heads in read.items():
            self.relations[relation] = self.relations[relation] | heads
        self.rules |= fresh
        self.relations |= onwards
        for relation in (*onwards, *read):
            self.readers[relation] = {self.place[head] for head in self.relations[relation]}
        for rule in fresh:
            self._place_rule(rule)

    def _place_rule(self, rule: DatalogRule) -> None:
        number = self.place[rule.head.relation]
        stratum = self.strata[number]
        stratum.rules.append(rule)
        if rule.best is not None:
            stratum.best[rule.head.relation] = rule.best.function
        for atom in rule.absent:
            if self.place[atom.relation] == number:
                raise NegativeCycle(self._way(rule.head.relation, atom.relation))
        for k, atom in enumerate(rule.atoms):
            if self.place[atom.relation] == number:
                stratum.inner.setdefault(atom.relation, []).append((rule, k))

    def _way(self, start: Relation, end: Relation) -> list[Relation]:
        """Return a shortest way by which one relation leads to another."""
        came: dict[Relation, Relation] = {}
        edge, seen = [start], {start}
        while end not in seen:
            following = [(each, other) for each in edge for other in self.relations[each] if other not in seen]
            for each, other in following:
                if other not in seen:
                    seen.add(other)
                    came[other] = each
            edge = list(dict.fromkeys(other for _, other in following))
        way = [end]
        while way[-1] is not start:
            way.append(came[way[-1]])
        return way[::-1]


def list_edges(rules: Iterable[DatalogRule], views: Iterable[Relation]) -> dict[Relation, dict[Relation, None]]:
    """Return the relations of rules, and views, each with those that rules derive from it."""
    onwards: dict[Relation, dict[Relation, None]] = {view: {} for view in views}
    for rule in rules:
        onwards.setdefault(rule.head.relation, {})
        for atom in (*rule.atoms, *rule.absent):
            onwards.setdefault(atom.relation, {})[rule.head.relation] = None
    return onwards


def list_components(onwards: Mapping[Relation, Mapping[Relation, None]]) -> list[list[Relation]]:
    """Return the strongly connected components, those that lead to others first (Tarjan's algorithm, without
    recursion).
    """
    index: dict[Relation, int] = {}
    low: dict[Relation, int] = {}
    stack: list[Relation] = []
    waiting: set[Relation] = set()
    found: list[list[Relation]] = []
    for root in onwards:
        if root in index:
            continue
        work = [(root, iter(onwards[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        waiting.add(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    waiting.add(other)
                    work.append((other, iter(onwards[other])))
                    break
                if other in waiting:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[Relation] = []
                    while not component or component[-1] is not node:
                        component.append(stack.pop())
                        waiting.discard(component[-1])
                    found.append(component[::-1])
    return found[::-1]


def constants_of(rules: Iterable[DatalogRule]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return the numbers of terms that stand in rules."""
    found = [n for rule in rules for atom in (rule.head, *rule.atoms, *rule.absent) for n in atom.arguments if n > 0]
    return np.array(found, np.int64)
