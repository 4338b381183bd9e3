"""Rows and lines at fault, in all that runs queries over files: `on_error` has one set of words, and what is left out
is counted.
"""

import json
from pathlib import Path

import pytest

import epsparql
from epsparql.events.on_error import ON_ERROR, OTHER_NAMES, read_on_error
from server.cli.commands import main

QUERY = "PREFIX : <http://example.org/> SELECT ?s ?v WHERE { ?s :temp ?v }"
MAPPING = {
    "time": "ts",
    "base": "http://example.org/",
    "subject": "{sensor}",
    "properties": {"temp": {"iri": ":temp", "datatype": "xsd:decimal"}},
}
CSV = "ts,sensor,temp\n2026-01-01T00:00:00Z,a,1\n2026-01-01T00:00:01Z,b,cold\nnever,c,3\n2026-01-01T00:00:03Z,d,4\n"
_LINE = '{"s":"<http://example.org/%s>","p":"<http://example.org/temp>","o":"\\"%d\\"","at":"2026-01-01T00:00:0%dZ"}\n'
NDJSON = _LINE % ("a", 1, 1) + "no line\n" + '{"s":"<a>","p":"<b>","o":"<c>"}\n' + _LINE % ("b", 2, 2) + _LINE % ("c", 3, 3)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("q.rq", QUERY), ("m.json", json.dumps(MAPPING)), ("s.csv", CSV), ("s.ndjson", NDJSON)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_words() -> None:
    assert ON_ERROR == ("refuse", "skip", "dead_letter")
    assert {read_on_error(word) for word in OTHER_NAMES} == {"refuse"} == {read_on_error("reject"), read_on_error("stop")}
    assert read_on_error("drop") is None is read_on_error(5)


FILES = [
    pytest.param(["--stream", "s.csv", "--mapping", "m.json"], 2, "s.csv: 2 rows are", "row 2, field temp: 'cold' is no xsd:decimal", id="csv"),
    pytest.param(["--stream", "s.ndjson"], 3, "s.ndjson: 2 rows are", "row 2: ", id="ndjson"),
]


@pytest.mark.parametrize(("given", "found", "counted", "first"), FILES)
def test_a_replay(folder: Path, capsys: pytest.CaptureFixture[str], given: list[str], found: int, counted: str, first: str) -> None:
    assert main(["replay", "--query", "q.rq", *given]) == 2
    refused = capsys.readouterr()
    assert (refused.out, refused.err.count("\n")) == ("", 1)
    assert main(["replay", "--query", "q.rq", *given, "--on-error", "skip"]) == 0
    skipped = capsys.readouterr()
    assert len(skipped.out.splitlines()) == found
    assert f"{counted} left out" in skipped.err
    assert first in skipped.err
    assert not Path("dead-letters.ndjson").exists()
    assert main(["replay", "--query", "q.rq", *given, "--on-error", "dead_letter", "--dead-letters", "kept.ndjson"]) == 0
    kept = capsys.readouterr()
    assert kept.out == skipped.out
    assert f"{counted} in kept.ndjson" in kept.err
    letters = [json.loads(line) for line in Path("kept.ndjson").read_text().splitlines()]
    assert [letter["row"] for letter in letters] == [2, 3]
    assert all(letter["file"] == given[1] and letter["reason"] and letter["text"] for letter in letters)
    assert [letter["field"] for letter in letters] == (["temp", "ts"] if "csv" in given[1] else [None, None])


def test_another_run_begins_the_file_anew(folder: Path) -> None:
    for _ in range(2):
        assert main(["replay", "--query", "q.rq", "--stream", "s.ndjson", "other=s.ndjson", "--on-error", "dead_letter"]) == 0
    assert len(Path("dead-letters.ndjson").read_text().splitlines()) == 4


def test_more_rows_than_a_body_may_have(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.csv").write_text(CSV + "2026-01-01T00:00:04Z,e,warm\n" * 1_500)
    assert main(["replay", "--query", "q.rq", "--stream", "s.csv", "--mapping", "m.json", "--on-error", "skip"]) == 0
    assert "s.csv: 1502 rows are left out" in capsys.readouterr().err


def test_words_that_do_not_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--query", "q.rq", "--stream", "s.ndjson", "--dead-letters", "x"]) == 2
    assert "add --on-error dead_letter" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["replay", "--query", "q.rq", "--on-error", "drop"])
    assert "expected refuse, skip, dead_letter" in capsys.readouterr().err


def test_a_run_in_python(folder: Path) -> None:
    with pytest.raises(ValueError, match="field temp"):
        epsparql.run(QUERY, Path("s.csv"), mapping=MAPPING)
    with pytest.warns(UserWarning, match="s.csv: 2 rows are left out"):
        assert len(epsparql.run(QUERY, Path("s.csv"), mapping=MAPPING, on_error="skip")["query"]) == 2
    with pytest.warns(UserWarning, match="2 rows are in kept.ndjson"):
        epsparql.run(QUERY, Path("s.csv"), mapping=MAPPING, on_error="dead_letter", dead_letters="kept.ndjson")
    assert len(Path("kept.ndjson").read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="refuse, skip or dead_letter"):
        epsparql.run(QUERY, Path("s.csv"), mapping=MAPPING, on_error="drop")


def test_a_test_of_queries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = folder / "case"
    case.mkdir()
    (case / "q.rq").write_text(QUERY)
    (case / "stream.csv").write_text(CSV)
    (case / "test.toml").write_text('mapping = ["../m.json"]\n')
    assert main(["test", "case", "--update", "--on-error", "skip"]) == 0
    assert main(["test", "case"]) == 1
    assert "field temp" in capsys.readouterr().out
    (case / "test.toml").write_text('mapping = ["../m.json"]\non_error = "dead_letter"\n')
    assert main(["test", "case"]) == 0
    assert "2 solutions in" in (out := capsys.readouterr().out)
    assert "; 2 rows of its files left out" in out
    assert len((case / "dead-letters.ndjson").read_text().splitlines()) == 2
    (case / "test.toml").write_text('on_error = "drop"\n')
    assert main(["test", "case"]) == 1
    assert "on_error is 'drop'; expected refuse or skip or dead_letter" in capsys.readouterr().out


def test_a_replay_tells_of_another_unit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A replay has no limit of time; its end says what the times look like."""
    Path("m.json").write_text(json.dumps(MAPPING | {"time_format": "epoch_s"}))
    Path("s.csv").write_text("ts,sensor,temp\n1795910400000,a,1\n")
    assert main(["replay", "--query", "q.rq", "--stream", "s.csv", "--mapping", "m.json"]) == 0
    assert "stream default: its times look like milliseconds that were read as seconds, of 2026-11-29" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "found", "counted", "first"), FILES)
def test_a_diagnosis(folder: Path, capsys: pytest.CaptureFixture[str], given: list[str], found: int, counted: str, first: str) -> None:
    assert main(["diagnose", "q.rq", *given]) == 2
    assert capsys.readouterr().out == ""
    assert main(["diagnose", "q.rq", *given, "--on-error", "dead_letter", "--dead-letters", "kept.ndjson"]) == 0
    told = capsys.readouterr()
    assert f"q: {found} events" in told.out
    assert f"epsparql: {counted} in kept.ndjson" in told.err
    assert len(Path("kept.ndjson").read_text().splitlines()) == 2
    assert main(["diagnose", "q.rq", *given, "--dead-letters", "kept.ndjson"]) == 2
    assert "add --on-error dead_letter" in capsys.readouterr().err
