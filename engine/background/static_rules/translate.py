"""A static rule's pattern becomes Datalog: alternatives become rules of their own, and what is absent, optional or
repeated gets a relation of its own.

What Datalog over named predicates has no words for is refused with the reason.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import count

import numpy as np

from engine.background.reasoning.rdfs_schema import DOMAIN, SUBCLASS, SUBPROPERTY, TYPE, VOCABULARY
from engine.background.static_rules.program import (
    ERROR,
    LIST,
    PART,
    TRUE,
    UNBOUND,
    VALUE,
    VIEW,
    WRITTEN,
    Argument,
    Atom,
    Condition,
    DatalogRule,
    Fold,
    Relation,
    RelationKey,
)  # fmt: skip
from engine.background.static_rules.sorted_rows import Ints, pack_pairs, unite
from engine.dictionary.term_dictionary import TermTable
from engine.pattern_scope import list_conjuncts
from engine.rewrite.rename_hidden import find_variables, rename_hidden
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, Iri, TermOrVariable, TripleTermPattern, Variable
from epsparql.trees import replace_fields, walk_nodes

MOST_ALTERNATIVES = 64
"""A static rule may have so many ways in which its pattern matches."""
_SCHEMA = VOCABULARY[DOMAIN : SUBPROPERTY + 1]
_CHANGING = {"NOW", "RAND", "UUID", "STRUUID", "BNODE"}
_DEFAULT = "patterns over triples that always hold: triples, UNION, OPTIONAL, MINUS, FILTER, BIND, VALUES, EXISTS, aggregates and paths"


class StaticRuleRefused(Exception):
    """Signals a rule that is no static rule; `culprit` is the part of the query that it is about."""

    def __init__(self, message: str, culprit: object, expected: str = _DEFAULT) -> None:
        super().__init__(message)
        self.culprit, self.expected = culprit, expected


@dataclass(frozen=True, slots=True)
class _Literal:
    relation: Relation
    arguments: tuple[int | Variable, ...]


@dataclass(frozen=True, slots=True)
class _Test:
    expression: a.Expression
    scope: frozenset[Variable]
    wants: int = TRUE
    target: Variable | None = None


@dataclass(frozen=True, slots=True)
class _Body:
    """Holds one way in which a pattern matches, with the variables that are bound by it."""

    atoms: tuple[_Literal, ...] = ()
    absent: tuple[_Literal, ...] = ()
    tests: tuple[_Test, ...] = ()
    bound: frozenset[Variable] = frozenset()

    def joined(self, other: "_Body") -> "_Body":
        return _Body(self.atoms + other.atoms, self.absent + other.absent, self.tests + other.tests, self.bound | other.bound)

    @property
    def all_variables(self) -> frozenset[Variable]:
        """Return the variables of the body, hidden ones too."""
        targets = (test.target for test in self.tests if test.target is not None)
        return frozenset(targets).union(*(_variables(*literal.arguments) for literal in self.atoms))

    def tested(self, test: _Test) -> "_Body":
        more = frozenset() if test.target is None else frozenset({test.target})
        return replace_fields(self, tests=(*self.tests, test), bound=self.bound | more)


@dataclass(frozen=True, slots=True)
class _Where:
    """Says where triples are looked for (None for all graphs), and which variables stand for values from outside, as
    in EXISTS.

    Where an aggregate `counts` solutions, hidden variables distinguish them.
    """

    graphs: tuple[int, ...] | None
    outer: frozenset[Variable] = frozenset()
    counts: bool = False


@dataclass(frozen=True, slots=True)
class _Grouping:
    """Describes the members of groups: their variables, and how many of these are the keys."""

    names: tuple[Variable, ...]
    keys: int


@dataclass(slots=True, eq=False)
class Translation:
    """Translates one static rule. `rules` is the result; `lists` has the tuples of VALUES."""

    terms: TermTable
    relation: Callable[[RelationKey, int], Relation]
    source: int
    rules: list[DatalogRule] = field(default_factory=list)
    lists: dict[Relation, Ints] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _named: tuple[str, ...] | None = None
    _rule: a.BackgroundRule | None = None

    def translate(self, rule: a.BackgroundRule, default_graph: str) -> None:
        """Raise StaticRuleRefused if the rule is none."""
        refuse_template(rule)
        self._rule = rule
        query = rename_hidden(rule)
        assert isinstance(query, a.BackgroundRule)
        dataset = query.sources.dataset
        self._named = None if dataset is None else dataset.named
        names = dataset.default if dataset is not None else ("",) if default_graph == "unnamed" else None
        where = _Where(None if names is None else self._graphs(names))
        graph = self._intern(Iri(query.graph))
        bodies = self._bodies(query.pattern, where)
        for triple in query.template:
            variables = frozenset(a.variables_in(triple.subject, triple.object))
            relation, arguments = self._find_relation(triple, WRITTEN, (graph,))
            for body in bodies:
                if variables <= body.bound:
                    self._add(_Literal(relation, arguments), body, resource=True)
        self._drop_unread()

    def _drop_unread(self) -> None:
        """Drop rules whose part no other rule reads: a template needs not each alternative of its pattern."""
        before = 0
        while before != len(self.rules):
            before, read = len(self.rules), {atom.relation for rule in self.rules for atom in (*rule.atoms, *rule.absent)}
            self.rules = [rule for rule in self.rules if rule.head.relation.key.role != PART or rule.head.relation in read]

    # ------------------------------------------------------------ terms and rules
    def _intern(self, term: object) -> int:
        return self.terms.intern(str(term))

    def _graphs(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted(self._intern(Iri(name)) if name and not name.startswith("_:") else self._intern(name) if name else 0 for name in names))

    def _argument(self, term: TermOrVariable) -> int | Variable:
        return term if isinstance(term, Variable) else self._intern(term)

    def _fresh(self) -> Variable:
        return Variable(f"_:static#{next(self._numbers)}")

    def _part(self, arity: int) -> Relation:
        return self.relation(RelationKey(PART, of=(self.source, next(self._numbers))), arity)

    def _add(self, head: _Literal, body: _Body, *, resource: bool = False) -> None:
        slots: dict[Variable, Argument] = {}

        def argument(value: int | Variable) -> Argument:
            return slots.setdefault(value, -1 - len(slots)) if isinstance(value, Variable) else value

        def atom(literal: _Literal) -> Atom:
            return Atom(literal.relation, tuple(map(argument, literal.arguments)))

        atoms = tuple(map(atom, body.atoms))
        conditions = tuple(
            Condition(
                test.expression,
                tuple((v, argument(v)) for v in sorted(test.scope, key=str)),
                test.wants,
                0 if test.target is None else argument(test.target),
            )
            for test in body.tests
        )
        absent = tuple(map(atom, body.absent))
        self.rules.append(DatalogRule(atom(head), atoms, absent, conditions, resource, self.source, len(slots)))

    # ------------------------------------------------------------ patterns
    def _bodies(self, pattern: a.Pattern, where: _Where) -> list[_Body]:
        found = self._alternatives(pattern, where)
        if len(found) > MOST_ALTERNATIVES:
            message = f"a static rule whose pattern has more than {MOST_ALTERNATIVES} alternatives (UNION, OPTIONAL and BIND multiply)"
            raise StaticRuleRefused(message, pattern, "several rules")
        return found

    def _alternatives(self, pattern: a.Pattern, where: _Where) -> list[_Body]:
        match pattern:
            case a.Bgp(triples):
                body = _Body()
                for triple in triples:
                    relation, arguments = self._find_relation(triple, VIEW, where.graphs)
                    body = body.joined(_Body((_Literal(relation, arguments),), bound=frozenset(a.variables_in(triple.subject, triple.object))))
                return [body]
            case a.Join(left, right):
                return self._product(self._bodies(left, where), self._bodies(right, where), pattern)
            case a.Union(left, right):
                return [*self._bodies(left, where), *self._bodies(right, where)]
            case a.Filter(condition, inner):
                return self._filtered(self._bodies(inner, where), list_conjuncts(condition), where)
            case a.Extend(inner, variable, expression):
                return self._extended(self._bodies(inner, where), variable, expression, where)
            case a.LeftJoin(left, right, condition):
                return self._translate_optional(pattern, where, [] if condition is None else list_conjuncts(condition))
            case a.Minus(left, right):
                others = self._bodies(right, replace_fields(where, outer=frozenset()))
                return [self._without(body, others, lambda one, other: one.bound & other.bound) for body in self._bodies(left, where)]
            case a.Values(variables, rows):
                return self._translate_values(variables, rows)
            case a.Path(subject, path, object_):
                return self._translate_path(self._argument(subject), path, self._argument(object_), where, pattern)
            case a.SubSelect(inner, projection, distinct, modifiers):
                if modifiers.once is not None:
                    raise StaticRuleRefused("ONCE PER in a static rule, whose triples always hold,", pattern)
                if modifiers.limit is not None or modifiers.offset:
                    raise StaticRuleRefused("LIMIT or OFFSET in a static rule: what always holds has no order", pattern)
                bodies = [replace_fields(body, bound=body.bound & frozenset(projection)) for body in self._bodies(inner, where)]
                return self._distinct(bodies) if distinct and where.counts else bodies  # `rename_hidden` has parted what is hidden
            case a.Graph(Iri(name), inner):
                among = (name,) if self._named is None or name in self._named else ()
                return self._bodies(inner, replace_fields(where, graphs=self._graphs(among)))
            case a.Graph():
                raise StaticRuleRefused("GRAPH with a variable in a static rule", pattern, "the graph's IRI")
            case a.Group(window=None):
                return self._translate_group(pattern, where)
            case a.Group():
                raise StaticRuleRefused("a window in a static rule, whose triples always hold,", pattern)
            case _:
                raise StaticRuleRefused("an operator over time in a static rule, whose triples always hold,", pattern)

    def _product(self, left: Sequence[_Body], right: Sequence[_Body], pattern: a.Pattern) -> list[_Body]:
        if len(left) * len(right) > MOST_ALTERNATIVES:
            message = f"a static rule whose pattern has more than {MOST_ALTERNATIVES} alternatives (UNION, OPTIONAL and BIND multiply)"
            raise StaticRuleRefused(message, pattern, "several rules")
        return [one.joined(other) for one in left for other in right]

    def _find_relation(self, triple: a.TriplePattern, role: str, graphs: tuple[int, ...] | None) -> tuple[Relation, tuple[int | Variable, ...]]:
        s, p, o = triple.subject, triple.predicate, triple.object
        if isinstance(p, Variable):
            raise StaticRuleRefused("a variable as predicate in a static rule", triple, "the predicate's IRI")
        if any(isinstance(part, TripleTermPattern) for part in (s, o)):
            raise StaticRuleRefused("a pattern of a triple term in a static rule", triple)
        if role == VIEW and graphs is not None and p in (VOCABULARY[SUBCLASS], VOCABULARY[SUBPROPERTY]):
            raise StaticRuleRefused(
                f"{p} of one graph in a static rule: the schema of all graphs applies", triple, "the pattern outside of GRAPH and FROM"
            )
        number, subject, object_ = self._intern(p), self._argument(s), self._argument(o)
        if p == VOCABULARY[TYPE] and not isinstance(object_, Variable):
            return self.relation(RelationKey(role, number, object_, graphs), 1), (subject,)
        return self.relation(RelationKey(role, number, 0, graphs), 2), (subject, object_)

    # ------------------------------------------------------------ conditions
    def _filtered(self, bodies: Sequence[_Body], conditions: Iterable[a.Expression], where: _Where) -> list[_Body]:
        found = list(bodies)
        for condition in conditions:
            match condition:
                case a.Exists(inner):
                    found = [
                        body.joined(_Body((literal,), bound=_variables(*literal.arguments)))
                        for body in found
                        for literal in self._tested(body, inner, where)
                    ]
                case a.Not(a.Exists(inner)):
                    found = [replace_fields(body, absent=(*body.absent, *self._tested(body, inner, where))) for body in found]
                case _:
                    found = [body.tested(_Test(condition, self._scope(condition, body, where))) for body in found]
        return found

    def _scope(self, expression: a.Expression, body: _Body, where: _Where) -> frozenset[Variable]:
        refuse_expression(expression)
        return frozenset(find_variables(expression)) & (body.bound | where.outer)

    def _extended(self, bodies: Sequence[_Body], variable: Variable, expression: a.Expression, where: _Where) -> list[_Body]:
        found = []
        for body in bodies:
            scope = self._scope(expression, body, where)
            if _is_surely_unbound(expression, scope):
                found.append(body)
                continue
            found.append(body.tested(_Test(expression, scope, VALUE, variable)))
            if not isinstance(expression, a.Constant | a.Var):
                found.append(body.tested(_Test(expression, scope, ERROR)))
        return found

    def _tested(self, body: _Body, inner: a.Pattern, where: _Where) -> list[_Literal]:
        """Return literals, one of which holds where the pattern of an EXISTS matches."""
        visible = body.bound | where.outer
        return [self._projection(one, visible, body) for one in self._bodies(inner, _Where(where.graphs, visible))]

    def _projection(self, inner: _Body, visible: frozenset[Variable], body: _Body) -> _Literal:
        """Return a literal over the visible variables of an inner body.

        A body that needs values from outside is solved along with the outer one.
        """
        asked = frozenset().union(*(test.scope for test in inner.tests), *(_variables(*literal.arguments) for literal in inner.absent))
        needed = (asked - inner.bound) & visible
        whole = body.joined(inner) if needed else inner
        if not needed <= whole.bound:
            raise StaticRuleRefused(f"an EXISTS in an EXISTS that uses {', '.join(map(str, needed - whole.bound))} from outside of both", self._rule)
        shared = tuple(sorted((inner.bound | needed) & visible, key=str))
        if not needed and len(inner.atoms) == 1 and not inner.tests and not inner.absent:
            (atom,) = inner.atoms
            if frozenset(v for v in atom.arguments if isinstance(v, Variable)) <= visible:
                return atom
        arguments: tuple[int | Variable, ...] = shared or (1,)
        head = _Literal(self._part(len(arguments)), arguments)
        self._add(head, whole)
        return head

    def _without(self, body: _Body, others: Iterable[_Body], shared: Callable[[_Body, _Body], frozenset[Variable]]) -> _Body:
        """Return a body without what agrees with one of others that it shares a variable with (MINUS)."""
        absent = [self._projection(other, common, body) for other in others if (common := shared(body, other))]
        return replace_fields(body, absent=(*body.absent, *absent))

    def _translate_optional(self, pattern: a.LeftJoin, where: _Where, conditions: Sequence[a.Expression]) -> list[_Body]:
        found = []
        right = self._bodies(pattern.right, where)
        for body in self._bodies(pattern.left, where):
            both = [self._filtered([body.joined(other)], conditions, where) for other in right]
            found += [each for bodies in both for each in bodies]
            absent = []
            for other in right:
                wider = _Where(where.graphs, where.outer | body.bound)
                for inner in self._filtered([other], conditions, wider):
                    absent.append(self._projection(inner, body.bound | where.outer, body))
            found.append(replace_fields(body, absent=(*body.absent, *absent)))
        return found

    # ------------------------------------------------------------ groups
    def _distinct(self, bodies: Sequence[_Body]) -> list[_Body]:
        """Return bodies without hidden variables, so that solutions which differ in these alone are one."""
        return [_Body((self._projection(body, body.bound, _Body()),), bound=body.bound) for body in bodies]

    def _translate_group(self, group: a.Group, where: _Where) -> list[_Body]:
        """Give the solutions a relation, the keys first.

        Each aggregate folds it to a relation of its own, without groups in which it is an error.
        """
        bodies = self._bodies(group.pattern, _Where(where.graphs, counts=True))
        keys = group.keys
        if any(not frozenset(keys) <= body.bound for body in bodies):
            raise StaticRuleRefused("GROUP BY of what may be unbound in a static rule", group, "keys that each alternative of the pattern binds")
        names = (*keys, *sorted(frozenset().union(*(body.all_variables for body in bodies)) - frozenset(keys), key=str))
        members = self._part(max(len(names), 1))
        for body in bodies:
            self._add(_Literal(members, tuple(name if name in body.all_variables else UNBOUND for name in names) or (UNBOUND,)), body)
        whole = _Body((self._projection(_Body((_Literal(members, names),), bound=frozenset(names)), frozenset(keys), _Body()),)) if keys else _Body()
        found = [replace_fields(whole, bound=frozenset(keys))]
        for variable, aggregate in group.aggregates:
            results = self._add_fold(members, _Grouping(names, len(keys)), variable, aggregate)
            known = _Body((results,), bound=frozenset({variable, *keys}))
            unknown = [] if aggregate.function is a.AggregateFunction.COUNT else [self._projection(known, frozenset(keys), _Body())]
            found = [
                *(known if body.atoms == whole.atoms and not body.absent else body.joined(known) for body in found),
                *(replace_fields(body, absent=(*body.absent, *unknown)) for body in (found if unknown else ())),
            ]
        return found

    def _add_fold(self, members: Relation, grouping: "_Grouping", variable: Variable, aggregate: a.Aggregate) -> _Literal:
        """Add the rule that folds members of groups, and return what it derives."""
        argument = aggregate.argument
        if argument is not None:
            refuse_expression(argument)
        scope = frozenset() if argument is None else frozenset(find_variables(argument))
        fold = Fold(grouping.names, grouping.keys, aggregate, variable, scope)
        results = self._part(grouping.keys + 1)
        slots = tuple(range(-1, -1 - members.arity, -1))
        head = Atom(results, (*slots[: grouping.keys], -1 - members.arity))
        self.rules.append(DatalogRule(head, (), (Atom(members, slots),), source=self.source, variables=members.arity + 1, fold=fold))
        return _Literal(results, (*grouping.names[: grouping.keys], variable))

    # ------------------------------------------------------------ tables and paths
    def _translate_values(self, variables: Sequence[Variable], rows: Sequence[Sequence[object]]) -> list[_Body]:
        by_bound: dict[tuple[int, ...], list[list[int]]] = {}
        for terms in rows:
            bound = tuple(k for k, term in enumerate(terms) if term is not None)
            by_bound.setdefault(bound, []).append([self._intern(terms[k]) for k in bound])
        found = []
        for bound, numbers in by_bound.items():
            names = [variables[k] for k in bound]
            table = _columns(numbers, len(bound))
            if len(bound) < 3:
                literals = [self._list(names, table)] if bound else []
            else:  # the row itself holds its terms together
                row, places = self._fresh(), _columns([[k] for k in range(1, len(numbers) + 1)], 1)[0]
                literals = [self._list([row, name], [places, column]) for name, column in zip(names, table, strict=True)]
            found.append(_Body(tuple(literals), bound=frozenset(names)))
        return found

    def _list(self, names: Sequence[Variable], columns: Sequence[Ints]) -> _Literal:
        relation = self.relation(RelationKey(LIST, of=(self.source, next(self._numbers))), len(names))
        self.lists[relation] = unite([columns[0] if len(columns) == 1 else pack_pairs(columns[0], columns[1])])
        return _Literal(relation, tuple(names))

    def _translate_path(self, subject: int | Variable, path: a.PropertyPath, object_: int | Variable, where: _Where, whole: a.Path) -> list[_Body]:
        match path:
            case a.Link(predicate):
                return [self._linked(subject, predicate, object_, where)]
            case a.Inverse(inner):
                return self._translate_path(object_, inner, subject, where, whole)
            case a.Sequence(left, right):
                middle = self._fresh()
                return self._product(
                    self._translate_path(subject, left, middle, where, whole), self._translate_path(middle, right, object_, where, whole), whole
                )
            case a.Alternative(left, right):
                return [*self._translate_path(subject, left, object_, where, whole), *self._translate_path(subject, right, object_, where, whole)]
            case a.OneOrMore(inner):
                closure, x, y, z = self._part(2), self._fresh(), self._fresh(), self._fresh()
                for body in self._translate_path(x, inner, y, where, whole):
                    self._add(_Literal(closure, (x, y)), body)
                for body in self._translate_path(y, inner, z, where, whole):
                    self._add(_Literal(closure, (x, z)), _Body((_Literal(closure, (x, y)),)).joined(body))
                return [_Body((_Literal(closure, (subject, object_)),), bound=_variables(subject, object_))]
            case _:
                raise StaticRuleRefused("a path with *, ? or ! in a static rule", whole, "a path with +, / , | or ^, and UNION for no step at all")

    def _linked(self, subject: int | Variable, predicate: Iri, object_: int | Variable, where: _Where) -> _Body:
        number = self._intern(predicate)
        if predicate == VOCABULARY[TYPE] and not isinstance(object_, Variable):
            literal = _Literal(self.relation(RelationKey(VIEW, number, object_, where.graphs), 1), (subject,))
        else:
            literal = _Literal(self.relation(RelationKey(VIEW, number, 0, where.graphs), 2), (subject, object_))
        return _Body((literal,), bound=_variables(subject, object_))


def _is_surely_unbound(expression: a.Expression, scope: frozenset[Variable]) -> bool:
    """Return whether an expression has no value, because it calculates with a variable that is unbound."""
    match expression:
        case a.Var(variable):
            return variable not in scope
        case a.Arithmetic(_, left, right):
            return _is_surely_unbound(left, scope) or _is_surely_unbound(right, scope)
    return False


def _variables(*arguments: int | Variable) -> frozenset[Variable]:
    return frozenset(argument for argument in arguments if isinstance(argument, Variable))


def _columns(rows: Sequence[Sequence[int]], width: int) -> list[Ints]:
    table = np.array(rows, np.int64).reshape(len(rows), width)
    return [table[:, k] for k in range(width)]


def refuse_template(rule: a.BackgroundRule) -> None:
    """Raise StaticRuleRefused if the rule writes what no static rule may write."""
    for triple in rule.template:
        if any(isinstance(part, BlankNode) for part in (triple.subject, triple.object)):
            raise StaticRuleRefused("a blank node in the template of a static rule", rule, "an IRI or a variable; BIND(IRI(...) AS ?x) makes one")
        if isinstance(triple.predicate, Variable):
            raise StaticRuleRefused("a variable as predicate in the template of a static rule", rule, "the predicate's IRI")
        if triple.predicate in _SCHEMA:
            raise StaticRuleRefused(f"a static rule that derives schema ({triple.predicate})", rule, "the schema as facts of a graph")
        if isinstance(triple.subject, TripleTermPattern) or isinstance(triple.object, TripleTermPattern):
            raise StaticRuleRefused("a triple term in the template of a static rule", rule)


def refuse_expression(expression: a.Expression) -> None:
    """Raise StaticRuleRefused for an expression whose value is not the same always."""
    for node in walk_nodes(expression):
        match node:
            case a.Time():
                raise StaticRuleRefused("an interval in a static rule, whose triples always hold,", node)
            case a.Exists():
                raise StaticRuleRefused("EXISTS inside an expression of a static rule", node, "FILTER EXISTS or FILTER NOT EXISTS by itself")
            case a.Call(function, _) if function in _CHANGING:
                raise StaticRuleRefused(f"{function}() in a static rule, whose triples always hold,", node)
