"""An expression that says the same whatever the solution is becomes a constant; a condition that always holds goes."""

from typing import Any, cast, get_args

from engine.expressions.evaluator import evaluate, supported, truth
from engine.expressions.literals import FALSE, TRUE
from engine.expressions.values import ExpressionError
from engine.pattern_scope import list_conjuncts
from engine.rewrite.transform import rebuild
from epsparql import algebra as a
from epsparql.trees import list_fields

OPERATIONS = (a.Compare, a.Arithmetic, a.Negate, a.Not, a.And, a.Or, a.In, a.If, a.Coalesce, a.Call)
_NODES = frozenset({*OPERATIONS, a.Aggregate, a.OrderKey, a.Modifiers, a.Once, a.Exists, *get_args(a.Pattern), *get_args(a.Query)})


def fold_constants(query: a.Query) -> a.Query:
    """Return the query with the constant parts of its expressions evaluated; a part that is an error stays as it is."""
    return cast(a.Query, _folded(query))


def _folded(node: Any) -> Any:
    match node:
        case a.Filter():
            return _filter(rebuild(node, _folded))
        case _ if type(node) in OPERATIONS:
            return _fold_parts(rebuild(node, _folded))
        case _ if type(node) in _NODES:
            return rebuild(node, _folded)
        case _:
            return node


def _filter(node: a.Filter) -> a.Pattern:
    rest = [part for part in list_conjuncts(node.condition) if not (isinstance(part, a.Constant) and evaluate_condition(part))]
    if not rest:
        return node.pattern
    whole = rest[0]
    for part in rest[1:]:
        whole = a.And(whole, part)
    return a.Filter(whole, node.pattern)


def _fold_parts(e: a.Expression) -> a.Expression:
    """Fold an expression whose parts are folded.

    `false && x` is false and `true || x` true, though x be an error.
    """
    match e:
        case a.And(a.Constant() as known, _) | a.And(_, a.Constant() as known) if evaluate_condition(known) is False:
            return a.Constant(FALSE)
        case a.Or(a.Constant() as known, _) | a.Or(_, a.Constant() as known) if evaluate_condition(known):
            return a.Constant(TRUE)
        case a.If(a.Constant() as known, then, otherwise) if (found := evaluate_condition(known)) is not None:
            return then if found else otherwise
    if not all(isinstance(part, a.Constant) for part in _operands(e)) or (isinstance(e, a.Call) and not _is_function(e)):
        return e
    try:
        return a.Constant(evaluate(e, lambda _: None, None, None))
    except ExpressionError:
        return e


def _operands(e: a.Expression) -> list[Any]:
    below = [getattr(e, name) for name in list_fields(type(e)) or ()]
    parts = [part for each in below for part in (each if isinstance(each, tuple) else [each])]
    return [part for part in parts if isinstance(part, a.Expression)]


def _is_function(call: a.Call) -> bool:
    """Return whether a function says the same each time, and is SPARQL's own.

    Without an argument a function looks at the solution or its place.
    """
    return bool(call.arguments) and not call.function.startswith("<") and call.function != "BNODE" and supported(call.function)


def evaluate_condition(constant: a.Constant) -> bool | None:
    """Return whether a constant holds as a condition; None if it is none."""
    return truth(constant, lambda _: None, None, None)
