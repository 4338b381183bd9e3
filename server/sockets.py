"""The two WebSockets: feeding a stream, and following a query (interfaces.md, WebSocket)."""

import asyncio
import json
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, WebSocket, WebSocketDisconnect

from pipeline.catalogue import Registration
from pipeline.errors import Overloaded, PipelineError
from pipeline.formats import parse_frame
from pipeline.log import Ack
from server import security
from server.names import decoded
from server.problems import Fault, of_exception, too_large
from server.progress import Progress
from server.service import Service
from server.subscriptions import End, Idle, follow

SUBPROTOCOL = "epsparql.v1+json"
NO_TOKEN, NOT_ALLOWED, UNKNOWN, TOO_SLOW, RESTART, NORMAL, BAD_REQUEST, FAILED = 4001, 4003, 4004, 4008, 1012, 1000, 1008, 1011
_CLOSE_OF_STATUS = {401: NO_TOKEN, 403: NOT_ALLOWED, 404: UNKNOWN}
_CLOSE_OF_END = {End.STOPPING: RESTART, End.DROPPED: UNKNOWN, End.COMPLETED: NORMAL, End.FAILED: FAILED}
_PENDING = 256  # frames read and not yet answered; further ones wait in the socket
_REASON = 123  # bytes that a close frame holds
_WATCH_S = 0.25

router = APIRouter()


# ---------------------------------------------------------------- opening and closing
async def _open(websocket: WebSocket) -> None:
    """Accept. Only after that can a close code tell why."""
    await websocket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in websocket.scope["subprotocols"] else None)


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    shown = reason.encode()[:_REASON].decode(errors="ignore")
    with suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
        await websocket.close(code, shown)


async def _refuse(websocket: WebSocket, fault: Fault) -> None:
    problem = fault.problem
    await _close(websocket, _CLOSE_OF_STATUS.get(int(problem.status), BAD_REQUEST), problem.detail)


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


# ---------------------------------------------------------------- feeding a stream
Answer = dict[str, Any] | asyncio.Future[Ack]


@router.websocket("/streams/{name}/feed")
async def feed(websocket: WebSocket, name: str) -> None:
    """ndjson text frames and Arrow binary ones in, an ack or a problem per frame out, in the order of the frames."""
    service: Service = websocket.app.state.service
    await _open(websocket)
    try:
        stream = decoded(name)
        service.gate.check(websocket.headers, security.ingest(stream))
    except Fault as fault:
        await _refuse(websocket, fault)
        return
    answers: asyncio.Queue[Answer] = asyncio.Queue(_PENDING)
    await _first(_take_frames(websocket, service, stream, answers), _give_answers(websocket, answers))


async def _take_frames(websocket: WebSocket, service: Service, stream: str, answers: asyncio.Queue[Answer]) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        await answers.put(await _accepted(service, stream, message.get("text"), message.get("bytes")))


async def _accepted(service: Service, stream: str, text: str | None, data: bytes | None) -> Answer:
    """The frame's place in the log's queue, or the problem with it."""
    try:
        body = data or b"" if text is None else text.encode()
        if len(body) > service.settings.max_frame:
            raise Fault(too_large("frame", service.settings.max_frame))
        batch, key = await asyncio.to_thread(parse_frame, body, arrived=service.clock(), binary=text is None)
        while True:
            try:
                return asyncio.wrap_future(service.log.submit(stream, batch, key))
            except Overloaded:  # back-pressure: nothing more is read from this socket meanwhile
                await asyncio.sleep(0.01)
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
@dataclass(slots=True)
class Pace:
    """How a subscriber keeps up. `base` is the rank of its first solution, known once it has caught up with the log."""

    sent: int = 0
    last: str = ""
    base: int | None = None
    sending_since_s: float | None = None
    slow: bool = False

    def waited_s(self, now_s: float) -> float:
        return 0.0 if self.sending_since_s is None else now_s - self.sending_since_s

    def behind(self, count: int) -> int:
        """Solutions not yet sent to one that had caught up; one that still reads history is as far behind as it likes."""
        return 0 if self.base is None else count - self.base - self.sent


@router.websocket("/queries/{name}/feed")
async def subscribe(websocket: WebSocket, name: str, after: Annotated[str | None, Query()] = None) -> None:
    """Solutions after an id, then live; progress when idle."""
    service: Service = websocket.app.state.service
    await _open(websocket)
    try:
        query = decoded(name)
        service.gate.check(websocket.headers, security.read(query))
        registration = service.query(query)
    except Fault as fault:
        await _refuse(websocket, fault)
        return
    pace = Pace()
    await _first(_send_all(websocket, service, registration, after, pace), _until_closed(websocket), _watch(service, registration, pace))


async def _send_all(websocket: WebSocket, service: Service, registration: Registration, after: str | None, pace: Pace) -> None:
    try:
        async for word in follow(service, registration, after, service.settings.comment_s):
            match word:
                case Progress():
                    await _send(websocket, json.dumps(word.document()), pace)
                case Idle():
                    pass
                case End():
                    await _close(websocket, _CLOSE_OF_END[word], word.value)
                    return
                case page:
                    for line in page:
                        await _send(websocket, f'{{"solution":{line.text}}}', pace)
                        pace.sent, pace.last = pace.sent + 1, line.id
                        if pace.slow:
                            await _close(websocket, TOO_SLOW, pace.last)
                            return
                    await asyncio.sleep(0)  # sends into a buffer with room do not yield
                    continue
            if pace.base is None:
                pace.base = service.solutions.tally(registration.registered).count - pace.sent
    except ValueError as error:
        await _close(websocket, BAD_REQUEST, f"after: {error}")


async def _send(websocket: WebSocket, text: str, pace: Pace) -> None:
    pace.sending_since_s = asyncio.get_running_loop().time()
    await websocket.send_text(text)
    pace.sending_since_s = None


async def _until_closed(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass  # subscribers have nothing to say


async def _watch(service: Service, registration: Registration, pace: Pace) -> None:
    """Mark a subscriber that does not read, and end the wait for one that never will.

    Nothing is buffered for it but a page: what it misses is in the solution log.
    """
    settings, loop = service.settings, asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_WATCH_S)
        waited_s = pace.waited_s(loop.time())
        if waited_s > settings.stall_s:
            return
        if waited_s > settings.slow_after_s and not pace.slow:
            count = (await asyncio.to_thread(service.solutions.tally, registration.registered)).count
            pace.slow = pace.behind(count) > settings.buffer_solutions
