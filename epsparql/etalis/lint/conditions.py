"""This module finds conditions of a rule that are never true together, such as `X > 5, X < 3`.

A rule's variables have one value in all of its patterns, so conditions of joined patterns are read together. They are
read as the comparisons of numbers that they are, by the search that finds contradictions in queries
(`epsparql.lint.contradictions`).
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Str, Struct, Term, VariableTerm, list_conjuncts
from epsparql.iris import Names
from epsparql.lint.contradictions import find_contradiction
from epsparql.parser import ast as s

_COMPARISONS = {
    "<": s.BinaryOperator.LESS,
    ">": s.BinaryOperator.GREATER,
    "=<": s.BinaryOperator.LESS_OR_EQUAL,
    ">=": s.BinaryOperator.GREATER_OR_EQUAL,
    "=:=": s.BinaryOperator.EQUAL,
    "=\\=": s.BinaryOperator.UNEQUAL,
    "is": s.BinaryOperator.EQUAL,
}
_ARITHMETIC = {"+": s.BinaryOperator.ADD, "-": s.BinaryOperator.SUBTRACT, "*": s.BinaryOperator.MULTIPLY}


def find_contradictions(program: Program) -> Iterator[Warning_]:
    """Yield a doubt for each rule, or alternative of one, whose conditions are never all true."""
    for rule in program.rules:
        for goals in _list_together(rule.body):
            conditions = [read for goal in goals for each in list_conjuncts(goal) if (read := _read_condition(each)) is not None]
            conditions.sort(key=lambda condition: condition.span.start)
            reason = find_contradiction(Names(program.text), conditions, program.text)
            if reason is not None:
                yield Warning_("never-true", f"these conditions are never all true: {reason.message}", reason.span)


def _list_together(body: Term) -> Iterator[list[Term]]:
    """Yield the conditions of a pattern that each result has to pass; those of an alternative, or of what must be
    absent, apart.
    """
    apart: list[Term] = [body]
    while apart:
        together, pending = list[Term](), [apart.pop()]
        while pending:
            match pending.pop():
                case Struct(":where", (inner, goals)):
                    together.append(goals)
                    pending.append(inner)
                case Struct(":or", parts):
                    apart += parts
                case Struct(":cnot" | ":fnot", (inner, absent)):
                    pending.append(inner)
                    apart.append(absent)
                case Struct(":<-", (_, inner)) | Struct("aggregate", (_, inner, _, *_)):
                    apart.append(inner)
                case Struct(":seq", (left, Struct(":star_times", (right,)))):
                    pending.append(left)
                    apart.append(right)
                case Struct(":seq", (left, Struct("prolog", goals))):
                    together += goals
                    pending.append(left)
                case Struct(name, parts) if name.startswith(":"):
                    pending += parts
                case _:
                    pass
        yield together


def _read_condition(goal: Term) -> s.Expression | None:
    """Return a goal as a condition of SPARQL that is true wherever the goal is; None where none is known."""
    match goal:
        case Struct(";", (left, right)):
            return _combine_all(s.BinaryOperator.OR, [_read_all(left), _read_all(right)], goal)
        case Struct(name, (left, right)) if name in _COMPARISONS:
            x, y = _read_value(left), _read_value(right)
            return None if x is None or y is None else s.Binary(_COMPARISONS[name], x, y, _find_extent(goal))
        case _:
            return None


def _read_all(goals: Term) -> s.Expression | None:
    """Return what is known of goals that are true together; None where nothing is."""
    known = [read for each in list_conjuncts(goals) if (read := _read_condition(each)) is not None]
    return _combine_all(s.BinaryOperator.AND, known, goals) if known else None


def _combine_all(operator: s.BinaryOperator, parts: Iterable[s.Expression | None], goal: Term) -> s.Expression | None:
    whole: s.Expression | None = None
    for number, part in enumerate(parts):
        if part is None:
            return None
        whole = part if number == 0 or whole is None else s.Binary(operator, whole, part, _find_extent(goal))
    return whole


def _read_value(term: Term) -> s.Expression | None:
    """Return an arithmetic term of variables and numbers as an expression; None for any other term."""
    match term:
        case VariableTerm(name, span):
            return s.VariableName(name, span)
        case Num(value, "", span):
            text = s.NumericLiteral(f"{abs(Decimal(value)):f}", span)
            return s.Unary(s.UnaryOperator.MINUS, text, span) if value < 0 else text
        case Struct(name, (left, right)) if name in _ARITHMETIC:
            x, y = _read_value(left), _read_value(right)
            return None if x is None or y is None else s.Binary(_ARITHMETIC[name], x, y, _find_extent(term))
        case _:
            return None


def _find_extent(term: Term) -> Span:
    """Return the stretch of the text from a term's first part to its last one."""
    match term:
        case Struct(args=parts) | ListTerm(items=parts):
            spans = [term.span, *map(_find_extent, parts)]
            return Span(min(span.start for span in spans), max(span.end for span in spans))
        case Name() | VariableTerm() | Num() | Str():
            return term.span
