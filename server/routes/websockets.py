"""Serves the two WebSockets: feeding a stream, and following a query (interfaces.md, WebSocket)."""

import asyncio
import json
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, WebSocket, WebSocketDisconnect

from pipeline.errors import Gone, Overloaded, PipelineError
from pipeline.formats.body_parser import parse_frame
from pipeline.log import Ack
from pipeline.log.catalog import Registration
from server.dependencies import admit
from server.http import auth
from server.http.path_names import decoded
from server.http.problem_details import Fault, Problem, bad_request, of_exception, too_large
from server.http.query_parameters import check_parameters
from server.push.connection_limits import SOCKET
from server.push.websocket_protocol import outlet_of
from server.service import Service
from server.subscriptions.broadcast import Member
from server.subscriptions.slow_consumers import Pace
from server.subscriptions.subscriber import BAD_REQUEST, UNKNOWN, Subscriber

SUBPROTOCOL = "epsparql.v1+json"
NO_TOKEN, NOT_ALLOWED, FULL = 4001, 4003, 1013
_CLOSE_OF_STATUS = {401: NO_TOKEN, 403: NOT_ALLOWED, 404: UNKNOWN, 429: FULL}
_PENDING = 256  # so many frames may be unanswered; further ones wait in the socket
_REASON = 123  # bytes that a close frame holds
_AGAIN_S = 0.01
_SMALL = 16 << 10  # a frame of so many bytes is parsed in less time than a thread takes to get its turn
_POLICIES = ("disconnect", "drop-oldest")

router = APIRouter()


# ---------------------------------------------------------------- opening and closing
async def _open(websocket: WebSocket) -> None:
    """Accept the connection. Only after that can a close code give the reason."""
    await websocket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in websocket.scope["subprotocols"] else None)


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    shown = reason.encode()[:_REASON].decode(errors="ignore")
    with suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
        await websocket.close(code, shown)


async def _refuse(websocket: WebSocket, fault: Fault) -> None:
    problem = fault.problem.told(all_names=getattr(websocket.state, "all_names", False))
    expected = f"; expected {problem.expected}" if problem.status == HTTPStatus.BAD_REQUEST and problem.expected else ""
    await _close(websocket, _CLOSE_OF_STATUS.get(int(problem.status), BAD_REQUEST), problem.detail + expected)


async def _first(*work: Awaitable[Any]) -> None:
    """Run until one of `work` is done, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
            raise outcome


@router.get("/streams/{name}/feed", include_in_schema=False)
@router.get("/queries/{name}/feed", include_in_schema=False)
async def no_socket(request: Request) -> None:
    """Refuse plain HTTP where a WebSocket is expected."""
    path = request.url.path.removesuffix("/feed")
    instead = "POST to" if path.startswith("/streams/") else "GET"
    detail = f"this is a WebSocket ({SUBPROTOCOL}); without one {instead} {path}/events"
    raise Fault(Problem(HTTPStatus.UPGRADE_REQUIRED, "upgrade-required", detail, headers={"Upgrade": "websocket"}))


# ---------------------------------------------------------------- feeding a stream
Answer = dict[str, Any] | asyncio.Future[Ack]


@router.websocket("/streams/{name}/feed")
async def feed(websocket: WebSocket, name: str) -> None:
    """Take ndjson text frames and Arrow binary frames, and send an ack or a problem for each, in the order of the frames."""
    service: Service = websocket.app.state.service
    await _open(websocket)
    try:
        stream = decoded(name)
        admit(websocket, service, auth.ingest(stream))
        check_parameters(websocket)
        with service.seats.feeder():
            answers: asyncio.Queue[Answer] = asyncio.Queue(_PENDING)
            await _first(_take_frames(websocket, service, stream, answers), _give_answers(websocket, answers))
    except Fault as fault:
        await _refuse(websocket, fault)


async def _take_frames(websocket: WebSocket, service: Service, stream: str, answers: asyncio.Queue[Answer]) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        await answers.put(await _accepted(service, stream, message.get("text"), message.get("bytes")))


async def _accepted(service: Service, stream: str, text: str | None, data: bytes | None) -> Answer:
    """Return the frame's place in the log's queue, or the problem with it."""
    try:
        body = data or b"" if text is None else text.encode()
        if len(body) > service.settings.max_frame:
            raise Fault(too_large("frame", service.settings.max_frame))
        while service.overtaxed:
            await service.news(service.generation, 1.0)
        arrived = service.clock()
        parse = partial(parse_frame, body, arrived=arrived, binary=text is None)
        batch, key = parse() if len(body) <= _SMALL else await asyncio.to_thread(parse)
        while True:
            try:
                return asyncio.wrap_future(service.log.submit(stream, batch, key, arrived=arrived))
            except Overloaded:  # back-pressure: nothing more is read from this socket meanwhile
                await asyncio.sleep(_AGAIN_S)
    except (Fault, PipelineError) as error:
        return {"error": of_exception(error).document()}


async def _give_answers(websocket: WebSocket, answers: asyncio.Queue[Answer]) -> None:
    while True:
        answer = await answers.get()
        await websocket.send_text(json.dumps(answer if isinstance(answer, dict) else await _durable(answer)))


async def _durable(pending: asyncio.Future[Ack]) -> dict[str, Any]:
    try:
        ack = await pending
    except PipelineError as error:
        return {"error": of_exception(error).document()}
    return {"ack": ack.offset, "accepted": ack.accepted} | ({"late": ack.late} if ack.late else {})


# ---------------------------------------------------------------- following a query
@router.websocket("/queries/{name}/feed")
async def subscribe(
    websocket: WebSocket, name: str, after: Annotated[str | None, Query()] = None, policy: Annotated[str, Query()] = "disconnect"
) -> None:
    """Send the solutions after an id, then new ones as they come, and progress when idle."""
    service: Service = websocket.app.state.service
    await _open(websocket)
    try:
        query = decoded(name)
        admit(websocket, service, auth.read(query))
        check_parameters(websocket)
        registration = service.query(query)
        if policy not in _POLICIES:
            raise bad_request("invalid-parameter", f"policy cannot be {policy!r}", expected=" or ".join(_POLICIES))
        await _subscribed(websocket, registration, after or "", drops=policy == "drop-oldest")
    except Fault as fault:
        await _refuse(websocket, fault)


async def _subscribed(websocket: WebSocket, registration: Registration, after: str, *, drops: bool) -> None:
    state, outlet = websocket.app.state, outlet_of(websocket.scope)
    service: Service = state.service
    outlet.turn_deaf()  # the protocol has no messages from subscribers
    pace = Pace(registration.registered, outlet.cut, after)
    with service.seats.follower(SOCKET, registration.registered), service.following(registration), state.watch.over(pace):
        try:
            code, reason = await Subscriber(service, registration, state.crowds, Member(outlet, pace), drops).run()
        except (ValueError, Gone) as error:
            code, reason = BAD_REQUEST, f"after: {error}"
        except WebSocketDisconnect:
            return
        await _close(websocket, code, reason)
