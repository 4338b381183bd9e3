"""How requests are told from one another on a connection: what is refused, what is ignored, and that all is answered
in order.
"""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import Server

from tests.server.access.test_short_posts import HEAD, LINE, connected, post
from tests.server.conftest import serving, until

GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"POST /streams/%b/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n%b\r\n%b"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with serving(tmp_path_factory.mktemp("connections") / "data", header_s=1.0) as url:
        parts = urlsplit(url)
        yield str(parts.hostname), int(parts.port or 80)


def chunks(*contents: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in (*contents, b""))


REFUSED = [
    pytest.param(HEAD[:-4] % (b"a", b"Transfer-Encoding: chunked\r\n", 5) + b"\r\n\r\n0\r\n\r\n", id="a length and chunks"),
    pytest.param(CHUNKED % (b"a", b"Content-Length: 5\r\n", chunks(LINE)), id="chunks and a length"),
    pytest.param(post(b"a", more=b"Content-Length: %d\r\n" % len(LINE)), id="two lengths"),
    pytest.param(post(b"a").replace(b"Content-Length: ", b"Content-Length: +"), id="a length with a sign"),
    pytest.param(post(b"a").replace(b"Content-Length: ", b"Content-Length: 1, "), id="a list of lengths"),
    pytest.param(post(b"a").replace(b"Content-Length:", b"Content-Length :"), id="a space before the colon"),
    pytest.param(post(b"a", more=b"X: a\r\n b\r\n"), id="a folded header"),
    pytest.param(post(b"a", more=b"X: a\nY: b\r\n"), id="a line that ends with LF alone"),
    pytest.param(post(b"a", more=b"X: a\rY: b\r\n"), id="a CR within a header"),
    pytest.param(post(b"a", more=b"X: \x00\r\n"), id="a null"),
    pytest.param(post(b"a", more=b"Host: other\r\n"), id="two hosts"),
    pytest.param(GET.replace(b"Host: localhost\r\n", b""), id="no host"),
    pytest.param(GET.replace(b"HTTP/1.1", b"HTTP/2.0"), id="another version"),
    pytest.param(GET.replace(b"HTTP/1.1", b"HTTP/0.9"), id="an old version"),
    pytest.param(GET.replace(b"/livez", b"http://localhost/livez"), id="an absolute target"),
    pytest.param(GET.replace(b"/livez", b"/livez#a"), id="a fragment"),
    pytest.param(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", id="a tunnel"),
    pytest.param(CHUNKED.replace(b"chunked", b"xchunked") % (b"a", b"", chunks(LINE)), id="another encoding"),
    pytest.param(CHUNKED.replace(b"chunked", b"chunked, gzip") % (b"a", b"", chunks(LINE)), id="chunks within another encoding"),
    pytest.param(CHUNKED % (b"a", b"", b"5\nabcde\r\n0\r\n\r\n"), id="a chunk's size that ends with LF alone"),
    pytest.param(CHUNKED % (b"a", b"", b"-5\r\nabcde\r\n0\r\n\r\n"), id="a chunk of negative size"),
    pytest.param(CHUNKED % (b"a", b"", b"fffffffffffffffff\r\nabcde\r\n0\r\n\r\n"), id="a chunk of 2^68 bytes"),
    pytest.param(CHUNKED % (b"a", b"", b"1\r\nabcde\r\n0\r\n\r\n"), id="a chunk longer than its size"),
    pytest.param(GET[:-2] + b"X: " + b"a" * 70_000 + b"\r\n\r\n", id="a long header"),
    pytest.param(GET[:-2] + b"X: a\r\n" * 12_000 + b"\r\n", id="many headers"),
    pytest.param(GET.replace(b"/livez", b"/" + b"a" * 70_000), id="a long target"),
    pytest.param(CHUNKED % (b"a", b"", b"0\r\nX: " + b"a" * 70_000 + b"\r\n\r\n"), id="a long trailer"),
    pytest.param(CHUNKED % (b"a", b"", b"1;" + b"a" * 100_000 + b"\r\nx\r\n0\r\n\r\n"), id="a long extension of a chunk"),
]


@pytest.mark.parametrize("request_", REFUSED)
def test_what_two_readers_could_take_for_different_requests_is_refused_and_the_connection_ends(server: tuple[str, int], request_: bytes) -> None:
    with connected(server) as client:
        client.plain.sendall(GET + request_ + GET)
        assert client.read()[0] == 200
        status, headers, body = client.read()
        assert (status, headers["connection"], json.loads(body)["code"]) == (400, "close", "malformed-http")
        assert client.rest() == b""


def test_empty_lines_before_a_request_are_passed_over(server: tuple[str, int]) -> None:
    with connected(server) as client:
        client.plain.sendall(b"\r\n" + GET + b"\r\n\r\n" + post(b"lines") + b"\r\n" + GET)
        assert [client.read()[0] for _ in range(3)] == [200, 202, 200]


def test_an_offer_of_another_protocol_is_ignored_and_the_body_is_read(server: tuple[str, int]) -> None:
    """Java's client offers HTTP/2 with each first request, those with a body too."""
    with connected(server) as client:
        for request in (post(b"offer", more=OFFER), CHUNKED % (b"offer", OFFER, chunks(LINE[:5], LINE[5:])), GET[:-2] + OFFER + b"\r\n"):
            for cut in (len(request), request.index(b"\r\n\r\n") + 4, 30):
                client.plain.sendall(request[:cut])
                client.plain.sendall(request[cut:] + GET)
                status, _, body = client.read()
                assert (status, json.loads(body).get("accepted", 1)) == (202 if b"POST" in request else 200, 1)
                assert client.read()[0] == 200
        client.plain.sendall(GET[:-2] + OFFER.replace(b"Upgrade,", b"close, Upgrade,") + b"\r\n")
        assert client.read()[1]["connection"] == "close"


def test_trailers_and_extensions_of_chunks_say_nothing(server: tuple[str, int]) -> None:
    body = b"%x;a=b\r\n%b\r\n0\r\nHost: other\r\nAuthorization: x\r\n\r\n" % (len(LINE), LINE)
    with connected(server) as client:
        client.plain.sendall(CHUNKED % (b"trailers", b"", body) + GET)
        assert [client.read()[0] for _ in range(2)] == [202, 200]


def test_many_requests_at_once_are_answered_in_order(server: tuple[str, int]) -> None:
    number = 3_000
    requests = b"".join(b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: %d\r\n\r\n" % k for k in range(number))
    with connected(server) as client:
        client.plain.settimeout(60)
        client.plain.sendall(requests)
        assert [client.read()[1]["x-request-id"] for _ in range(number)] == [str(k) for k in range(number)]


def test_a_head_without_a_body_is_sent_at_once(server: tuple[str, int]) -> None:
    with connected(server) as client:
        client.plain.sendall(GET.replace(b"GET", b"HEAD") + GET)
        first = client.plain.recv(1 << 16)
        assert first.startswith(b"HTTP/1.1 ")


def test_empty_lines_do_not_hold_a_connection(server: tuple[str, int]) -> None:
    with connected(server) as client:
        client.plain.sendall(GET)
        assert client.read()[0] == 200

        def ends() -> bool:
            try:
                client.plain.sendall(b"\r\n")
            except OSError:
                return True
            return False

        until(ends, "the connection ends")


def test_a_websocket_does_not_begin_before_the_answers_to_earlier_requests(server: tuple[str, int]) -> None:
    upgrade = b"GET /streams/a/feed HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    with connected(server) as client:
        client.plain.sendall(post(b"before") + upgrade)
        assert [client.read()[0] for _ in range(2)] == [202, 400]
        assert client.rest() == b""
    with socket.create_connection(server, 30) as plain:
        plain.sendall(upgrade)
        assert plain.recv(1 << 16).startswith(b"HTTP/1.1 101 ")


PRIVATE = {
    HttpToolsProtocol: (
        "_should_upgrade",
        "_unset_keepalive_if_required",
        "handle_websocket_upgrade",
        "on_body",
        "on_header",
        "on_headers_complete",
        "on_message_begin",
        "on_message_complete",
        "on_response_complete",
        "on_url",
        "send_400_response",
        "shutdown",
    ),
    RequestResponseCycle: ("run_asgi", "send", "receive"),
    FlowControl: ("pause_reading", "resume_reading"),
    WebSocketsSansIOProtocol: ("handle_connect", "handle_cont", "handle_ping", "send_receive_event_to_app", "shutdown"),
    Server: ("_serve", "startup", "on_tick", "shutdown", "handle_exit"),
}
"""These parts of uvicorn are overridden, or called, though it does not promise them."""


def test_the_private_parts_of_uvicorn_are_there() -> None:
    """Read what changed in these classes before you raise the bound of uvicorn in tests/test_private_parts.py."""
    assert [f"{part.__name__}.{name}" for part, names in PRIVATE.items() for name in names if name not in vars(part)] == []
