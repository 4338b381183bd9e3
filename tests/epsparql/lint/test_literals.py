"""Lexical forms: durations, instants, and what was probably meant."""

import pytest

from epsparql.literals import MAX_MICROS, duration_micros, duration_text, likely_duration, literal_fault
from epsparql.terms import XSD, Literal

DURATIONS = [
    ("PT10S", 10_000_000),
    ("PT0S", 0),
    ("P0Y", 0),
    ("P0M1D", 86_400_000_000),
    ("-PT1M", -60_000_000),
    ("P1DT1H1M1.000001S", 90_061_000_001),
    ("PT0.1234560S", 123_456),
    (" PT1S ", 1_000_000),
    ("P1M", None),
    ("P1Y2D", None),
    ("PT0.0000001S", None),
    ("P", None),
    ("PT", None),
    ("P1DT", None),
    ("PT1.S", None),
    ("1D", None),
    ("P" + "9" * 5_000 + "D", MAX_MICROS + 1),
]


@pytest.mark.parametrize(("lexical", "micros"), DURATIONS)
def test_duration_micros(lexical: str, micros: int | None) -> None:
    assert duration_micros(lexical) == micros


@pytest.mark.parametrize("text", ["PT0S", "PT10S", "PT0.5S", "P1D", "P1DT1H1M1.000001S", "PT1H30M", "P53375995DT14H0M27.387904S"])
def test_duration_text(text: str) -> None:
    micros = duration_micros(text)
    assert micros is not None
    assert duration_micros(duration_text(micros)) == micros
    assert duration_text(micros) == text.replace("0M27", "27")


MEANT = [
    ("P1H", "PT1H"),
    ("1H", "PT1H"),
    ("10s", "PT10S"),
    ("pt10s", "PT10S"),
    ("10 seconds", "PT10S"),
    ("PT1D", "P1D"),
    ("PT1D2H", "P1DT2H"),
    ("P1W", "P7D"),
    ("P1.5D", "P1DT12H"),
    ("P1H30M", "PT1H30M"),
    ("30M", "PT30M"),
    ("P5M10S", "PT5M10S"),
    ("P1Y2M3H", "P1Y2MT3H"),
    ("3 months", "P3M"),
    ("1 hour 30 min", "PT1H30M"),
    ("-P1H", "-PT1H"),
    ("90 mins", "PT1H30M"),
    ("PT0,5S", "a form such as PT10S, PT1H30M or P1D"),
    ("soon", "a form such as PT10S, PT1H30M or P1D"),
    ("", "a form such as PT10S, PT1H30M or P1D"),
    ("P1.5Y", "a form such as PT10S, PT1H30M or P1D"),
    ("P" + "9" * 5_000 + "H", "a form such as PT10S, PT1H30M or P1D"),
    ("P" + "1M" * 9_000, "a form such as PT10S, PT1H30M or P1D"),
]


@pytest.mark.parametrize(("lexical", "meant"), MEANT)
def test_likely_duration(lexical: str, meant: str) -> None:
    assert likely_duration(lexical) == meant


INSTANTS = [
    ("2026-01-01T00:00:00Z", None),
    ("2026-01-01T00:00:00", None),
    ("2026-01-01T00:00:00.123456+14:00", None),
    ("2026-01-01T24:00:00.000Z", None),
    ("-0001-01-01T00:00:00Z", None),
    ("12026-02-28T00:00:00Z", None),
    ("2024-02-29T00:00:00Z", None),
    (" 2026-01-01T00:00:00Z\n", None),
    ("2025-02-29T00:00:00Z", "a form such as 2026-01-31T12:00:00Z"),
    ("2026-13-01T00:00:00Z", "a form such as 2026-01-31T12:00:00Z"),
    ("2026-01-01T24:00:01Z", "a form such as 2026-01-31T12:00:00Z"),
    ("2026-01-01T00:00:00+14:01", "a form such as 2026-01-31T12:00:00Z"),
    ("2026-01-01", "2026-01-01T00:00:00Z"),
    ("2026-01-01t10:00z", "2026-01-01T10:00:00Z"),
    ("2026-01-01 10:00:00+0100", "2026-01-01T10:00:00+01:00"),
    ("2026-01-32", "a form such as 2026-01-31T12:00:00Z"),
    ("now", "a form such as 2026-01-31T12:00:00Z"),
]


@pytest.mark.parametrize(("lexical", "expected"), INSTANTS)
def test_instant(lexical: str, expected: str | None) -> None:
    fault = literal_fault(Literal(lexical, XSD + "dateTime"))
    assert (fault.expected if fault else None) == expected
