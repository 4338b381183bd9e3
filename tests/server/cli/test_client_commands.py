"""The commands that are clients, against a real server: what they print, what they refuse, and that they need the
base installation alone.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from epsparql.client import Client
from server.cli.commands import main
from server.cli.subcommands import client_actions
from tests.server.conftest import EX, event, moment, until

USER_FAULT = 2
JOINED = f"PREFIX : <{EX}> SELECT ?s ?a ?b FROM STREAM <%s> WHERE {{ {{ ?s :value ?a }} SEQ {{ ?s :value ?b }} }}"


@pytest.fixture(autouse=True)
def server_of_commands(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EPSPARQL_SERVER", url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("EPSPARQL_TOKEN", raising=False)


def query_file(directory: Path, stream: str, name: str = "q") -> Path:
    path = directory / f"{name}.rq"
    path.write_text(JOINED % stream)
    return path


def events_file(directory: Path, seconds: range) -> Path:
    path = directory / "events.ndjson"
    path.write_text("".join(event(second) + "\n" for second in seconds))
    return path


def test_register_send_tail_and_drop(
    tmp_path: Path, stream: str, client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, events = query_file(tmp_path, stream), events_file(tmp_path, range(3))
    assert main(["register", str(query), "--name", "joined"]) == 0
    assert main(["register", str(query), "--name", "joined"]) == 0
    assert capsys.readouterr().out == "joined is registered\njoined was registered already\n"
    monkeypatch.setattr(client_actions, "_PART_BYTES", 50)
    assert main(["send", stream, str(events)]) == 0
    assert capsys.readouterr().out == f"{events}: 3 events accepted, 0 late\n"
    assert main(["tail", "joined", "--after", "0000000000000000-00000000", "--count", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f'{moment(0)} to {moment(1)}  ?s=<{EX}s>  ?a="0"  ?b="1"'
    until(lambda: client.query("joined")["solutions"] == 3, "all are found")
    assert main(["tail", "joined", "--last", "1", "--count", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == solutions_of(client, "joined")[-1]
    assert main(["tail", stream, "--stream", "--last", "1", "--count", "1"]) == 0
    assert capsys.readouterr().out == f'{moment(2)}  <{EX}s> <{EX}value> "2"\n'
    assert main(["queries"]) == main(["streams"]) == 0
    shown, warned = capsys.readouterr()
    assert [line.split() for line in shown.splitlines() if line.startswith("joined")] == [["joined", "running", "3", "0", "1"]]
    assert next(line for line in warned.splitlines() if line.startswith("joined:")).endswith("[unbounded-state]")
    assert any(line.startswith(stream) and line.split()[2:] == ["3", "0", "0"] for line in shown.splitlines())
    assert main(["queries", "--json"]) == 0
    assert "joined" in [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert main(["queries", "joined", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert [warning["code"] for warning in json.loads(line)["warnings"]] == ["unbounded-state"]
    assert main(["queries", "joyned"]) == 2
    assert "no query 'joyned'" in capsys.readouterr().err
    assert main(["drop", "joined"]) == main(["drop", stream, "--stream"]) == 0
    assert main(["drop", "joined"]) == USER_FAULT
    assert "404" in capsys.readouterr().err


def test_register_promotes(tmp_path: Path, stream: str, name: str, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.register(name, JOINED % stream)
    query = query_file(tmp_path, stream)
    query.write_text((JOINED % stream).replace("SEQ", "AND"))
    command = ["register", str(query), "--name", name, "--promote"]
    assert main(command) == 0
    until(lambda: client.query(name)["version"] == 2, "it has taken over")
    assert main(command) == 0
    position = client.promotion(name)["position"]
    assert capsys.readouterr().out.splitlines()[-1] == f"{name} is promoted: version 2, from offset {position} on"


def test_promote_replaces_a_running_query(tmp_path: Path, stream: str, name: str, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    query = query_file(tmp_path, stream)
    command = ["promote", str(query), "--name", name]
    assert main(command) == USER_FAULT
    assert "404" in capsys.readouterr().err
    client.register(name, JOINED % stream)
    query.write_text((JOINED % stream).replace("?a ?b", "?b"))
    assert main(command) == USER_FAULT
    assert "has the columns" in capsys.readouterr().err
    assert main([*command, "--change-columns"]) == 0
    until(lambda: client.query(name)["version"] == 2, "it has taken over")


def solutions_of(client: Client, name: str) -> list[dict[str, object]]:
    _, _, content = client.request("GET", f"/queries/{name}/solutions", Accept="application/x-ndjson")
    return [json.loads(line) for line in content.splitlines()]


def test_tail_goes_on_with_new_solutions(tmp_path: Path, stream: str, name: str, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.register(name, JOINED % stream)
    client.send(stream, f"{event(0)}\n{event(1)}")
    until(lambda: client.query(name)["solutions"] == 1, "the first is found")
    following = threading.Thread(target=main, args=(["tail", name, "--count", "3", "--json"],))
    following.start()
    client.send(stream, event(3))
    following.join(60)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["end"] for each in found] == [moment(1), moment(3), moment(3)]


def test_tail_tells_changes_of_a_revised_query(
    tmp_path: Path, stream: str, name: str, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    client.create_stream(stream, revisable="PT1M")
    assert main(["register", str(query_file(tmp_path, stream)), "--name", name, "--emit", "revised"]) == 0
    assert client.query(name)["emit"] == "revised"
    client.send(stream, f"{event(0)}\n{event(1)}")
    until(lambda: client.query(name)["solutions"] == 1, "the first is found")
    client.send(stream, json.dumps({**json.loads(event(0)), "retract": True}))
    assert main(["tail", name, "--count", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert [line[:2] for line in lines] == ["+ ", "- "]
    assert lines[0][2:] == lines[1][2:]
    assert main(["tail", name, "--count", "2", "--json"]) == 0
    changes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert changes[0]["added"] == changes[1]["withdrawn"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["register", "{tmp}/none.rq"], "none.rq: No such file or directory"),
        (["register", "{tmp}/wrong.rq"], "wrong.rq:2:"),
        (["send", "s", "{tmp}/events.docx"], "no format of events is known by the suffix '.docx'; --type names one"),
        (["send", "s", "{tmp}/none.ndjson"], "none.ndjson: No such file or directory"),
        (["tail", "no such query", "--count", "1"], "404"),
        (["queries", "--server", "plant"], "'plant' is no URL, and"),
        (["queries", "--server", "ftp://plant"], "is no URL of a server"),
        (["queries", "--token-env", "NOT_SET"], "the environment has no variable 'NOT_SET'"),
    ],
)
def test_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    (tmp_path / "wrong.rq").write_text("SELECT *\nWHERE { { ?s ?p 1 } SEK { ?s ?p 2 } }")
    assert main([argument.replace("{tmp}", str(tmp_path)) for argument in arguments]) == USER_FAULT
    assert told in capsys.readouterr().err


def test_a_refused_line_is_named_in_its_file(
    tmp_path: Path, stream: str, client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = events_file(tmp_path, range(5))
    events.write_text(events.read_text() + '{"s":"no term"}\n')
    monkeypatch.setattr(client_actions, "_PART_BYTES", 50)
    assert main(["send", stream, str(events)]) == USER_FAULT
    told = capsys.readouterr().err
    assert f"{events}:6:" in told
    assert "the 5 lines before were accepted" in told
    assert client.stream(stream)["accepted"] == 5


def test_send_sets_the_mapping_of_a_stream(tmp_path: Path, stream: str, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    table, rows, mapping = tmp_path / "rows.csv", tmp_path / "rows.jsonl", tmp_path / "mapping.json"
    table.write_text(f"t,v\n{moment(0)},1\n{moment(1)},2\n")
    rows.write_text(f'{{"t":"{moment(2)}","v":3}}\n')
    mapping.write_text(json.dumps({"format": "csv", "time": "t", "base": EX, "properties": {"v": ":value"}}))
    assert main(["send", stream, str(table)]) == USER_FAULT
    assert "the stream has none; expected --mapping FILE, which epsparql map proposes" in capsys.readouterr().err
    assert main(["send", stream, str(rows)]) == USER_FAULT
    assert "unknown field 't'; expected s, p, o, g, triples," in capsys.readouterr().err
    assert main(["send", stream, str(table), "--mapping", str(mapping)]) == 0
    assert main(["send", stream, str(table)]) == 0
    mapping.write_text(json.dumps({"format": "json", "time": "t", "base": EX, "properties": {"v": ":value"}}))
    assert main(["send", stream, str(rows), "--mapping", str(mapping)]) == 0
    assert "rows.jsonl: 1 events accepted, 0 late" in capsys.readouterr().out
    assert client.stream(stream)["mapping"]["format"] == "json"
    mapping.write_text("{")
    assert main(["send", stream, str(rows), "--mapping", str(mapping)]) == USER_FAULT
    assert f"{mapping}: the mapping is no JSON" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["queries", "diagnose alarm", "trial q.rq"])
def test_a_server_that_is_not_there(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text("SELECT * { ?s ?p ?o }", encoding="utf-8")
    assert main([*command.split(), "--server", "http://127.0.0.1:9"]) == 1
    assert "the server http://127.0.0.1:9 does not answer: Connection refused; `epsparql serve` starts one" in capsys.readouterr().err


def test_a_server_has_a_name(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config" / "epsparql" / "servers.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[plant]\nurl = "{url}"\ntoken_env = "PLANT"\n[other]\naddress = "x"\n')
    monkeypatch.setenv("PLANT", "secret")
    assert main(["streams", "--server", "plant"]) == 0
    assert capsys.readouterr().out.startswith("stream")
    for server, told in (("mill", "has no server 'mill'; it has plant, other"), ("other", "other cannot have 'address'; it may have url")):
        assert main(["streams", "--server", server]) == USER_FAULT
        assert told in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal(stream: str, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.send(stream, json.dumps({"s": f"<{EX}a>", "p": f"<{EX}p>", "o": '"\x1b[2Jgone"', "at": moment(0)}))
    assert main(["tail", stream, "--stream", "--count", "1"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\u001B[2Jgone" in shown


def test_they_need_the_base_installation_alone(url: str) -> None:
    """Modules of the extras are hidden from a new process, as if they were not installed."""
    hide = "import sys\nfor name in ('numpy', 'pyarrow', 'pyoxigraph', 'obstore', 'fastapi', 'rich'): sys.modules[name] = None\n"
    code = f"{hide}from server.cli import main\nsys.exit(main(['queries', '--json']))"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"EPSPARQL_SERVER": url}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
