"""A page of another origin, as web developers make them: what `--origins` and tokens let it do from within a browser."""

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from epsparql.client import Client
from tests.server.conftest import event, serving, values
from tests.server.operations.test_security import digest

pytestmark = pytest.mark.slow
TOKEN = "screen"
TALKS = """
    async ([url, token, coded, event]) => {
        const headers = { Authorization: `Bearer ${token}` };
        const sent = await fetch(`${url}/streams/a/events`, { method: "POST", body: event, headers: { ...headers, "Content-Type": "application/x-ndjson", "Idempotency-Key": "1" } });
        const refused = await fetch(`${url}/ontologies`, { headers });
        const found = await fetch(`${url}/queries/q/solutions?wait=30`, { headers });
        const socket = new WebSocket(`${url.replace("http", "ws")}/queries/q/feed`, ["epsparql.v1+json", `epsparql.bearer.${coded}`]);
        const told = await new Promise((done) => {
            socket.onmessage = ({ data }) => done(Object.keys(JSON.parse(data)));
            socket.onclose = ({ code }) => done([String(code)]);
        });
        return [sent.status, refused.status, (await refused.json()).code, found.headers.get("Link") !== null, told];
    }
"""


class Blank(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The origin of empty pages."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("allowed", [True, False])
def test_a_page_of_another_origin(context: BrowserContext, tmp_path: Path, elsewhere: str, allowed: bool) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest('root')} admin\n{digest(TOKEN)} read:q ingest:a\n")
    with serving(tmp_path / "data", token_file=tokens, origins=(elsewhere,) if allowed else ()) as url:
        Client(url, "root").register("q", values("a"))
        page = context.new_page()
        page.goto(elsewhere)
        given = [url, TOKEN, base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="), event(1)]
        if allowed:
            assert page.evaluate(TALKS, given) == [202, 403, "not-allowed", True, ["solution"]]
        else:
            assert (
                page.evaluate(f"async (given) => {{ try {{ return await ({TALKS})(given) }} catch (error) {{ return error.name }} }}", given)
                == "TypeError"
            )
        page.close()
