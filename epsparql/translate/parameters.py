"""This module checks a query with PARAMETERS, whose instances give its parameters a term each (semantics.md section 16)."""

from typing import NoReturn

from epsparql import algebra as a
from epsparql.errors import ScopeFault, Span, Unsupported
from epsparql.parser import ast_queries as f
from epsparql.terms import Variable
from epsparql.translate.context import Context
from epsparql.trees import replace_fields, walk_nodes

MOST_PARAMETERS = 16
"""A query has at most this many parameters."""
INSTANCE = "instance"
"""Each solution shows the id of its instance under this name."""
_IDENTIFYING = frozenset({"RAND", "UUID", "STRUUID", "BNODE"})
_REFUSED: dict[type, tuple[str, str]] = {
    a.LeftJoin: ("OPTIONAL", "the same pattern in a query that reads this one's solutions"),
    a.EqLeftJoin: ("EQUALSOPTIONAL", "EQUALS"),
    a.SeqRightJoin: ("OPTIONALSEQ", "SEQ"),
    a.Minus: ("MINUS", "a rule that writes what is left into a stream, and PARAMETERS over that stream"),
    a.SeqWithout: ("WITHOUT", "a rule with the WITHOUT that writes into a stream, and PARAMETERS over that stream"),
    a.JoinWithout: ("WITHOUT", "a rule with the WITHOUT that writes into a stream, and PARAMETERS over that stream"),
    a.WithoutFor: ("WITHOUT ... FOR", "a rule with the WITHOUT that writes into a stream, and PARAMETERS over that stream"),
    a.Group: ("GROUP BY or an aggregate", "a rule that writes the aggregate into a stream, and PARAMETERS over that stream"),
    a.SubSelect: ("a sub-SELECT", "a rule with the sub-SELECT that writes into a stream, and PARAMETERS over that stream"),
    a.Path: ("a property path", "triple patterns, or a rule with the path that writes into a stream"),
    a.Graph: ("GRAPH", "triple patterns outside of GRAPH"),
    a.InWindow: ("a named window", "FROM STREAM"),
    a.Exists: ("EXISTS", "a rule with the EXISTS that writes into a stream, and PARAMETERS over that stream"),
}
"""These nodes may not stand in a query with PARAMETERS; each has its name and the remedy."""


def list_parameters(sources: tuple[f.Source, ...]) -> f.Parameters | None:
    """Return the clause PARAMETERS of a query, if it has one."""
    return next((source for source in sources if isinstance(source, f.Parameters)), None)


def add_parameters(context: Context, query: a.Query, clause: f.Parameters) -> a.Select:
    """Return the query with its parameters. Raises Unsupported, ScopeFault."""
    if not isinstance(query, a.Select):
        _refuse(context, "PARAMETERS stands in a SELECT alone", clause.span, "SELECT, whose solutions name their instance")
    parameters = tuple(Variable(name.name) for name in clause.names)
    for k, name in enumerate(clause.names):
        if parameters[k] in parameters[:k]:
            context.fail(ScopeFault, f"{parameters[k]} stands twice in PARAMETERS", name.span, "each variable once")
    if len(parameters) > MOST_PARAMETERS:
        _refuse(context, f"a query has at most {MOST_PARAMETERS} parameters", clause.span, "fewer parameters")
    found = replace_fields(query, parameters=parameters)
    context.places.note(found, clause.span)
    if Variable(INSTANCE) in found.projection:
        context.fail(ScopeFault, "each solution of a query with PARAMETERS has its ?instance already", clause.span, "another name for ?instance")
    _refuse_modifiers(context, found, clause.span)
    for node in walk_nodes(found.pattern):
        _check_node(context, node, frozenset(parameters), clause.span)
    return found


def _refuse_modifiers(context: Context, query: a.Select, span: Span) -> None:
    """Refuse what looks at the solutions of all instances together."""
    modifiers = query.modifiers
    if modifiers.limit is not None or modifiers.offset:
        _refuse(context, "LIMIT and OFFSET would end all instances", span, "the query without them; DELETE ends an instance")
    if modifiers.order:
        _refuse(context, "ORDER BY is not evaluated with PARAMETERS", span, "the query without ORDER BY")
    if modifiers.once is not None and modifiers.once.until is not None:
        _refuse(context, "ONCE PER ... UNTIL is not evaluated with PARAMETERS", span, "ONCE PER ... WITHIN a duration")


def _check_node(context: Context, node: object, parameters: frozenset[Variable], clause: Span) -> None:
    span = context.places.find_span(node) or clause
    if (refused := _REFUSED.get(type(node))) is not None:
        _refuse(context, f"{refused[0]} is not evaluated with PARAMETERS", span, refused[1])
    match node:
        case a.Call(function, _) if function in _IDENTIFYING:
            _refuse(context, f"{function} is not evaluated with PARAMETERS", span, "a function of the solution's values")
        case a.Extend(_, variable, _) if variable in parameters:
            context.fail(ScopeFault, f"{variable} is a parameter, to which each instance gives a term", span, "another variable for this value")
        case a.Values(variables, _) if not parameters.isdisjoint(variables):
            message = "VALUES gives terms to a parameter, which each instance has"
            context.fail(ScopeFault, message, span, "another variable, which a FILTER compares with the parameter")


def _refuse(context: Context, message: str, span: Span, expected: str) -> NoReturn:
    context.fail(Unsupported, message, span, expected)
