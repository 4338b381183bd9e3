"""`epsparql test`: folders and pages of tests, what they report, and what they refuse."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from server.cli.commands import main
from server.cli.subcommands.definition import BROKEN, OK, USER_FAULT

SHARED = Path(__file__).resolve().parents[4] / "shared"
QUERY = "SELECT ?s ?v WHERE { { ?s :low ?u } SEQ { ?s :high ?v } }"
TIMELINE = """seconds          | 0    5
:s :low 1        | o  o
:s :high 9       |   o
:t :high 7       |    o
=> ?s=:s ?v=9    | [-]
"""
EVENTS = (
    '{"s":"<x:s>","p":"<http://example.org/low>","o":"\\"1\\"","at":"2026-01-01T00:00:00Z"}\n'
    '{"s":"<x:s>","p":"<http://example.org/high>","o":"\\"é \\\\\\"9\\\\\\"\\"@fr","at":"2026-01-01T00:00:02Z"}\n'
)
DECLARED = "PREFIX : <http://example.org/> " + QUERY


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
    return folder


def outcome(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main(["test", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_a_timeline_that_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(capsys, write(tmp_path / "rise", query_rq=QUERY, rises_timeline=TIMELINE))
    assert code == OK
    assert f"ok {tmp_path}/rise/rises: 1 solutions" in text


def test_a_timeline_that_does_not_hold_and_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, query_rq=QUERY, wrong_timeline=TIMELINE.replace("?v=9    | [-]", "?v=8    | [-]"), right_timeline=TIMELINE)
    code, text = outcome(capsys, tmp_path, "--junit", tmp_path / "report.xml")
    assert code == BROKEN
    assert "1 solutions are missing, 1 are not expected" in text
    assert (
        '  missing: ?s=<http://example.org/s> ?v="8"^^<http://www.w3.org/2001/XMLSchema#integer> on [2026-01-01T00:00:00Z, 2026-01-01T00:00:02Z]'
        in text
    )
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [len(case.findall("failure")) for case in suite] == [0, 1]


@pytest.mark.parametrize("unit", ["seconds", "minutes", "hours", "days"])
def test_update_draws_what_was_found(unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, query_rq=QUERY, a_timeline=TIMELINE.replace("seconds", unit).replace("=> ?s=:s ?v=9    | [-]\n", ""))
    assert outcome(capsys, tmp_path)[0] == BROKEN
    code, text = outcome(capsys, tmp_path, "--update")
    assert (code, "updated" in text) == (OK, True)
    assert "=> ?s=:s ?v=9 " in (tmp_path / "a.timeline").read_text()
    assert outcome(capsys, tmp_path)[0] == OK


def test_update_writes_files_that_hold_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Strings with quotes, language tags and other scripts come back as they went in."""
    write(tmp_path, query_rq=DECLARED, stream_ndjson=EVENTS)
    code, text = outcome(capsys, tmp_path)
    assert (code, "`epsparql test --update` writes it" in text) == (BROKEN, True)
    assert outcome(capsys, tmp_path, "--update")[0] == OK
    assert "é" in (tmp_path / "expected.ndjson").read_text(encoding="utf-8")
    assert outcome(capsys, tmp_path)[0] == OK
    (tmp_path / "expected.ndjson").write_text((tmp_path / "expected.ndjson").read_text() * 2)
    assert "1 solutions are missing, 0 are not expected" in outcome(capsys, tmp_path)[1]


def test_options_streams_and_several_queries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path,
        a_rq="PREFIX : <http://example.org/> SELECT ?v FROM STREAM <x:one> WHERE { ?s :high ?v }",
        b_rq="PREFIX : <http://example.org/> ASK FROM STREAM <x:one> { ?s :high ?v . ?s :in :hall }",
        events_ndjson=EVENTS,
        place_ttl="<x:s> <http://example.org/in> <http://example.org/hall> .",
        test_toml='streams = ["x:one=events.ndjson"]\nbackground = ["place.ttl"]\npolicy = ["a=recent"]\n',
    )
    assert outcome(capsys, tmp_path, "--update")[0] == OK
    expected = (tmp_path / "expected.ndjson").read_text()
    assert (expected.count('"query": "a"'), expected.count('"query": "b"'), expected.count('"boolean": true')) == (1, 1, 1)
    assert outcome(capsys, tmp_path)[0] == OK


def test_update_draws_in_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two equal pictures of two queries are told apart, and the text around them stays."""
    none = "".join(line for line in TIMELINE.splitlines(keepends=True) if not line.startswith("=>"))
    page = tmp_path / "page.md"
    page.write_text(f"# A\n```sparql\n{QUERY}\n```\n```timeline\n{none}```\nB\n```sparql\nASK {{ ?s :high 9 }}\n```\n```timeline\n{none}```\nC\n")
    assert outcome(capsys, page, "--update")[0] == OK
    drawn = page.read_text()
    assert drawn.startswith(f"# A\n```sparql\n{QUERY}\n```\n```timeline\n")
    assert "\n=> ?s=:s ?v=9 | [-]\n```\nB\n```sparql\nASK" in drawn
    assert drawn.endswith("\n=> true    |   o\n```\nC\n")
    assert outcome(capsys, page)[0] == OK


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Rises\n\n```sparql\n{QUERY}\n```\n```timeline\n{TIMELINE}```\n", encoding="utf-8")
    assert outcome(capsys, page)[0] == OK
    page.write_text(page.read_text().replace(":t :high 7 ", ":t :high . "), encoding="utf-8")
    code, text = outcome(capsys, page)
    assert (code, f"{page}:10: ':t :high .' is no triple: . is not a valid RDF object" in text) == (BROKEN, True)


REFUSED = [
    ({"query_rq": "SELEC ?s", "expected_ndjson": ""}, "query.rq:1:1"),
    (
        {"query_rq": QUERY, "a_timeline": ":s :low 1 | o\n"},
        "a.timeline:1: the first line of a timeline begins with one of seconds, minutes, hours, days",
    ),
    ({"query_rq": QUERY, "a_timeline": "seconds | 0\n:s :low 1 o\n"}, "a.timeline:2: the line has no ` | `"),
    ({"query_rq": QUERY, "a_timeline": "seconds | 0\n:s :low 1 | x\n"}, "a.timeline:2: 'x' shows no times; expected o for an instant"),
    ({"query_rq": QUERY, "a_timeline": "seconds | 0\n:s :low 1 | \n"}, "a.timeline:2: the line shows no time"),
    ({"query_rq": QUERY, "a_timeline": "seconds | 0\n=> ?s=:s | o o\n"}, "a.timeline:2: a solution has one interval"),
    ({"query_rq": QUERY, "a_timeline": "seconds | 0\n" + "#\n" * 10_001}, "more than 10,000 lines"),
    ({"query_rq": DECLARED, "expected_ndjson": "{}\n"}, "expected.ndjson:1:1: this is no solution"),
    ({"query_rq": DECLARED, "expected_ndjson": "[]\n"}, "expected.ndjson:1:1: this is no solution"),
    ({"query_rq": DECLARED, "expected_ndjson": "", "test_toml": "stream = []"}, "'stream' is no option of a test; expected one of streams"),
    ({"query_rq": DECLARED, "expected_ndjson": "", "test_toml": 'streams = "a"'}, 'expected streams = ["..."]'),
    ({"query_rq": DECLARED, "expected_ndjson": "", "test_toml": "entailment = 'owl'"}, "entailment is 'owl'; expected rdfs or owl-rl"),
    ({"query_rq": DECLARED, "expected_ndjson": "", "test_toml": "policy = ['x=recent']"}, "there is no query 'x' to give a policy to"),
    ({"query_rq": DECLARED, "expected_ndjson": "", "test_toml": "streams = ['none.nq']"}, "none.nq: No such file"),
]


@pytest.mark.parametrize(("files", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(files: dict[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(capsys, write(tmp_path, **files))
    assert code == BROKEN
    assert message in text


def test_where_there_is_no_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, tmp_path)[0] == USER_FAULT
    code, text = outcome(capsys, tmp_path / "none")
    assert (code, "there is no such folder or page" in text) == (USER_FAULT, True)


@pytest.mark.parametrize("name", ["case0003", "case0077", "case0150"])
def test_conformance_cases_are_in_this_form(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(capsys, SHARED / "conformance/random" / name)[0] == OK
