"""Mistakes of new users, at the command line and over HTTP: each answer says what is wrong, where, and what to do."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server.cli.commands import main
from server.cli.subcommands.definition import USER_FAULT
from tests.server.conftest import EX, serving

PREFIX = f"PREFIX : <{EX}> "
QUERY = PREFIX + "SELECT * WHERE { ?s :temp ?t FILTER(?t > 20) }"
EVENT = {"s": f"<{EX}a>", "p": f"<{EX}temp>", "o": '"21"', "at": "2026-01-01T00:00:00Z"}
FILES = {
    "q.rq": QUERY,
    "e.ndjson": json.dumps(EVENT) + "\n",
    "e.csv": "sensor,temp,time\na,21,2026-01-01T00:00:00Z\n",
    "empty.csv": "",
    "array.ndjson": f"[\n{json.dumps(EVENT)}\n]\n",
    "yaml.json": "time: ts",
    "base.json": '{"time": "time", "subject": "{sensor}"}',
    "c.json": '{"connectors": {}}',
}
TEXTS = [
    ("INSERT DATA { :a :b 1 }", ("SPARQL Update", ":1:32", "load background through the server")),
    ("SELECT * { ?s ex:a ?x }", ("ex: is not declared", ":1:46", "a declared prefix")),
    ("SELECT ?s (AVG(?x) AS ?m) { ?s :a ?x }", ("no single value", ":1:39", "SAMPLE(?s)")),
    ("SELECT * { ?s :a ?x FILTER regex(?x, '(') }", ("( has no )", ":1:69", "\\(")),
    ("SELECT DISTINCT ?s { ?s :a ?x } ORDER BY ?x WINDOW [RANGE PT1H]", ("comes too late", ":1:76", "GROUP BY, HAVING, WINDOW")),
]
"""Texts of queries, and what `epsparql check` says of each; tests/epsparql/lint has one of each kind."""
LINES: list[tuple[dict[str, object], tuple[str, ...]]] = [
    ({"at": None}, ("has no time", ":1:1", '"at"')),
    ({"at": "01/02/2026 10:00"}, ("'01/02/2026 10:00'", ":1:", "2026-01-01T00:00:01Z")),
    ({"s": "http://example.org/a"}, ("'http://example.org/a'", ":1:7", "<http://example.org/a>")),
    ({"at": None, "start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, ("after its end", ":1:", "start")),
]
"""Members of an event, and what `epsparql replay` says of it."""
COMMANDS = [
    ("check missing.rq", ("No such file", "missing.rq", "")),
    ("replay --query q.rq --stream e.csv", ("none is given", "e.csv", "epsparql map")),
    ("replay --query q.rq --stream array.ndjson", ("got `array`", "array.ndjson:1:1", "one JSON object per line")),
    ("replay --query q.rq --stream e.csv --mapping yaml.json", ("is no JSON", "line 1 column 1", "a JSON object")),
    ("replay --query q.rq --stream e.csv --mapping base.json", ("is relative", "mapping.subject", "give base")),
    ("replay --query e.ndjson --stream q.rq", ("unexpected '{'", "e.ndjson:1:1", "SELECT")),
    ("replay --query q.rq --stream e.ndjson --background e.csv", ("no format", "e.csv", ".ttl")),
    ("replay --stream e.ndjson", ("nothing is given to run", "replay", "--query FILE")),
    ("serve --partitions 0", ("'0'", "--partitions", "from 1 to 64")),
    ("serve --retain-age 30days", ("'30days'", "--retain-age", "30d")),
    ("map empty.csv", ("no rows", "empty.csv", "a header and rows")),
    ("test tests", ("no test here", "tests:", "docs/cookbook/tests.md")),
    ("connect c.json", ("no TOML", "c.json", "line 1, column 1")),
    ("chek q.rq", ("no command 'chek'", "epsparql", "was check meant?")),
    ("register x q.rq", ("unrecognized arguments: q.rq", "epsparql register", "FILE")),
]
"""Commands, and what they say."""
REQUESTS = [
    ("PUT", "/queries/a", "application/x-www-form-urlencoded", "query=x", 415, ("x-www-form-urlencoded", "a query", "application/sparql-query")),
    ("PUT", "/queries/known", "application/sparql-query", QUERY.replace("20", "30"), 409, ("is registered", "'known'", "?replace=promote")),
    ("GET", "/queries/knwon", "", "", 404, ("no query", "'knwon'", "'known'")),
    ("GET", "/queries/known/solutions?lmit=3", "", "", 400, ("no query parameter", "'lmit'", "'limit'")),
    ("GET", "/queries/known/solutions?after=3", "", "", 400, ("not a solution id", "after", "8000000000000000-00000000")),
    ("POST", "/streams/default/events", "text/csv", FILES["e.csv"], 415, ("needs a mapping", "stream", "epsparql map FILE")),
    ("POST", "/streams/http://e/s/events", "application/x-ndjson", FILES["e.ndjson"], 404, ("not found", "segment of the path", "%2F")),
    ("PUT", "/streams/default", "application/json", '{"max_dealy": "PT5M"}', 400, ("is not known", "'max_dealy'", "max_delay")),
    ("PUT", "/streams/default", "application/json", '{"max_delay": "5m"}', 400, ('not \\"5m\\"', "max_delay", "PT10S")),
    ("PUT", "/queries/known/observers/o", "application/json", '{"url": "example.org"}', 400, ("must begin with", "url", "https://")),
    ("PUT", "/ontologies/rooms", "text/plain", ":a :b :c .", 415, ("no format", "'text/plain'", "text/turtle")),
    (
        "POST",
        "/sparql",
        "application/sparql-update",
        "INSERT DATA { <a:b> <a:c> 1 }",
        422,
        ("updates are refused", "background", "PUT, POST and DELETE"),
    ),
    ("GET", "/queries/known/feed", "", "", 426, ("this is a WebSocket", "feed", "/queries/known/events")),
]
"""Requests, and what they are refused with."""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tests").mkdir()
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    try:
        code: object = main([*arguments])
    except SystemExit as end:  # as argparse ends
        code = end.code
    assert code == USER_FAULT
    return capsys.readouterr().err


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("text", "parts"), TEXTS)
def test_of_a_query(text: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.rq").write_text(PREFIX + text, encoding="utf-8")
    found = refusal(capsys, "check", "x.rq")
    assert [part for part in parts if part not in found] == [], found


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("members", "parts"), LINES)
def test_of_an_event(members: dict[str, object], parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    line = {name: value for name, value in (EVENT | members).items() if value is not None}
    Path("x.ndjson").write_text(json.dumps(line) + "\n", encoding="utf-8")
    found = refusal(capsys, "replay", "--query", "q.rq", "--stream", "x.ndjson")
    assert [part for part in parts if part not in found] == [], found


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("line", "parts"), COMMANDS)
def test_of_a_command(line: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    found = refusal(capsys, *line.split())
    assert [part for part in parts if part not in found] == [], found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(tmp_path_factory.mktemp("mistakes") / "data") as url, httpx.Client(base_url=url, timeout=60) as client:
        client.put("/queries/known", content=QUERY, headers={"Content-Type": "application/sparql-query"}).raise_for_status()
        yield client


@pytest.mark.parametrize(("method", "path", "media_type", "body", "status", "parts"), REQUESTS)
def test_of_a_request(server: httpx.Client, method: str, path: str, media_type: str, body: str, status: int, parts: tuple[str, ...]) -> None:
    answer = server.request(method, path, content=body, headers={"Content-Type": media_type} if media_type else {})
    assert answer.status_code == status, answer.text
    assert [part for part in parts if part not in answer.text + path] == [], answer.text
