"""The two WebSockets: feeding a stream, and following a query (interfaces.md, WebSocket)."""

import asyncio
import json
from collections.abc import Awaitable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, WebSocket, WebSocketDisconnect

from pipeline.catalogue import Registration
from pipeline.errors import Gone, Overloaded, PipelineError
from pipeline.formats import parse_frame
from pipeline.log import Ack
from server import security
from server.names import decoded
from server.paces import Pace, Watch
from server.pages import Page
from server.problems import Fault, bad_request, of_exception, too_large
from server.progress import Progress
from server.seats import SOCKET
from server.service import Service
from server.subscriptions import End, Idle, follow

SUBPROTOCOL = "epsparql.v1+json"
NO_TOKEN, NOT_ALLOWED, UNKNOWN, TOO_SLOW, RESTART, NORMAL, BAD_REQUEST, FAILED, FULL = 4001, 4003, 4004, 4008, 1012, 1000, 1008, 1011, 1013
_CLOSE_OF_STATUS = {401: NO_TOKEN, 403: NOT_ALLOWED, 404: UNKNOWN, 429: FULL}
_CLOSE_OF_END = {End.STOPPING: RESTART, End.DROPPED: UNKNOWN, End.COMPLETED: NORMAL, End.FAILED: FAILED}
_PENDING = 256  # frames read and not yet answered; further ones wait in the socket
_REASON = 123  # bytes that a close frame holds
_AGAIN_S = 0.01
_POLICIES = ("disconnect", "drop-oldest")

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
        websocket.state.who = service.gate.check(websocket.headers, security.ingest(stream))
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
    """The frame's place in the log's queue, or the problem with it."""
    try:
        body = data or b"" if text is None else text.encode()
        if len(body) > service.settings.max_frame:
            raise Fault(too_large("frame", service.settings.max_frame))
        while service.overtaxed:
            await service.news(service.generation, 1.0)
        batch, key = await asyncio.to_thread(parse_frame, body, arrived=service.clock(), binary=text is None)
        while True:
            try:
                return asyncio.wrap_future(service.log.submit(stream, batch, key))
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
    """Solutions after an id, then live; progress when idle."""
    service: Service = websocket.app.state.service
    watch: Watch = websocket.app.state.watch
    await _open(websocket)
    try:
        query = decoded(name)
        websocket.state.who = service.gate.check(websocket.headers, security.read(query))
        registration = service.query(query)
        if policy not in _POLICIES:
            raise bad_request("invalid-parameter", f"policy cannot be {policy!r}", expected=" or ".join(_POLICIES))
        with service.seats.follower(SOCKET, registration.registered), watch.over(registration.registered) as pace:
            subscriber = _Subscriber(websocket, service, registration, pace, policy == "drop-oldest")
            await _first(subscriber.run(after), _until_closed(websocket), pace.stalled.wait())
    except Fault as fault:
        await _refuse(websocket, fault)


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """`drops` says what becomes of it when it is slow: it loses the oldest solutions, rather than the connection."""

    websocket: WebSocket
    service: Service
    registration: Registration
    pace: Pace
    drops: bool

    async def run(self, after: str | None) -> None:
        try:
            while (after := await self._follow(after)) is not None:
                pass
        except (ValueError, Gone) as error:
            await _close(self.websocket, BAD_REQUEST, f"after: {error}")

    async def _follow(self, after: str | None) -> str | None:
        """Until the subscription ends; or, beyond a gap, the id to go on after."""
        pace = self.pace
        async with aclosing(follow(self.service, self.registration, after, self.service.settings.comment_s)) as words:
            async for word in words:
                match word:
                    case Progress():
                        await self._send(json.dumps(word.document()))
                    case Idle():
                        pass
                    case End():
                        await _close(self.websocket, _CLOSE_OF_END[word], word.value)
                        return None
                    case page:
                        await self._send_page(page)
                        if pace.slow:
                            if self.drops:
                                return await self._skip()
                            await _close(self.websocket, TOO_SLOW, pace.last)
                            return None
                        await asyncio.sleep(0)  # sends into a buffer with room do not yield
                        continue
                if pace.base is None:
                    pace.base = self.service.solutions.tally(self.registration.registered).count - pace.sent
        return None

    async def _send_page(self, page: Page) -> None:
        pace = self.pace
        for line in page:
            await self._send(line.message)
            pace.sent, pace.last = pace.sent + 1, line.id
            self.service.seats.sent[SOCKET] += 1
            if pace.slow:
                return

    async def _send(self, text: str) -> None:
        self.pace.sending_since_s = asyncio.get_running_loop().time()
        await self.websocket.send_text(text)
        self.pace.sending_since_s = None

    async def _skip(self) -> str:
        """Leave out all but what the buffer holds, and say so."""
        pace, kept = self.pace, self.service.settings.buffer_solutions
        assert pace.base is not None, "who has not caught up is not slow"
        resume, rank = await asyncio.to_thread(self.service.solutions.before_last, self.registration.registered, kept)
        missed = rank - pace.base - pace.sent
        pace.slow = False
        if resume is None or missed <= 0:
            return pace.last
        pace.sent += missed
        await self._send(json.dumps({"gap": {"after": pace.last, "resume": resume, "missed": missed}}))
        return resume


async def _until_closed(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass  # subscribers have nothing to say
