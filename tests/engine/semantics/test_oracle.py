"""The reference evaluator against sentences of semantics.md, one table row each, and against the conformance cases."""

from collections import Counter
from pathlib import Path

import pytest

import epsparql
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import RDF, Iri, Variable
from tests.engine.semantics.test_conformance import CASES, RUNS, read
from tests.reference import evaluator
from tests.reference.describe import description
from tests.support.feeds import PREFIXES, SECOND, intervals, parse_facts, parse_feed, select, term
from tests.support.ntriples import parse_statements
from tests.support.run_both import run_oracle
from verification.definitions.rdfs import RDFS, closed


def found(query: str, feed: str, facts: str = "") -> list[tuple[float, float]]:
    """The intervals of the query's solutions over one stream."""
    results = evaluator.solutions({"q": epsparql.parse(query).query}, {"default": parse_feed(feed)}, parse_facts(facts))["q"]
    return intervals(results.elements() if isinstance(results, Counter) else results)


OPERATORS = [
    pytest.param("A SEQ B", "A@1-2 B@3-4", "", [(1, 4)], id="SEQ spans both"),
    pytest.param("A SEQ B", "A@1-3 B@3-4", "", [], id="touching is not before"),
    pytest.param("A SEQ B", "B@3-4", "A", [(3, 4)], id="none satisfies every relation"),
    pytest.param("A SEQ A SEQ A", "A@1 A@2 A@3 A@4", "", [(1, 3), (1, 4), (2, 4)], id="constant patterns collapse"),
    pytest.param("A AND B", "A@1-5 B@3-4", "", [(1, 5)], id="AND implies no order"),
    pytest.param("A EQUALS B", "A@1-2 A@1-3 B@1-2", "", [(1, 2)], id="EQUALS"),
    pytest.param("A UNION A", "A@1-2", "", [(1, 2)], id="equal UNION branches are one solution"),
    pytest.param("A OPTIONAL B", "A@2 B@2", "", [(2, 2)], id="OPTIONAL binds at the same instant"),
    pytest.param("A OPTIONAL B", "A@2 B@3", "", [(2, 2)], id="what comes later does not count"),
    pytest.param("A OPTIONAL B", "A@2 B@1", "", [(1, 2)], id="what came before counts"),
    pytest.param("A OPTIONAL B", "X@2 B@2 B@3", "A", [(2, 2)], id="a timeless solution stands at t0"),
    pytest.param("A OPTIONALSEQ B", "A@1 B@2 B@1", "", [(1, 1), (1, 2)], id="OPTIONALSEQ keeps the right"),
    pytest.param("A EQUALSOPTIONAL B", "A@1-2 A@2-3 B@1-2", "", [(1, 2), (2, 3)], id="EQUALSOPTIONAL"),
    pytest.param("A FILTER(getDURATION() > 'PT1S'^^xsd:duration)", "A@1-2 A@1-3", "", [(1, 3)], id="FILTER on the interval"),
    pytest.param("A FILTER(getDURATION() >= 'PT0S'^^xsd:duration)", "X@1", "A", [], id="time functions fail on a timeless solution"),
    pytest.param("A SEQ B WITHIN 'PT2S'^^xsd:duration", "A@1 A@2 B@4", "", [(2, 4)], id="WITHIN"),
    pytest.param("A WITHIN 'PT0S'^^xsd:duration", "X@9", "A", [(9, 9)], id="a timeless solution passes WITHIN"),
    pytest.param("A", "X@3 A@3", "A", [(3, 3)], id="an equal timed solution is the same one"),
    pytest.param("A", "", "A", [(0, 0)], id="t0 of an empty finished stream"),
    pytest.param("A OPTIONAL { B FILTER(getDURATION() < 'PT2S'^^xsd:duration) }", "A@3 B@0 B@2", "", [(2, 3)], id="F sees the joined interval"),
]


@pytest.mark.parametrize(("query", "feed", "facts", "expected"), OPERATORS)
def test_operator(query: str, feed: str, facts: str, expected: list[tuple[float, float]]) -> None:
    assert found(select(query), feed, facts) == expected


BEYOND = [
    pytest.param("A MEETS B", "A@1-3 B@3-4", "", [(1, 4)], id="MEETS"),
    pytest.param("A DURING B", "A@2-3 B@1-4 B@2-4", "", [(1, 4)], id="DURING is strict on both sides"),
    pytest.param("A STARTS B", "A@1-2 B@1-3 B@1-2", "", [(1, 3)], id="STARTS"),
    pytest.param("A FINISHES B", "A@2-3 B@1-3 B@2-3", "", [(1, 3)], id="FINISHES"),
    pytest.param("A OVERLAPS B", "A@1-3 B@2-4 B@3-4", "", [(1, 4)], id="OVERLAPS"),
    pytest.param("A PAR B", "A@1-3 B@3-4 B@2-4", "", [(1, 4)], id="PAR shares more than a point"),
    pytest.param("A SEQ B WITHOUT C", "A@1 C@2 B@3", "", [], id="WITHOUT between"),
    pytest.param("A SEQ B WITHOUT C", "A@1 C@1-2 B@3", "", [(1, 3)], id="WITHOUT is strict"),
    pytest.param("A SEQ B WITHOUT C", "A@1 B@3", "C", [], id="a timeless one blocks"),
    pytest.param("A AND B WITHOUT C", "A@1 C@2 B@3", "", [], id="AND ... WITHOUT between"),
    pytest.param("A AND B WITHOUT C", "B@1 C@2 A@3", "", [], id="AND ... WITHOUT between, the right one first"),
    pytest.param("A AND B WITHOUT C", "A@1 C@1-2 C@2-3 B@3 C@4", "", [(1, 3)], id="AND ... WITHOUT is strict"),
    pytest.param("A AND B WITHOUT C", "B@1 A@2 C@4 A@6", "", [(1, 2)], id="AND ... WITHOUT, the left one last"),
    pytest.param("A AND B WITHOUT C", "A@1-4 C@3 B@2-6", "", [(1, 6)], id="nothing is between what shares time"),
    pytest.param("A AND B WITHOUT C", "A@1-3 C@2 B@6", "", [(1, 6)], id="AND ... WITHOUT: inside of one"),
    pytest.param("A AND B WITHOUT C", "A@1 B@2 C@3 B@4", "", [(1, 2)], id="AND ... WITHOUT pair by pair"),
    pytest.param("A AND B WITHIN 3 WITHOUT C", "A@1 B@4 A@6 C@7 B@8 B@9", "", [(1, 4), (4, 6)], id="AND ... WITHIN ... WITHOUT"),
    pytest.param("A AND B WITHOUT C", "A@1 B@1 B@3", "C", [], id="AND: a timeless one blocks"),
    pytest.param("A AND B WITHOUT C", "C@1 B@2 C@3 B@4", "A", [(2, 2), (4, 4)], id="nothing is between what is always and what is once"),
    pytest.param("A WITHOUT B FOR 'PT5S'^^xsd:duration", "A@1 B@2 A@3", "", [(3, 8)], id="a timer runs to the end"),
    pytest.param(
        "{ A WITHOUT B FOR 'PT5S'^^xsd:duration } WITHOUT B FOR 'PT5S'^^xsd:duration", "A@1 A@9 X@9", "", [(1, 11)], id="later ones set no timers"
    ),
    pytest.param("A MINUS { ?s :B ?b }", "A@1 A@3 B@2", "", [(1, 1)], id="MINUS looks back"),
    pytest.param("A FILTER NOT EXISTS { ?s :B ?b }", "A@1 A@3 B@2", "", [(1, 1)], id="NOT EXISTS looks back"),
    pytest.param("A FILTER EXISTS { ?s :B ?b FILTER(?b = ?a) }", "A(1)@1 B(1)@2 A(1)@3 A(2)@4", "", [(3, 3)], id="EXISTS substitutes"),
]


@pytest.mark.parametrize(("query", "feed", "facts", "expected"), BEYOND)
def test_operator_beyond_the_slice(query: str, feed: str, facts: str, expected: list[tuple[float, float]]) -> None:
    assert found(select(query), feed, facts) == expected


def test_projection_keeps_multiplicity_and_distinct_does_not() -> None:
    feed = parse_feed("A(x,1)@1 A(x,2)@1")
    row = (frozenset({(Variable("s"), term("x"))}), (SECOND, SECOND))
    for head, count in (("SELECT ?s", 2), ("SELECT DISTINCT ?s", 1)):
        results = evaluator.solutions({"q": epsparql.parse(select("A", head)).query}, {"default": feed})["q"]
        assert results == Counter({row: count})


def test_hidden_variables_distinguish_solutions() -> None:
    query = epsparql.parse(PREFIXES + "SELECT * WHERE { ?s :A [] }").query
    results = evaluator.solutions({"q": query}, {"default": parse_feed("A(1)@1 A(2)@1")})["q"]
    assert results == Counter({(frozenset({(Variable("s"), term("s"))}), (SECOND, SECOND)): 2})


def test_rules_reach_the_least_fixpoint() -> None:
    """The blizzard chain: a counter over any subsequence."""
    texts = {
        "one": "CONSTRUCT { ?s :N 1 } WHERE { ?s :A ?a }",
        "more": "CONSTRUCT { ?s :N ?m } WHERE { { ?s :N ?n } SEQ { ?s :A ?a } BIND(?n + 1 AS ?m) }",
        "three": "SELECT ?s WHERE { ?s :N 3 }",
    }
    queries = {name: epsparql.parse(PREFIXES + text).query for name, text in texts.items()}
    results = evaluator.solutions(queries, {"default": parse_feed("A@1 A@2 A@3 A@4")})
    assert intervals(results["one"]) == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert intervals(results["three"]) == [(1, 3), (1, 4), (2, 4)]


def test_rules_negate_what_rules_derive_at_the_same_instant() -> None:
    texts = {
        "p": "CONSTRUCT { ?s :P 1 } WHERE { ?s :A ?a }",
        "q": "CONSTRUCT { ?s :Q 1 } WHERE { { ?s :X ?x } OPTIONAL { ?s :P ?p } FILTER(!BOUND(?p)) }",
        "r": "CONSTRUCT { ?s :Q ?q } WHERE { ?s :Q ?q }",
    }
    queries = {name: epsparql.parse(PREFIXES + text).query for name, text in texts.items()}
    results = evaluator.solutions(queries, {"default": parse_feed("X@1 X@2 A@2")})
    assert intervals(results["q"]) == intervals(results["r"]) == [(1, 1)]


def test_a_derived_stream_has_its_own_first_instant() -> None:
    texts = {
        "rule": "CONSTRUCT { ?s :P 1 } INTO STREAM <urn:out> WHERE { ?s :B ?b }",
        "q": "SELECT * FROM STREAM <urn:out> WHERE { ?s :K ?k }",
    }
    queries = {name: epsparql.parse(PREFIXES + text).query for name, text in texts.items()}
    results = evaluator.solutions(queries, {"default": parse_feed("A@1 B@2")}, parse_facts("K"))
    assert intervals(results["q"]) == [(2, 2)]


def test_rules_count_what_rules_derive_at_the_same_instant() -> None:
    """An aggregate is a negative part: it reports once, over all that the instant brings."""
    texts = {
        "copy": "CONSTRUCT { ?s :P ?a } WHERE { ?s :A ?a }",
        "count": "CONSTRUCT { ?s :N ?n } WHERE { SELECT ?s (COUNT(*) AS ?n) { ?s :P ?a } GROUP BY ?s }",
        "last": "SELECT ?n WHERE { ?s :N ?n }",
    }
    queries = {name: epsparql.parse(PREFIXES + text).query for name, text in texts.items()}
    results = evaluator.solutions(queries, {"default": parse_feed("A(1)@1 A(2)@1 A(3)@2")})["last"]
    assert results == Counter(
        {(frozenset({(Variable("n"), term("2"))}), (SECOND, SECOND)): 1, (frozenset({(Variable("n"), term("3"))}), (SECOND, 2 * SECOND)): 1}
    )


def test_rules_whose_windows_report_when_nothing_happens() -> None:
    texts = {
        "count": "CONSTRUCT { :all :N ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s :A ?a } WINDOW [RANGE 'PT4S' STEP 'PT4S'] }",
        "q": "SELECT ?n WHERE { ?s :N ?n }",
    }
    queries = {name: epsparql.parse(PREFIXES + text).query for name, text in texts.items()}
    assert intervals(evaluator.solutions(queries, {"default": parse_feed("A(1)@1 A(2)@5")})["q"]) == [(0, 4), (4, 8)]


SCHEMA = f"<{RDFS}subClassOf> <{RDFS}subPropertyOf> <{RDFS}domain> <{RDFS}range>".split()


def test_rdfs_closes_the_background() -> None:
    below, under, domain, range_ = SCHEMA
    type_ = f"<{RDF}type>"
    text = f"<x:a> <x:p> <x:b> .\n<x:p> {under} <x:q> .\n<x:q> {domain} <x:C> .\n<x:q> {range_} <x:E> .\n<x:C> {below} <x:D> ."
    found = {fact.triple for fact in closed(map(evaluator.Fact, parse_statements(text)))}
    entailed = f"""<x:a> <x:q> <x:b>\n<x:a> {type_} <x:C>\n<x:a> {type_} <x:D>\n<x:b> {type_} <x:E>\n<x:C> {below} <x:C>\n<x:D> {below} <x:D>
        <x:p> {under} <x:p>\n<x:p> {type_} <{RDF}Property>\n<x:E> {below} <x:E>"""
    assert found >= set(parse_statements(entailed))
    assert not found & set(parse_statements(f"<x:a> {type_} <x:E>\n<x:D> {below} <x:C>\n<x:C> {type_} <x:C>"))


def test_rdfs_gives_stream_triples_their_types_on_their_intervals() -> None:
    facts = parse_statements(f"<http://example.org/A> <{RDFS}domain> <http://example.org/C> .")
    query = epsparql.parse(PREFIXES + "SELECT ?s WHERE { ?s a :C }").query
    assert intervals(evaluator.solutions({"q": query}, {"default": parse_feed("A@1-2 B@3")}, facts)["q"]) == [(1, 2)]


def test_descriptions_follow_blank_nodes_and_reifications() -> None:
    facts = frozenset(
        parse_statements(
            f"""<x:a> <x:p> _:b
            _:b <x:q> <x:c>
            <x:c> <x:q> <x:d>
            <x:r> <{RDF}subject> <x:a>
            <x:r> <{RDF}predicate> <x:p>
            <x:r> <{RDF}object> _:b
            <x:r> <x:said> <x:e>"""
        )
    )
    assert description([Iri("x:a")], facts) == {fact for fact in facts if fact[0] != Iri("x:c")}


# ---------------------------------------------------------------- conformance cases
@pytest.mark.parametrize("directory", CASES, ids=lambda path: path.name)
def test_conformance(directory: Path) -> None:
    case = read(directory)
    query = epsparql.parse(case.text).query
    solved = evaluator.solutions({"query": query}, {DEFAULT_STREAM: case.stream}, case.background)["query"]
    assert isinstance(solved, Counter)
    assert set(solved) == case.expected
    assert set(solved.values()) <= {1}


@pytest.mark.parametrize("directory", RUNS, ids=lambda path: path.name)
def test_conformance_of_runs(directory: Path) -> None:
    case = read(directory)
    assert set(run_oracle({"query": case.text}, {DEFAULT_STREAM: case.stream}, case.background)["query"]) == case.expected
