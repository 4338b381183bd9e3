"""xsd:dateTime to microseconds and back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.messages import END_OF_TIME, int64s
from pipeline.errors import FormatError
from pipeline.formats.batches.timestamps import instant, iso
from pipeline.formats.rdf.rdf import GENERATED_AT
from pipeline.mapping.mapper import refuse_rejected
from pipeline.mapping.stream_body import BodySettings, read_body

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        pytest.param("2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z", id="plain"),
        pytest.param("2026-01-01T00:00:01", "2026-01-01T00:00:01Z", id="without zone it is UTC"),
        pytest.param("2026-01-01T00:00:01.500Z", "2026-01-01T00:00:01.5Z", id="fraction without trailing zeros"),
        pytest.param("2026-01-01T00:00:01.000001Z", "2026-01-01T00:00:01.000001Z", id="a microsecond"),
        pytest.param("2026-01-01T00:00:01.5000000000Z", "2026-01-01T00:00:01.5Z", id="ten digits, whose excess is zero"),
        pytest.param("2026-01-01T00:00:01+05:30", "2025-12-31T18:30:01Z", id="east"),
        pytest.param("2026-01-01T00:00:01-14:00", "2026-01-01T14:00:01Z", id="west, the furthest"),
        pytest.param("2026-12-31T24:00:00Z", "2027-01-01T00:00:00Z", id="midnight at the end of a day"),
        pytest.param("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z", id="before 1970"),
        pytest.param("-0044-03-15T12:00:00Z", "-0044-03-15T12:00:00Z", id="before our era"),
        pytest.param("12345-02-28T00:00:00Z", "12345-02-28T00:00:00Z", id="five digits of year"),
        pytest.param("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", id="leap day"),
    ],
)
def test_read_and_written(text: str, again: str) -> None:
    assert iso(instant(text)) == again


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("2026-01-01T00:00:01.1234567Z", '"round": "microsecond"', id="seven digits"),
        pytest.param("2026-02-29T00:00:00Z", "no date 2026-02-29", id="no leap year"),
        pytest.param("1900-02-29T00:00:00Z", "no date", id="a century is none"),
        pytest.param("2026-13-01T00:00:00Z", "no date", id="month"),
        pytest.param("2026-00-01T00:00:00Z", "no date", id="month zero"),
        pytest.param("2026-01-01T24:00:01Z", "no such time", id="after midnight"),
        pytest.param("2026-01-01T24:00:00.5Z", "no such time", id="half a second after midnight"),
        pytest.param("2026-01-01T00:60:00Z", "no such time", id="minute"),
        pytest.param("2026-01-01T00:00:60Z", "no such time", id="leap second"),
        pytest.param("2026-01-01T00:00:00+14:01", "no such time zone", id="zone"),
        pytest.param("2026-01-01", "no xsd:dateTime", id="a date"),
        pytest.param("2026-01-01 00:00:00Z", "no xsd:dateTime", id="a space"),
        pytest.param("2026-01-01T00:00:00Z ", "no xsd:dateTime", id="trailing space"),
        pytest.param("02026-01-01T00:00:00Z", "no xsd:dateTime", id="leading zero"),
        pytest.param("\u0662\u0660\u0662\u0666-01-01T00:00:00Z", "no xsd:dateTime", id="digits of another script"),
        pytest.param("99999999-01-01T00:00:00Z", "beyond the years", id="too far"),
        pytest.param("", "no xsd:dateTime", id="empty"),
    ],
)
def test_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        instant(text)


ROUNDED = [
    ("2026-01-01T00:00:01.1234567Z", "2026-01-01T00:00:01.123457Z"), ("2026-01-01T00:00:01.1234565Z", "2026-01-01T00:00:01.123457Z"),
    ("2026-01-01T00:00:01.12345649Z", "2026-01-01T00:00:01.123456Z"), ("2026-12-31T23:59:59.9999999+01:00", "2026-12-31T23:00:00Z"),
    ("1969-12-31T23:59:59.9999996Z", "1970-01-01T00:00:00Z"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "nearest"), ROUNDED)
def test_rounded_to_the_nearest_microsecond(text: str, nearest: str) -> None:
    assert iso(instant(text, True)) == nearest


FINE = "2026-01-01T00:00:01.1234567Z"
TIMED = f'"{FINE}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
TIMED_BODIES = {
    "application/x-ndjson": f'{{"s":"<http://e/s>","p":"<http://e/p>","o":"<http://e/o>","at":"{FINE}"}}',
    "application/n-quads": f"<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n<http://e/g> <{GENERATED_AT}> {TIMED} .",
    "application/trig": f"<http://e/g> <{GENERATED_AT}> {TIMED} . <http://e/g> {{ <http://e/s> <http://e/p> 1 }}",
    "application/x-ld+ndjson": f'{{"@id":"http://e/s","http://e/p":1,"{GENERATED_AT}":{{"@value":"{FINE}","@type":"http://www.w3.org/2001/XMLSchema#dateTime"}}}}',
    "text/csv": f"t,a\n{FINE},1",
    "application/json": f'{{"t":"{FINE}","a":1}}',
    "application/cloudevents+json": f'{{"specversion":"1.0","id":"1","source":"/x","type":"t","time":"{FINE}","data":{{"t":"{FINE}","a":1}}}}',
}
MAPPING = '{"base": "http://e/", "time": "t", "properties": {"a": ":a"}}'


@pytest.mark.parametrize("kind", TIMED_BODIES)
def test_a_stream_rounds_the_times_of_each_format(kind: str) -> None:
    def read(settings: BodySettings) -> set[int]:
        found = refuse_rejected(read_body(TIMED_BODIES[kind].encode(), kind, settings, default=None, arrived=0).mapped)
        return set(int64s(found.batch.column("end")).tolist())

    assert read(BodySettings("", MAPPING, rounds=True)) == {instant("2026-01-01T00:00:01.123457Z")}
    with pytest.raises(FormatError, match='finer than a microsecond; "round": "microsecond" of the stream or mapping'):
        read(BodySettings("", MAPPING))


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_the_standard_library(at: datetime) -> None:
    micros = (at - EPOCH) // timedelta(microseconds=1)
    assert instant(at.isoformat()) == micros
    assert instant(iso(micros)) == micros
    assert datetime.fromisoformat(iso(micros)) == at


@given(st.integers(1 - END_OF_TIME, END_OF_TIME - 1))
def test_every_instant_has_its_text(at: int) -> None:
    assert instant(iso(at)) == at
