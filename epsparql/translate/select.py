"""This module translates SELECT and solution modifiers to patterns (SPARQL 1.1, 18.2.4 and 18.2.5)."""

from functools import reduce
from typing import NoReturn

from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.errors import InvalidLiteral, ScopeFault, Span, SyntaxFault, Unsupported
from epsparql.lint.scopes import parts
from epsparql.literals import MAX_TREE_DEPTH
from epsparql.parser import ast as s
from epsparql.terms import Variable
from epsparql.translate.aggregates import Aggregates, Sampling, check_grouped
from epsparql.translate.durations import count_of, micros_of
from epsparql.translate.expressions import NameScope, expression
from epsparql.translate.runs import translate_run
from epsparql.translate.triple_patterns import join_patterns

Items = tuple[tuple[s.SelectItem, a.Expression | None], ...]


class SelectTranslator:
    """Translates the SELECTs of one query, and what follows the patterns of its other forms; `scope` is that of the
    groups.
    """

    def __init__(self, scope: NameScope) -> None:
        self._scope = scope
        self._context = scope.context

    def sub_select(self, select: s.SelectForm) -> a.SubSelect:
        pattern, projection, modifiers = self.select(select)
        return a.SubSelect(pattern, projection, select.distinct, modifiers)

    def select(self, select: s.SelectForm) -> tuple[a.Pattern, tuple[Variable, ...], a.Modifiers]:
        """Return the pattern with the expressions of SELECT, the projection, and the modifiers that apply to them."""
        aggregates = Aggregates(self._scope)
        items = tuple((item, None if item.expression is None else expression(aggregates, item.expression)) for item in select.items)
        pattern, order = self._solutions(select.body, items, aggregates)
        if not items:
            if aggregates.found or select.body.modifier.keys or select.body.modifier.having:
                message = "SELECT * has no meaning for groups, whose variables have no single value but for the keys"
                self._context.fail(SyntaxFault, message, select.span, "the keys and aggregates by name")
            projection = list_shown(pattern)
        else:
            pattern, projection = self._projected(items, pattern)
        return pattern, projection, self._modifiers(select.body.modifier, order, pattern)

    def translate_body(self, body: s.Body, *, ordered: bool = True) -> a.Pattern:
        """Return the pattern of another form with its modifiers, which make it a sub-SELECT of all variables; unless
        `ordered`, ORDER BY is left out.
        """
        pattern, order = self._solutions(body, (), Aggregates(self._scope))
        modifiers = self._modifiers(body.modifier, order if ordered else (), pattern)
        return pattern if modifiers == a.PLAIN else a.SubSelect(pattern, list_shown(pattern), False, modifiers)

    def _solutions(self, body: s.Body, items: Items, aggregates: Aggregates) -> tuple[a.Pattern, tuple[a.OrderKey, ...]]:
        """Translate WHERE, GROUP BY, HAVING and VALUES, in their order; and ORDER BY."""
        modifier = body.modifier
        pattern, keys = self._keyed(self._scope.translate_group(body.where), modifier.keys)
        inside = visible_variables(pattern)
        assigned = [Variable(item.variable.name) for item, value in items if value is not None]
        having = [expression(Sampling(aggregates, keys, inside, assigned), condition) for condition in modifier.having]
        for condition, written in zip(having, modifier.having, strict=True):
            self._context.places.note_condition(condition, written.span)
        asked = parts(condition.expression for condition in modifier.order)
        grouped = bool(keys or having or aggregates.found or any(isinstance(part, s.AggregateCall) for part in asked))
        ordered: NameScope = Sampling(aggregates, (*keys, *assigned), inside) if grouped else aggregates
        order = tuple(a.OrderKey(expression(ordered, condition.expression), condition.descending) for condition in modifier.order)
        window = None if modifier.window is None else self._window(modifier.window, bool(aggregates.found or keys))
        if grouped:
            self._check_projected(items, keys)
            pattern = a.Group(pattern, keys, aggregates.found, window)
            if modifier.keys:
                self._context.places.note(pattern, Span(modifier.keys[0].span.start, modifier.keys[-1].span.end))
        if having:
            pattern = a.Filter(reduce(a.And, having), pattern)
        return pattern if body.values is None else join_patterns(self._context, pattern, self.values(body.values), body.values.span), order

    # ------------------------------------------------ groups
    def _keyed(self, pattern: a.Pattern, keys: tuple[s.GroupKey, ...]) -> tuple[a.Pattern, tuple[Variable, ...]]:
        """Return the pattern with the keys that are expressions, and all keys."""
        scope = set(visible_variables(pattern)) if keys else set()
        found: dict[Variable, None] = {}
        for key in keys:
            if isinstance(key.expression, s.VariableName) and key.variable is None:
                variable = Variable(key.expression.name)
                if variable not in scope:
                    self._context.warn_unbound(variable, "is a key of GROUP BY and no pattern binds it", key.span, scope)
            else:
                translated = expression(self._scope, key.expression)
                variable = self._context.numbered("key") if key.variable is None else Variable(key.variable.name)
                if variable in scope:
                    self._fail_assigned(variable, key.span, "the pattern already has it before GROUP BY")
                pattern = a.Extend(pattern, variable, translated)
                scope.add(variable)
            found[variable] = None
        return pattern, tuple(found)

    def _check_projected(self, items: Items, keys: tuple[Variable, ...]) -> None:
        """Check that outside of aggregates SELECT has only the keys, and what it has assigned before."""
        known = set(keys)
        for item, _ in items:
            check_grouped(self._context, item.variable if item.expression is None else item.expression, known)
            known.add(Variable(item.variable.name))

    def _window(self, window: s.WindowClause | s.RunClause, grouped: bool) -> a.GroupWindow:
        if not grouped:
            message = "WINDOW says what an aggregate sees, and the query has neither an aggregate nor GROUP BY"
            self._context.fail(SyntaxFault, message, window.span, "an aggregate, or WITHIN to bound the length of solutions")
        if self._context.windows:
            message = "a query over named windows (FROM NAMED WINDOW) aggregates what they hold, so it has no WINDOW clause of its own"
            self._context.fail(Unsupported, message, window.span, "the query without this clause")
        if isinstance(window, s.RunClause):
            return translate_run(self._scope, window)
        if window.rows is not None:
            rows = count_of(self._context, window.rows)
            if rows == 0:
                self._context.fail(InvalidLiteral, "a window of no rows is always empty", window.rows.span, "a number greater than zero")
            return a.RowsWindow(rows)
        assert window.length is not None, "the grammar asks for ROWS or RANGE"
        found = a.RangeWindow(micros_of(self._context, window.length), None if window.step is None else micros_of(self._context, window.step))
        self._context.places.note(found, window.span)
        return found

    # ------------------------------------------------ projection
    def _projected(self, items: Items, pattern: a.Pattern) -> tuple[a.Pattern, tuple[Variable, ...]]:
        scope = set(visible_variables(pattern))
        projection: dict[Variable, None] = {}
        extended = 0
        for item, assigned in items:
            variable = Variable(item.variable.name)
            if assigned is None:
                if variable not in scope:
                    self._context.warn_unbound(variable, "is selected and no pattern binds it", item.span, scope)
            else:
                if variable in scope or variable in projection:
                    self._fail_assigned(variable, item.variable.span, "the query already has it")
                extended += 1
                if extended > MAX_TREE_DEPTH:
                    self._context.fail_depth(item.span)
                pattern = a.Extend(pattern, variable, assigned)
                scope.add(variable)
            projection[variable] = None
        return pattern, tuple(projection)

    def _fail_assigned(self, variable: Variable, span: Span, reason: str) -> NoReturn:
        self._context.fail(ScopeFault, f"{variable} cannot be assigned: {reason}", span, "a variable that is new here")

    def _modifiers(self, modifier: s.SolutionModifier, order: tuple[a.OrderKey, ...], pattern: a.Pattern) -> a.Modifiers:
        offset = 0 if modifier.offset is None else count_of(self._context, modifier.offset)
        limit = None if modifier.limit is None else count_of(self._context, modifier.limit)
        return a.Modifiers(order, offset, limit, None if modifier.once is None else self._once(modifier.once, pattern))

    def _once(self, once: s.OnceClause, pattern: a.Pattern) -> a.Once:
        """Translate ONCE PER over the solutions of a pattern. Raises QueryError."""
        if self._context.windows:
            message = "a query over named windows (FROM NAMED WINDOW) reports all that they hold, so ONCE PER has no place in it"
            self._context.fail(Unsupported, message, once.span, "REGISTER ISTREAM, which reports what is new")
        keys, scope = dict[Variable, None](), set(visible_variables(pattern))
        for name in once.keys:
            variable = Variable(name.name)
            if variable in keys:
                self._context.fail(ScopeFault, f"{variable} stands twice in one ONCE PER", name.span, "each variable once")
            if variable not in scope:
                self._context.warn(
                    "never-bound", f"{variable} is a key of ONCE PER and no pattern binds it, so it tells no solutions apart", name.span
                )
            keys[variable] = None
        within = None if once.within is None else micros_of(self._context, once.within)
        found = a.Once(tuple(keys), within, None if once.until is None else self._scope.translate_group(once.until))
        self._context.places.note(found, once.span)
        return found

    # ------------------------------------------------ VALUES
    def values(self, values: s.ValuesElement) -> a.Values:
        variables = tuple(Variable(name.name) for name in values.variables)
        for index, name in enumerate(values.variables):
            if variables[index] in variables[:index]:
                self._context.fail(ScopeFault, f"{variables[index]} stands twice in one VALUES", name.span, "each variable once")
        return a.Values(variables, tuple(self._row(row, len(variables)) for row in values.rows))

    def _row(self, row: s.ValuesRow, width: int) -> tuple[a.Term | None, ...]:
        if len(row.terms) != width:
            message = f"the row has {_counted(len(row.terms), 'value')} for {_counted(width, 'variable')}"
            self._context.fail(SyntaxFault, message, row.span, "a value or UNDEF for each variable")
        return tuple(None if term is None else self._context.data_term(term) for term in row.terms)


def list_shown(pattern: a.Pattern) -> tuple[Variable, ...]:
    """Return the variables that `*` stands for."""
    return tuple(variable for variable in visible_variables(pattern) if not variable.hidden)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
