"""Proposed mappings: what is guessed for files of known kinds, as the triples that the mapping makes of their first
rows.
"""

import json
from typing import Any

import pytest

from epsparql.events.media_types import CSV, JSON
from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.timestamps import instant
from pipeline.proposals.proposal import AmbiguousDates, Choices, Proposal, propose_mapping

NOW = instant("2026-11-29T12:00:00Z")
EX = "http://example.org/"


def propose(body: str | bytes | Any, *, order: str | None = None, zone: str | None = None, **chosen: str) -> Proposal:
    """Propose a mapping for CSV, given as text, or for JSON, given as a value or as bytes.

    `chosen` has further choices.
    """
    choices = Choices(NOW, order, zone, chosen)
    if isinstance(body, str) and not body.startswith(("{", "[")):
        return propose_mapping(body.encode(), CSV, EX, choices)
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return propose_mapping(content, JSON, EX, choices)


def triples(found: Proposal) -> list[str]:
    """Return the triples of all rows that are shown, without XSD's prefix."""
    return [triple.replace("^^xsd:", "^^") for row in found.preview for triple in row]


AIS = "# Timestamp,Type of mobile,MMSI,SOG\n{}/01/2018 00:00:01,Class A,219000001,10.4\n{}/01/2018 00:00:11,Class A,219000002,\n"
TABLES = [
    pytest.param(
        AIS.format("13", "13"),
        {},
        ['<MMSI/219000001> :Type_of_mobile "Class A" .  # 2018-01-13T00:00:01Z', '<MMSI/219000001> :SOG "10.4"^^decimal .  # 2018-01-13T00:00:01Z',
         '<MMSI/219000002> :Type_of_mobile "Class A" .  # 2018-01-13T00:00:11Z'],
        id="AIS: the thirteenth is a day",
    ),
    pytest.param(
        "Date,Time,Sensor,Value\n03/01/2026,8:00 AM,A,21.5\n03/14/2026,12:05 PM,A,\"1,022.5\"\n", {},
        ['<Sensor/A> :Value "21.5"^^decimal .  # 2026-03-01T08:00:00Z', '<Sensor/A> :Value "1022.5"^^decimal .  # 2026-03-14T12:05:00Z'],
        id="Excel of the US: date and time in two columns, commas between thousands",
    ),
    pytest.param(
        "Datum;Uhrzeit;Sensor;Druck\n01.03.2026;08:00;A;1.013,25\n01.03.2026;08:01;A;-1,5\n", {"zone": "Europe/Vienna"},
        ['<Sensor/A> :Druck "1013.25"^^decimal .  # 2026-03-01T07:00:00Z', '<Sensor/A> :Druck "-1.5"^^decimal .  # 2026-03-01T07:01:00Z'],
        id="Excel of Germany: a decimal comma, points between thousands, local times",
    ),
    pytest.param(
        "sep=;\r\nZeit (UTC+1);Gerät;Temp\r\n2026-03-01 08:00:00;x;21,5\r\n", {},
        ['<Gerät/x> :Temp "21.5"^^decimal .  # 2026-03-01T07:00:00Z'], id="Excel's line of the separator, and a zone in a name",
    ),
    pytest.param(
        "Date,Time,sensor,v\n20260301,0805,a,1\n20260301,0810,a,2\n", {},
        ['<sensor/a> :v "1"^^integer .  # 2026-03-01T08:05:00Z', '<sensor/a> :v "2"^^integer .  # 2026-03-01T08:10:00Z'], id="times of day without colons",
    ),
    pytest.param(
        "year,month,day,hour,carrier,delay\n2013,1,1,5,UA,2\n2013,1,12,15,AA,NA\n", {},
        ['_ :carrier "UA" .  # 2013-01-01T05:00:00Z', '_ :delay "2"^^integer .  # 2013-01-01T05:00:00Z', '_ :carrier "AA" .  # 2013-01-12T15:00:00Z'],
        id="year, month, day and hour in columns",
    ),
    pytest.param(
        "#DEBUG: Format Typ -> comma\n#DEBUG: Time Period -> 2026, 2026\nstation,valid,tmpf,p01i\nLOWW,2026-03-01 08:20,M,0.00\nLOWW,2026-03-01 08:50,41.00,T\n", {},
        ['<station/LOWW> :p01i "0.00"^^decimal .  # 2026-03-01T08:20:00Z', '<station/LOWW> :tmpf "41.00"^^decimal .  # 2026-03-01T08:50:00Z',
         '<station/LOWW> :p01i "T" .  # 2026-03-01T08:50:00Z'],
        id="METAR: comments above the header, M for no value, a trace of rain",
    ),
    pytest.param(
        "time,sensor,temp\n,,°C\n2026-03-01T08:00:00Z,a,1.5\n2026-03-01T08:01:00Z,a,2.5\n", {},
        ['<sensor/a> :temp "1.5"^^decimal .  # 2026-03-01T08:00:00Z', '<sensor/a> :temp "2.5"^^decimal .  # 2026-03-01T08:01:00Z'],
        id="a row of units",
    ),
    pytest.param(
        "entity_id,state,last_changed,last_updated\nsensor.t,21.5,2026-03-01T08:00:00.000Z,2026-03-01T08:00:09Z\nsensor.t,unavailable,2026-03-01T08:05:00.000Z,2026-03-01T08:05:09Z\n", {},
        ['<entity_id/sensor.t> :state "21.5"^^decimal .  # 2026-03-01T08:00:00Z',
         '<entity_id/sensor.t> :last_updated "2026-03-01T08:00:09Z"^^dateTime .  # 2026-03-01T08:00:00Z',
         '<entity_id/sensor.t> :last_updated "2026-03-01T08:05:09Z"^^dateTime .  # 2026-03-01T08:05:00Z'],
        id="Home Assistant: unavailable is no value",
    ),
    pytest.param(
        "ts,sensor,code\n1511545388.123456789,a,007\n1511545389.5,a,010\n", {},
        ['<sensor/a> :code "007" .  # 2017-11-24T17:43:08.123457Z', '<sensor/a> :code "010" .  # 2017-11-24T17:43:09.5Z'], id="fractions of loggers, and codes",
    ),
    pytest.param(
        "2026-03-01T08:00:00Z,a,1.5\n2026-03-01T08:01:00Z,b,2.5\n", {},
        ['_ :column2 "a" .  # 2026-03-01T08:00:00Z', '_ :column3 "1.5"^^decimal .  # 2026-03-01T08:00:00Z',
         '_ :column2 "b" .  # 2026-03-01T08:01:00Z', '_ :column3 "2.5"^^decimal .  # 2026-03-01T08:01:00Z'],
        id="no header: the first row has values",
    ),
    pytest.param(
        "2026-03-01;NA;7\r\n2026-03-02;2,5;8\r\n", {},
        ['_ :column3 "7"^^integer .  # 2026-03-01T00:00:00Z', '_ :column2 "2.5"^^decimal .  # 2026-03-02T00:00:00Z', '_ :column3 "8"^^integer .  # 2026-03-02T00:00:00Z'],
        id="no header, and no value in the first row",
    ),
    pytest.param(
        "time,2025,2026\n2026-03-01,1,2\n2026-03-02,3,4\n", {},
        ['_ :2025 "1"^^integer .  # 2026-03-01T00:00:00Z', '_ :2026 "2"^^integer .  # 2026-03-01T00:00:00Z',
         '_ :2025 "3"^^integer .  # 2026-03-02T00:00:00Z', '_ :2026 "4"^^integer .  # 2026-03-02T00:00:00Z'],
        id="a header of years",
    ),
    pytest.param("time,a b,a_b\n2026-03-01,1,2\n", {}, ['_ :a_b "1"^^integer .  # 2026-03-01T00:00:00Z', '_ :a_b_2 "2"^^integer .  # 2026-03-01T00:00:00Z'], id="equal names"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "choices", "expected"), TABLES)
def test_a_table(body: str, choices: dict[str, Any], expected: list[str]) -> None:
    assert [line if line[0] != "_" else "_ " + line.partition(" ")[2] for line in triples(propose(body, **choices))] == expected


@pytest.mark.parametrize(("order", "day"), [("day-first", "2018-01-04"), ("month-first", "2018-04-01")])
def test_day_and_month_that_the_rows_do_not_tell(order: str, day: str) -> None:
    with pytest.raises(AmbiguousDates, match="is 2018-01-04 with the day first, and 2018-04-01 with the month first"):
        propose(AIS.format("04", "04"))
    assert triples(propose(AIS.format("04", "04"), order=order))[0].endswith(f"# {day}T00:00:01Z")
    assert "month-first" not in " ".join(propose(AIS.format("04", "04") + "31/12/2018 00:00:00,x,1,1\n").comments)


def test_a_name_that_cannot_be_read_is_left_out() -> None:
    body = json.dumps({"time": "2026-03-01T08:00:00Z", "id": "x", "v": 1, "a\\b": 2, 'c"': {"d": 3}})
    assert propose_mapping(body.encode(), JSON, EX, Choices(NOW)).document["properties"].keys() == {"v"}


def test_what_is_left_out_is_told() -> None:
    told = " ".join(propose({"ts": "2026-03-01T08:00:00Z", "id": "x", "tags": ["a"], "v": 1, "parts": [{"n": 1}, {"n": 2}]}).comments)
    assert "the array 'parts[*]' is left out, and items leads to their elements" in told
    assert "the array 'tags' is left out; a position leads into one, such as tags[0]" in told


def test_a_row_without_values_is_an_event() -> None:
    found = propose(b'{"id":1,"v":2}\n{"id":2}\n{"id":3,"v":null}\n')
    assert [len(row) for row in found.preview] == [2, 1, 1]
    assert any("row 2 has none of the fields below, so each row becomes an :Event" in each for each in found.comments)
    assert "types" not in propose(b'{"id":1,"v":2}\n{"id":3,"v":null}\n').document


def test_an_encoding_is_found() -> None:
    body = "Zeit;Gerät;Außen (°C)\n01.03.2026 08:00;Küche;21,5\n"
    expected = ['<Gerät/Küche> :Außen_C "21.5"^^xsd:decimal .  # 2026-03-01T08:00:00Z']
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        found = propose_mapping(body.encode(encoding), CSV, EX, Choices(NOW))
        assert list(found.preview[0]) == expected, encoding
        assert ("encoding" in found.document) == (encoding == "cp1252")


def test_guesses_are_told_with_their_alternatives() -> None:
    found = propose('created,ts,device,name,v\n2026-03-01 07:00,2026-03-01 08:00,a,x,"1,5"\n2026-03-01 07:00,2026-03-01 08:01,a,y,"2,5"\n')
    assert [comment for comment in found.comments if "alternative" in comment or "without" in comment or "zone" in comment] == [
        "time is 'ts', read as iso; the alternative is 'created'",
        "times name no zone and are read as UTC; a time zone, such as Europe/Vienna, makes them local",
        "the subject is made of 'device'; the alternative is 'name'",
        "'1,5' is the number 1.5, with a decimal comma; without decimal it is text",
    ]


CREATED = "created,ts,device,name,v\n2026-03-01 07:00,2026-03-01 08:00,a,x,{}\n2026-03-01 07:00,2026-03-01 08:01,a,y,{}\n"
NESTED = {"time": "2026-03-01T08:00:00Z", "id": "g", "a": [{"n": 1}, {"n": 2}], "b": [{"id": "y", "m": 3}]}
CHOICES = [
    pytest.param(CREATED.format("M", "1"), {"time": "created"}, '<device/a> :ts "2026-03-01 08:00" .  # 2026-03-01T07:00:00Z', id="another time"),
    pytest.param(CREATED.format("M", "1"), {"subject": "name"}, '<name/x> :device "a" .  # 2026-03-01T08:00:00Z', id="another subject"),
    pytest.param(CREATED.format("M", "1"), {"null:v": "text"}, '<device/a> :v "M" .  # 2026-03-01T08:00:00Z', id="a word that is a value"),
    pytest.param(CREATED.format('"1,5"', "1"), {"numbers": "text"}, '<device/a> :v "1,5" .  # 2026-03-01T08:00:00Z', id="commas are no marks"),
    pytest.param(CREATED.format('"1,500"', "1"), {"numbers": "numbers with decimal commas"}, '<device/a> :v "1.500"^^decimal .  # 2026-03-01T08:00:00Z',
                 id="commas are decimal marks"),
    pytest.param(CREATED.format("007", "1"), {"values:v": "numbers"}, '<device/a> :v "007"^^integer .  # 2026-03-01T08:00:00Z', id="codes that are numbers"),
    pytest.param(CREATED.format("7a", "1"), {"values:v": "numbers and text"}, '<device/a> :v "1"^^integer .  # 2026-03-01T08:01:00Z', id="numbers among text"),
    pytest.param(CREATED.format("T", "1"), {"values:v": "numbers"}, '<device/a> :v "1"^^integer .  # 2026-03-01T08:01:00Z', id="words that are no values"),
    pytest.param(NESTED, {"rows": "b[*]"}, '<id/y> :m "3"^^integer .  # 2026-03-01T08:00:00Z', id="rows elsewhere in documents"),
    pytest.param({"data": [{"t": "2026-03-01T08:00:00Z", "id": "x", "v": 1}]}, {"rows": "documents"}, None, id="documents as rows, which have no value"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "chosen", "expected"), CHOICES)
def test_a_choice_is_taken(body: Any, chosen: dict[str, str], expected: str | None) -> None:
    """It is offered by the proposal without it.

    A choice by which nothing can be read is refused, and the proposal stands.
    """
    ((setting, value),) = chosen.items()
    offered = {each.setting: each for each in propose(body).choices}
    assert value in offered[setting].alternatives
    if expected is None:
        with pytest.raises(FormatError, match="no field has a value"):
            propose(body, **chosen)
        return
    found = propose(body, **chosen)
    assert expected in triples(found)
    assert next(each for each in found.choices if each.setting == setting).alternatives == tuple(
        each for each in (offered[setting].value, *offered[setting].alternatives) if each != value
    )


def test_order_and_zone_are_choices_where_the_rows_leave_them_open() -> None:
    open_ones = {each.setting: (each.value, each.alternatives) for each in propose("Datum;v\n04.01.2026 08:00;1\n", zone="+01:00").choices}
    assert open_ones == {"order": ("day-first", ("month-first",)), "time_zone": ("+01:00", ())}
    assert propose("time,v\n2026-03-14T08:00:00Z,1\n").choices == ()


FAULTS = [
    pytest.param(
        "ts,v\n2026-03-01 08:00,1\n", {"subject": "v"}, FormatError, "the rows do not offer the choice 'subject'; expected none", id="no choice"
    ),
    pytest.param(
        CREATED.format(1, 2), {"time": "v"}, FormatError, "the choice 'time' has no value 'v'; expected one of 'ts', 'created'", id="no value"
    ),
    pytest.param("a,b\n1,2\n3\n", {}, FormatError, "row 2: the row has 1 cells and the header 2", id="a short row"),
    pytest.param("", {}, FormatError, "there are no rows", id="nothing"),
    pytest.param("time,v\n", {}, FormatError, "there are no rows", id="a header alone"),
    pytest.param(
        "v,v\n1,2\n", {}, FormatError, "'v' is the name of 2 columns, which are left out; names that differ include them", id="one name for all"
    ),
    pytest.param(",\n1,2\n", {}, FormatError, "a name in the header includes it", id="columns without names"),
    pytest.param(b'{"a":{}}', {}, FormatError, "no field has a value and a name that can be read", id="an object without values"),
    pytest.param("ts,v\n2026-03-01 08:00,1\n", {"zone": "Mars/Phobos"}, InvalidMapping, "'Mars/Phobos' is no time zone", id="a zone"),
    pytest.param(b'{"a":1}\n5\n', {}, FormatError, "row 2: Expected `object`", id="a document that is no object"),
]


@pytest.mark.parametrize(("body", "choices", "error", "message"), FAULTS)
def test_what_has_no_mapping(body: str | bytes, choices: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(")):
        propose(body, **choices) if body else propose_mapping(b"", CSV, EX, Choices(NOW))
