"""A provider of OpenID Connect, npm's oidc-provider, whose access tokens a server takes; a restart changes its keys."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from epsparql.client import ApiError, Client
from tests.clients.conftest import NODE, ROOT, run_npm
from tests.server.conftest import DEADLINE_S, event, serving, until, values
from tests.server.operations.test_security import digest

pytestmark = pytest.mark.slow
AUDIENCE = "urn:epsparql"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("oidc") / "provider"
    shutil.copytree(ROOT / "tests" / "clients" / "oidc", directory)
    run_npm("ci", "--no-audit", "--no-fund", cwd=directory)
    return directory


@contextmanager
def providing(installed: Path, port: int = 0) -> Iterator[str]:
    """Yield the URL of a provider that runs on a port, or on a free one."""
    with subprocess.Popen([NODE, "provider.mjs", str(port)], cwd=installed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
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
