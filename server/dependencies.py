"""Gives routes what they ask for: the service, its deliveries, and the check that the request is allowed."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from server.http import auth
from server.http.path_names import Name
from server.service import Service
from server.webhook_delivery.delivery import Deliveries


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _deliveries(request: Request) -> Deliveries:
    deliveries: Deliveries = request.app.state.deliveries
    return deliveries


Shared = Annotated[Service, Depends(_service)]
Sent = Annotated[Deliveries, Depends(_deliveries)]


def admit(connection: HTTPConnection, service: Service, scope: str) -> auth.Caller:
    """Check the request and record its caller. Raises: Fault, like `Gate.check`."""
    caller = service.admission.gate.check(connection.headers, scope)
    connection.state.who, connection.state.all_names = caller.who, caller.all_names
    return caller


async def _admin(request: Request, service: Shared) -> None:
    admit(request, service, auth.ADMIN)


async def _metrics(request: Request, service: Shared) -> None:
    admit(request, service, auth.METRICS)


async def _ingest(request: Request, service: Shared, name: Name) -> None:
    admit(request, service, auth.ingest(name))


async def _read(request: Request, service: Shared, name: Name) -> None:
    admit(request, service, auth.read(name))


async def _reader(request: Request, service: Shared) -> auth.Caller:
    return admit(request, service, auth.read(""))


async def _feeder(request: Request, service: Shared) -> auth.Caller:
    return admit(request, service, auth.ingest(""))


Reader = Annotated[auth.Caller, Depends(_reader)]
"""The caller may read at least one query; a list shows only what the caller may read."""
Feeder = Annotated[auth.Caller, Depends(_feeder)]
"""The caller may feed at least one stream."""
ADMIN, METRICS, INGEST, READ = Depends(_admin), Depends(_metrics), Depends(_ingest), Depends(_read)
