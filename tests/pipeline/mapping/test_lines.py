"""Lines of text are mapped by a pattern with named groups: the known patterns, patterns of one's own, and lines that
do not match.
"""

import json
from typing import Any

import pytest

from epsparql.events.media_types import CSV, LINES
from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.body_parser import Interval
from pipeline.mapping.mapper import MappedBody, map_body
from pipeline.mapping.mapping import compile_mapping
from pipeline.mapping.stream_body import BodySettings, read_frame
from pipeline.proposals.proposal import Choices, propose_mapping

NOW = Interval(7, 7)
ACCESS = '10.0.0.1 - frank [01/Mar/2026:08:00:00 +0100] "GET /a HTTP/1.1" 200 512 "-" "curl"\n'


def map_lines(body: str | bytes, **words: Any) -> MappedBody:
    document = {"base": "http://example.org/", "subject": ":x"} | words
    return map_body(body if isinstance(body, bytes) else body.encode(), LINES, compile_mapping(json.dumps(document)), NOW)


def objects(found: MappedBody) -> list[str]:
    listed: list[str] = found.batch.column("o").to_pylist()
    return listed


LINE_KINDS = [
    pytest.param(ACCESS, "combined", {"path": "/a", "status": "200", "bytes": "512", "user": "frank"}, "2026-03-01T07:00:00Z", id="combined"),
    pytest.param('::1 - - [01/Mar/2026:08:00:00 +0000] "\\x16\\x03" 400 -\n', "common", {"request": "\\x16\\x03", "status": "400"}, "2026-03-01T08:00:00Z", id="common: no request of HTTP"),
    pytest.param('<165>1 2026-03-01T08:00:00.003Z h app - ID47 [a@1 k="v\\]"][b] text of it\n', "rfc5424", {"priority": "165", "data": '[a@1 k="v\\]"][b]', "message": "text of it"}, "2026-03-01T08:00:00.003Z", id="syslog"),
    pytest.param("2026-03-01T08:00:00.5+01:00 h sshd[12]: Accepted: x\n", "rsyslog", {"app": "sshd", "process": "12", "message": "Accepted: x"}, "2026-03-01T07:00:00.5Z", id="rsyslog"),
    pytest.param("<34>Oct 11 22:14:15 h su: failed\n", "rfc3164", {"priority": "34", "app": "su", "message": "failed"}, None, id="syslog without years"),
    pytest.param(
        "#Software: IIS\n#Fields: date time c-ip cs(User-Agent) sc-status\n2026-03-01 08:00:00 ::1 Mozilla 200\n#Date: x\n2026-03-01 08:00:01 ::1 - 404\n",
        None, {"cs_User_Agent": "Mozilla", "sc_status": "200"}, "2026-03-01T08:00:00Z", id="W3C: fields in a comment",
    ),
    pytest.param("#YY MM DD hh mm WSPD VIS\n#yr mo dy hr mn m/s nmi\n2026 03 01 08 00 5.5 MM\n2026 03 01 08 10 MM MM\n", None, {"WSPD": "5.5"}, "2026-03-01T08:00:00Z", id="NOAA buoy: columns"),
    pytest.param("#DART   deg N   deg E\n21401  42.617  152.583\n21413  30.515  152.117\n", None, {"column_1": "21401", "column_2": "42.617"}, None, id="columns without names"),
    pytest.param("Date Temp\n2026-03-01 5.5\n2026-03-02 6\n", None, {"Temp": "5.5"}, "2026-03-01T00:00:00Z", id="columns that the first line names"),
    pytest.param("2026-03-01 08:00:00,123 [INFO] hello\n", None, {"level": "INFO", "message": "hello"}, "2026-03-01T08:00:00.123Z", id="a time and a message"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "pattern", "values", "at"), LINE_KINDS)
def test_lines_are_known_and_proposed(body: str, pattern: str | None, values: dict[str, str], at: str | None) -> None:
    found = propose_mapping(body.encode(), LINES, "http://example.org/", Choices(instant("2026-11-29T12:00:00Z")))
    assert pattern is None or found.document["pattern"] == pattern
    mapped = map_body(body.encode(), LINES, compile_mapping(json.dumps(found.document)), NOW)
    assert mapped.rejected == ()
    shown = "\n".join(found.preview[0])
    assert at is None or shown.endswith(f"# {at}")
    for name, value in values.items():
        assert f" :{name} {json.dumps(value)}" in shown, shown


def test_a_pattern_of_ones_own() -> None:
    pattern = r"^(?P<level>\w+)(?: \[(?P<part>\w*)\])?: (?P<text>.*)$"
    found = map_lines("WARN [db]: slow\r\n\nINFO: ok\nINFO []: x\n", pattern=pattern, properties={"part": ":part", "text": ":text"})
    assert objects(found) == ['"db"', '"slow"', '"ok"', '"x"']  # an empty group is absent


def test_lines_that_do_not_match_are_told_by_number() -> None:
    found = map_lines(b"a 1\n\n# c\nb\n\xff 2\nc 3\n", pattern=r"^(?P<k>\w) (?P<v>\d)$", comment="#", properties={"v": ":v"})
    assert [(row.row, row.reason, row.text) for row in found.rejected] == [
        (4, "the line does not match the pattern", "b"),
        (5, "the line is no UTF-8; encoding names another one", "\\xff 2"),
    ]
    assert objects(found) == ['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"3"^^<http://www.w3.org/2001/XMLSchema#integer>']
    assert map_lines("head\nx 1\n", pattern=r"^(?P<k>\w) (?P<v>\d)$", skip=1, properties={"v": ":v"}).rejected == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"pattern": "("}, r"missing \): \(; expected combined, common"),
        ({"pattern": "(a)(?P<v>b)"}, "unnamed groups"),
        ({"pattern": "a"}, "has no named group"),
        ({"pattern": "(?P<v>a)(?P<v>b)"}, "names a group twice"),
        ({"pattern": r"(?P<v>a)\1"}, "cannot be read"),
        ({"pattern": ""}, "is no pattern"),
        ({"pattern": "(?P<w>a)"}, "is no group of the pattern; expected one of w"),
        ({"pattern": "(?P<v>a)", "comment": ""}, "is no beginning of lines"),
        ({"comment": "#"}, "is given without pattern"),
    ],
)
def test_a_pattern_that_cannot_be_used(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMapping, match=message):
        map_lines("a\n", properties={"v": ":v"}, **words)


def test_text_without_a_pattern() -> None:
    with pytest.raises(FormatError, match="the mapping has none; expected pattern"):
        map_lines("a\n", properties={"v": ":v"})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ACCESS + "foo\n", "line 2 does not match the pattern combined, which others do: 'foo'"),
        ("foo\n", "line 1 does not match a known"),
        ("\n", "no lines"),
    ],
)
def test_lines_without_a_proposal(body: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        propose_mapping(body.encode(), LINES, "http://example.org/", Choices(0))


@pytest.mark.parametrize("null", [{}, {"null": ["M"]}])
@pytest.mark.parametrize(("media_type", "body"), [(CSV, 'a,b\n1,\n1,""\n1,  \n1," "\n1,M\n'), (LINES, "1,\n1,  \n1,M\n")])
def test_an_empty_cell_gives_no_triple(media_type: str, body: str, null: dict[str, Any]) -> None:
    words = {"base": "http://example.org/", "properties": {"a": ":a", "b": {"iri": ":b", "datatype": "xsd:integer"} | null}}
    words |= {"pattern": "^(?P<a>.*),(?P<b>.*)$"} if media_type == LINES else {}
    found = map_body(body.encode(), media_type, compile_mapping(json.dumps(words)), NOW)
    assert set(objects(found)) == {'"1"^^<http://www.w3.org/2001/XMLSchema#integer>'}
    assert [row.reason for row in found.rejected] == ([] if null else ["'M' is no xsd:integer"])


def test_a_frame_of_lines() -> None:
    mapping = json.dumps({"base": "http://example.org/", "pattern": r"^(?P<v>\d+)$", "properties": {"v": ":v"}})
    found = read_frame(b'{"format":"lines"}\n1\n2\n', BodySettings(mapping=mapping), arrived=7, binary=False)
    assert (found.mapped.rows, found.mapped.batch.num_rows) == (2, 2)
