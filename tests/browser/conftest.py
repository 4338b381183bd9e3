"""Debian's Chromium without a window, on a real server.

What a page does wrong in passing fails its test: requests to elsewhere, violated policies, exceptions.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from epsparql.client import Client, segment
from tests.server.conftest import empty, serving
from tests.server.operations.test_security import digest

DEADLINE_MS = 60_000
expect.set_options(timeout=DEADLINE_MS)  # other suites run beside this one, so a page may take its time
_WATCH = """
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with this folder's tests: while it runs, no other asyncio loop can."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("there is no chromium; run: make chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def restricted(tmp_path: Path) -> Iterator[str]:
    """A server with tokens, whose webhooks may go to this machine."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest('root')} admin\n{digest('some')} read:*\n")
    with serving(tmp_path / "data", token_file=tokens, allow_hosts=("127.0.0.1",)) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """The server is emptied afterwards, so that each test finds it new."""
    client = Client(url)
    yield client
    empty(client)
    for trial in client.trials():
        client.drop_trial(trial["id"])
    for ontology in client._json("GET", "/ontologies")["ontologies"]:
        client.request("DELETE", f"/ontologies/{segment(ontology['name'])}")


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    found.set_default_timeout(DEADLINE_MS)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext, url: str, client: Client) -> Iterator[Page]:
    """The console, just opened."""
    found, wrong = context.new_page(), list[str]()
    found.add_init_script(_WATCH)
    found.on("pageerror", lambda error: wrong.append(f"exception: {error}"))
    found.on("request", lambda request: None if request.url.startswith(f"{url}/") else wrong.append(f"request to {request.url}"))
    found.goto(f"{url}/")
    found.get_by_role("status").filter(has_text="inprocess").wait_for()
    yield found
    wrong += [f"policy: {violation}" for violation in found.evaluate("window.violations")]
    found.close()  # before the server is emptied: it may still be sending
    assert wrong == []


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Return the directory for screenshots: docs/ when they are wanted anew (make pictures), else a temporary one."""
    return Path(os.environ.get("EPSPARQL_PICTURES", tmp_path))
