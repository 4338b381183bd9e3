"""This module carries requests and frames over http.client and websockets, and waits in the calling thread.

The clients are the same code over this transport or over async_transport.py, which has the same methods.
"""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection as Connection
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from epsparql.connection.messages import ApiError, Closed
from epsparql.connection.tls import TrustedFile

SUBPROTOCOL = Subprotocol("epsparql.v1+json")
BATCHES = Subprotocol("epsparql.v1+ndjson")
"""With this subprotocol, which servers before 0.2 do not know, a frame holds many messages to a subscriber."""
_UNAVAILABLE = 503
_STANDBY = "standby-"  # the codes of servers that stand by begin so
_LOOK_S = 1.0
"""A request that waits looks so often whether another of several servers serves by now."""
_PING_S = 4.0
"""With several servers, a WebSocket's server has so much time to answer, and is asked so often."""
RESUMABLE = frozenset({1001, 1006, 1012, 1013, 4008})
"""After these close codes a connection is worth another try."""

__all__ = ["RESUMABLE", "SUBPROTOCOL", "Answer", "Connection", "OpenAnswer", "Transport", "raise_if_final"]

Answer = tuple[int, Mapping[str, str], bytes]


class OpenAnswer:
    """Holds an answer whose body has yet to be read, with its connection."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse, kept: socket.socket | None) -> None:
        """Hold them; `kept` is the connection's socket, which the connection forgets where the server will close it."""
        self._connection, self._response, self._socket = connection, response, kept
        self.status = response.status

    def headers(self) -> Mapping[str, str]:
        """Return the headers, with names in lower case."""
        return {name.lower(): value for name, value in self._response.getheaders()}

    def read(self) -> bytes:
        """Read the rest, and close. Raises: HTTPException; OSError."""
        try:
            return self._response.read()
        finally:
            self.close()

    def read_line(self) -> str:
        """Return the next line; empty where the answer ends. Raises: OSError where the connection breaks."""
        try:
            return self._response.readline().decode()
        except (HTTPException, ValueError) as error:
            raise ConnectionError(f"the answer broke off: {error!r}") from error

    def close(self) -> None:
        """Close the connection; a thread that reads from it ends at once."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._response.close()
        self._connection.close()


class Transport:
    """Sends requests and opens WebSockets, and waits in the calling thread."""

    def __init__(self, url: str, token: str | None, timeout_s: float, trust: TrustedFile | None = None) -> None:
        """Take a server's URL, or those of several servers with commas between them; without `trust`, the
        certificates that the system trusts count.
        """
        self._urls, self._turns = [each.strip().rstrip("/") for each in url.split(",")], 0
        self._timeout_s, self._trust = timeout_s, trust
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def url(self) -> str:
        """Return the URL of the server whose turn it is."""
        return self._urls[self._turns % len(self._urls)]

    @property
    def _address(self) -> SplitResult:
        return urlsplit(self.url)

    def turn(self) -> bool:
        """Turn to the next server after one that does not serve; return whether there are several."""
        self._turns += 1
        return len(self._urls) > 1

    def request(self, method: str, path: str, body: bytes | str | None, headers: Mapping[str, str]) -> Answer:
        """Return status, headers (names in lower case) and body of a request.

        Raises: ApiError from status 400 on; OSError where nothing answers.
        """
        try:
            answer = self._send_request(method, path, body, headers)
            return answer.status, answer.headers(), answer.read()
        except HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error

    def open_events(self, path: str, last: str | None) -> OpenAnswer:
        """Return an answer of Server-Sent Events, which continues after the event `last`. Raises: as `request`."""
        try:
            return self._send_request("GET", path, None, {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {}))
        except HTTPException as error:
            raise ConnectionError(f"GET {path}: {error!r}") from error

    def read_line(self, answer: OpenAnswer) -> str:
        return answer.read_line()

    def _send_request(self, method: str, path: str, body: bytes | str | None, headers: Mapping[str, str]) -> OpenAnswer:
        """Send a request to the server whose turn it is, or to the next one where a connection is refused, or a
        standby server answers: it did nothing.
        """
        for _ in self._urls[1:]:
            try:
                return self._send_once(method, path, body, headers)
            except ConnectionRefusedError:
                pass
            except ApiError as fault:
                if not fault.code.startswith(_STANDBY):
                    raise
        return self._send_once(method, path, body, headers)

    @contextmanager
    def _watched(self, connection: HTTPConnection) -> Iterator[None]:
        """End a connection from which no answer comes as soon as another server serves: that of the connection is
        paused, or has lost its store.
        """
        others = [url for url in self._urls if url != self.url]
        if not others:
            yield
            return
        over, guard = threading.Event(), threading.Lock()

        def watch() -> None:
            while not over.wait(_LOOK_S):
                if any(self._is_serving(url) for url in others):
                    with guard:
                        if not over.is_set() and connection.sock is not None:
                            connection.sock.shutdown(socket.SHUT_RDWR)
                    return

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            with guard:
                over.set()

    def _is_serving(self, url: str) -> bool:
        try:
            Transport(url, None, _LOOK_S, self._trust).request("GET", "/readyz", None, {})
        except (OSError, ApiError):
            return False
        return True

    def _send_once(self, method: str, path: str, body: bytes | str | None, headers: Mapping[str, str]) -> OpenAnswer:
        connection = (
            HTTPSConnection(self._address.netloc, timeout=self._timeout_s, context=self._tls())
            if self._address.scheme == "https"
            else HTTPConnection(self._address.netloc, timeout=self._timeout_s)
        )
        try:
            with self._watched(connection):
                connection.request(method, self._address.path + path, body.encode() if isinstance(body, str) else body, self._headers | dict(headers))
                kept = connection.sock
                answer = OpenAnswer(connection, connection.getresponse(), kept)
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | HTTPException):
                self.turn()
            raise
        if answer.status == _UNAVAILABLE:
            self.turn()
        if answer.status >= 400:
            raise ApiError(_problem_of(answer.status, answer.read()))
        return answer

    def dial(self, path: str) -> AbstractContextManager[Connection]:
        """Return a connection that is opened where its block begins.

        Raises there: OSError, InvalidHandshake or TimeoutError.
        """
        found: AbstractContextManager[Connection] = connect(self.socket_url(path), **self.socket_options())
        return found

    def receive(self, connection: Connection, timeout_s: float | None) -> str | bytes:
        """Return the next frame. Raises: TimeoutError; ConnectionClosed."""
        found: str | bytes = connection.recv(timeout=timeout_s)
        return found

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _tls(self) -> ssl.SSLContext | None:
        return None if self._trust is None else self._trust.context()

    def socket_url(self, path: str) -> str:
        return f"{'wss' if self._address.scheme == 'https' else 'ws'}://{self._address.netloc}{self._address.path}{path}"

    def socket_options(self) -> dict[str, Any]:
        common: dict[str, Any] = {"max_size": None, "compression": None, "open_timeout": 10, "proxy": None}
        if len(self._urls) > 1:
            common |= {"open_timeout": _PING_S, "ping_interval": _PING_S, "ping_timeout": _PING_S}
        if self._address.scheme == "https":
            common["ssl"] = self._tls()
        return common | {"subprotocols": [BATCHES, SUBPROTOCOL], "additional_headers": self._headers}


def raise_if_final(error: ConnectionClosed) -> None:
    """Raise Closed for a close that another try would only meet again."""
    received = error.rcvd
    if received is not None and received.code not in RESUMABLE:
        raise Closed(received.code, received.reason) from error


def _problem_of(status: int, content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"status": status, "code": "http", "detail": content.decode(errors="replace")[:500]}
