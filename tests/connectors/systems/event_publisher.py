"""A publisher of Server-Sent Events, which resumes by Last-Event-ID, ends its answers and breaks them off."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class EventPublisher:
    """Publishes events by their numbers, from the one after Last-Event-ID on.

    Each answer ends after `longest` events.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.longest, self.breaks_off = 1_000_000, False
        self.headers = {"Content-Type": "text/event-stream"}
        self.status = 200
        self.asked: list[dict[str, str]] = []
        self._stopping = threading.Event()
        publisher = self

        class EventHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = {name.lower(): value for name, value in self.headers.items()}
                publisher.asked.append(asked)
                self.send_response(publisher.status)
                for name, value in publisher.headers.items():
                    self.send_header(name, value)
                if publisher.breaks_off:
                    self.send_header("Content-Length", "1000000")
                self.end_headers()
                try:
                    self.wfile.write(b"retry: 10\n: hello\n\n")
                    self._send_events(int(asked.get("last-event-id", 0)))
                except OSError:
                    pass

            def _send_events(self, sent: int) -> None:
                until_number = sent + publisher.longest
                while not publisher._stopping.is_set() and sent < until_number:
                    for text in publisher.events[sent:until_number]:
                        sent += 1
                        self.wfile.write(text.replace("{id}", str(sent)).encode())
                    publisher._stopping.wait(0.005)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), EventHandler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
