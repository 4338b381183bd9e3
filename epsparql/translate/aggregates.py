"""This module translates the aggregates of one SELECT and of WHILE, and rules what may stand beside them (SPARQL 1.1,
18.2.4.1 and 19.8, note 12).
"""

from collections.abc import Container, Iterator
from typing import NoReturn

from epsparql import algebra as a
from epsparql.errors import ScopeFault, SyntaxFault
from epsparql.literals import MAX_TREE_DEPTH
from epsparql.parser import ast as s
from epsparql.terms import XSD, Literal, Variable
from epsparql.translate.context import Context
from epsparql.translate.expressions import NameScope, expression
from epsparql.trees import tree_depth

_NONE = a.Constant(Literal("0", XSD + "integer"))
_FUNCTIONS = {function.value: function for function in a.AggregateFunction}


class Aggregates:
    """This is the `NameScope` of expressions in SELECT, HAVING and ORDER BY: each aggregate becomes a hidden
    variable, equal ones the same.
    """

    def __init__(self, outside: NameScope) -> None:
        self._outside = outside
        self._found: dict[a.Aggregate, Variable] = {}

    @property
    def context(self) -> Context:
        return self._outside.context

    @property
    def found(self) -> tuple[tuple[Variable, a.Aggregate], ...]:
        return tuple((variable, aggregate) for aggregate, variable in self._found.items())

    def translate_group(self, group: s.GroupGraphPattern) -> a.Pattern:
        return self._outside.translate_group(group)

    def translate_variable(self, name: s.VariableName) -> a.Expression:
        return self._outside.translate_variable(name)

    def bound(self, name: s.VariableName) -> a.Expression:
        return self._outside.bound(name)

    def previous(self, call: s.PreviousCall) -> a.Expression:
        return self._outside.previous(call)

    def aggregate(self, call: s.AggregateCall) -> a.Var:
        argument = None if call.argument is None else expression(self._outside, call.argument)
        if tree_depth(argument) > MAX_TREE_DEPTH:
            self.context.fail_depth(call.span)  # before it is hashed
        return self.place_aggregate(a.Aggregate(_FUNCTIONS[call.name], argument, call.distinct, " " if call.separator is None else call.separator))

    def place_aggregate(self, aggregate: a.Aggregate) -> a.Var:
        if aggregate not in self._found:
            self._found[aggregate] = self.context.numbered("agg")
        return a.Var(self._found[aggregate])


class Sampling:
    """This is the `NameScope` of HAVING and ORDER BY over groups.

    A variable outside of aggregates that is none of `known` is the SAMPLE of it (18.2.4.1).

    `inside` are the variables of what is grouped, `later` those that get their value in SELECT, after HAVING.
    """

    def __init__(self, aggregates: Aggregates, known: Container[Variable], inside: Container[Variable], later: Container[Variable] = ()) -> None:
        self._aggregates = aggregates
        self._known, self._inside, self._later = known, inside, later
        self.translate_group = aggregates.translate_group
        self.previous = aggregates.previous
        self.aggregate = aggregates.aggregate

    @property
    def context(self) -> Context:
        return self._aggregates.context

    def translate_variable(self, name: s.VariableName) -> a.Expression:
        if Variable(name.name) in self._known:
            return self._aggregates.translate_variable(name)
        self._warn(name)
        return self._aggregates.place_aggregate(a.Aggregate(a.AggregateFunction.SAMPLE, a.Var(Variable(name.name))))

    def bound(self, name: s.VariableName) -> a.Expression:
        """Translate BOUND: SAMPLE has a value exactly where COUNT counts one."""
        if Variable(name.name) in self._known:
            return self._aggregates.bound(name)
        self._warn(name)
        count = self._aggregates.place_aggregate(a.Aggregate(a.AggregateFunction.COUNT, a.Var(Variable(name.name))))
        return a.Compare(a.Comparison.GREATER, count, _NONE)

    def _warn(self, name: s.VariableName) -> None:
        variable = Variable(name.name)
        if variable in self._inside:
            message = (
                f"{variable} is no key of GROUP BY, so any one of its values in the group stands for it: write SAMPLE({variable}), or make it a key"
            )
            self.context.warn("sampled", message, name.span)
        elif variable in self._later:
            message = f"{variable} gets its value in SELECT, which comes after HAVING, so here it has none: write the expression itself"
            self.context.warn("out-of-scope", message, name.span)


_GROWING = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
"""These aggregates may stand in WHILE, since a run holds them without its elements."""


class Elements:
    """This is the `NameScope` of what PREV and aggregates in WHILE are of: one element of a run."""

    def __init__(self, solutions: NameScope) -> None:
        self.context = solutions.context
        self.translate_variable, self.bound = solutions.translate_variable, solutions.bound
        self.aggregate, self.previous = solutions.aggregate, solutions.previous

    def translate_group(self, group: s.GroupGraphPattern) -> NoReturn:
        message = "EXISTS stands in WHILE, which compares an element with the run before it"
        self.context.fail(SyntaxFault, message, group.span, "UNTIL { ... } for what may not lie between two elements")


class Links:
    """This is the `NameScope` of WHILE: PREV and aggregates become hidden variables, equal ones the same."""

    def __init__(self, solutions: NameScope) -> None:
        self._elements = elements = Elements(solutions)
        self.context: Context = elements.context
        self.translate_variable, self.bound, self.translate_group = elements.translate_variable, elements.bound, elements.translate_group
        self.previous_values: dict[a.Expression, Variable] = {}
        self.aggregates: dict[a.Aggregate, Variable] = {}

    def previous(self, call: s.PreviousCall) -> a.Var:
        value = expression(self._elements, call.argument)
        return a.Var(self.previous_values.setdefault(value, self.context.numbered("prev")))

    def aggregate(self, call: s.AggregateCall) -> a.Var:
        if call.name not in _GROWING or call.distinct:
            name = f"{call.name}(DISTINCT ...)" if call.distinct else call.name
            message = f"{name} stands in WHILE, and a run would have to keep all its elements for it"
            self.context.fail(SyntaxFault, message, call.span, "COUNT, SUM, AVG, MIN, MAX, FIRST or LAST, without DISTINCT")
        argument = None if call.argument is None else expression(self._elements, call.argument)
        return a.Var(self.aggregates.setdefault(a.Aggregate(_FUNCTIONS[call.name], argument), self.context.numbered("run")))


def check_grouped(context: Context, node: s.Expression, known: Container[Variable]) -> None:
    """Raise ScopeFault at a variable outside of aggregates that is none of `known`."""
    for name in _outside_of_aggregates(node):
        variable = Variable(name.name)
        if variable not in known:
            message = f"{variable} has no single value in a group: it is no key of GROUP BY"
            context.fail(ScopeFault, message, name.span, f"a key, or an aggregate such as SAMPLE({variable})")


def _outside_of_aggregates(root: s.Expression) -> Iterator[s.VariableName]:
    """Yield the variables of an expression but for those in aggregates and in patterns, in the order of the text."""
    pending: list[s.Expression] = [root]
    while pending:
        node = pending.pop()
        match node:
            case s.VariableName():
                yield node
            case s.Unary(_, operand, _):
                pending.append(operand)
            case s.Binary(_, left, right, _):
                pending += right, left
            case s.ExpressionList(members, _) | s.BuiltInCall(_, members, _) | s.FunctionCall(_, members, _):
                pending += reversed(members)
