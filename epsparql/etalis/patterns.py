"""This module translates event patterns: each operator becomes the operator of the algebra that means the same."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.etalis.events import own_pattern, sent_pattern, triple_pattern
from epsparql.etalis.parser.aggregates import COUNT, LIST, AggregateTerm, read_aggregate
from epsparql.etalis.parser.constants import ground_term, instant_micros, predicate_atom
from epsparql.etalis.parser.program import MAX_ARGUMENTS, EventRule, Program, duration_of
from epsparql.etalis.parser.syntax import (
    ListTerm,
    Name,
    Num,
    Str,
    Struct,
    Term,
    VariableTerm,
    as_struct,
    extend_to_close,
    join_goals,
    list_variables,
    refuse,
)
from epsparql.etalis.parser.vocabulary import argument_predicate, is_iri
from epsparql.etalis.statics.conditions import TYPE, Conditions, Translated, call, count_constant, same
from epsparql.etalis.statics.goals import is_expression, rename, variables_of
from epsparql.etalis.statics.lists import LIST_FUNCTIONS
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import replace_fields, walk_nodes

FUNCTOR_RELATIONS: Mapping[str, a.Relation | None] = {
    ":equals": None, ":meets": a.Relation.MEETS, ":during": a.Relation.DURING, ":starts": a.Relation.STARTS, ":finishes": a.Relation.FINISHES,
    ":par": a.Relation.PAR,
}  # fmt: skip
SET_FUNCTIONS = {"sum": a.AggregateFunction.SUM, "avg": a.AggregateFunction.AVG, "min": a.AggregateFunction.MIN, "max": a.AggregateFunction.MAX}
MOST_TIMES = 100
"""ntimes repeats a pattern at most so often."""
MOST_PATTERNS = 1_000
"""A rule has at most so many patterns, once those that are repeated are written out."""
Event = tuple[str, int]


@dataclass(slots=True)
class Patterns:
    """Translates the patterns of one program, and notes the events that they read and the rules that they bring along."""

    program: Program
    conditions: Conditions
    policy: str
    heads: frozenset[Event]  # the events that rules derive
    read: dict[Event, None] = field(default_factory=dict)
    strict: list[tuple[Event, str]] = field(default_factory=list)  # events read through fnot or aggregate by the rule that is translated
    added: list[EventRule] = field(default_factory=list)  # rules inside patterns
    outside: frozenset[str] = frozenset()  # variables of the rule's head
    parts: int = 0  # of the rule that is translated
    _through: str = ""

    def translate(self, term: Term) -> Translated:
        """Return the solutions of a pattern. Raises EleRefused."""
        self.parts += 1
        if self.parts > MOST_PATTERNS:
            refuse(f"the rule is written out to more than {MOST_PATTERNS:,} patterns", term.span, self.program.text, "rules for parts of it")
        match term:
            case Struct(":seq", (left, Struct("aggregate") as right)):
                return self._aggregate(left, right)
            case Struct("aggregate"):
                return self._aggregate(None, term)
            case Struct(":seq", (left, Struct(":star_times", (right,)))):
                return self._repeat(left, right, term)
            case Struct(":seq", (left, Struct("prolog", args))):
                return self._where(left, join_goals(args, term.span))
            case Struct((":seq" | ":forall_seq") as name, (left, right)):
                x, y = self._operands(left, right)
                return _join_bindings(a.SeqJoin(x.pattern, y.pattern, name == ":forall_seq"), x, y)
            case Struct(":and", (left, right)):
                x, y = self._operands(left, right)
                return _join_bindings(a.Join(x.pattern, y.pattern, unrestricted=False), x, y)
            case Struct(":or", (left, right)):
                return self._union(left, right)
            case Struct(name, (left, right)) if name in FUNCTOR_RELATIONS:
                x, y = self._operands(left, right)
                relation = FUNCTOR_RELATIONS[name]
                pattern = a.EqJoin(x.pattern, y.pattern) if relation is None else a.RelationJoin(relation, x.pattern, y.pattern)
                return _join_bindings(pattern, x, y)
            case Struct(":where", (left, goals)):
                return self._where(left, goals)
            case Struct(":within", (inner, limit)):
                found = self.translate(inner)
                return replace_fields(found, pattern=a.Within(found.pattern, duration_of(self.program.text, limit)))
            case Struct(":cnot", (left, absent)):
                return self._without(left, absent, term)
            case Struct(":fnot", (left, absent)):
                return self._filter_absent(left, absent)
            case Struct(":ntimes", (inner, times)):
                return self._times(inner, times)
            case Struct(":<-", (head, body)):
                return self._sub_pattern(head, body)
            case _:
                return self._leaf(term)

    def _leaf(self, term: Term) -> Translated:
        match term:
            case Num():
                return self._translate_instant(duration_of(self.program.text, term), term)
            case Struct("datime", _):
                return self._translate_instant(instant_micros(term, self.program), term)
            case Struct(":star_times", _):
                return refuse("star_times stands to the right of a seq alone", term.span, self.program.text, "a seq b star_times")
            case Struct("rev", _):
                return refuse(
                    "rev: a rule takes no event back", term.span, self.program.text, "cnot or fnot, or a retraction sent to a revisable stream"
                )
            case VariableTerm(name):
                return refuse(f"the variable {name} is no pattern", term.span, self.program.text, "an event")
            case Name() | Struct():
                atom = as_struct(term)
                assert atom is not None
                return self._event(atom)
            case Str() | ListTerm():
                return refuse("this is no pattern", term.span, self.program.text, "an event")

    def _translate_instant(self, micros: int, term: Term) -> Translated:
        instant = a.Instant(micros)
        self.program.places.append((instant, term.span))
        return Translated(instant, frozenset())

    # ------------------------------------------------------------ events
    def _event(self, atom: Struct) -> Translated:
        atom = predicate_atom(atom, self.program)
        if len(atom.args) > MAX_ARGUMENTS:
            refuse(f"{atom.indicator} has more than {MAX_ARGUMENTS} arguments", atom.span, self.program.text, "lists or structs of arguments")
        event = atom.name, len(atom.args)
        self.read[event] = None
        if self._through:
            self.strict.append((event, self._through))
        parts: list[TermOrVariable] = []
        apart: list[tuple[Variable, Term]] = []
        for argument in atom.args:
            if is_expression(argument) and not isinstance(argument, Name):
                refuse(
                    f"arithmetic in an argument of the pattern {atom.indicator}",
                    argument.span,
                    self.program.text,
                    "a variable, with a condition on it",
                )
            self._check_lists(argument)
            if isinstance(argument, VariableTerm):
                parts.append(Variable(argument.name))
            elif variables_of(argument):
                parts.append(self._hidden("whole"))
                apart.append((parts[-1], argument))  # type: ignore[arg-type]
            else:
                parts.append(ground_term(argument, self.program))
        bound = frozenset(part.name for part in parts if isinstance(part, Variable))
        found = Translated(self._read_event(event, parts), bound)
        self._note_places(found.pattern, event, atom.span)
        for whole, argument in apart:
            found = self.conditions.take_apart(found, a.Var(whole), argument)
        return replace_fields(found, bound=frozenset(name for name in found.bound if not name.startswith("_:")))

    def _check_lists(self, term: Term) -> None:
        """Check that lists in an event's arguments have a fixed length. Raises EleRefused."""
        if isinstance(term, ListTerm) and term.tail is not None:
            expected = "all items, or a condition: a(L) where L = [X|T]"
            refuse("'|' in an event's argument: lists there have a fixed length", term.span, self.program.text, expected)
        for part in term.args if isinstance(term, Struct) else term.items if isinstance(term, ListTerm) else ():
            self._check_lists(part)

    def _read_event(self, event: Event, parts: Sequence[TermOrVariable]) -> a.Pattern:
        """Return the pattern of an event: on streams, unless rules derive it too, or EXISTS looks for it, whose
        pattern has to be a plain one.
        """
        if is_iri(event[0]):
            return triple_pattern(event[0], parts)
        if event not in self.heads and self._through != "fnot":
            return sent_pattern(event[0], parts, self._hidden("event"), tuple(self.program.streams))
        return own_pattern(event[0], parts, self._hidden("node"))

    def _note_places(self, pattern: a.Pattern, event: Event, span: Span) -> None:
        """Note where an event stands, and the triples by which a sent event is told: its type and last argument, or the
        triple that it is.
        """
        self.program.places.append((pattern, extend_to_close(self.program.text, span)))
        if event in self.heads:
            return
        telling = (TYPE, argument_predicate(event[1]))
        for node in walk_nodes(pattern):
            if isinstance(node, a.TriplePattern) and (is_iri(event[0]) or node.predicate in telling):
                self.program.places.append((node, span))

    def _hidden(self, kind: str) -> Variable:
        return Variable(f"_:{kind}#{self.conditions.knowledge.statics.fresh()}")

    # ------------------------------------------------------------ joins
    def _operands(self, left: Term, right: Term) -> tuple[Translated, Translated]:
        x, y = self.translate(left), self.translate(right)
        self._refuse_partial(x, right)
        self._refuse_partial(y, left)
        return x, y

    def _refuse_partial(self, x: Translated, other: Term) -> None:
        for variable in list_variables(other):
            if variable.name in x.partial:
                refuse(
                    f"variable {variable.name} is bound on one side of an or alone", variable.span, self.program.text, "the variable on both sides"
                )

    def _union(self, left: Term, right: Term) -> Translated:
        x, y = self.translate(left), self.translate(right)
        bound = x.bound & y.bound
        return Translated(a.Union(x.pattern, y.pattern), bound, (x.bound | y.bound | x.partial | y.partial) - bound)

    def _where(self, left: Term, goals: Term) -> Translated:
        found = self.translate(left)
        return self.conditions.apply_goals(found, goals, self.outside)

    def _times(self, inner: Term, times: Term) -> Translated:
        n = times.value if isinstance(times, Num) and not times.unit else 0
        if n != int(n) or not 1 <= n <= MOST_TIMES:
            refuse(f"ntimes takes a whole number from 1 to {MOST_TIMES}", times.span, self.program.text, "a ntimes 3")
        whole = inner
        for _ in range(int(n) - 1):
            whole = Struct(":seq", (whole, inner), times.span)
        return self.translate(whole)

    def _repeat(self, left: Term, right: Term, term: Struct) -> Translated:
        """Translate `A seq B star_times`: each A, and each A seq B. Variables in B alone are local."""
        x = self.translate(left)
        y = self.translate(self._local(right, x))
        pattern = a.Union(x.pattern, a.SeqJoin(x.pattern, y.pattern))
        return Translated(pattern, x.bound, x.partial)

    def _local(self, term: Term, x: Translated, shown: Set[str] = frozenset()) -> Term:
        """Return a pattern whose variables are its own, but for those that x binds or that are `shown`."""
        self._refuse_partial(x, term)
        names = {name: f"{name}~{self.conditions.knowledge.statics.fresh()}" for name in variables_of(term) - x.bound - shown}
        return rename(term, names)

    # ------------------------------------------------------------ absence
    def _without(self, left: Term, absent: Term, term: Struct) -> Translated:
        """Translate `(A seq B) cnot C`: windows and conditions around the seq apply to the pairs that are left."""
        outer: list[Struct] = []
        inner = left
        while isinstance(inner, Struct) and inner.name in (":within", ":where"):
            outer.append(inner)
            inner = inner.args[0]
        plain = isinstance(inner, Struct) and inner.name in (":seq", ":forall_seq")
        last = inner.args[1] if plain and isinstance(inner, Struct) else None
        if isinstance(last, Struct) and last.name in ("prolog", "aggregate", ":star_times"):
            plain = False
        if not plain or not isinstance(inner, Struct):
            refuse("cnot needs a seq on its left", term.span, self.program.text, "(a seq b) cnot c, or NOT(c).[a, b]")
        x, y = self._operands(inner.args[0], inner.args[1])
        both = _join_bindings(a.SeqJoin(x.pattern, y.pattern), x, y)
        z = self.translate(self._local(absent, both))
        found = replace_fields(both, pattern=a.SeqWithout(x.pattern, y.pattern, z.pattern, unrestricted=inner.name == ":forall_seq"))
        for each in reversed(outer):
            if each.name == ":where":
                found = self.conditions.apply_goals(found, each.args[1], self.outside)
            else:
                found = replace_fields(found, pattern=a.Within(found.pattern, duration_of(self.program.text, each.args[1])))
        return found

    def _filter_absent(self, left: Term, absent: Term) -> Translated:
        x = self.translate(left)
        z = self._read_through("fnot", self._local(absent, x))
        return replace_fields(x, pattern=a.Filter(a.Not(a.Exists(z.pattern)), x.pattern))

    def _read_through(self, what: str, term: Term) -> Translated:
        before, self._through = self._through, what
        found = self.translate(term)
        self._through = before
        return found

    # ------------------------------------------------------------ rules and aggregates inside patterns
    def _sub_pattern(self, head: Term, body: Term) -> Translated:
        atom = as_struct(head)
        if atom is None or atom.name.startswith(":"):
            refuse("this rule inside a pattern has no event for its head", head.span, self.program.text, "(s(X) <- a(X) seq b(X))")
        self.added.append(EventRule(atom, body, head.span))
        return self._event(atom)

    def _aggregate(self, left: Term | None, term: Struct) -> Translated:
        """Translate `A seq aggregate(F, P, V)` and `aggregate(F, P, V)`.

        1. The elements are the solutions y of P, and with A the pairs (x, y) of A seq P.
        2. A group is a binding of the keys, and with A an x, that is its bindings and interval.
        3. Each group reports at each instant at which it gains an element. A count or sum is 0 at x itself, too.
        """
        parts = read_aggregate(term, self.program.text)
        keys = frozenset(key.name for key in parts.keys)
        if left is not None and self.policy == "chronological":
            refuse("aggregate under the policy chronological", term.span, self.program.text, "recent or unrestricted")
        x = None if left is None else self._read_through("aggregate", left)
        local = self._local(Struct(":both", (parts.pattern, *parts.function.args), term.span), x or Translated(a.Bgp(()), frozenset()), keys)
        assert isinstance(local, Struct)
        y = self._read_elements(local.args[0])
        self._check_bound(parts.keys, y, "the pattern that is aggregated")
        elements, groups = self._pair(x, y)
        raw, aggregate = self._hidden("raw"), self._set_function(parts.function, local.args[1:], y)
        names = tuple(Variable(name) for name in sorted(keys | (frozenset() if x is None else x.bound | x.partial)))
        group = a.Group(elements, (*names, *groups), ((raw, aggregate),), _make_window(parts))
        bound = keys | (frozenset() if x is None else x.bound)
        partial = frozenset() if x is None else x.partial - keys
        value = self._hidden("value").name
        result = call("listed" if aggregate.function is a.AggregateFunction.GROUP_CONCAT else "number", a.Var(raw))
        found = self.conditions.bind(Translated(group, bound, partial), value, result)
        if x is not None and not keys and parts.function.name in (COUNT, "sum"):
            zero = self.conditions.bind(x, value, count_constant(0))
            found = replace_fields(found, pattern=a.Union(found.pattern, zero.pattern))
        return self._name_result(found, Variable(value), parts)

    def _read_elements(self, pattern: Term) -> Translated:
        """Return the solutions of a pattern that is aggregated, each once for each binding and interval."""
        y = self._read_through("aggregate", pattern)
        if isinstance(pattern, Name) or (isinstance(pattern, Struct) and not pattern.name.startswith(":") and pattern.name != "aggregate"):
            return y  # an event, whose solutions are so
        shown = tuple(Variable(name) for name in sorted(y.bound | y.partial))
        return replace_fields(y, pattern=a.SubSelect(y.pattern, shown, True))

    def _pair(self, x: Translated | None, y: Translated) -> tuple[a.Pattern, tuple[Variable, ...]]:
        """Return the elements of an aggregate, and the hidden variables that tell groups apart beside the keys."""
        if x is None:
            one = self._hidden("one")
            return a.Extend(y.pattern, one, count_constant(1)), (one,)  # without a key, a group without elements would report
        start, end, began = (self._hidden(kind) for kind in ("start", "end", "began"))
        timed = a.Extend(a.Extend(x.pattern, start, a.Time(a.TimeFunction.START)), end, a.Time(a.TimeFunction.END))
        return a.SeqJoin(timed, a.Extend(y.pattern, began, a.Time(a.TimeFunction.START))), (start, end)

    def _name_result(self, found: Translated, value: Variable, parts: AggregateTerm) -> Translated:
        """Return the reports with the target bound to the value, or to what the program's function makes of the list."""
        if self._is_custom(parts.function):
            goal = Struct(parts.function.name, (VariableTerm(value.name, parts.function.span), parts.target), parts.function.span)
            found = self.conditions.apply_goals(replace_fields(found, bound=found.bound | {value.name}), goal, self.outside)
            return replace_fields(found, bound=found.bound - {value.name})
        found = replace_fields(found, bound=found.bound - {value.name})
        if isinstance(parts.target, VariableTerm) and parts.target.name not in found.bound:
            return self.conditions.bind(found, parts.target.name, a.Var(value))
        return self.conditions.keep(found, same(self.conditions.value(parts.target, {}), a.Var(value)))

    def _is_custom(self, function: Struct) -> bool:
        """Return whether a function of one value is a predicate of the program: of the list of values, and the result."""
        key = function.name, 2
        return (
            len(function.args) == 1
            and function.name not in SET_FUNCTIONS
            and (key in LIST_FUNCTIONS or self.conditions.knowledge.statics.is_own(key))
        )

    def _set_function(self, function: Struct, arguments: tuple[Term, ...], y: Translated) -> a.Aggregate:
        if (function.name, len(arguments)) == (COUNT, 0):
            return a.Aggregate(a.AggregateFunction.COUNT, None)
        listed = len(arguments) == 1 and (function.name == LIST or self._is_custom(function))
        if not listed and (function.name not in SET_FUNCTIONS or len(arguments) != 1):
            expected = "count, sum(X), avg(X), min(X), max(X), list(X), or f(X) with static rules for f(List, Result)"
            refuse(f"the aggregate {function.indicator} is not known", function.span, self.program.text, expected)
        self._check_bound(arguments, y, "the pattern that is aggregated")
        if listed:
            value = self.conditions.canonical if is_expression(arguments[0]) else self.conditions.value
            return a.Aggregate(a.AggregateFunction.GROUP_CONCAT, call("written", value(arguments[0], {})), separator=",")
        number = a.Arithmetic(a.Operator.ADD, self.conditions.arithmetic(arguments[0], {}), count_constant(0))
        return a.Aggregate(SET_FUNCTIONS[function.name], number)

    def _check_bound(self, terms: Iterable[Term], y: Translated, where: str) -> None:
        """Check that a pattern binds the variables of some terms. Raises EleRefused."""
        for variable in (variable for term in terms for variable in list_variables(term)):
            if variable.name not in y.bound:
                name = variable.name.partition("~")[0]
                refuse(f"variable {name} is not bound", variable.span, self.program.text, f"a variable of {where}")


def _make_window(parts: AggregateTerm) -> a.RowsWindow | a.RangeWindow | None:
    if parts.rows is not None:
        return a.RowsWindow(parts.rows)
    return None if parts.length is None else a.RangeWindow(parts.length)


def _join_bindings(pattern: a.Pattern, x: Translated, y: Translated) -> Translated:
    return Translated(pattern, x.bound | y.bound, x.partial | y.partial)
