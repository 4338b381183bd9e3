"""Gives routes what they ask for: the service, its deliveries, and the check that the request is allowed."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from server.connectors.registry import ConnectorRegistry
from server.http import auth
from server.http.path_names import Instance, Name
from server.service import Service
from server.tokens import scopes
from server.trials.registry import TrialRegistry
from server.webhook_delivery.delivery import Deliveries


def _read_state(name: str) -> Callable[[Request], Awaitable[Any]]:
    """Return the dependency on a part of the app's state; FastAPI would call one that is not async in another thread."""

    async def read_part(request: Request) -> Any:
        return getattr(request.app.state, name)

    return read_part


Shared = Annotated[Service, Depends(_read_state("service"))]
Sent = Annotated[Deliveries, Depends(_read_state("deliveries"))]
Connected = Annotated[ConnectorRegistry, Depends(_read_state("connectors"))]
Tried = Annotated[TrialRegistry, Depends(_read_state("trials"))]


async def admit(connection: HTTPConnection, service: Service, scope: str, wider: str | None = None) -> auth.Caller:
    """Check the request and record its caller. Raises: Fault, like `Gate.authorize`."""
    caller = await service.admission.gate.authorize(connection.headers, scope, wider)
    connection.state.who, connection.state.all_names = caller.who, caller.all_names
    return caller


async def _require_admin(request: Request, service: Shared) -> None:
    await admit(request, service, scopes.ADMIN)


async def _require_metrics(request: Request, service: Shared) -> None:
    await admit(request, service, scopes.METRICS)


async def _require_ingest(request: Request, service: Shared, name: Name) -> None:
    await admit(request, service, scopes.ingest_scope(name))


async def _require_read(request: Request, service: Shared, name: Name) -> None:
    await admit(request, service, scopes.read_scope(name))


async def _require_instance(request: Request, service: Shared, name: Name, instance: Instance) -> None:
    await admit(request, service, scopes.instance_scope(name, instance), scopes.read_scope(name))


async def _require_instances(request: Request, service: Shared, name: Name) -> None:
    await admit(request, service, scopes.instances_scope(name))


async def _find_reader(request: Request, service: Shared) -> auth.Caller:
    return await admit(request, service, scopes.read_scope(""))


async def _find_feeder(request: Request, service: Shared) -> auth.Caller:
    return await admit(request, service, scopes.ingest_scope(""))


Reader = Annotated[auth.Caller, Depends(_find_reader)]
"""The caller may read at least one query; a list shows only what the caller may read."""
Feeder = Annotated[auth.Caller, Depends(_find_feeder)]
"""The caller may feed at least one stream."""
ADMIN, METRICS, INGEST, READ = Depends(_require_admin), Depends(_require_metrics), Depends(_require_ingest), Depends(_require_read)
INSTANCE, INSTANCES = Depends(_require_instance), Depends(_require_instances)
