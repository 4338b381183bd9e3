"""This module explains why a condition is never true: the smallest part of it that is to blame, and what was probably
meant.
"""

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.lint.scopes import operands, parts
from epsparql.lint.type_inference import ANY, COMPARED, ERROR, FLAG, Kind, Kinds, truth
from epsparql.literals import DURATION_FORM, INSTANT_FORM, duration_text, likely_datetime, likely_duration
from epsparql.parser import ast as s

_NAMES = {
    Kind.IRI: "an IRI",
    Kind.BLANK: "a blank node",
    Kind.NUMBER: "a number",
    Kind.TEXT: "a string",
    Kind.TAGGED: "a string with a language",
    Kind.INSTANT: "an xsd:dateTime",
    Kind.DAY: "an xsd:date",
    Kind.DURATION: "an xsd:duration",
    Kind.TRIPLE: "a triple term",
    Kind.OTHER: "a literal of another datatype",
}
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_ARITHMETIC = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided"}


@dataclass(frozen=True, slots=True)
class Reason:
    """Explains a fault: `message` continues a sentence about the condition; `span` is that of the part to blame."""

    message: str
    span: Span


def why_never_true(kinds: Kinds, condition: s.Expression) -> Reason | None:
    """Return why a condition is never true; None where it may be true, as far as kinds tell."""
    return None if Kind.TRUE in truth(kinds.infer_kind(condition)) else _why_not(kinds, condition, Kind.TRUE)


def why_error(kinds: Kinds, expression: s.Expression) -> Reason | None:
    """Return why an expression is always an error; None where it may have a value, as far as kinds tell."""
    return None if kinds.infer_kind(expression) else _why_error(kinds, expression)


def find_quoted_numbers(kinds: Kinds, condition: s.Expression) -> Iterator[Reason]:
    """Yield the comparisons of what may be a number with a number in quotes, which is a string: only strings have an
    order with it.
    """
    for part in parts((condition,)):
        match part:
            case s.Binary(operator, left, right, span) if operator in COMPARED:
                for quoted, other in ((right, left), (left, right)):
                    number = _read_quoted_number(quoted)
                    if number is not None and Kind.NUMBER in kinds.infer_kind(other):
                        yield Reason(f'"{number}" is a string, which never compares with a number; write {number}', span)


def _read_quoted_number(node: s.Expression) -> str | None:
    match node:
        case s.StringLiteral(lexical, None, None, _) if _NUMBER.fullmatch(lexical):
            return lexical
    return None


def _why_not(kinds: Kinds, node: s.Expression, wanted: Kind) -> Reason:
    """Return why `node` is never `wanted`, true or false."""
    match node:
        case s.Unary(s.UnaryOperator.NOT, operand, _):
            return _why_not(kinds, operand, FLAG & ~wanted)
        case s.Binary(s.BinaryOperator.AND | s.BinaryOperator.OR, left, right, _):
            guilty = next(side for side in (left, right) if wanted not in truth(kinds.infer_kind(side)))
            return _why_not(kinds, guilty, wanted)
    found = kinds.infer_kind(node)
    if found == ERROR:
        return _why_error(kinds, node)
    if truth(found) == ERROR:
        return Reason(f"{_named(found)} is neither true nor false", node.span)
    match node:
        case s.Binary(_, _, s.ExpressionList(()), span):
            return Reason("nothing is in an empty list", span)
        case s.Binary(_, left, s.ExpressionList(), span) if wanted is Kind.TRUE:
            return Reason(f"{_named(kinds.infer_kind(left))} is never equal to any of the list", span)
        case s.Binary(operator, left, right, span):
            relation = "equal" if operator is s.BinaryOperator.EQUAL else "different"
            return Reason(
                f"{_named(kinds.infer_kind(left))} and {_named(kinds.infer_kind(right))} are never {relation}{_remedy(kinds, left, right)}", span
            )
    return Reason("its condition is always false" if wanted is Kind.TRUE else "what ! negates is always true", node.span)


def _why_error(kinds: Kinds, node: s.Expression) -> Reason:
    for operand in operands(node):
        if kinds.infer_kind(operand) == ERROR:
            return _why_error(kinds, operand)
    match node:
        case s.Binary(operator, left, right, span):
            named = [_named(kind) for kind in (kinds.infer_kind(left), kinds.infer_kind(right)) if kind != ANY]
            if operator.symbol in _ARITHMETIC:
                return Reason(f"{' and '.join(named)} cannot be {_ARITHMETIC[operator.symbol]}", span)
            verb = "does" if len(named) == 1 else "do"
            return Reason(f"{' and '.join(named)} {verb} not compare with {operator.symbol}{_remedy(kinds, left, right)}", span)
        case s.BuiltInCall(name, arguments, span) if arguments:
            return Reason(f"{name} has no value for {' and '.join(_named(kinds.infer_kind(argument)) for argument in arguments)}", span)
        case s.Unary(operator, operand, span):
            return Reason(f"{_named(kinds.infer_kind(operand))} cannot follow {operator.value}", span)
    return Reason("this is always an error", node.span)


def _named(kind: Kind) -> str:
    if kind == ANY:
        return "a value"
    parts = [name for member, name in _NAMES.items() if member & kind] + (["true or false"] if kind & FLAG else [])
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) < 4 else "such a value"


def _remedy(kinds: Kinds, left: s.Expression, right: s.Expression) -> str:
    """Return what to write instead of a constant of the wrong kind, beside a duration or an instant; or how to
    compare the text of a term.
    """
    for constant, other in ((right, left), (left, right)):
        wanted = kinds.infer_kind(other)
        match constant:
            case s.NumericLiteral(text, _) if wanted == Kind.DURATION:
                return f'; write "{_seconds(text)}"^^xsd:duration'
            case s.StringLiteral(lexical, None, None, _) if wanted == Kind.DURATION:
                meant = likely_duration(lexical)
                return f'; write "{"PT10S" if meant == DURATION_FORM else meant}"^^xsd:duration'
            case s.StringLiteral(lexical, None, None, _) if wanted == Kind.INSTANT:
                meant = likely_datetime(lexical)
                return f'; write "{"2026-01-31T12:00:00Z" if meant == INSTANT_FORM else meant}"^^xsd:dateTime'
    named = {kind for kind in (kinds.infer_kind(left), kinds.infer_kind(right)) if kind != ANY}
    return "; STR(...) gives the text of a term" if named & {Kind.IRI, Kind.TAGGED} and named <= {Kind.IRI, Kind.TAGGED, Kind.TEXT} else ""


def _seconds(text: str) -> str:
    """Return the duration of that many seconds, if it is one, else an example."""
    try:
        seconds = Decimal(text)
    except InvalidOperation:  # an exponent out of range
        return "PT10S"
    if seconds < 0 or seconds.adjusted() >= 10 or seconds * 1_000_000 % 1:
        return "PT10S"
    return duration_text(int(seconds * 1_000_000))
