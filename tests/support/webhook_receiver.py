"""A receiver of webhooks: a real HTTP server that answers as it is told."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = tuple[int, Mapping[str, str]]
OK: Answer = (204, {})
WORDS = "x-words"
"""An answer with this header has its value as the body."""


@dataclass(frozen=True, slots=True)
class Delivery:
    headers: Mapping[str, str]
    body: bytes

    @property
    def solution(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["data"]
        return found


class Receiver:
    """`answer` is called with the number of the request, from 0, and the delivery."""

    def __init__(self, answer: Callable[[int, Delivery], Answer]) -> None:
        self.answer = answer
        self.seen: list[Delivery] = []
        self.taken: list[Delivery] = []
        self.url = ""

    def take(self, delivery: Delivery) -> Answer:
        number = len(self.seen)
        self.seen.append(delivery)
        status, headers = self.answer(number, delivery)
        if 200 <= status < 300:
            self.taken.append(delivery)
        return status, headers


@contextmanager
def receiving(
    answer: Callable[[int, Delivery], Answer] = lambda _number, _delivery: OK, host: str = "127.0.0.1", port: int = 0
) -> Iterator[Receiver]:
    receiver = Receiver(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, headers = receiver.take(Delivery({name.lower(): value for name, value in self.headers.items()}, body))
            words = headers.get(WORDS, "").encode()
            self.send_response(status)
            for name, value in headers.items():
                if name != WORDS:
                    self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(words)))
            self.end_headers()
            self.wfile.write(words)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer((host, port), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        receiver.url = f"http://{host}:{server.server_port}/hook"
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
