"""Whatever the text, parse answers soon, with a query or a QueryError, from any thread."""

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from epsparql import QueryError, parse, render
from epsparql.algebra import Bgp
from tests.language import test_faults, test_translate
from tests.language.builders import PROLOGUE, SHARED

PATIENCE_S = 1.0 if sys.gettrace() is None else 5.0  # processor time of one text; measuring coverage takes its own
CORPUS = [
    *(path.read_text() for path in sorted((SHARED / "conformance" / "random").glob("*/query.rq"))[:60]),
    *(PROLOGUE + str(row[0]).replace("|", "", 1) for row in (*test_faults.SYNTAX, *test_faults.UNSUPPORTED, *test_faults.SCOPE)),
    *(f"{PROLOGUE}SELECT * {{ ?s :p ?o FILTER({row.values[0]}) }}" for row in test_translate.EXPRESSIONS),
    *(f"{PROLOGUE}SELECT * {{ {row.values[0]} }}" for row in test_translate.PATTERNS),
]
PIECES = [
    "{", "}", "(", ")", "[", "]", ".", ";", ",", "<", ">", '"', "'", '"""', "\\", "\\u0041", "\\uD800", "^^", "@en", "?x", "$", "_:a", ":", "a", "-", "+",
    "!", "&&", "||", "SEQ", "WITHIN", "WITHOUT", "FOR", "FILTER", "OPTIONAL", "MINUS", "BIND", "AS", "EXISTS", "NOT", "IN", "SELECT", "CONSTRUCT", "WHERE",
    "PREFIX", "BASE", "FROM", "STREAM", "1", "1e9", "PT1S", '"P1H"^^xsd:duration', "#", "\n", "\x00", "\u00a0", "\U0001f600", "\ud800", " ",
]  # fmt: skip


def fault_of(text: str) -> QueryError | None:
    try:
        parse(text)
    except QueryError as fault:
        return fault
    return None


def outcome(text: str) -> str:
    """The fault's text, or `query`; found in time, and with a place in the text."""
    started = time.process_time()
    fault = fault_of(text)
    assert time.process_time() - started < PATIENCE_S, text
    if fault is None:
        return "query"
    assert fault.message
    assert 0 <= fault.span.start <= fault.span.end <= len(text)
    return str(fault)


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        length = chance.choice([0, 0, 1, 1, 3, 10])
        piece = chance.choice([chance.choice(PIECES), "", f" {chance.choice(PIECES)} ", text[at : at + 20] * chance.randint(1, 3)])
        text = text[:at] + piece + text[at + length :]
    return text


def test_mutations_give_a_query_or_a_query_error() -> None:
    chance = random.Random(2013)
    found = [outcome(mutated(chance.choice(CORPUS), chance)) for _ in range(2_000)]
    assert len(set(found)) > 500


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
    pytest.param("SELECT * {?s a:a" + "." * 15_000, "unexpected .", id="dots"),
    pytest.param('SELECT * {?s ?p """' + '""a' * 5_000, "does not end", id="quotes"),
    pytest.param("SELECT * {{} WITHIN P" + "1" * 15_000 + "D}", "too long", id="digits"),
    pytest.param("SELECT * {{} WITHIN 1e" + "1" * 15_000 + "}", "out of range", id="exponent"),
    pytest.param("SELECT " + " ".join(f"?s{i}" for i in range(2_500)) + " {}", "query", id="2,500 variables"),
    pytest.param("x" * 20_001, "20,001 characters", id="too long"),
]


@pytest.mark.parametrize(("text", "found"), DEEP)
def test_extremes(text: str, found: str) -> None:
    assert found in outcome(text)


def test_consumers_may_recurse_into_the_deepest_query() -> None:
    """Within Python's own limit: comparison, hash and text of a query 200 operators deep."""
    assert sys.getrecursionlimit() < 5_000
    text = "SELECT * {{?s ?p ?o}" + " SEQ {?s ?p ?o}" * 195 + "}"
    query = parse(text).query
    assert hash(query) == hash(parse(text).query)
    assert parse(render(query)).query == query


def test_a_thousand_triple_patterns() -> None:
    text = "SELECT * {" + ".".join(f"?s :p{i} ?o" for i in range(1_000)) + "}"
    pattern = parse("PREFIX : <http://e/> " + text).query.pattern
    assert isinstance(pattern, Bgp)
    assert len(pattern.triples) == 1_000


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
