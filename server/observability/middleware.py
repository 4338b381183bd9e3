"""Handles what every request needs, whatever its route: an id, security headers, counts, a line in the log, and one in the audit."""

import logging
import re
import secrets
import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.observability.logging import REQUEST_ID
from server.observability.metrics import RequestCounts

_GIVEN = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
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
_SECURE = [(name.lower().encode(), value.encode()) for name, value in SECURE.items()]
_log = logging.getLogger("epsparql.requests")


class RequestMiddleware:
    """Wraps the app as its outermost layer."""

    def __init__(self, app: ASGIApp, requests: RequestCounts) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN.fullmatch(given) else secrets.token_hex(16)
        REQUEST_ID.set(request_id)
        began, status = time.perf_counter(), 0

        async def send_answer(message: Message) -> None:
            nonlocal status
            match message["type"]:
                case "http.response.start":
                    status = message["status"]
                    headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                    named = {name for name, _ in headers}
                    message = {**message, "headers": headers + [each for each in _SECURE if each[0] not in named]}
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
            self._log_request(scope, status, time.perf_counter() - began)

    def _log_request(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope.get("method", "WEBSOCKET")
        template = getattr(scope.get("route"), "path", "")
        self._requests.count(method, template, status, seconds)
        state: dict[str, Any] = scope.get("state", {})
        client = scope.get("client")
        about = {
            "method": method,
            "path": scope["path"],
            "status": status,
            "seconds": round(seconds, 6),
            "client": client[0] if client else None,
            "who": state.get("who"),
        }
        _log.info("%s %s %d", method, scope["path"], status, extra={"about": about})
        service = _find_service(scope)
        if service is not None and is_change(method, template) and status < 400:
            service.admission.audit.record_change(service.clock(), about | {"request_id": REQUEST_ID.get()})


def _find_service(scope: Scope) -> Any:
    """Return the service of the app that handled the request, or None if the request did not come so far."""
    return getattr(scope["app"].state, "service", None) if "app" in scope else None


def is_change(method: str, template: str) -> bool:
    """Return whether such a request may change something that the audit records. Events are data, and a query by POST only reads."""
    return method in ("PUT", "POST", "DELETE", "PATCH") and template not in ("/streams/{name}/events", "/sparql", "/check")
