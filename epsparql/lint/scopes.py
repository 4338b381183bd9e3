"""This module finds the variables that the written query binds (SPARQL 1.1, 18.2.1), for doubts that name a place."""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import assert_never

from epsparql.parser import ast as s
from epsparql.trees import list_fields

_LONGEST_NAME = 100
"""Longer names are not compared."""


class Scopes:
    """Keeps the names visible after each group, found once; blank nodes have none."""

    def __init__(self) -> None:
        self._groups: dict[int, frozenset[str]] = {}  # by the group's identity

    def group(self, group: s.GroupGraphPattern) -> frozenset[str]:
        found = self._groups.get(id(group))
        if found is None:
            found = self._groups[id(group)] = frozenset().union(*map(self.element, group.elements))
        return found

    def element(self, element: s.Element) -> frozenset[str]:
        match element:
            case s.TriplesSameSubject():
                return frozenset(_in_triples(element))
            case s.FilterElement() | s.MinusElement():
                return frozenset()
            case s.BindElement(_, variable, _):
                return frozenset((variable.name,))
            case s.OptionalElement(group, _):
                return self.group(group)
            case s.Chain(first, steps, _):
                return self.group(first).union(*(self.group(step.group) for step in steps if isinstance(step, s.Combine)))
            case s.GraphElement(name, group, _) | s.WindowElement(name, group, _) | s.ServiceElement(_, name, group, _):
                return self.group(group) | ({name.name} if isinstance(name, s.VariableName) else frozenset())
            case s.ValuesElement(variables, _, _):
                return frozenset(variable.name for variable in variables)
            case s.SubSelectElement(select, _):
                return self.select(select)
        assert_never(element)

    def select(self, select: s.SelectForm) -> frozenset[str]:
        """Return the names of the variables that a SELECT projects."""
        return frozenset(item.variable.name for item in select.items) if select.items else self.body(select.body)

    def body(self, body: s.Body) -> frozenset[str]:
        """Return the names that a pattern binds with the VALUES and the named keys that follow it."""
        keys = {key.variable.name for key in body.modifier.keys if key.variable is not None}
        return self.group(body.where) | keys | (frozenset() if body.values is None else self.element(body.values))


def labels(element: s.Element) -> frozenset[str]:
    """Return the labels of the blank nodes that an element's own triples name, as `_:label`."""
    return frozenset(_in_triples(element, blank=True)) if isinstance(element, s.TriplesSameSubject) else frozenset()


def _in_triples(triples: s.TriplesSameSubject, *, blank: bool = False) -> Iterator[str]:
    """Yield the names of the variables, or of the blank nodes, in triples."""
    pending: list[object] = [triples]
    while pending:
        node = pending.pop()
        match node:
            case s.VariableName(name, _):
                if not blank:
                    yield name
            case s.BlankLabel(label, _):
                if blank:
                    yield f"_:{label}"
            case s.TriplesSameSubject(subject, properties, _):
                pending += (subject, *properties)
            case s.Property(verb, objects):
                pending += (verb, *objects)
            case s.BlankProperties(properties, _):
                pending += properties
            case s.Collection(items, _):
                pending += items
            case s.TripleNode(subject, verb, object_, _):
                pending += (subject, verb, object_)
            case s.ReifiedTriple(subject, verb, object_, reifier, _):
                pending += (subject, verb, object_, reifier)
            case s.Reifier(name, _):
                pending.append(name)
            case s.AnnotationBlock(properties, _):
                pending += properties
            case s.Annotated(inner, annotations, _):
                pending += (inner, *annotations)


def operands(node: s.Expression) -> tuple[s.Expression, ...]:
    """Return the expressions directly in an expression; patterns of EXISTS are none."""
    match node:
        case s.Binary(_, left, right, _):
            return left, right
        case s.Unary(_, operand, _):
            return (operand,)
        case s.BuiltInCall(_, members, _) | s.FunctionCall(_, members, _) | s.ExpressionList(members, _):
            return members
        case s.PreviousCall(argument, _):
            return (argument,)
        case s.AggregateCall(_, _, argument, _, _):
            return () if argument is None else (argument,)
        case _:
            return ()


def parts(expressions: Iterable[s.Expression]) -> Iterator[s.Expression]:
    """Yield the expressions with all that is in them, in the order of the text."""
    pending = list(expressions)[::-1]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(operands(node))


def needed(expression: s.Expression) -> Iterator[s.VariableName]:
    """Return the first place of each variable whose value is asked for, in and out of aggregates.

    Variables that BOUND or COALESCE look after are left out.
    """
    found: dict[str, s.VariableName] = {}
    looked_after: set[str] = set()
    for node in parts((expression,)):
        match node:
            case s.VariableName(name, _):
                found.setdefault(name, node)
            case s.BuiltInCall("BOUND" | "COALESCE", members, _):
                looked_after.update(member.name for member in members if isinstance(member, s.VariableName))
    return (place for name, place in found.items() if name not in looked_after)


def strip_spans(node: object) -> object:
    """Return a node without its places in the text, so that equal texts give equal values."""
    if isinstance(node, tuple):
        return tuple(map(strip_spans, node))
    if (names := list_fields(type(node))) is not None:
        return type(node).__name__, *(strip_spans(getattr(node, name)) for name in names if name != "span")
    return node


def name_nearest(name: str, known: Collection[str]) -> str:
    """Return the end of a message that names the variable which was probably meant; empty where no known name is near."""
    near = get_close_matches(name, [each for each in known if len(each) <= _LONGEST_NAME], 1, 0.7) if len(name) <= _LONGEST_NAME else []
    return f"; the nearest is ?{near[0]}" if near else ""
