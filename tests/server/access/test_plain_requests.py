"""Small POSTs of events are read without h11, and answered as others are. Small frames are read as they come."""

import json
import re
import socket
from urllib.parse import urlsplit

import pytest

from server.cli.plain_requests import read_plain_post
from tests.server.conftest import DEADLINE_S

LINE = b'{"s":"<x:s>","p":"<x:p>","o":"<x:o>","at":"2026-01-01T00:00:00Z"}'
CHANGING = re.compile(rb"(date|x-request-id): [^\r]*\r\n|\"offset\":\d+")


def post(*fields: bytes, body: bytes = LINE, path: bytes = b"/streams/plain/events") -> bytes:
    sent = (b"Host: localhost", b"Content-Type: application/x-ndjson", b"Content-Length: %d" % len(body), *fields)
    return b"POST %b HTTP/1.1\r\n%b\r\n\r\n%b" % (path, b"\r\n".join(sent), body)


def test_a_plain_request_is_read() -> None:
    found = read_plain_post(post(b"Authorization: Bearer a b ", path=b"/streams/http%3A%2F%2Fa/events"))
    expected = [
        (b"host", b"localhost"),
        (b"content-type", b"application/x-ndjson"),
        (b"content-length", b"%d" % len(LINE)),
        (b"authorization", b"Bearer a b"),
    ]
    assert found == (b"/streams/http%3A%2F%2Fa/events", expected, LINE)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(post()[:-1], id="not whole"),
        pytest.param(post() + b"P", id="more than one"),
        pytest.param(post(b"Content-Length: 5"), id="two lengths"),
        pytest.param(post(b"Transfer-Encoding: chunked"), id="chunks"),
        pytest.param(post(b"Expect: 100-continue"), id="a question first"),
        pytest.param(post(b"Connection: close"), id="the last one"),
        pytest.param(post(b"Idempotency-Key: a"), id="a parameter"),
        pytest.param(post(b"Accept: a\r\n b"), id="a folded line"),
        pytest.param(post(b"Accept:a"), id="no space"),
        pytest.param(post(b"Accept : a"), id="a space too many"),
        pytest.param(post(b"Accept: a\x00"), id="a control character"),
        pytest.param(post(b"Accept: " + b"a" * 2_000), id="a long header"),
        pytest.param(post(path=b"/streams/a/events?at=2026-01-01T00:00:00Z"), id="a query"),
        pytest.param(post(path=b"/streams/a/b/events"), id="two segments"),
        pytest.param(post().replace(b"Host: localhost\r\n", b""), id="no host"),
        pytest.param(post().replace(b"Content-Length: ", b"Content-Length: +"), id="a sign"),
        pytest.param(post().replace(b"Content-Length: ", b"Content-Length: " + b"0" * 5_000), id="many digits"),
        pytest.param(post().replace(b"HTTP/1.1", b"HTTP/1.0"), id="another version"),
        pytest.param(post().replace(b"\r\n", b"\n"), id="bare line feeds"),
        pytest.param(b"GET" + post()[4:], id="another method"),
    ],
)
def test_what_is_not_plain_is_left_to_h11(request_: bytes) -> None:
    assert read_plain_post(request_) is None


def talk(url: str, *sent: bytes) -> bytes:
    """Return what comes back over one connection, to which the last request puts an end."""
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), DEADLINE_S) as connection:
        for each in sent:
            connection.sendall(each)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


@pytest.mark.parametrize("body", [LINE, b"{", b""])
def test_answers_are_those_of_h11(url: str, body: bytes) -> None:
    end = post(b"Connection: close", body=b"x")
    found = [talk(url, post(*fields, body=body), end).rpartition(b"HTTP/1.1 ")[0] for fields in ((), (b"X-Other: 1",))]
    assert found[0] != found[1], "each has an id and a place of its own"
    one, other = (sorted(CHANGING.sub(b"", each).split(b"\r\n")) for each in found)
    assert one == other


def test_requests_that_come_before_an_answer_are_answered_in_order(url: str) -> None:
    """The bodies come at once, and cut anywhere."""
    bodies = [LINE, b"{", LINE + b"\n" + LINE]
    sent = b"".join(post(body=body, path=b"/streams/in-order/events") for body in bodies) + post(
        b"Connection: close", path=b"/streams/in-order/events"
    )
    for cut in (len(post()) - 1, len(post()), len(post()) + 30):
        found = talk(url, sent[:cut], sent[cut:])
        assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"202", b"400", b"202", b"202"]
        accepted = [json.loads(each).get("accepted") for each in re.findall(rb"\r\n\r\n(\{.*?\})(?=HTTP/1.1|$)", found)]
        assert accepted == [1, None, 2, 1]


def frame(payload: bytes, kind: int = 0x81) -> bytes:
    size, mask = len(payload), b"\x01\x7f\x80\xfe"
    length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes((kind,)) + length + mask + bytes(each ^ mask[k % 4] for k, each in enumerate(payload))


@pytest.mark.parametrize("piece", [1, 5, 64, 10_000])
def test_frames_are_read_whatever_they_are_and_wherever_they_are_cut(url: str, piece: int) -> None:
    """There are two lengths of text, a ping, a text in two frames, and one after that."""
    sent = frame(LINE) + frame(b"hi", 0x89) + frame(LINE + b"\n" + LINE) + frame(LINE[:10], 0x01) + frame(LINE[10:], 0x80) + frame(LINE)
    assert len(LINE) < 126 < 2 * len(LINE)
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), DEADLINE_S) as connection:
        connection.sendall(
            b"GET /streams/cut/feed HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        found = b""
        while b"\r\n\r\n" not in found:
            found += connection.recv(65536)
        for begin in range(0, len(sent), piece):
            connection.sendall(sent[begin : begin + piece])
        while found.count(b'"ack"') < 4 or b"\x8a\x02hi" not in found:
            part = connection.recv(65536)
            assert part, found
            found += part
    assert re.findall(rb'"accepted": (\d+)', found) == [b"1", b"2", b"1", b"1"]
