"""TLS in the server: with a certificate that is replaced while it runs, and clients that trust a file.

Tokens change without a restart too.
"""

import asyncio
import http.client
import logging
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from epsparql.async_client import AsyncClient
from epsparql.client import ApiError, Client, Solution
from server.child_server import Child
from server.cli import main
from server.settings import Settings, SettingsError, settings_from
from server.tokens.token_file import load_grants
from tests.server.conftest import COMPILING_S, DEADLINE_S, event, serving, until, values


def write_certificate(path: Path, *names: str) -> int:
    """Write a self-signed certificate for some names, and its key, in one file; return its serial number."""
    key, number = ec.generate_private_key(ec.SECP256R1()), x509.random_serial_number()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    new = path.with_suffix(".new")
    new.write_bytes(certificate.public_bytes(pem) + plain)
    new.replace(path)
    return number


def presented(port: int) -> int:
    """Return the serial number of the certificate that a server presents."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 30) as plain, context.wrap_socket(plain) as connection:
        found = connection.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


def test_clients_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests, WebSockets and event streams, of both clients and of the command line.

    The certificate changes, and a connection that is open goes on.
    """
    certificate = tmp_path / "server.pem"
    first = write_certificate(certificate, "localhost")
    with serving(tmp_path / "data", host="localhost", tls_cert=certificate) as url:
        assert url.startswith("https://")
        port = int(url.rpartition(":")[2])
        url = f"https://localhost:{port}"
        client = Client(url, patience_s=5, ca_file=certificate)
        client.register("q", values("a"))
        with client.follow("q") as subscription:
            client.send("a", event(1))
            assert isinstance(subscription.next(60), Solution)
            assert presented(port) == first
            second = write_certificate(certificate, "localhost")
            until(lambda: presented(port) == second, "the server presents the new certificate")
            client.send("a", event(2))  # the client has read the file again too
            found = subscription.next(60)
            while not isinstance(found, Solution):
                found = subscription.next(60)
        assert [each["o"] for each in client.events("a")] == ['"2"', '"1"']
        with client.tail("a") as tail:
            assert next(iter(tail))["o"] == '"1"'
        assert asyncio.run(AsyncClient(url, ca_file=certificate).query("q"))["solutions"] == 2
        assert main(["queries", "--server", url, "--ca-file", str(certificate)]) == 0
        assert "q " in capsys.readouterr().out
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(url, patience_s=0).query("q")
        with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
            Client(url.replace("localhost", "127.0.0.1"), patience_s=0, ca_file=certificate).query("q")
        assert Client(url.replace("localhost", "127.0.0.1"), ca_file=certificate, any_name=True).query("q")["solutions"] == 2
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            Client(f"http://localhost:{port}", patience_s=0).query("q")


def test_a_stop_does_not_wait_for_clients_that_do_not_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each client is idle, follows, feeds, or has sent half of a request, and none takes or answers the end of its
    connection.
    """
    certificate = tmp_path / "server.pem"
    write_certificate(certificate, "localhost")
    trust = ssl.create_default_context(cafile=str(certificate))
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    requests = {
        "/livez": "",
        "/queries/q/events": "",
        "/queries/q/feed": upgrade,
        "/streams/a/feed": upgrade,
        "/streams/a/events": "Content-Length: 9\r\n",
        "/queries/q/solutions?wait=30": "",
    }
    with ExitStack() as held:
        with serving(tmp_path / "data", host="localhost", tls_cert=certificate) as url:
            port = int(url.rpartition(":")[2])
            Client(f"https://localhost:{port}", ca_file=certificate).register("q", values("a"))
            for path, more in requests.items():
                connection = held.enter_context(trust.wrap_socket(socket.create_connection(("127.0.0.1", port), 30), server_hostname="localhost"))
                method = "POST" if more.startswith("Content") else "GET"
                connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
                if method == "GET" and "wait" not in path:
                    assert connection.recv(1 << 16)
            began_s = time.monotonic()
        took_s = time.monotonic() - began_s
    assert took_s < 6  # twice as long as it may take, and a third of what it took while it waited for clients
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def count_queries(server: int) -> int:
    """Return how many queries of /sparql are at work: they are forks of the server's own process for them."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [row.split() for row in listed if "server.background.query_process" in row]
    holding = {number for number, parent, *_ in rows if parent == str(server)}
    return sum(parent in holding for _, parent, *_ in rows)


@pytest.mark.slow
@pytest.mark.parametrize("encrypted", [True, False])
def test_a_stop_with_clients_that_read_nothing_and_queries_at_work_is_quick_and_quiet(tmp_path: Path, encrypted: bool) -> None:
    """A hundred and twenty subscribers have more to read than their connections hold, and three queries would run for
    long.
    """
    certificate, log = tmp_path / "server.pem", tmp_path / "log"
    write_certificate(certificate, "localhost")
    trust = ssl.create_default_context(cafile=str(certificate))
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    endless = " ".join(f"?a{number} ?b{number} ?c{number} ." for number in range(6))
    asked = "/sparql?query=" + quote(f"SELECT (COUNT(*) AS ?n) {{ {endless} }}")
    requests = [(asked, "")] * 3 + [("/queries/q/feed?after=", upgrade)] * 60 + [("/queries/q/events", "Last-Event-ID: \r\n")] * 60
    options = ("--tls-cert", str(certificate)) if encrypted else ()
    with ExitStack() as held, Child(tmp_path / "data", "inprocess", log, extra=("--host", "localhost", *options)) as child:
        client, port = Client(child.url, ca_file=certificate if encrypted else None, any_name=encrypted), int(child.url.rpartition(":")[2])
        client.wait_ready(COMPILING_S)
        client.register("q", values("a"))
        client.load_background("urn:g", "".join(f"<urn:s{number}> <urn:p> {number} .\n" for number in range(1000)))
        client.send("a", "\n".join(event(number, "x" * 8_000) for number in range(1000)))
        until(lambda: client.query("q")["solutions"] == 1000, "all solutions")
        for path, more in requests:
            plain = held.enter_context(socket.create_connection(("127.0.0.1", port), DEADLINE_S))
            connection = held.enter_context(trust.wrap_socket(plain, server_hostname="localhost")) if encrypted else plain
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
            if path != asked:
                assert connection.recv(100)
        until(lambda: count_queries(child.pid) == 3, "the queries are at work")
        began_s = time.monotonic()
        assert child.stop() == 0
        took_s = time.monotonic() - began_s
    said = log.read_text()
    assert "Traceback" not in said, said[:2000]
    assert " ERROR " not in said, said[:2000]
    assert took_s < 6  # twice as long as it may take


def test_a_certificate_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the start it is refused. Later, the one of before holds."""
    certificate, other = tmp_path / "server.pem", tmp_path / "other.pem"
    number, _ = write_certificate(certificate, "localhost"), write_certificate(other, "localhost")
    for wrong in (Settings(tls_cert=tmp_path / "none.pem"), Settings(tls_cert=certificate, tls_key=other)):
        with (
            pytest.raises(SettingsError, match=r"--tls-cert .* cannot be used: .*; give PEM files that belong together"),
            serving(tmp_path / "x", tls_cert=wrong.tls_cert, tls_key=wrong.tls_key),
        ):
            pass
    with pytest.raises(SettingsError, match="--tls-key is the key of a certificate"):
        settings_from({"tls_key": str(other)}, {})
    with serving(tmp_path / "data", host="localhost", tls_cert=certificate) as url, caplog.at_level(logging.ERROR, "epsparql.tls"):
        certificate.write_text("nothing")
        until(lambda: "the certificate of before holds" in caplog.text, "the fault is logged")
        assert presented(int(url.rpartition(":")[2])) == number


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def make(tokens: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def make(*arguments: str) -> str:
        assert main(["token", "make", "--token-file", str(tokens), *arguments]) == 0
        return capsys.readouterr().out.split()[-1]

    return make


def test_tokens_change_while_the_server_runs(
    tmp_path: Path, tokens: Path, make: Callable[..., str], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    root = make("admin")
    assert tokens.stat().st_mode & 0o777 == 0o644, "the image's user has to read it"
    with serving(tmp_path / "data", token_file=tokens) as url:
        Client(url, root).register("q", values("a"))
        screen = make("read:q", "ingest:a", "--note", "the hall's screen")
        assert Client(url, screen).query("q")["name"] == "q"
        assert main(["token", "list", "--token-file", str(tokens)]) == 0
        line = capsys.readouterr().out.splitlines()[1]
        assert line.endswith(" read:q ingest:a  # the hall's screen")
        good = tokens.read_text()
        with caplog.at_level(logging.ERROR, "epsparql.tokens"):
            tokens.write_text("broken")
            assert Client(url, screen).query("q")["name"] == "q"
        assert "the tokens of before hold" in caplog.text
        tokens.write_text(good)
        assert main(["token", "revoke", "--token-file", str(tokens), line.split()[0]]) == 0
        with pytest.raises(ApiError, match="a known bearer token is needed"):
            Client(url, screen).query("q")
        assert Client(url, root).query("q")["name"] == "q"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["make", "read"],
            "expected scopes out of admin, metrics, ingest:<stream>, read:<query>, read:<query>/<instance>, instances:<query>, found 'read'",
        ),
        (["make", "admin", "--note", "two\nlines"], "--note has one line"),
        (["revoke", "abc"], "give at least 8 digits"),
        (["revoke", "0123456789ab"], "has 0 tokens whose SHA-256 begins with '0123456789ab'"),
    ],
)
def test_what_token_refuses(tokens: Path, make: Callable[..., str], arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    make("admin")
    before = tokens.read_text()
    assert main(["token", *arguments, "--token-file", str(tokens)]) == 2
    assert words in capsys.readouterr().err
    assert tokens.read_text() == before
    assert [path.name for path in tokens.parent.iterdir()] == ["tokens"]


def test_commands_that_change_tokens_at_once_undo_nothing(tokens: Path, make: Callable[..., str]) -> None:
    make("admin")
    for number in range(4):
        make("read:old", "--note", f"old {number}")
    old = [line[:64] for line in tokens.read_text().splitlines() if "old" in line]
    new = [["token", "make", "read:new", "--note", f"new {number}", "--token-file", str(tokens)] for number in range(4)]
    gone = [["token", "revoke", "--token-file", str(tokens), digest] for digest in old]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(main, [each for pair in zip(new, gone, strict=True) for each in pair])) == [0] * 8
    left = tokens.read_text()
    assert ("old" in left, sorted(line.rpartition("# ")[2] for line in left.splitlines()[1:])) == (False, [f"new {number}" for number in range(4)])


def test_the_last_token_stays(tokens: Path, make: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    make("admin")
    assert main(["token", "revoke", "--token-file", str(tokens), tokens.read_text()[:12]]) == 2
    assert "holds no token" in capsys.readouterr().err
    assert len(load_grants(tokens)) == 1
