"""This module finds doubts about a query that is accepted all the same, each with its place.

It doubts what cannot be meant, and what costs more than it looks.
"""

from collections import Counter
from collections.abc import Sequence, Set

from epsparql.errors import Span, Warning_
from epsparql.iris import Names
from epsparql.lint.certain_bindings import bound_in_body
from epsparql.lint.contradictions import find_contradiction
from epsparql.lint.diagnostics import find_quoted_numbers, why_error, why_never_true
from epsparql.lint.impossible_patterns import find_impossible
from epsparql.lint.regex_arguments import find_doubled_escape
from epsparql.lint.scopes import Scopes, name_nearest, needed, parts
from epsparql.lint.type_inference import Kind, Kinds
from epsparql.parser import ast as s
from epsparql.parser import ast_queries as f

_NONE: frozenset[str] = frozenset()


def doubts(document: f.Document, names: Names, text: str) -> tuple[Warning_, ...]:
    """Return the doubts about a text that translation does not find on its way; `names` knows the document's prologue."""
    reader = _Reader(names, text, windowed=any(isinstance(source, f.FromWindow) for source in document.query.sources))
    reader.read_query(document.query)
    return tuple(reader.found)


class _Reader:
    """Reads a query from the outside in; in a `windowed` one, each report is plain SPARQL over what its windows hold."""

    def __init__(self, names: Names, text: str, *, windowed: bool) -> None:
        self._names = names
        self._text = text
        self._windowed = windowed
        self._scopes = Scopes()
        self.found: list[Warning_] = []

    def _warn(self, code: str, message: str, span: Span) -> None:
        self.found.append(Warning_(code, message, span))

    # ------------------------------------------------ queries
    def read_query(self, query: f.QueryForm) -> None:
        match query:
            case f.SelectQuery(select, _):
                given = frozenset(name.name for source in query.sources if isinstance(source, f.Parameters) for name in source.names)
                self._read_select(select, given, "the query")
            case f.ConstructQuery() | f.AskQuery():
                self._body(query.body, (), _NONE, "the rule" if isinstance(query, f.ConstructQuery) else "ASK")
            case f.DescribeQuery():
                self._body(query.body, (), _NONE, "the query")

    def _read_select(self, select: s.SelectForm, inherited: Set[str], owner: str) -> None:
        if select.distinct and not self._windowed:
            message = "DISTINCT compares bindings and intervals, so equal bindings at different times are different solutions"
            self._warn("distinct-per-interval", message, select.span)
        self._body(select.body, select.items, inherited, owner)

    def _body(self, body: s.Body, items: tuple[s.SelectItem, ...], inherited: Set[str], owner: str) -> None:
        """Read a pattern and what follows it; `owner` is what ends where LIMIT ends it."""
        self._read_group(body.where, inherited)
        if not self._windowed:
            for doubt in find_impossible(body.where):
                self._warn("never-matches", doubt.message, doubt.span)
        kinds = Kinds(self._names, {})
        scope = set(self._scopes.group(body.where) | inherited)
        for key in body.modifier.keys:
            if key.variable is not None:
                self._assigned(key.expression, key.variable, scope, kinds)
            elif not isinstance(key.expression, s.VariableName):
                self._used(key.expression, scope)
        scope |= self._scopes.body(body)
        if isinstance(body.modifier.window, s.RunClause):
            self._read_run(body.modifier.window, scope, kinds)
        for item in items:
            if item.expression is not None:
                self._assigned(item.expression, item.variable, scope, kinds)
                scope.add(item.variable.name)
        self._conditions(body.modifier.having, scope, kinds, "HAVING condition")
        if body.modifier.once is not None and body.modifier.once.until is not None:
            self._read_group(body.modifier.once.until, _NONE)
        for order in body.modifier.order:
            for place in needed(order.expression):
                if place.name not in scope:
                    message = f"?{place.name} stands in ORDER BY and no pattern binds it, so it orders nothing{name_nearest(place.name, scope)}"
                    self._warn("never-bound", message, place.span)
            self._patterns(order.expression, scope)
        self._aggregates(body, items, inherited)
        if not self._windowed:
            self._modifiers(body.modifier, items, owner)

    def _aggregates(self, body: s.Body, items: tuple[s.SelectItem, ...], inherited: Set[str]) -> None:
        """Warn of set functions for which a group with one solution that leaves a variable unbound has no value."""
        bound, possible = bound_in_body(body, self._scopes) | inherited, self._scopes.body(body)
        for part in parts(_asked(body.modifier, items)):
            if isinstance(part, s.AggregateCall) and part.name in _STRICT and part.argument is not None:
                for place in needed(part.argument):
                    if place.name in possible - bound:
                        message = f"?{place.name} may be unbound, and one such solution leaves {part.name} of its whole group without a value"
                        other = '""' if part.name == "GROUP_CONCAT" else "0"
                        remedy = f"FILTER(BOUND(?{place.name})) leaves it out, COALESCE(?{place.name}, {other}) counts it"
                        self._warn("aggregate-over-unbound", f"{message}: {remedy}", place.span)

    def _read_run(self, run: s.RunClause, scope: Set[str], kinds: Kinds) -> None:
        if run.condition is not None:
            self._conditions((run.condition,), scope, kinds, "WHILE condition")
        if run.until is not None:
            self._read_group(run.until, _NONE)

    # ------------------------------------------------ modifiers over time
    def _modifiers(self, modifier: s.SolutionModifier, items: tuple[s.SelectItem, ...], owner: str) -> None:
        aggregate = next((part for part in parts(_asked(modifier, items)) if isinstance(part, s.AggregateCall)), None)
        if aggregate is not None and modifier.window is None:
            message = (
                "without a WINDOW an aggregate is over everything since the query began: WINDOW [RANGE ...] or WINDOW [ROWS ...] "
                "after GROUP BY bounds it"
            )
            self._warn("unbounded-aggregate", message, aggregate.span)
        if isinstance(modifier.window, s.RunClause):
            self._run_state(modifier.window)
        if modifier.window is not None:
            self._ranks(modifier, modifier.window)
            return
        ordered = modifier.order[0].expression.span if modifier.order else None
        chooses = modifier.once is not None and owner not in ("ASK", "the query")
        if ordered is not None and not chooses and (owner == "ASK" or (modifier.limit is None and modifier.offset is None)):
            self._order(ordered, owner)
        if modifier.limit is not None and owner != "ASK":
            first = "the first in time, not the first of the order: ORDER BY ranks only what ends at one instant" if ordered else "the first in time"
            count = f"{modifier.limit.text} solution{'' if modifier.limit.text == '1' else 's'}"
            self._warn("limit-ends", f"without a WINDOW, LIMIT ends {owner} after {count}, {first}", modifier.limit.span)

    def _run_state(self, run: s.RunClause) -> None:
        """Warn of a run that time alone never ends."""
        if run.gap is None and run.within is None:
            message = "time alone ends no run here, so each group keeps its last one for ever"
            if run.closed and run.until is None:
                message = f"{message}, and CLOSED reports it only when another begins"
            self._warn("unbounded-run", f"{message}: add GAP or WITHIN", run.span)

    def _order(self, span: Span, owner: str) -> None:
        if owner == "the query":
            self._warn("order-per-instant", "solutions come as time passes: ORDER BY orders only those that end at one instant", span)
        else:
            self._warn("order-unused", f"ORDER BY has no effect here: {_UNORDERED[owner]}", span)

    def _ranks(self, modifier: s.SolutionModifier, window: s.WindowClause | s.RunClause) -> None:
        ranked = modifier.limit or modifier.offset or (modifier.order[0] if modifier.order else None)
        if isinstance(window, s.RunClause):
            if ranked is not None:
                message = "each instant ranks only the runs that report at it: WINDOW [RANGE ... STEP ...] ranks all groups together"
                self._warn("ranks-changed", message, ranked.span)
        elif ranked is not None and modifier.keys and window.step is None:
            message = "without STEP each report has only the groups that gained a solution at its instant, and only these are ranked"
            self._warn("ranks-changed", f"{message}: WINDOW [RANGE ... STEP ...] ranks them all", ranked.span)

    # ------------------------------------------------ groups
    def _read_group(self, group: s.GroupGraphPattern, inherited: Set[str], joined: Set[str] = _NONE) -> None:
        """Read a group.

        `inherited` are the variables that EXISTS gets from outside, `joined` those of the other side of an optional
        join.
        """
        kinds = self._kinds(group, inherited | joined)
        scope = self._scopes.group(group) | inherited | joined
        before: set[str] = set(inherited)
        for element in group.elements:
            match element:
                case s.FilterElement():
                    pass  # read below, together with the others of the group
                case s.BindElement(expression, variable, _):
                    self._assigned(expression, variable, before, kinds, scope)
                case s.OptionalElement(inner, _):
                    self._read_group(inner, inherited, before)
                case s.MinusElement(inner, _) | s.GraphElement(_, inner, _) | s.WindowElement(_, inner, _):
                    self._read_group(inner, inherited)
                case s.SubSelectElement(select, _):
                    self._read_select(select, inherited, "the sub-SELECT")
                case s.Chain():
                    self._chain(element, inherited)
            before |= self._scopes.element(element)
        self._conditions([element.condition for element in group.elements if isinstance(element, s.FilterElement)], scope, kinds, "FILTER")

    def _chain(self, chain: s.Chain, inherited: Set[str]) -> None:
        after = chain.steps[0] if chain.steps else None
        optional = isinstance(after, s.Combine) and after.operator is s.ChainOperator.OPTIONALSEQ
        self._read_group(chain.first, inherited, self._scopes.group(after.group) if isinstance(after, s.Combine) and optional else _NONE)
        before = set(self._scopes.group(chain.first))
        for step in chain.steps:
            match step:
                case s.Combine(operator, group, _):
                    self._read_group(group, inherited, before if operator is s.ChainOperator.EQUALSOPTIONAL else _NONE)
                    before |= self._scopes.group(group)
                case s.WithoutStep(group, _, _):
                    self._read_group(group, inherited)

    def _kinds(self, group: s.GroupGraphPattern, outside: Set[str]) -> Kinds:
        """Return the kinds in a group, with those of each variable that one BIND of the group assigns and nothing
        else can bind.
        """
        known: dict[str, Kind] = {}
        kinds = Kinds(self._names, known)
        if any(isinstance(element, s.BindElement) for element in group.elements):
            bound = Counter(name for element in group.elements for name in self._scopes.element(element))
            for element in group.elements:
                if isinstance(element, s.BindElement) and bound[element.variable.name] == 1 and element.variable.name not in outside:
                    known[element.variable.name] = Kinds(self._names, dict(known)).infer_kind(element.expression)
        return kinds

    # ------------------------------------------------ expressions
    def _conditions(self, conditions: Sequence[s.Expression], scope: Set[str], kinds: Kinds, what: str) -> None:
        """Read conditions that are true together."""
        possible = [condition for condition in conditions if self._may_be_true(condition, scope, kinds, what)]
        reason = find_contradiction(self._names, possible, self._text)
        if reason is not None:
            alone = len(possible) == 1 or any(find_contradiction(self._names, (condition,), self._text) for condition in possible)
            subject = f"this {what} is never true" if alone else f"these {what}s are never all true"
            self._warn("never-true", f"{subject}: {reason.message}", reason.span)

    def _may_be_true(self, condition: s.Expression, scope: Set[str], kinds: Kinds, what: str) -> bool:
        """Read one condition, and return whether kinds of values let it be true."""
        self._used(condition, scope)
        reason = why_never_true(kinds, condition)
        if reason is not None:
            self._warn("never-true", f"this {what} is never true: {reason.message}", reason.span)
            return False
        for quoted in find_quoted_numbers(kinds, condition):
            self._warn("quoted-number", quoted.message, quoted.span)
        return True

    def _assigned(self, expression: s.Expression, variable: s.VariableName, scope: Set[str], kinds: Kinds, later: Set[str] = _NONE) -> None:
        self._used(expression, scope, later)
        reason = why_error(kinds, expression)
        if reason is not None:
            self._warn("always-error", f"?{variable.name} is never bound: {reason.message}", reason.span)

    def _used(self, expression: s.Expression, scope: Set[str], later: Set[str] = _NONE) -> None:
        """Warn of variables used where nothing binds them; `later` are variables that only what follows in the same
        group binds.
        """
        for place in needed(expression):
            if place.name in later and place.name not in scope:
                message = f"?{place.name} is bound only after this BIND, so it has no value here: move the BIND behind the pattern that binds it"
                self._warn("out-of-scope", message, place.span)
            elif place.name not in scope:
                message = f"?{place.name} is used where its own group does not bind it, so its value here is always an error"
                remedy = name_nearest(place.name, scope) or ": move the expression to the group that binds it"
                self._warn("out-of-scope", message + remedy, place.span)
        self._patterns(expression, scope)
        for part in parts((expression,)):
            if isinstance(part, s.BuiltInCall) and part.name in ("REGEX", "REPLACE") and (doubt := find_doubled_escape(part)) is not None:
                self._warn("doubled-escape", doubt.message, doubt.span)

    def _patterns(self, expression: s.Expression, scope: Set[str]) -> None:
        for part in parts((expression,)):
            if isinstance(part, s.ExistsCall):
                self._read_group(part.group, scope)


_UNORDERED = {
    "the rule": "triples that a rule writes have no order",
    "ASK": "the answer of ASK does not depend on an order",
    "the sub-SELECT": "the solutions of a sub-SELECT have no order, and without LIMIT or OFFSET none is left out",
}


_STRICT = ("SUM", "AVG", "GROUP_CONCAT")
"""An error in one value is an error of the whole in these set functions (SPARQL 1.1, 18.5.1)."""


def _asked(modifier: s.SolutionModifier, items: tuple[s.SelectItem, ...]) -> list[s.Expression]:
    """Return the expressions in which an aggregate may stand, but for WHILE of a run."""
    selected = [item.expression for item in items if item.expression is not None]
    return [*selected, *modifier.having, *(key.expression for key in modifier.order)]
