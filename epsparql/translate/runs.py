"""This module translates runs and sessions, the windows that the data itself delimits (semantics.md section 13)."""

from typing import NoReturn

from epsparql import algebra as a
from epsparql.errors import SyntaxFault
from epsparql.parser import ast as s
from epsparql.terms import Variable
from epsparql.translate.aggregates import FUNCTIONS
from epsparql.translate.context import Context
from epsparql.translate.durations import micros_of
from epsparql.translate.expressions import NameScope, expression

_GROWING = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
"""These aggregates may stand in WHILE, since a run holds them without its elements."""


class Links:
    """This is the `NameScope` of WHILE: PREV and aggregates become hidden variables, equal ones the same."""

    def __init__(self, elements: NameScope) -> None:
        self._elements = elements
        self.previous_values: dict[a.Expression, Variable] = {}
        self.aggregates: dict[a.Aggregate, Variable] = {}

    @property
    def context(self) -> Context:
        return self._elements.context

    def translate_variable(self, name: s.VariableName) -> a.Expression:
        return self._elements.translate_variable(name)

    def bound(self, name: s.VariableName) -> a.Expression:
        return self._elements.bound(name)

    def translate_group(self, group: s.GroupGraphPattern) -> NoReturn:
        message = "EXISTS stands in WHILE, which compares an element with the run before it"
        self.context.fail(SyntaxFault, message, group.span, "UNTIL { ... } for what may not lie between two elements")

    def previous(self, call: s.PreviousCall) -> a.Var:
        value = expression(self._elements, call.argument)
        return a.Var(self.previous_values.setdefault(value, self.context.numbered("prev")))

    def aggregate(self, call: s.AggregateCall) -> a.Var:
        if call.name not in _GROWING or call.distinct:
            name = f"{call.name}(DISTINCT ...)" if call.distinct else call.name
            message = f"{name} stands in WHILE, and a run would have to keep all its elements for it"
            self.context.fail(SyntaxFault, message, call.span, "COUNT, SUM, AVG, MIN, MAX, FIRST or LAST, without DISTINCT")
        argument = None if call.argument is None else expression(self._elements, call.argument)
        return a.Var(self.aggregates.setdefault(a.Aggregate(FUNCTIONS[call.name], argument), self.context.numbered("run")))


def translate_run(elements: NameScope, run: s.RunClause) -> a.RunWindow:
    """Translate a RUN or a SESSION; `elements` is the scope of the solutions that it groups. Raises QueryError."""
    context, links = elements.context, Links(elements)
    condition = None if run.condition is None else expression(links, run.condition)
    found = a.RunWindow(
        condition,
        tuple((variable, value) for value, variable in links.previous_values.items()),
        tuple((variable, aggregate) for aggregate, variable in links.aggregates.items()),
        None if run.gap is None else micros_of(context, run.gap),
        None if run.until is None else elements.translate_group(run.until),
        None if run.within is None else micros_of(context, run.within, zero=True),
        a.RunReport.CLOSED if run.closed else a.RunReport.EACH,
    )
    context.places.note(found, run.span)
    return found
