"""Names in the reference evaluator: what tells rows apart, which variables operands share, and EXISTS's substitution (SPARQL 1.1, 18.6)."""

from collections.abc import Iterator, Mapping
from itertools import count

from epsparql import algebra
from epsparql.algebra import Pattern
from epsparql.terms import XSD, BlankNode, Iri, Literal, Term, Variable

TRUE = algebra.Constant(Literal("true", XSD + "boolean"))
ROW = "_:row of "


def marked(node: Pattern) -> Pattern:
    """The pattern with a hidden column of its own in each VALUES and each sub-SELECT without DISTINCT (section 2)."""
    result = _marked(node, count())
    assert isinstance(result, Pattern)
    return result


def _marked(node: object, numbers: Iterator[int]) -> object:
    match node:
        case algebra.Values(variables, rows):
            tagged = tuple((*row, Literal(str(number))) for number, row in enumerate(rows))
            return algebra.Values((*variables, Variable(f"{ROW}{next(numbers)}")), tagged)
        case algebra.SubSelect(pattern, projection, distinct, modifiers):
            hidden = () if distinct else (Variable(f"{ROW}{next(numbers)}"),)
            inner, order = _marked(pattern, numbers), _marked(modifiers, numbers)
            return algebra.SubSelect(inner, (*projection, *hidden), distinct, order)  # type: ignore[arg-type]  # a copy of each part's kind
        case Iri() | BlankNode() | Literal() | Variable():
            return node
        case tuple():
            return tuple(_marked(part, numbers) for part in node)
        case _ if hasattr(node, "__dataclass_fields__"):
            return type(node)(*(_marked(getattr(node, name), numbers) for name in node.__dataclass_fields__))
    return node


def row_marker(pattern: algebra.SubSelect) -> Variable | None:
    return next((variable for variable in pattern.projection if variable.name.startswith(ROW)), None)


def shared_variables(left: Pattern, right: Pattern) -> list[Variable]:
    return sorted(_in_scope(left) & _in_scope(right), key=str)


def _in_scope(node: object) -> set[Variable]:
    match node:
        case Variable():
            return {node}
        case algebra.SubSelect(_, projection):
            return set(projection)
        case algebra.Group(_, keys, aggregates):
            return {*keys, *(variable for variable, _ in aggregates)}
        case algebra.Minus(left):
            return _in_scope(left)
        case algebra.SeqWithout(left, right):
            return _in_scope(left) | _in_scope(right)
        case algebra.WithoutFor(inner) | algebra.Filter(_, inner):
            return _in_scope(inner)
        case algebra.Extend(inner, variable):
            return _in_scope(inner) | {variable}
        case algebra.LeftJoin(left, right) | algebra.EqLeftJoin(left, right) | algebra.SeqRightJoin(left, right):
            return _in_scope(left) | _in_scope(right)
        case tuple():
            return {variable for part in node for variable in _in_scope(part)}
    return {variable for name in getattr(node, "__dataclass_fields__", ()) for variable in _in_scope(getattr(node, name))}


def substituted(node: Pattern, bindings: Mapping[Variable, Term]) -> Pattern:
    """The pattern with the solution's terms in place of its variables."""
    result = _substitute(node, bindings)
    assert isinstance(result, Pattern)
    return result


def _substitute(node: object, bindings: Mapping[Variable, Term]) -> object:
    """What names a new variable keeps it: its value is compared with the solution afterwards. A sub-SELECT's own variables are others."""
    match node:
        case Variable():
            return bindings.get(node, node)
        case algebra.Var(variable):
            return algebra.Constant(bindings[variable]) if variable in bindings else node
        case algebra.Bound(variable):
            return algebra.Bound(variable) if variable not in bindings else TRUE
        case algebra.Extend(inner, variable, expression):
            return type(node)(_substitute(inner, bindings), variable, _substitute(expression, bindings))  # type: ignore[arg-type]
        case algebra.Group(inner, keys, aggregates, window):
            replaced = tuple((variable, _substitute(aggregate, bindings)) for variable, aggregate in aggregates)
            return type(node)(_substitute(inner, bindings), keys, replaced, window)  # type: ignore[arg-type]
        case algebra.SubSelect(inner, projection, distinct, modifiers):
            visible = {variable: term for variable, term in bindings.items() if variable in projection}
            return type(node)(_substitute(inner, visible), projection, distinct, _substitute(modifiers, visible))  # type: ignore[arg-type]
        case Iri() | BlankNode() | Literal() | algebra.Values():
            return node
        case tuple():
            return tuple(_substitute(part, bindings) for part in node)
        case _ if hasattr(node, "__dataclass_fields__"):
            return type(node)(*(_substitute(getattr(node, name), bindings) for name in node.__dataclass_fields__))
    return node
