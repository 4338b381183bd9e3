"""Connectors over HTTP and beside a server: stored, started again, limited, and without credentials in any answer."""

import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.cli import main
from server.cli.serve import read_connectors
from server.settings import Settings, SettingsError
from tests.connectors.systems.brokers import free_port
from tests.connectors.systems.chaos import toml_of
from tests.server.conftest import serving
from tests.support.logs import until

ADMIN, SECRET = "admin-token", "s3cret-of-nats"


def options() -> dict[str, object]:
    """A connector whose broker is not there."""
    return {"type": "nats", "stream": "weather", "url": f"nats://127.0.0.1:{free_port()}", "jetstream": "READINGS"}


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with closing(httpx.Client(base_url=url, timeout=30)) as client:
        yield client
        for connector in client.get("/connectors").json()["connectors"]:
            client.delete(f"/connectors/{connector['name']}")


def shown(http: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/connectors/{name}").json()
    return found


@pytest.mark.slow
def test_a_connector_is_created_shown_changed_and_deleted(http: httpx.Client) -> None:
    given = options()
    created = http.put("/connectors/readings", json=given)
    assert (created.status_code, created.headers["location"], created.json()["options"]) == (201, "/connectors/readings", given)
    until(lambda: shown(http, "readings")["state"] == "waiting", "the fault of the broker that is not there")
    found = shown(http, "readings")
    assert found["direction"] == "in"
    assert "NATS: " in found["fault"]
    assert (found["messages"], found["fixed"]) == (0, False)
    assert [each["name"] for each in http.get("/connectors").json()["connectors"]] == ["readings"]
    metrics = http.get("/metrics").text
    assert 'epsparql_connectors{state="waiting"} 1.0' in metrics
    assert 'epsparql_connector_running{connector="readings"} 0.0' in metrics
    assert http.put("/connectors/readings", json=given | {"batch": 7}).status_code == 200
    assert shown(http, "readings")["options"]["batch"] == 7
    assert http.delete("/connectors/readings").status_code == 204
    assert http.get("/connectors/readings").json()["code"] == "unknown-connector"
    assert http.delete("/connectors/readings").status_code == 404


REFUSED = [
    pytest.param({"type": "nats"}, "bad-connector", "either stream", id="no direction"),
    pytest.param({"type": "nats", "colour": "red"}, "unknown-member", "colour", id="unknown member"),
    pytest.param({"password": SECRET}, "bad-connector", "type must be", id="no type"),
    pytest.param({"password": SECRET} | options(), "bad-connector", "name its place", id="credential"),
    pytest.param({"password_env": "HOME"} | options(), "bad-connector", "begin with EPSPARQL_CONNECTOR_", id="any variable"),
    pytest.param({"password_file": "/etc/passwd"} | options(), "bad-connector", "connector_files, which is not set", id="any file"),
]


@pytest.mark.parametrize(("given", "code", "message"), REFUSED)
def test_a_bad_connector_is_refused_without_telling_credentials(given: dict[str, object], code: str, message: str, http: httpx.Client) -> None:
    answer = http.put("/connectors/readings", json=given)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert message in answer.json()["detail"]
    assert SECRET not in answer.text
    assert http.get("/connectors").json() == {"connectors": []}


@pytest.mark.slow
def test_connectors_stay_over_a_restart_and_credentials_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPSPARQL_CONNECTOR_NATS", SECRET)
    tokens, data = tmp_path / "tokens", tmp_path / "data"
    tokens.write_text(f"{hashlib.sha256(ADMIN.encode()).hexdigest()} admin\n")
    given = options() | {"token_env": "EPSPARQL_CONNECTOR_NATS"}
    headers = {"Authorization": f"Bearer {ADMIN}"}
    with serving(data, token_file=tokens, max_connectors=1) as url, closing(httpx.Client(base_url=url, headers=headers)) as http:
        assert httpx.get(f"{url}/connectors").status_code == 401
        assert http.put("/connectors/readings", json=given).status_code == 201
        assert http.put("/connectors/more", json=given).json()["code"] == "too-many-connectors"
    stored = [path.read_text() for path in (data / "connectors").iterdir()]
    assert len(stored) == 1
    assert SECRET not in stored[0]
    with serving(data, token_file=tokens) as url, closing(httpx.Client(base_url=url, headers=headers)) as http:
        until(lambda: shown(http, "readings")["state"] == "waiting", "the connector of before")
        answer = http.get("/connectors")
        assert answer.json()["connectors"][0]["options"] == given
        assert SECRET not in answer.text
        assert "NATS" in answer.json()["connectors"][0]["fault"]  # the server let it ask for its position, so its own token is known


@pytest.mark.slow
def test_the_file_of_the_settings_runs_beside_the_server(tmp_path: Path) -> None:
    file = tmp_path / "connectors.toml"
    file.write_text(toml_of("http://127.0.0.1:1", {"readings": options()}))
    with serving(tmp_path / "data", connectors=file) as url, closing(httpx.Client(base_url=url)) as http:
        until(lambda: shown(http, "readings")["state"] == "waiting", "the connector of the file")
        assert shown(http, "readings")["fixed"]
        for answer in (http.put("/connectors/readings", json=options()), http.delete("/connectors/readings")):
            assert (answer.status_code, answer.json()["code"]) == (409, "connector-in-file")
        (worker,) = [pid for pid, command in children() if "connectors.worker" in command]
        os.kill(worker, signal.SIGKILL)
        until(lambda: shown(http, "readings")["restarts"] == 1, "another process")
        until(lambda: shown(http, "readings")["state"] == "waiting", "its state")
    assert [command for _, command in children() if "connectors.worker" in command] == []


def children() -> list[tuple[int, str]]:
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        for word in path.read_text().split():
            found.append((int(word), Path(f"/proc/{word}/cmdline").read_text().replace("\0", " ")))
    return found


def test_a_wrong_file_is_told_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "connectors.toml"
    file.write_text("[connectors.a]\ntype = 'nats'\n")
    with pytest.raises(SettingsError, match=r"--connectors .*connectors\.toml: connector 'a': give either stream"):
        read_connectors(Settings(connectors=file))
    assert main(["connect", str(file)]) == 2
    assert "connector 'a': give either stream" in capsys.readouterr().err
    file.write_text(toml_of("http://127.0.0.1:1", {"a": options() | {"token_env": "NOT_SET"}}))
    assert main(["connect", str(file)]) == 2
    assert "the environment has no variable 'NOT_SET'" in capsys.readouterr().err
