"""Options of connectors: what is refused, with which message, and that no credential is stored or told."""

import json
from pathlib import Path
from pkgutil import resolve_name

import pytest

from connectors.assignment import Assignment, decode_assignment
from connectors.configuration import parse_connector, read_connector_file
from connectors.credentials import CredentialPlaces, read_credentials, redact
from connectors.errors import WrongOption
from connectors.inbound.bodies import MOST_BYTES, join_messages
from connectors.inbound.source import Message, Source
from connectors.outbound.sink import Sink
from connectors.status import Status, StatusBoard, decode_status, encode_status
from connectors.systems import IN, OUT, SYSTEMS

ROOT = Path(__file__).parents[2]
DOCUMENTATION = (ROOT / "docs/connectors.md").read_text(encoding="utf-8")
NATS = {"type": "nats", "stream": "weather", "url": "nats://127.0.0.1:4222", "jetstream": "READINGS"}

REFUSED = [
    pytest.param({}, "type must be one of", id="no type"),
    pytest.param(NATS | {"type": "carrier pigeon"}, "type must be one of", id="unknown type"),
    pytest.param({"type": "nats"}, "either stream", id="no direction"),
    pytest.param(NATS | {"query": "q"}, "either stream", id="both directions"),
    pytest.param({key: value for key, value in NATS.items() if key != "jetstream"}, "jetstream is missing", id="missing option"),
    pytest.param(NATS | {"jetstrem": "x"}, "there is no option 'jetstrem'; the nearest one is 'jetstream'", id="unknown option"),
    pytest.param(NATS | {"batch": "10"}, "batch must be a whole number", id="wrong type"),
    pytest.param(NATS | {"batch": True}, "batch must be a whole number", id="a switch is no number"),
    pytest.param(NATS | {"batch": 0}, "batch must be at least 1", id="too small"),
    pytest.param(NATS | {"on_error": "ignore"}, "on_error must be one of refuse, skip, dead_letter", id="not allowed"),
    pytest.param(NATS | {"stream": ""}, "stream must not be empty", id="empty"),
    pytest.param(NATS | {"password": "s3cret"}, "name its place with password_env or password_file", id="password"),
    pytest.param(NATS | {"password_env": "A", "password_file": "b"}, "give password_env or password_file, and not both", id="two places"),
    pytest.param(NATS | {"password_env": 7}, "password_env must be a string", id="no name"),
    pytest.param(NATS | {"url": "nats://me:s3cret@127.0.0.1"}, "url holds a credential", id="password in the URL"),
    pytest.param(NATS | {"url": "nats://s3cret@127.0.0.1"}, "url holds a credential", id="token in the URL"),
    pytest.param(NATS | {"url": "http://127.0.0.1"}, "url must begin with nats://", id="scheme"),
    pytest.param(NATS | {"url": "nats://127.0.0.1?password=s3cret"}, "url has the parameter", id="parameter of the URL"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_wrong_options_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(WrongOption) as refused:
        parse_connector("readings", given)
    assert message in str(refused.value)
    assert str(refused.value).startswith("connector 'readings': ")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_table_of_systems_agrees_with_classes_and_documentation(name: str) -> None:
    """Each direction has a class, and each option a row of the system's section."""
    system = SYSTEMS[name]
    for direction, kind, path in ((IN, Source, system.source), (OUT, Sink, system.sink)):
        assert (path is None) == (direction not in system.options)
        assert path is None or kind in resolve_name(path).__mro__
    section = DOCUMENTATION.partition(f"### Type `{name}`\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    options = {option for table in system.options.values() for option in table} | {f"{each}_env" for each in system.credentials}
    assert [option for option in sorted(options) if f"`{option}`" not in section] == []


def test_defaults_and_scopes() -> None:
    found = parse_connector("readings", NATS)
    assert (found.direction, found.scope, found.options["batch"], found.options["on_error"]) == ("in", "ingest:weather", 500, "dead_letter")
    assert dict(found.given) == NATS
    assert {parse_connector("readings", NATS | {"on_error": word}).options["on_error"] for word in ("stop", "reject", "refuse")} == {"refuse"}
    out = parse_connector("alerts", {"type": "nats", "query": "q", "url": "nats://h", "subject": "alerts"})
    assert (out.direction, out.scope) == ("out", "read:q")


FILES = [
    pytest.param("[connectors.a", "a.toml is no TOML: ", id="no TOML"),
    pytest.param("", "it has no connector", id="empty"),
    pytest.param("port = 3\n[connectors.a]\ntype = 'nats'", "there is no setting 'port'", id="unknown setting"),
    pytest.param("server = 'ftp://h'\n[connectors.a]\ntype = 'nats'", "server must be a URL", id="server"),
    pytest.param("server = 'http://me:s3cret@h'\n[connectors.a]\ntype = 'nats'", "server holds a credential", id="credential"),
    pytest.param("[connectors.a]\ntype = 'nats'", "connector 'a': give either", id="connector"),
]


@pytest.mark.parametrize(("text", "message"), FILES)
def test_wrong_files_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(WrongOption) as refused:
        read_connector_file(path)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    for name, why in (
        ("none", "cannot be read: No such file or directory"),
        ("", "cannot be read: Is a directory"),
        ("latin", "is not UTF-8; save it in that encoding"),
    ):
        with pytest.raises(WrongOption) as refused:
            read_connector_file(tmp_path / name)
        assert str(refused.value) == f"{tmp_path / name} {why}"


def test_credentials_come_from_their_places(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")
    options = {"token_env": "TOKEN", "password_file": str(tmp_path / "password")}
    assert read_credentials(options, ("token", "password"), {"TOKEN": "from a variable"}) == {"token": "from a variable", "password": "from a file"}
    with pytest.raises(WrongOption, match="no variable 'TOKEN'"):
        read_credentials(options, ("token",), {})
    with pytest.raises(WrongOption, match="cannot be read"):
        read_credentials({"token_file": str(tmp_path / "none")}, ("token",), {})


def test_places_over_http_are_limited(tmp_path: Path) -> None:
    places = CredentialPlaces("EPSPARQL_CONNECTOR_", tmp_path, limited=True)
    parse_connector("a", NATS | {"token_env": "EPSPARQL_CONNECTOR_TOKEN"}, places)
    parse_connector("a", NATS | {"token_file": str(tmp_path / "token")}, places)
    with pytest.raises(WrongOption, match="begin with EPSPARQL_CONNECTOR_"):
        parse_connector("a", NATS | {"token_env": "AWS_SECRET_ACCESS_KEY"}, places)
    for path in ("/etc/shadow", str(tmp_path / ".." / "x"), "token"):
        with pytest.raises(WrongOption, match="below the directory"):
            parse_connector("a", NATS | {"token_file": path}, places)
    with pytest.raises(WrongOption, match="connector_files, which is not set"):
        parse_connector("a", NATS | {"token_file": str(tmp_path / "token")}, CredentialPlaces(limited=True))


def test_a_url_over_http_names_files_below_the_directory(tmp_path: Path) -> None:
    places = CredentialPlaces("EPSPARQL_CONNECTOR_", tmp_path, limited=True)
    given = {"type": "postgresql", "query": "q", "table": "t"}
    for good in (f"{tmp_path}/ca.pem", "system"):
        parse_connector("a", given | {"url": f"postgresql://h/d?sslmode=verify-full&sslrootcert={good}"}, places)
    (tmp_path / "a b").symlink_to("/etc")
    for bad in ("/etc/passwd", "%2Fetc%2Fpasswd", "ca.pem", f"{tmp_path}/a%20b/passwd", f"{tmp_path}/../x"):
        url = f"postgresql://h/d?sslrootcert={bad}"
        parse_connector("a", given | {"url": url})
        with pytest.raises(WrongOption, match="url: sslrootcert: over HTTP, files may be named only below"):
            parse_connector("a", given | {"url": url}, places)


def test_places_hold_when_a_worker_starts_and_when_a_credential_is_read(tmp_path: Path) -> None:
    places = CredentialPlaces("EPSPARQL_CONNECTOR_", tmp_path, limited=True)
    secret = tmp_path / "token"
    secret.write_text("good")
    connector = parse_connector("a", NATS | {"token_file": str(secret)}, places)
    assert read_credentials(connector.options, ("token",), places=connector.places) == {"token": "good"}
    line = Assignment(connector, "http://127.0.0.1:1", None, {}).encode()
    assert decode_assignment(line).connector == connector
    secret.unlink()
    secret.symlink_to("/etc/passwd")
    with pytest.raises(WrongOption, match="below the directory"):
        read_credentials(connector.options, ("token",), places=connector.places)
    with pytest.raises(WrongOption, match="below the directory"):
        decode_assignment(line)


def test_messages_are_redacted() -> None:
    assert redact("connecting to nats://me:s3cret@h:1 with s3cret", ["s3cret"]) == "connecting to nats://***@h:1 with ***"
    assert redact("nothing here", ["", "s3cret"]) == "nothing here"


def test_a_status_survives_its_line() -> None:
    board = StatusBoard()
    board.count(messages=3)
    board.count(messages=2, late=1)
    board.record_fault("waiting", "x" * 5_000)
    assert (board.present.messages, board.present.late, board.present.faults) == (5, 1, 1)
    assert len(board.present.fault or "") == 1_000
    assert decode_status(encode_status(board.present)) == board.present
    assert decode_status("Traceback (most recent call last):") is None
    assert decode_status('{"status": 1}') is None
    assert decode_status('{"status": {"later": 1}}') == Status()


def messages(*payloads: bytes) -> list[Message]:
    return [Message(payload, str(number)) for number, payload in enumerate(payloads, 1)]


def test_lines_are_joined_and_documents_are_not() -> None:
    found = messages(b"a", b"b", b"c")
    assert [body for _, body in join_messages(found, "application/x-ndjson; charset=utf-8")] == [b"a\nb\nc"]
    assert [body for _, body in join_messages(found, "text/turtle")] == [b"a", b"b", b"c"]
    assert [body for _, body in join_messages(messages(b"{1}", b"{2}", b"{\n}", b"[3]", b"{4}"), "application/json")] == [
        b"{1}\n{2}",
        b"{\n}",
        b"[3]",
        b"{4}",
    ]
    assert list(join_messages([], "text/turtle")) == []


def test_bodies_of_several_messages_are_bounded() -> None:
    long = b"x" * (MOST_BYTES // 2)
    assert [len(group) for group, _ in join_messages(messages(long, long, long, b"y"), "application/x-ndjson")] == [1, 1, 2]
    assert [len(group) for group, _ in join_messages(messages(long * 3, b"y"), "application/x-ndjson")] == [1, 1]


def test_the_console_s_examples_are_settings_of_each_system_and_direction() -> None:
    """They are taken over HTTP, where credentials and files are limited."""
    places = CredentialPlaces("EPSPARQL_CONNECTOR_", Path("/srv"), limited=True)
    examples = json.loads((ROOT / "console/data/connectors.json").read_text(encoding="utf-8"))
    found = [parse_connector("example", example["options"], places) for example in examples]
    assert {(each.system, each.direction) for each in found} == {
        (name, direction) for name, system in SYSTEMS.items() for direction in system.options
    }
