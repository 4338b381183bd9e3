"""Algebra to a fragment of operators (architecture.md, "EDBC rules as data").

Goals are binary: every operator joins two sides. Windows and filters go down as far as they decide early.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from engine import bytecode
from engine.expressions import supported
from engine.kernel import columns as c
from engine.program import Fragment, Inquiry
from engine.scope import Matches, Scope, Variables, all_variables, conjuncts, looks_at_time, parts, scope, variables_of
from epsparql import algebra as a
from epsparql.terms import BlankNode, Term, TermOrVariable, Variable

Target = tuple[int, int]
"""The node and side that a pattern's solutions go to."""

RELATIONS = {
    a.Relation.MEETS: c.MEETS,
    a.Relation.DURING: c.DURING,
    a.Relation.STARTS: c.STARTS,
    a.Relation.FINISHES: c.FINISHES,
    a.Relation.OVERLAPS: c.OVERLAPS,
    a.Relation.PAR: c.PAR,
}
WINDOW = None
LIVES: dict[int, tuple[int | None, int | None]] = {
    # how long goals of the left and right side live, given that input comes in order of end: WINDOW, 0 this instant, NEVER not stored
    c.ANY: (WINDOW, WINDOW),
    c.SEQ: (WINDOW, c.NEVER),
    c.EQUALS: (0, 0),
    c.MEETS: (WINDOW, 0),
    c.DURING: (WINDOW, c.NEVER),
    c.STARTS: (WINDOW, c.NEVER),
    c.FINISHES: (0, 0),
    c.OVERLAPS: (WINDOW, c.NEVER),
    c.PAR: (WINDOW, WINDOW),
}
LOOKS_BACK = frozenset({c.SEQ, c.DURING, c.STARTS, c.OVERLAPS})
"""Relations whose left operand ends strictly before the right one."""
TIMED_ONLY = -2
"""In FILTER: only timeless solutions are dropped."""


class Refusal(Exception):
    """A pattern that this engine does not evaluate; `word` is where the query's text says it."""

    def __init__(self, message: str, word: str = "") -> None:
        super().__init__(message)
        self.word = word


@dataclass(frozen=True, slots=True)
class Names:
    """How a network numbers what a plan names."""

    term: Callable[[str], int]
    stream: Callable[[str], int]
    facts: Callable[[a.TriplePattern], Iterable[tuple[Term, Term, Term]]]  # background triples that match a pattern

    def matches(self, pattern: a.TriplePattern) -> bool:
        return any(True for _ in self.facts(pattern))


def plan(query: a.Query, names: Names) -> Fragment:
    """The fragment of a query. Raises Refusal."""
    planner = _Planner(query, names)
    planner.top()
    return planner.fragment


@dataclass(slots=True)
class _Planner:
    query: a.Query
    names: Names
    fragment: Fragment = field(default_factory=Fragment)

    @property
    def matches(self) -> Matches:
        return self.names.matches

    def scope(self, pattern: a.Pattern) -> Scope:
        return scope(pattern, self.matches)

    def column(self, variable: Variable) -> int:
        return self.fragment.columns.setdefault(variable, c.VAR + len(self.fragment.columns))

    def node(self, kind: int, target: Target | None, **values: int) -> int:
        row = [0] * c.NODE_WIDTH
        row[c.KIND], row[c.SPAN], row[c.FILTER], row[c.CONDITION], row[c.EDGE_AT] = kind, c.FOREVER, c.NONE, c.NONE, len(self.fragment.edges)
        if target is not None:
            self.fragment.edges.append(target)
            row[c.EDGE_N] = 1
        for name, value in values.items():
            row[getattr(c, name)] = value
        self.fragment.nodes.append(row)
        return len(self.fragment.nodes) - 1

    def slots(self, variables: Iterable[Variable]) -> tuple[int, int]:
        return bytecode.slots(self.fragment, [self.column(v) for v in sorted(variables, key=lambda v: v.name)])

    def filter(self, conditions: Sequence[a.Expression]) -> int:
        if not conditions:
            return c.NONE
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = a.And(whole, condition)
        return bytecode.compile_filter(self.fragment, whole)

    # ------------------------------------------------------------ queries
    def top(self) -> None:
        pattern = self.query.pattern
        for variable in sorted(all_variables(pattern), key=lambda v: v.name):
            self.column(variable)
        for stream in self.query.streams:
            self.names.stream(stream)
        out = self.node(c.OUT, None)
        match self.query:
            case a.Select(projection=projection, distinct=distinct):
                hidden = set(self.fragment.columns) - set(projection) if distinct else set()
                target = (out, c.LEFT)
            case a.Construct(template=template, into=into):
                target, kept = self.template(out, template, into)
                hidden = set(self.fragment.columns) - kept
            case _:
                assert_never(self.query)
        at, n = self.slots(hidden)
        self.fragment.nodes[out][c.HIDE_AT], self.fragment.nodes[out][c.HIDE_N] = at, n
        self.pattern(pattern, target, c.FOREVER, [])

    def template(self, out: int, template: Sequence[a.TriplePattern], into: str) -> tuple[Target, set[Variable]]:
        """The rule's triples; a blank node of the template becomes a column that the host fills for each solution."""
        target = (out, c.LEFT)
        blank: dict[BlankNode, Variable] = {}
        parts = [t for triple in template for t in (triple.subject, triple.predicate, triple.object)]
        everything = tuple(sorted(self.fragment.columns, key=lambda v: v.name))
        for label in dict.fromkeys(t for t in parts if isinstance(t, BlankNode)):
            blank[label] = variable = Variable(f"_:template {label.label}")
            inquiry = Inquiry(everything, timed=True, fresh=label.label)
            target = self.extend_node(variable, inquiry, target), c.LEFT

        def code(part: TermOrVariable) -> int:
            if isinstance(part, BlankNode):
                return -self.column(blank[part])
            return -self.column(part) if isinstance(part, Variable) else self.names.term(str(part))

        stream = self.names.stream(into)
        self.fragment.templates = [[code(t.subject), code(t.predicate), code(t.object), stream] for t in template]
        self.fragment.nodes[out][c.TEMPLATE_N] = len(template)
        kept = {t for t in parts if isinstance(t, Variable)} | set(blank.values())
        return target, kept if not blank else set(self.fragment.columns)

    def extend_node(self, variable: Variable, inquiry: Inquiry, target: Target) -> int:
        ask = bytecode.question(self.fragment, inquiry)
        return self.node(c.EXTEND, target, ASK=ask, COLUMN=self.column(variable))

    # ------------------------------------------------------------ patterns
    def pattern(self, pattern: a.Pattern, target: Target, span: int, conditions: list[a.Expression]) -> None:
        """Plans `pattern` so that its solutions which last at most `span` µs and satisfy all `conditions` reach `target`."""
        match pattern:
            case a.Bgp(triples):
                self.bgp(self.in_order(triples), target, span, conditions)
            case a.Join(left, right):
                self.join(left, right, c.ANY, target, span, conditions)
            case a.SeqJoin(left, right):
                self.join(left, right, c.SEQ, target, span, conditions)
            case a.EqJoin(left, right):
                self.join(left, right, c.EQUALS, target, span, conditions)
            case a.RelationJoin(relation, left, right):
                self.join(left, right, RELATIONS[relation], target, span, conditions)
            case a.Union(left, right):
                self.pattern(left, target, span, conditions)
                self.pattern(right, target, span, conditions)
            case a.Filter(condition, inner):
                self.filtered(condition, inner, target, span, conditions)
            case a.Within(inner, limit):
                self.pattern(inner, self.passing(inner, target, min(span, limit)), min(span, limit), conditions)
            case a.Extend():
                self.extended(pattern, target, span, conditions)
            case a.Minus():
                self.minus(pattern, target, span, conditions)
            case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
                self.optional(pattern, target, span, conditions)
            case a.SeqWithout():
                self.without(pattern, target, span, conditions)
            case a.WithoutFor():
                self.without_for(pattern, target, span, conditions)
            case _:
                assert_never(pattern)

    def after(self, target: Target, span: int, conditions: list[a.Expression]) -> Target:
        """A node before `target` for a span and conditions that nothing below enforces."""
        if span == c.FOREVER and not conditions:
            return target
        return self.node(c.PASS, target, SPAN=span, FILTER=self.filter(conditions)), c.LEFT

    def check(self, conditions: Sequence[a.Expression]) -> None:
        for part in (part for condition in conditions for part in parts(condition)):
            if isinstance(part, a.Exists):
                raise Refusal("EXISTS inside a larger expression", "EXISTS")
            if isinstance(part, a.Call) and not supported(part.function):
                raise Refusal(f"the function {part.function}", part.function)

    def in_order(self, triples: Sequence[a.TriplePattern]) -> list[a.TriplePattern]:
        """Triple patterns so that each shares a variable with those before it, where that can be."""
        rest, chosen = list(triples), list[a.TriplePattern]()
        bound: set[TermOrVariable] = set()
        while rest:
            following = next((t for t in rest if bound & triple_variables(t)), rest[0])
            rest.remove(following)
            chosen.append(following)
            bound |= triple_variables(following)
        return chosen

    def passing(self, inner: a.Pattern, target: Target, span: int) -> Target:
        """As `after`; a join enforces its span itself."""
        joins = (a.Join, a.SeqJoin, a.EqJoin, a.RelationJoin, a.SeqWithout)
        return target if isinstance(inner, joins) or (isinstance(inner, a.Bgp) and len(inner.triples) > 1) else self.after(target, span, [])

    # ------------------------------------------------------------ filters
    def filtered(self, condition: a.Expression, inner: a.Pattern, target: Target, span: int, conditions: list[a.Expression]) -> None:
        plain: list[a.Expression] = []
        exists: list[tuple[int, a.Pattern]] = []
        for part in conjuncts(condition):
            match part:
                case a.Exists(pattern):
                    exists.append((c.EXISTS, pattern))
                case a.Not(a.Exists(pattern)):
                    exists.append((c.NOTEXISTS, pattern))
                case _:
                    plain.append(part)
        bound = max(min((limit for part in plain if (limit := duration_limit(part)) is not None), default=c.FOREVER), 0)
        self.check(plain)
        for kind, other in exists:
            target = self.decided_by(kind, inner, other, target)
        self.pattern(inner, target, min(span, bound), [*plain, *conditions])

    def extended(self, pattern: a.Extend, target: Target, span: int, conditions: list[a.Expression]) -> None:
        self.check([pattern.expression])
        own = [e for e in conditions if pattern.variable in variables_of(e)]
        variables, timed = bytecode.arguments(self.fragment, pattern.expression)
        node = self.extend_node(pattern.variable, Inquiry(variables, timed, expression=pattern.expression), target)
        self.fragment.nodes[node][c.FILTER] = self.filter(own)
        self.pattern(pattern.pattern, (node, c.LEFT), span, [e for e in conditions if e not in own])

    # ------------------------------------------------------------ triple patterns
    def bgp(self, triples: Sequence[a.TriplePattern], target: Target, span: int, conditions: list[a.Expression]) -> None:
        if len(triples) < 2:
            target = self.after(target, c.FOREVER, conditions)
        if not triples:
            self.fragment.facts.append([*target, c.EMPTY_GROUP, *(c.NONE,) * 5])
        elif len(triples) == 1:
            self.scan(triples[0], target)
        else:
            self.join(a.Bgp(tuple(triples[:-1])), a.Bgp((triples[-1],)), c.ANY, target, span, conditions)

    def scan(self, triple: a.TriplePattern, target: Target) -> None:
        parts = (triple.subject, triple.predicate, triple.object)
        s, p, o = (c.NONE if isinstance(t, Variable) else self.names.term(str(t)) for t in parts)
        columns = [self.column(t) if isinstance(t, Variable) else c.NONE for t in parts]
        for stream in dict.fromkeys(self.query.streams):
            self.fragment.alpha.append([self.names.stream(stream), s, o, *columns, 0, *target, max(p, 0)])
        for fact in self.names.facts(triple):
            row = list(target)
            for column, term in zip(columns, fact, strict=True):
                row += [column, c.NONE if column == c.NONE else self.names.term(str(term))]
            self.fragment.facts.append(row)

    # ------------------------------------------------------------ joins
    def keys(self, x: Scope, y: Scope, suffix: str = "") -> dict[str, int]:
        """Only variables certainly bound on both sides may key a goal; the rest that they may share is checked."""
        key = x.certain & y.certain
        key_at, key_n = self.slots(key)
        rest_at, rest_n = self.slots((x.possible & y.possible) - key)
        return {f"KEY{suffix}_AT": key_at, f"KEY{suffix}_N": key_n, f"REST{suffix}_AT": rest_at, f"REST{suffix}_N": rest_n}

    def join(self, left: a.Pattern, right: a.Pattern, relation: int, target: Target, span: int, conditions: list[a.Expression]) -> None:
        x, y = self.scope(left), self.scope(right)
        to_left, to_right, own = distributed(conditions, x.certain, y.certain)
        timeless = x.timeless or y.timeless
        lives = [span if life is WINDOW else max(life, 0) if timeless else life for life in LIVES[relation]]
        node = self.node(
            c.JOIN, target, RELATION=relation, SPAN=span, FILTER=self.join_filter(own, span), TIMELESS=timeless,
            LIFE_LEFT=lives[0], LIFE_RIGHT=lives[1], **self.keys(x, y),
        )  # fmt: skip
        if relation in LOOKS_BACK and not y.timeless:
            self.fragment.strict.add((node, c.LEFT))
        self.pattern(left, (node, c.LEFT), span, to_left)
        self.pattern(right, (node, c.RIGHT), span, to_right)

    def join_filter(self, conditions: list[a.Expression], span: int) -> int:
        """The conditions that a join of this span does not enforce by itself."""
        implied = [e for e in conditions if (limit := duration_limit(e)) is not None and span <= limit and limit >= 0]
        rest = [e for e in conditions if e not in implied]
        if implied and not rest:
            return TIMED_ONLY
        return self.filter(rest + implied[:1])

    # ------------------------------------------------------------ negative parts
    def minus(self, pattern: a.Minus, target: Target, span: int, conditions: list[a.Expression]) -> None:
        if self.scope(pattern.left).possible & self.scope(pattern.right).possible:
            target = self.decided_by(c.MINUS, pattern.left, pattern.right, target)
        self.pattern(pattern.left, target, span, conditions)

    def decided_by(self, kind: int, kept: a.Pattern, other: a.Pattern, target: Target) -> Target:
        """MINUS, EXISTS or NOTEXISTS of `other`: where the solutions of `kept` are to go."""
        if kind != c.MINUS:
            other = essential(other)
            if free_variables(other, self.matches) & self.scope(kept).possible:
                raise Refusal("a filter inside EXISTS that uses a variable of the group outside", "EXISTS")
        x, y = self.scope(kept), self.scope(other)
        node = self.node(kind, target, LIFE_LEFT=c.NEVER, LIFE_RIGHT=c.FOREVER, TIMELESS=x.timeless or y.timeless, **self.keys(x, y))
        self.pattern(other, (node, c.RIGHT), c.FOREVER, [])
        return node, c.LEFT

    def optional(self, pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, target: Target, span: int, conditions: list[a.Expression]) -> None:
        x, y = self.scope(pattern.left), self.scope(pattern.right)
        condition = [] if pattern.condition is None else [pattern.condition]
        self.check(condition)
        own_span = max(min((limit for e in condition for part in conjuncts(e) if (limit := duration_limit(part)) is not None), default=c.FOREVER), 0)
        match pattern:
            case a.LeftJoin():
                kind, relation, lives, spans = c.OPTIONAL, c.ANY, (c.NEVER, own_span), (span, own_span)
            case a.EqLeftJoin():
                kind, relation, lives, spans = c.EQUALSOPTIONAL, c.EQUALS, (c.NEVER, 0), (span, own_span)
            case a.SeqRightJoin():
                kind, relation, lives, spans = c.OPTIONALSEQ, c.SEQ, (own_span, c.NEVER), (own_span, span)
        kept = y if kind == c.OPTIONALSEQ else x
        down, _, own = distributed(conditions, kept.certain, frozenset())
        node = self.node(
            kind, target, RELATION=relation, SPAN=own_span, FILTER=self.filter(own), CONDITION=self.filter(condition),
            TIMELESS=x.timeless or y.timeless, LIFE_LEFT=lives[0], LIFE_RIGHT=lives[1], **self.keys(x, y),
        )  # fmt: skip
        if kind == c.OPTIONALSEQ and not y.timeless:
            self.fragment.strict.add((node, c.LEFT))
        self.pattern(pattern.left, (node, c.LEFT), spans[0], [] if kind == c.OPTIONALSEQ else down)
        self.pattern(pattern.right, (node, c.RIGHT), spans[1], down if kind == c.OPTIONALSEQ else [])

    def without(self, pattern: a.SeqWithout, target: Target, span: int, conditions: list[a.Expression]) -> None:
        span = span if pattern.within is None else min(span, pattern.within)
        x, y, z = self.scope(pattern.left), self.scope(pattern.right), self.scope(pattern.absent)
        to_left, to_right, own = distributed(conditions, x.certain, y.certain)
        joined = Scope(x.certain | y.certain, x.possible | y.possible, x.timeless and y.timeless)
        timeless = x.timeless or y.timeless or z.timeless
        between = self.keys(joined, z, "2")
        blocking = c.FOREVER if x.timeless else span  # what blocks lies inside the joined interval only where x has an end
        by_right = not timeless and between["REST2_N"] == 0 and joined.certain & z.certain <= y.certain
        node = self.node(
            c.WITHOUT, target, RELATION=c.SEQ, SPAN=span, FILTER=self.filter(own), TIMELESS=timeless, BY_RIGHT=by_right,
            LIFE_LEFT=span, LIFE_RIGHT=c.FOREVER, LIFE_BLOCKER=blocking, **self.keys(x, y), **between,
        )  # fmt: skip
        if not y.timeless:
            self.fragment.strict |= {(node, c.LEFT), (node, c.BLOCKER)}
        self.pattern(pattern.absent, (node, c.BLOCKER), blocking, [])
        self.pattern(pattern.left, (node, c.LEFT), span, to_left)
        self.pattern(pattern.right, (node, c.RIGHT), span, to_right)

    def without_for(self, pattern: a.WithoutFor, target: Target, span: int, conditions: list[a.Expression]) -> None:
        x, z = self.scope(pattern.pattern), self.scope(pattern.absent)
        timed = [e for e in conditions if looks_at_time(e)]
        target = self.after(target, c.FOREVER, timed)
        node = self.node(
            c.WITHOUTFOR, target, TIMELESS=x.timeless or z.timeless, LIFE_LEFT=pattern.duration, LIFE_BLOCKER=pattern.duration,
            **self.keys(x, z, "2"),
        )  # fmt: skip
        self.fragment.strict.add((node, c.LEFT))
        self.pattern(pattern.absent, (node, c.BLOCKER), pattern.duration, [])
        self.pattern(pattern.pattern, (node, c.LEFT), c.FOREVER, [e for e in conditions if e not in timed])


# ---------------------------------------------------------------- conditions
def triple_variables(triple: a.TriplePattern) -> set[TermOrVariable]:
    return {t for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Variable)}


def duration_limit(condition: a.Expression) -> int | None:
    """The longest duration (µs) that `getDURATION() < d` and its kin admit; None for other conditions."""
    match condition:
        case a.Compare(a.Comparison.LESS | a.Comparison.LESS_OR_EQUAL as op, a.Time(a.TimeFunction.DURATION), constant):
            micros, strict = bytecode.duration_constant(constant), op is a.Comparison.LESS
        case a.Compare(a.Comparison.GREATER | a.Comparison.GREATER_OR_EQUAL as op, constant, a.Time(a.TimeFunction.DURATION)):
            micros, strict = bytecode.duration_constant(constant), op is a.Comparison.GREATER
        case _:
            return None
    return None if micros is None else micros - strict


def distributed(
    conditions: list[a.Expression], left: Variables, right: Variables
) -> tuple[list[a.Expression], list[a.Expression], list[a.Expression]]:
    """Conditions that one side decides, where their variables are certain: for the left, for the right, for neither."""
    sides: tuple[list[a.Expression], list[a.Expression], list[a.Expression]] = ([], [], [])
    for condition in conditions:
        looks = variables_of(condition)
        if looks_at_time(condition) or not looks:
            sides[2].append(condition)
        elif looks <= left:
            sides[0].append(condition)
        else:
            sides[1 if looks <= right else 2].append(condition)
    return sides


def essential(pattern: a.Pattern) -> a.Pattern:
    """What decides whether `pattern` has a solution: an optional part never does."""
    match pattern:
        case a.LeftJoin(kept, _, _) | a.EqLeftJoin(kept, _, _) | a.SeqRightJoin(_, kept, _):
            return essential(kept)
        case a.Extend(inner, _, _):
            return essential(inner)
        case _:
            return pattern


def free_variables(pattern: a.Pattern, matches: Matches) -> Variables:
    """Variables that conditions inside `pattern` use and their own group does not bind."""
    match pattern:
        case a.Bgp():
            return frozenset()
        case a.Filter(condition, inner):
            return free_variables(inner, matches) | (variables_of(condition) - scope(inner, matches).possible)
        case a.Extend(inner, _, expression):
            return free_variables(inner, matches) | (variables_of(expression) - scope(inner, matches).possible)
        case a.LeftJoin(left, right, condition) | a.EqLeftJoin(left, right, condition) | a.SeqRightJoin(left, right, condition):
            own = frozenset() if condition is None else variables_of(condition) - scope(left, matches).possible - scope(right, matches).possible
            return own | free_variables(left, matches) | free_variables(right, matches)
        case (
            a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right) | a.Union(left, right)
            | a.Minus(left, right) | a.WithoutFor(left, right, _)
        ):  # fmt: skip
            return free_variables(left, matches) | free_variables(right, matches)
        case a.SeqWithout(left, right, absent, _):
            return free_variables(left, matches) | free_variables(right, matches) | free_variables(absent, matches)
        case a.Within(inner, _):
            return free_variables(inner, matches)
        case _:
            assert_never(pattern)
