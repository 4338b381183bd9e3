"""Algebra to canonical text: `parse(render(query)).query == query` for every query that parse gives."""

import re
from typing import assert_never

from epsparql import algebra as a
from epsparql.check import duration_text
from epsparql.terms import XSD, Iri, Literal, TermOrVariable, Variable

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+")
_SHORT = {XSD + "integer": _INTEGER, XSD + "decimal": _DECIMAL, XSD + "double": _DOUBLE, XSD + "boolean": re.compile("true|false")}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_OR, _AND, _COMPARE, _ADD, _MULTIPLY, _UNARY = range(6)
_STRENGTHS = {a.Operator.ADD: _ADD, a.Operator.SUBTRACT: _ADD, a.Operator.MULTIPLY: _MULTIPLY, a.Operator.DIVIDE: _MULTIPLY}


def render(query: a.Query) -> str:
    """The text of a query, without prefixes."""
    match query:
        case a.Select(pattern, projection, distinct, streams):
            head = " ".join(map(str, projection)) or "*"
            return f"SELECT {'DISTINCT ' if distinct else ''}{head}{_from(streams)} WHERE {_group(pattern)}"
        case a.Construct(template, pattern, streams, into):
            target = "" if into == a.DEFAULT_STREAM else f" INTO STREAM {_stream(into)}"
            return f"CONSTRUCT {{{_triples(template)}}}{target}{_from(streams)} WHERE {_group(pattern)}"
    assert_never(query)


def _from(streams: tuple[str, ...]) -> str:
    return "" if streams == (a.DEFAULT_STREAM,) else "".join(f" FROM STREAM {_stream(stream)}" for stream in streams)


def _stream(name: str) -> str:
    return f"<{name}>"


# ---------------------------------------------------------------- patterns
def _group(pattern: a.Pattern, condition: a.Expression | None = None) -> str:
    """The pattern as a group in braces. Its own FILTER stands directly in it."""
    if isinstance(pattern, a.Filter) and condition is None:
        return _operand(pattern.pattern, pattern.condition)
    return _operand(pattern, condition)


def _operand(pattern: a.Pattern, condition: a.Expression | None) -> str:
    """A group in which no FILTER but `condition` stands directly: an optional join takes it for its own."""
    parts = [part for part in (_elements(pattern), "" if condition is None else f"FILTER {_constraint(condition)}") if part]
    return f"{{ {' '.join(parts)} }}" if parts else "{}"


def _elements(pattern: a.Pattern) -> str:
    """The pattern as elements of a group, none of which is a FILTER."""
    match pattern:
        case a.Bgp(triples):
            return _triples(triples)
        case a.Filter():
            return _group(pattern)
        case a.Join(left, right):
            return f"{_elements(left)} {_group(right)}"
        case a.LeftJoin(left, right, condition):
            return f"{_elements(left)} OPTIONAL {_operand(right, condition)}".lstrip()
        case a.Minus(left, right):
            return f"{_elements(left)} MINUS {_group(right)}".lstrip()
        case a.Extend(inner, variable, expression):
            return f"{_elements(inner)} BIND({_expression(expression)} AS {variable})".lstrip()
        case _:
            return _chain(pattern)


def _chain(pattern: a.Pattern) -> str:
    """The pattern as a chain. Operators associate to the left, so a left operand needs no braces of its own."""
    match pattern:
        case a.Union(left, right):
            return f"{_chain(left)} UNION {_group(right)}"
        case a.SeqJoin(left, right):
            return f"{_chain(left)} SEQ {_group(right)}"
        case a.EqJoin(left, right):
            return f"{_chain(left)} EQUALS {_group(right)}"
        case a.RelationJoin(relation, left, right):
            return f"{_chain(left)} {relation.value} {_group(right)}"
        case a.SeqRightJoin(left, right, None):
            return f"{_unfiltered(left)} OPTIONALSEQ {_group(right)}"
        case a.SeqRightJoin(left, right, condition):
            return f"{_operand(left, condition)} OPTIONALSEQ {_group(right)}"
        case a.EqLeftJoin(left, right, condition):
            return f"{_chain(left)} EQUALSOPTIONAL {_operand(right, condition)}"
        case a.Within(inner, limit):
            return f"{_chain(inner)} WITHIN {_duration(limit)}"
        case a.WithoutFor(inner, absent, duration):
            return f"{_chain(inner)} WITHOUT {_group(absent)} FOR {_duration(duration)}"
        case a.SeqWithout(left, right, absent, within):
            bound = "" if within is None else f" WITHIN {_duration(within)}"
            return f"{_chain(left)} SEQ {_group(right)}{bound} WITHOUT {_group(absent)}"
        case _:
            return _group(pattern)


def _unfiltered(pattern: a.Pattern) -> str:
    return _operand(pattern, None) if isinstance(pattern, a.Filter) else _chain(pattern)


def _duration(micros: a.Micros) -> str:
    return f'"{duration_text(micros)}"^^<{XSD}duration>'


def _triples(triples: tuple[a.TriplePattern, ...]) -> str:
    return " ".join(f"{_term(t.subject)} {_term(t.predicate)} {_term(t.object)} ." for t in triples)


def _term(term: TermOrVariable) -> str:
    match term:
        case Variable(name) if term.hidden:
            return name
        case Literal(lexical, datatype, _) if datatype in _SHORT and _SHORT[datatype].fullmatch(lexical):
            return lexical
        case Literal() | Iri():
            return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", str(term))
        case _:
            return str(term)


# ---------------------------------------------------------------- expressions
def _constraint(condition: a.Expression) -> str:
    """The condition of a FILTER: EXISTS needs no brackets, which would count as a level."""
    if isinstance(condition, a.Exists) or (isinstance(condition, a.Not) and isinstance(condition.operand, a.Exists)):
        return _expression(condition)
    return f"({_expression(condition)})"


def _expression(node: a.Expression, strength: int = _OR) -> str:
    """In brackets where it binds less than `strength`."""
    text, own = _rendered(node)
    return text if own >= strength else f"({text})"


def _rendered(node: a.Expression) -> tuple[str, int]:
    """The text and how strongly it binds."""
    match node:
        case a.Or(left, right):
            return f"{_expression(left, _OR)} || {_expression(right, _AND)}", _OR
        case a.And(left, right):
            return f"{_expression(left, _AND)} && {_expression(right, _COMPARE)}", _AND
        case a.Compare(op, left, right):
            return f"{_expression(left, _ADD)} {op.value} {_expression(right, _ADD)}", _COMPARE
        case a.In(operand, members):
            return f"{_expression(operand, _ADD)} IN {_arguments(members)}", _COMPARE
        case a.Not(a.In(operand, members)):
            return f"{_expression(operand, _ADD)} NOT IN {_arguments(members)}", _COMPARE
        case a.Arithmetic(op, left, right):
            own = _STRENGTHS[op]
            return f"{_expression(left, own)} {op.value} {_expression(right, own + 1)}", own
        case a.Not(a.Exists(pattern)):
            return f"NOT EXISTS {_group(pattern)}", _UNARY
        case a.Not(operand):
            return f"! {_expression(operand, _UNARY)}", _UNARY
        case a.Negate(operand):
            return f"- {_expression(operand, _UNARY)}", _UNARY
        case _:
            return _primary(node), _UNARY


def _primary(node: a.Expression) -> str:
    match node:
        case a.Constant(term):
            return _term(term)
        case a.Var(variable):
            return str(variable)
        case a.Bound(variable):
            return f"BOUND({variable})"
        case a.If(condition, then, otherwise):
            return f"IF{_arguments((condition, then, otherwise))}"
        case a.Coalesce(operands):
            return f"COALESCE{_arguments(operands)}"
        case a.Call(function, arguments):
            return f"{function}{_arguments(arguments)}"
        case a.Time(function):
            return f"{function.value}()"
        case a.Exists(pattern):
            return f"EXISTS {_group(pattern)}"
    raise AssertionError(node)


def _arguments(arguments: tuple[a.Expression, ...]) -> str:
    return f"({', '.join(_expression(argument) for argument in arguments)})"
