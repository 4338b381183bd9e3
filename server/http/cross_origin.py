"""Answers browsers that ask whether pages of other origins may use the server. Source: Fetch standard, CORS protocol."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.auth import Gate
from server.http.problem_details import Fault

_ASKED = ("Authorization", "Content-Type", "Epsparql-Source", "Idempotency-Key", "Last-Event-ID", "X-Request-Id")
_TOLD = ("Epsparql-Read-From", "Link", "Location", "Retry-After", "X-Request-Id")
"""Browsers hide these headers of requests and answers from pages of other origins unless they are named."""
_METHODS = ("GET", "POST", "PUT", "DELETE")


class CrossOriginMiddleware:
    """Allows pages of the `origins` to read the answers.

    A question for another origin is answered with the problem that names the setting.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        allowing = CORSMiddleware(app, allow_origins=origins, allow_methods=_METHODS, allow_headers=_ASKED, expose_headers=_TOLD)
        self._allowing = allowing if origins else app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            headers = Headers(scope=scope)
            if "origin" in headers and "access-control-request-method" in headers:
                gate: Gate = scope["app"].state.service.admission.gate
                try:
                    gate.check_origin(headers)
                except Fault as fault:
                    await fault.problem.response()(scope, receive, send)
                    return
        await self._allowing(scope, receive, send)
