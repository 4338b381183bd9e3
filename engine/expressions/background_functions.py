"""This module has the functions that look into the background: ep:route and ep:routeLength (semantics.md section 15)."""

from collections.abc import Callable, Sequence

from engine.expressions.extensions import NAMESPACE, OWN
from engine.expressions.values import MAX_TEXT, ExpressionError
from epsparql.deferred_methods import dataclass
from epsparql.terms import Literal, Term

ROUTE, ROUTE_LENGTH = f"<{NAMESPACE}route>", f"<{NAMESPACE}routeLength>"
BACKGROUND_FUNCTIONS = frozenset({ROUTE, ROUTE_LENGTH})
"""Their value depends on the background at the end of the solution."""


@dataclass(frozen=True, slots=True)
class ShortestRoute:
    """Represents a shortest route: its nodes as N-Triples texts, and its number of steps or the sum of its weights."""

    nodes: tuple[str, ...]
    length: Term


RouteSearch = Callable[[Sequence[Term]], ShortestRoute | None]
"""It returns the route for the arguments of a function, None if there is none. Raises: ExpressionError."""


def call_background_function(function: str, arguments: Sequence[Term], search: RouteSearch | None) -> Term:
    """Return the value of one of BACKGROUND_FUNCTIONS.

    Raises: ExpressionError, also if there is no route or no background to search.
    """
    least, most = OWN[function[1:-1]].least, OWN[function[1:-1]].most
    if search is None or not least <= len(arguments) <= most:
        raise ExpressionError
    route = search(arguments)
    if route is None:
        raise ExpressionError
    if function != ROUTE:
        return route.length
    if sum(map(len, route.nodes)) + len(route.nodes) > MAX_TEXT:
        raise ExpressionError
    return Literal(" ".join(route.nodes))
