"""A provider of OpenID Connect, npm's oidc-provider, whose access tokens a server takes; a restart changes its keys."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from epsparql.client import ApiError, Client
from tests.clients.conftest import NODE, ROOT, run_npm
from tests.server.conftest import DEADLINE_S, event, serving, until, values
from tests.server.operations.test_security import digest
from tests.server.routes.test_streams import assert_problem

pytestmark = pytest.mark.slow
AUDIENCE = "urn:epsparql"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("oidc") / "provider"
    shutil.copytree(ROOT / "tests" / "clients" / "oidc", directory)
    run_npm("ci", "--no-audit", "--no-fund", cwd=directory)
    return directory


@contextmanager
def providing(installed: Path, port: int = 0, lifetime_s: int = 60) -> Iterator[str]:
    """Yield the URL of a provider that runs on a port, or on a free one."""
    with subprocess.Popen(
        [NODE, "provider.mjs", str(port), str(lifetime_s)], cwd=installed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def ask_for_token(issuer: str, audience: str | None = AUDIENCE) -> str:
    """Return an access token for an audience; without one, it is no JWT."""
    wish = {"grant_type": "client_credentials"} | ({"resource": audience} if audience else {})
    answer = httpx.post(f"{issuer}/token", data=wish, auth=("shift", "secret"))
    return str(answer.raise_for_status().json()["access_token"])


@pytest.fixture
def port(installed: Path) -> int:
    """Return a port on which providers can run."""
    with providing(installed) as issuer:
        return urlsplit(issuer).port or 0


@pytest.fixture
def guarded(port: int, tmp_path: Path) -> Iterator[str]:
    """A server that takes tokens of the provider on the port. It starts before the provider does."""
    (tmp_path / "rules").write_text("groups=operators read:q ingest:a\nclient_id=shift metrics\n")
    (tmp_path / "tokens").write_text(f"{digest('root')} admin\n")
    chosen = {"oidc_issuer": f"http://127.0.0.1:{port}", "oidc_audience": (AUDIENCE,), "oidc_scopes": tmp_path / "rules"}
    with serving(tmp_path / "data", token_file=tmp_path / "tokens", **chosen) as url:
        Client(url, "root").register("q", values("a"))
        yield url


def test_tokens_of_a_provider(installed: Path, port: int, guarded: str) -> None:
    """Tokens for another audience, and opaque ones, do not count. After a restart, the provider has another key."""
    with providing(installed, port) as issuer:
        first = Client(guarded, ask_for_token(issuer))
        assert first.send("a", event(1)).accepted == 1
        assert len(first.solutions("q", wait_s=DEADLINE_S)) == 1
        assert first.request("GET", "/metrics")[0] == 200
        for audience, words in (("urn:other", "it is for another audience"), (None, "a known bearer token is needed")):
            with pytest.raises(ApiError, match=words):
                Client(guarded, ask_for_token(issuer, audience)).query("q")
        with pytest.raises(ApiError, match="the token lacks the scope 'admin'"):
            first.drop("q")
    assert first.query("q")["name"] == "q", "its key is known"
    with providing(installed, port) as issuer:
        second = Client(guarded, ask_for_token(issuer))

        def is_taken() -> bool:
            with suppress(ApiError):
                second.query("q")
                return True
            return False

        until(is_taken, "a token of the new key, as soon as keys may be fetched again")
        with pytest.raises(ApiError, match="is none of"):
            first.query("q")


def sign_in(page: Page, name: str) -> None:
    """Sign in at the provider's pages, where any password is right, and agree to what the console asks for."""
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_placeholder("login").fill(name)
    page.get_by_placeholder("password").fill("any")
    page.get_by_role("button").click()
    page.get_by_role("button", name="Continue").click()


def test_users_of_the_console_sign_in(browser: Browser, installed: Path, port: int, tmp_path: Path) -> None:
    """The address leads on to what was looked at, and a token that has expired is followed by another one."""
    (tmp_path / "rules").write_text("groups=operators admin\n")
    chosen = {"oidc_issuer": f"http://127.0.0.1:{port}", "oidc_audience": (AUDIENCE,), "oidc_scopes": tmp_path / "rules", "oidc_leeway_s": 0.0}
    asked = {"oidc_client_id": "console", "oidc_request": f"scope=openid&resource={AUDIENCE}"}
    with providing(installed, port, lifetime_s=3), serving(tmp_path / "data", **chosen, **asked) as url:
        page = browser.new_page()
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(f"{url}/#/lag")
        sign_in(page, "ada")
        expect(page.get_by_role("article", name="Lag and errors")).to_be_visible()
        assert (page.url, page.evaluate("sessionStorage.length > 1")) == (f"{url}/#/lag", True)
        first = page.evaluate("sessionStorage.getItem('epsparql.token')")
        page.wait_for_function("(first) => sessionStorage.getItem('epsparql.token') !== first", arg=first)
        expect(page.get_by_role("alert")).to_have_count(0)
        second = page.evaluate("sessionStorage.getItem('epsparql.token')")
        Client(url, second).register("q", values("a"))
        until(lambda: '"who": "subject ada"' in (tmp_path / "data" / "audit.ndjson").read_text(), "the line of the audit log")
        page.close()


def test_a_code_of_others_is_not_taken(browser: Browser, installed: Path, port: int, tmp_path: Path) -> None:
    """A link with somebody's code does not sign a user in as that other one (login CSRF)."""
    (tmp_path / "rules").write_text("groups=operators admin\n")
    chosen = {"oidc_issuer": f"http://127.0.0.1:{port}", "oidc_audience": (AUDIENCE,), "oidc_scopes": tmp_path / "rules", "oidc_client_id": "console"}
    with providing(installed, port), serving(tmp_path / "data", **chosen) as url:
        page = browser.new_page()
        page.goto(f"{url}/#code=abc&state=other")
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        assert page.evaluate("sessionStorage.getItem('epsparql.token')") is None
        page.evaluate("sessionStorage.setItem('epsparql.sign-in', JSON.stringify({ state: 'mine', verifier: 'v', hash: '' }))")
        page.goto("about:blank")
        page.goto(f"{url}/#code=abc&state=other")
        expect(page.get_by_text("The sign-in was begun elsewhere")).to_be_visible()
        page.close()
        for body, status, code in (
            ({"code": "abc", "verifier": "v", "redirect_uri": f"{url}/"}, 403, "sign-in-refused"),
            ({"refresh_token": "abc"}, 403, "sign-in-refused"),
            ({"code": "abc"}, 400, "bad-sign-in"),
        ):
            assert_problem(httpx.post(f"{url}/sign-in", json=body), status, code)
        assert_problem(httpx.get(f"{url}/sign-in", headers={"Origin": "https://evil.example"}), 403, "foreign-origin")
