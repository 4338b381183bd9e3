"""What routes ask for: the service, its deliveries, and that the request may do what it wants."""

from typing import Annotated

from fastapi import Depends, Request

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


async def _admin(request: Request, service: Shared) -> None:
    request.state.who = service.gate.check(request.headers, security.ADMIN)


async def _metrics(request: Request, service: Shared) -> None:
    request.state.who = service.gate.check(request.headers, security.METRICS)


async def _ingest(request: Request, service: Shared, name: Name) -> None:
    request.state.who = service.gate.check(request.headers, security.ingest(name))


async def _read(request: Request, service: Shared, name: Name) -> None:
    request.state.who = service.gate.check(request.headers, security.read(name))


ADMIN, METRICS, INGEST, READ = Depends(_admin), Depends(_metrics), Depends(_ingest), Depends(_read)
