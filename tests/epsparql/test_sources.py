"""These tests check the sources and targets of a query: FROM, FROM NAMED, FROM STREAM, named windows, REGISTER."""

import pytest

from epsparql import parse
from epsparql.algebra import WHOLE, Bgp, Construct, Dataset, InWindow, Join, NamedWindow, Report, Select, Sources
from epsparql.terms import Variable
from tests.epsparql.builders import PROLOGUE, bgp

A, B = bgp("?s a ?x"), bgp("?s b ?y")
MINUTE = 60_000_000
W = NamedWindow("http://e/w", "http://e/in", 60 * MINUTE, 10 * MINUTE)
V = NamedWindow("http://e/v", "default", MINUTE, MINUTE)
FROM_W = "FROM NAMED WINDOW :w ON :in [RANGE PT1H STEP PT10M]"
FROM_V = 'FROM NAMED WINDOW :v ON default [RANGE "PT1M"^^xsd:duration STEP "PT60S"]'


SOURCES = [
    pytest.param("", ("default",), WHOLE, id="nothing"),
    pytest.param("FROM :g", ("default",), Sources(Dataset(("http://e/g",))), id="a graph"),
    pytest.param("FROM <g>", ("default",), Sources(Dataset(("http://base/g",))), id="a graph's name is resolved"),
    pytest.param("FROM NAMED :g", ("default",), Sources(Dataset((), ("http://e/g",))), id="a named graph"),
    pytest.param(
        "FROM :g FROM NAMED :h from :i FROM STREAM <in> FROM :g from named :g FROM NAMED :h",
        ("in",),
        Sources(Dataset(("http://e/g", "http://e/i"), ("http://e/h", "http://e/g"))),
        id="each once, in their order, among streams",
    ),
    pytest.param(FROM_W, ("http://e/in",), Sources(None, (W,), Report.RSTREAM), id="a window reports all it has"),
    pytest.param(
        f"{FROM_W} FROM :g {FROM_V}", ("http://e/in", "default"), Sources(Dataset(("http://e/g",)), (W, V), Report.RSTREAM), id="windows and a graph"
    ),
    pytest.param(
        f"{FROM_W} {FROM_W.replace(':w', ':v')}",
        ("http://e/in",),
        Sources(None, (W, NamedWindow("http://e/v", "http://e/in", 60 * MINUTE, 10 * MINUTE)), Report.RSTREAM),
        id="two windows on one stream",
    ),
]


@pytest.mark.parametrize(("clauses", "streams", "sources"), SOURCES)
def test_sources(clauses: str, streams: tuple[str, ...], sources: Sources) -> None:
    prologue = f"BASE <http://base/> {PROLOGUE}"
    for form in ("SELECT *", "ASK", "DESCRIBE *", "CONSTRUCT {}", "CONSTRUCT"):
        query = parse(f"{prologue}{form} {clauses} WHERE {{}}").query
        assert (query.streams, query.sources) == (streams, sources)


def test_window_in_a_pattern() -> None:
    query = parse(f"{PROLOGUE}SELECT ?s {FROM_W} {FROM_V} {{ WINDOW :w {{ ?s :a ?x }} window <http://e/v> {{ ?s :b ?y }} }}").query
    pattern = Join(InWindow("http://e/w", A), InWindow("http://e/v", B))
    assert query == Select(pattern, (Variable("s"),), False, ("http://e/in", "default"), sources=Sources(None, (W, V), Report.RSTREAM))


@pytest.mark.parametrize("report", Report)
def test_register(report: Report) -> None:
    """REGISTER is written as RSP-QL has it; prefixes may stand before and after."""
    text = f"PREFIX : <http://e/> REGISTER {report.value} :out AS PREFIX xsd: <http://x/> CONSTRUCT {{ ?s :a ?x }} {FROM_W} WHERE {{ WINDOW :w {{ ?s :a ?x }} }}"
    assert parse(text).query == Construct(A.triples, InWindow("http://e/w", A), ("http://e/in",), "http://e/out", Sources(None, (W,), report))


def test_the_output_of_a_select_is_its_solutions() -> None:
    parsed = parse(f"{PROLOGUE}REGISTER IStream <out> AS SELECT * {FROM_W} {{}}")
    assert parsed.query == Select(Bgp(()), (), False, ("http://e/in",), sources=Sources(None, (W,), Report.ISTREAM))
    (warning,) = parsed.warnings
    assert (warning.code, warning.span and parsed.text[warning.span.start : warning.span.end]) == ("no-output", "<out>")


def test_register_names_the_default_stream() -> None:
    query = parse(f"{PROLOGUE}REGISTER RSTREAM default AS CONSTRUCT {{}} {FROM_W} {{}}").query
    assert isinstance(query, Construct)
    assert query.into == "default"
