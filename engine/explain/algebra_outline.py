"""This module writes the algebra of a query as a tree of words: one item per node, with its name in `epsparql.algebra`."""

from collections.abc import Iterable
from typing import assert_never

from engine.expressions import temporal
from engine.expressions.values import Duration
from engine.pattern_scope import list_subexpressions
from engine.rewrite.join_instances import is_relation
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.renderer.expressions import Expressions
from epsparql.renderer.terms import TermWriter
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import replace_fields, walk_nodes


@dataclass(frozen=True, slots=True)
class Item:
    """Describes a node of the algebra: `detail` is what it holds beside the patterns below it, whose places in the
    outline are `inputs`.
    """

    node: str
    detail: str
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outliner:
    """Puts the nodes of `whole` into words; `texts` writes its expressions, aggregates in the place of their hidden
    variables.
    """

    whole: a.Query
    texts: Expressions

    @classmethod
    def from_query(cls, query: a.Query, made: Iterable[Variable] = ()) -> "Outliner":
        """Build an outliner of a query; `made` are variables that a plan added."""
        nodes = list(walk_nodes(query))
        hidden = {node: node.name for node in (*nodes, *made) if isinstance(node, Variable) and node.hidden}
        plain = Expressions(TermWriter("", {}), hidden, lambda _: "{ ... }")
        named = {variable: plain.aggregate(one) for node in nodes if isinstance(node, a.Group) for variable, one in node.aggregates}
        for run in (node for node in nodes if isinstance(node, a.RunWindow)):
            named |= {variable: f"PREV({plain.write_expression(value)})" for variable, value in run.previous}
            named |= {variable: plain.aggregate(aggregate) for variable, aggregate in run.aggregates}
        return cls(query, Expressions(plain.terms, hidden | named, plain.group))

    def outline_query(self, query: a.Query) -> tuple[Item, ...]:
        """Outline the query and its patterns, each pattern before those that it is made of.

        Patterns of EXISTS come last among these.
        """
        items = [Item(type(query).__name__, self.head(query), ())]
        pending: list[tuple[int, a.Pattern | a.Construct]] = [(0, query.pattern)]
        if isinstance(query, a.Select):
            until = None if query.modifiers.once is None else query.modifiers.once.until
            pending[:0] = [(0, part) for part in (until, *reversed(query.rules)) if part is not None]
        while pending:
            above, pattern = pending.pop()
            place = len(items)
            items[above] = replace_fields(items[above], inputs=(*items[above].inputs, place))
            if isinstance(pattern, a.Construct):
                items.append(Item("Construct", self.head(pattern), ()))
                pending.append((place, pattern.pattern))
                continue
            items.append(Item(type(pattern).__name__, self.detail(pattern), ()))
            below = operands(pattern) + [found for expression in expressions(pattern) for found in exists_in(expression)]
            pending += [(place, part) for part in reversed(below)]
        return tuple(items)

    def head(self, query: a.Query) -> str:
        match query:
            case a.Select(_, projection, distinct, _, modifiers, sources):
                return words("DISTINCT" if distinct else "", variables(projection), self.modified(modifiers), from_(sources))
            case a.Construct(template, _, _, into, sources):
                return words(triples(template), f"INTO STREAM <{into}>", from_(sources))
            case a.BackgroundRule(template, _, graph, _, sources):
                return words(triples(template), f"INTO BACKGROUND <{graph}>", from_(sources))
            case a.Ask(_, _, sources):
                return from_(sources)
            case a.Describe(targets, _, _, sources):
                return words(" ".join(write_term(target) for target in targets), from_(sources))
            case _:
                assert_never(query)

    def detail(self, pattern: a.Pattern) -> str:
        match pattern:
            case a.Bgp(patterns):
                return triples(patterns)
            case a.Path(subject, path, object_):
                return f"{write_term(subject)} {self.texts.write_path(path)} {write_term(object_)}"
            case a.Values(names, _) if is_relation(pattern):
                return f"{variables(names[2:])} of each instance"
            case a.Values(names, rows):
                return f"{variables(names)}: {len(rows)} row{'' if len(rows) == 1 else 's'}"
            case a.Extend(_, variable, expression):
                return f"{write_term(variable)} := {self.texts.write_expression(expression)}"
            case a.Filter(condition, _):
                return self.texts.write_expression(condition)
            case a.LeftJoin(_, _, condition) | a.SeqRightJoin(_, _, condition) | a.EqLeftJoin(_, _, condition):
                return "" if condition is None else self.texts.write_expression(condition)
            case a.RelationJoin(relation, _, _):
                return relation.value
            case a.SeqWithout(_, _, _, within) | a.JoinWithout(_, _, _, within):
                return "" if within is None else f"within {length(within)}"
            case a.WithoutFor(_, _, micros) | a.Within(_, micros):
                return length(micros)
            case a.Alarm(_, at):
                return f"until {write_term(at)}"
            case a.Instant(micros):
                return temporal.format_instant(micros)
            case a.Graph(name, _):
                return write_term(name)
            case a.InWindow(name, _):
                return f"<{name}>"
            case a.Group(_, keys, aggregates, window):
                computed = "; ".join(self.texts.aggregate(aggregate) for _, aggregate in aggregates)
                return words(f"by {variables(keys)}" if keys else "all in one group", windowed(window, self.texts), computed)
            case a.SubSelect(_, projection, distinct, modifiers):
                return words("DISTINCT" if distinct else "", variables(projection), self.modified(modifiers))
            case a.Join() | a.Union() | a.SeqJoin() | a.EqJoin() | a.Minus():
                return ""
            case _:
                assert_never(pattern)

    def modified(self, modifiers: a.Modifiers) -> str:
        order = [
            f"DESC({self.texts.write_expression(key.expression)})" if key.descending else self.texts.write_expression(key.expression)
            for key in modifiers.order
        ]
        return words(
            "" if modifiers.once is None else describe_once(modifiers.once),
            f"ORDER BY {', '.join(order)}" if order else "",
            f"OFFSET {modifiers.offset}" if modifiers.offset else "",
            f"LIMIT {modifiers.limit}" if modifiers.limit is not None else "",
        )


def operands(pattern: a.Pattern) -> list[a.Pattern]:
    match pattern:
        case a.Bgp() | a.Path() | a.Values() | a.Instant():
            return []
        case a.Alarm(inner, _) | a.Filter(_, inner) | a.Extend(inner, _, _) | a.Within(inner, _) | a.Graph(_, inner) | a.InWindow(_, inner):
            return [inner]
        case a.Group(inner, _, _, a.RunWindow(until=until)) if until is not None:
            return [inner, until]
        case a.SubSelect(inner, _, _, a.Modifiers(once=a.Once(until=until))) if until is not None:
            return [inner, until]
        case a.Group(inner, _, _, _) | a.SubSelect(inner, _, _, _):
            return [inner]
        case (
            a.Join(left, right) | a.Union(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right)
            | a.LeftJoin(left, right, _) | a.SeqRightJoin(left, right, _) | a.EqLeftJoin(left, right, _) | a.Minus(left, right)
            | a.WithoutFor(left, right, _)
        ):  # fmt: skip
            return [left, right]
        case a.SeqWithout(left, right, absent, _) | a.JoinWithout(left, right, absent, _):
            return [left, right, absent]
        case _:
            assert_never(pattern)


def expressions(pattern: a.Pattern) -> list[a.Expression]:
    """Return the expressions that a node holds itself."""
    match pattern:
        case a.Filter(expression, _) | a.Extend(_, _, expression):
            return [expression]
        case a.LeftJoin(_, _, condition) | a.SeqRightJoin(_, _, condition) | a.EqLeftJoin(_, _, condition):
            return [] if condition is None else [condition]
        case a.Group(_, _, aggregates, _):
            return [aggregate.argument for _, aggregate in aggregates if aggregate.argument is not None]
        case a.SubSelect(_, _, _, modifiers):
            return [key.expression for key in modifiers.order]
        case _:
            return []


def exists_in(expression: a.Expression) -> list[a.Pattern]:
    """Return the patterns of the EXISTS in an expression, without entering those patterns."""
    return [part.pattern for part in list_subexpressions(expression) if isinstance(part, a.Exists)]


# ---------------------------------------------------------------- words
def words(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def write_term(term: TermOrVariable) -> str:
    """Write a term as in a query's text, and a hidden variable by its own name."""
    return term.name if isinstance(term, Variable) and term.hidden else str(term)


def variables(names: tuple[Variable, ...]) -> str:
    return " ".join(map(write_term, names))


def triples(patterns: tuple[a.TriplePattern, ...]) -> str:
    return " . ".join(f"{write_term(t.subject)} {write_term(t.predicate)} {write_term(t.object)}" for t in patterns)


def length(micros: int) -> str:
    return temporal.format_duration(Duration(0, micros))


def windowed(window: a.GroupWindow | None, texts: Expressions) -> str:
    match window:
        case None:
            return "since the start"
        case a.RangeWindow(size, step):
            return f"over the last {length(size)}" + ("" if step is None else f", every {length(step)}")
        case a.RowsWindow(count):
            return f"over the last {count} solutions"
        case a.RunWindow():
            return describe_run(window, texts)
        case _:
            assert_never(window)


def describe_once(once: a.Once) -> str:
    ended = "until what stands beside it" if once.within is None else f"within {length(once.within)}"
    return f"ONCE PER {variables(once.keys)} {ended}"


def describe_run(run: a.RunWindow, texts: Expressions) -> str:
    parts = [
        "" if run.condition is None else f"while {texts.write_expression(run.condition)}",
        "" if run.gap is None else f"with gaps up to {length(run.gap)}",
        "" if run.until is None else "until what stands beside it",
        "" if run.within is None else f"within {length(run.within)}",
    ]
    reported = "once, when it is over" if run.report is a.RunReport.CLOSED else "as it grows"
    return f"in runs {', '.join(part for part in parts if part)}, each reported {reported},"


def from_(sources: a.Sources) -> str:
    dataset = sources.dataset or a.Dataset()
    windows = [f"window <{w.name}> on {w.stream} of {length(w.length)} every {length(w.step)}" for w in sources.windows]
    return words(
        *(f"FROM <{name}>" for name in dataset.default),
        *(f"FROM NAMED <{name}>" for name in dataset.named),
        sources.report.value if sources.report is not None else "",
        ", ".join(windows),
    )
