"""Whatever the text, parse answers soon, with a query or a QueryError, from any thread."""

import inspect
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from epsparql import parse, render
from epsparql.algebra import Bgp
from tests.epsparql import golden, test_translate
from tests.epsparql.builders import PROLOGUE, SHARED
from tests.epsparql.lint import test_error_positions
from tests.epsparql.parser import fuzz_texts
from tests.soak import examples

pytestmark = pytest.mark.slow
PATIENCE_S = (
    3 if sys.gettrace() is None else 15
) * fuzz_texts.PATIENCE_S  # two cores may be shared with much else, and measuring coverage takes its own
CORPUS = [
    *fuzz_texts.corpus(),
    *(path.read_text() for path in sorted((SHARED / "conformance" / "random").glob("*/query.rq"))[:60]),
    *(block.query for name in golden.ANSWERS for block in golden.blocks(name)),
    *(PROLOGUE + str(row[0]).replace("|", "", 1) for row in (*test_error_positions.SYNTAX, *test_error_positions.SCOPE)),
    *(f"{PROLOGUE}SELECT * {{ ?s :p ?o FILTER({row.values[0]}) }}" for row in test_translate.EXPRESSIONS),
    *(f"{PROLOGUE}SELECT * {{ {row.values[0]} }}" for row in test_translate.PATTERNS),
]


def outcome(text: str) -> str:
    return fuzz_texts.outcome(text, PATIENCE_S)


def test_mutations_give_a_query_or_a_query_error() -> None:
    chance, tries = random.Random(2013), examples(2_000)
    found = [outcome(fuzz_texts.mutated(chance.choice(CORPUS), chance)) for _ in range(tries)]
    assert len(set(found)) > tries // 4


@pytest.mark.parametrize("nest", [pytest.param(nest, id=f"{nest.before}{nest.opening}") for nest in fuzz_texts.NESTS])
def test_a_fault_deep_inside(nest: fuzz_texts.Nest) -> None:
    """No production is read again and again where what is in it has a fault."""
    chance = random.Random(nest.opening)
    outcome(nest.text(40, nest.inner))
    assert outcome(nest.text(40, f"{nest.inner} ]")) != "query"
    for _ in range(4):
        outcome(fuzz_texts.deep(nest, chance))


@pytest.mark.parametrize("number", ["1e99999999999999999999", "1e-99999999999999999999", "-1E+99999999999999999999"])
@pytest.mark.parametrize(
    "place", ["FILTER(getDURATION() < {})", "FILTER({} >= getENDTIME())", "{{}} WITHIN {}", "VALUES ?x {{ {} }}", "?s <p> {}", "BIND({} + 1 AS ?x)"]
)
def test_exponents_out_of_range(number: str, place: str) -> None:
    outcome(f"SELECT * {{ {place.format(number)} }}")


def nested(opening: str, inner: str, closing: str, times: int) -> str:
    return opening * times + inner + closing * times


DEEP = [
    pytest.param("SELECT * " + nested("{", "?s ?p ?o", "}", 100), "query", id="100 groups"),
    pytest.param("SELECT * " + nested("{", "?s ?p ?o", "}", 101), "nested more than 100 deep", id="101 groups"),
    pytest.param("SELECT * {FILTER " + nested("(", "?o", ")", 99) + "}", "query", id="99 brackets"),
    pytest.param("SELECT * {FILTER " + nested("(", "?o", ")", 100) + "}", "nested more than 100 deep", id="100 brackets"),
    pytest.param("SELECT * {?s ?p " + nested("[<p> ", "?o", "]", 101) + "}", "nested more than 100 deep", id="blank nodes"),
    pytest.param("SELECT * {?s ?p " + nested("( ", "?o", ")", 101) + "}", "nested more than 100 deep", id="collections"),
    pytest.param("SELECT * {FILTER " + nested("STR(", "?o", ")", 101) + "}", "nested more than 100 deep", id="calls"),
    pytest.param("SELECT * " + nested("{FILTER EXISTS ", "{}", "}", 101), "nested more than 100 deep", id="EXISTS"),
    pytest.param("SELECT * " + "{" * 15_000, "nested more than 100 deep", id="never closed"),
    pytest.param("SELECT * {{}" + " SEQ {}" * 150 + "}", "query", id="150 operators"),
    pytest.param("SELECT * {{}" + " SEQ {}" * 2_500 + "}", "more than 200 operators deep", id="2,500 operators"),
    pytest.param("SELECT * {FILTER(1" + "+1" * 5_000 + ")}", "more than 200 operators deep", id="5,000 sums"),
    pytest.param("SELECT * {FILTER(" + "!" * 15_000 + "?o)}", "more than 200 operators deep", id="15,000 signs"),
    pytest.param("SELECT * {" + "OPTIONAL{}" * 1_500 + "}", "more than 200 operators deep", id="1,500 optional groups"),
    pytest.param("SELECT * {?s ?p ?o" + ";" * 15_000 + "}", "query", id="semicolons"),
    pytest.param("SELECT * {" + "#\n" * 9_000 + "}", "query", id="comments"),
    pytest.param("SELECT * {?s a:a" + "." * 15_000, "unexpected '.'", id="dots"),
    pytest.param('SELECT * {?s ?p """' + '""a' * 5_000, "does not end", id="quotes"),
    pytest.param("SELECT * {{} WITHIN P" + "1" * 15_000 + "D}", "too long", id="digits"),
    pytest.param("SELECT * {{} WITHIN P" + "1M" * 9_900 + "}", "is no duration", id="parts of a duration"),
    pytest.param("SELECT * {{} WITHIN 'P" + "1M" * 9_900 + "'}", "is no duration", id="parts of a quoted duration"),
    pytest.param("SELECT * {{} WITHIN 1e" + "1" * 15_000 + "}", "out of range", id="exponent"),
    pytest.param("SELECT " + " ".join(f"?s{i}" for i in range(2_500)) + " {}", "query", id="2,500 variables"),
    pytest.param("SELECT * {?s " + nested("(", "<p>", "*)", 99) + " ?o}", "query", id="99 brackets of a path"),
    pytest.param("SELECT * {?s " + nested("(", "<p>", ")", 100) + " ?o}", "nested more than 100 deep", id="100 brackets of a path"),
    pytest.param("SELECT * {?s <p>" + "/<p>" * 4_000 + " ?o}", "query", id="4,000 steps of a path"),
    pytest.param("SELECT * {?s <p>" + "|<p>" * 4_000 + " ?o}", "more than 200 operators deep", id="4,000 alternatives of a path"),
    pytest.param("SELECT * {?s <p>" + "*" * 15_000 + " ?o}", "unexpected '*'", id="stars"),
    pytest.param("SELECT * " + nested("{SELECT * ", "{}", "}", 99), "query", id="99 sub-SELECTs"),
    pytest.param("SELECT * " + nested("{SELECT * ", "{}", "}", 100), "nested more than 100 deep", id="100 sub-SELECTs"),
    pytest.param("SELECT * " + nested("{GRAPH ?g ", "{}", "}", 95), "query", id="GRAPH"),
    pytest.param("SELECT (" + nested("SUM(", "?x", ")", 90) + " AS ?n) {}", "the aggregate SUM stands where", id="aggregates in aggregates"),
    pytest.param("SELECT " + "".join(f"(SUM(?x+{i}) AS ?n{i})" for i in range(190)) + "{?s ?p ?x}", "query", id="190 aggregates"),
    pytest.param(
        "SELECT " + "".join(f"(SUM(?x+{i}) AS ?n{i})" for i in range(700)) + "{?s ?p ?x}", "more than 200 operators deep", id="700 aggregates"
    ),
    pytest.param("SELECT * {?s ?p ?x} ORDER BY " + "DESC(?x)" * 2_000, "query", id="2,000 orders"),
    pytest.param("SELECT * {?s ?p ?x} LIMIT " + "9" * 15_000, "too large", id="limit"),
    pytest.param("SELECT * {VALUES ?x {" + "1 " * 9_000 + "}}", "query", id="9,000 rows"),
    pytest.param("SELECT * {VALUES (" + "?x " * 6_000 + ") {}}", "stands twice", id="6,000 equal columns"),
    pytest.param("SELECT * {VALUES (" + " ".join(f"?x{i}" for i in range(2_500)) + ") {}}", "query", id="2,500 columns"),
    pytest.param("SELECT * {FILTER(" + " || ".join(["?x IN(getDURATION()," + "1," * 20 + "1)"] * 180) + ")}", "query", id="180 lists"),
    pytest.param("SELECT * " + "{" * 99 + " ".join(f"?s{i} ?p{i} ?o{i}." for i in range(600)) + "}" * 99, "query", id="1,800 variables, 99 groups"),
    pytest.param("SELECT * {FILTER('" + "a" * 19_000 + "' = 1 1)}", "unexpected 1", id="a word of 19,000 letters before a fault"),
    pytest.param("SELECT * {FILTER('" + "a " * 9_500 + "' = 1 1)}", "unexpected 1", id="9,500 words before a fault"),
    pytest.param("SELECT * {FILTER( " + " " * 19_000 + ")}", "unexpected ')'", id="19,000 blanks before a fault"),
    pytest.param("SELECT * FROM <g>" + " FROM <g>" * 2_000 + "{}", "query", id="2,000 graphs"),
    pytest.param("x" * 262_145, "262,145 characters", id="too long"),
    pytest.param("SELECT * {VALUES ?x {" + "1 " * 20_000 + "}}", "more than 20,000 words and signs", id="20,000 rows"),
    pytest.param("SELECT * {?s ?p ?o} # " + "a word " * 37_000, "query", id="a long remark"),
    pytest.param("SELECT * {VALUES ?x {" + "<http://example.org/things/number/01234567> " * 5_900 + "}}", "query", id="260,000 characters"),
]


@pytest.mark.parametrize(("text", "found"), DEEP)
def test_extremes(text: str, found: str) -> None:
    assert found in outcome(text)


def test_consumers_may_recurse_into_the_deepest_query() -> None:
    """Within Python's own limit, 1,000 above a caller: comparison, hash and text of a query 200 operators deep."""
    text = "SELECT * {{?s ?p ?o}" + " SEQ {?s ?p ?o}" * 195 + "}"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 1_000)
    try:
        query = parse(text).query
        assert hash(query) == hash(parse(text).query)
        assert parse(render(query)).query == query
    finally:
        sys.setrecursionlimit(limit)


def test_a_thousand_triple_patterns() -> None:
    text = "SELECT * {" + ".".join(f"?s :p{i} ?o" for i in range(1_000)) + "}"
    query = parse("PREFIX : <http://e/> " + text).query
    assert isinstance(query.pattern, Bgp)
    assert len(query.pattern.triples) == 1_000
    assert parse(render(query)).query == query


def test_a_typical_query_takes_less_than_20_ms() -> None:
    """The least of ten runs, in processor time, so that the machine's other work does not count."""
    text = PROLOGUE + (
        'CONSTRUCT { ?st :settling ?c } INTO STREAM <s> WHERE { {?st :settling ?n} SEQ { {?st :wind ?s} EQUALS {?st :visib ?v}'
        ' FILTER(?s >= 15 && ?v <= 0.25) } WITHIN "PT6H"^^xsd:duration BIND(?n + 1 AS ?c) OPTIONAL { ?st :name ?name FILTER(getDURATION() < 10) } }'
    )  # fmt: skip

    def seconds() -> float:
        started = time.process_time()
        parse(text)
        return time.process_time() - started

    assert min(seconds() for _ in range(10)) < 0.02 * PATIENCE_S


def test_threads_share_the_parser() -> None:
    texts = [f"SELECT * {{ ?s <http://e/{i}> {i} " + "}" * (i % 2) for i in range(100)]
    alone = [outcome(text) for text in texts]
    limit = sys.getrecursionlimit()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, texts)) == alone
    assert sys.getrecursionlimit() == limit
