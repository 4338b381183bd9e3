"""Mappings: what each word does, what is refused and with which words, and that the vectorized mapper gives what a
plain one gives.
"""

import json
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import OCCURRENCES
from epsparql.events.media_types import CSV, JSON
from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.body_parser import Interval
from pipeline.mapping.cloud_events import CLOUD_EVENT, CLOUD_EVENTS
from pipeline.mapping.json_reader import check_fields
from pipeline.mapping.mapper import MOST_REJECTED, MappedBody, map_body, refuse_rejected
from pipeline.mapping.mapping import compile_mapping
from pipeline.mapping.stream_body import BodySettings, read_body, read_frame
from pipeline.rejected_rows import Unmapped
from tests.pipeline.mapping.plain_mapper import map_rows
from tests.soak import examples, is_full

EX, X = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
T = "2026-01-01T00:00:00Z"
AT = instant(T)
BASIC = {"time": "ts", "base": EX, "subject": "sensor/{sensor}", "properties": {"temp": ":temp"}}
Row = tuple[str, str, str, int]


def mapped(document: dict[str, Any], body: str | bytes, media_type: str = JSON) -> MappedBody:
    content = body if isinstance(body, bytes) else body.encode()
    found = map_body(content, media_type, compile_mapping(json.dumps(document)), Interval(7, 7))
    assert found.batch.schema.equals(OCCURRENCES)
    found.batch.validate(full=True)
    return found


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    ends = batch.column("end").cast(pa.int64()).to_pylist()
    assert batch.column("start").cast(pa.int64()).to_pylist() == ends
    return list(zip(*(batch.column(name).to_pylist() for name in "spo"), ends, strict=True))


def objects(document: dict[str, Any], body: str | bytes, media_type: str = JSON) -> list[str]:
    found = mapped(document, body, media_type)
    assert found.rejected == ()
    return [row[2] for row in rows_of(found.batch)]


def one(value: Any, /, **words: Any) -> tuple[dict[str, Any], str]:
    """A mapping of the one property `v` with these words, and a row of JSON with the value."""
    return BASIC | {"properties": {"v": {"iri": ":v"} | words}}, json.dumps({"ts": T, "sensor": "a", "v": value})


TERMS = [
    pytest.param(*one(21), f'"21"^^<{X}integer>', id="integer"),
    pytest.param(one("§")[0], f'{{"ts":"{T}","sensor":1,"v":1.50}}', f'"1.50"^^<{X}decimal>', id="a decimal keeps its digits"),
    pytest.param(one("§")[0], f'{{"ts":"{T}","sensor":1,"v":1e3}}', f'"1e3"^^<{X}double>', id="double"),
    pytest.param(one("§")[0], f'{{"ts":"{T}","sensor":1,"v":{"9" * 40}}}', f'"{"9" * 40}"^^<{X}integer>', id="an integer of any size"),
    pytest.param(*one(True), f'"true"^^<{X}boolean>', id="boolean"),
    pytest.param(*one("21"), '"21"', id="a string stays one"),
    pytest.param(*one(""), '""', id="an empty string of JSON is a value"),
    pytest.param(*one('a"b\\c\n\té😀\x01'), '"a\\"b\\\\c\\n\\té😀\\u0001"', id="escapes"),
    pytest.param(*one("21.5", datatype="xsd:decimal"), f'"21.5"^^<{X}decimal>', id="datatype by prefixed name"),
    pytest.param(*one("21.5", datatype="decimal"), f'"21.5"^^<{X}decimal>', id="datatype by CSVW's name"),
    pytest.param(*one("21.5", datatype="number"), f'"21.5"^^<{X}double>', id="CSVW's number"),
    pytest.param(*one("x", datatype=EX + "d"), f'"x"^^<{EX}d>', id="a datatype of one's own has no form"),
    pytest.param(*one(7, datatype="string"), '"7"', id="xsd:string"),
    pytest.param(*one("2026-02-28T00:00:00Z", datatype="datetime"), f'"2026-02-28T00:00:00Z"^^<{X}dateTime>', id="dateTime"),
    pytest.param(*one("127", datatype="xsd:byte"), f'"127"^^<{X}byte>', id="a derived integer"),
    pytest.param(*one("kalt", lang="DE"), '"kalt"@de', id="lang"),
    pytest.param(*one("on", value="status/{v}"), f"<{EX}status/on>", id="value"),
    pytest.param(*one("a b/ü%", value="status/{v}"), f"<{EX}status/a%20b%2Fü%25>", id="values in IRIs are percent-encoded"),
    pytest.param(*one("a/b c", value="status/{+v}"), f"<{EX}status/a/b%20c>", id="reserved characters stay with a plus"),
    pytest.param(*one("http://e/x", value="{+v}"), "<http://e/x>", id="a whole IRI"),
    pytest.param(*one("xsd:int", value="{+v}"), f"<{X}int>", id="a prefixed name as value"),
    pytest.param(*one("b", value="{+v}"), f"<{EX}b>", id="a relative reference as value"),
    pytest.param(*one("b", value=":fixed"), f"<{EX}fixed>", id="a value without fields"),
]


@pytest.mark.parametrize(("document", "body", "term"), TERMS)
def test_a_term_of_json(document: dict[str, Any], body: str, term: str) -> None:
    assert objects(document, body) == [term]


CELLS = [
    ("21", f'"21"^^<{X}integer>'), ("+1.5", f'"+1.5"^^<{X}decimal>'), (".5", f'".5"^^<{X}decimal>'), ("1E3", f'"1E3"^^<{X}double>'), ("5.", '"5."'),
    ("true", f'"true"^^<{X}boolean>'), ("True", '"True"'), (" a ", '"a"'), ('"a,""b"', '"a,\\"b"'), ('"a\nb"', '"a\\nb"'), ("null", '"null"'),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "term"), CELLS)
def test_a_cell_of_csv(cell: str, term: str) -> None:
    """Turtle reads what is no number or boolean as a string only in quotes; CSV has none of its own."""
    assert objects(BASIC, f"ts,sensor,temp\n{T},a,{cell}\n", CSV) == [term]


CSVW = {"time": "ts", "base": EX, "aboutUrl": "sensor/{sensor}", "null": ["NA", ""], "properties": {
    "temp": {"propertyUrl": ":temp", "datatype": "decimal"}, "state": {"propertyUrl": ":state", "valueUrl": "state/{state}"},
    "note": {"propertyUrl": ":note", "lang": "en", "null": "-"}}}  # fmt: skip


def test_the_words_of_csvw() -> None:
    found = mapped(CSVW, f"ts,sensor,temp,state,note\n{T},a,NA,on,-\n{T},b,1,NA,NA\n", CSV)
    assert rows_of(found.batch) == [
        (f"<{EX}sensor/a>", f"<{EX}state>", f"<{EX}state/on>", AT),
        (f"<{EX}sensor/b>", f"<{EX}temp>", f'"1"^^<{X}decimal>', AT),
        (f"<{EX}sensor/b>", f"<{EX}note>", '"NA"@en', AT),
    ]
    assert found.rejected == ()


def test_types_and_predicates_of_a_field() -> None:
    document = {"time": "ts", "base": EX, "subject": "{sensor}", "types": [":Reading"], "properties": {"value": {"iri": ":{metric}"}}}
    assert rows_of(mapped(document, f"ts,sensor,metric,value\n{T},a,temp,1\n{T},b,,2\n", CSV).batch) == [
        (f"<{EX}a>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{EX}Reading>", AT),
        (f"<{EX}a>", f"<{EX}temp>", f'"1"^^<{X}integer>', AT),
        (f"<{EX}b>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{EX}Reading>", AT),
    ]


TIMES = [
    ("iso", "2026-01-01T00:00:00Z", 0), ("iso", "2026-01-01 00:00:01.5", 1_500_000), ("iso", "2026-01-01", 0), ("iso", "2026-01-01T01:00+01:00", 0),
    ("iso", "2026-01-01T01:00:00+0100", 0), ("iso", "2025-12-31T24:00:00Z", 0), ("epoch_s", "1767225600", 0), ("epoch_s", "1767225600.000001", 1),
    ("epoch_ms", "1767225600001", 1000), ("epoch_ms", "1.767225600001e12", 1000), ("%d.%m.%Y %H:%M", "01.01.2026 00:01", 60_000_000),
    ("%d.%m.%Y %H:%M %z", "01.01.2026 01:00 +0100", 0), ("iso", "2026-02-30T00:00:00Z", None), ("iso", "yesterday", None), ("iso", "", None),
    ("iso", "2026-01-01T00:00:00.1234567Z", None), ("epoch_s", "1.5.2", None), ("epoch_s", "1e400", None), ("epoch_s", "0.0000001", None),
    ("epoch_s", "NaN", None), ("%d.%m.%Y", "1/1/2026", None), ("iso", "2026-01-01T00:00", 0),
]  # fmt: skip


@pytest.mark.parametrize(("fmt", "text", "offset"), TIMES)
@pytest.mark.parametrize("beside", ["", "bad"])
def test_times(fmt: str, text: str, offset: int | None, beside: str) -> None:
    """A text that is no time, in another row, changes nothing."""
    found = mapped(BASIC | {"time_format": fmt}, f"ts,sensor,temp\n{text},a,1\n" + (f"{beside},b,1\n" if beside else ""), CSV)
    assert [row[3] for row in rows_of(found.batch)] == ([] if offset is None else [AT + offset])
    assert [row.row for row in found.rejected] == [*([1] if offset is None else []), *([2] if beside else [])]


WRITTEN = [
    pytest.param({"time": ["d", "t"], "time_format": "%d.%m.%Y %H:%M"}, "d,t,sensor,temp\n01.01.2026,00:01,a,1\n", 60_000_000, id="two columns"),
    pytest.param({"time": ["d", "t"]}, "d,t,sensor,temp\n2026-01-01,00:01,a,1\n", 60_000_000, id="two columns of ISO 8601"),
    pytest.param({"time_format": "epoch_us"}, "ts,sensor,temp\n1767225600000001,a,1\n", 1, id="microseconds"),
    pytest.param({"time_format": "epoch_ns"}, "ts,sensor,temp\n1767225600000001000,a,1\n", 1, id="nanoseconds"),
    pytest.param({"time_format": "epoch_ns", "round": "microsecond"}, "ts,sensor,temp\n1767225600000001500,a,1\n", 2, id="rounded nanoseconds"),
    pytest.param({"time_format": "epoch_s", "round": "microsecond"}, "ts,sensor,temp\n1767225600.0000014,a,1\n", 1, id="rounded seconds"),
    pytest.param({"round": "microsecond"}, "ts,sensor,temp\n2025-12-31T23:59:59.9999995Z,a,1\n", 0, id="a rounded fraction carries"),
    pytest.param({"time_zone": "Europe/Vienna"}, "ts,sensor,temp\n2026-01-01 01:00,a,1\n", 0, id="a zone"),
    pytest.param({"time_zone": "Europe/Vienna"}, "ts,sensor,temp\n2026-07-01 02:00,a,1\n", 181 * 86_400_000_000, id="summer time"),
    pytest.param({"time_zone": "-01:30"}, "ts,sensor,temp\n2025-12-31 22:30,a,1\n", 0, id="an offset"),
    pytest.param({"time_zone": "Europe/Vienna"}, "ts,sensor,temp\n2026-01-01T00:00:00Z,a,1\n", 0, id="a time with a zone of its own"),
    pytest.param(
        {"time_zone": "Europe/Vienna", "time_format": "%d.%m.%Y %H:%M"}, "ts,sensor,temp\n01.01.2026 01:00,a,1\n", 0, id="a zone of strptime"
    ),
    pytest.param(
        {"time_zone": "Europe/Vienna"}, "ts,sensor,temp\n2026-10-25 02:30,a,1\n", 297 * 86_400_000_000 + 1_800_000_000, id="of two instants the first"
    ),
]


@pytest.mark.parametrize(("words", "body", "offset"), WRITTEN)
def test_how_times_are_written(words: dict[str, Any], body: str, offset: int) -> None:
    assert [row[3] - AT for row in rows_of(mapped(BASIC | words, body, CSV).batch)] == [offset]


DIALECTS = [
    pytest.param({"decimal": ","}, 'ts,sensor,temp\n{T},a,"-21,5"\n', f'"-21.5"^^<{X}decimal>', id="a decimal comma"),
    pytest.param(
        {"decimal": ",", "group": "."}, 'ts,sensor,temp\n{T},a,"1.234.567,5"\n', f'"1234567.5"^^<{X}decimal>', id="points between thousands"
    ),
    pytest.param({"decimal": ","}, "ts,sensor,temp\n{T},a,1.234\n", f'"1.234"^^<{X}decimal>', id="a point stays without group"),
    pytest.param({"group": ","}, 'ts,sensor,temp\n{T},a,"1,234"\n', f'"1234"^^<{X}integer>', id="commas between thousands"),
    pytest.param({"group": ","}, 'ts,sensor,temp\n{T},a,"1,23"\n', '"1,23"', id="two digits are no thousands"),
    pytest.param({"skip": 2}, "Exported by x\n\nts,sensor,temp\n{T},a,1\n", f'"1"^^<{X}integer>', id="lines before the header"),
    pytest.param({"header_rows": 2}, "ts,sensor,temp\n,,C\n{T},a,1\n", f'"1"^^<{X}integer>', id="a row of units"),
    pytest.param({}, "sep=,\r\nts,sensor,temp\r\n{T},a,1\r\n", f'"1"^^<{X}integer>', id="Excel's line"),
    pytest.param({"null": ["", "M"], "types": [":C"]}, "ts,sensor,temp\n{T},a,M\n", f"<{EX}C>", id="a word for no value"),
]


@pytest.mark.parametrize(("words", "body", "term"), DIALECTS)
def test_how_csv_is_written(words: dict[str, Any], body: str, term: str) -> None:
    assert objects(BASIC | words, body.replace("{T}", T), CSV) == [term]


@pytest.mark.parametrize(("words", "encoding"), [({"encoding": "windows-1252"}, "cp1252"), ({}, "utf-16"), ({}, "utf-8-sig")])
def test_encodings(words: dict[str, Any], encoding: str) -> None:
    assert objects(BASIC | words, f"ts,sensor,temp\n{T},a,Küche\n".encode(encoding), CSV) == ['"Küche"']
    assert objects(BASIC | words, json.dumps({"ts": T, "sensor": "a", "temp": "Küche"}, ensure_ascii=False).encode(encoding)) == ['"Küche"']


def test_an_empty_cell_gives_no_triple_and_no_fault() -> None:
    found = mapped(BASIC, f"ts,sensor,temp\n{T},a,1.5\n{T},a,\n{T},a,3.5\n", CSV)
    assert ([row[2] for row in rows_of(found.batch)], found.rejected) == ([f'"1.5"^^<{X}decimal>', f'"3.5"^^<{X}decimal>'], ())
    assert objects(BASIC, f'{{"ts":"{T}","sensor":"a","temp":null}}') == []
    assert objects(BASIC | {"null": ["unknown"]}, f'{{"ts":"{T}","sensor":"a","temp":"unknown"}}') == []
    assert mapped(BASIC | {"header_rows": 2}, f"ts,sensor,temp\n,,C\n{T},a\n", CSV).rejected[0].row == 1


@pytest.mark.parametrize("body", ['{"ts":1,"sensor":"a","temp":2}', '{"ts":1.0,"sensor":"a","temp":2}', '{"ts":"1","sensor":"a","temp":2}'])
def test_numbers_are_times_of_an_epoch(body: str) -> None:
    assert [row[3] for row in rows_of(mapped(BASIC | {"time_format": "epoch_s"}, body).batch)] == [1_000_000]


READ = f'{{"ts":"{T}","sensor":"a","temp":1}}'
SHAPES = [
    pytest.param({}, READ, 1, id="one object"),
    pytest.param({}, json.dumps(json.loads(READ), indent=2), 1, id="one object over several lines"),
    pytest.param({}, f"[{READ}, {READ}]", 2, id="an array"),
    pytest.param({}, f"\ufeff{READ}\n{READ}\r\n\n{READ}", 3, id="ndjson with a byte order mark"),
    pytest.param({}, "", 0, id="nothing"),
    pytest.param({}, "[]", 0, id="an empty array"),
    pytest.param({"items": "readings[*]"}, f'{{"readings":[{READ},{READ}]}}', 2, id="items"),
    pytest.param({"items": "data.readings[*]"}, f'[{{"data":{{"readings":[{READ}]}}}},{{"data":{{"readings":[]}}}}]', 1, id="nested items"),
    pytest.param({"items": "a[*][*]"}, f'{{"a":[[{READ}],[{READ},{READ}]]}}', 3, id="arrays in arrays"),
    pytest.param({"items": "r[*]", "time": "$.at"}, f'{{"at":"{T}","r":[{READ}]}}\n{{"at":"{T}","r":[{READ}]}}', 2, id="a field of the document"),
    pytest.param({"items": "r[*]", "subject": "{$.d.n}"}, f'{{"d":{{"n":1}},"r":[{READ}]}}', 1, id="a nested field of the document"),
]


@pytest.mark.parametrize(("words", "body", "count"), SHAPES)
def test_shapes_of_json(words: dict[str, Any], body: str, count: int) -> None:
    found = mapped(BASIC | words, body)
    assert (found.batch.num_rows, found.rows, found.rejected) == (count, count, ())


OTLP = {"resource": {"service": "shop"}, "scopes": [
    {"metrics": [{"name": "m1", "gauge": {"points": [{"t": T, "v": 1}, {"t": T, "v": 2}]}}, {"name": "m2", "sum": {"points": [{"t": T, "v": 3}]}}]}]}  # fmt: skip


def test_elements_around_rows_and_several_paths_to_rows() -> None:
    around = "$.scopes[*].metrics[*].name"
    document = {"base": EX, "time": "t", "subject": f"{{{around}}}", "properties": {"v": ":v", "$.resource.service": ":service"}}
    items = [f"scopes[*].metrics[*].{kind}.points[*]" for kind in ("gauge", "sum")]
    found = mapped(document | {"items": items}, json.dumps(OTLP))
    assert found.rejected == ()
    assert [(row[0], row[2]) for row in rows_of(found.batch)] == [
        (f"<{EX}{name}>", term) for name, v in (("m1", 1), ("m1", 2), ("m2", 3)) for term in (f'"{v}"^^<{X}integer>', '"shop"')
    ]
    assert mapped(document | {"items": items[0]}, json.dumps(OTLP)).rejected[0].reason.endswith("there is no 'gauge'")


def test_positions_and_places_of_several_kinds() -> None:
    document = {"base": EX, "time": "value[0]", "time_format": "epoch_s", "properties": {"value[1]": ":v", "a": ":a", "a.b": ":b", "a.c[1].d": ":d"}}
    rows = [
        {"value": [1.5, "x"], "a": 7},
        {"value": [2.5, "y"], "a": {"b": 8, "c": [0, {"d": 9}]}},
        {"value": [3.5, "z"], "a": None},
        {"value": [4.5], "a": [1]},
    ]
    found = mapped(document, json.dumps(rows))
    assert [(row[1][len(EX) + 1 : -1], row[2].partition("^")[0]) for row in rows_of(found.batch)] == [
        ("v", '"x"'), ("a", '"7"'), ("v", '"y"'), ("b", '"8"'), ("d", '"9"'), ("v", '"z"')]  # fmt: skip
    pair = {"base": EX, "items": "values[*]", "time": "[0]", "time_format": "epoch_s", "properties": {"[1]": ":v"}}
    assert objects(pair, '{"values":[[1,"2"],[3,"4"]]}') == ['"2"', '"4"']


def test_paths() -> None:
    document = BASIC | {"properties": {"a.b": ":ab", "a.c.d": ":acd", "x\\.y": ":xy"}}
    body = f'[{{"ts":"{T}","sensor":"s","a":{{"b":1,"c":{{"d":2}}}},"x.y":3}},{{"ts":"{T}","sensor":"s","a":null,"x.y":4}}]'
    assert [row[1:3] for row in rows_of(mapped(document, body).batch)] == [
        (f"<{EX}{name}>", f'"{value}"^^<{X}integer>') for name, value in (("ab", 1), ("acd", 2), ("xy", 3), ("xy", 4))
    ]


def test_a_name_that_cannot_be_read_is_refused() -> None:
    named = {"base": EX, "properties": {'a.b"c': ":a"}}
    with pytest.raises(InvalidMapping, match=r'mapping\.a\.b"c: has a quotation mark, a backslash or a control character'):
        check_fields(compile_mapping(json.dumps(named)))
    check_fields(compile_mapping(json.dumps(named | {"format": "csv"})))


REJECTED = [
    pytest.param(BASIC, "[5]", "", "Expected `object`", id="no object"),
    pytest.param(BASIC, f"{READ}\n{{\n{READ}", "", "no JSON", id="a malformed line"),
    pytest.param(BASIC, '{"sensor":"a","temp":1}', "ts", "no value of its time", id="no time"),
    pytest.param(BASIC, f'{{"ts":"{T}","temp":1}}', "sensor", "no value of its subject", id="no subject"),
    pytest.param(BASIC | {"key": "k"}, READ, "k", "no value of the key", id="no key"),
    pytest.param(BASIC, f'{{"ts":"{T}","sensor":"a"}}', "", "gives no triple: it has a value of none of temp", id="nothing"),
    pytest.param(BASIC, f'{{"ts":"{T}","sensor":"a","temp":[1]}}', "temp", "is an object or array", id="an array"),
    pytest.param(BASIC, f'{{"ts":"{T}","sensor":{{}},"temp":1}}', "sensor", "is an object or array", id="an object in an IRI"),
    pytest.param(BASIC, f'{{"ts":"{T}","sensor":"","temp":1}}', "sensor", "empty", id="an empty value in an IRI"),
    pytest.param(BASIC, f'{{"ts":"{T}","sensor":"a","temp":"\\ud800"}}', "", "no JSON", id="half of a surrogate pair"),
    pytest.param(BASIC, b'{"ts":"2026-01-01","sensor":"a","temp":"\xff"}', None, "", id="no UTF-8"),
    pytest.param(*one("abc", datatype="xsd:decimal"), "v", "'abc' is no xsd:decimal", id="no decimal"),
    pytest.param(*one(1.5, datatype="integer"), "v", "1.5 is no xsd:integer", id="no integer"),
    pytest.param(*one("128", datatype="xsd:byte"), "v", "'128' is no xsd:byte", id="no byte"),
    pytest.param(*one("2026-02-30", datatype="date"), "v", "no xsd:date", id="no date"),
    pytest.param(*one("P1H", datatype="xsd:duration"), "v", "no xsd:duration", id="no duration"),
    pytest.param(*one("[", value="http://{+v}/"), "v", "is no term", id="a value that gives no IRI"),
    pytest.param(BASIC | {"items": "r[*]"}, READ, "", "items 'r[*]' leads to no rows", id="no items"),
    pytest.param(BASIC | {"items": "temp[*]"}, READ, "", "items 'temp[*]' leads to no rows", id="items that are no array"),
    pytest.param(BASIC | {"properties": {"temp.x": ":x"}}, READ, "", "has a value of none of temp.x", id="a path through a number"),
]


@pytest.mark.parametrize(("document", "body", "field", "reason"), REJECTED)
def test_rows_that_do_not_map(document: dict[str, Any], body: str | bytes, field: str | None, reason: str) -> None:
    found = mapped(document, body)
    assert len(found.rejected) == 1
    assert reason in found.rejected[0].reason
    assert field is None or found.rejected[0].field == field
    assert found.rejected[0].text


def test_rows_of_csv_that_do_not_map_leave_the_others() -> None:
    body = f'ts,sensor,temp,x\n{T},a,1,\n{T},b\n\n{T},c,3,"q,"\n,d,4,z\n{T},e,5,\n{T},f,6,7,8\n'
    found = mapped(BASIC, body, CSV)
    assert [row[0] for row in rows_of(found.batch)] == [f"<{EX}sensor/{name}>" for name in "ace"]
    assert [(row.row, row.field, row.text) for row in found.rejected] == [(2, "", f"{T},b"), (4, "ts", ",d,4,z"), (6, "", f"{T},f,6,7,8")]
    assert "2 cells and the header 4" in found.rejected[0].reason
    assert mapped(BASIC, f"ts,sensor,temp\n{T},a,\xff\n".encode("latin-1"), CSV).rejected[0].field == "temp"


def test_columns_without_a_header_are_named_by_their_numbers() -> None:
    document = {"header_rows": 0, "skip": 1, "time": "column1", "base": EX, "subject": "{column2}", "properties": {"column3": ":t"}}
    found = mapped(document, f"a line above\n\n{T},a,1\n{T},b\n{T},c,3\n", CSV)
    assert [row[0] for row in rows_of(found.batch)] == [f"<{EX}a>", f"<{EX}c>"]
    assert [(row.row, row.reason, row.text) for row in found.rejected] == [(2, "the row has 2 cells and the first row 3", f"{T},b")]
    with pytest.raises(FormatError, match="reads the column 'column3', which the header does not have"):
        mapped(document, f"x\n{T},a\n", CSV)


def test_of_very_many_rows_that_do_not_map_the_first_are_kept_and_all_counted() -> None:
    body = "ts,sensor,temp\n" + ",,\n,\n" * MOST_REJECTED + f"{T},a,1\n"
    found = mapped(BASIC, body, CSV)
    assert (found.rows, len(found.rejected), found.beyond) == (1, MOST_REJECTED, MOST_REJECTED)
    assert [row.row for row in found.rejected] == list(range(1, MOST_REJECTED + 1))
    assert (len(found.unmapped.kept), found.unmapped.skipped) == (MOST_REJECTED, MOST_REJECTED)
    assert replace(found, skips=True).unmapped == Unmapped(skipped=2 * MOST_REJECTED)
    with pytest.raises(FormatError, match=rf"row 1, field ts: .* \({2 * MOST_REJECTED - 1} more rows do not map\)"):
        refuse_rejected(found)


BODIES = [
    pytest.param(BASIC, "ts,temp\n", CSV, "reads the column 'sensor', which the header does not have", id="a column that is not there"),
    pytest.param(BASIC, "ts,sensor,temp,ts\n", CSV, "twice", id="a column that is there twice"),
    pytest.param(BASIC, "", CSV, "no header", id="no header"),
    pytest.param(BASIC, f"[{READ},", JSON, "the array cannot be read", id="an array that ends early"),
]


@pytest.mark.parametrize(("document", "body", "media_type", "message"), BODIES)
def test_bodies_that_are_refused(document: dict[str, Any], body: str, media_type: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        mapped(document, body, media_type)
    assert message in str(caught.value)


def test_what_a_body_expands_to_is_bounded() -> None:
    wide = BASIC | {"subject": "x" * 1900 + "{sensor}"}
    many = BASIC | {"properties": {f"p{k}": f":p{k}" for k in range(500)}}
    for document, body in (
        (wide, "\n".join(f'{{"ts":"{T}","sensor":{k},"temp":1}}' for k in range(20_000))),
        (many, "{}\n" * 100_000),
        (BASIC | {"types": [f":C{k}" for k in range(100)]}, "\n".join([READ] * 20_000)),
    ):
        with pytest.raises(FormatError) as caught:
            mapped(document, body)
        assert caught.value.code == "expansion"


DOCUMENTS = [
    ([], "mapping: is no object"),
    ({"properties": {"a": ":a"}, "frob": 1}, "mapping.frob: is not known here"),
    ({}, "mapping.properties: is missing"),
    ({"properties": {"a": ":a"}}, "mapping.properties.a.iri: ':a' has the empty prefix"),
    ({"properties": {"a": "a"}}, "'a' is relative, and there is no base"),
    ({"base": "x", "types": ["a:b"]}, "mapping.base: is no IRI"),
    ({"base": EX, "types": ["a b"]}, "mapping.types: 'a b' gives no IRI"),
    ({"base": EX, "types": ["{a}"]}, "mapping.types: have fields in braces"),
    ({"base": EX, "types": [":a"], "subject": "{a"}, "mapping.subject: the braces"),
    ({"base": EX, "types": [":a"], "subject": "x{}"}, "mapping.subject: braces without a field"),
    ({"base": EX, "types": [":a"], "subject": "x{?a}"}, "mapping.subject: the operator '?'"),
    ({"base": EX, "types": [":a"], "subject": "x", "aboutUrl": "y"}, "mapping.aboutUrl: means the same as subject"),
    ({"base": EX, "properties": {"a": {}}}, "mapping.properties.a: has no iri"),
    ({"base": EX, "properties": {"a": {"iri": ":a", "lang": "en", "datatype": "string"}}}, "mapping.properties.a.lang: excludes datatype"),
    ({"base": EX, "properties": {"a": {"iri": ":a", "value": "{a}", "datatype": "string"}}}, "datatype: excludes value"),
    ({"base": EX, "properties": {"a": {"iri": ":a", "lang": "e n"}}}, "no language tag"),
    ({"base": EX, "types": [":a"], "time": "t", "time_format": "x"}, "mapping.time_format: is no format"),
    ({"base": EX, "types": [":a"], "time": "t", "time_format": "%Q%"}, "mapping.time_format: is no format"),
    ({"base": EX, "types": [":a"], "time_format": "iso"}, "mapping.time_format: is given without time"),
    ({"base": EX, "types": [":a"], "format": "xml"}, "mapping.format: cannot be 'xml'"),
    ({"base": EX, "types": [":a"], "items": "a[0]"}, "mapping.items: 'a[0]' is no path"),
    ({"base": EX, "types": [":a"], "items": ".".join("a" * 17)}, "mapping.items: has more than 16 steps"),
    ({"base": EX, "types": [":a"], "items": 'a"[*]'}, "is no path"),
    ({"base": EX, "types": [":a"], "delimiter": ";;"}, "mapping.delimiter"),
    ({"base": EX, "types": [":a"], "decimal": "1"}, "mapping.decimal: is '1'"),
    ({"base": EX, "types": [":a"], "decimal": ",", "group": ","}, "mapping.group: is the decimal mark too"),
    ({"base": EX, "types": [":a"], "skip": -1}, "mapping.skip: is no number of lines"),
    ({"base": EX, "types": [":a"], "header_rows": True}, "mapping.header_rows: is no number of lines"),
    ({"base": EX, "types": [":a"], "encoding": "utf-16"}, "mapping.encoding: is 'utf-16'"),
    ({"base": EX, "types": [":a"], "time": []}, "mapping.time: names no field"),
    ({"base": EX, "types": [":a"], "time": "t", "time_zone": "Mars"}, "mapping.time_zone: 'Mars' is no time zone"),
    ({"base": EX, "types": [":a"], "time": "t", "round": "second"}, "mapping.round: cannot be 'second'"),
    ({"base": EX, "types": [":a"], "round": "microsecond"}, "mapping.round: is given without time"),
    ({"base": EX, "types": [":a"], "key": 5}, "mapping.key: is no text"),
    ({"base": EX, "properties": dict.fromkeys((f"p{k}" for k in range(501)), ":a")}, "more than 500"),
    ({"base": EX, "subject": "x" * 2001, "types": [":a"]}, "more than 2000 characters"),
    ({"@context": "http://e/c"}, "mapping.@context: is no object"),
    ({"@context": {"a": "b"}}, "the context has no @vocab"),
    ({"@context": {"a": {"@id": "x:a", "@container": "@list"}}}, "mapping.@context.a: is no definition that is supported"),
    ({"@context": {"@import": "x"}}, "mapping.@context.@import: is not supported"),
    ({"@context": {"a": "x:a"}, "properties": {}}, "mapping.@context: excludes properties"),
]


@pytest.mark.parametrize(("document", "message"), DOCUMENTS)
def test_faults_of_a_mapping_name_the_member(document: Any, message: str) -> None:
    with pytest.raises(InvalidMapping) as caught:
        compile_mapping(json.dumps(document))
    assert message in str(caught.value)


CONTEXT = {"@vocab": EX, "id": "@id", "temp": {"@id": "temp"}, "by": {"@id": "by", "@type": "@id"}, "when": {"@id": "when", "@type": f"{X}dateTime"}}
NUMBERS = ["1", "-0", "0", "1.0", "1.5", "-12.25", "1e3", "1E-7", "99999999999999", "true"]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_context_types_numbers_as_json_ld_does(number: str) -> None:
    """Oxigraph's parser reads the same triples from the row with its context."""
    body = f'{{"id":"{EX}a","temp":{number},"by":"{EX}b","when":"{T}"}}'
    expected = {
        (str(quad.subject), str(quad.predicate), str(quad.object))
        for quad in ox.parse(f'{{"@context":{json.dumps(CONTEXT)},{body[1:]}', ox.RdfFormat.JSON_LD)
    }
    assert {row[:3] for row in rows_of(mapped({"@context": CONTEXT}, body).batch)} == expected


LARGE = [
    ("1e21", "1.0E21", "double"),
    ("5e-324", "4.940656458412465E-324", "double"),
    ("99999999999999999999", "99999999999999999999", "integer"),
    ("1e20", "1" + 20 * "0", "integer"),
]


@pytest.mark.parametrize(("number", "text", "kind"), LARGE)
def test_large_and_small_numbers_under_a_context(number: str, text: str, kind: str) -> None:
    """The forms are those of JSON-LD 1.1's algorithms (`%1.15E`)."""
    assert objects({"@context": CONTEXT}, f'{{"id":"{EX}a","temp":{number}}}') == [f'"{text}"^^<{X}{kind}>']


def test_blank_nodes() -> None:
    """Without a subject, a body sent again gives the same nodes; with a key, so does a row, in whatever body."""
    nameless = {name: word for name, word in BASIC.items() if name != "subject"}
    two, again, other = (rows_of(mapped(nameless, body).batch) for body in (f"{READ}\n{READ}", f"{READ}\n{READ}", READ))
    assert two == again
    assert len({row[0] for row in two + other}) == 3
    keyed = [rows_of(mapped(nameless | {"key": "sensor"}, body).batch)[0][0] for body in (READ, f"{READ}\n{READ}", READ.replace('"a"', '"b"'))]
    assert keyed[0] == keyed[1] != keyed[2]
    assert all(term.startswith("_:") for term in keyed)


# ---------------------------------------------------------------- bodies of streams
SETTINGS = BodySettings("", json.dumps(BASIC))


def test_cloud_events() -> None:
    event = {"specversion": "1.0", "id": "7", "source": "/s", "type": "t", "time": "2026-01-02T00:00:00Z", "data": {"sensor": "a", "temp": 1}}
    found = read_body(json.dumps(event).encode(), CLOUD_EVENT, SETTINGS, default=None, arrived=7)
    assert (rows_of(found.mapped.batch)[0][3], found.key) == (instant("2026-01-02T00:00:00Z"), "/s 7")
    later = event | {"time": "2026-01-03T00:00:00Z"}
    found = read_body(json.dumps([event, later]).encode(), f"{CLOUD_EVENTS}; charset=utf-8", SETTINGS, default=None, arrived=7)
    assert [row[3] - AT for row in rows_of(found.mapped.batch)] == [86_400_000_000, 2 * 86_400_000_000]
    assert found.key is None


BAD_EVENTS = [
    ({"specversion": "0.3"}, "is of version '0.3'"),
    ({"id": ""}, "no id or source"),
    ({"data": ...}, "has no data"),
    ({"datacontenttype": "text/csv"}, "is 'text/csv'"),
    ({"time": "x"}, "no xsd:dateTime"),
    ({"data": {}}, "row 1"),
    ({"data_base64": "x"}, "data_base64"),
]


@pytest.mark.parametrize(("members", "message"), BAD_EVENTS)
def test_faults_of_cloud_events(members: dict[str, Any], message: str) -> None:
    event = {"specversion": "1.0", "id": "7", "source": "/s", "type": "t", "time": T, "data": {"sensor": "a", "temp": 1}} | members
    with pytest.raises(FormatError) as caught:
        read_body(json.dumps({k: v for k, v in event.items() if v is not ...}).encode(), CLOUD_EVENT, SETTINGS, default=None, arrived=7)
    assert message in str(caught.value)


def test_a_body_needs_a_mapping() -> None:
    for media_type in (JSON, CSV, CLOUD_EVENT):
        with pytest.raises(FormatError, match=r"PUT /streams/\{name\} with") as caught:
            read_body(b"{}", media_type, BodySettings(), default=None, arrived=7)
        assert caught.value.code == "media-type"


def test_frames_say_their_format() -> None:
    found = read_frame(f'{{"format":"csv","id":"k"}}\nts,sensor,temp\n{T},a,1\n'.encode(), SETTINGS, arrived=7, binary=False)
    assert (found.mapped.batch.num_rows, found.key) == (1, "k")
    assert read_frame(f'{{"format":"json"}}\n{READ}'.encode(), SETTINGS, arrived=7, binary=False).mapped.batch.num_rows == 1
    with pytest.raises(FormatError, match="format cannot be read"):
        read_frame(b'{"format":"xml"}\n', SETTINGS, arrived=7, binary=False)


SHORT = [
    ('{"s":":a","p":"a","o":":C"}', f"<{EX}C>"), ('{"s":":a","p":":p","o":1.50}', f'"1.50"^^<{X}decimal>'), ('{"s":":a","p":":p","o":-1}', f'"-1"^^<{X}integer>'),
    ('{"s":":a","p":":p","o":1e0}', f'"1e0"^^<{X}double>'), ('{"s":":a","p":":p","o":true}', f'"true"^^<{X}boolean>'),
    ('{"s":":a","p":":p","o":"2026-01-01T00:00:00Z"}', f'"2026-01-01T00:00:00Z"^^<{X}dateTime>'), ('{"s":"<x:a>","p":":p","o":"\\"t\\""}', '"t"'),
    ('{"s":":a","p":":p","o":"xsd:int"}', f"<{X}int>"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "term"), SHORT)
def test_short_terms(line: str, term: str) -> None:
    found = read_body(line.encode(), "application/x-ndjson", BodySettings(EX), default=None, arrived=7)
    assert found.mapped.batch.column("o").to_pylist() == [term]


@pytest.mark.parametrize(
    "line", ['{"s":":a","p":":p","o":"text"}', '{"s":":a","p":":p","o":null}', '{"s":"http://e/a","p":":p","o":1}', '{"s":":a","p":":p","o":"foo:x"}']
)
def test_what_is_no_short_term(line: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_body(line.encode(), "application/x-ndjson", BodySettings(EX), default=None, arrived=7)
    assert (caught.value.code, caught.value.line) == ("term", 1)


def test_prefixes_of_the_body_count_before_those_of_the_stream_and_its_mapping() -> None:
    mapping = json.dumps({"base": EX, "prefixes": {"a": "http://a/", "b": "http://b/", "c": "http://c/"}, "properties": {"x": ":x"}})
    settings = BodySettings("", mapping, prefixes=json.dumps({"b": "http://b2/", "c": "http://c2/"}))
    body = b'{"prefixes":{"c":"http://c3/"}}\n{"s":"a:s","p":"b:p","o":"c:o","g":":g"}'
    found = read_body(body, "application/x-ndjson", settings, default=None, arrived=7).mapped.batch.to_pylist()
    assert [found[0][place] for place in "spog"] == ["<http://a/s>", "<http://b2/p>", "<http://c3/o>", f"<{EX}g>"]


# ---------------------------------------------------------------- against a plain mapper
RICH = {"time": "ts", "base": EX, "subject": "s/{sensor}", "properties": {
    "temp": {"iri": ":temp", "datatype": "decimal"}, "hum": ":hum", "note": {"iri": ":note", "lang": "en", "null": ["-", ""]}, "state": {"iri": ":{sensor}", "value": "st/{state}-{hum}"}}}  # fmt: skip
SPECIAL = st.sampled_from(
    [
        "",
        "-",
        "1",
        "1.5",
        ".5",
        "5.",
        "1e3",
        "true",
        "false",
        "NaN",
        "INF",
        "+1",
        "a b",
        "ü/%",
        '"',
        "\\",
        "\n",
        ",",
        " x ",
        "\t",
        "😀",
        "'",
        T,
        "0",
        "007",
    ]
)
TEXTS = SPECIAL | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=6)
JSON_VALUES = (
    TEXTS
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
    | st.just([1])
    | st.just({"x": 1})
)
STAMPS = {
    "iso": st.sampled_from([T, "2026-01-01 00:00:01", "2026-01-01T00:00:01.5+02:00", "2026-02-30T00:00:00Z", "2026-01-01", "soon", ""]),
    "epoch_s": st.sampled_from(["1767225600", "1767225600.25", "x", "1e9", ""]),
    "%d.%m.%Y": st.sampled_from(["01.02.2026", "31.02.2026", ""]),
}


@settings(max_examples=examples(1000, 20), deadline=None)
@given(st.data())
def test_csv_against_a_plain_mapper(data: st.DataObject) -> None:
    import csv
    import io

    fmt = data.draw(st.sampled_from(list(STAMPS)))
    rows = data.draw(st.lists(st.tuples(STAMPS[fmt], *[TEXTS] * 5), max_size=6))
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("ts", "sensor", "temp", "hum", "note", "state"), *rows])
    check_against_plain(RICH | {"time_format": fmt}, out.getvalue().encode(), CSV)


@settings(max_examples=examples(1000, 20), deadline=None)
@given(st.data())
def test_json_against_a_plain_mapper(data: st.DataObject) -> None:
    fmt = data.draw(st.sampled_from(list(STAMPS)))
    fields = dict.fromkeys(("sensor", "temp", "hum", "note", "state"), JSON_VALUES)
    row = st.fixed_dictionaries({}, optional={"ts": STAMPS[fmt] | st.none() | st.just(5), **fields}) | st.just(5)
    check_against_plain(RICH | {"time_format": fmt}, json.dumps(data.draw(st.lists(row, max_size=6)), ensure_ascii=False).encode(), JSON)


def check_against_plain(document: dict[str, Any], body: bytes, media_type: str) -> None:
    found = mapped(document, body, media_type)
    expected, rejected = map_rows(body, compile_mapping(json.dumps(document)), is_csv=media_type == CSV)
    assert rows_of(found.batch) == expected
    assert [row.row for row in found.rejected] == rejected


@pytest.mark.parametrize("seed", range(10 if is_full() else 1))
def test_fuzzed_rows_are_mapped_rejected_or_refused(seed: int) -> None:
    """10,000 rows for each seed, some damaged: each is mapped or rejected, or its body is refused, and the counts add
    up.
    """
    chance = random.Random(seed)
    good = [f'{T},s{k % 7},{k}.5,{k},"no, te",on' for k in range(100)]
    counts = {"mapped": 0, "rejected": 0, "refused": 0}
    for number in range(100):
        is_csv = chance.random() < 0.5
        head = "ts,sensor,temp,hum,note,state"
        lines = (
            good
            if is_csv
            else [json.dumps(dict(zip(head.split(","), line.replace('"', "").split(",")[:6], strict=False)) | {"n": number}) for line in good]
        )
        lines = [damaged(line, chance) if chance.random() < 0.1 else line for line in lines]
        body = "\n".join(([head] if is_csv else []) + lines).encode()
        try:
            found = mapped(RICH, body, CSV if is_csv else JSON)
        except FormatError:
            counts["refused"] += 100
            continue
        counts["mapped"] += found.rows
        counts["rejected"] += len(found.rejected)
        total = found.rows + len(found.rejected)
        assert len({row.row for row in found.rejected}) == len(found.rejected)
        assert total == 100 or any(mark in body for mark in (b'""', b"}{", b'\n"', b'",'))
        counts["merged"] = counts.get("merged", 0) + 100 - total
    assert sum(counts.values()) == 10_000
    assert counts["mapped"] > 5_000
    assert counts["rejected"] > 100


def damaged(line: str, chance: random.Random) -> str:
    at, length = chance.randrange(len(line)), chance.choice((0, 1, 3, 9))
    piece = chance.choice(['"', ",", "\\", "é", "\x00", "{", "}", "null", "NaN", "-", "1e999", "\\ud800", "[1]", " ", ";", "'", "%"])
    return line[:at] + piece + line[at + length :]
