"""Why a query finds nothing, over HTTP, from the command line, and as the last line of a replay and a test."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.client import segment
from server.cli.commands import main
from tests.server.conftest import EX, event, moment
from tests.server.routes.test_streams import post
from tests.support.logs import until

PATTERN = f"{{ {{ ?s <{EX}a> ?a }} SEQ {{ ?s <{EX}b> ?b }} }}"


def line(name: str, at: str) -> str:
    return f'{{"s":"<{EX}s>","p":"<{EX}{name}>","o":"\\"1\\"","at":"{at}"}}'


def register(http: httpx.Client, name: str, stream: str, pattern: str = PATTERN) -> None:
    answer = http.put(
        f"/queries/{segment(name)}", content=f"SELECT * FROM STREAM <{stream}> {pattern}", headers={"Content-Type": "application/sparql-query"}
    )
    assert answer.status_code == 201, answer.text


def diagnosis(http: httpx.Client, name: str) -> Any:
    answer = http.get(f"/queries/{segment(name)}/diagnosis")
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestRegistered:
    def test_a_step_lets_nothing_through(self, http: httpx.Client, stream: str) -> None:
        register(http, f"why-{stream}", stream)
        post(http, stream, "\n".join([line("a", moment(1)), line("c", moment(2))]))
        found = diagnosis(http, f"why-{stream}")
        assert found["state"] == "nothing"
        assert found["examined"] == {"events": 2, "from": moment(1), "to": moment(2), "bounded": False}
        assert [(step["operator"], step["in"], step["out"]) for step in found["steps"]] == [
            ("pattern", [], 1),
            ("pattern", [], 0),
            ("SEQ", [1, 0], 0),
        ]
        assert found["reason"]["code"] == "predicate-never-seen"
        assert f"<{EX}b>" in found["reason"]["message"]

    def test_what_was_found(self, http: httpx.Client, stream: str) -> None:
        register(http, f"why-{stream}", stream)
        post(http, stream, "\n".join([line("a", moment(1)), line("b", moment(2)), line("c", moment(3))]))
        until(lambda: diagnosis(http, f"why-{stream}")["state"] == "found", "the query found something")
        assert diagnosis(http, f"why-{stream}")["reason"] is None

    def test_the_query_came_after_the_events(self, http: httpx.Client, stream: str) -> None:
        post(http, stream, "\n".join([line("a", moment(1)), line("b", moment(2))]))
        register(http, f"why-{stream}", stream)
        assert diagnosis(http, f"why-{stream}")["reason"]["code"] == "began-after"

    def test_the_watermark_waits(self, http: httpx.Client, stream: str) -> None:
        assert http.put(f"/streams/{segment(stream)}", json={"max_delay": "PT1H"}).status_code in (200, 201)
        register(http, f"why-{stream}", stream)
        post(http, stream, "\n".join([line("a", moment(1)), line("b", moment(2))]))
        reason = diagnosis(http, f"why-{stream}")["reason"]
        assert reason["code"] == "watermark-waits"
        assert f"the watermark of the stream <{stream}>" in reason["message"]

    def test_all_events_are_late(self, http: httpx.Client, stream: str) -> None:
        """One event stood far ahead of the clock, as if its time were in another unit."""
        http.put(f"/streams/{segment(stream)}", json={"max_ahead": 0}).raise_for_status()
        register(http, f"why-{stream}", stream)
        post(http, stream, line("z", "2058-01-01T00:00:00Z"))
        post(http, stream, "\n".join([line("a", moment(1)), line("b", moment(2))]))
        reason = diagnosis(http, f"why-{stream}")["reason"]
        assert reason["code"] == "all-late"
        assert f"since the event <{EX}s> <{EX}z>" in reason["message"]
        assert "ahead of the clock" in reason["message"]

    def test_a_paused_query(self, http: httpx.Client, stream: str) -> None:
        register(http, f"why-{stream}", stream)
        assert http.post(f"/queries/{segment(f'why-{stream}')}/pause").is_success
        assert diagnosis(http, f"why-{stream}")["reason"]["code"] == "query-paused"

    def test_no_query_of_this_name(self, http: httpx.Client) -> None:
        assert http.get("/queries/nobody/diagnosis").status_code == 404

    def test_the_command_asks_the_server(self, http: httpx.Client, url: str, stream: str, capsys: pytest.CaptureFixture[str]) -> None:
        register(http, f"why-{stream}", stream)
        post(http, stream, event(1))
        assert main(["diagnose", f"why-{stream}", "--server", url]) == 0
        assert "why nothing: line 1, column" in capsys.readouterr().out


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "hot.rq").write_text(f"PREFIX : <{EX}>\nSELECT * {{ ?s :t ?t FILTER(?t > 30) }}")
    (tmp_path / "events.ndjson").write_text(f'{{"s":"<{EX}s>","p":"<{EX}t>","o":"\\"35\\"","at":"{moment(1)}"}}\n')
    return tmp_path


class TestFiles:
    def test_the_command_diagnoses_files(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diagnose", str(files / "hot.rq"), "--stream", str(files / "events.ndjson")]) == 0
        told = capsys.readouterr().out
        assert "1 -> 0  FILTER ?t > 30" in told
        assert '?t was compared with a number once and was a text each time: "35" [other-datatype]' in told

    def test_as_json(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["diagnose", str(files / "hot.rq"), "--json", "--stream", str(files / "events.ndjson")]) == 0
        assert json.loads(capsys.readouterr().out)["reason"]["code"] == "other-datatype"

    def test_a_replay_that_found_nothing_says_why(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["replay", "--query", str(files / "hot.rq"), "--stream", str(files / "events.ndjson")]) == 0
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("epsparql: hot: why nothing: ?t was compared with a number")

    def test_a_test_that_found_nothing_says_why(self, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (files / "events.ndjson").rename(files / "stream.ndjson")
        (files / "expected.ndjson").write_text(f'{{"start":"{moment(1)}","end":"{moment(1)}","binding":{{}}}}\n')
        assert main(["test", str(files)]) == 1
        assert "hot: why nothing: ?t was compared with a number" in capsys.readouterr().err
