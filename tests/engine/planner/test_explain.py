"""explain: every node of the algebra in words, what a plan pushes down and keeps, the partition key, and well-formed
charts.
"""

import json
import re
from typing import get_args

import pytest

import epsparql
from engine.explain import Declared, Explanation, explain, mermaid, rates_given, reads_over, render_document, render_text
from engine.explain.algebra_outline import Outliner
from engine.explain.render import DEEPEST, LONGEST, LONGEST_BOX
from engine.partitioning import partition
from epsparql import algebra as a
from epsparql.terms import Iri
from server.routes.explain import PlanDocument

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
NODES = [
    pytest.param("SELECT * { ?x :a ?y }", ["Bgp ?x <http://e/a> ?y"], id="Bgp"),
    pytest.param("SELECT * { { ?x :a ?y } { ?x :b ?z } }", ["Join"], id="Join"),
    pytest.param("SELECT * { { ?x :a ?y } UNION { ?x :b ?y } }", ["Union"], id="Union"),
    pytest.param("SELECT * { ?x :a ?y FILTER(?y > 3 && ?y < 9) }", ["Filter ?y > 3 && ?y < 9"], id="Filter"),
    pytest.param("SELECT * { ?x :a ?y FILTER(?y > 3 || EXISTS { ?x :b ?y }) }", ["Filter ?y > 3 || EXISTS { ... }", "Bgp ?x <http://e/b> ?y"], id="EXISTS"),
    pytest.param("SELECT * { ?x :a ?y BIND(?y + 1 AS ?z) }", ["Extend ?z := ?y + 1"], id="Extend"),
    pytest.param("SELECT * { { ?x :a ?y } SEQ { ?x :b ?z } WITHIN 10 }", ["SeqJoin", "Within PT10S"], id="SeqJoin and Within"),
    pytest.param("SELECT * { { ?x :a ?y } EQUALS { ?x :b ?z } }", ["EqJoin"], id="EqJoin"),
    pytest.param("SELECT * { { ?x :a ?y } OVERLAPS { ?x :b ?z } }", ["RelationJoin OVERLAPS"], id="RelationJoin"),
    pytest.param("SELECT * { ?x :a ?y OPTIONAL { ?x :b ?z FILTER(?z > ?y) } }", ["LeftJoin ?z > ?y"], id="LeftJoin"),
    pytest.param("SELECT * { { ?x :a ?y } OPTIONALSEQ { ?x :b ?z } }", ["SeqRightJoin"], id="SeqRightJoin"),
    pytest.param("SELECT * { { ?x :a ?y } EQUALSOPTIONAL { ?x :b ?z } }", ["EqLeftJoin"], id="EqLeftJoin"),
    pytest.param("SELECT * { ?x :a ?y MINUS { ?x :b ?z } }", ["Minus"], id="Minus"),
    pytest.param("SELECT * { { ?x :a ?y } SEQ { ?x :b ?z } WITHIN 5 WITHOUT { ?x :c ?w } }", ["SeqWithout within PT5S"], id="SeqWithout"),
    pytest.param("SELECT * { { ?x :a ?y } AND { ?x :b ?z } WITHIN 5 WITHOUT { ?x :c ?w } }", ["JoinWithout within PT5S"], id="JoinWithout"),
    pytest.param("SELECT * { { ?x :a ?y } WITHOUT { ?x :c ?w } FOR 5 }", ["WithoutFor PT5S"], id="WithoutFor"),
    pytest.param("SELECT * { ?x (:a/^:b|:c)+ ?y }", ["Path ?x (<http://e/a>/^<http://e/b>|<http://e/c>)+ ?y"], id="Path"),
    pytest.param('SELECT * { VALUES (?x ?y) { (:a 1) (UNDEF "b") } ?x :a ?z }', ["Values ?x ?y: 2 rows"], id="Values"),
    pytest.param("SELECT * { GRAPH ?g { ?x :a ?y } }", ["Graph ?g"], id="Graph"),
    pytest.param(
        "SELECT ?y FROM NAMED WINDOW :w ON <s> [RANGE PT10S STEP PT5S] { WINDOW :w { ?x :a ?y } }",
        ["Select ?y RSTREAM window <http://e/w> on s of PT10S every PT5S", "InWindow <http://e/w>"],
        id="InWindow",
    ),
    pytest.param(
        'SELECT ?x (COUNT(*) AS ?n) (GROUP_CONCAT(DISTINCT ?y; SEPARATOR=",") AS ?all) { ?x :a ?y } GROUP BY ?x HAVING(SUM(?y) > 3) WINDOW [RANGE "PT1H" STEP "PT10M"]',
        ['Group by ?x over the last PT1H, every PT10M COUNT(*); GROUP_CONCAT(DISTINCT ?y; SEPARATOR=","); SUM(?y)', "Filter SUM(?y) > 3", "Extend ?n := COUNT(*)"],
        id="Group with a step",
    ),
    pytest.param("SELECT (MAX(?y) AS ?m) { ?x :a ?y } WINDOW [ROWS 3]", ["Group all in one group over the last 3 solutions MAX(?y)"], id="Group of rows"),
    pytest.param(
        "SELECT * { ?x :a ?y { SELECT DISTINCT ?x { ?x :b ?z } ORDER BY DESC(?z) ?x OFFSET 1 LIMIT 2 } }",
        ["SubSelect DISTINCT ?x ORDER BY DESC(?z), ?x OFFSET 1 LIMIT 2"],
        id="SubSelect",
    ),
    pytest.param("SELECT DISTINCT ?x { ?x :a ?y } ORDER BY ?y LIMIT 3", ["Select DISTINCT ?x ORDER BY ?y LIMIT 3"], id="Select"),
    pytest.param("CONSTRUCT { ?x :z ?y } INTO STREAM <o> { ?x :a ?y }", ["Construct ?x <http://e/z> ?y INTO STREAM <o>"], id="Construct"),
    pytest.param("ASK FROM :g FROM NAMED :h { ?x :a ?y }", ["Ask FROM <http://e/g> FROM NAMED <http://e/h>"], id="Ask"),
    pytest.param("CONSTRUCT { ?x :b ?y } INTO BACKGROUND :g { ?x :a ?y }", ["BackgroundRule ?x <http://e/b> ?y INTO BACKGROUND <http://e/g>"], id="BackgroundRule"),
    pytest.param("DESCRIBE ?x :c { ?x :a ?y }", ["Describe ?x <http://e/c>"], id="Describe"),
    pytest.param("#!etalis recent\nexceptionAlarm(d, X) <- a(X).", ["Alarm until _:alarm#1"], id="Alarm"),
    pytest.param("#!etalis recent\nd <- 7 seq a.", ["Instant 1970-01-01T00:00:07Z"], id="Instant"),
]  # fmt: skip
LINE = re.compile(
    r'flowchart BT|  classDef \w+ [-\w:#,]+|  (?P<box>\w+)\["[^"<>&]*(?:<br/>[^"<>&]*)*"\](?::::\w+)?|  (?P<source>\w+) --> (?P<target>\w+)'
)


def parsed(query: str) -> a.Query:
    return epsparql.parse(query if query.startswith("#!etalis") else PREFIXES + query).query


def explained(query: str) -> Explanation:
    return explain(parsed(query))


def words(query: a.Query) -> list[str]:
    return [f"{item.node} {item.detail}".rstrip() for item in Outliner.from_query(query).outline_query(query)]


@pytest.mark.parametrize(("query", "expected"), NODES)
def test_a_node_in_words(query: str, expected: list[str]) -> None:
    found = words(parsed(query))
    assert [line for line in expected if line not in found] == [], found


CHOICES = [
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } WITHIN 10", "recent", "SEQ recent on ?x within PT10S [latest of the left side kept until PT10S after its end, right side not stored]", id="recent"),
    pytest.param("{ ?x :a ?y } PAR { ?u :b ?z }", "chronological", "PAR chronological [unconsumed left side kept for ever, unserved right side kept for ever]", id="chronological"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } WITHOUT { ?x :c ?w }", "recent", "SEQ ... WITHOUT recent (absent: what agrees on ?x) on ?x [latest of the left side kept for ever, right side not stored, absent ones kept for ever]", id="WITHOUT"),
    pytest.param("{ ?x :a ?y } AND { ?x :b ?z }", "recent", "AND recent on ?x [latest of the left side kept for ever, latest of the right side kept for ever]", id="AND"),
    pytest.param("{ ?x :a ?y } AND { ?x :b ?z }", "recent-by ?z", "AND recent-by ?z on ?x [latest of the left side", id="by a variable"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z }", "recent-longest", "SEQ recent-longest on ?x [latest of the left side", id="the longest"),
    pytest.param("{ ?x :a ?y } { ?x :b ?z }", "recent", "AND on ?x [left side kept for ever (of a local node, for its entry), right side kept for ever (of a local node, for its entry)]", id="groups beside each other"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "policy", "line"), CHOICES)
def test_a_policy_in_words(pattern: str, policy: str, line: str) -> None:
    found = explain(parsed(f"SELECT * {{ {pattern} }}"), policy=policy)
    assert line in render_text(found)
    assert mermaid(found).startswith("flowchart BT")
    assert PlanDocument.model_validate(render_document(found))


def test_no_node_is_forgotten() -> None:
    found = {line.split()[0] for param in NODES for query in [str(param.values[0])] for line in words(parsed(query))}
    assert found == {kind.__name__ for kind in (*get_args(a.Pattern), *get_args(a.Query))}


@pytest.mark.parametrize(("query", "expected"), NODES)
def test_a_plan_in_every_format(query: str, expected: list[str]) -> None:
    found = explained(query)
    read = PlanDocument.model_validate_json(json.dumps(render_document(found)), strict=True)
    shown = render_text(found)
    assert all(line in shown for line in expected)
    assert f"partition key: {read.partition.key or 'none'}, because {read.partition.reason}" in shown
    for tree in (read.algebra, read.plan):
        assert {below for node in tree for below in node.inputs} == set(range(1, len(tree)))
    is_chart(mermaid(found), len(found.plan) + 1)


def is_chart(chart: str, boxes: int) -> None:
    """Check a chart against as much of mermaid's grammar as the charts use.

    Each line is one of these forms, and arrows lead from box to box.
    """
    lines = [LINE.fullmatch(line) for line in chart.splitlines()]
    assert all(lines), chart
    known = [line["box"] for line in lines if line is not None and line["box"]]
    ends = [line[end] for line in lines if line is not None and line["source"] for end in ("source", "target")]
    assert len(known) == len(set(known)) == boxes
    assert set(ends) <= set(known)


def test_a_path_that_goes_round() -> None:
    found = explained("SELECT * { ?x :a+ ?y }")
    feeds = [below for step in found.plan for below in step.inputs]
    assert len(feeds) > len(set(feeds)), "what is reached is what is gone on from"
    assert re.search(r"\(1\), as above", render_text(found))


def test_what_exists_finds_is_a_mark() -> None:
    steps = {step.operator: step for step in explained("SELECT * { ?x :a ?y FILTER(?y > 3 || EXISTS { ?x :b ?y }) }").plan}
    assert [each.condition for each in steps["filter"].filters] == ["?y > 3 || _:exists@1"]
    assert steps["EXISTS"].detail == "as _:exists@1"
    assert "MARK" in steps


def test_timeless_rows_are_shown() -> None:
    assert "rows 2, timeless, of the query itself" in render_text(explained("SELECT * { VALUES ?x { :a :b } ?x :a ?y }"))


def test_where_graphs_are_looked_for() -> None:
    assert "scan ?x <http://e/a> ?y of default in a graph as _:graph#0" in render_text(explained("SELECT * { GRAPH ?g { ?x :a ?y } }"))
    unnamed = explain(parsed("SELECT * { ?x :a ?y }"), "unnamed")
    assert "scan ?x <http://e/a> ?y of default in no graph" in render_text(unnamed)
    assert "scan ?x <http://e/a> ?y of default in <http://e/g>" in render_text(explained("SELECT * FROM :g { ?x :a ?y }"))


def test_what_only_a_background_would_feed_is_left_out() -> None:
    found = explained("SELECT * { GRAPH ?g { ?x :p ?y } ?x :q ?z } ORDER BY ?g LIMIT 3")
    assert [step.operator for step in found.plan] == ["SELECT", "ORDER BY", "AND", "take", "filter", "scan", "scan"]
    assert [len(step.inputs) for step in found.plan if step.operator == "AND"] == [2]
    assert found.unbounded == ("AND on ?x keeps its left side and right side for ever",)
    assert "ORDER BY ?g LIMIT 3 [rows kept for the instant]" in render_text(found)
    timeless = explained("SELECT * { GRAPH ?g { VALUES ?x { 1 } } }")
    assert [len(step.inputs) for step in timeless.plan if step.operator == "AND"] == [2, 2]


def test_what_would_be_markup_is_escaped() -> None:
    chart = mermaid(explained('SELECT * { ?x :a ?y FILTER(REGEX(?y, "<b>#&`\\"")) }'))
    assert "#quot;#lt;b#gt;#35;#amp;#96;" in chart


PUSHED = [
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } FILTER(?y > 3)", "?y > 3", ("filter", True), id="into an operand"),
    pytest.param("{ ?x :a ?y FILTER(?y > 3) } SEQ { ?x :b ?z }", "?y > 3", ("filter", False), id="where it is written"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } FILTER(?y > ?z)", "?y > ?z", ("SEQ", False), id="at the join that it is about"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } SEQ { ?x :c ?w } FILTER(?y > ?z)", "?y > ?z", ("SEQ", True), id="to the inner join"),
    pytest.param("?x :a ?y BIND(?y * 2 AS ?z) FILTER(?y > 3)", "?y > 3", ("filter", True), id="below BIND"),
    pytest.param("?x :a ?y BIND(?y * 2 AS ?z) FILTER(?z > 3)", "?z > 3", ("BIND", False), id="at BIND"),
]


@pytest.mark.parametrize(("pattern", "condition", "expected"), PUSHED)
def test_where_a_filter_stands(pattern: str, condition: str, expected: tuple[str, bool]) -> None:
    found = [
        (step.operator, each.pushed_down)
        for step in explained(f"SELECT * {{ {pattern} }}").plan
        for each in step.filters
        if each.condition == condition
    ]
    assert found == [expected]


def test_who_decides_a_filter() -> None:
    found = explained('SELECT * { ?x :a ?y FILTER(?y > 3) FILTER(REGEX(?y, "3")) ?x :b ?z FILTER(?z < 4) }').plan
    assert {each.condition: each.by for step in found for each in step.filters}["?z < 4"] == "kernel"
    assert {each.by for step in found for each in step.filters if "REGEX" in each.condition} == {"host"}


@pytest.mark.parametrize(("expression", "place"), [("?y + 1", "in the kernel"), ("ABS(?y)", "by the host")])
def test_where_a_bind_is_evaluated(expression: str, place: str) -> None:
    assert f"BIND of ?z as {expression} {place}" in render_text(explained(f"SELECT * {{ ?x :a ?y BIND({expression} AS ?z) }}"))


def test_windows_go_down_to_what_is_kept() -> None:
    outer, inner = [
        step for step in explained("SELECT * { { ?x :a ?y } SEQ { ?x :b ?z } SEQ { ?x :c ?w } WITHIN 10 }").plan if step.operator == "SEQ"
    ]
    assert outer.within is not None
    assert inner.within is not None
    assert (outer.within.duration, outer.within.pushed_down) == ("PT10S", False)
    assert (inner.within.duration, inner.within.pushed_down) == ("PT10S", True)
    assert {kept.side: kept.time for kept in inner.keeps} == {"left side": "kept until PT10S after its end", "right side": "not stored"}
    assert (outer.on, inner.on) == (("?x",), ("?x",))


PAIR, SHORT_PAIR, PLAIN = "{ { ?x :b ?z } SEQ { ?x :c ?w } }", "{ { ?x :b ?z } SEQ { ?x :c ?w } WITHIN 5 }", "{ ?x :a ?y }"
BOUNDS = [
    pytest.param(f"{PLAIN} EQUALSOPTIONAL {PAIR} WITHIN 5", f"{PLAIN} EQUALSOPTIONAL {SHORT_PAIR} WITHIN 5", id="into the group of EQUALSOPTIONAL"),
    pytest.param(f"{SHORT_PAIR} EQUALSOPTIONAL {PAIR}", f"{SHORT_PAIR} EQUALSOPTIONAL {SHORT_PAIR}", id="from its left side into its group"),
    pytest.param(f"{PLAIN} EQUALS {PAIR} WITHIN 5", f"{{ ?x :a ?y }} EQUALS {SHORT_PAIR} WITHIN 5", id="into both sides of EQUALS"),
    pytest.param(f"{{ SELECT DISTINCT ?x {PAIR} }} WITHIN 5", f"{{ SELECT DISTINCT ?x {SHORT_PAIR} }} WITHIN 5", id="through DISTINCT"),
    *(
        pytest.param(f"{PLAIN} {relation} {SHORT_PAIR}", f"{PLAIN} {relation} {SHORT_PAIR} WITHIN 5", id=f"on the left of {relation}")
        for relation in ("MEETS", "DURING", "STARTS", "OVERLAPS")
    ),
    pytest.param(f"{{ {PLAIN} WITHIN 5 }} PAR {{ {PLAIN} WITHIN 5 }}", f"{{ {PLAIN} WITHIN 5 }} PAR {{ {PLAIN} WITHIN 5 }} WITHIN 5", id="on both sides of PAR"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "by_hand"), BOUNDS)
def test_a_bound_keeps_as_much_as_one_by_hand(pattern: str, by_hand: str) -> None:
    found, expected = (
        [(step.operator, step.keeps) for step in explained(f"SELECT * {{ {text} }}").plan if step.keeps] for text in (pattern, by_hand)
    )
    assert found == expected
    assert not any(kept.time == "kept for ever" for _, keeps in found for kept in keeps)


OR_INSTANTS = "; if no event of its streams lasts, their setting instants: true bounds that"
UNBOUNDED = [
    pytest.param(
        f"{{ {PLAIN} OPTIONAL {PAIR} }} WITHIN 5",
        ["OPTIONAL on ?x keeps its right side for ever", "SEQ on ?x keeps its left side for ever"],
        id="a longer one counts",
    ),
    pytest.param(f"{PLAIN} FINISHES {PAIR}", ["SEQ on ?x keeps its left side for ever"], id="FINISHES"),
    pytest.param(f"{PAIR} DURING {SHORT_PAIR}", ["SEQ on ?x keeps its left side for ever"], id="what a timeless one would join"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z }", ["SEQ on ?x keeps its left side for ever"], id="SEQ"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } WITHIN 10", [], id="SEQ within"),
    pytest.param("?x :a ?y OPTIONAL { ?x :b ?z }", ["OPTIONAL on ?x keeps its right side for ever"], id="OPTIONAL"),
    pytest.param("{ ?x :a ?y } EQUALS { ?x :b ?z }", [], id="EQUALS"),
    pytest.param("{ ?x :a ?y } { ?x :b ?z }", ["AND on ?x keeps its left side and right side for ever"], id="AND"),
    pytest.param("{ SELECT ?x (SUM(?y) AS ?s) { ?x :a ?y } GROUP BY ?x }", ["GROUP keeps its groups for ever"], id="a group"),
    pytest.param('{ SELECT ?x (SUM(?y) AS ?s) { ?x :a ?y } GROUP BY ?x WINDOW [RANGE "PT9S"] }', [], id="a group with a window"),
    pytest.param("{ ?x :a ?y } SEQ { ?x :b ?z } WITHIN 9 WITHOUT { ?x :c ?w }", [], id="WITHOUT within"),
    pytest.param(
        "{ ?x :a ?y } AND { ?x :b ?z } WITHOUT { ?x :c ?w }",
        [f"AND ... WITHOUT on ?x keeps its left side and right side and absent ones for ever{OR_INSTANTS}"],
        id="AND ... WITHOUT",
    ),
]


@pytest.mark.parametrize(("pattern", "expected"), UNBOUNDED)
def test_what_is_kept_for_ever(pattern: str, expected: list[str]) -> None:
    found = explained(f"SELECT * {{ {pattern} }}")
    assert list(found.unbounded) == expected
    assert (":::unbounded" in mermaid(found)) == bool(expected)
    assert f"unbounded state: {'; '.join(expected) or 'none'}" in render_text(found)


def test_what_instants_bound() -> None:
    text = parsed("SELECT * { { ?x :a ?y } SEQ { ?x :a ?z } WITHOUT { ?x :a ?w } }")
    assert [each.endswith(OR_INSTANTS) for each in explain(text).unbounded] == [True]
    found = explain(text, declared=Declared(instants=True))
    assert found.unbounded == ()
    assert "[left side kept until an absent one has passed, absent ones kept for the instant]" in render_text(found)


PARTITIONS = [
    pytest.param("SELECT * { ?x :a ?y . ?x :b ?z }", "?x", "every triple pattern has it as its subject", id="subject"),
    pytest.param("SELECT * { ?z :a ?x . ?z :b ?x }", "?z", "subject", id="the subject before the object"),
    pytest.param("SELECT * { ?z :a ?x . :y :b ?x }", "?x", "every triple pattern has it as its object", id="object"),
    pytest.param("SELECT * { ?x :a ?y . ?y :b ?z }", None, "no variable stands at the same part", id="here subject and there object"),
    pytest.param("SELECT * { ?x :a ?y FILTER NOT EXISTS { ?z :b ?y } }", "?y", "object", id="also those of EXISTS"),
    pytest.param("SELECT * { ?x :a ?y FILTER EXISTS { ?y :b ?x } }", None, "no variable stands", id="EXISTS elsewhere"),
    pytest.param("SELECT * { { ?x :a ?y } UNION { ?z :b ?y } }", "?y", "object", id="UNION"),
    pytest.param("SELECT * { { ?x :a ?y } UNION { VALUES ?x { 1 } } }", None, "a branch of UNION leaves ?x open", id="a branch of VALUES"),
    pytest.param("SELECT * { ?x :a+ ?y }", None, "a property path", id="a path"),
    pytest.param("SELECT * { ?x ?p ?y }", None, "a variable, ?p, for its predicate", id="a variable predicate"),
    pytest.param("SELECT * { VALUES ?x { :a :b } ?x :a ?y }", "?x", "subject", id="VALUES demands nothing"),
    pytest.param("SELECT * { { VALUES ?y { 1 2 } } MINUS { ?x :a ?y } }", None, "what is decided on does not bind ?x", id="MINUS from VALUES"),
    pytest.param("SELECT * { BIND(1 AS ?x) }", None, "no triple pattern", id="no triples"),
    pytest.param("SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x", "?x", "subject", id="a key of groups"),
    pytest.param("SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x WINDOW [ROWS 3]", "?x", "subject", id="each group has its rows"),
    pytest.param("SELECT ?y (COUNT(*) AS ?n) { ?x :a ?y . ?x :b ?z } GROUP BY ?y", None, "a group gathers solutions", id="no key of groups"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?x :a ?y }", None, "one group of all", id="one group"),
    pytest.param("SELECT * { ?x :a ?y } LIMIT 3", None, "LIMIT", id="LIMIT"),
    pytest.param("SELECT DISTINCT ?y { ?x :a ?y }", "?y", "object", id="DISTINCT"),
    pytest.param("SELECT DISTINCT ?v { ?x :a ?y ; :b ?v }", None, "DISTINCT compares solutions that differ in ?x", id="DISTINCT without the key"),
    pytest.param("SELECT * { ?x :a ?y { SELECT ?x { ?x :b ?z } } }", "?x", "subject", id="a sub-SELECT"),
    pytest.param("SELECT * { ?z :a ?y { SELECT ?y { ?z :b ?y } } }", "?y", "object", id="a sub-SELECT has another variable of the same name"),
    pytest.param("SELECT * { ?z :a :b { SELECT ?y { ?z :b ?y } } }", None, "a sub-SELECT hides ?z", id="what a sub-SELECT hides"),
    pytest.param("ASK { ?x :a ?y }", None, "ASK", id="ASK"),
    pytest.param("DESCRIBE ?x { ?x :a ?y }", "?x", "subject", id="DESCRIBE"),
    pytest.param("CONSTRUCT { :c :d ?y } { ?x :a ?y ; :b ?z }", None, "CONSTRUCT gives each set of triples once", id="CONSTRUCT without the key"),
    pytest.param("SELECT * { GRAPH ?g { ?x :a ?y . ?y :b ?z } }", "?g", "every triple pattern has it as its graph", id="one graph"),
    pytest.param("SELECT * { GRAPH ?g { ?x :a ?y } ?x :b ?z }", "?x", "subject", id="in and out of a graph"),
    pytest.param("SELECT ?y FROM NAMED WINDOW :w ON <s> [RANGE PT9S STEP PT9S] { WINDOW :w { ?x :a ?y } }", None, "named windows", id="named windows"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "key", "reason"), PARTITIONS)
def test_the_partition_key(query: str, key: str | None, reason: str) -> None:
    found = partition(parsed(query))
    assert (None if found.key is None else str(found.key)) == key, found
    assert reason in found.reason


def test_a_group_of_a_thousand_triples() -> None:
    found = explained(f"SELECT ?x {{ {' '.join(f'?x :p{k} ?v{k} .' for k in range(1000))} }}")
    shown = render_text(found)
    run = shown[shown.index("plan\n") :].splitlines()
    assert (
        run[2]
        == "  └─ AND on ?x [left side kept for ever (of a local node, for its entry), right side kept for ever (of a local node, for its entry)], with each side in turn"
    )
    assert [line.split(" of ")[0] for line in run[3:1003]] == [f"     {'└' if k == 999 else '├'}─ scan ?x <http://e/p{k}> ?v{k}" for k in range(1000)]
    assert run[1003].startswith("partition key")
    assert len(PlanDocument.model_validate_json(json.dumps(render_document(found))).plan) == 2000
    is_chart(mermaid(found), 2001)


def test_a_union_is_no_further_side() -> None:
    shown = render_text(explained("SELECT * { { { ?x :a ?y } UNION { ?x :b ?y } } { ?x :c ?z } { ?x :d ?v } { ?x :e ?w } }"))
    assert re.findall(r"AND|each side in turn|/e/\w", shown[shown.index("plan\n") : shown.index("partition")]) == [
        "AND", "each side in turn", "AND", "/e/a", "/e/b", "/e/c", "/e/d", "/e/e",
    ]  # fmt: skip


def test_a_text_grows_as_its_plan_does() -> None:
    sizes = []
    for n in (200, 400):
        found = explained(f"SELECT * {{ ?a :b ({'1 ' * n}) }}")
        shown = render_text(found)
        sizes.append(len(shown) / len(found.plan))
        scans = sum(1 for step in found.plan if step.operator == "scan")
        assert (scans, len(re.findall(r"─ scan ", shown))) == (2 * n + 1, 2 * n + 1), "each is shown, and once"
        assert max(len(re.match("[ │├└─]*", line)[0]) for line in shown.splitlines()) <= 2 + 3 * DEEPEST  # type: ignore[index]  # it matches nothing too
        below, drawn = re.findall(r"\((\d+)\), below", shown), re.findall(r"(?m)^  \((\d+)\) AND", shown)
        assert below == drawn != [], "what is cut off follows"
    assert sizes[1] < 1.1 * sizes[0]


def test_what_is_too_long_is_cut() -> None:
    found = explained(f"PREFIX long: <http://e/{'x' * 5000}> SELECT * {{ {' '.join(f'?x long:p{k} ?v{k} .' for k in range(200))} }}")
    shown = render_text(found)
    assert shown.count("... cut after 250,000 characters; the JSON format has all of it") == 3, "the query, the algebra and the plan"
    assert len(shown) < 4 * LONGEST + 1000
    assert "partition key: ?x" in shown
    assert len(mermaid(found)) < 2 * LONGEST_BOX * len(found.plan)
    assert len(render_document(found)["plan"]) == 400


def test_rates_choose_a_shape_and_the_text_says_why() -> None:
    query = epsparql.parse(PREFIXES + "SELECT * { { ?s :a ?x } SEQ { ?s :b ?y } SEQ { ?s :c ?z } }").query
    common, rare = (
        {"http://e/a": 50_000, "http://e/b": 10_000, "http://e/c": 1_000},
        {"http://e/a": 1_000, "http://e/b": 10_000, "http://e/c": 50_000},
    )
    assert "shape: the chain of SEQs is joined from its end" in render_text(explain(query, rates=rates_given(common)))
    assert "shape: the chain of SEQs is joined as it is written" in render_text(explain(query, rates=rates_given(rare)))
    group = epsparql.parse(PREFIXES + "SELECT * { ?s :a ?x . ?s :b ?y }").query
    assert "shape: triple patterns of a group are joined from the rarest on" in render_text(explain(group, rates=rates_given(rare)))
    assert "shape:" not in render_text(explain(query))


def test_a_bushy_shape_is_shown() -> None:
    query = epsparql.parse(PREFIXES + "SELECT * { {?s :a ?w} SEQ {?s :b ?x} SEQ {?s :c ?y} SEQ {?s :d ?z} WITHIN 10 }").query
    shown = render_text(explain(query, rates=rates_given({f"http://e/{name}": 10_000 for name in "abcd"})))
    assert "shape: the chain of SEQs is joined as {1 SEQ 2} SEQ {3 SEQ 4}, because" in shown
    plan = shown[shown.index("plan\n") : shown.index("partition")]
    assert re.findall(r"SEQ|/e/\w", plan) == ["SEQ", "SEQ", "/e/a", "/e/b", "SEQ", "/e/c", "/e/d"]


FACTS = [
    *((Iri(f"http://e/s{k}"), Iri("http://e/in"), Iri(f"http://e/room{k % 1000}"), None) for k in range(1001)),
    *((Iri(f"http://e/room{k}"), Iri("http://e/on"), Iri(f"http://e/floor{k % 10}"), None) for k in range(1000)),
    *((Iri(f"http://e/room{k}"), Iri("http://e/near"), Iri(f"http://e/room{k + 1}"), None) for k in range(1001)),
]


@pytest.mark.parametrize(
    ("pattern", "reads"),
    [
        pytest.param("?s :reading ?v", set(), id="nothing"),
        pytest.param("?s :reading ?v . ?r :on ?f", {("?r <http://e/on> ?f", 1000, "copied")}, id="a little"),
        pytest.param("?s :reading ?v . ?s :in ?r", {("?s <http://e/in> ?r", 1001, "looked up")}, id="much"),
        pytest.param(
            "?s :reading ?v OPTIONAL { ?s :in ?r . ?r :on ?f }",
            {("?s <http://e/in> ?r", 1001, "looked up"), ("?r <http://e/on> ?f", 1000, "looked up")},
            id="a group that is held against what is decided",
        ),
        pytest.param("?r :reading ?v . ?r :near+ ?t", {("[] <http://e/near> []", 1001, use) for use in ("looked up", "waiting")}, id="a path"),
        pytest.param("?x :near+ ?y", {("[] <http://e/near> []", 1001, "copied")}, id="a path of which neither end is known"),
    ],
)
def test_what_is_read_of_a_background_is_told(pattern: str, reads: set[tuple[str, int, str]]) -> None:
    query = parsed(f"SELECT * {{ {pattern} }}")
    found = explain(query, reads=reads_over(FACTS, query))
    assert {(read.pattern, read.triples, read.use) for read in found.reads} == reads
    assert {(each["pattern"], each["triples"], each["use"]) for each in render_document(found)["background"]} == reads
    lines = render_text(found).partition("\nbackground\n")[2].splitlines()
    assert len(lines) == len(reads)
    assert all(any(line.startswith(f"  {name}: {n:,} triples, ") for line in lines) for name, n, _ in reads)


RUN_QUERIES = [
    pytest.param("SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x WINDOW [RUN WHILE (?y > AVG(?y)) GAP PT1H]", False, id="an aggregate in WHILE"),
    pytest.param("SELECT ?x (LAST(?y) AS ?l) { ?x :a ?y } GROUP BY ?x HAVING (COUNT(*) > 1) WINDOW [SESSION PT1H CLOSED]", False, id="HAVING"),
    pytest.param(
        "SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x WINDOW [RUN WHILE (FLOOR(AVG(?y)) = 1)]", True, id="a function of an aggregate"
    ),
    pytest.param("SELECT ?x (COUNT(DISTINCT ?y) AS ?n) { ?x :a ?y } GROUP BY ?x WINDOW [SESSION PT1H]", True, id="DISTINCT"),
    pytest.param("CONSTRUCT { ?x :z ?n } { SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x WINDOW [SESSION PT1H] }", True, id="a rule"),
    pytest.param("SELECT * { { SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x WINDOW [SESSION PT1H] } SEQ { ?x :b ?z } }", True, id="a chain"),
]


@pytest.mark.parametrize(("query", "on_host"), RUN_QUERIES)
def test_a_plan_says_where_runs_are_decided(query: str, on_host: bool) -> None:
    line = next(line for line in render_text(explained(query)).splitlines() if "RUN " in line and "open runs" in line)
    assert ("instant by instant on the host: about 10,000 events/s" in line) == on_host
