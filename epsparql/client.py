"""This module is a small client of the server (for asyncio: async_client.py).

It registers queries, feeds streams, follows solutions, and takes up where a broken connection left off.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

SUBPROTOCOL = Subprotocol("epsparql.v1+json")
RESUMABLE = frozenset({1001, 1006, 1012, 1013, 4008})
"""After these close codes a connection is worth another try."""


class ApiError(Exception):
    """Carries the server's problem document for a request or a frame."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem

    @property
    def status(self) -> int:
        return int(self.problem.get("status", 0))

    @property
    def code(self) -> str:
        return str(self.problem.get("code", ""))

    def __str__(self) -> str:
        place = f"line {self.problem['line']}, column {self.problem.get('column')}: " if "line" in self.problem else ""
        return f"{self.status} {self.code}: {place}{self.problem.get('detail', '')}"


class Unreachable(Exception):
    """The server did not answer within the client's patience."""


class Closed(Exception):
    """The server closed a WebSocket for good; `code` says why (interfaces.md)."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return f"closed with {self.code}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Solution:
    """Represents a solution as the server sends it: `binding` of a SELECT, `triples` (N-Triples) of a CONSTRUCT or DESCRIBE, `boolean` of an ASK."""

    query: str
    id: str
    start: str
    end: str
    binding: Mapping[str, Mapping[str, str]] | None
    triples: str | None
    boolean: bool | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Says that no solution with an `end` below `watermark` will follow; with `finished`, none at all."""

    watermark: str
    finished: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """Says that a subscriber with the policy `drop-oldest` was too slow for some solutions.

    There are `missed` of them, beyond the id `after`, up to the id `resume`.
    """

    after: str
    resume: str
    missed: int


@dataclass(frozen=True, slots=True)
class Source:
    """Says where a body comes from: it takes the source `id` from the position `after` (None: from its beginning) to `position`.

    The server accepts it once. With `position` None the stream forgets the source; `reset` accepts the body whatever position is stored.
    """

    id: str
    after: str | None
    position: str | None
    reset: bool = False

    def to_json(self) -> str:
        """Return the value of the header Epsparql-Source, in ASCII."""
        found = {"id": self.id, "after": self.after, "position": self.position}
        return json.dumps(found | {"reset": True} if self.reset else found)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Says what the server accepted.

    `offset` is the log position after the events; a `duplicate` was accepted before, as its source position says.
    `warning`, if any, tells of a time in the body that was not read as the events' own, or of a source that the stream does not declare.
    """

    offset: int
    accepted: int
    late: int
    warning: str = ""
    duplicate: bool = False


class Client:
    """Sends requests to a server. `patience_s` is how long it goes on trying to reach a server that does not answer, restarts included."""

    def __init__(self, url: str, token: str | None = None, patience_s: float = 60.0) -> None:
        self._url = urlsplit(url.rstrip("/"))
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.patience_s = patience_s

    # ------------------------------------------------------------ requests
    def request(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers (names in lower case) and body of a request. Raises: ApiError from status 400 on; OSError where nothing answers."""
        secure = self._url.scheme == "https"
        connection = (HTTPSConnection if secure else HTTPConnection)(self._url.netloc, timeout=self.patience_s + 30)
        sent = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, self._url.path + path, body.encode() if isinstance(body, str) else body, sent)
            response = connection.getresponse()
            content = response.read()
        except HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise ApiError(_problem(response.status, content))
        return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    def _json(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = None if document is None else json.dumps(document)
        _, _, content = self.request(method, path, body, **({"Content_Type": "application/json"} if document is not None else {}))
        found: dict[str, Any] = json.loads(content) if content else {}
        return found

    def wait_ready(self, within_s: float | None = None) -> None:
        """Return when the server and its runner are up. Raises: Unreachable."""
        deadline = time.monotonic() + (self.patience_s if within_s is None else within_s)
        last: Exception | None = None
        while time.monotonic() < deadline:
            try:
                self.request("GET", "/readyz")
                return
            except (OSError, ApiError) as error:
                last = error
                if isinstance(error, ApiError) and "failed" in str(error):
                    break
            time.sleep(0.1)
        raise Unreachable(f"{self._url.geturl()} is not ready: {last}")

    # ------------------------------------------------------------ streams and queries
    def create_stream(self, name: str, **settings: str | float | Sequence[str] | Mapping[str, Any] | None) -> dict[str, Any]:
        return self._json("PUT", f"/streams/{segment(name)}", settings)

    def stream(self, name: str) -> dict[str, Any]:
        return self._json("GET", f"/streams/{segment(name)}")

    def finish(self, name: str) -> dict[str, Any]:
        return self._json("POST", f"/streams/{segment(name)}/finish")

    def sources(self, name: str) -> dict[str, str | None]:
        """Return the position of each source of a stream, from which to read on; None for a declared one without a position."""
        return {each["id"]: each["position"] for each in self._json("GET", f"/streams/{segment(name)}/sources")["sources"]}

    def send(
        self,
        name: str,
        body: bytes | str,
        media_type: str = "application/x-ndjson",
        *,
        key: str | None = None,
        source: Source | None = None,
        **query: str,
    ) -> Accepted:
        """Send one body of events by POST; return when it is durable.

        Raises: ApiError; with the code `source-conflict`, `problem["source"]["position"]` is where the source stands.
        """
        path = f"/streams/{segment(name)}/events" + (f"?{urlencode(query)}" if query else "")
        headers = ({"Idempotency_Key": key} if key else {}) | ({"Epsparql_Source": source.to_json()} if source else {})
        _, _, content = self.request("POST", path, body, Content_Type=media_type, **headers)
        found = json.loads(content)
        return Accepted(found["offset"], found["accepted"], found.get("late", 0), found.get("warning", ""), found.get("duplicate", False))

    def register(self, name: str, query: str, *, replace: bool = False, start: str | int = "now", **options: str) -> dict[str, Any]:
        """Register a query; `start` is now, beginning, or the log's offset from which the query reads."""
        path = f"/queries/{segment(name)}" + ("?replace=true" if replace else "")
        return self._json("PUT", path, {"query": query, "from": start, **options})

    def query(self, name: str) -> dict[str, Any]:
        return self._json("GET", f"/queries/{segment(name)}")

    def queries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._json("GET", "/queries")["queries"]
        return found

    def pause(self, name: str) -> dict[str, Any]:
        return self._json("POST", f"/queries/{segment(name)}/pause")

    def resume(self, name: str) -> dict[str, Any]:
        return self._json("POST", f"/queries/{segment(name)}/resume")

    def drop(self, name: str) -> None:
        self._json("DELETE", f"/queries/{segment(name)}")

    def solutions(self, name: str, *, after: str | None = None, limit: int = 1000, wait_s: float = 0.0) -> list[Solution]:
        """Return a page of solutions after an id; wait up to `wait_s` seconds for a first one."""
        query = {"limit": str(limit), "wait": str(wait_s)} | ({"after": after} if after else {})
        _, _, content = self.request("GET", f"/queries/{segment(name)}/solutions?{urlencode(query)}", Accept="application/x-ndjson")
        return [solution_of(json.loads(line)) for line in content.splitlines()]

    # ------------------------------------------------------------ WebSockets
    def feed(self, stream: str, *, window: int = 256) -> "Feed":
        """Return a connection for events; up to `window` frames may await their acks."""
        return Feed(self, f"/streams/{segment(stream)}/feed", window)

    def follow(self, query: str, *, after: str | None = None, policy: str = "disconnect") -> "Subscription":
        """Follow a query's solutions after an id (from the first one without), and as they come. `policy` may be `drop-oldest`."""
        return Subscription(self, query, after, policy)

    def socket(self, path: str) -> AbstractContextManager[ClientConnection]:
        """Return a connection that is opened where its block begins. Raises there: OSError, InvalidHandshake or TimeoutError."""
        found: AbstractContextManager[ClientConnection] = connect(self.socket_url(path), **self.socket_options())
        return found

    def socket_url(self, path: str) -> str:
        return f"{'wss' if self._url.scheme == 'https' else 'ws'}://{self._url.netloc}{self._url.path}{path}"

    def socket_options(self) -> dict[str, Any]:
        common = {"max_size": None, "compression": None, "open_timeout": 10, "proxy": None}
        return common | {"subprotocols": [SUBPROTOCOL], "additional_headers": self._headers}

    def retry(self, attempt: Callable[[], None]) -> None:
        """Call `attempt` until it succeeds. Raises: Unreachable once patience is over; Closed."""
        deadline, pause_s = time.monotonic() + self.patience_s, 0.05
        while True:
            try:
                attempt()
                return
            except (OSError, InvalidHandshake, ConnectionClosed) as error:
                if time.monotonic() + pause_s > deadline:
                    raise Unreachable(f"{self._url.geturl()} does not answer: {error}") from error
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 1.0)


def from_source(frame: str, source: Source | None) -> str:
    """Return a frame with the line that names its source."""
    return frame if source is None else f'{{"source": {source.to_json()}}}\n{frame}'


def segment(name: str) -> str:
    """Return a name as one path segment."""
    return quote(name, safe="")


def solution_of(document: Mapping[str, Any]) -> Solution:
    times = document["query"], document["id"], document["start"], document["end"]
    return Solution(*times, document.get("binding"), document.get("triples"), document.get("boolean"))


def _problem(status: int, content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"status": status, "code": "http", "detail": content.decode(errors="replace")[:500]}


def raise_if_final(error: ConnectionClosed) -> None:
    """Raise Closed for a close that another try would only meet again."""
    received = error.rcvd
    if received is not None and received.code not in RESUMABLE:
        raise Closed(received.code, received.reason) from error


class _Socket:
    """Keeps a WebSocket that can be opened again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection: ClientConnection | None = None
        self._open = ExitStack()

    def _dial(self, path: str) -> ClientConnection:
        """Attempt once to open a new connection in place of the old one."""
        self.close()
        self._connection = self._open.enter_context(self._client.socket(path))
        return self._connection

    def close(self) -> None:
        self._connection = None
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Feed(_Socket):
    """Sends frames of ndjson, which are answered in order. Frames without an answer are sent again after a reconnect: a repeat is no second event.

    `acked` is the newest acknowledged log position, `answered` the number of frames that were answered.
    """

    def __init__(self, client: Client, path: str, window: int) -> None:
        super().__init__(client)
        self._path, self._window = path, window
        self._pending: deque[str] = deque()
        self.acked, self.answered = 0, 0

    def send(self, frame: str, *, source: Source | None = None) -> None:
        """Send one frame; wait while `window` frames are unanswered.

        Raises: ApiError for a refused frame (the later ones go on); Unreachable; Closed.
        """
        frame = from_source(frame, source)
        self._pending.append(frame)
        try:
            if self._connection is None:
                self._reopen()
            else:
                self._connection.send(frame)
        except ConnectionClosed as error:
            raise_if_final(error)
            self._reopen()
        self._take_answers(down_to=self._window)

    def flush(self) -> int:
        """Wait until every frame is answered; return `acked`. Raises: as `send`."""
        self._take_answers(down_to=0)
        return self.acked

    def _reopen(self) -> None:
        self._client.retry(self._connect)

    def _connect(self) -> None:
        connection = self._dial(self._path)
        try:
            for frame in self._pending:
                connection.send(frame)
        except ConnectionClosed as error:
            raise_if_final(error)
            raise

    def _take_answers(self, down_to: int) -> None:
        """Take the answers that are there, and those needed to leave at most `down_to` frames unanswered."""
        while self._pending:
            try:
                if self._connection is None:
                    self._reopen()
                assert self._connection is not None
                answer = self._connection.recv(timeout=None if len(self._pending) > down_to else 0)
            except TimeoutError:
                return
            except ConnectionClosed as error:
                raise_if_final(error)
                self._reopen()
                continue
            self._answered(json.loads(answer))

    def _answered(self, answer: Mapping[str, Any]) -> None:
        self._pending.popleft()
        self.answered += 1
        if "error" in answer:
            raise ApiError(answer["error"])
        self.acked = int(answer["ack"])


Word = Solution | Progress | Gap


class SubscriptionCursor:
    """Remembers how far a subscription is: `last` is the id of the newest solution received, where to resume."""

    def __init__(self, query: str, after: str | None, policy: str) -> None:
        self._query, self.last, self._policy = query, after, policy

    @property
    def path(self) -> str:
        parameters = {"policy": self._policy} | ({"after": self.last} if self.last else {})
        return f"/queries/{segment(self._query)}/feed?{urlencode(parameters)}"

    def told(self, message: Mapping[str, Any]) -> Word | None:
        """Return what a message says; None for a message of a kind that is not known."""
        if "solution" in message:
            solution = solution_of(message["solution"])
            self.last = solution.id
            return solution
        if "gap" in message:
            gap = Gap(**message["gap"])
            self.last = gap.resume
            return gap
        if "progress" in message:
            return Progress(message["progress"]["watermark"], bool(message["progress"].get("finished")))
        return None


class Subscription(_Socket, SubscriptionCursor):
    """Gives solutions in order, each once, across reconnects."""

    def __init__(self, client: Client, query: str, after: str | None, policy: str) -> None:
        _Socket.__init__(self, client)
        SubscriptionCursor.__init__(self, query, after, policy)

    def next(self, timeout_s: float | None = None) -> Word | None:
        """Return the next message; None after `timeout_s`. Raises: Closed when the server ends it; Unreachable."""
        while True:
            try:
                if self._connection is None:
                    self._client.retry(self._connect)
                assert self._connection is not None
                message = json.loads(self._connection.recv(timeout=timeout_s))
            except TimeoutError:
                return None
            except ConnectionClosed as error:
                raise_if_final(error)
                self.close()
                continue
            word = self.told(message)
            if word is not None:
                return word

    def open(self) -> None:
        """Connect now rather than at the first `next`."""
        if self._connection is None:
            self._client.retry(self._connect)

    def _connect(self) -> None:
        self._dial(self.path)

    def __iter__(self) -> Iterator[Solution]:
        """Iterate over solutions until the stream's end: progress `finished`, or a normal close."""
        while True:
            try:
                word = self.next()
            except Closed as closed:
                if closed.code == 1000:
                    return
                raise
            if isinstance(word, Solution):
                yield word
            elif isinstance(word, Progress) and word.finished:
                return
