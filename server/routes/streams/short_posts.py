"""Answers POSTs of events that came whole and have no parameters, of which many bring one event. All others take the route (`ingest.py`)."""

import asyncio
import re
import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from fastapi import FastAPI
from starlette.responses import Response

from pipeline.log import Ack
from server.http import auth
from server.http.path_names import decode_name
from server.http.problem_details import describe_exception
from server.http.whole_requests import Head, WholeRequest, write_headers
from server.log_intake import ShortBody
from server.observability.logging import REQUEST_ID
from server.observability.middleware import SECURE_HEADERS, AnsweredRequest, identify_request, record_request
from server.routes.streams.ingest import SMALL, Accepted, EventTimes, Sending, open_sending
from server.service import Service

TEMPLATE = "/streams/{name}/events"
_TARGET = re.compile(rb"/streams/([^/?]+)/events")
_PARAMETERS = "idempotency-key", "epsparql-source"
_NO_TIMES = EventTimes()
_SECURE_LINES = write_headers(SECURE_HEADERS)


class ShortPosts:
    """Takes the requests from the connections of an app's server, whose limits, ids, counts and log lines hold for them as for all others."""

    def __init__(self, app: FastAPI, most: int) -> None:
        """`most` is the greatest size of a body, in bytes, that the server takes."""
        self._app, self._longest = app, min(SMALL, most)

    def wants(self, head: Head) -> bool:
        return 0 < head.size <= self._longest and _TARGET.fullmatch(head.target) is not None and all(name not in head.headers for name in _PARAMETERS)

    def take_request(self, request: WholeRequest) -> None:
        exchange = _Exchange(self._app, self._app.state.service, request, identify_request(request.headers), time.perf_counter())
        try:
            exchange.submit_body()
        except Exception as fault:  # noqa: BLE001  # nothing else would answer
            exchange.refuse(fault)


@dataclass(slots=True, eq=False)
class _Exchange:
    """Leads from a request to its answer. The bytes of its body count among those of all bodies until then."""

    app: FastAPI
    service: Service
    request: WholeRequest
    request_id: str
    began_s: float
    held: int = 0
    caller: auth.Caller | None = None

    def submit_body(self) -> None:
        """Submit the body. Raises: Fault, PipelineError."""
        request, service = self.request, self.service
        name = decode_name(request.path.split("/")[2])
        self.caller = service.admission.gate.authorize(request.headers, auth.ingest_scope(name))
        sending = open_sending(request.headers, service, name, _NO_TIMES)
        service.admission.bodies.reserve_bytes(len(request.body))
        self.held = len(request.body)
        if sending.is_short(request.body):
            arrived = service.clock()
            read, submit = partial(sending.parse, request.body, arrived), partial(sending.submit, arrived)
            service.intake.submit_short(ShortBody(request.body, arrived, read, submit, partial(self._note_ack, sending)))
        else:
            asyncio.ensure_future(sending.accept(request.body)).add_done_callback(self._note_end)

    def _note_ack(self, sending: Sending, submitted: Future[Ack], warning: str | None) -> None:
        try:
            self._confirm(sending.confirm(submitted, warning))
        except Exception as fault:  # noqa: BLE001  # as above
            self.refuse(fault)

    def _note_end(self, accepted: asyncio.Future[Accepted]) -> None:
        try:
            self._confirm(accepted.result())
        except Exception as fault:  # noqa: BLE001  # as above
            self.refuse(fault)

    def _confirm(self, accepted: Accepted) -> None:
        self._send_answer(Response(accepted.model_dump_json(exclude_none=True), HTTPStatus.ACCEPTED, media_type="application/json"))

    def refuse(self, fault: Exception) -> None:
        """Answer with the problem that a fault is, as the route does."""
        REQUEST_ID.set(self.request_id)
        self._send_answer(describe_exception(fault).redact(all_names=self.caller is not None and self.caller.all_names).response())

    def _send_answer(self, response: Response) -> None:
        REQUEST_ID.set(self.request_id)
        self.service.admission.bodies.release_bytes(self.held)
        self.request.answer(response, b"x-request-id: %b\r\n%b" % (self.request_id.encode(), _SECURE_LINES))
        who, took_s = None if self.caller is None else self.caller.who, time.perf_counter() - self.began_s
        about = AnsweredRequest("POST", self.request.path, TEMPLATE, response.status_code, took_s, self.request.client, who)
        record_request(self.app.state.requests, self.service, about)
