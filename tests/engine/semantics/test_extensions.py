"""Functions by IRI: great-circle distance, and those of modules that the operator names."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from engine.expressions import extensions as ext
from engine.expressions.functions import arguments_of, call, supported
from engine.expressions.values import ExpressionError
from epsparql.terms import Iri, Literal, Term
from tests.support.ntriples import parse_term

DISTANCE, SECONDS = f"<{ext.NAMESPACE}distance>", f"<{ext.NAMESPACE}seconds>"
ROOT = Path(__file__).parents[3]


def number(text: str, datatype: str = "decimal") -> Term:
    return Literal(text, f"http://www.w3.org/2001/XMLSchema#{datatype}")


PLACES = [
    # a quarter of the equator, the poles, and pairs whose distance on this sphere is a plain fraction of its circumference
    pytest.param(("0", "0", "0", "90"), 10_018_754.171394622, id="a quarter of the equator"),
    pytest.param(("90", "0", "-90", "77"), 20_037_508.342789244, id="pole to pole"),
    pytest.param(("0", "0", "0", "180"), 20_037_508.342789244, id="antipodes"),
    pytest.param(("40.5", "-73.25", "40.5", "-73.25"), 0.0, id="the same place"),
    pytest.param(("0", "359", "0", "1"), 222_638.9815865471, id="across the meridian"),
    pytest.param(("60", "0", "60", "180"), 6_679_169.447596415, id="over the pole"),
]


@pytest.mark.parametrize(("degrees", "metres"), PLACES)
def test_distance(degrees: tuple[str, ...], metres: float) -> None:
    found = call(DISTANCE, [number(value) for value in degrees])
    assert isinstance(found, Literal)
    assert found.datatype.endswith("#double")
    assert float(found.lexical) == pytest.approx(metres, rel=1e-12, abs=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([number("91"), *[number("0")] * 3], id="no latitude"),
        pytest.param([number("0"), number("361"), *[number("0")] * 2], id="no longitude"),
        pytest.param([number("NaN", "double"), *[number("0")] * 3], id="no number"),
        pytest.param([Literal("1"), *[number("0")] * 3], id="a string"),
        pytest.param([Iri("http://e/x"), *[number("0")] * 3], id="an IRI"),
        pytest.param([number("true", "boolean"), *[number("0")] * 3], id="a truth value"),
        pytest.param([number("0")] * 3, id="too few"),
    ],
)
def test_what_has_no_distance(arguments: list[Term]) -> None:
    with pytest.raises(ExpressionError):
        call(DISTANCE, arguments)


LENGTHS = [
    pytest.param(number("PT1H0.50S", "duration"), "3600.5", id="a duration"),
    pytest.param(number("-P1D", "dayTimeDuration"), "-86400.0", id="a day-time duration"),
    pytest.param(number("PT0.33333333S", "duration"), "0.33333333", id="finer than a microsecond"),
    pytest.param(number("P1M", "duration"), None, id="months"),
    pytest.param(number("P1H", "duration"), None, id="no duration"),
    pytest.param(number("1"), None, id="a number"),
    pytest.param(Literal("PT1H"), None, id="a string"),
    pytest.param(Iri("http://e/x"), None, id="an IRI"),
]


@pytest.mark.parametrize(("length", "seconds"), LENGTHS)
def test_seconds(length: Term, seconds: str | None) -> None:
    if seconds is not None:
        assert call(SECONDS, [length]) == number(seconds)
    else:
        with pytest.raises(ExpressionError):
            call(SECONDS, [length])


MODULE = """
from decimal import Decimal

from epsparql.terms import Iri, Literal

def double(x):
    return 2 * x

def joined(first, *rest):
    return "-".join([first, *rest])

FUNCTIONS = {
    "http://example.org/fn#double": double,
    "http://example.org/fn#joined": joined,
    "http://example.org/fn#half": lambda x, digits=2: round(Decimal(x) / 2, digits),
    "http://example.org/fn#itself": lambda term: term,
    "http://example.org/fn#odd": lambda x: object(),
    "http://example.org/fn#iri": Iri,
    "http://example.org/fn#tagged": lambda tag: Literal.from_tag("x", tag),
    "http://example.org/fn#is_large": lambda x: x > 100,
}
"""
CALLS = [
    pytest.param("double", ['"21"^^<http://www.w3.org/2001/XMLSchema#integer>'], '"42"^^<http://www.w3.org/2001/XMLSchema#integer>', id="an integer"),
    pytest.param("double", ['"0.1"^^<http://www.w3.org/2001/XMLSchema#decimal>'], '"0.2"^^<http://www.w3.org/2001/XMLSchema#decimal>', id="exact"),
    pytest.param(
        "half", ['"5"^^<http://www.w3.org/2001/XMLSchema#integer>'], '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', id="optional left out"
    ),
    pytest.param("joined", ['"a"', '"b"', '"c"'], '"a-b-c"', id="any number of arguments"),
    pytest.param("itself", ['"hut"@de'], '"hut"@de', id="a term as it is"),
    pytest.param("itself", ["<http://e/x>"], "<http://e/x>", id="an IRI as it is"),
    pytest.param(
        "is_large", ['"7"^^<http://www.w3.org/2001/XMLSchema#integer>'], '"false"^^<http://www.w3.org/2001/XMLSchema#boolean>', id="a boolean"
    ),
    pytest.param("joined", ['"a"', "<http://e/x>"], None, id="a TypeError is SPARQL's error"),
    pytest.param("half", ['"x"'], None, id="a decimal's error too"),
    pytest.param("odd", ['"x"'], None, id="no term"),
    pytest.param("iri", ['"http://e/50%25"'], "<http://e/50%25>", id="an IRI"),
    pytest.param("iri", ['"http://e/50%"'], None, id="an IRI that is not valid"),
    pytest.param("iri", ['"kitchen"'], None, id="a relative IRI"),
    pytest.param("tagged", ['"en-a"'], None, id="no language tag"),
]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ownfunctions.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ownfunctions", raising=False)
    monkeypatch.setenv(ext.VARIABLE, "ownfunctions")
    ext.known.cache_clear()


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(("name", "arguments", "expected"), CALLS)
def test_own_functions(name: str, arguments: list[str], expected: str | None) -> None:
    given = [parse_term(text) for text in arguments]
    if expected is None:
        with pytest.raises(ExpressionError):
            call(f"<http://example.org/fn#{name}>", given)
    else:
        assert str(call(f"<http://example.org/fn#{name}>", given)) == expected


@pytest.mark.usefixtures("own")
def test_how_many_arguments() -> None:
    assert arguments_of("<http://example.org/fn#half>") == (1, 2)
    assert arguments_of("<http://example.org/fn#joined>") == (1, ext.MANY)
    assert not supported("<http://example.org/fn#unknown>")


FAULTS = [
    pytest.param("FUNCTIONS = {'no iri': len}", "'no iri' is no absolute IRI", id="no IRI"),
    pytest.param("FUNCTIONS = {'urn:epsparql:function:distance': len}", "no absolute IRI of your own", id="the engine's own"),
    pytest.param("FUNCTIONS = {'urn:x': 3}", "no function whose parameters are known", id="no function"),
    pytest.param("def f(*, x): pass\nFUNCTIONS = {'urn:x': f}", "cannot be given by position", id="named parameters"),
    pytest.param("x = 1", "FUNCTIONS", id="no table"),
    pytest.param("import nowhere", "nowhere", id="an import that fails"),
]


@pytest.mark.parametrize(("module", "message"), FAULTS)
def test_modules_that_cannot_be_used(module: str, message: str, tmp_path: Path) -> None:
    """A process of its own: nothing of the module stays in this one."""
    (tmp_path / "faulty.py").write_text(module, encoding="utf-8")
    query = tmp_path / "q.rq"
    query.write_text("SELECT ?x { ?x <urn:p> ?y }", encoding="utf-8")
    command = [sys.executable, "-c", "import sys; from server.cli import main; sys.exit(main(sys.argv[1:]))", "check", str(query)]
    environment = {"PATH": "/usr/bin", "PYTHONPATH": f"{tmp_path}:{ROOT}", ext.VARIABLE: "faulty"}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (found.returncode, message in found.stderr) == (2, True), found.stderr


def test_a_decimal_beyond_bounds_is_an_error() -> None:
    with pytest.raises(ExpressionError):
        ext.Extension(lambda: Decimal("1e5000"), 0, 0).apply()
