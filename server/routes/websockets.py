"""Serves the two WebSockets: feeding a stream, and following a query (interfaces.md, WebSocket)."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import APIRouter, Query, Request, WebSocket, WebSocketDisconnect

from engine.messages import REVISED, Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import Gone, Overloaded, PipelineError
from pipeline.formats.body_parser import ARROW, NDJSON
from pipeline.formats.time_hints import time_hint
from pipeline.log import Ack
from pipeline.log.catalog import Registration
from pipeline.mapping.stream_body import SHORT, BodySettings, StreamBody, read_frame, read_together
from pipeline.solutions.json_encoder import Envelope
from server.dependencies import admit
from server.http.body_parsing import BodyBudget
from server.http.connection_limits import SOCKET
from server.http.path_names import decode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_exception, too_large
from server.http.query_parameters import check_parameters
from server.log_intake import LogIntake
from server.query_output.websocket_protocol import find_writer
from server.routes.streams.ingest import SMALL, get_stream_settings, undeclared_source_warning, unread_time_warning, wrong_unit_warning
from server.service import Service
from server.subscriptions.broadcast import BroadcastMember, encode_message
from server.subscriptions.delivery_progress import DeliveryProgress
from server.subscriptions.subscriber import BAD_REQUEST, UNKNOWN, Subscriber
from server.tokens.scopes import ingest_scope, instance_scope, read_scope

SUBPROTOCOL, BATCHES = "epsparql.v1+json", "epsparql.v1+ndjson"
"""With the second one, a frame to a subscriber holds one message or many, each on a line of its own."""
NO_TOKEN, NOT_ALLOWED, FULL = 4001, 4003, 1013
_CLOSE_OF_STATUS = {401: NO_TOKEN, 403: NOT_ALLOWED, 404: UNKNOWN, 429: FULL, 503: FULL}
_PENDING = 256  # so many frames may be unanswered; further ones wait in the socket
_REASON = 123  # bytes that a close frame holds
_AGAIN_S = 0.01
_TOGETHER = 128
"""So many frames that came at once are taken at once, and read together if all of them are short."""
_TURN_S = 0.0025
"""Short frames that come within this time share a turn, where their sender does not wait for the acks."""
_POLICIES = ("disconnect", "drop-oldest")

router = APIRouter()


# ---------------------------------------------------------------- opening and closing
async def _accept_connection(websocket: WebSocket, *spoken: str) -> str | None:
    """Accept the connection, with the first of the spoken subprotocols that is offered.

    Only after that can a close code give the reason.
    """
    chosen = next((each for each in spoken if each in websocket.scope["subprotocols"]), None)
    await websocket.accept(subprotocol=chosen)
    return chosen


async def _close_connection(websocket: WebSocket, code: int, reason: str) -> None:
    shown = reason.encode()[:_REASON].decode(errors="ignore")
    with suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
        await websocket.close(code, shown)


async def _refuse_connection(websocket: WebSocket, fault: Fault) -> None:
    problem = fault.problem.redact(all_names=getattr(websocket.state, "all_names", False))
    expected = f"; expected {problem.expected}" if problem.status == HTTPStatus.BAD_REQUEST and problem.expected else ""
    await _close_connection(websocket, _CLOSE_OF_STATUS.get(int(problem.status), BAD_REQUEST), problem.detail + expected)


async def _run_until_first(*work: Awaitable[Any]) -> None:
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
@router.get("/queries/{name}/instances/{instance}/feed", include_in_schema=False)
async def no_socket(request: Request) -> None:
    """Refuse plain HTTP where a WebSocket is expected."""
    path = request.url.path.removesuffix("/feed")
    instead = "POST to" if path.startswith("/streams/") else "GET"
    detail = f"this is a WebSocket ({SUBPROTOCOL}); without one {instead} {path}/events"
    raise Fault(Problem(HTTPStatus.UPGRADE_REQUIRED, "upgrade-required", detail, headers={"Upgrade": "websocket"}))


# ---------------------------------------------------------------- feeding a stream
class PendingAck(NamedTuple):
    """Holds a frame that is in the log's queue, and the warning for its sender.

    `held` of its bytes count among those of bodies until the answer.
    """

    ack: Future[Ack]
    warning: str | None
    held: int


class _AckMessage(msgspec.Struct, omit_defaults=True, gc=False):
    """Represents the answer to a frame that is durable."""

    ack: int
    accepted: int
    late: int = 0
    rejected: int = 0
    duplicate: bool = False
    warning: str | None = None


Answer = dict[str, Any] | PendingAck


@dataclass(slots=True, eq=False)
class _Answers:
    """Queues the answers of a connection in the order of its frames, of which _PENDING may be unanswered."""

    bodies: BodyBudget
    intake: LogIntake
    _unsent: deque[Answer] = field(default_factory=deque)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def any_unsent(self) -> bool:
        return bool(self._unsent)

    async def wait_for_room(self, frames: int = 1) -> None:
        """Wait until so many more frames may be unanswered."""
        while len(self._unsent) + frames > _PENDING:
            self._sent.clear()
            await self._sent.wait()

    def add(self, *answers: Answer) -> None:
        self._unsent.extend(answers)
        self._news.set()

    async def take_done(self) -> list[bytes]:
        """Wait for the first answer, and take it with those after it that are done too, as frames."""
        while not self._unsent:
            self._news.clear()
            await self._news.wait()
        first, done = self._unsent[0], list[bytes]()
        if isinstance(first, PendingAck):
            await self.intake.wait_for(first.ack)
        while self._unsent and (isinstance(answer := self._unsent[0], dict) or answer.ack.done()):
            self._unsent.popleft()
            if isinstance(answer, PendingAck):
                self.bodies.release_bytes(answer.held)
                done.append(_encode_answer(answer))
            else:
                done.append(encode_message(answer))
        self._sent.set()
        return done

    def abandon(self) -> None:
        """Release what the frames hold once they are written, although their sender has gone."""
        for answer in self._unsent:
            if isinstance(answer, PendingAck):
                _watch_ack(answer.ack).add_done_callback(partial(_release_frame, self.bodies, answer.held))


@router.websocket("/streams/{name}/feed")
async def feed(websocket: WebSocket, name: str) -> None:
    """Take text frames of ndjson, CSV or JSON, and binary frames of Arrow.

    Send an ack or a problem for each, in the order of the frames.
    """
    service: Service = websocket.app.state.service
    await _accept_connection(websocket, SUBPROTOCOL)
    try:
        stream = decode_name(name)
        await admit(websocket, service, ingest_scope(stream))
        check_parameters(websocket)
        with service.admission.connections.count_feeder():
            answers = _Answers(service.admission.bodies, service.intake)
            try:
                await _run_until_first(_take_frames(websocket, service, stream, answers), _send_answers(websocket, answers))
            finally:
                answers.abandon()
    except Fault as fault:
        await _refuse_connection(websocket, fault)


async def _take_frames(websocket: WebSocket, service: Service, stream: str, answers: _Answers) -> None:
    writer, loop = find_writer(websocket.scope), asyncio.get_running_loop()
    waits_for_acks, turn_s = True, loop.time()
    while True:
        first = await websocket.receive()
        waits_for_acks = waits_for_acks and not answers.any_unsent
        short = len(first.get("text") or first.get("bytes") or b"") <= SHORT  # of longer ones, only one is received at a time
        if short and not waits_for_acks and (early_s := turn_s - loop.time()) > 0:
            await asyncio.sleep(early_s)
        turn_s = loop.time() + _TURN_S
        messages = [first, *writer.take_received(_TOGETHER - 1)]
        frames = [(message.get("text"), message.get("bytes")) for message in messages if message["type"] == "websocket.receive"]
        if not await _submit_together(service, stream, frames, answers):
            for text, data in frames:
                body = data or b"" if text is None else text.encode()
                await answers.wait_for_room()
                answers.add(await accept_frame(service, stream, body, binary=text is None))
        if len(frames) < len(messages):  # the last one says that the client has left
            return
        if len(frames) > 1 and not waits_for_acks and (early_s := turn_s - loop.time()) > 0:
            await writer.rest(early_s)


async def _submit_together(service: Service, stream: str, frames: Sequence[tuple[str | None, bytes | None]], answers: _Answers) -> bool:
    """Submit short text frames that came at once, in the time of a few.

    Returns False where each is to be read by itself.
    """
    bodies, arrived = [text.encode() for text, _ in frames if text is not None and len(text) <= SHORT], service.clock()
    settings = get_stream_settings(service, stream)
    if len(bodies) < max(len(frames), 2) or settings.base or settings.mapping or max(map(len, bodies)) > service.settings.max_frame:
        return False
    batches = read_together(bodies, arrived)
    if batches is None:
        return False
    await _wait_for_runner(service)
    await answers.wait_for_room(len(bodies))
    await service.admission.bodies.reserve_frame(sum(map(len, bodies)))
    begin = 0
    try:
        warning = undeclared_source_warning(service, stream, None)
        while begin < len(bodies):
            try:
                submitted = service.intake.submit_all(stream, batches[begin:], arrived)
            except Overloaded:  # as in `_submit_frame`
                await asyncio.sleep(_AGAIN_S)
                continue
            answers.add(*(PendingAck(ack, warning, len(body)) for ack, body in zip(submitted, bodies[begin:], strict=False)))
            begin += len(submitted)
    except PipelineError as error:
        answers.add(*[{"error": describe_exception(error).document()}] * (len(bodies) - begin))
    finally:
        service.admission.bodies.release_bytes(sum(map(len, bodies[begin:])))  # those that are queued count until they are answered
    return True


async def _wait_for_runner(service: Service) -> None:
    while service.admission.backlog:
        await service.notifier.wait_for_news(service.notifier.generation, 1.0)


async def accept_frame(service: Service, stream: str, body: bytes, *, binary: bool) -> Answer:
    """Return the frame's place in the log's queue, or the problem with it.

    Its bytes count among those of bodies until it is durable; those of a small one, until it is answered.
    """
    size = len(body)
    if size > service.settings.max_frame:
        return {"error": too_large("frame", service.settings.max_frame).document()}
    await service.admission.bodies.reserve_frame(size)
    try:
        pending = await _submit_frame(service, stream, body, binary=binary)
    except BaseException as error:
        service.admission.bodies.release_bytes(size)
        if isinstance(error, Fault | PipelineError):
            return {"error": describe_exception(error).document()}
        raise
    if size > SMALL:  # whoever does not read the answers would hold as much as hundreds of frames
        _watch_ack(pending.ack).add_done_callback(partial(_release_frame, service.admission.bodies, size))
        return pending._replace(held=0)
    return pending


def _watch_ack(ack: Future[Ack]) -> asyncio.Future[Ack]:
    """Return the ack for the event loop. Nobody need take its exception."""
    watched = asyncio.wrap_future(ack)
    watched.add_done_callback(asyncio.Future.exception)
    return watched


async def _submit_frame(service: Service, stream: str, body: bytes, *, binary: bool) -> PendingAck:
    """Parse the frame, and put it into the log's queue. Raises: Fault, PipelineError."""
    await _wait_for_runner(service)
    parse = partial(_parse_frame, body, get_stream_settings(service, stream), service.clock(), binary=binary)
    parsed = parse() if len(body) <= SMALL else await asyncio.to_thread(parse)
    while True:
        try:
            found = parsed.found
            submitted = service.intake.submit(stream, found.mapped, found.key, found.source, parsed.arrived)
            return PendingAck(
                submitted,
                undeclared_source_warning(service, stream, found.source) or parsed.warning or wrong_unit_warning(service, stream),
                len(body),
            )
        except Overloaded:  # back-pressure: nothing more is read from this socket meanwhile
            await asyncio.sleep(_AGAIN_S)


class ParsedFrame(NamedTuple):
    """Holds what a frame brings, its time of arrival and the warning for its sender."""

    found: StreamBody
    arrived: Micros
    warning: str | None


def _parse_frame(body: bytes, settings: BodySettings, arrived: Micros, *, binary: bool) -> ParsedFrame:
    found = read_frame(body, settings, arrived=arrived, binary=binary)
    name = time_hint(body, ARROW if binary else NDJSON, found.mapped.batch, arrived)
    warning = None if name is None else unread_time_warning(name, "frame", "give each event its 'at'")
    return ParsedFrame(found, arrived, warning)


async def _send_answers(websocket: WebSocket, answers: _Answers) -> None:
    """Send the answers in the order of the frames, those that are there at once in one write."""
    writer = find_writer(websocket.scope)
    while True:
        done = await answers.take_done()
        await writer.wait_for_room()
        writer.write_frames(b"".join(done))


def _release_frame(bodies: BodyBudget, held: int, _: asyncio.Future[Ack]) -> None:
    bodies.release_bytes(held)


def _encode_answer(pending: PendingAck) -> bytes:
    """Return the answer to a frame that is durable, or was refused, as a frame."""
    try:
        ack = pending.ack.result()
    except PipelineError as error:
        return encode_message({"error": describe_exception(error).document()})
    return encode_message(_AckMessage(ack.offset, ack.accepted, ack.late, ack.rejected, ack.duplicate, pending.warning))


# ---------------------------------------------------------------- following a query
@router.websocket("/queries/{name}/feed")
async def subscribe(
    websocket: WebSocket, name: str, after: Annotated[str | None, Query()] = None, policy: Annotated[str, Query()] = "disconnect"
) -> None:
    """Send the solutions after an id, then new ones as they come, and progress when idle."""
    await _subscribe(websocket, name, None, after, policy)


@router.websocket("/queries/{name}/instances/{instance}/feed")
async def subscribe_instance(
    websocket: WebSocket, name: str, instance: str, after: Annotated[str | None, Query()] = None, policy: Annotated[str, Query()] = "disconnect"
) -> None:
    """Send the solutions of one instance, as `subscribe` does those of a query."""
    await _subscribe(websocket, name, instance, after, policy)


async def _subscribe(websocket: WebSocket, name: str, instance: str | None, after: str | None, policy: str) -> None:
    service: Service = websocket.app.state.service
    chosen = await _accept_connection(websocket, BATCHES, SUBPROTOCOL)
    try:
        query, own = decode_name(name), None if instance is None else decode_name(instance)
        await admit(websocket, service, read_scope(query) if own is None else instance_scope(query, own), read_scope(query))
        check_parameters(websocket)
        registration = service.catalog.get_query(query)
        life = None if own is None else service.catalog.get_life(registration, own)
        if life is not None and policy != _POLICIES[0]:
            raise bad_request("invalid-parameter", "the feed of an instance leaves nothing out", expected=_POLICIES[0], query=query)
        if policy not in _POLICIES:
            raise bad_request("invalid-parameter", f"policy cannot be {policy!r}", expected=" or ".join(_POLICIES))
        if registration.emit == REVISED and policy != _POLICIES[0]:
            raise bad_request("invalid-parameter", "no change of a revised query may be left out", expected=_POLICIES[0], query=query)
        envelope, writer = Envelope.MESSAGE if chosen == BATCHES else Envelope.FRAME, find_writer(websocket.scope)
        member = BroadcastMember(writer, DeliveryProgress(registration.registered, writer.abort, after or ""), envelope, life)
        await _run_subscriber(websocket, registration, member, drops=policy == "drop-oldest")
    except Fault as fault:
        await _refuse_connection(websocket, fault)


async def _run_subscriber(websocket: WebSocket, registration: Registration, member: BroadcastMember, *, drops: bool) -> None:
    state = websocket.app.state
    service: Service = state.service
    member.writer.ignore_messages()  # the protocol has no messages from subscribers
    with (
        service.admission.connections.count_follower(SOCKET, registration.registered),
        service.notifier.follow_query(registration),
        state.monitor.watch_delivery(member.delivery),
    ):
        try:
            code, reason = await Subscriber(service, registration, state.broadcasts, member, drops).run()
        except (ValueError, Gone) as error:
            code, reason = BAD_REQUEST, f"after: {error}"
        except WebSocketDisconnect:
            return
        await _close_connection(websocket, code, reason)
