"""This module writes algebra as canonical text: `parse(render(query)).query == query` for every query that parse gives.

Each operand gets only the braces that it needs. So a text nested as deep as the limit allows stays within the limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import assert_never

from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.deferred_methods import dataclass
from epsparql.literals import MAX_LENGTH, duration_text
from epsparql.renderer.expressions import Expressions
from epsparql.renderer.terms import TermWriter, write_stream
from epsparql.terms import XSD, Literal, TermOrVariable, Variable


def render(query: a.Query) -> str:
    """Return the text of a query, in full; abbreviate it only where it would be too long to be read again."""
    text = _Writer(TermWriter.from_query(query)).write_query(query)
    return text if len(text) <= MAX_LENGTH else _Writer(TermWriter.from_query(query, short=True)).write_query(query)


@dataclass(frozen=True, slots=True)
class _Clauses:
    """Splits a SELECT's pattern into the parts that stand around WHERE, from the inside out: SPARQL 18.2.4 read
    backwards.
    """

    where: a.Pattern
    keys: tuple[tuple[Variable, a.Expression | None], ...] = ()
    group: a.Group | None = None
    having: a.Expression | None = None
    values: a.Values | None = None
    computed: Mapping[Variable, a.Expression] = field(default_factory=dict)

    @classmethod
    def from_pattern(cls, pattern: a.Pattern, projection: tuple[Variable, ...]) -> "_Clauses":
        pattern, computed = _computed(pattern, projection)
        values: a.Values | None = None
        having: a.Expression | None = None
        match pattern:
            case a.Join(left, a.Values() as values, True):
                pattern = left
        inner = pattern
        if isinstance(inner, a.Filter):
            having, inner = inner.condition, inner.pattern
        if not isinstance(inner, a.Group):
            return cls(pattern, values=values, computed=computed)
        where, conditions = _computed(inner.pattern, inner.keys)
        keys = tuple((key, conditions.get(key)) for key in inner.keys)
        return cls(where, keys, inner, having, values, computed)


def _computed(pattern: a.Pattern, names: tuple[Variable, ...]) -> tuple[a.Pattern, dict[Variable, a.Expression]]:
    """Return the pattern without its outermost assignments to `names`, and these, as long as they stand in the order
    of `names`.
    """
    found: dict[Variable, a.Expression] = {}
    before = len(names)
    while isinstance(pattern, a.Extend) and pattern.variable in names[:before]:
        before = names.index(pattern.variable)
        found[pattern.variable] = pattern.expression
        pattern = pattern.pattern
    return pattern, found


class _Writer:
    """Writes one SELECT and what is in it; `hidden` has the text of its aggregates and keys."""

    def __init__(self, terms: TermWriter, hidden: Mapping[Variable, str] | None = None) -> None:
        self._terms = terms
        self._expressions = Expressions(terms, hidden or {}, self._write_group)

    # ------------------------------------------------ queries
    def write_query(self, query: a.Query) -> str:
        sources = self._sources(query)
        match query:
            case a.Select(pattern, projection, distinct, _, modifiers):
                text = self._write_select(pattern, projection, distinct, modifiers, sources)
            case a.Construct(template, pattern, _, into):
                target = "" if into == a.DEFAULT_STREAM or query.sources.windows else f" INTO STREAM {write_stream(into)}"
                text = f"CONSTRUCT {{{self._terms.triples(template)}}}{target}{sources}{self._solutions(pattern)}"
            case a.BackgroundRule(template, pattern, graph):
                target = f" INTO BACKGROUND {self._terms.iri(graph)}"
                text = f"CONSTRUCT {{{self._terms.triples(template)}}}{target}{sources}{self._solutions(pattern)}"
            case a.Ask(pattern):
                text = f"ASK{sources}{self._solutions(pattern, ordered=False)}"
            case a.Describe(targets, pattern):
                named = " ".join(map(self._terms.term, targets)) or "*"
                text = f"DESCRIBE {named}{sources}{self._solutions(pattern)}"
            case _:
                assert_never(query)
        return f"{self._terms.prologue}{_register(query)}{text}"

    def _sources(self, query: a.Query) -> str:
        sources = query.sources
        dataset = sources.dataset or a.Dataset()
        parts = [f"FROM {self._terms.iri(name)}" for name in dataset.default]
        parts += [f"FROM NAMED {self._terms.iri(name)}" for name in dataset.named]
        if not sources.windows and query.streams not in ((), (a.DEFAULT_STREAM,)):
            parts += [f"FROM STREAM {write_stream(name)}" for name in query.streams]
        for window in sources.windows:
            range_ = f"[RANGE {self._duration(window.length)} STEP {self._duration(window.step)}]"
            parts.append(f"FROM NAMED WINDOW {self._terms.iri(window.name)} ON {write_stream(window.stream)} {range_}")
        if isinstance(query, a.Select) and query.parameters:
            parts.append(f"PARAMETERS ({' '.join(map(str, query.parameters))})")
        return "".join(f" {part}" for part in parts)

    def _solutions(self, pattern: a.Pattern, *, ordered: bool = True) -> str:
        """Return WHERE with its modifiers, of a query that has no SELECT clause.

        Where not `ordered`, ORDER BY would not be read.
        """
        if isinstance(pattern, a.SubSelect) and not pattern.distinct and (ordered or not pattern.modifiers.order):
            visible = _shown(pattern.pattern)
            selected = _Clauses.from_pattern(pattern.pattern, visible)
            if pattern.modifiers != a.PLAIN and pattern.projection == visible and not (selected.group and selected.computed):
                return self._where(_Clauses.from_pattern(pattern.pattern, ()), pattern.modifiers)[1]
        return self._where(_Clauses.from_pattern(pattern, ()), a.PLAIN)[1]

    def _write_select(self, pattern: a.Pattern, projection: tuple[Variable, ...], distinct: bool, modifiers: a.Modifiers, sources: str = "") -> str:
        clauses = _Clauses.from_pattern(pattern, projection)
        expressions, where = self._where(clauses, modifiers)
        computed = clauses.computed
        items = [f"({expressions.write_expression(computed[item])} AS {item})" if item in computed else str(item) for item in projection]
        if self._terms.short and clauses.group is None and not computed and projection == _shown(pattern):
            items = []
        return f"SELECT {'DISTINCT ' if distinct else ''}{' '.join(items) or '*'}{sources}{where}"

    def _where(self, clauses: _Clauses, modifiers: a.Modifiers) -> tuple[Expressions, str]:
        """Return all that stands after SELECT and its sources, and what writes the expressions of this SELECT."""
        keys = {key: self._expressions.constraint(condition) for key, condition in clauses.keys if condition is not None}
        hidden = {key: text for key, text in keys.items() if key.hidden}
        for variable, aggregate in clauses.group.aggregates if clauses.group else ():
            hidden[variable] = self._expressions.aggregate(aggregate)
        expressions = _Writer(self._terms, hidden)._expressions
        parts = [f"WHERE {self._write_group(clauses.where)}"]
        if clauses.keys:
            parts.append(f"GROUP BY {' '.join(self._key(key, condition) for key, condition in clauses.keys)}")
        if clauses.having is not None:
            parts.append(f"HAVING {expressions.constraint(clauses.having)}")
        if clauses.group is not None and clauses.group.window is not None:
            parts.append(self._window(clauses.group.window))
        if modifiers.once is not None:
            parts.append(self._once(modifiers.once))
        parts += _modifiers(expressions, modifiers)
        if clauses.values is not None:
            parts.append(self._write_values(clauses.values))
        return expressions, "".join(f" {part}" for part in parts)

    def _key(self, key: Variable, condition: a.Expression | None) -> str:
        if condition is None:
            return str(key)
        return self._expressions.constraint(condition) if key.hidden else f"({self._expressions.write_expression(condition)} AS {key})"

    def _window(self, window: a.GroupWindow) -> str:
        match window:
            case a.RangeWindow(length, step):
                return f"WINDOW [RANGE {self._duration(length)}{'' if step is None else f' STEP {self._duration(step)}'}]"
            case a.RowsWindow(count):
                return f"WINDOW [ROWS {count}]"
            case a.RunWindow():
                return f"WINDOW [RUN {' '.join(self._run_parts(window))}]"
        assert_never(window)

    def _run_parts(self, run: a.RunWindow) -> Iterator[str]:
        if run.condition is not None:
            hidden = {variable: f"PREV({self._expressions.write_expression(value)})" for variable, value in run.previous}
            hidden |= {variable: self._expressions.aggregate(aggregate) for variable, aggregate in run.aggregates}
            yield f"WHILE ({_Writer(self._terms, hidden)._expressions.write_expression(run.condition)})"
        if run.gap is not None:
            yield f"GAP {self._duration(run.gap)}"
        if run.until is not None:
            yield f"UNTIL {self._write_group(run.until)}"
        if run.within is not None:
            yield f"WITHIN {self._duration(run.within)}"
        if run.report is not a.RunReport.EACH:
            yield run.report.value

    def _once(self, once: a.Once) -> str:
        keys = f"ONCE PER {once.keys[0]}" if len(once.keys) == 1 else f"ONCE PER ({' '.join(map(str, once.keys))})"
        if once.within is not None:
            return f"{keys} WITHIN {self._duration(once.within)}"
        assert once.until is not None
        return f"{keys} UNTIL {self._write_group(once.until)}"

    # ------------------------------------------------ patterns
    def _write_group(self, pattern: a.Pattern) -> str:
        """Return the pattern as a group in braces. Its own FILTER stands directly in it."""
        if isinstance(pattern, a.Filter):
            return self._operand(pattern.pattern, pattern.condition)
        return self._operand(pattern, None)

    def _operand(self, pattern: a.Pattern, condition: a.Expression | None) -> str:
        """Return a group in which no FILTER but `condition` stands directly: an optional join takes it for its own."""
        if isinstance(pattern, a.SubSelect) and condition is None:
            return self._subselect(pattern)
        parts = [part for part in (self._elements(pattern), "" if condition is None else f"FILTER {self._expressions.constraint(condition)}") if part]
        return f"{{ {' '.join(parts)} }}" if parts else "{}"

    def _elements(self, pattern: a.Pattern) -> str:
        """Return the pattern as elements of a group, none of which is a FILTER."""
        match pattern:
            case a.Bgp(triples):
                return self._terms.triples(triples)
            case a.Path(subject, path, object_):
                return f"{self._terms.term(subject)} {self._expressions.write_path(path)} {self._terms.term(object_)} ."
            case a.Join(left, right, True):
                return f"{self._elements(left)} {self._joined(left, right)}"
            case a.LeftJoin(left, right, condition):
                return f"{self._elements(left)} OPTIONAL {self._operand(right, condition)}".lstrip()
            case a.Minus(left, right):
                return f"{self._elements(left)} MINUS {self._write_group(right)}".lstrip()
            case a.Extend(inner, variable, expression):
                return f"{self._elements(inner)} BIND({self._expressions.write_expression(expression)} AS {variable})".lstrip()
            case a.Values():
                return self._write_values(pattern)
            case a.Graph(name, inner):
                return f"GRAPH {self._terms.term(name)} {self._write_group(inner)}"
            case a.InWindow(window, inner):
                return f"WINDOW {self._terms.iri(window)} {self._write_group(inner)}"
            case a.Group():
                raise AssertionError("a Group stands only under a SELECT's own clauses")
            case _:
                return self._chain(pattern)

    def _joined(self, left: a.Pattern, right: a.Pattern) -> str:
        """Return `right` as an element after `left`: triples that would run into those before them are in braces."""
        if isinstance(right, a.Path) and _is_block(left):
            return self._elements(right)
        if _is_block(right) and not _ends_in_triples(left):
            return self._elements(right)
        return self._elements(right) if isinstance(right, a.Values | a.Graph | a.InWindow) else self._write_group(right)

    def _chain(self, pattern: a.Pattern) -> str:
        """Return the pattern as a chain. Operators associate to the left, so a left operand needs no braces of its own."""
        match pattern:
            case a.Union(left, right):
                return f"{self._chain(left)} UNION {self._write_group(right)}"
            case a.SeqJoin(left, right):
                return f"{self._chain(left)} SEQ {self._write_group(right)}"
            case a.EqJoin(left, right):
                return f"{self._chain(left)} EQUALS {self._write_group(right)}"
            case a.RelationJoin(relation, left, right):
                return f"{self._chain(left)} {relation.value} {self._write_group(right)}"
            case a.Join(left, right, False):
                return f"{self._chain(left)} AND {self._write_group(right)}"
            case a.SeqRightJoin(left, right, None):
                return f"{self._unfiltered(left)} OPTIONALSEQ {self._write_group(right)}"
            case a.SeqRightJoin(left, right, condition):
                return f"{self._operand(left, condition)} OPTIONALSEQ {self._write_group(right)}"
            case a.EqLeftJoin(left, right, condition):
                return f"{self._chain(left)} EQUALSOPTIONAL {self._operand(right, condition)}"
            case a.Within(inner, limit):
                return f"{self._chain(inner)} WITHIN {self._duration(limit)}"
            case a.WithoutFor(inner, absent, duration):
                return f"{self._chain(inner)} WITHOUT {self._write_group(absent)} FOR {self._duration(duration)}"
            case a.SeqWithout(left, right, absent, within) | a.JoinWithout(left, right, absent, within):
                operator = "SEQ" if isinstance(pattern, a.SeqWithout) else "AND"
                bound = "" if within is None else f" WITHIN {self._duration(within)}"
                return f"{self._chain(left)} {operator} {self._write_group(right)}{bound} WITHOUT {self._write_group(absent)}"
            case _:
                return self._write_group(pattern)

    def _unfiltered(self, pattern: a.Pattern) -> str:
        return self._operand(pattern, None) if isinstance(pattern, a.Filter) else self._chain(pattern)

    def _subselect(self, select: a.SubSelect) -> str:
        return f"{{ {_Writer(self._terms)._write_select(select.pattern, select.projection, select.distinct, select.modifiers)} }}"

    def _write_values(self, values: a.Values) -> str:
        rows = [[self._cell(cell) for cell in row] for row in values.rows]
        if len(values.variables) == 1:
            return f"VALUES {values.variables[0]} {{ {''.join(f'{row[0]} ' for row in rows)}}}"
        names = " ".join(map(str, values.variables))
        return f"VALUES ({names}) {{ {''.join(f'({written}) ' for written in map(' '.join, rows))}}}"

    def _cell(self, cell: TermOrVariable | None) -> str:
        return "UNDEF" if cell is None else self._terms.term(cell)

    def _duration(self, micros: a.Micros) -> str:
        return self._terms.term(Literal(duration_text(micros), XSD + "duration"))


def _shown(pattern: a.Pattern) -> tuple[Variable, ...]:
    """Return the variables that `*` stands for."""
    return tuple(variable for variable in visible_variables(pattern) if not variable.hidden)


def _is_block(pattern: a.Pattern) -> bool:
    """Return whether the pattern is what triples that no other element parts become: one Bgp, then the paths among
    them.
    """
    while isinstance(pattern, a.Join) and pattern.unrestricted and isinstance(pattern.right, a.Path):
        pattern = pattern.left
    return isinstance(pattern, a.Bgp | a.Path)


def _ends_in_triples(pattern: a.Pattern) -> bool:
    """Return whether the pattern's text ends with triples out of braces."""
    if _is_block(pattern):
        return True
    return isinstance(pattern, a.Join) and pattern.unrestricted and _is_block(pattern.right) and not _ends_in_triples(pattern.left)


def _register(query: a.Query) -> str:
    sources = query.sources
    if isinstance(query, a.Construct) and sources.report is not None:
        return f"REGISTER {sources.report.value} {write_stream(query.into)} AS "
    if sources.report in (None, a.Report.RSTREAM):
        return ""
    return f"REGISTER {sources.report.value} <out> AS "


def _modifiers(expressions: Expressions, modifiers: a.Modifiers) -> list[str]:
    parts = []
    if modifiers.order:
        parts.append(f"ORDER BY {' '.join(_order_key(expressions, key) for key in modifiers.order)}")
    if modifiers.limit is not None:
        parts.append(f"LIMIT {modifiers.limit}")
    if modifiers.offset:
        parts.append(f"OFFSET {modifiers.offset}")
    return parts


def _order_key(expressions: Expressions, key: a.OrderKey) -> str:
    if key.descending:
        return f"DESC({expressions.write_expression(key.expression)})"
    if isinstance(key.expression, a.Var) and not key.expression.variable.hidden:
        return str(key.expression.variable)
    return expressions.constraint(key.expression)
