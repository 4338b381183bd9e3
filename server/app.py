"""Builds the application: its routes, its fault handlers and its OpenAPI document."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from connectors.configuration import ConnectorFile
from server.background.query_pool import run_pool
from server.connectors.registry import run_connectors
from server.http import problem_details
from server.http.cross_origin import CrossOriginMiddleware
from server.http.documentation import ASYNCAPI, YAML, mount_documentation, write_yaml
from server.http.path_names import RawPath
from server.http.problem_details import ErrorMiddleware, ProblemDocument
from server.http.query_parameters import refuse_unknown
from server.observability import health, metrics
from server.observability.metrics import RequestCounts
from server.observability.middleware import RequestMiddleware
from server.routes import (
    connectors,
    console,
    explain,
    instances,
    ontologies,
    pause_resume,
    queries,
    solutions,
    sparql,
    trials,
    validate,
    versions,
    webhooks,
    websockets,
)
from server.routes.explain import PlanDocument
from server.routes.queries import QueryWish
from server.routes.reasons import diagnosis, provenance
from server.routes.streams import feeds, ingest, inspection, mapping_proposal, stream_settings, telemetry
from server.routes.streams.feeds import DeadLetter
from server.routes.streams.stream_settings import StreamSettings
from server.routes.streams.telemetry import ExportDocument, StatusDocument
from server.routes.trials import TrialRequest
from server.routes.validate import CheckWish
from server.routes.webhooks import ObserverWish
from server.service import Service
from server.subscriptions.broadcast import Broadcasts
from server.subscriptions.slow_consumers import SlowConsumerMonitor
from server.trials.registry import run_trials
from server.webhook_delivery.delivery import run_deliveries

_REFERRED: tuple[type[BaseModel], ...] = (
    CheckWish,
    DeadLetter,
    ExportDocument,
    ObserverWish,
    PlanDocument,
    ProblemDocument,
    QueryWish,
    StatusDocument,
    StreamSettings,
    TrialRequest,
)  # routes name these models, but none takes one as a parameter


_ROUTE_MODULES = (
    stream_settings, mapping_proposal, ingest, telemetry, feeds, inspection, queries, instances, pause_resume, versions, validate, explain, diagnosis,
    solutions, provenance, ontologies, sparql,
    trials, webhooks, websockets, connectors, health, metrics, console,
)  # fmt: skip


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """Return the routes, which all apps of a process share: FastAPI compiles their parameters at the first request, a
    tenth of a CPU second.
    """
    router = APIRouter(dependencies=[Depends(refuse_unknown)], generate_unique_id_function=lambda route: route.name)
    for part in _ROUTE_MODULES:
        router.include_router(part.router)
    return tuple(router.routes)


def create_app(
    start: Callable[[], AbstractAsyncContextManager[Service]], origins: Sequence[str] = (), url: str = "", connected: ConnectorFile | None = None
) -> FastAPI:
    """Create the app, which enters `start` when it starts and leaves it when it stops. Pages of these `origins` may
    read the answers.

    Its connectors, among them those of a file, reach it at `url`.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with (
            start() as service,
            run_pool(service.settings, service.log) as pool,
            run_deliveries(service) as deliveries,
            run_connectors(service, url, connected) as registry,
            run_trials(service.settings) as tried,
        ):
            app.state.service, app.state.query_pool, app.state.deliveries, app.state.connectors = service, pool, deliveries, registry
            app.state.trials, app.state.monitor, app.state.broadcasts = tried, SlowConsumerMonitor(service), Broadcasts(service)
            watching = asyncio.create_task(app.state.monitor.run())
            yield
            watching.cancel()

    app = FastAPI(
        title="epsparql",
        version=version("epsparql"),
        description="epsparql evaluates continuous EP-SPARQL queries over streams of time-stamped RDF. asyncapi.yaml describes the "
        "WebSockets, /streams/{name}/feed and /queries/{name}/feed.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # FastAPI's own route for it would take any query parameter
        redirect_slashes=False,
        dependencies=[Depends(refuse_unknown)],
        generate_unique_id_function=lambda route: route.name,
    )
    app.router.routes += _routes()
    mount_documentation(app)
    _add_descriptions(app)
    problem_details.install_handlers(app)
    for layer in (RawPath, ErrorMiddleware):  # from within
        app.add_middleware(layer)
    app.add_middleware(CrossOriginMiddleware, origins=origins)
    app.state.requests = RequestCounts()
    app.add_middleware(RequestMiddleware, requests=app.state.requests)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]  # FastAPI's own way to extend the document
    return app


def _add_descriptions(app: FastAPI) -> None:
    """Serve the documents that describe the interfaces."""
    for path, answer in {
        "/openapi.json": lambda: JSONResponse(document(app)),
        "/openapi.yaml": lambda: Response(write_yaml(document(app)), media_type=YAML),
        "/asyncapi.yaml": lambda: Response(ASYNCAPI.read_bytes(), media_type=YAML),
    }.items():
        app.add_api_route(path, answer, methods=["GET", "HEAD"], include_in_schema=False)


_SCOPES = (
    "A token has scopes. read:<query> allows reading a query and its solutions, and ingest:<stream> allows sending events to a stream. "
    "read:<query>/<instance> allows reading the solutions of an instance, and instances:<query> allows changing instances. "
    "read:* and ingest:* stand for all names. metrics allows /metrics, and admin allows everything. "
    "A token is one of the token file, or a JWT of the issuer that the server was given. While this issuer is silent, the answer is 503. "
    "A server without either listens on loopback only and needs no token."
)
_PUBLIC = ("/livez", "/readyz")
"""Requests for these paths need no token."""


def _complete(operation: dict[str, Any], *, public: bool) -> None:
    """Add the problems that any such operation may answer with; FastAPI's own 422 for parameters is a 400 here."""
    responses = operation["responses"]
    if "HTTPValidationError" in json.dumps(responses.get("422", {})):
        del responses["422"]
    common = [HTTPStatus.BAD_REQUEST] + ([] if public else [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN])
    if "requestBody" in operation:
        common += [HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, HTTPStatus.TOO_MANY_REQUESTS]
    for status, response in problem_details.describe_responses(common).items():
        responses.setdefault(str(status), response)


def document(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's OpenAPI document with the schemas that routes refer to by name."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for model in _REFERRED:
            described = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= described.pop("$defs", {})
            if "$ref" not in described:
                schemas[model.__name__] = described
        for path, operations in made["paths"].items():
            for operation in operations.values():
                _complete(operation, public=path in _PUBLIC)
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": _SCOPES}}
        made["security"] = [{"token": []}, {}]
        app.openapi_schema = made
    return app.openapi_schema
