"""Queries with PARAMETERS are refused with a remedy for what they cannot have; and an event looks at few instances."""

import json

import pytest

import epsparql
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import ChangeInstances, Events, Facts, Register
from engine.validation.validate import check
from epsparql.terms import XSD
from tests.support.feeds import parse_feed
from tests.support.run_both import block

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}>\n"
BASIC = f"{PREFIX}SELECT ?v PARAMETERS (?room ?limit) WHERE {{ ?room :temp ?v FILTER (?v > ?limit) }}"


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        ("ASK PARAMETERS (?a) { ?a :p ?b }", "PARAMETERS stands in a SELECT alone", "SELECT"),
        ("CONSTRUCT { ?a :q ?b } PARAMETERS (?a) WHERE { ?a :p ?b }", "PARAMETERS stands in a SELECT alone", "SELECT"),
        ("SELECT ?b PARAMETERS (?a ?a) { ?a :p ?b }", "?a stands twice", "each variable once"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p ?b OPTIONAL { ?a :q ?x } }", "OPTIONAL", "query that reads"),
        ("SELECT ?b PARAMETERS (?a) { { ?a :p ?b } WITHOUT { ?a :q ?x } FOR PT1S }", "WITHOUT ... FOR", "a rule"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p ?b FILTER NOT EXISTS { ?a :q ?x } }", "EXISTS", "a rule"),
        ("SELECT ?a (COUNT(*) AS ?n) PARAMETERS (?a) { ?a :p ?b } GROUP BY ?a", "aggregate", "a rule"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p+ ?b }", "property path", "triple patterns"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p ?b } ORDER BY ?b", "ORDER BY", "without ORDER BY"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p ?b } LIMIT 3", "LIMIT and OFFSET", "DELETE ends an instance"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p ?b } ONCE PER ?b UNTIL { ?a :q ?c }", "UNTIL", "WITHIN a duration"),
        ("SELECT ?b PARAMETERS (?a) { ?a :p ?b FILTER (RAND() < 0.5) }", "RAND", "a function"),
        ("SELECT ?b PARAMETERS (?a) { ?c :p ?b BIND (1 AS ?a) }", "?a is a parameter", "another variable"),
        ("SELECT ?b PARAMETERS (?a) { ?c :p ?b VALUES ?a { 1 } }", "VALUES gives terms to a parameter", "a FILTER"),
        ("SELECT ?instance PARAMETERS (?a) { ?a :p ?instance }", "?instance already", "another name"),
        ("SELECT ?b PARAMETERS (?a) { VALUES ?b { 1 2 } }", "may answer without an event", ""),
        ("SELECT ?b PARAMETERS (?a) { { ?x :p ?b BIND (?b + ?a AS ?c) } SEQ { ?x :q ?d } }", "BIND of ?c in a group that is joined", ""),
        ("SELECT ?b PARAMETERS (?a) { { { ?x :p ?b FILTER (?b > ?a) } UNION { ?x :q ?b } } SEQ { ?x :r ?d } }", "UNION that is joined", ""),
        ("SELECT ?b PARAMETERS (?a) { { ?x :p ?b FILTER (getDURATION() < ?a) } SEQ { ?x :q ?d } }", "getDURATION()", ""),
        ("SELECT ?b PARAMETERS (?a) { { ?x :p ?b } WITHIN ?a }", "unexpected ?a", "a duration"),
    ],
)
def test_what_is_refused(text: str, told: str, remedy: str) -> None:
    with pytest.raises(epsparql.QueryError) as refused:
        check(epsparql.parse(PREFIX + text))
    assert told in refused.value.message
    assert remedy in refused.value.expected
    assert refused.value.line == 2


def test_a_policy_is_refused() -> None:
    with pytest.raises(epsparql.QueryError, match="the policy recent with PARAMETERS"):
        check(epsparql.parse(BASIC), name="q", policies={"q": "recent"})


def test_a_background_that_answers_alone_stops_the_query() -> None:
    engine = Engine()
    engine.feed(block([(Register(0, "q", BASIC), ())]))
    (change,) = engine.feed(block([(Facts(1, "", f"<{E}hall> <{E}temp> 30 .\n".replace(" 30 ", f' "30"^^<{XSD}integer> ')), ())])).changes
    assert (change.state, change.name) == ("failed", "q")
    assert "may answer without an event" in change.reason


def test_an_event_looks_only_at_instances_whose_limit_it_reaches() -> None:
    text, engine = BASIC.replace("?room :temp", "?any :A"), Engine()  # no instance is found by a hash
    changes = {f"u{k}": [f"<{E}room>", f'"{k}"^^<{XSD}integer>'] for k in range(500)}
    engine.feed(block([(Register(0, "q", text), ()), (ChangeInstances(1, 0, "q", json.dumps(changes)), ())]))
    found = engine.feed(block([(Events(2, "default", 1, 1_000_000), tuple(parse_feed("A(x,1)@1")))])).solutions
    assert [json.loads(row["values"][0]) for row in found.to_pylist()] == ["u0"]
    net = engine.registry.members[0].network.net
    (node,) = (net.nodes[:, c.KIND] == c.INSTANCES).nonzero()[0].tolist()
    assert net.stores[c.SIDES * node, c.REFUSED] <= 1, "those with greater limits are passed over"
