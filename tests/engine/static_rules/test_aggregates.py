"""Aggregates in static rules, in an engine: what they derive as facts come and go, what is refused, and what is told
of them.
"""

import pytest

import epsparql
from engine.background.static_rules.description import describe_rules
from engine.background.static_rules.translate import StaticRuleRefused
from epsparql import algebra as a
from epsparql.terms import XSD, Iri, Literal
from tests.engine.static_rules.test_engine_rules import PREFIX, RuleLog, triples


def rule(template: str, select: str) -> str:
    return f"{PREFIX}CONSTRUCT {{ {template} }} INTO BACKGROUND :g WHERE {{ {select} }}"


def values(log: RuleLog) -> dict[str, str]:
    """Return the object of each derived triple, by subject: an IRI's last part, or a literal's text."""
    text = log.engine.registry.terms.text
    rows = log.engine.registry.known.derived("http://e/g").tolist()
    return {
        text(s).removeprefix("<http://e/")[:-1]: text(o).removeprefix("<http://e/").strip(">").split('"')[-2 if '"' in text(o) else 0]
        for s, _, o in rows
    }


def numbers(*pairs: tuple[str, object]) -> str:
    return "".join(f'<http://e/{s}> <http://e/v> "{n}"^^<{XSD}{"decimal" if isinstance(n, float) else "integer"}> .\n' for s, n in pairs)


COUNTS = rule("?r :lanes ?n", "SELECT ?r (COUNT(*) AS ?n) WHERE { ?r :lane ?lane } GROUP BY ?r")


def test_groups_follow_facts() -> None:
    log = RuleLog()
    log.register(COUNTS)
    log.facts(triples("e6 lane a", "e6 lane b", "e20 lane c"))
    assert values(log) == {"e6": "2", "e20": "1"}
    log.facts(triples("e6 lane d"), "http://e/more")
    assert values(log) == {"e6": "3", "e20": "1"}
    log.facts(triples("e6 lane a"), "", "replace")
    assert values(log) == {"e6": "2"}
    log.facts("", "http://e/more", "drop")
    log.facts("", "", "drop")
    assert values(log) == {}
    assert not log.changes


def test_no_term_stands_for_none() -> None:
    """Members of groups have a mark where a variable is unbound, which is no term that a background may have."""
    log = RuleLog()
    log.register(rule("?s :n ?n", "SELECT ?s (COUNT(?w) AS ?n) WHERE { ?s :v ?v OPTIONAL { ?s :next ?w } } GROUP BY ?s"))
    log.facts(numbers(("a", 1), ("b", 1)) + "<http://e/a> <http://e/next> <urn:epsparql:unbound> .\n")
    assert values(log) == {"a": "1", "b": "0"}


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT ?s (SUM(?v) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s", {"a": "3.5", "b": "7"}),
        ("SELECT ?s (SUM(?v * 2) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s HAVING (COUNT(*) > 1)", {"a": "7.0"}),
        ("SELECT ?s (MAX(?v) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s", {"a": "2", "b": "7"}),
        ('SELECT ?s (GROUP_CONCAT(?v; SEPARATOR=",") AS ?n) WHERE { ?s :v ?v } GROUP BY ?s', {"a": "1.5,2", "b": "7"}),
        ("SELECT ?s (SAMPLE(?v) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s", {"a": "1.5", "b": "7"}),
        ("SELECT (:all AS ?s) (COUNT(?v) AS ?n) WHERE { ?x :v ?v }", {"all": "3"}),
        ("SELECT (:all AS ?s) (COUNT(DISTINCT *) AS ?n) WHERE { ?x :none ?v }", {"all": "0"}),
        ("SELECT ?s (AVG(?v) AS ?n) WHERE { ?s :v ?v FILTER NOT EXISTS { ?s :hot true } } GROUP BY ?s", {"a": "1.75", "b": "7.0"}),
        ("SELECT ?s (COUNT(?w) AS ?n) WHERE { ?s :v ?v OPTIONAL { ?s :next ?w } } GROUP BY ?s", {"a": "2", "b": "0"}),
        ("SELECT ?s (COUNT(*) AS ?n) WHERE { { SELECT DISTINCT ?s WHERE { ?s :v ?v } } } GROUP BY ?s", {"a": "1", "b": "1"}),
        ("SELECT ?s (COUNT(*) AS ?n) WHERE { { SELECT ?s WHERE { ?s :v ?v } } } GROUP BY ?s", {"a": "2", "b": "1"}),
        (
            "SELECT ?s (SUM(?k) AS ?n) WHERE { { SELECT ?x (COUNT(*) AS ?k) WHERE { ?x :v ?v } GROUP BY ?x } BIND(:all AS ?s) } GROUP BY ?s",
            {"all": "3"},
        ),
        ("SELECT ?s ?n WHERE { ?s :v ?n { SELECT ?s (MIN(?v) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s } }", {"a": "1.5", "b": "7"}),
    ],
)
def test_what_aggregates_derive(select: str, expected: dict[str, str]) -> None:
    log = RuleLog()
    log.register(rule("?s :total ?n", select))
    log.facts(triples("a next b", "c next d"))
    log.facts(numbers(("a", 1.5), ("a", 2), ("b", 7)), "http://e/numbers")
    assert values(log) == expected
    before = values(log)
    log.facts(numbers(("a", 9), ("b", -1)), "http://e/more")
    log.facts("", "http://e/more", "drop")
    assert values(log) == before
    assert not log.changes


def test_an_aggregate_that_is_an_error_leaves_its_variable_unbound() -> None:
    log = RuleLog()
    log.register(rule("?s :sum ?n", "SELECT ?s (COALESCE(SUM(?v), -1) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s"))
    log.facts(triples("a v b") + numbers(("a", 1), ("c", 2)))
    assert values(log) == {"a": "-1", "c": "2"}


def test_other_rules_read_what_is_aggregated_and_recursion_through_it_is_refused() -> None:
    log = RuleLog()
    log.register(PREFIX + "CONSTRUCT { ?x :above ?y } INTO BACKGROUND :h WHERE { { ?x :on ?y } UNION { ?x :above ?z . ?z :on ?y } }")
    log.register(PREFIX + "CONSTRUCT { ?x :height ?n } INTO BACKGROUND :h WHERE { SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :above ?y } GROUP BY ?x }")
    log.register(rule("?x :tower true", "?x :height ?n FILTER(?n > 1)"))
    log.facts(triples("a on b", "b on c"))
    assert values(log) == {"a": "true"}
    log.facts(triples("b on c"), "", "replace")
    assert values(log) == {}
    log.register(PREFIX + "CONSTRUCT { ?x :on ?n } INTO BACKGROUND :h WHERE { SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :above ?y } GROUP BY ?x }")
    assert [(change.state, "above" in change.reason) for change in log.changes] == [("failed", True)]


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ("SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s WINDOW [ROWS 3]", "a window in a static rule"),
        ("SELECT ?w (COUNT(*) AS ?n) WHERE { ?s :v ?v OPTIONAL { ?s :next ?w } } GROUP BY ?w", "GROUP BY of what may be unbound"),
        ("SELECT ?s (SUM(RAND()) AS ?n) WHERE { ?s :v ?v } GROUP BY ?s", "RAND()"),
    ],
)
def test_what_is_refused(select: str, reason: str) -> None:
    query = epsparql.parse(rule("?s :total ?n", select)).query
    assert isinstance(query, a.BackgroundRule)
    with pytest.raises(StaticRuleRefused, match=reason.replace("(", r"\(").replace(")", r"\)")):
        describe_rules(query)


def test_rules_are_described_and_values_explained() -> None:
    query = epsparql.parse(COUNTS).query
    assert isinstance(query, a.BackgroundRule)
    assert any("is COUNT(*) of all part1(?r, ?lane)" in line for line in describe_rules(query))
    log = RuleLog()
    log.register(COUNTS)
    log.facts(triples("e6 lane a", "e6 lane b", "e20 lane c"))
    e6, lane, lanes = (Iri(f"http://e/{name}") for name in ("e6", "lane", "lanes"))
    steps = log.engine.registry.known.explain_derived((e6, lanes, Literal("2", XSD + "integer")))
    assert steps is not None
    ((_, premises, _),) = steps
    assert set(premises) == {(e6, lane, Iri("http://e/a")), (e6, lane, Iri("http://e/b"))}
