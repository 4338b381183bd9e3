"""Follows a stream of Server-Sent Events over HTTP.

A position is the id of an event. The connection after it sends that id as `Last-Event-ID`, and the other system
continues there. An event stream without ids can be read too, but what is sent while nobody is connected is lost.
"""

import queue
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from connectors.configuration import Connector
from connectors.errors import SystemFault
from connectors.inbound.source import Message, Source
from connectors.inbound.sse.event_stream_parser import EventStreamParser, EventTooLarge, ServerSentEvent
from connectors.inbound.sse.rdf_changes import write_events
from epsparql.events.media_types import NDJSON

MOST_BYTES = 16 << 20
"""An event has at most this many bytes."""
LONGEST_ID = 2048
"""An id has at most this many characters, as the positions of streams have."""
_EVENT_STREAM = "text/event-stream"
_ANSWER_S, _SILENCE_S, _LOOK_S = 30.0, 90.0, 0.05
_RETRY_S, _LONGEST_RETRY_S = 1.0, 60.0
_PIECES = 64  # so many pieces are read ahead, of the 64 KiB that httpx reads at most


class SseSource(Source):
    """Follows one event stream. It connects anew where the other system ends an answer."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._url, self._kind, self.has_positions = options["url"], options["event"], options["resume"]
        self._has_changes = options["rdf_changes"]
        self._headers = {"Accept": _EVENT_STREAM, "Accept-Encoding": "identity", "Cache-Control": "no-cache"}
        if "token" in credentials:
            self._headers["Authorization"] = f"Bearer {credentials['token']}"
        self._answer: _PieceReader | None = None
        self._parser = EventStreamParser("", MOST_BYTES)
        self._waiting = list[Message]()
        self._retry_s, self._again_s = _RETRY_S, 0.0

    def seek(self, position: str | None) -> None:
        self.close()
        self._parser, self._waiting, self._again_s = EventStreamParser(position or "", MOST_BYTES), [], 0.0

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        deadline = time.monotonic() + wait_s
        while not self._waiting and (left_s := deadline - time.monotonic()) > 0:
            if self._answer is not None:
                self._take_piece(self._answer, left_s)
            elif time.monotonic() >= self._again_s:
                self._answer = _PieceReader(self._url, self._headers | self._name_last_id())
            else:
                time.sleep(min(_LOOK_S, left_s))
        found, self._waiting = self._waiting[:most], self._waiting[most:]
        return found

    def _name_last_id(self) -> dict[str, str]:
        return {"Last-Event-ID": self._parser.last_id} if self._parser.last_id else {}

    def _take_piece(self, answer: "_PieceReader", wait_s: float) -> None:
        """Take the messages of the next piece; after the last one, connect anew after a pause. Raises: SystemFault."""
        try:
            piece = answer.read(wait_s)
            if piece is None:
                self.close()
                self._parser = EventStreamParser(self._parser.last_id, MOST_BYTES)
                self._again_s = time.monotonic() + self._retry_s
            else:
                self._waiting = [self._make_message(event) for event in self._parser.feed(piece) if self._kind in (None, event.kind)]
                self._retry_s = min(self._parser.retry_s or self._retry_s, _LONGEST_RETRY_S)
        except EventTooLarge:
            raise SystemFault(f"{self._url} has an event of more than {MOST_BYTES} bytes; ask its publisher for smaller events") from None

    def _make_message(self, event: ServerSentEvent) -> Message:
        """Return the message of an event. Raises: SystemFault for one that cannot be resumed after."""
        if self.has_positions and not event.has_own_id:
            raise SystemFault(
                f"{self._url} sends an event of the type {event.kind[:100]!r} without an id, so nothing can resume after it; name the type of "
                "those with ids as event, or set resume = false, and events that are sent while the connector is away are lost"
            )
        if self.has_positions and not 0 < len(event.id) <= LONGEST_ID:
            raise SystemFault(f"{self._url} sends an id of {len(event.id)} characters; ids have 1 to {LONGEST_ID}, unless resume = false")
        origin = f"event {event.kind!r}"
        if not self._has_changes:
            return Message(event.data, event.id, origin=origin)
        try:
            return Message(write_events(event.data), event.id, NDJSON, origin=origin)
        except ValueError as fault:  # the server refuses the message, and on_error says what becomes of it
            return Message(event.data, event.id, NDJSON, origin=f"{origin} that is no change of RDF ({str(fault)[:200]})")

    def close(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.close()


class _PieceReader:
    """Reads an answer in a thread, a bounded number of pieces ahead, so that its reader can stop waiting."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Connect. Raises: SystemFault."""
        import httpx

        self._url, self._pieces = url, queue.Queue[bytes | SystemFault | None](_PIECES)
        self._is_closed = threading.Event()
        self._client = httpx.Client(timeout=httpx.Timeout(_ANSWER_S, read=_SILENCE_S))
        try:
            self._answer = self._client.send(self._client.build_request("GET", url, headers=httpx.Headers(headers, encoding="utf-8")), stream=True)
            self._check_answer()
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            self._client.close()
            raise SystemFault(f"{url} does not answer: {str(fault) or type(fault).__name__}") from None
        except SystemFault:
            self._client.close()
            raise
        self._thread = threading.Thread(target=self._run, name="event stream", daemon=True)
        self._thread.start()

    def _check_answer(self) -> None:
        answer = self._answer
        if answer.has_redirect_location:
            raise SystemFault(f"{self._url} is redirected to {answer.headers['location']}; give that address as url")
        if answer.status_code != 200:
            raise SystemFault(f"{self._url} answers with {answer.status_code} {answer.reason_phrase}")
        kind, encoding = (answer.headers.get(name, "").partition(";")[0].strip().lower() for name in ("content-type", "content-encoding"))
        if kind != _EVENT_STREAM:
            raise SystemFault(f"{self._url} answers with {kind or 'no media type'} instead of {_EVENT_STREAM}")
        if encoding not in ("", "identity"):
            raise SystemFault(f"{self._url} answers with the Content-Encoding {encoding!r}, which was not asked for")

    def _run(self) -> None:
        import httpx

        last: SystemFault | None = None
        try:
            for piece in self._answer.iter_raw():
                if not self._put(piece):
                    return
        except httpx.ReadTimeout:
            pass  # a silent stream is asked again, lest its connection is dead
        except (httpx.HTTPError, httpx.StreamError) as fault:
            last = SystemFault(f"{self._url} breaks off: {str(fault) or type(fault).__name__}")
        self._put(last)

    def _put(self, piece: bytes | SystemFault | None) -> bool:
        """Hand on a piece, or what ended the answer; return whether the reader still wants it."""
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._pieces.put(piece, timeout=_LOOK_S)
                return True
        return False

    def read(self, wait_s: float) -> bytes | None:
        """Return the next piece, empty if none came in time; None after the last one. Raises: SystemFault."""
        try:
            piece = self._pieces.get(timeout=wait_s)
        except queue.Empty:
            return b""
        if isinstance(piece, SystemFault):
            raise piece
        return piece

    def close(self) -> None:
        """Disconnect. The thread ends at once, as its socket is shut down."""
        self._is_closed.set()
        with suppress(OSError, AttributeError, KeyError):
            self._answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(_ANSWER_S)
        self._client.close()
