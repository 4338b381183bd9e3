"""Handles what every request needs, whatever its route: an id, security headers, counts, a line in the log, and one
in the audit.
"""

import logging
import re
import secrets
import time
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.observability.logging import REQUEST_ID
from server.observability.metrics import RequestCounts

_GIVEN = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_LONGEST_ADDRESS = 100  # characters of an address of IPv6 with a zone
_CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURE = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""All answers have these headers, where a route does not say otherwise."""
SECURE_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURE.items()]
_log = logging.getLogger("epsparql.requests")


class RequestMiddleware:
    """Wraps the app as its outermost layer."""

    def __init__(self, app: ASGIApp, requests: RequestCounts) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request_id = identify_request(Headers(scope=scope))
        began, status = time.perf_counter(), 0

        async def send_answer(message: Message) -> None:
            nonlocal status
            match message["type"]:
                case "http.response.start":
                    status = message["status"]
                    headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                    named = {name for name, _ in headers}
                    message = {**message, "headers": headers + [each for each in SECURE_HEADERS if each[0] not in named]}
                case "websocket.accept":
                    message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", request_id.encode())]}
                case "websocket.close":
                    status = message.get("code", 1000)
            await send(message)

        try:
            await self._app(scope, receive, send_answer)
        finally:
            if (service := _find_service(scope)) is not None:
                service.admission.bodies.release_body(scope)
            template = getattr(scope.get("route"), "path", "")
            about = AnsweredRequest(
                scope.get("method", "WEBSOCKET"),
                scope["path"],
                template,
                status,
                time.perf_counter() - began,
                identify_client(scope),
                scope.get("state", {}).get("who"),
            )
            record_request(self._requests, service, about)


def identify_client(scope: Scope) -> str | None:
    """Return the client's address.

    It is none where a proxy's X-Forwarded-For names something else, which anybody may have written there.
    """
    client = scope.get("client")
    return _parse_address(client[0]) if client and len(client[0]) <= _LONGEST_ADDRESS else None


@lru_cache(maxsize=1024)
def _parse_address(text: str) -> str | None:
    try:
        return str(ip_address(text.partition("%")[0]))  # a zone may hold any character
    except ValueError:
        return None


def identify_request(headers: Headers) -> str:
    """Return the id of a request, which is the sender's own if it can be one. What is logged from now on carries it."""
    given = headers.get("x-request-id", "")
    request_id = given if _GIVEN.fullmatch(given) else secrets.token_hex(16)
    REQUEST_ID.set(request_id)
    return request_id


class AnsweredRequest(NamedTuple):
    """Says what a request was, how it was answered and how long that took.

    `template` is its route's path, empty where it had none.
    """

    method: str
    path: str
    template: str
    status: int
    seconds: float
    client: str | None
    who: str | None


def record_request(requests: RequestCounts, service: Any, request: AnsweredRequest) -> None:
    """Count a request, and log it; the audit records it if it may have changed something."""
    requests.count(request.method, request.template, request.status, request.seconds)
    audited = service is not None and is_change(request.method, request.template) and request.status < 400
    if not audited and not _log.isEnabledFor(logging.INFO):
        return
    about = {
        "method": request.method,
        "path": request.path,
        "status": request.status,
        "seconds": round(request.seconds, 6),
        "client": request.client,
        "who": request.who,
    }
    _log.info("%s %s %d", request.method, request.path, request.status, extra={"about": about})
    if audited:
        service.admission.audit.record_change(service.clock(), about | {"request_id": REQUEST_ID.get()})


def _find_service(scope: Scope) -> Any:
    """Return the service of the app that handled the request, or None if the request did not come so far."""
    return getattr(scope["app"].state, "service", None) if "app" in scope else None


def is_change(method: str, template: str) -> bool:
    """Return whether such a request may change something that the audit records.

    Events are data, a query by POST only reads, and who signs in changes nothing yet.
    """
    return method in ("PUT", "POST", "DELETE", "PATCH") and template not in ("/streams/{name}/events", "/sparql", "/check", "/sign-in")
