"""Lists, creates and deletes connectors, which move events and solutions between this server and other systems."""

import asyncio
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from connectors.configuration import Connector, check_library, parse_connector
from connectors.errors import MissingLibrary, WrongOption
from connectors.status import Status
from connectors.supervisor import describe_connector
from connectors.systems import COMMON, SYSTEMS
from server.connectors.registry import ConnectorRegistry
from server.dependencies import ADMIN, Connected, Shared
from server.http.body_parsing import describe_body, parse_json_object, read_body
from server.http.path_names import Name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses, unknown_fault

router = APIRouter(tags=["connectors"])
_CREDENTIALS = {name for system in SYSTEMS.values() for name in system.credentials}
_MEMBERS = (
    "type",
    *sorted(
        {option for table in (*COMMON.values(), *(each for system in SYSTEMS.values() for each in system.options.values())) for option in table}
        | {f"{name}{place}" for name in _CREDENTIALS for place in ("_env", "_file", "")}
    ),
)
_NONE = describe_responses([404])


class ConnectorDocument(BaseModel):
    """Describes a connector and how it is doing since its process started.

    `state` is starting, running, waiting, retrying, failed, completed (its query has ended) or stopped. A waiting
    connector asks again a system that does not answer. A retrying one tries again too, but its operator must mend
    something; a failed one does not try again. `position` is the last one that the receiving side holds, and `lag`
    the number of messages behind it, where the system tells.

    `messages` were taken over; of these, the events that were `late` are in the late feed alone. `rejected` rows and
    messages could not be read or did not map, and are in the stream's dead-letter feed. `skipped` ones were left out
    instead, as `on_error` asks. `missed` ones were gone from the system before they could be read.

    `suppressed` solutions were left out as repeats, as `once_per` asks; `forgotten` keys of it were let go too soon
    by its bound.

    `fixed` says that it stands in the file that the server's settings name, so that it cannot be changed here.
    """

    name: str
    direction: str
    options: dict[str, Any]
    fixed: bool
    state: str
    position: str | None
    lag: int | None
    messages: int
    late: int
    rejected: int
    skipped: int
    missed: int
    suppressed: int
    forgotten: int
    faults: int
    fault: str | None
    fault_at: str | None
    restarts: int


class ConnectorList(BaseModel):
    connectors: list[ConnectorDocument]


def _describe(registry: ConnectorRegistry, connector: Connector, status: Status) -> ConnectorDocument:
    return ConnectorDocument.model_validate({**describe_connector(connector, status), "fixed": registry.is_fixed(connector.name)})


_BODY = describe_body(
    {
        "application/json": {
            "schema": {"type": "object", "description": "The options are those of a connector file; docs/connectors.md lists them."},
            "example": {"type": "nats", "stream": "weather", "url": "nats://127.0.0.1:4222", "jetstream": "READINGS"},
        }
    }
)


@router.get("/connectors", dependencies=[ADMIN], summary="List the connectors, with their state, lag and last fault")
async def list_connectors(connected: Connected) -> ConnectorList:
    return ConnectorList(connectors=[_describe(connected, *each) for each in connected])


@router.get("/connectors/{name}", dependencies=[ADMIN], summary="Show a connector, with its state, lag and last fault", responses=_NONE)
async def get_connector(name: Name, connected: Connected) -> ConnectorDocument:
    return _describe(connected, _find_connector(connected, name), connected.get_status(name))


@router.put(
    "/connectors/{name}",
    dependencies=[ADMIN],
    status_code=201,
    summary="Create a connector, or change its options; it starts at once",
    responses=describe_responses(
        [409, 413, 422, 429], success={200: {"description": "The connector existed already; it starts again", "model": ConnectorDocument}}
    ),
    openapi_extra=_BODY,
)
async def put_connector(name: Name, request: Request, response: Response, service: Shared, connected: Connected) -> ConnectorDocument:
    found = parse_json_object(await read_body(request, service.settings.max_query), _MEMBERS)
    try:
        connector = parse_connector(name, found, connected.places)
        check_library(connector.system)
    except WrongOption as fault:
        raise bad_request("bad-connector", str(fault)) from None
    except MissingLibrary as fault:
        raise Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "connector-library", f"on the server, {fault}")) from None
    async with connected.changing:
        _check_free(connected, name)
        known = connected.find_connector(name)
        if known is None and len(connected) >= service.settings.max_connectors:
            detail = f"there are {len(connected)} connectors already; delete one, or raise max_connectors"
            raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-connectors", detail))
        await asyncio.to_thread(connected.put_connector, connector)
    response.status_code = HTTPStatus.CREATED if known is None else HTTPStatus.OK
    response.headers["Location"] = f"/connectors/{encode_name(name)}"
    return _describe(connected, connector, connected.get_status(name))


@router.delete(
    "/connectors/{name}",
    dependencies=[ADMIN],
    status_code=204,
    summary="Stop and delete a connector; its position stays stored",
    responses=describe_responses([404, 409]),
)
async def delete_connector(name: Name, connected: Connected) -> None:
    async with connected.changing:
        _check_free(connected, name)
        _find_connector(connected, name)
        await asyncio.to_thread(connected.delete_connector, name)


def _find_connector(connected: ConnectorRegistry, name: str) -> Connector:
    """Return a connector. Raises: Fault 404."""
    found = connected.find_connector(name)
    if found is None:
        raise unknown_fault("connector", name, [connector.name for connector, _ in connected])
    return found


def _check_free(connected: ConnectorRegistry, name: str) -> None:
    """Check that HTTP may change a connector. Raises: Fault 409."""
    if connected.is_fixed(name):
        detail = f"the connector {name!r} stands in the file of the setting connectors; change it there, and start the server again"
        raise Fault(Problem(HTTPStatus.CONFLICT, "connector-in-file", detail))
