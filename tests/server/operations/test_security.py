"""Tokens, scopes, origins, and addresses that others can reach."""

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from epsparql.client import ApiError, Client, Closed
from server.http.auth import TOKEN_PROTOCOL
from server.settings import Settings, SettingsError, settings_from
from server.tokens.token_file import load_grants
from tests.server.conftest import DEADLINE_S, event, refusal_of, serving, values
from tests.server.routes.test_streams import assert_problem
from tests.server.subscriptions.test_websockets import SUBPROTOCOL, closing, dial


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def coded(token: str) -> str:
    return TOKEN_PROTOCOL + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def granted(directory: Path) -> Path:
    """Write a token file and return its path."""
    path = directory / "tokens"
    path.write_text(
        f"# who may do what\n{digest('root')} admin\n{digest('sensor')} ingest:a\n\n{digest('screen')} read:q read:r # two\n"
        f"{digest('all')} ingest:* read:*\n{digest('screen ü')} read:q\n"
    )
    return path


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return granted(tmp_path)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with tokens, for tests that change nothing: there are the queries q and rr, and q has a solution."""
    directory = tmp_path_factory.mktemp("guarded")
    with serving(directory / "data", token_file=granted(directory)) as url:
        root = Client(url, "root")
        for name in ("q", "rr"):
            root.register(name, values("a"))
        root.send("a", event(1))
        yield url


def test_scopes(tmp_path: Path, tokens: Path) -> None:
    with serving(tmp_path / "data", token_file=tokens) as url:
        root, sensor, screen, everything = (Client(url, token) for token in ("root", "sensor", "screen", "all"))
        root.register("q", values("a"))
        assert sensor.send("a", event(1)).accepted == 1
        assert everything.send("b", event(1)).accepted == 1
        assert len(screen.solutions("q", wait_s=30)) == 1
        for refused in (
            lambda: sensor.send("b", event(1)),
            lambda: sensor.query("q"),
            lambda: screen.send("a", event(1)),
            lambda: screen.register("r", values("a")),
            lambda: sensor.queries(),
            lambda: screen._json("GET", "/streams"),
            lambda: everything._json("GET", "/ontologies"),
            lambda: everything.finish("a"),
        ):
            with pytest.raises(ApiError) as fault:
                refused()
            assert fault.value.status == 403
        for token in (None, "nobody", ""):
            with pytest.raises(ApiError) as fault:
                Client(url, token).query("q")
            assert fault.value.status == 401
        assert httpx.get(f"{url}/queries").headers["www-authenticate"] == "Bearer"
        assert_problem(httpx.get(f"{url}/queries", headers={"Authorization": "Basic cm9vdDpyb290"}), 401)
        assert httpx.get(f"{url}/livez").status_code == 200
        with screen.follow("q") as subscription:
            assert subscription.next(DEADLINE_S) is not None
        for client, code in ((Client(url), 4001), (sensor, 4003)):
            with client.follow("q") as subscription, pytest.raises(Closed) as closed:
                subscription.next(DEADLINE_S)
            assert closed.value.code == code
        with pytest.raises(Closed) as closed:
            feed_one(screen)
        assert closed.value.code == 4003


def test_lists_show_what_the_token_may(tmp_path: Path, tokens: Path) -> None:
    with serving(tmp_path / "data", token_file=tokens) as url:
        root = Client(url, "root")
        for name in ("q", "other"):
            root.register(name, values(name))
        for token, queries, engine in (("screen", ["q"], False), ("all", ["q", "other"], False), ("root", ["q", "other"], True)):
            found = Client(url, token)._json("GET", "/queries")
            assert ([query["name"] for query in found["queries"]], found["engine"] is not None) == (queries, engine)
        for stream in ("a", "b"):
            root.send(stream, event(1))
        for token, streams in (("sensor", {"a"}), ("all", {"a", "b"}), ("root", {"a", "b"})):
            found = Client(url, token)._json("GET", "/streams")
            assert {stream["name"] for stream in found["streams"]} & {"a", "b"} == streams


@pytest.mark.parametrize("what", ["events", "profile"])
@pytest.mark.parametrize(("token", "status"), [("sensor", 200), ("all", 200), ("root", 200), ("screen", 403), ("nobody", 401)])
def test_who_may_look_into_a_stream(guarded: str, token: str, status: int, what: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{guarded}/streams/a/{what}", headers=headers).status_code == status
    if token == "sensor":
        assert_problem(httpx.get(f"{guarded}/streams/b/{what}", headers=headers), 403, "not-allowed")


@pytest.mark.parametrize(("token", "told"), [("screen", False), ("all", True), ("root", True)])
def test_other_names_are_told_to_those_who_may_know_them(guarded: str, token: str, told: bool) -> None:
    problem = assert_problem(httpx.get(f"{guarded}/queries/r", headers={"Authorization": f"Bearer {token}"}), 404, "unknown-query")
    assert problem.get("expected") == ("rr" if told else None)
    assert ("'rr'" in str(problem["detail"])) is told
    with dial(guarded, "/queries/r/feed", coded(token)) as connection:
        code, reason = closing(connection)
    assert (code, "'rr'" in reason) == (4004, told)


@pytest.mark.parametrize(
    ("protocols", "code"),
    [
        pytest.param([coded("screen ü")], None, id="a token"),
        pytest.param([coded("nobody")], 4001, id="an unknown one"),
        pytest.param([TOKEN_PROTOCOL + "a"], 4001, id="no base64"),
        pytest.param([TOKEN_PROTOCOL + "_w"], 4001, id="no text"),
        pytest.param([TOKEN_PROTOCOL], 4001, id="nothing"),
        pytest.param([coded("sensor")], 4003, id="without the scope"),
    ],
)
def test_a_websocket_may_bring_its_token_as_a_subprotocol(guarded: str, protocols: list[str], code: int | None) -> None:
    with dial(guarded, "/queries/q/feed", *protocols) as connection:
        assert connection.subprotocol == SUBPROTOCOL
        if code is None:
            assert "solution" in json.loads(connection.recv(DEADLINE_S))
        else:
            assert closing(connection)[0] == code


def feed_one(client: Client) -> None:
    with client.feed("a") as feed:
        feed.send(event(2))
        feed.flush()


def test_origins(tmp_path: Path) -> None:
    with serving(tmp_path, origins=("https://friend.example",)) as url:
        client = Client(url)
        client.register("q", values("default"))
        for origin, allowed in ((url, True), ("https://friend.example", True), ("https://evil.example", False)):
            with dial(url, "/queries/q/feed", origin=origin) as connection:
                if allowed:
                    connection.ping().wait(DEADLINE_S)
                else:
                    assert closing(connection)[0] == 4003
            answer = httpx.post(f"{url}/streams/default/events", content=event(1), headers={"Origin": origin, "Content-Type": "application/x-ndjson"})
            assert answer.status_code == (202 if allowed else 403)


def test_pages_of_allowed_origins_may_read_the_answers(tmp_path: Path, tokens: Path) -> None:
    """Faults too; before anything but a plain GET a browser asks whether it may."""
    with serving(tmp_path / "data", token_file=tokens, origins=("https://friend.example",)) as url, httpx.Client(base_url=url) as http:
        wish = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization,content-type,idempotency-key"}
        for origin, allowed in (("https://friend.example", "https://friend.example"), ("https://evil.example", None)):
            asked = http.options("/queries/q", headers=wish | {"Origin": origin})
            assert (asked.status_code == 200, asked.headers.get("access-control-allow-origin")) == (allowed is not None, allowed)
            for token, status in (("root", 200 if allowed else 403), ("nobody", 401 if allowed else 403)):
                answer = http.get("/queries", headers={"Origin": origin, "Authorization": f"Bearer {token}"})
                assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (status, allowed)


def test_a_refused_origin_is_told_which_setting_allows_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The answer to the browser's question, that to a request, and the log say the same; the log says it once."""
    shown = "pages of https://evil.example may not use this server; to allow them, add the origin to --origins (EPSPARQL_ORIGINS)"
    with serving(tmp_path) as url, httpx.Client(base_url=url, headers={"Origin": "https://evil.example"}) as http:
        asked = http.options("/queries/q", headers={"Access-Control-Request-Method": "PUT"})
        for answer in (asked, http.get("/queries"), http.post("/streams/s/events", content=event(1))):
            assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (403, "foreign-origin", shown)
            assert "access-control-allow-origin" not in answer.headers
        assert http.options("/queries/q").status_code == 405
    assert [record.getMessage() for record in caplog.records if record.name == "epsparql.origins"] == [shown]


def test_pages_of_allowed_origins_may_read_answers_to_short_posts(tmp_path: Path) -> None:
    with serving(tmp_path, origins=("https://friend.example",)) as url:
        headers = {"Origin": "https://friend.example", "Content-Type": "application/x-ndjson"}
        answer = httpx.post(f"{url}/streams/s/events", content=event(1), headers=headers)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (202, "https://friend.example")


def test_every_origin_is_allowed_with_tokens_alone(tmp_path: Path, tokens: Path) -> None:
    assert "--origins '*' lets every web page use this server; give --token-file too" in refusal_of("--data", str(tmp_path), "--origins", "*")
    with serving(tmp_path / "data", token_file=tokens, origins=("*",)) as url:
        headers = {"Origin": "https://any.example", "Authorization": "Bearer root"}
        answer = httpx.get(f"{url}/queries", headers=headers)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert httpx.get(f"{url}/queries", headers={"Origin": "https://any.example"}).status_code == 401


def test_without_tokens_only_names_of_this_machine_will_do(tmp_path: Path) -> None:
    """A web page whose name is made to lead to this machine would pass for the server itself."""
    with serving(tmp_path, origins=("https://friend.example",)) as url:
        port = url.rpartition(":")[2]
        for host, status in (
            (f"localhost:{port}", 200),
            ("LocalHost", 200),
            ("127.0.0.1", 200),
            (f"[::1]:{port}", 200),
            ("friend.example", 200),
            (f"evil.example:{port}", 403),
            ("", 403),
        ):
            assert httpx.get(f"{url}/queries", headers={"Host": host, "Origin": f"http://{host}"}).status_code == status


@pytest.mark.parametrize(
    "host",
    [
        "[::1", "[", "[x]:80", "localhost:99999999", "evil.example@localhost", "localhost/evil.example", "localhost?evil.example",
        "localhost:x", "localhost:", "[::1]evil.example", "[::1%25lo]", "localhost, evil.example", "local\thost", "127.0.0.1:80:80", "::1",
    ],
)  # fmt: skip
def test_a_host_that_is_none_is_refused_and_no_fault_of_ours(url: str, host: str) -> None:
    for headers in ({"Host": host}, {"Host": "localhost", "Origin": f"http://{host}"}):
        answer = httpx.get(f"{url}/streams", headers=headers)
        assert answer.status_code == 403
    with dial(url, "/streams/default/feed", origin=f"http://{host}") as connection:
        assert closing(connection)[0] == 4003


def test_a_scope_may_hold_what_begins_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"#{digest('none')} admin\n{digest('a')} ingest:http://e/stream#a read:q#1\t# two of them\n")
    assert [grant.scopes for grant in load_grants(path)] == [{"ingest:http://e/stream#a", "read:q#1"}]


@pytest.mark.parametrize(("name", "why"), [("none", "No such file or directory"), ("", "Is a directory"), ("latin", "it is not UTF-8")])
def test_a_file_that_cannot_be_read_is_told_in_words(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    path = tmp_path / name
    with pytest.raises(SettingsError) as refused:
        load_grants(path)
    assert str(refused.value) == f"--token-file {path} cannot be read: {why}"
    with pytest.raises(SettingsError) as refused:
        settings_from({"config": path}, {})
    assert str(refused.value) == f"--config {path} cannot be read: {why}"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_others_need_tokens(host: str) -> None:
    with pytest.raises(SettingsError, match="--token-file"):
        settings_from({"host": host}, {})
    assert settings_from({"host": host, "token_file": Path("f")}, {}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert settings_from({"host": host}, {}).loopback


def test_flags_before_variables_before_defaults() -> None:
    environment = {"EPSPARQL_PORT": "1", "EPSPARQL_RUNNER": "inprocess", "EPSPARQL_ORIGINS": "a, b", "EPSPARQL_DATA": "/d", "OTHER": "x"}
    found = settings_from({"port": 2, "runner": None, "unrelated": 1}, environment)
    assert (found.port, found.runner, found.origins, found.data, found.host) == (2, "inprocess", ("a", "b"), Path("/d"), Settings().host)


@pytest.mark.parametrize(("variable", "value"), [("EPSPARQL_PORT", "x"), ("EPSPARQL_RUNNER", "flink")])
def test_a_variable_that_cannot_be(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        settings_from({}, {variable: value})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no token"),
        ("# nothing\n", "no token"),
        ("secret admin\n", ":1: expected the SHA-256"),
        (f"\n{'0' * 64}\n", ":2: expected scopes"),
        (f"{'0' * 64} write:a\n", "found 'write:a'"),
    ],
)
def test_token_files_that_are_none(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(SettingsError, match=reason):
        load_grants(path)


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="missing"):
        load_grants(tmp_path / "missing")
