"""Shapes of SHACL in the background (`--shapes`): what is refused or reported, and what shapes cannot do to a server."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import rdflib

from epsparql import extras
from pipeline.formats.background import read_graphs
from server.background.shapes_process import judge_shapes
from server.background.shapes_protocol import DONE, INVALID, NOT_COVERED, ShapesVerdict
from server.cli.commands import main
from tests.server.conftest import EX, refusal_of, serving

pytestmark = pytest.mark.slow  # each check loads pyshacl
PREFIXES = f"@prefix : <{EX}> . @prefix sh: <http://www.w3.org/ns/shacl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
SHAPES = PREFIXES + (
    ':Sensor sh:targetClass :Sensor_ ; sh:property [ sh:path :room ; sh:minCount 1 ; sh:class :Room ; sh:message "a sensor is in a room" ] . '
    ":Old sh:targetSubjectsOf :retired ; sh:severity sh:Warning ; sh:property [ sh:path :since ; sh:minCount 1 ; sh:severity sh:Warning ] ."
)
GOOD = PREFIXES + ":s1 a :Sensor_ ; :room :r1 . :r1 a :Room ."
BAD = PREFIXES + ":s2 a :Sensor_ . :s3 a :Sensor_ ; :room :r9 ."
ROOM = f"{EX}room"
TTL = {"Content-Type": "text/turtle"}


def put(http: httpx.Client, graph: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = http.put(f"/ontologies/{graph}", content=text, headers=TTL).json()
    return found


def names(http: httpx.Client) -> list[str]:
    return sorted(each["name"].rpartition(":")[2] for each in http.get("/ontologies").json()["ontologies"])


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("refuse"), shapes="refuse") as url:
        yield url


@pytest.fixture
def http(refusing: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=refusing, timeout=60) as found:
        yield found
        for name in sorted(names(found), key=lambda each: each != "shapes"):
            found.delete(f"/ontologies/{name}").raise_for_status()


def test_what_violates_a_shape_is_refused_whichever_comes_last(http: httpx.Client) -> None:
    put(http, "shapes", SHAPES)
    problem = put(http, "bad", BAD)
    assert (problem["status"], problem["code"]) == (422, "shapes-violated")
    assert problem["detail"] == f"<{EX}s2> violates the shape <{EX}Sensor> at <{ROOM}>: a sensor is in a room (and 1 more)"
    assert problem["expected"] == "triples that meet the shapes; --shapes report loads the others too"
    put(http, "good", GOOD)
    assert names(http) == ["good", "shapes"]
    assert http.get("/ontologies", params={"shapes": True}).json()["shapes"] == {"results": 0, "violations": 0, "shown": []}
    http.delete("/ontologies/shapes")
    put(http, "bad", BAD)
    assert put(http, "shapes", SHAPES)["code"] == "shapes-violated"
    assert names(http) == ["bad", "good"]


def test_a_graph_on_which_another_one_depends_stays(http: httpx.Client) -> None:
    put(http, "rooms", PREFIXES + ":r1 a :Room .")
    put(http, "sensors", PREFIXES + ":s1 a :Sensor_ ; :room :r1 .")
    put(http, "shapes", SHAPES)
    assert http.delete("/ontologies/rooms").json()["code"] == "shapes-violated"
    assert names(http) == ["rooms", "sensors", "shapes"]


def test_a_warning_refuses_nothing(http: httpx.Client) -> None:
    put(http, "shapes", SHAPES)
    assert put(http, "old", PREFIXES + ":s1 :retired true .")["triples"] == 1
    report = http.get("/ontologies", params={"shapes": True}).json()["shapes"]
    assert (report["results"], report["violations"]) == (1, 0)
    assert report["shown"] == [
        {
            "focus": f"<{EX}s1>", "path": f"<{EX}since>", "value": None, "shape": f"<{EX}Old>", "severity": "Warning",
            "constraint": "MinCountConstraintComponent", "message": report["shown"][0]["message"],
        }
    ]  # fmt: skip


NOT_USABLE = [
    pytest.param('sh:sparql [ sh:select "SELECT $this { SERVICE <http://127.0.0.1:1/> { $this ?p ?o } }" ]', NOT_COVERED, "sh:select", id="sparql"),
    pytest.param('sh:js [ sh:jsFunctionName "f" ; sh:jsLibrary [ sh:jsLibraryURL "http://127.0.0.1:1/x.js" ] ]', NOT_COVERED, "sh:js", id="js"),
    pytest.param('sh:target [ a sh:SPARQLTarget ; sh:select "SELECT ?this {}" ]', NOT_COVERED, "sh:select", id="target"),
    pytest.param("sh:rule [ sh:subject sh:this ]", NOT_COVERED, "sh:rule", id="rule"),
    pytest.param("sh:property [ sh:minCount 1 ]", INVALID, "not a well-formed SHACL PropertyShape", id="no path"),
    pytest.param('sh:property [ sh:path :p ; sh:minCount "x" ]', INVALID, "", id="no number"),
    pytest.param("sh:property [ sh:path ( :p ) ; sh:minCount 1 ]", INVALID, "", id="a short sequence"),
    pytest.param("sh:node :S", INVALID, "Recursive Shape", id="endless recursion"),
]


@pytest.mark.parametrize(("part", "outcome", "detail"), NOT_USABLE)
def test_shapes_that_are_malformed_or_run_code(monkeypatch: pytest.MonkeyPatch, part: str, outcome: str, detail: str) -> None:
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", rdflib.NORMALIZE_LITERALS)  # it is set, and set back after the test
    verdict = judge_shapes(as_ntriples(f"{PREFIXES} :S a sh:NodeShape ; sh:targetNode :n ; {part} . :n :p 1 ."))
    assert (verdict["outcome"], verdict["shown"]) == (outcome, [])
    assert detail in verdict["detail"]


def test_literals_are_validated_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """rdflib would turn `01` into `1`. SHACL has no triple terms, so their triples are left out."""
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", rdflib.NORMALIZE_LITERALS)
    text = f'{PREFIXES} :S sh:targetNode :n ; sh:property [ sh:path :p ; sh:pattern "^01$" ] . :n :p 01 ; :q "a"@en--ltr, <<( :a :b :c )>> .'
    assert judge_shapes(as_ntriples(text)) == ShapesVerdict(outcome=DONE, detail="", results=0, violations=0, shown=[])


def as_ntriples(turtle: str) -> str:
    return "".join(read_graphs(turtle.encode(), "text/turtle").values())


def test_shapes_that_run_code_are_refused(http: httpx.Client) -> None:
    problem = put(
        http, "shapes", f'{PREFIXES} :S sh:targetNode :n ; sh:sparql [ sh:select "SELECT $this {{ SERVICE <http://127.0.0.1:1/> {{}} }}" ] .'
    )
    assert (problem["status"], problem["code"]) == (422, "shapes-invalid")
    assert problem["detail"] == "sh:select is not evaluated, because shapes may run no code"


def test_a_check_beyond_its_time_ends_while_the_server_answers(tmp_path: Path) -> None:
    """The pattern takes 2^40 steps, within one call of the library of regular expressions."""
    hostile = f'{PREFIXES} :S sh:targetNode :n ; sh:property [ sh:path :p ; sh:pattern "^(a|a)*$" ] . :n :p "{"a" * 40}b" .'
    with serving(tmp_path / "data", shapes="refuse", sparql_timeout_s=1) as url, httpx.Client(base_url=url, timeout=60) as http:
        with ThreadPoolExecutor(1) as pool:
            loading = pool.submit(put, http, "hostile", hostile)
            with httpx.Client(base_url=url) as other:
                assert [other.get("/queries").status_code for _ in range(3)] == [200] * 3
            assert not loading.done()
            problem = loading.result()
        assert (problem["code"], problem["detail"]) == ("beyond-time", "the check of the shapes takes more than 1 s of processor time")
        assert names(http) == []


def test_a_check_beyond_its_memory_ends(tmp_path: Path) -> None:
    things = "".join(f":n{each} :p {each} . " for each in range(20_000))
    with serving(tmp_path / "data", shapes="refuse", max_sparql_memory=10_000_000) as url, httpx.Client(base_url=url, timeout=60) as http:
        problem = put(http, "large", f"{PREFIXES} :S sh:targetSubjectsOf :p ; sh:property [ sh:path :q ; sh:minCount 1 ] . {things}")
        assert (problem["code"], problem["detail"]) == ("beyond-memory", "the check of the shapes needs more than 10000000 bytes of memory")
        assert names(http) == []


def test_violations_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tmp_path / "data", shapes="report") as url, httpx.Client(base_url=url, timeout=60) as http:
        put(http, "shapes", SHAPES)
        with caplog.at_level(logging.WARNING, "epsparql.server"):
            assert put(http, "bad", BAD)["triples"] == 3
        assert f"the background violates its shapes: <{EX}s2> violates the shape <{EX}Sensor> at <{ROOM}>" in caplog.text
        report = http.get("/ontologies", params={"shapes": True}).json()["shapes"]
        assert (report["results"], [each["focus"] for each in report["shown"]]) == (2, [f"<{EX}s2>", f"<{EX}s3>"])
        assert report["shown"][1] | {"constraint": "ClassConstraintComponent", "value": f"<{EX}r9>", "severity": "Violation"} == report["shown"][1]
        with caplog.at_level(logging.WARNING, "epsparql.server"):
            put(http, "code", f'{PREFIXES} :S sh:targetNode :n ; sh:sparql [ sh:select "" ] .')
        assert "the background is not checked: sh:select is not evaluated" in caplog.text
        assert http.get("/ontologies", params={"shapes": True}).json()["code"] == "shapes-invalid"


def test_without_the_setting_nothing_is_checked(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as url, httpx.Client(base_url=url, timeout=60) as http:
        put(http, "shapes", SHAPES)
        assert put(http, "bad", BAD)["triples"] == 3
        assert http.get("/ontologies", params={"shapes": True}).json()["code"] == "shapes-off"


class TestCommandLine:
    def arguments(self, folder: Path, *more: str) -> list[str]:
        """The graphs depend on each other, so none of them alone meets the shapes."""
        (folder / "shapes.ttl").write_text(SHAPES)
        (folder / "sensors.ttl").write_text(PREFIXES + ":s1 a :Sensor_ ; :room :r1 .")
        (folder / "rooms.ttl").write_text(PREFIXES + ":r1 a :Room .")
        files = [f"{name}={folder / name}.ttl" for name in ("shapes", "sensors", "rooms")]
        return ["--port", "0", "--data", str(folder / "data"), "--background", *files, *more]

    def test_a_start_checks_its_files_together(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = self.arguments(tmp_path, "--shapes", "refuse")
        with pytest.raises(pytest.fail.Exception, match="the server started"):
            refusal_of(*arguments)
        (tmp_path / "rooms.ttl").write_text(PREFIXES + ":r2 a :Room .")
        message = (
            f"the background cannot be changed: <{EX}s1> violates the shape <{EX}Sensor> at <{ROOM}>: a sensor is in a room; "
            "expected triples that meet the shapes; --shapes report loads the others too"
        )
        assert main(["serve", "--runner", "inprocess", *arguments]) == 2
        assert capsys.readouterr().err == f"epsparql: {message}\n"

    def test_a_restart_without_a_change_checks_nothing(self, tmp_path: Path) -> None:
        arguments = self.arguments(tmp_path)
        (tmp_path / "rooms.ttl").write_text(PREFIXES + ":r2 a :Room .")
        for more in ((), ("--shapes", "refuse")):
            with pytest.raises(pytest.fail.Exception, match="the server started"):
                refusal_of(*arguments, *more)

    def test_the_extra_that_is_missing_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(extras, "find_spec", lambda module: None if module == "pyshacl" else module)
        message = "--shapes report needs pyshacl, which is not installed; add it with: pip install 'epsparql[shacl]'"
        assert refusal_of(*self.arguments(tmp_path, "--shapes", "report")) == message
