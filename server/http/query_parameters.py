"""Refuses query parameters that a route does not declare, so that a typing error does not pass for success."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from fastapi.dependencies.models import Dependant
from starlette.requests import HTTPConnection

from server.http.problem_details import bad_request

_COMPARED = 200  # characters of a name
OPEN = frozenset({"/queries/{name}/goals"})
"""Variables of a query are parameters of these routes."""


def check_parameters(connection: HTTPConnection) -> None:
    """Check the query parameters of a connection.

    A route of OPEN checks them itself. Raises: Fault 400 that names the nearest one which its route declares.
    """
    if not connection.scope["query_string"] or connection.scope["route"].path in OPEN:
        return
    check_names(connection.query_params, list(dict.fromkeys(_declared(connection.scope["route"].dependant))), "query parameter")


def check_names(names: Iterable[str], known: Sequence[str], kind: str) -> None:
    """Check that all `names` are known. Raises: Fault 400 for the first that is not."""
    for name in names:
        if name not in known:
            near = get_close_matches(name[:_COMPARED], known, n=1, cutoff=0.0)
            remedy = f"the nearest one is {near[0]!r}" if near else "none is known here"
            detail = f"there is no {kind} {name[:_COMPARED]!r}; {remedy}"
            raise bad_request("unknown-parameter", detail, expected=", ".join(known))


async def refuse_unknown(connection: HTTPConnection) -> None:
    """Check every request by HTTP. A WebSocket must be open before it can be told why it closes."""
    if connection.scope["type"] == "http":
        check_parameters(connection)


def _declared(dependant: Dependant) -> Iterator[str]:
    """Yield the names of a route's query parameters, and of those that its dependencies declare."""
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _declared(each)
