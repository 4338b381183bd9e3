"""Terms of the language: the values of literals in Python and the way back, N-Triples, and the types of SPARQL's JSON
results.
"""

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import URIRef

import epsparql
from epsparql.ntriples import parse_statements, parse_term
from epsparql.python_values import PythonValue, python_value
from epsparql.solutions.solution import Solution, term_of
from epsparql.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, TripleTerm
from tests.soak import examples

A, B = Iri("http://example.org/a"), Iri("http://example.org/b")
HOUR = timezone(timedelta(hours=1))

VALUES: list[tuple[str, str, object]] = [
    ("x", "string", "x"),
    (" x ", "string", " x "),
    ("007", "integer", 7),
    (" -7 ", "int", -7),
    ("9" * 30, "integer", int("9" * 30)),
    ("8.50", "decimal", Decimal("8.50")),
    (".5", "decimal", Decimal("0.5")),
    ("8.5e0", "double", 8.5),
    ("-INF", "float", -math.inf),
    ("1", "boolean", True),
    ("false", "boolean", False),
    ("2026-01-01T10:00:00Z", "dateTime", datetime(2026, 1, 1, 10, tzinfo=UTC)),
    ("2026-01-01T10:00:00", "dateTime", datetime(2026, 1, 1, 10, tzinfo=UTC).replace(tzinfo=None)),
    ("2026-01-01T10:00:00.25+01:00", "dateTime", datetime(2026, 1, 1, 10, 0, 0, 250_000, HOUR)),
    ("2026-12-31T24:00:00Z", "dateTime", datetime(2027, 1, 1, tzinfo=UTC)),
    ("2026-01-01T10:00:00Z", "dateTimeStamp", datetime(2026, 1, 1, 10, tzinfo=UTC)),
    ("2026-01-31", "date", date(2026, 1, 31)),
    ("10:00:00Z", "time", time(10, tzinfo=UTC)),
    ("P1DT2H", "dayTimeDuration", timedelta(days=1, hours=2)),
    ("-PT0.5S", "duration", timedelta(seconds=-0.5)),
    ("0aFF", "hexBinary", b"\x0a\xff"),
    ("aGk=", "base64Binary", b"hi"),
    ("http://example.org/", "anyURI", "http://example.org/"),
]
NO_VALUES = [
    ("x", "integer"),
    ("1.0", "integer"),
    ("9" * 5000, "integer"),
    ("1e3", "decimal"),
    ("inf", "double"),
    ("True", "boolean"),
    ("2026-02-30T00:00:00Z", "dateTime"),
    ("12026-01-01T00:00:00Z", "dateTime"),
    ("2026-01-01T24:00:01Z", "dateTime"),
    ("2026-01-01T10:00:00.0000001Z", "dateTime"),
    ("2026-01-01T10:00:00", "dateTimeStamp"),
    ("2026-01-31Z", "date"),
    ("P1M", "duration"),
    ("P", "duration"),
    ("0a 0b", "hexBinary"),
    ("2026", "gYear"),
]


@pytest.mark.parametrize(("text", "datatype", "value"), VALUES)
def test_a_literal_has_a_value(text: str, datatype: str, value: object) -> None:
    found = python_value(text, datatype)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("text", "datatype"), NO_VALUES)
def test_python_has_no_value_for_some_literals(text: str, datatype: str) -> None:
    assert python_value(text, datatype) is None


@given(st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), st.decimals(allow_nan=False, allow_infinity=False), st.text(), st.dates(), st.binary(),
    st.datetimes(timezones=st.sampled_from([UTC, HOUR])), st.timedeltas(min_value=timedelta(days=-(10**6)), max_value=timedelta(days=10**6)),
))  # fmt: skip
@settings(max_examples=examples(100))
def test_a_value_comes_back(value: PythonValue) -> None:
    literal = Literal.from_python(value)
    assert python_value(literal.lexical, literal.datatype.removeprefix(XSD)) == value


@pytest.mark.parametrize("value", [None, Decimal("NaN"), 1j, [1]])
def test_a_value_without_a_datatype_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="has no RDF datatype"):
        Literal.from_python(value)  # type: ignore[arg-type]


STATEMENTS = {
    '<http://example.org/a> <http://example.org/b> "x\\ny"@EN .': [TripleTerm(A, B, Literal("x\ny", RDF_LANG_STRING, "en"))],
    "_:n <http://example.org/b> <http://example.org/a>.\n\n": [TripleTerm(BlankNode("n"), B, A)],
    '<http://example.org/a> <http://example.org/b> <<( _:n <http://example.org/b> "1"^^<http://www.w3.org/2001/XMLSchema#integer> )>> .': [
        TripleTerm(A, B, TripleTerm(BlankNode("n"), B, Literal("1", XSD + "integer")))
    ],
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements_are_parsed(text: str) -> None:
    assert parse_statements(text) == STATEMENTS[text]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<a> <b> <c>", "line 1: a triple ends with a full stop"),
        ('\n"x" <b> <c> .', "line 2: .* no subject"),
        ("<a> <b> <<( <a> <b> <c> .", "ends with"),
        ("<a> <b> nothing .", "not an RDF term"),
        ("<a> <b> " + "<<( <a> <b> " * 60, "more than 50 deep"),
    ],
)
def test_malformed_statements_are_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_statements(text)


def test_terms_of_json_results() -> None:
    assert term_of({"type": "uri", "value": A.value}) == A
    assert term_of({"type": "bnode", "value": "b"}) == BlankNode("b")
    assert term_of({"type": "literal", "value": "01", "datatype": XSD + "integer"}) == Literal("01", XSD + "integer")
    assert term_of({"type": "literal", "value": "hi", "xml:lang": "en"}) == Literal("hi", RDF_LANG_STRING, "en")
    triple = {
        "subject": {"type": "uri", "value": A.value},
        "predicate": {"type": "uri", "value": B.value},
        "object": {"type": "literal", "value": "x"},
    }
    assert term_of({"type": "triple", "value": triple}) == TripleTerm(A, B, Literal("x"))
    with pytest.raises(ValueError, match="no RDF term"):
        term_of({"type": "graph", "value": ""})


def test_a_solution_gives_its_terms() -> None:
    solution = Solution("q", "1-0", "", "", {"x": {"type": "uri", "value": A.value}}, None)
    assert (solution["x"], solution.get("y"), "x" in solution, "y" in solution, [*solution]) == (URIRef(A.value), None, True, False, ["x"])
    with pytest.raises(KeyError, match=r"'y' is not bound .* it binds x"):
        solution["y"]


def test_what_the_package_has() -> None:
    assert epsparql.__version__.split(".")[0].isdigit()
    assert all(getattr(epsparql, name) is not None for name in epsparql.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = epsparql.nothing


def test_a_term_is_parsed_from_its_own_text() -> None:
    for term in (A, BlankNode("b"), Literal('say "hi"\n'), Literal("x", RDF_LANG_STRING, "en"), Literal("01", XSD + "integer")):
        assert parse_term(str(term)) == term
