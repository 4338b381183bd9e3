"""This module translates runs and sessions, the windows that the data itself delimits (semantics.md section 13)."""

from epsparql import algebra as a
from epsparql.parser import ast as s
from epsparql.translate.aggregates import Links
from epsparql.translate.durations import micros_of
from epsparql.translate.expressions import NameScope, expression


def translate_run(solutions: NameScope, run: s.RunClause) -> a.RunWindow:
    """Translate a RUN or a SESSION; `solutions` is the scope of what it groups. Raises QueryError."""
    context, links = solutions.context, Links(solutions)
    condition = None if run.condition is None else expression(links, run.condition)
    found = a.RunWindow(
        condition,
        tuple((variable, value) for value, variable in links.previous_values.items()),
        tuple((variable, aggregate) for aggregate, variable in links.aggregates.items()),
        None if run.gap is None else micros_of(context, run.gap),
        None if run.until is None else solutions.translate_group(run.until),
        None if run.within is None else micros_of(context, run.within, zero=True),
        a.RunReport.CLOSED if run.closed else a.RunReport.EACH,
    )
    context.places.note(found, run.span)
    return found
