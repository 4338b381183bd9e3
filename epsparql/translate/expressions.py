"""This module translates expressions of syntax to expressions of the algebra (SPARQL 1.1 section 17)."""

from typing import Protocol, assert_never

from epsparql import algebra as a
from epsparql.errors import InvalidRegex, SyntaxFault
from epsparql.lint.regex_arguments import find_regex_fault
from epsparql.ntriples import is_absolute_iri
from epsparql.parser import ast as s
from epsparql.terms import Iri
from epsparql.translate.context import Context
from epsparql.translate.source_map import beginning

_COMPARISONS = {comparison.value: comparison for comparison in a.Comparison}
_ARITHMETIC = {operator.value: operator for operator in a.Operator}
_TIMES = {function.value.upper(): function for function in a.TimeFunction}
_SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}
_ANY = 1_000_000
_ARITIES: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("RAND", "NOW", "UUID", "STRUUID", *_TIMES), (0, 0)),
    "BNODE": (0, 1),
    **dict.fromkeys(("LANGMATCHES", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "STRLANG", "STRDT", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("TRIPLE", "STRLANGDIR"), (3, 3)),
    "IF": (3, 3),
    "REGEX": (2, 3),
    "SUBSTR": (2, 3),
    "REPLACE": (3, 4),
    "CONCAT": (0, _ANY),
    "COALESCE": (0, _ANY),
}
_ONE = (1, 1)


class NameScope(Protocol):
    """Answers what an expression needs of the query around it; a variable and an aggregate are given by where they
    stand.
    """

    @property
    def context(self) -> Context: ...

    def translate_variable(self, name: s.VariableName) -> a.Expression: ...

    def bound(self, name: s.VariableName) -> a.Expression: ...

    def translate_group(self, group: s.GroupGraphPattern) -> a.Pattern: ...

    def aggregate(self, call: s.AggregateCall) -> a.Expression: ...

    def previous(self, call: s.PreviousCall) -> a.Expression: ...


def expression(scope: NameScope, node: s.Expression) -> a.Expression:
    """Translate an expression. Raises QueryError."""
    match node:
        case s.VariableName():
            return scope.translate_variable(node)
        case s.IriRef() | s.PrefixedName() | s.StringLiteral() | s.NumericLiteral() | s.BooleanLiteral():
            return a.Constant(scope.context.term(node))
        case s.TypeVerb():
            return a.Constant(scope.context.predicate(node))
        case s.Unary(operator, operand, _):
            return _unary(operator, expression(scope, operand))
        case s.Binary():
            return _binary(scope, node)
        case s.ExistsCall(negated, group, span):
            exists = a.Exists(scope.translate_group(group))
            scope.context.places.note(exists, beginning(span, "NOT EXISTS" if negated else "EXISTS"))
            return a.Not(exists) if negated else exists
        case s.FunctionCall(function, arguments, _):
            call = a.Call(str(scope.context.term(function)), _all(scope, arguments))
            scope.context.places.note(call, function.span)
            return call
        case s.BuiltInCall():
            return _built_in(scope, node)
        case s.AggregateCall():
            return scope.aggregate(node)
        case s.PreviousCall():
            return scope.previous(node)
        case s.ExpressionList():
            raise AssertionError("a list stands only after IN")
    assert_never(node)


def _all(scope: NameScope, nodes: tuple[s.Expression, ...]) -> tuple[a.Expression, ...]:
    return tuple(expression(scope, node) for node in nodes)


def _unary(operator: s.UnaryOperator, operand: a.Expression) -> a.Expression:
    match operator:
        case s.UnaryOperator.NOT:
            return a.Not(operand)
        case s.UnaryOperator.MINUS:
            return a.Negate(operand)
        case s.UnaryOperator.PLUS:
            return a.Negate(a.Negate(operand))  # the identity on numbers, an error on all else
    assert_never(operator)


def _binary(scope: NameScope, node: s.Binary) -> a.Expression:
    """Translate a binary expression. Chains of one operator lean left, so the left side is walked, not recursed into."""
    pending = [node]
    while isinstance(pending[-1].left, s.Binary):
        pending.append(pending[-1].left)
    result = expression(scope, pending[-1].left)
    for binary in reversed(pending):
        result = _operation(scope, binary, result)
    return result


def _operation(scope: NameScope, node: s.Binary, left: a.Expression) -> a.Expression:
    operator = node.operator
    if isinstance(node.right, s.ExpressionList):
        membership = a.In(left, _all(scope, node.right.members))
        return a.Not(membership) if operator is s.BinaryOperator.NOT_IN else membership
    right = expression(scope, node.right)
    if operator is s.BinaryOperator.OR:
        return a.Or(left, right)
    if operator is s.BinaryOperator.AND:
        return a.And(left, right)
    if operator.symbol in _COMPARISONS:
        return a.Compare(_COMPARISONS[operator.symbol], left, right)
    return a.Arithmetic(_ARITHMETIC[operator.symbol], left, right)


def _built_in(scope: NameScope, call: s.BuiltInCall) -> a.Expression:
    _check_arity(scope, call)
    match call:
        case s.BuiltInCall("BOUND", (s.VariableName() as variable,), _):
            return scope.bound(variable)
    arguments = _all(scope, call.arguments)
    if call.name in _TIMES:
        return a.Time(_TIMES[call.name])
    if call.name == "IF":
        return a.If(*arguments)
    if call.name == "COALESCE":
        return a.Coalesce(arguments)
    if call.name in ("REGEX", "REPLACE") and (fault := find_regex_fault(call)) is not None:
        scope.context.fail(InvalidRegex, fault.message, fault.span, "")
    name = _SYNONYMS.get(call.name, call.name)
    if name == "IRI" and scope.context.names.base is not None:
        return a.Call(name, (*arguments, a.Constant(Iri(scope.context.names.base))))  # what a relative one is resolved against (17.4.2.8)
    if name == "IRI":
        _warn_of_relative(scope.context, call)
    return a.Call(name, arguments)


def _warn_of_relative(context: Context, call: s.BuiltInCall) -> None:
    """Warn of IRI() without BASE, where its argument has no scheme that is seen."""
    match call.arguments[0]:
        case s.VariableName() | s.StringLiteral() as text if not (isinstance(text, s.StringLiteral) and is_absolute_iri(text.lexical)):
            context.warn("no-base", f"the query has no BASE, so {call.name} of a relative text is an error", call.span)


def _check_arity(scope: NameScope, call: s.BuiltInCall) -> None:
    least, most = _ARITIES.get(call.name, _ONE)
    count = len(call.arguments)
    if least <= count <= most:
        return
    name = _TIMES[call.name].value if call.name in _TIMES else call.name
    counts = str(least) if least == most else f"{least} or {most}"
    expected = {"0": "no argument", "1": "one argument"}.get(counts, f"{counts} arguments")
    scope.context.fail(SyntaxFault, f"{name} has {count} argument{'' if count == 1 else 's'}", call.span, expected)
