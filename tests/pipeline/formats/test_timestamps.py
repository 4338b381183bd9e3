"""xsd:dateTime to microseconds and back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.messages import END_OF_TIME
from pipeline.formats.batches.timestamps import instant, iso

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        pytest.param("2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z", id="plain"),
        pytest.param("2026-01-01T00:00:01", "2026-01-01T00:00:01Z", id="without zone it is UTC"),
        pytest.param("2026-01-01T00:00:01.500Z", "2026-01-01T00:00:01.5Z", id="fraction without trailing zeros"),
        pytest.param("2026-01-01T00:00:01.000001Z", "2026-01-01T00:00:01.000001Z", id="a microsecond"),
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
        pytest.param("2026-01-01T00:00:01.1234567Z", "more than six", id="seven digits"),
        pytest.param("2026-01-01T00:00:01.0000000Z", "more than six", id="seven digits, though zeros"),
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


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_the_standard_library(at: datetime) -> None:
    micros = (at - EPOCH) // timedelta(microseconds=1)
    assert instant(at.isoformat()) == micros
    assert instant(iso(micros)) == micros
    assert datetime.fromisoformat(iso(micros)) == at


@given(st.integers(1 - END_OF_TIME, END_OF_TIME - 1))
def test_every_instant_has_its_text(at: int) -> None:
    assert instant(iso(at)) == at
