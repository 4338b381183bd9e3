"""This module makes the nodes of the syntax tree: a function for each production of the grammar, of what its parts
have built. `build_from` and `build_list` make the functions of those productions that only choose parts.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from epsparql.errors import Span, SyntaxFault
from epsparql.parser import ast, ast_queries
from epsparql.parser.elements import QueryText, Sign

NodeT = TypeVar("NodeT")
_OPERATORS = {operator.symbol: operator for operator in ast.BinaryOperator}
_COMPARING = ast.BinaryOperator.EQUAL.strength


def keep_nodes(found: Iterable[Any]) -> list[Any]:
    """Return what was found without the keywords and signs."""
    return [part for part in found if type(part) is not Sign]


def extent(found: Sequence[Any]) -> Span:
    """Return the stretch from the first node or mark to the last one."""
    return Span(found[0].span.start, found[-1].span.end)


def build_from(kind: Callable[..., NodeT], *places: int) -> Callable[[QueryText, list[Any]], NodeT]:
    """Return what builds a node of the parts at these places, and of its extent."""

    def build(source: QueryText, found: list[Any]) -> NodeT:
        return kind(*(found[place] for place in places), extent(found))

    return build


def build_list(kind: Callable[..., NodeT]) -> Callable[[QueryText, list[Any]], NodeT]:
    """Return what builds a node of all parts but keywords and signs, and of its extent."""

    def build(source: QueryText, found: list[Any]) -> NodeT:
        return kind(tuple(keep_nodes(found)), extent(found))

    return build


# ---------------------------------------------------------------- terms and expressions
def build_literal(source: QueryText, found: list[Any]) -> ast.StringLiteral:
    """Build a literal: [129] RDFLiteral."""
    string: ast.StringLiteral = found[0]
    if len(found) == 1:
        return string
    if isinstance(found[1], Sign):
        if len(found) == 3:
            return ast.StringLiteral(string.lexical, None, found[2], extent(found))
        return ast.StringLiteral(string.lexical, found[1].value.lower()[1:], None, extent(found))
    raise AssertionError(found)


def fold_operators(source: QueryText, found: list[Any]) -> ast.Expression:
    """Fold operands and operators, which come in turn, by strength: [111]-[117], where all but comparisons associate
    to the left.
    """
    operands: list[ast.Expression] = [found[0]]
    operators: list[Sign] = []
    for mark, operand in zip(found[1::2], found[2::2], strict=True):
        strength = _OPERATORS[mark.value].strength
        while operators and _OPERATORS[operators[-1].value].strength >= strength:
            _refuse_comparison_chain(source, operators[-1], mark)
            _reduce(operands, operators)
        operators.append(mark)
        operands.append(operand)
    while operators:
        _reduce(operands, operators)
    return operands[0]


def _reduce(operands: list[ast.Expression], operators: list[Sign]) -> None:
    right, left = operands.pop(), operands.pop()
    operands.append(ast.Binary(_OPERATORS[operators.pop().value], left, right, extent((left, right))))


def _refuse_comparison_chain(source: QueryText, left: Sign, right: Sign) -> None:
    if _OPERATORS[left.value].strength == _OPERATORS[right.value].strength == _COMPARING:
        message = f"{left.value!r} and {right.value!r} cannot follow each other: a comparison gives true or false"
        raise SyntaxFault(message, right.span, source.text, "'&&', '||', or brackets around one comparison")


def build_signed(source: QueryText, found: list[Any]) -> ast.Expression:
    """Build an expression with any number of '!' and at most one sign after them: [118] UnaryExpression."""
    for sign_, after in itertools.pairwise(found[:-1]):
        if sign_.value != "!":
            message = f"{after.value!r} follows {sign_.value!r}: an expression has one sign"
            raise SyntaxFault(message, after.span, source.text, "brackets around the expression with its own sign")
    built: ast.Expression = found[-1]
    for mark in reversed(found[:-1]):
        built = ast.Unary(ast.UnaryOperator(mark.value), built, extent((mark, built)))
    return built


def build_exists(source: QueryText, found: list[Any]) -> ast.ExistsCall:
    """Build an EXISTS or NOT EXISTS: [125] ExistsFunc, [126] NotExistsFunc."""
    return ast.ExistsCall(found[0].value == "NOT", found[-1], extent(found))


def build_built_in(source: QueryText, found: list[Any]) -> ast.BuiltInCall:
    """Build a call of a built-in function: [121] BuiltInCall."""
    return ast.BuiltInCall(found[0].value, found[1].members, extent(found))


def build_bound(source: QueryText, found: list[Any]) -> ast.BuiltInCall:
    """Build a call of BOUND, which takes a variable, not an expression: [121]."""
    return ast.BuiltInCall("BOUND", (found[2],), extent(found))


def build_iri_or_function(source: QueryText, found: list[Any]) -> ast.Expression:
    """Build an IRI or a call of the function with this IRI: [128] iriOrFunction, [70] FunctionCall."""
    return found[0] if len(found) == 1 else ast.FunctionCall(found[0], found[1].members, extent(found))


def build_aggregate(source: QueryText, found: list[Any]) -> ast.AggregateCall:
    """Build a call of a set function: [127] Aggregate."""
    distinct = isinstance(found[2], Sign) and found[2].value == "DISTINCT"
    argument = found[3] if distinct else found[2]
    separator = found[-2].lexical if isinstance(found[-3], Sign) and found[-3].value == "=" else None
    return ast.AggregateCall(found[0].value, distinct, None if isinstance(argument, Sign) else argument, separator, extent(found))


def build_triple_value(source: QueryText, found: list[Any]) -> ast.BuiltInCall:
    """Build the triple term of an expression, which is a call of TRIPLE: ExprTripleTerm."""
    return ast.BuiltInCall("TRIPLE", tuple(keep_nodes(found)), extent(found))


# ---------------------------------------------------------------- triples
def build_property(source: QueryText, found: list[Any]) -> ast.Property:
    objects = keep_nodes(found[1:])
    if not isinstance(found[0], ast.VariableName | ast.IriName | ast.TypeVerb):
        for one in objects:
            if isinstance(one, ast.Annotated):
                message = "an annotation stands after a property path, which is no predicate of a triple"
                raise SyntaxFault(message, one.span, source.text, "an IRI or a variable as the predicate")
    return ast.Property(found[0], tuple(objects))


def build_reifier(source: QueryText, found: list[Any]) -> ast.Reifier:
    return ast.Reifier(found[1] if len(found) > 1 else ast.Anonymous(found[0].span), extent(found))


def build_annotated(source: QueryText, found: list[Any]) -> ast.Node | ast.Annotated:
    return found[0] if len(found) == 1 else ast.Annotated(found[0], tuple(found[1:]), extent(found))


def build_triple_node(source: QueryText, found: list[Any]) -> ast.TripleNode:
    """Build a triple term: TripleTerm, TripleTermData."""
    subject, verb, object_ = keep_nodes(found)
    return ast.TripleNode(subject, verb, object_, extent(found))


def build_reified(source: QueryText, found: list[Any]) -> ast.ReifiedTriple:
    subject, verb, object_, *reifier = keep_nodes(found)
    return ast.ReifiedTriple(subject, verb, object_, reifier[0] if reifier else None, extent(found))


def build_triples(source: QueryText, found: list[Any]) -> ast.TriplesSameSubject:
    span = Span(found[0].span.start, _last_end(found))
    return ast.TriplesSameSubject(found[0], tuple(keep_nodes(found[1:])), span)


def _last_end(found: list[Any]) -> int:
    last = found[-1]
    end: int = last.objects[-1].span.end if isinstance(last, ast.Property) else last.span.end
    return end


def build_path_alternative(source: QueryText, found: list[Any]) -> ast.Path:
    """Build an alternative of paths: [89] PathAlternative."""
    return found[0] if len(found) == 1 else ast.AlternativePath(tuple(keep_nodes(found)), extent(found))


def build_path_sequence(source: QueryText, found: list[Any]) -> ast.Path:
    """Build a sequence of paths: [90] PathSequence."""
    return found[0] if len(found) == 1 else ast.SequencePath(tuple(keep_nodes(found)), extent(found))


def build_inverse_path(source: QueryText, found: list[Any]) -> ast.Path:
    """Build an inverse path: [92] PathEltOrInverse, [96] PathOneInPropertySet."""
    return found[0] if len(found) == 1 else ast.InversePath(found[1], extent(found))


def build_repeated_path(source: QueryText, found: list[Any]) -> ast.Path:
    """Build a path with its modifier: [91] PathElt."""
    return found[0] if len(found) == 1 else ast.RepeatedPath(found[0], found[1].value, extent(found))


# ---------------------------------------------------------------- patterns
def build_duration(source: QueryText, found: list[Any]) -> ast.DurationText:
    first = found[0]
    match first:
        case ast.NumericLiteral(text, span):
            return ast.DurationText(text, True, None, span)
        case ast.StringLiteral(lexical, None, None, _):
            return ast.DurationText(lexical, False, found[2] if len(found) > 1 else None, extent(found))
        case Sign():
            return ast.DurationText(first.value, False, None, first.span)
    raise AssertionError(found)


def build_combine(source: QueryText, found: list[Any]) -> ast.Combine:
    name = found[0].value
    return ast.Combine(ast.ChainOperator("EQUALSOPTIONAL" if name == "EQUALOPTIONAL" else name), found[1], found[0].span)


def build_without(source: QueryText, found: list[Any]) -> ast.WithoutStep:
    return ast.WithoutStep(found[1], found[3] if len(found) > 2 else None, found[0].span)


def build_chain(source: QueryText, found: list[Any]) -> ast.Chain:
    return ast.Chain(found[0], tuple(found[1:]), extent(found))


def build_where(source: QueryText, found: list[Any]) -> ast.GroupGraphPattern:
    """Build the group after WHERE.

    The paper leaves out the braces around a chain there, with what follows it; its query (5) does so in a sub-SELECT
    too.
    """
    elements = keep_nodes(found)
    if len(elements) == 1 and not elements[0].steps:
        only: ast.GroupGraphPattern = elements[0].first
        return only
    return ast.GroupGraphPattern(tuple(elements), extent(elements))


def build_service(source: QueryText, found: list[Any]) -> ast.ServiceElement:
    return ast.ServiceElement(isinstance(found[1], Sign), found[-2], found[-1], extent(found))


def build_values_row(source: QueryText, found: list[Any]) -> ast.ValuesRow:
    return ast.ValuesRow(_data(found), extent(found))


def _data(found: list[Any]) -> tuple[ast.DataTerm | None, ...]:
    return tuple(None if type(part) is Sign else part for part in found[1:-1])


def build_values_of_one(source: QueryText, found: list[Any]) -> ast.ValuesElement:
    """Build a VALUES of one variable: [63] InlineDataOneVar."""
    rows = (ast.ValuesRow((None if type(part) is Sign else part,), part.span) for part in found[2:-1])
    return ast.ValuesElement((found[0],), tuple(rows), extent(found))


def build_values_of_many(source: QueryText, found: list[Any]) -> ast.ValuesElement:
    """Build a VALUES of several variables: [64] InlineDataFull."""
    variables = tuple(part for part in found if isinstance(part, ast.VariableName))
    return ast.ValuesElement(variables, tuple(part for part in found if isinstance(part, ast.ValuesRow)), extent(found))


def build_values(source: QueryText, found: list[Any]) -> ast.ValuesElement:
    return ast.ValuesElement(found[1].variables, found[1].rows, extent(found))


def build_sub_select(source: QueryText, found: list[Any]) -> ast.SubSelectElement:
    """Build a sub-SELECT: [8] SubSelect."""
    return ast.SubSelectElement(_selected(found), found[0].span)


# ---------------------------------------------------------------- queries
def build_prefix(source: QueryText, found: list[Any]) -> ast_queries.PrefixDeclaration:
    return ast_queries.PrefixDeclaration(found[1].prefix, found[2], extent(found))


def build_stream_name(source: QueryText, found: list[Any]) -> ast_queries.StreamName:
    (name,) = found
    return ast_queries.StreamName(None if isinstance(name, Sign) else name, name.span)


class Clause:
    """Holds a clause by its keyword, with its parts; it only serves to build nodes."""

    __slots__ = ("name", "parts", "span")

    def __init__(self, name: str, parts: tuple[Any, ...], span: Span) -> None:
        self.name = name
        self.parts = parts
        self.span = span


def build_clause(source: QueryText, found: list[Any]) -> Clause:
    return Clause(found[0].value, tuple(keep_nodes(found)), extent(found))


def build_from_graph(source: QueryText, found: list[Any]) -> ast_queries.FromGraph:
    return ast_queries.FromGraph(found[-1], len(found) == 3, extent(found))


def build_from_window(source: QueryText, found: list[Any]) -> ast_queries.FromWindow:
    name, stream, length, width = keep_nodes(found)
    return ast_queries.FromWindow(name, stream, length, width, extent(found))


def build_registration(source: QueryText, found: list[Any]) -> ast_queries.RegisterClause:
    return ast_queries.RegisterClause(found[1].value, found[2], extent(found))


def build_select_item(source: QueryText, found: list[Any]) -> ast.SelectItem:
    if len(found) == 1:
        return ast.SelectItem(None, found[0], found[0].span)
    return ast.SelectItem(found[1], found[3], extent(found))


def build_group_key(source: QueryText, found: list[Any]) -> ast.GroupKey:
    """Build a key of GROUP BY: [20] GroupCondition."""
    expression, *variable = keep_nodes(found)
    return ast.GroupKey(expression, variable[0] if variable else None, extent(found))


def build_window_clause(source: QueryText, found: list[Any]) -> Clause:
    return Clause("WINDOW", (_build_window(source, found),), extent(found))


def _build_window(source: QueryText, found: list[Any]) -> ast.WindowClause | ast.RunClause:
    if found[2].value in ("SESSION", "RUN"):
        return _build_run(source, found)
    if found[2].value == "ROWS":
        return ast.WindowClause(None, None, found[3], extent(found))
    length, *width = keep_nodes(found)
    return ast.WindowClause(length, width[0] if width else None, None, extent(found))


def _build_run(source: QueryText, found: list[Any]) -> ast.RunClause:
    parts: dict[str, Any] = {}
    for part in found[3:]:
        if isinstance(part, Clause):
            if part.name in parts:
                message = f"{part.name} stands twice in one RUN"
                raise SyntaxFault(message, part.span, source.text, "each of WHILE, GAP, UNTIL and WITHIN at most once")
            parts[part.name] = part.parts[0]
        elif isinstance(part, ast.DurationText):
            parts["GAP"] = part
    closed = isinstance(found[-2], Sign) and found[-2].value == "CLOSED"
    return ast.RunClause(parts.get("WHILE"), parts.get("GAP"), parts.get("UNTIL"), parts.get("WITHIN"), closed, extent(found))


def build_once_clause(source: QueryText, found: list[Any]) -> Clause:
    *keys, bound = keep_nodes(found)
    duration, until = (bound, None) if isinstance(bound, ast.DurationText) else (None, bound)
    return Clause("ONCE", (ast.OnceClause(tuple(keys), duration, until, extent(found)),), extent(found))


def build_order_condition(source: QueryText, found: list[Any]) -> ast.OrderCondition:
    """Build a comparator of ORDER BY: [24] OrderCondition."""
    return ast.OrderCondition(found[-1], isinstance(found[0], Sign) and found[0].value == "DESC", extent(found))


def build_modifier(source: QueryText, found: list[Any]) -> ast.SolutionModifier:
    """Build the solution modifiers: [18] SolutionModifier."""
    parts = {clause.name: clause.parts for clause in found}
    one = {name: parts[name][0] if name in parts else None for name in ("WINDOW", "ONCE", "LIMIT", "OFFSET")}
    span = extent(found) if found else None
    return ast.SolutionModifier(
        parts.get("GROUP", ()), parts.get("HAVING", ()), one["WINDOW"], one["ONCE"], parts.get("ORDER", ()), one["LIMIT"], one["OFFSET"], span
    )


def build_body(source: QueryText, found: list[Any]) -> ast.Body:
    where, modifier, *trailing = keep_nodes(found)
    return ast.Body(where, modifier, trailing[0] if trailing else None)


def build_parameters(source: QueryText, found: list[Any]) -> ast_queries.Parameters:
    return ast_queries.Parameters(tuple(keep_nodes(found)), extent(found))


def _sources(found: list[Any]) -> tuple[ast_queries.Source, ...]:
    return tuple(part for part in found if isinstance(part, ast_queries.Source))


def _selected(found: list[Any]) -> ast.SelectForm:
    distinct = any(isinstance(part, Sign) and part.value == "DISTINCT" for part in found)
    return ast.SelectForm(distinct, tuple(part for part in found if isinstance(part, ast.SelectItem)), found[-1], found[0].span)


def build_select(source: QueryText, found: list[Any]) -> ast_queries.SelectQuery:
    return ast_queries.SelectQuery(_selected(found), _sources(found))


def build_construct(source: QueryText, found: list[Any]) -> ast_queries.ConstructQuery:
    body: ast.Body = found[-1]
    template = next((part for part in found if isinstance(part, ast.GroupGraphPattern)), body.where)
    triples = tuple(part for part in template.elements if isinstance(part, ast.TriplesSameSubject))
    into = next((part for part in found if isinstance(part, ast_queries.StreamName | ast_queries.GraphName)), None)
    return ast_queries.ConstructQuery(triples, into, _sources(found), body, found[0].span)


def build_ask(source: QueryText, found: list[Any]) -> ast_queries.AskQuery:
    return ast_queries.AskQuery(_sources(found), found[-1])


def build_describe(source: QueryText, found: list[Any]) -> ast_queries.DescribeQuery:
    targets = tuple(part for part in found if isinstance(part, ast.IriName | ast.VariableName))
    return ast_queries.DescribeQuery(targets, _sources(found), found[-1])


def build_document(source: QueryText, found: list[Any]) -> ast_queries.Document:
    declarations = tuple(part for part in found if isinstance(part, ast_queries.Declaration))
    registration = next((part for part in found if isinstance(part, ast_queries.RegisterClause)), None)
    return ast_queries.Document(declarations, registration, found[-2])
