"""Answers POSTs of events that came whole and have no parameters, of which many bring one event.

All others take the route (`ingest.py`).
"""

import asyncio
import re
import time
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pipeline.log import Ack
from server.http import auth
from server.http.path_names import decode_name
from server.http.problem_details import describe_exception
from server.log_intake import ShortBody
from server.observability.middleware import SECURE_HEADERS, AnsweredRequest, identify_client, identify_request, record_request
from server.routes.streams.ingest import SMALL, Accepted, EventTimes, Sending, open_sending
from server.tokens.scopes import ingest_scope

TEMPLATE = "/streams/{name}/events"
_PATH = re.compile(rb"/streams/([^/?]+)/events")
_SIZE = re.compile(rb"[0-9]{1,9}")
_OTHERWISE = frozenset((b"content-encoding", b"epsparql-source", b"expect", b"idempotency-key", b"origin", b"transfer-encoding"))
"""Requests with such a header go through all layers."""
_NO_TIMES = EventTimes()
_HELD_S = 0.05
"""A body is waited for so long; then the route, with its limits, has it."""


class ShortPosts:
    """Wraps the app of a server, whose limits, ids, counts and log lines hold for short POSTs as for all other
    requests.
    """

    def __init__(self, app: FastAPI, most: int) -> None:
        """`most` is the greatest size of a body, in bytes, that the server takes."""
        self._app, self._longest = app, min(SMALL, most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_short(scope):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(_HELD_S):
                first = await receive()
        except TimeoutError:
            await self._app(scope, receive, send)
            return
        if first["type"] == "http.request" and not first.get("more_body", False):
            await _Exchange(self._app, scope, first["body"]).run(send)
        else:
            await self._app(scope, _after(first, receive), send)

    def _is_short(self, scope: Scope) -> bool:
        if scope["method"] != "POST" or scope["query_string"] or _PATH.fullmatch(scope["raw_path"]) is None:
            return False
        named = dict[bytes, bytes](scope["headers"])
        size = named.get(b"content-length", b"")
        single = len(named) == len(scope["headers"])
        return single and _OTHERWISE.isdisjoint(named) and _SIZE.fullmatch(size) is not None and 0 < int(size) <= self._longest


def _after(first: Message, receive: Receive) -> Receive:
    """Return what receives a message that came already, and then the others."""
    came = [first]

    async def receive_next() -> Message:
        return came.pop() if came else await receive()

    return receive_next


class _Exchange:
    """Leads from a request to its answer. The bytes of its body count among those of all bodies until then."""

    def __init__(self, app: FastAPI, scope: Scope, body: bytes) -> None:
        self._app, self._service, self._scope, self._body = app, app.state.service, scope, body
        self._headers, self._path = Headers(scope=scope), scope["raw_path"].decode()
        self._began_s, self._request_id = time.perf_counter(), identify_request(self._headers)
        self._caller: auth.Caller | None = None

    async def run(self, send: Send) -> None:
        bodies, held = self._service.admission.bodies, 0
        try:
            sending = await self._open_sending()
            bodies.reserve_bytes(len(self._body))
            held = len(self._body)
            accepted = await self._accept(sending)
            response = Response(accepted.model_dump_json(exclude_none=True), HTTPStatus.ACCEPTED, media_type="application/json")
        except Exception as fault:  # noqa: BLE001  # nothing else would answer
            response = describe_exception(fault).redact(all_names=self._caller is not None and self._caller.all_names).response()
        finally:
            bodies.release_bytes(held)
        headers = [(b"x-request-id", self._request_id.encode()), *SECURE_HEADERS, *response.raw_headers]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})
        who, took_s = None if self._caller is None else self._caller.who, time.perf_counter() - self._began_s
        about = AnsweredRequest("POST", self._path, TEMPLATE, response.status_code, took_s, identify_client(self._scope), who)
        record_request(self._app.state.requests, self._service, about)

    async def _open_sending(self) -> Sending:
        """Return what the head says of the body. Raises: Fault, PipelineError."""
        name = decode_name(self._path.split("/")[2])
        self._caller = await self._service.admission.gate.authorize(self._headers, ingest_scope(name))
        return open_sending(self._headers, self._service, name, _NO_TIMES)

    async def _accept(self, sending: Sending) -> Accepted:
        """Return once the body is durable. Raises: Fault, PipelineError."""
        if not sending.is_short(self._body):
            return await sending.accept(self._body)
        arrived, acked = self._service.clock(), asyncio.get_running_loop().create_future()

        def tell(submitted: Future[Ack], warning: str | None) -> None:
            if not acked.done():
                acked.set_result((submitted, warning))

        self._service.intake.submit_short(
            ShortBody(self._body, arrived, partial(sending.parse, self._body, arrived), partial(sending.submit, arrived), tell)
        )
        submitted, warning = await acked
        return sending.confirm(submitted, warning)
