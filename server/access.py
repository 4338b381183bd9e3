"""What routes ask for: the service, its deliveries, and that the request may do what it wants."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from server import security
from server.deliveries import Deliveries
from server.names import Name
from server.service import Service


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _deliveries(request: Request) -> Deliveries:
    deliveries: Deliveries = request.app.state.deliveries
    return deliveries


Shared = Annotated[Service, Depends(_service)]
Sent = Annotated[Deliveries, Depends(_deliveries)]


def admit(connection: HTTPConnection, service: Service, scope: str) -> security.Caller:
    """Raises: Fault, as `Gate.check`."""
    caller = service.gate.check(connection.headers, scope)
    connection.state.who, connection.state.all_names = caller.who, caller.all_names
    return caller


async def _admin(request: Request, service: Shared) -> None:
    admit(request, service, security.ADMIN)


async def _metrics(request: Request, service: Shared) -> None:
    admit(request, service, security.METRICS)


async def _ingest(request: Request, service: Shared, name: Name) -> None:
    admit(request, service, security.ingest(name))


async def _read(request: Request, service: Shared, name: Name) -> None:
    admit(request, service, security.read(name))


async def _reader(request: Request, service: Shared) -> security.Caller:
    return admit(request, service, security.read(""))


async def _feeder(request: Request, service: Shared) -> security.Caller:
    return admit(request, service, security.ingest(""))


Reader = Annotated[security.Caller, Depends(_reader)]
"""Who may read some query; a list shows them what they may."""
Feeder = Annotated[security.Caller, Depends(_feeder)]
"""Who may feed some stream."""
ADMIN, METRICS, INGEST, READ = Depends(_admin), Depends(_metrics), Depends(_ingest), Depends(_read)
