"""The command line: replay in every format, faults with file, line and column, check, explain, bench, demo."""

import io
import json
import os
import socket
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import fields
from errno import ENOSPC
from importlib.metadata import version
from pathlib import Path
from random import Random

import pytest
from pydantic.warnings import UnsupportedFieldAttributeWarning

from pipeline.mapping.mapping import compile_mapping
from server.cli.commands import main
from server.cli.serve import _opened, serve
from server.cli.settings_doc import group_settings
from server.cli.subcommands.definition import YELLOW, paint
from server.routes.explain import PlanDocument
from server.settings import Settings, SettingsError
from tests.server.conftest import EX, event, moment, refusal_of, values

OK, USER_FAULT = 0, 2


@pytest.fixture
def q(tmp_path: Path) -> Path:
    return write(tmp_path, "q.rq", values("default"))


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def copies(read: str, into: str) -> str:
    """A rule."""
    return f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{into}> FROM STREAM <{read}> WHERE {{ ?s :value ?v }}"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert (left.value.code, capsys.readouterr().out) == (OK, f"epsparql {version('epsparql')}\n")


def test_help_is_quick(tmp_path: Path) -> None:
    """Nothing heavy is imported for it."""
    code = "import sys; sys.argv = ['epsparql', '--help']\ntry:\n  import server.cli; server.cli.commands.main()\nexcept SystemExit: pass\nprint(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    for heavy in ("numpy", "pyspark", "pyarrow", "fastapi", "rich"):
        assert f"'{heavy}'" not in found.stdout


REPLAYED = {
    "seq": "SELECT * FROM STREAM <a> FROM STREAM <b> WHERE { { ?s :value ?v } SEQ { ?s :value ?w } WITHIN 5 FILTER (?v > ?w) }",
    "timer": "SELECT ?v FROM STREAM <c> FROM STREAM <short> WHERE { { ?s :value ?v } WITHOUT { ?s :value 3 } FOR 20 }",
    "copied": "CONSTRUCT { ?s :value ?v } INTO STREAM <d> FROM STREAM <b> FROM STREAM <c> WHERE { ?s :value ?v }",
    "derived": "SELECT ?v FROM STREAM <d> FROM STREAM <a> WHERE { ?s :value ?v FILTER (?v > '5') }",
    "asked": "ASK FROM STREAM <a> { ?s :value 7 }",
}


class TestReplay:
    def test_ndjson(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        first = write(tmp_path, "one.ndjson", event(3) + "\n" + event(1) + "\n")
        second = write(tmp_path, "two.ndjson", event(2) + "\n")
        assert main(["replay", "--query", str(q), "--stream", str(first), str(second)]) == OK
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [each["end"] for each in found] == [moment(1), moment(2), moment(3)]
        assert {each["query"] for each in found} == {"q"}
        assert [set(each) for each in found] == [{"query", "id", "start", "end", "binding"}] * 3

    def test_blocks_change_no_solution(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor its id, nor the order of a query's: with blocks of one occurrence each instant has a message of its own."""
        chance, streams = Random(5), []
        for stream, seconds in (("a", 1), ("b", 7), ("c", 50)):
            numbers = [number for number in range(seconds, 300, seconds) for _ in range(chance.choice((1, 1, 3)))]
            streams += ["--stream", f"{stream}={write(tmp_path, f'{stream}.ndjson', chr(10).join(event(n, chance.randrange(9)) for n in numbers))}"]
        streams += ["--stream", f"short={write(tmp_path, 'short.ndjson', event(40))}"]
        queries = [part for name, text in REPLAYED.items() for part in ("--query", str(write(tmp_path, f"{name}.rq", f"PREFIX : <{EX}> {text}")))]
        found = []
        for rows in (1, 2, 30, 10_000):
            monkeypatch.setattr("pipeline.replay.input_files.BLOCK_ROWS", rows)
            assert main(["replay", *queries, *streams]) == OK
            lines = capsys.readouterr().out.splitlines()
            found.append({name: [line for line in lines if json.loads(line)["query"] == name] for name in REPLAYED})
        assert all(found[0].values())
        assert found == [found[0]] * 4

    def test_rules_and_queries_together(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rule = write(tmp_path, "rule.rq", copies("i", "d"))
        query = write(tmp_path, "query.rq", values("d"))
        stream = write(tmp_path, "s.ndjson", event(1))
        arguments = ["replay", "--query", str(query), "--query", str(rule), "--stream", f"<i>={stream}"]
        assert main(arguments) == OK
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert sorted(each["query"] for each in found) == ["query", "rule"]
        for fmt, expected in (("turtle", "value"), ("csv", "id,start,end,s,v"), ("json", '"vars"')):
            assert main([*arguments, "--format", fmt]) == OK
            assert expected in capsys.readouterr().out

    def test_several_tables_as_json(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        other = write(tmp_path, "r.rq", values("default"))
        stream = write(tmp_path, "s.ndjson", event(1))
        assert main(["replay", "--query", str(q), "--query", str(other), "--stream", str(stream), "--format", "json"]) == OK
        assert set(json.loads(capsys.readouterr().out)) == {"q", "r"}

    def test_rdf_xml_with_its_time(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A file is one message; several may be one stream."""
        text = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{EX}" xmlns:prov="http://www.w3.org/ns/prov#">
            <rdf:Description rdf:about="{EX}s" e:value="VALUE"><prov:generatedAtTime rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">TIME</prov:generatedAtTime>
            </rdf:Description></rdf:RDF>"""
        files = [str(write(tmp_path, f"{k}.rdf", text.replace("VALUE", str(k)).replace("TIME", moment(k)))) for k in (2, 1)]
        assert main(["replay", "--query", str(q), "--stream", *files]) == OK
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(each["end"], each["binding"]["v"]["value"]) for each in found] == [(moment(1), "1"), (moment(2), "2")]
        untimed = write(tmp_path, "untimed.rdf", text.replace("prov:generatedAtTime", "e:time"))
        assert main(["replay", "--query", str(q), "--stream", str(untimed)]) == USER_FAULT
        assert "has no time; expected prov:generatedAtTime" in capsys.readouterr().err

    def test_nothing_at_all(self, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["replay", "--query", str(q)]) == OK
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize(
        ("reads", "rules", "streams", "told"),
        [
            pytest.param(["freezers"], [], ["s.ndjson"], ["q0 reads the stream <freezers>, which stays empty: no file and no rule writes it; give --stream freezers=s.ndjson"], id="the file is the default stream's"),
            pytest.param(["freezers"], [], ["freezer=s.ndjson"], ["--stream freezers=s.ndjson"], id="another name"),
            pytest.param(["a", "a"], [], [], ["q0, q1 read the stream <a>, which stays empty: no file and no rule writes it; give --stream a=FILE"], id="no file"),
            pytest.param(["a", "b"], [], ["a=s.ndjson"], ["q1 reads the stream <b>, which stays empty: no file and no rule writes it; give --stream b=FILE"], id="one of two"),
            pytest.param(["default"], [], ["other=s.ndjson"], ["--stream default=s.ndjson"], id="the default stream"),
            pytest.param([f"{EX}x&y"], [], ["s.ndjson"], [f"--stream '{EX}x&y=s.ndjson'"], id="as a shell takes it"),
            pytest.param(["d"], [("i", "d")], ["i=s.ndjson"], [], id="a rule writes it"),
            pytest.param(["d"], [("i", "d")], ["s.ndjson"], ["r0 reads the stream <i>"], id="a rule writes it that is not fed"),
            pytest.param(["d"], [("d", "d")], [], ["q0, r0 read the stream <d>"], id="a rule that feeds itself alone"),
            pytest.param(["a"] * 7, [], [], ["q0, q1, q2, q3, q4 and 2 more read the stream <a>"], id="many queries"),
        ],
    )  # fmt: skip
    def test_streams_that_nothing_feeds_are_told(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        reads: list[str],
        rules: list[tuple[str, str]],
        streams: list[str],
        told: list[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path, "s.ndjson", event(1))
        queries = [write(tmp_path, f"q{k}.rq", values(stream)) for k, stream in enumerate(reads)]
        queries += [write(tmp_path, f"r{k}.rq", copies(read, into)) for k, (read, into) in enumerate(rules)]
        fed = ["--stream", *streams] if streams else []
        assert main(["replay", *(part for query in queries for part in ("--query", query.name)), *fed]) == OK
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == len(told)
        assert all(line.startswith("epsparql: ") and expected in line for line, expected in zip(lines, told, strict=True)), lines

    @pytest.mark.parametrize(
        ("name", "text", "fault"),
        [
            pytest.param("s.ndjson", '{"s": <a>}', "s.ndjson:1:7: ", id="malformed"),
            pytest.param("s.ndjson", "\n".join(event(n) for n in (1, 2)) + f'\n{{"s":"<{EX}s>","p":"p","o":"<o>"}}', "s.ndjson:3:", id="bad term"),
            pytest.param("s.ndjson", event(1) + f'\n\n{{"s":"<{EX}s>","p":"<{EX}p>","o":"<{EX}o>"}}', 's.ndjson:3:1: the event <http://example.org/s> <http://example.org/p> <http://example.org/o> has no time; expected "at"', id="no time"),
            pytest.param("s.ttl", f"<{EX}s> <{EX}p> <{EX}o> .", "s.ttl:1:1: the event", id="turtle has no time"),
            pytest.param("s.txt", "", "s.txt: ", id="unknown suffix"),
        ],
    )  # fmt: skip
    def test_faults_of_streams(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, fault: str) -> None:
        stream = write(tmp_path, name, text)
        assert main(["replay", "--query", str(q), "--stream", str(stream)]) == USER_FAULT
        captured = capsys.readouterr()
        assert captured.out == ""
        assert fault in captured.err
        assert "Traceback" not in captured.err

    @pytest.mark.parametrize(
        ("arguments", "fault"),
        [
            pytest.param(["--query", "missing.rq"], "missing.rq: No such file", id="missing query"),
            pytest.param(["--query", "q.rq", "--stream", "missing.ndjson"], "missing.ndjson: No such file", id="missing stream"),
            pytest.param(["--query", "q.rq", "--stream", "a=missing.ndjson"], "missing.ndjson: No such file", id="missing named stream"),
            pytest.param(["--query", "q.rq", "--background", "q.rq"], "q.rq: no format of background", id="background's suffix"),
            pytest.param(["--query", "q.rq", "--background", "bad.ttl"], "bad.ttl:2:", id="background"),
            pytest.param(["--query", "bad.rq"], "bad.rq:2:", id="query"),
            pytest.param(["--query", "bytes.rq"], "bytes.rq:2:9: the file is not UTF-8; expected UTF-8 text", id="query's encoding"),
            pytest.param(["--query", "q.rq", "--query", "sub/q.rq"], "the same name 'q'", id="one name twice"),
            pytest.param(["--query", "q.rq", "--format", "turtle"], "CONSTRUCT", id="no graph"),
            pytest.param(
                ["--query", "q.rq", "--policy", "q=best"],
                "'best' is no policy; expected unrestricted, recent, recent-longest, recent-by ?v or chronological",
                id="no policy",
            ),
            pytest.param(
                ["--query", "q.rq", "--policy", "r=recent"], "there is no query 'r' to give a policy to; there is q", id="policy of no query"
            ),
        ],
    )
    def test_other_faults(
        self, tmp_path: Path, q: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "sub").mkdir()
        write(tmp_path, "sub/q.rq", values("default"))
        write(tmp_path, "bad.rq", "SELECT ?s\nWHERE { SEQ { ?s ?p ?o } }")
        write(tmp_path, "bad.ttl", "<urn:a> <urn:b>\n1 2 .")
        (tmp_path / "bytes.rq").write_bytes("SELECT ?s\n{ ?s :é ".encode() + b"\xff }")
        assert main(["replay", *arguments]) == USER_FAULT
        assert fault in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("policies", "starts"),
        [
            pytest.param([], {"q": [1, 2], "r": [1, 2]}, id="unrestricted"),
            pytest.param(["recent"], {"q": [2], "r": [2]}, id="of all queries"),
            pytest.param(["q=recent-longest", "r=recent-by $v"], {"q": [2], "r": [2]}, id="readings of recent"),
            pytest.param(["q=chronological", "recent"], {"q": [1], "r": [2]}, id="a query's own goes before the common one"),
        ],
    )
    def test_policies(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], policies: list[str], starts: dict[str, list[int]]) -> None:
        text = f"PREFIX : <{EX}> SELECT * WHERE {{ {{ ?s :a ?v }} SEQ {{ ?s :b ?w }} }}"
        queries = [write(tmp_path, f"{name}.rq", text) for name in starts]
        lines = [{"s": f"<{EX}s>", "p": f"<{EX}{p}>", "o": f"<{EX}o>", "at": f"1970-01-01T00:00:0{at}Z"} for at, p in enumerate("aab", 1)]
        stream = write(tmp_path, "s.ndjson", "\n".join(map(json.dumps, lines)))
        named = [part for query in queries for part in ("--query", str(query))]
        assert main(["replay", *named, "--stream", str(stream), *(part for policy in policies for part in ("--policy", policy))]) == OK
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {name: sorted(int(row["start"][17:19]) for row in found if row["query"] == name) for name in starts} == starts

    def test_a_name_with_an_equals_sign(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        query = write(tmp_path, "q.rq", values("http://example.org/?a=b"))
        stream = write(tmp_path, "s=t.ndjson", event(1))
        assert main(["replay", "--query", str(query), "--stream", f"http://example.org/?a=b={stream}"]) == OK
        assert len(capsys.readouterr().out.splitlines()) == 1

    def test_on_a_terminal_a_line_stays_whole_beside_the_bar(self, tmp_path: Path) -> None:
        """So that the option in it can be copied, however narrow the terminal is."""
        query, stream = write(tmp_path, "q.rq", values("freezers")), write(tmp_path, f"{'long' * 30}.ndjson", event(1))
        ours, theirs = os.openpty()
        command = [sys.executable, "-m", "server.cli", "replay", "--query", str(query), "--stream", str(stream)]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, cwd=Path(__file__).parents[3], env=os.environ | {"TERM": "xterm"})
        os.close(theirs)
        told = b""
        with suppress(OSError):  # at its end, as Linux has it
            while more := os.read(ours, 1 << 16):
                told += more
        os.close(ours)
        assert run.wait() == OK
        assert f"--stream freezers={stream}".encode() in told
        assert b"100%" in told

    @pytest.mark.slow
    def test_on_spark(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        stream, idle = write(tmp_path, "s.ndjson", event(1) + "\n" + event(2)), write(tmp_path, "idle.rq", values("freezers"))
        outputs = []
        for runner in ("spark", "inprocess"):
            assert main(["replay", "--query", str(q), "--query", str(idle), "--stream", str(stream), "--runner", runner]) == OK
            outputs.append(capsys.readouterr())
        assert outputs[0].out == outputs[1].out != ""
        assert all("idle reads the stream <freezers>" in each.err for each in outputs)


class TestCheck:
    def test_faults_and_warnings(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", str(q)]) == OK
        assert capsys.readouterr().out == ""
        doubtful = write(tmp_path, "d.rq", f"PREFIX : <{EX}> SELECT ?s WHERE {{ {{ ?s :a ?v }}\n  SEQ {{ ?s :b ?w }} }}")
        assert main(["check", str(doubtful)]) == OK
        assert f"{doubtful}:2:3: warning: SEQ keeps the solutions on its left for ever" in capsys.readouterr().out
        wrong = write(tmp_path, "w.rq", 'SELECT ?s WHERE { ?s ?p ?o\n FILTER(?o < "P1H"^^<http://www.w3.org/2001/XMLSchema#duration>) }')
        assert main(["check", str(q), str(wrong), str(doubtful)]) == USER_FAULT
        captured = capsys.readouterr()
        assert f"{wrong}:2:" in captured.err
        assert "PT1H" in captured.err
        assert "for ever" in captured.out, "the others are checked all the same"
        assert main(["check", str(tmp_path / "missing.rq")]) == USER_FAULT


class TestExplain:
    def test_every_format(self, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", str(q)]) == OK
        assert "scan" in capsys.readouterr().out
        assert main(["explain", str(q), "--format", "json"]) == OK
        assert PlanDocument.model_validate_json(capsys.readouterr().out, strict=True).partition.key == "?s"
        assert main(["explain", str(q), "--format", "mermaid"]) == OK
        assert capsys.readouterr().out.startswith("flowchart BT\n")

    def test_rates(self, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", str(q), "--rates", "http://example.org/a=10,http://example.org/x?y=2=1"]) == OK
        assert "shape: triple patterns of a group are joined from the rarest on" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            main(["explain", str(q), "--rates", "http://example.org/a"])
        assert "not of the form IRI=N" in capsys.readouterr().err

    @pytest.mark.parametrize(("regime", "triples"), [("rdfs", 1), ("owl-rl", 2)])
    def test_over_a_background(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], regime: str, triples: int) -> None:
        query = write(tmp_path, "q.rq", f"PREFIX : <{EX}> SELECT ?v WHERE {{ ?s :value ?v . ?s :in ?hall }}")
        facts = write(tmp_path, "b.ttl", f"<{EX}s> <{EX}in> <{EX}hall> . <{EX}in> a <http://www.w3.org/2002/07/owl#SymmetricProperty> .")
        assert main(["explain", str(query), "--background", str(facts), "--entailment", regime]) == OK
        assert f"  ?s <{EX}in> ?hall: {triples} triples, copied" in capsys.readouterr().out
        assert main(["explain", str(query), "--background", str(tmp_path / "no.ttl")]) == USER_FAULT

    def test_faults(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        wrong = write(tmp_path, "w.rq", "SELECT")
        assert main(["explain", str(wrong)]) == USER_FAULT
        assert "w.rq:1:" in capsys.readouterr().err
        assert main(["explain", str(tmp_path / "missing.rq")]) == USER_FAULT


class TestServe:
    def test_an_address_for_others_needs_tokens(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["serve", "--host", "0.0.0.0", "--data", str(tmp_path)]) == USER_FAULT
        assert "--token-file" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            pytest.param(["--host", "192.0.2.1", "--token-file", "{}/t"], "cannot listen on 192.0.2.1", id="address"),
            pytest.param(["--port", "99999"], "ports end at 65535", id="port"),
            pytest.param(["--port", "0", "--data", "{}/file"], "--data {}/file cannot be used", id="data"),
            pytest.param(["--port", "0", "--export", "{}/file"], "--export {}/file cannot be used", id="export"),
        ],
    )
    def test_what_is_not_there(self, tmp_path: Path, arguments: list[str], told: str) -> None:
        """A process is refused in test_restart.py, and says why."""
        write(tmp_path, "file", "")
        refused = refusal_of("--data", str(tmp_path / "data"), *(each.format(tmp_path) for each in arguments))
        assert told.format(tmp_path) in refused
        assert "Errno" not in refused


def test_a_start_on_a_full_disk_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_no_room(*_: object) -> int:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(os, "pwrite", find_no_room)
    with pytest.raises(SettingsError, match=r"^--data \S+ cannot be used: No space left on device; make room there, or choose another$"):
        _opened(Settings(data=tmp_path / "data"), None)


def test_serve_s_help_is_grouped_and_gives_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for shown in (
        "address and data:",
        "webhooks:",
        "--port N",
        "--max-body SIZE",
        "--body-s SECONDS",
        "--data PATH",
        "The default is 8080.",
        "The default is 64 MiB.",
    ):
        assert shown in told
    assert [setting.name for _, settings in group_settings() for setting in settings] == [setting.name for setting in fields(Settings)]


class TestCheckForMachines:
    DOUBTFUL = "SELECT * { { ?s <x:a> ?x } AND { ?t <x:b> ?y } }"

    def test_a_warning_is_a_fault_where_that_is_asked_for(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        query = str(write(tmp_path, "q.rq", self.DOUBTFUL))
        assert main(["check", query]) == OK
        plain = capsys.readouterr().out
        assert ": warning: " in plain
        assert main(["check", "--strict", query]) == USER_FAULT
        assert capsys.readouterr().out == plain

    def test_json_has_an_object_for_each_file(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        paths = [
            str(q),
            str(write(tmp_path, "doubt.rq", self.DOUBTFUL)),
            str(write(tmp_path, "bad.rq", "SELECT *\n{ ?s ?p }")),
            str(tmp_path / "none.rq"),
        ]
        assert main(["check", "--json", *paths]) == USER_FAULT
        told = capsys.readouterr()
        good, doubtful, bad, missing = json.loads(told.out)
        assert bad["mended"] is None
        assert good == {"file": paths[0], "errors": [], "warnings": [], "proposal": None}
        assert {"code", "message", "line", "column"} <= doubtful["warnings"][0].keys()
        assert (bad["errors"][0]["code"], bad["errors"][0]["line"]) == ("syntax", 2)
        assert missing["errors"][0]["code"] == "file"
        assert told.err == ""

    def test_a_mended_text_is_printed_alone(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pasted = str(write(tmp_path, "pasted.rq", "SELECT * {\n?s <x:a> ?x } LIMT 5\n"))
        assert main(["check", "--mend", pasted]) == OK
        told = capsys.readouterr()
        assert told.out == "SELECT * {\n?s <x:a> ?x } LIMIT 5\n"
        assert f"{pasted}:2:15: mended: LIMT -> LIMIT (" in told.err
        assert f"{pasted} (mended):2:" in told.err, "the warnings are those of the mended text"
        assert main(["check", "--mend", "--strict", pasted]) == main(["check", pasted]) == USER_FAULT
        assert "unexpected LIMT; was LIMIT meant?" in capsys.readouterr().err
        assert main(["check", "--mend", str(q)]) == OK
        assert capsys.readouterr().out == q.read_text()
        left = str(write(tmp_path, "left.rq", "SELECT * { ?s price ?x } GROUP BY ?x"))
        assert main(["check", "--mend", left]) == main(["check", "--mend", pasted, left]) == USER_FAULT
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count(f"{left}:1:") == 3

    def test_colours_are_for_terminals_that_want_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.delenv("NO_COLOR", raising=False)
        assert paint("warning", YELLOW, Terminal()) == "\x1b[33mwarning\x1b[0m"
        assert paint("warning", YELLOW, io.StringIO()) == "warning"
        monkeypatch.setenv("NO_COLOR", "1")
        assert paint("warning", YELLOW, Terminal()) == "warning"


@pytest.mark.slow
def test_warm(capsys: pytest.CaptureFixture[str]) -> None:
    """`make test` warms the machine before, so that each start of Spark takes less."""
    assert main(["warm"]) == OK
    told = capsys.readouterr().err
    assert "storing Spark's classes" in told
    assert "Spark starts without stored classes" not in told


def test_bench_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That every workload finds what it must is tested in tests/bench/test_bench.py."""
    lines = tmp_path / "lines"
    assert main(["bench", "engine", "--workload", "W1", "--n", "3000", "--k", "300", "--json", str(lines)]) == OK
    found = json.loads(capsys.readouterr().out)
    assert (found["bench"], found["workload"], found["n"], found["k"]) == ("engine", "W1", 3000, 300)
    assert min(found["events_per_s"], found["cpu_s"], found["peak_rss_mb"]) > 0
    kept = json.loads(lines.read_text())
    assert found.items() < kept.items()
    assert kept.keys() - found.keys() == {"measured", "machine", "load"}


@pytest.mark.soak
def test_bench_latency(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "latency", "--n", "20", "--partitions", "2"]) == OK
    single, *policies, slow, fast, idle = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(policies) == 5
    for found in (single, *policies, slow, fast):
        assert 0 < found["p50_ms"] <= found["p99_ms"]
    assert idle["core_percent"] >= 0
    assert idle["pss_mb"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["inprocess", pytest.param("spark", marks=pytest.mark.soak)])
def test_demo(runner: str, tmp_path: Path) -> None:
    """The numbers that must come out (found by brute force, elsewhere)."""
    picture = tmp_path / "demo.svg"
    command = [sys.executable, "-m", "server.cli", "demo", "--runner", runner, "--export-svg", str(picture)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env={**os.environ, "COLUMNS": "160"})
    assert run.returncode == OK, run.stdout + run.stderr
    warnings = [line.split(maxsplit=2)[1:] for line in run.stdout.splitlines() if line.startswith("BLIZZARD")]
    assert len(warnings) == 16
    assert {station for station, _ in warnings} == {"JFK"}
    assert [interval for _, interval in warnings[:3]] == [
        "2013-01-30 16:00 to 19:00 (3 h)", "2013-01-30 16:00 to 20:00 (4 h)", "2013-01-30 17:00 to 20:00 (3 h)",
    ]  # fmt: skip
    for told in ("Caution 1,391, ExtremeCaution 502, Danger 16", "27,013", "26,115 readings in"):
        assert told in run.stdout
    assert "Next: `epsparql serve`" in run.stdout
    assert "Danger 16" in picture.read_text().replace("&#160;", " ")


class TestMapping:
    CSV = "time,sensor,value\n2026-01-01T00:00:01Z,a,1.5\n2026-01-01T00:00:02Z,b,2\n"

    def test_a_proposed_mapping_replays_its_file(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = write(tmp_path, "r.csv", self.CSV)
        assert main(["map", str(rows)]) == OK
        told = capsys.readouterr()
        assert "time is 'time', read as iso" in told.err
        assert "subject is 'sensor'; else --choose 'subject=a blank node for each row'" in told.err
        mapping = write(tmp_path, "m.json", told.out)
        assert main(["replay", "--query", str(q), "--stream", str(rows), "--mapping", str(mapping)]) == OK
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(each["end"], each["binding"]["v"]["value"]) for each in found] == [(moment(1), "1.5"), (moment(2), "2")]

    def test_a_time_without_a_zone_names_the_option(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = write(tmp_path, "r.csv", self.CSV.replace("Z,", ","))
        assert main(["map", str(rows)]) == OK
        assert "time_zone is 'UTC'; else --time-zone ZONE, such as Europe/Vienna" in capsys.readouterr().err
        assert main(["map", str(rows), "--time-zone", "Europe/Berlin"]) == OK
        assert "time_zone is 'Europe/Berlin'; else" in capsys.readouterr().err

    def test_rows_of_ndjson_need_a_mapping(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        rows = write(tmp_path, "r.jsonl", '{"t":1767225601,"v":1}\n')
        assert main(["replay", "--query", str(q), "--stream", str(rows)]) == USER_FAULT
        assert "unknown field 't'; expected s, p, o," in (told := capsys.readouterr().err)
        assert "or a mapping, which epsparql map proposes, if these are rows" in told

    def test_json_and_ndjson(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str]) -> None:
        mapping = write(tmp_path, "m.json", json.dumps({"time": "t", "time_format": "epoch_s", "base": EX, "properties": {"v": ":value"}}))
        one = write(tmp_path, "one.json", '[{"t":1767225601,"v":1}]')
        two = write(tmp_path, "two.ndjson", '{"t":1767225602,"v":2}\n{"t":1767225603,"v":3}\n')
        assert main(["replay", "--query", str(q), "--stream", str(one), str(two), "--mapping", f"default={mapping}"]) == OK
        assert [json.loads(line)["end"] for line in capsys.readouterr().out.splitlines()] == [moment(1), moment(2), moment(3)]

    PROPOSED = (
        ("a.csv", "Datum;Gerät;Wert\n01.02.2026 10:00;x;1\n", {"delimiter": ";", "time": "Datum", "time_format": "%d.%m.%Y %H:%M"}),
        ("a.json", '{"d":"x","rows":[{"ts":1767225600000,"v":{"a":1}}]}', {"items": "rows[*]", "time": "ts", "time_format": "epoch_ms"}),
        ("a.ndjson", '{"n":1,"when":"2026-01-01T00:00:00Z"}\n{"n":1.5,"when":"2026-01-01T00:00:00Z"}\n',
            {"properties": {"n": {"iri": ":n", "datatype": "xsd:decimal"}}}),
        ("b.json", '{"device":{"id":"x"},"rows":[{"ts":"2026-01-01","v":1}]}', {"subject": "id/{$.device.id}", "properties": {"v": ":v"}}),
        ("c.csv", "x\ny\n", {"properties": {"x": ":x"}}),
    )  # fmt: skip

    @pytest.mark.parametrize(("name", "text", "members"), PROPOSED)
    def test_what_is_proposed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, members: dict[str, object]) -> None:
        assert main(["map", str(write(tmp_path, name, text)), "--base", EX]) == OK
        found = json.loads(capsys.readouterr().out)
        compile_mapping(json.dumps(found))
        assert found | members == found

    FAULTS = (
        (["map", "a.xls"], "no mapping is proposed for the suffix '.xls'"),
        (["map", "empty.csv"], "there are no rows"),
        (["map", "a.csv", "--choose", "subject=x"], "the choice 'subject' has no value 'x'"),
        (["map", "a.csv", "--base", "x"], "--base: is no IRI"),
        (["replay", "--query", "q.rq", "--stream", "a.csv"], "expected --mapping FILE"),
        (["replay", "--query", "q.rq", "--stream", "a.csv", "--mapping", "bad.json"], "mapping.frob: is not known here"),
        (["replay", "--query", "q.rq", "--stream", "a.csv", "--mapping", "untimed.json"], "names no time"),
        (["replay", "--query", "q.rq", "--stream", "a.csv", "--mapping", "wrong.json"], "row 1, field value: '1.5' is no xsd:integer"),
    )

    @pytest.mark.parametrize(("arguments", "message"), FAULTS)
    def test_faults(self, tmp_path: Path, q: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
        basic = {"base": EX, "subject": "{sensor}", "properties": {"value": ":value"}}
        wrong = basic | {"time": "time", "properties": {"value": {"iri": ":value", "datatype": "xsd:integer"}}}
        files = {
            "a.xls": "",
            "empty.csv": "",
            "a.csv": self.CSV,
            "bad.json": '{"frob":1}',
            "untimed.json": json.dumps(basic),
            "wrong.json": json.dumps(wrong),
        }
        for name, text in files.items():
            write(tmp_path, name, text)
        given = [str(tmp_path / each) if each in files or each == q.name else each for each in arguments]
        assert main(given) == USER_FAULT
        assert message in capsys.readouterr().err


def test_a_server_s_log_has_no_warnings_of_a_library_s_own(recwarn: pytest.WarningsRecorder) -> None:
    """FastAPI turns these off for a moment, and another thread may turn them on again."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsError, match="in use"):
        serve(Settings(port=taken.getsockname()[1]))
    warnings.warn("harmless", UnsupportedFieldAttributeWarning, stacklevel=1)
    assert [str(each.message) for each in recwarn] == []
