"""Terms of ndjson as JSON values, objects and prefixed names: what each becomes, what is refused with its readings,
and what comes from queries.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import epsparql
from pipeline.errors import FormatError
from pipeline.formats import ndjson
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.batches.fast_path import events_batch
from pipeline.formats.ndjson import parse_ndjson, read_lines
from pipeline.formats.reading_rules import PLAIN_RULES
from pipeline.replay import input_files
from pipeline.replay.dead_letters import DeadLetters
from pipeline.replay.input_files import occurrences_of
from pipeline.replay.query_files import NamedFile, SourceFault
from server.cli.commands import main

XSD = "http://www.w3.org/2001/XMLSchema#"
AT = Interval(5, 5)
TERMS = [
    ("21.5", f'"21.5"^^<{XSD}decimal>'), ("-7", f'"-7"^^<{XSD}integer>'), ("1E-5", f'"1E-5"^^<{XSD}double>'), ("false", f'"false"^^<{XSD}boolean>'),
    ("123456789012345678901234567890.10", f'"123456789012345678901234567890.10"^^<{XSD}decimal>'), ('"xsd:int"', f"<{XSD}int>"), ('"_:b"', None),
    ('"2026-01-01T00:00:00+01:00"', f'"2026-01-01T00:00:00+01:00"^^<{XSD}dateTime>'), (r'"\"text\""', '"text"'), ('"<x:o>"', "<x:o>"),
    (f'{{"value":"21.5","datatype":"{XSD}decimal"}}', f'"21.5"^^<{XSD}decimal>'), ('{"value":"21.5","datatype":"xsd:decimal"}', f'"21.5"^^<{XSD}decimal>'),
    ('{"type":"literal","value":"a\\nb\\"\\\\"}', r'"a\nb\"\\"'), ('{"value":"a","xml:lang":"en"}', '"a"@en'), ('{"type":"uri","value":"http://e/o"}', "<http://e/o>"),
    ('{"type":"typed-literal","value":"x","datatype":"x:t"}', '"x"^^<x:t>'), ('{"value":"a","xml:lang":"ar","its:dir":"rtl"}', '"a"@ar--rtl'), ('{"value":"text"}', '"text"'),
    ('{"type":"triple","value":{"subject":{"type":"uri","value":"x:s"},"predicate":{"type":"uri","value":"x:p"},"object":{"value":"1"}}}', '<<( <x:s> <x:p> "1" )>>'),
]  # fmt: skip


@pytest.mark.parametrize(("value", "term"), TERMS)
def test_values_are_terms(value: str, term: str | None) -> None:
    body = f'{{"s":"<x:s>","p":"<x:p>","o":{value}}}'.encode()
    found = parse_ndjson(body, AT)["o"].to_pylist()
    assert found == read_lines(body, AT)[0]["o"].to_pylist()
    assert found == [term] or (term is None and found[0].startswith("_:"))


def test_compiled_code_decides_the_usual_values_alone() -> None:
    """A value that it leaves to the exact path costs as much as fifty lines."""
    usual = ["21.5", '{"value":"text"}', '{"value":""}', '{"value":"a","xml:lang":"en"}', f'{{"value":"1","datatype":"{XSD}integer"}}', '{"type":"literal","value":"x:a"}',
        f'{{ "datatype" : "{XSD}decimal" , "value" : "21.5" , "type" : "literal" }}', '{"type":"uri","value":"http://e/o"}']  # fmt: skip

    def refuse(*asked: object) -> str:
        raise AssertionError(asked)

    for value in usual:
        body = f'{{"s":"<x:s>","p":"<x:p>","o":{value}}}'.encode()
        found = events_batch(body, AT, frame=False, read_term=refuse)
        assert found is not None
        assert found[0]["o"].to_pylist() == read_lines(body, AT)[0]["o"].to_pylist()


REFUSED = [
    ('"kitchen"', r'the text "\"kitchen\"" or the name ":kitchen"'), ('"21.5"', r'the value 21.5 or the text "\"21.5\""'), ('"true"', "the value true or the text"),
    ('"http://e/a"', r'the text "\"http://e/a\"" or the IRI "<http://e/a>"'), ('"ex:a"', 'or a name whose prefix {"prefixes": {"ex": …}} in the first line'),
    ('":a"', '{"prefixes": {"": …}}'), ('{"value":"http://e/a"}', 'may be an IRI, of type "uri", or a text, of type "literal"'), ("null", "null is no term"),
    ('{"type":"uri","value":"xsd:int"}', 'the IRI "<xsd:int>" or the name "xsd:int"'), ("[1]", "[1] is no term"), ('{"value":1}', "a number stands alone"),
    ('{"type":"uri","value":"http://e/> <x:y"}', "not valid"), ('{"type":"uri","value":"a"}', "not valid"), ('{"value":"a","xml:lang":"e_n"}', "not valid"),
    ('{"@value":"a"}', "is no term of SPARQL's JSON results"), ('{"value":"1","datatype":"x:t","xml:lang":"en"}', "both a datatype and a language"),
    ('{"type":"triple","value":{"subject":{"value":"1"},"predicate":{"type":"uri","value":"x:p"},"object":{"value":"1"}}}', "needs an IRI or blank node as subject"),
    ('{"type":"triple","value":' * 60 + '"a"' + "}" * 60, "needs subject, predicate, object"), ('{"type":"uri","value":"x:a","datatype":"x:t"}', "is no term of SPARQL's"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "readings"), REFUSED)
def test_what_may_mean_several_things_is_refused_with_its_readings(value: str, readings: str) -> None:
    body = f'{{"s":"<x:s>","p":"<x:p>","o":{value}}}'.encode()
    with pytest.raises(FormatError) as caught:
        parse_ndjson(body, AT)
    assert readings in caught.value.message
    assert (caught.value.code, caught.value.line, caught.value.column) == ("term", 1, 30)


def test_a_literal_is_an_object_alone() -> None:
    literal, iri = '{"type":"literal","value":"1"}', '{"type":"uri","value":"http://e/a"}'
    for place in "spg":
        terms = {"s": iri, "p": iri, "o": literal, "g": iri} | {place: literal}
        with pytest.raises(FormatError, match="a literal cannot be the"):
            parse_ndjson(("{" + ",".join(f'"{name}":{term}' for name, term in terms.items()) + "}").encode(), AT)


def test_solutions_of_a_query_can_be_sent_back(tmp_path: Path) -> None:
    """Each term that a query sends as SPARQL's JSON results is the same term when it comes back, and the compiled way
    takes all but blank nodes.
    """
    terms = [
        "1.5", "true", r'"a\nb"@en', r'"é\"\\"', "<http://e/é>", '"1"^^<x:t>', '<<( <x:s> <x:p> "o" )>>', '"x"@ar--rtl', f'"2026-01-01"^^<{XSD}date>',
    ]  # fmt: skip
    (tmp_path / "in.ttl").write_text(f"<x:s> <x:p> {' , '.join(terms)} .", encoding="utf-8")
    (tmp_path / "in.ndjson").write_text('{"s":"<x:e>","p":"<x:e>","o":1,"at":"2026-01-01T00:00:00Z"}')
    (tmp_path / "q.rq").write_text("SELECT ?s ?p ?o { <x:e> <x:e> ?e . ?s ?p ?o FILTER(?p = <x:p>) }")
    found = epsparql.run(tmp_path / "q.rq", tmp_path / "in.ndjson", background=tmp_path / "in.ttl")["q"]
    assert len(found) == len(terms)
    body = "\n".join(json.dumps(each.binding) for each in found).encode()
    compiled = ndjson._read_compiled(body, AT, PLAIN_RULES, ndjson._LINE)
    assert compiled is not None
    assert compiled[0].to_pylist() == read_lines(body, AT)[0].to_pylist()
    (tmp_path / "back.ndjson").write_bytes(b"\n".join(line[:-1] + b',"at":"2026-01-01T00:00:00Z"}' for line in body.split(b"\n")))
    (tmp_path / "again.rq").write_text("SELECT ?s ?p ?o { ?s ?p ?o FILTER(?p = <x:p>) }")
    again = epsparql.run(tmp_path / "again.rq", tmp_path / "back.ndjson")["again"]
    assert sorted(json.dumps(each.binding) for each in again) == sorted(json.dumps(each.binding) for each in found)


def test_prefixes_of_the_first_line_hold_for_all_parts_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "_PART_BYTES", 64)
    lines = [f'{{"s":"ex:{k}","p":":p","o":{k},"at":"2026-01-01T00:00:01Z"}}' for k in range(9)]
    file = tmp_path / "in.ndjson"
    file.write_text("\n".join(["", '{"prefixes":{"ex":"http://ex/","":"http://e/"}}', *lines]))
    found = [row for batch in occurrences_of(NamedFile("", file)) for row in batch.to_pylist()]
    assert [(row["s"], row["p"]) for row in found] == [(f"<http://ex/{k}>", "<http://e/p>") for k in range(9)]
    file.write_text(file.read_text().replace(":3,", ":x,"))
    with pytest.raises(SourceFault, match=r"in\.ndjson:6:"):
        occurrences_of(NamedFile("", file))
    left = [row for batch in occurrences_of(NamedFile("", file), None, DeadLetters("skip")) for row in batch.to_pylist()]
    assert [row["s"] for row in left] == [f"<http://ex/{k}>" for k in range(9) if k != 3]


EVENTS = '{"s":"ex:a","p":":t","o":1,"at":"2026-01-01T00:00:01Z"}\n'
ROWS = '{"s":"ex:a","at":"2026-01-01T00:00:01Z","t":1}\n'
NAMES = [
    (EVENTS, None, ["--base", "http://e/", "--prefix", "ex=http://ex/"], "http://ex/a"),
    (EVENTS, {"base": "http://e/", "prefixes": {"ex": "http://ex/"}, "time": "ts", "properties": {"t": ":t"}}, [], "http://ex/a"),
    (
        EVENTS,
        {"prefixes": {"ex": "http://m/"}, "time": "ts", "properties": {"t": ":t"}},
        ["--base", "http://e/", "--prefix", "ex=http://ex/"],
        "http://ex/a",
    ),
    ("\n" + EVENTS, {"base": "http://e/", "prefixes": {"ex": "http://ex/"}, "types": [":T"]}, [], "http://ex/a"),
    ('{"prefixes":{"ex":"http://in/"}}\n' + EVENTS, None, ["--base", "http://e/", "--prefix", "ex=http://ex/"], "http://in/a"),
    (
        ROWS,
        {"prefixes": {"ex": "http://ex/"}, "subject": "x/{s}", "time": "at", "properties": {"t": ":t"}},
        ["--base", "http://e/"],
        "http://e/x/ex%3Aa",
    ),
]


@pytest.mark.parametrize(("lines", "mapping", "options", "subject"), NAMES)
def test_a_replay_takes_names_of_its_options_and_of_the_mapping(
    lines: str, mapping: dict[str, Any] | None, options: list[str], subject: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mapping's file says how rows are read. Events, which have its members `s`, `p` and `o`, take its names alone."""
    (tmp_path / "in.ndjson").write_text(lines)
    (tmp_path / "q.rq").write_text("SELECT ?s { ?s <http://e/t> ?t }")
    given = []
    if mapping is not None:
        (tmp_path / "m.json").write_text(json.dumps(mapping))
        given = ["--mapping", str(tmp_path / "m.json")]
    assert main(["replay", "--query", str(tmp_path / "q.rq"), "--stream", str(tmp_path / "in.ndjson"), *given, *options]) == 0
    assert json.loads(capsys.readouterr().out)["binding"]["s"]["value"] == subject


@pytest.mark.parametrize("options", [["--base", "e"], ["--prefix", "ex"], ["--prefix", "ex=e"], ["--prefix", "e x=http://e/"]])
def test_names_that_are_none_are_refused(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.ndjson").write_text(EVENTS)
    (tmp_path / "q.rq").write_text("SELECT ?s { ?s <http://e/t> ?t }")
    assert main(["replay", "--query", str(tmp_path / "q.rq"), "--stream", str(tmp_path / "in.ndjson"), *options]) == 2
    assert capsys.readouterr().err.startswith(f"epsparql: {options[0]}: ")


def test_a_long_namespace_in_many_names_is_bounded() -> None:
    header = json.dumps({"prefixes": {"x": "http://e/" + "a" * 900}}) + "\n"
    body = header + "".join(f'{{"s":"x:{k}","p":"x:{k}p","o":"x:{k}o"}}\n' for k in range(8_000))
    assert ExpansionBudget(len(body)).most < 24_000 * 900
    with pytest.raises(FormatError, match="shorten its prefixes"):
        parse_ndjson(body.encode(), AT)
