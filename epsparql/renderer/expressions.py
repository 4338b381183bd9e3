"""This module writes expressions and property paths as text, with only the brackets that count."""

from collections.abc import Callable, Mapping
from typing import assert_never

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.renderer.terms import TermWriter
from epsparql.terms import Variable

_OR, _AND, _COMPARE, _ADD, _MULTIPLY, _UNARY, _ATOM = range(7)
_STRENGTHS = {a.Operator.ADD: _ADD, a.Operator.SUBTRACT: _ADD, a.Operator.MULTIPLY: _MULTIPLY, a.Operator.DIVIDE: _MULTIPLY}
_ALTERNATIVE, _SEQUENCE, _INVERSE, _MODIFIED, _PRIMARY = range(5)


@dataclass(frozen=True, slots=True)
class Expressions:
    """Writes expressions.

    `hidden` has the text of the aggregates and keys that hidden variables stand for; `group` writes a pattern in
    braces.
    """

    terms: TermWriter
    hidden: Mapping[Variable, str]
    group: Callable[[a.Pattern], str]

    def constraint(self, condition: a.Expression) -> str:
        """Return the text of a FILTER's condition: calls need no brackets, which would count as a level."""
        text = self.write_expression(condition)
        match condition:
            case a.Exists() | a.Not(a.Exists()) | a.Call() | a.If() | a.Coalesce() | a.Bound() | a.Time():
                return text
            case a.Var(variable) if variable in self.hidden:
                return text
        return f"({text})"

    def write_expression(self, node: a.Expression, strength: int = _OR) -> str:
        """Return the text of an expression, in brackets where it binds less than `strength`."""
        text, own = self._rendered(node)
        return text if own >= strength else f"({text})"

    def _rendered(self, node: a.Expression) -> tuple[str, int]:
        """Return the text and how strongly it binds."""
        match node:
            case a.Or(left, right):
                return f"{self.write_expression(left, _OR)} || {self.write_expression(right, _AND)}", _OR
            case a.And(left, right):
                return f"{self.write_expression(left, _AND)} && {self.write_expression(right, _COMPARE)}", _AND
            case a.Compare(op, left, right):
                return f"{self.write_expression(left, _ADD)} {op.value} {self.write_expression(right, _ADD)}", _COMPARE
            case a.In(operand, members):
                return f"{self.write_expression(operand, _ADD)} IN {self._arguments(members)}", _COMPARE
            case a.Not(a.In(operand, members)):
                return f"{self.write_expression(operand, _ADD)} NOT IN {self._arguments(members)}", _COMPARE
            case a.Arithmetic(op, left, right):
                own = _STRENGTHS[op]
                return f"{self.write_expression(left, own)} {op.value} {self.write_expression(right, own + 1)}", own
            case a.Not(a.Exists(pattern)):
                return f"NOT EXISTS {self.group(pattern)}", _ATOM
            case a.Not(operand):
                return f"! {self.write_expression(operand, _ATOM)}", _UNARY
            case a.Negate(a.Negate(operand)):
                return f"+ {self.write_expression(operand, _ATOM)}", _UNARY
            case a.Negate(operand):
                return f"- {self.write_expression(operand, _ATOM)}", _UNARY
            case _:
                return self._primary(node), _ATOM

    def _primary(self, node: a.Expression) -> str:
        match node:
            case a.Constant(term):
                return self.terms.term(term)
            case a.Var(variable):
                return self.hidden.get(variable) or str(variable)
            case a.Bound(variable):
                return f"BOUND({variable})"
            case a.If(condition, then, otherwise):
                return f"IF{self._arguments((condition, then, otherwise))}"
            case a.Coalesce(operands):
                return f"COALESCE{self._arguments(operands)}"
            case a.Call("IRI", (argument, _)):
                return f"IRI{self._arguments((argument,))}"
            case a.Call(function, arguments):
                name = self.terms.iri(function[1:-1]) if function.startswith("<") else function
                return f"{name}{self._arguments(arguments)}"
            case a.Time(function):
                return f"{function.value}()"
            case a.Exists(pattern):
                return f"EXISTS {self.group(pattern)}"
        raise AssertionError(node)

    def _arguments(self, arguments: tuple[a.Expression, ...]) -> str:
        return f"({', '.join(map(self.write_expression, arguments))})"

    def aggregate(self, aggregate: a.Aggregate) -> str:
        argument = "*" if aggregate.argument is None else self.write_expression(aggregate.argument)
        distinct = "DISTINCT " if aggregate.distinct else ""
        separator = "" if aggregate.separator == " " else f"; SEPARATOR={self.terms.term(a.Literal(aggregate.separator))}"
        return f"{aggregate.function.value}({distinct}{argument}{separator})"

    # ------------------------------------------------ property paths
    def write_path(self, node: a.PropertyPath, strength: int = _ALTERNATIVE) -> str:
        """Return the text of a property path, in brackets where it binds less than `strength`."""
        text, own = self._write_path(node)
        return text if own >= strength else f"({text})"

    def _write_path(self, node: a.PropertyPath) -> tuple[str, int]:
        match node:
            case a.Link(predicate):
                return self.terms.term(predicate), _PRIMARY
            case a.Inverse(path):
                return f"^{self.write_path(path, _MODIFIED)}", _INVERSE
            case a.Sequence(left, right):
                return f"{self.write_path(left, _SEQUENCE)}/{self.write_path(right, _INVERSE)}", _SEQUENCE
            case a.Alternative(left, right):
                return f"{self.write_path(left, _ALTERNATIVE)}|{self.write_path(right, _SEQUENCE)}", _ALTERNATIVE
            case a.ZeroOrOne(path):
                return f"{self.write_path(path, _PRIMARY)}?", _MODIFIED
            case a.ZeroOrMore(path):
                return f"{self.write_path(path, _PRIMARY)}*", _MODIFIED
            case a.OneOrMore(path):
                return f"{self.write_path(path, _PRIMARY)}+", _MODIFIED
            case a.Negated(forward, backward):
                links = [*map(self.terms.term, forward or ()), *(f"^{self.terms.term(link)}" for link in backward or ())]
                return f"!{links[0]}" if len(links) == 1 else f"!({'|'.join(links)})", _PRIMARY
        assert_never(node)
