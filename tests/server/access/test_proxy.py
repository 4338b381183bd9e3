"""The configuration of nginx in docs/operations/access.md, run with Debian's nginx in front of a server: requests,
WebSockets and event streams over TLS.
"""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from epsparql.client import Client, Solution
from tests.server.access.test_tls import write_certificate
from tests.server.conftest import DEADLINE_S, event, serving, values

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "access.md"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def proxied(directory: Path, server_port: int, port: int) -> Iterator[None]:
    """Run nginx with the page's configuration, over a certificate of the test's and ports of its own."""
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = found[1].replace("listen 8443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8080", f"127.0.0.1:{server_port}")
    text = text.replace("/etc/epsparql/server.pem", f"{directory}/server.pem").replace("/etc/epsparql/server.key", f"{directory}/server.pem")
    temporary = "".join(f"{kind}_temp_path {directory}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file = directory / "nginx.conf"
    file.write_text(
        f"daemon off;\nmaster_process off;\npid {directory}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n"
    )
    assert NGINX is not None
    with subprocess.Popen([NGINX, "-c", str(file), "-e", "stderr"]) as process:
        try:
            deadline = time.monotonic() + DEADLINE_S
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
            yield
        finally:
            process.terminate()


@pytest.mark.slow
def test_a_server_behind_nginx(tmp_path: Path) -> None:
    write_certificate(tmp_path / "server.pem", "localhost")
    port = free_port()
    url = f"https://localhost:{port}"
    with serving(tmp_path / "data", proxies=("127.0.0.1",), origins=(url,)) as inner, proxied(tmp_path, int(inner.rpartition(":")[2]), port):
        client = Client(url, patience_s=5, ca_file=tmp_path / "server.pem")
        client.register("q", values("a"))
        with client.follow("q") as subscription, client.tail("a", last=0) as tail:
            subscription.open()
            tail.open()
            client.send("a", event(1))
            found = subscription.next(DEADLINE_S)
            while not isinstance(found, Solution):
                found = subscription.next(DEADLINE_S)
            assert next(iter(tail))["o"] == '"1"'
            with client.feed("a") as feed:
                feed.send(event(2))
                assert feed.flush() > 0
