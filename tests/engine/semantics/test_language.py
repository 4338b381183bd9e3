"""The language beyond the operators, a table a construct: answers derived by hand from semantics.md, of the engine
and of the reference evaluator.

Rows are written as in tests/support/feeds.py: `a=1,s=x@1-2` is a solution on [1 s, 2 s].
"""

import pytest

from tests.reference.evaluator import Settings
from tests.support.feeds import PREFIXES, parse_facts, parse_feed, shown
from tests.support.run_both import Runner, run_engine, run_oracle

both = pytest.mark.parametrize("run", [run_oracle, run_engine])


def answers(run: Runner, query: str, feed: str, facts: str, settings: Settings | None = None) -> list[str]:
    results = run({"q": PREFIXES + query}, {"default": parse_feed(feed)}, parse_facts(facts), {"q": settings or Settings()})
    return shown(results["q"])


PATHS = [
    pytest.param("?x :p+ ?y", "p(a,b)@1 p(b,c)@3", "", "x=a,y=b@1 x=a,y=c@1-3 x=b,y=c@3", id="the interval spans the path"),
    pytest.param("?x :p+ ?y", "p(b,c)@1 p(a,b)@3", "", "x=a,y=b@3 x=a,y=c@1-3 x=b,y=c@1", id="no order is implied"),
    pytest.param(
        "?x :p+ ?y", "p(a,b)@1 p(b,a)@2", "", "x=a,y=a@1-2 x=a,y=b@1 x=a,y=b@1-2 x=b,y=a@1-2 x=b,y=a@2 x=b,y=b@1-2", id="round a cycle"
    ),
    pytest.param("?x :p+ ?y", "p(a,b)@5", "p(b,c)", "x=a,y=b@5 x=a,y=c@5 x=b,y=c@5", id="through the background"),
    pytest.param(":a :p* ?y", "X@1 p(a,b)@2", "", "y=a@1 y=b@2", id="zero length from a constant is timeless"),
    pytest.param("?x :p* :b", "X@1 p(a,b)@2", "", "x=a@2 x=b@1", id="zero length to a constant is timeless"),
    pytest.param(":a :p* :b", "p(a,c)@1 p(c,b)@2", "", "@1-2", id="between different constants there is no zero length"),
    pytest.param(":a :p* :a", "X@7", "", "@7", id="a constant to itself"),
    pytest.param("?x :p* ?x", "p(a,a)@3", "", "x=a@3", id="one variable at both ends"),
    pytest.param(
        "?x :p? ?y",
        "p(a,b)@2 q(c,d)@3-4",
        "",
        "x=a,y=a@2 x=a,y=b@2 x=b,y=b@2 x=c,y=c@3-4 x=d,y=d@3-4",
        id="zero length between variables takes each occurrence's interval",
    ),
    pytest.param("?x :p? ?y FILTER(?x IN (:a, :c))", "X@1 q(a,b)@3", "k(c,d)", "x=a,y=a@3 x=c,y=c@1", id="nodes of the background are timeless"),
    pytest.param("?x :p/:q ?y", "p(a,b)@1 q(b,c)@2 p(a,d)@1 q(d,c)@2", "", "x=a,y=c@1-2 x=a,y=c@1-2", id="inner nodes are hidden variables"),
    pytest.param("?x (:p/:q)|:r ?y", "p(a,b)@1 q(b,c)@2 p(a,d)@1 q(d,c)@2 r(a,c)@2", "", "x=a,y=c@1-2 x=a,y=c@1-2 x=a,y=c@2", id="so they are in an alternative"),
    pytest.param("?x :r|^(:p/:q) ?y", "p(a,b)@1 q(b,c)@2 p(a,d)@1 q(d,c)@2", "", "x=c,y=a@1-2 x=c,y=a@1-2", id="in the inverse of an alternative"),
    pytest.param("?x :k/((:p/:q)|(:r|(:p/:q))) ?y", "k(z,a)@1 p(a,b)@1 q(b,c)@2", "", "x=z,y=c@1-2 x=z,y=c@1-2", id="in each alternative"),
    pytest.param("?x (:p|:r)|(:p/:q*) ?y", "p(a,b)@1 r(a,b)@1", "", "x=a,y=b@1 x=a,y=b@1", id="one is a link, the other is a walk of one step"),
    pytest.param("?x ((:p/:q)|:r)? ?y FILTER(?x != ?y)", "p(a,b)@1 q(b,c)@2 p(a,d)@1 q(d,c)@2", "", "x=a,y=c@1-2", id="a path that may be left out is a set"),
    pytest.param("?x :r|:p ?y", "p(a,b)@1 r(a,b)@1", "", "x=a,y=b@1", id="equal branches give one"),
    pytest.param("?x (:p/:q)+ ?y", "p(a,b)@1 q(b,c)@2 p(a,d)@1 q(d,c)@2", "", "x=a,y=c@1-2", id="a path is a set"),
    pytest.param("?x (:p?/:q)+ ?y", "X(a,z)@1 q(a,b)@5", "", "x=a,y=b@5", id="an empty step inside a walk takes no time"),
    pytest.param("?x (:p|^:q)+ ?y", "p(a,b)@1 q(c,b)@2", "", "x=a,y=b@1 x=a,y=c@1-2 x=b,y=c@2", id="alternatives and inverses"),
    pytest.param("?x ^(:p+) ?y", "p(a,b)@1", "", "x=b,y=a@1", id="inverse of a fixpoint"),
    pytest.param("?x !:p ?y", "p(a,b)@1 q(c,d)@2", "", "x=c,y=d@2", id="negated, forward"),
    pytest.param("?x !^:p ?y", "p(a,b)@1 q(c,d)@2", "", "x=d,y=c@2", id="negated, backward"),
    pytest.param(
        "?x !(:p|^:q) ?y", "p(a,b)@1 q(c,d)@2 r(e,f)@3", "", "x=b,y=a@1 x=c,y=d@2 x=e,y=f@3 x=f,y=e@3", id="negated, both ways"
    ),
    pytest.param("{ ?x :p+ ?y } SEQ { ?y :q ?z }", "p(a,b)@1 p(b,c)@3 q(c,d)@4 q(b,d)@1", "", "x=a,y=c,z=d@1-4 x=b,y=c,z=d@3-4", id="in a SEQ"),
    pytest.param("?s :A ?a OPTIONAL { ?s :p+ ?y }", "A(a,1)@1 p(a,b)@1 p(b,c)@2 A(a,1)@3", "", "a=1,s=a,y=b@1 a=1,s=a,y=b@1-3 a=1,s=a,y=c@1-3", id="in an OPTIONAL"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "facts", "expected"), PATHS)
def test_path(run: Runner, pattern: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, f"SELECT * WHERE {{ {pattern} }}", feed, facts) == sorted(expected.split())


VALUES = [
    pytest.param("VALUES ?x { 1 1 }", "X@3", "", "x=1@3 x=1@3", id="equal rows stay apart and are timeless"),
    pytest.param("{ ?s :A ?a } VALUES ?a { 1 UNDEF }", "A(1)@1 A(2)@2", "", "a=1,s=s@1 a=1,s=s@1 a=2,s=s@2", id="UNDEF"),
    pytest.param("{ VALUES ?x { 1 } } SEQ { ?s :A ?a }", "A@2", "", "a=o,s=s,x=1@2", id="none satisfies every relation"),
    pytest.param("VALUES (?s ?a) { (:s 1) (:t 2) } ?s :A ?a", "A(1)@1 A(t,1)@2 A(t,2)@3", "", "a=1,s=s@1 a=2,s=t@3", id="rows of several"),
    pytest.param("?s :A ?a MINUS { VALUES ?a { 1 } }", "A(1)@1 A(2)@2", "", "a=2,s=s@2", id="subtracted"),
    pytest.param("?s :A ?a OPTIONAL { VALUES (?a ?b) { (1 5) } }", "A(1)@1 A(2)@2", "", "a=1,b=5,s=s@1 a=2,s=s@2", id="optional"),
    pytest.param("VALUES ?x { }", "A@1", "", "", id="no rows"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "facts", "expected"), VALUES)
def test_values(run: Runner, pattern: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, f"SELECT * WHERE {{ {pattern} }}", feed, facts) == sorted(expected.split())


USUAL, UNNAMED = Settings(), Settings(default_graph="unnamed")
GRAPHS = [
    pytest.param("SELECT * { GRAPH ?g { ?s :A ?a } }", USUAL, "g/A(1)@1 A(2)@2 h/A(3)@3", "", "a=1,g=g,s=s@1 a=3,g=h,s=s@3", id="event graphs"),
    pytest.param("SELECT * { GRAPH :g { ?s :A ?a } }", USUAL, "g/A(1)@1 A(2)@2 h/A(3)@3", "", "a=1,s=s@1", id="one graph"),
    pytest.param("SELECT * { GRAPH :n { ?s :A ?a } }", USUAL, "g/A(1)@1", "", "", id="no such graph"),
    pytest.param("SELECT ?g { GRAPH ?g { ?s :A ?a . ?s :B ?b } }", USUAL, "g/A@1 h/B@2 g/B@3", "", "g=g@1-3", id="all triples of one graph, across messages"),
    pytest.param("SELECT ?s ?a { ?s :A ?a }", USUAL, "g/A(1)@1 A(1)@1 h/A(1)@2", "", "a=1,s=s@1 a=1,s=s@2", id="plain patterns look through all"),
    pytest.param("SELECT ?a { ?s :A ?a }", UNNAMED, "g/A(1)@1 A(2)@2", "h/A(3)", "a=2@2", id="unnamed: plain patterns see no graph"),
    pytest.param("SELECT ?a { GRAPH ?g { ?s :A ?a } }", UNNAMED, "g/A(1)@1 A(2)@2", "h/A(3)", "a=1@1 a=3@1", id="unnamed: GRAPH sees all"),
    pytest.param("SELECT * { GRAPH ?g { VALUES ?x { 1 } } }", USUAL, "g/A@1 g/B@2-3 X@4", "", "g=g,x=1@1 g=g,x=1@2-3", id="a timeless one in an event graph"),
    pytest.param("SELECT * { GRAPH ?g { } }", USUAL, "X@1 g/A@2", "h/K", "g=g@2 g=h@1", id="the empty group names the graphs"),
    pytest.param("SELECT ?k { GRAPH :g { ?s :K ?k } }", USUAL, "X@5", "g/K(1) K(2)", "k=1@5", id="a background graph is timeless"),
    pytest.param("SELECT ?g ?a ?k { GRAPH ?g { ?s :A ?a . ?s :K ?k } }", USUAL, "g/A(1)@5 h/A(2)@6", "g/K(1)", "a=1,g=g,k=1@5", id="both in one graph"),
    pytest.param("SELECT ?a FROM :g { ?s :A ?a }", USUAL, "g/A(1)@1 h/A(2)@2 A(3)@3", "g/A(4)", "a=1@1 a=4@1", id="FROM"),
    pytest.param("SELECT ?a FROM :g FROM :h { ?s :A ?a }", USUAL, "g/A(1)@1 h/A(2)@2 A(3)@3", "", "a=1@1 a=2@2", id="FROM merges"),
    pytest.param("SELECT ?a FROM :g { GRAPH ?x { ?s :A ?a } }", USUAL, "g/A(1)@1 h/A(2)@2", "", "", id="FROM alone leaves GRAPH nothing"),
    pytest.param("SELECT ?a FROM NAMED :g { GRAPH ?x { ?s :A ?a } }", USUAL, "g/A(1)@1 h/A(2)@2", "", "a=1@1", id="FROM NAMED"),
    pytest.param("SELECT ?a FROM NAMED :g { GRAPH :g { ?s :A ?a } }", USUAL, "g/A(1)@1 h/A(2)@2", "", "a=1@1", id="GRAPH with a name of FROM NAMED"),
    pytest.param("SELECT ?a FROM NAMED :g { GRAPH :h { ?s :A ?a } }", USUAL, "g/A(1)@1 h/A(2)@2", "", "", id="GRAPH with another name"),
    pytest.param("SELECT ?a FROM NAMED :g { ?s :A ?a }", USUAL, "g/A(1)@1 A(2)@2", "", "", id="FROM NAMED alone leaves plain patterns nothing"),
    pytest.param("SELECT ?g ?y { GRAPH ?g { :a :p* ?y } }", USUAL, "X@1 g/p(a,b)@2 h/q(c,d)@3", "", "g=g,y=a@2 g=g,y=b@2 g=h,y=a@3", id="zero length in a graph"),
    pytest.param("SELECT ?g ?y { GRAPH ?g { ?x :p+ ?y } }", USUAL, "g/p(a,b)@1 h/p(b,c)@2", "", "g=g,y=b@1 g=h,y=c@2", id="a path stays in its graph"),
    pytest.param("SELECT ?g ?a { GRAPH ?g { ?s :A ?a FILTER NOT EXISTS { ?s :B ?b } } }", USUAL, "h/B@1 g/A(1)@2 g/B@3 g/A(2)@4", "", "a=1,g=g@2", id="EXISTS looks in the same graph"),
    pytest.param("SELECT ?a { ?s :A ?a FILTER EXISTS { GRAPH ?g { ?s :B ?b } } }", USUAL, "B@1 A(1)@2 g/B@3 A(2)@4", "", "a=2@4", id="GRAPH in EXISTS"),
    pytest.param("SELECT ?g ?n { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :A ?a } } }", USUAL, "X@1 g/B@2 g/A@3", "", "g=g,n=0@2 g=g,n=1@3", id="the one group of each graph exists from its first instant"),
    pytest.param("SELECT ?g ?h { GRAPH ?g { ?s :A ?a } GRAPH ?h { ?s :B ?b } }", USUAL, "g/A@1 h/B@2", "", "g=g,h=h@1-2", id="two graphs"),
    pytest.param("SELECT ?g { GRAPH ?g { ?g :A ?a } }", USUAL, "g/A(g,1)@1 g/A(h,1)@2", "", "g=g@1", id="the graph's name as a subject"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("query", "settings", "feed", "facts", "expected"), GRAPHS)
def test_graph(run: Runner, query: str, settings: Settings, feed: str, facts: str, expected: str) -> None:
    assert answers(run, query, feed, facts, settings) == sorted(expected.split())


COUNTS = "SELECT ?s (COUNT(*) AS ?n) { ?s :A ?a } GROUP BY ?s"
TOTAL = "SELECT (SUM(?a) AS ?t) { ?s :A ?a }"
MIXED = 'A(1)@1 A(1.0)@1 A("x")@1'
GROUPS = [
    pytest.param(COUNTS, "A(x,1)@1 A(y,1)@2 A(x,2)@3", "", "n=1,s=x@1 n=1,s=y@2 n=2,s=x@1-3", id="each group when it gains a solution"),
    pytest.param(COUNTS, "A(x,1)@1 A(x,2)@1", "", "n=2,s=x@1", id="once an instant"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a }", "X@1 A(1)@2 A(2)@2", "", "n=0@1 n=2@2", id="the one group reports at t0 though empty"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a } WINDOW [RANGE 'PT2S']", "X@1 A(1)@2", "", "n=0@1 n=1@2", id="with RANGE, too"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a } WINDOW [ROWS 2]", "X@1 A(1)@2", "", "n=0@1 n=1@2", id="with ROWS, too"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a } WINDOW [RANGE 'PT2S' STEP 'PT2S']", "X@1 A(1)@3", "", "n=1@2-4", id="with STEP it reports only if it has a solution"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a } WINDOW [SESSION 'PT2S']", "X@1 A(1)@3", "", "n=1@3", id="and with a session"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a }", "A(1)@1", "", "n=1@1", id="the one group at t0"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a }", "", "", "n=0@0", id="an empty finished stream"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a }", "A(1)@1-3 A(2)@2", "", "n=1@2 n=2@1-3", id="the least start"),
    pytest.param("SELECT (COUNT(*) AS ?n) { { ?s :A ?a } UNION { ?s :K ?a } }", "X@4 A(2)@5", "K(1)", "n=1@4 n=2@4-5", id="a timeless solution stands at t0"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a }", "A(1)@4", "A(1)", "n=1@4", id="an equal timed solution is the same one"),
    pytest.param("SELECT (COUNT(*) AS ?n) { { ?s :A ?a } UNION { ?s :A ?a } }", "A(1)@4", "", "n=1@4", id="what two operands find is the same one"),
    pytest.param(f"{TOTAL} WINDOW [RANGE 'PT2S']", "A(1)@1 A(2)@2 A(4)@3", "", "t=1@1 t=3@1-2 t=6@2-3", id="RANGE is open at its start"),
    pytest.param(f"{TOTAL} WINDOW [ROWS 2]", "A(1)@1 A(2)@2 A(4)@3", "", "t=1@1 t=3@1-2 t=6@2-3", id="ROWS"),
    pytest.param(f"{TOTAL} WINDOW [ROWS 2]", "A(1)@1 A(2)@1 A(4)@1", "", "t=6@1", id="ROWS takes the last by terms"),
    pytest.param(f"{TOTAL} WINDOW [ROWS 2]", "A(1)@1-3 A(2)@2-3 A(4)@3", "", "t=6@2-3", id="ROWS takes the last by start"),
    pytest.param(f"{TOTAL} WINDOW [RANGE 'PT4S' STEP 'PT2S']", "A(1)@1 A(2)@3", "", "t=1@-2-2 t=3@0-4 t=2@2-6", id="STEP, and after the end while the window holds something"),
    pytest.param(f"{TOTAL} WINDOW [RANGE 'PT1S' STEP 'PT2S']", "A(1)@1 A(2)@2 A(4)@7", "", "t=2@1-2", id="STEP passes over what lies between its windows"),
    pytest.param("SELECT ?s (COUNT(*) AS ?n) { ?s :A ?a } GROUP BY ?s WINDOW [RANGE 'PT2S' STEP 'PT2S']", "A(x,1)@1 A(y,1)@3", "", "n=1,s=x@0-2 n=1,s=y@2-4", id="STEP reports the groups that are not empty"),
    pytest.param(f"{COUNTS} HAVING (COUNT(*) > 1)", "A(x,1)@1 A(y,1)@2 A(x,2)@3", "", "n=2,s=x@1-3", id="HAVING"),
    pytest.param("SELECT ?k (COUNT(*) AS ?n) { ?s :A ?a } GROUP BY (?a > 1 AS ?k)", "A(1)@1 A(2)@2 A(3)@3", "", "k=false,n=1@1 k=true,n=1@2 k=true,n=2@2-3", id="a key that is an expression"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A ?a } GROUP BY (?a > 1)", "A(1)@1 A(2)@2 A(3)@3", "", "n=1@1 n=1@2 n=2@2-3", id="a key without a name"),
    pytest.param("SELECT ?b (COUNT(*) AS ?n) { ?s :A ?a OPTIONAL { ?a :B ?b } } GROUP BY ?b", "A(x)@1 B(y,1)@1 A(y)@2", "", "n=1@1 b=1,n=1@1-2", id="an unbound key is a group of its own"),
    pytest.param("SELECT (COUNT(?a) AS ?n) { ?s :A ?a }", MIXED, "", "n=3@1", id="COUNT of bound ones"),
    pytest.param("SELECT (COUNT(?a + 0) AS ?n) { ?s :A ?a }", MIXED, "", "n=2@1", id="COUNT leaves out errors"),
    pytest.param("SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s :A ?a }", MIXED, "", "n=1@1", id="COUNT DISTINCT"),
    pytest.param("SELECT (COUNT(DISTINCT *) AS ?n) { ?s :A [] }", MIXED, "", "n=1@1", id="COUNT DISTINCT * sees visible variables"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :A [] }", MIXED, "", "n=3@1", id="COUNT * counts what hidden variables tell apart"),
    pytest.param("SELECT (MIN(?a) AS ?n) { ?s :A ?a }", MIXED, "", "n=1@1", id="MIN takes the first of equals"),
    pytest.param("SELECT (MAX(?a) AS ?n) { ?s :A ?a }", MIXED, "", 'n="x"@1', id="MAX: strings come after numbers"),
    pytest.param("SELECT (SUM(?a) AS ?n) { ?s :A ?a }", MIXED, "", "@1", id="SUM with an error is an error"),
    pytest.param("SELECT (SAMPLE(?a) AS ?n) { ?s :A ?a }", MIXED, "", "n=1@1", id="SAMPLE takes the first"),
    pytest.param("SELECT (GROUP_CONCAT(?a; SEPARATOR=',') AS ?n) { ?s :A ?a }", MIXED, "", 'n="1,1.0,x"@1', id="GROUP_CONCAT in order"),
    pytest.param("SELECT (AVG(?a) AS ?n) { ?s :A ?a }", "A(1)@1 A(2)@1", "", "n=1.5@1", id="AVG"),
    pytest.param("SELECT (AVG(?a) AS ?n) (MIN(?a) AS ?m) (GROUP_CONCAT(?a) AS ?c) (SUM(?a) AS ?t) { ?s :A ?a }", "X@1", "", 'c="",n=0,t=0@1', id="of nothing"),
    pytest.param("SELECT (SUM(DISTINCT ?a) AS ?n) { ?s :A ?a }", "A(x,2)@1 A(y,2)@1 A(z,3)@1", "", "n=5@1", id="SUM DISTINCT"),
    pytest.param("SELECT (SUM(?a) / COUNT(*) AS ?n) { ?s :A ?a }", "A(1)@1 A(2)@1", "", "n=1.5@1", id="expressions of aggregates"),
    pytest.param("SELECT (SUM(?a * 2) AS ?n) { ?s :A ?a }", "A(1)@1 A(2)@2", "", "n=2@1 n=6@1-2", id="an aggregate of an expression"),
    pytest.param("SELECT ?n { { SELECT (COUNT(*) AS ?n) { ?s :A ?a } } { ?s :B ?b } }", "X@1 A@2 B@3", "", "n=0@1-3 n=1@2-3", id="reports of a sub-SELECT are timed solutions"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("query", "feed", "facts", "expected"), GROUPS)
def test_group(run: Runner, query: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, query, feed, facts) == sorted(expected.split())


ORDERED = [
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY DESC(?a)", "A(1)@1 A(3)@1 A(2)@2", "", "a=3@1 a=1@1 a=2@2", id="within one instant"),
    pytest.param("SELECT ?s ?a { ?s :A ?a } ORDER BY ?a DESC(?s)", "A(x,1)@1 A(y,1)@1 A(z,0)@1", "", "a=0,s=z@1 a=1,s=y@1 a=1,s=x@1", id="the next comparator"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY ?a", 'A("x")@1 A(o)@1 A(10)@1 A(9.5)@1', "", 'a=o@1 a=9.5@1 a=10@1 a="x"@1', id="IRIs, numbers by value, strings"),
    pytest.param("SELECT ?a ?b { ?s :A ?a OPTIONAL { ?s :B ?b } } ORDER BY ?b", "A(x,1)@1 A(y,2)@1 B(x,5)@1", "", "a=2@1 a=1,b=5@1", id="unbound first"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY ?s", "A(y,1)@1 A(x,2)@1", "", "a=2@1 a=1@1", id="by what is not projected"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY ?a LIMIT 2", "A(3)@1 A(2)@1 A(1)@2 A(0)@3", "", "a=2@1 a=3@1", id="LIMIT counts from the start"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY ?a LIMIT 2 OFFSET 1", "A(3)@1 A(2)@1 A(1)@2 A(0)@3", "", "a=3@1 a=1@2", id="OFFSET"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY ?a LIMIT 0", "A(3)@1", "", "", id="LIMIT 0"),
    pytest.param("SELECT DISTINCT ?s { ?s :A ?a } ORDER BY ?a LIMIT 2", "A(x,1)@1 A(x,2)@1 A(y,3)@1", "", "s=x@1 s=y@1", id="DISTINCT before LIMIT"),
    pytest.param("SELECT DISTINCT ?a { ?s :A ?a } LIMIT 2", "A(x,1)@1 A(x,2)@2", "A(y,1)", "a=1@1 a=2@2", id="DISTINCT: a timeless one stands at t0"),
    pytest.param("SELECT DISTINCT ?n ?a { ?s :A ?a } ORDER BY ?a", "A(2)@1 A(1)@1", "", "a=1@1 a=2@1", id="a projected variable that is never bound"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY DESC(getSTARTTIME())", "A(1)@1-3 A(2)@2-3", "", "a=2@2-3 a=1@1-3", id="by the interval"),
    pytest.param("SELECT ?a { ?s :A ?a } ORDER BY (!EXISTS { ?s :B ?b })", "A(x,1)@1 A(y,2)@1 B(y,1)@1", "", "a=2@1 a=1@1", id="by EXISTS"),
    pytest.param(
        "SELECT ?s (COUNT(*) AS ?n) { ?s :A ?a } GROUP BY ?s WINDOW [RANGE 'PT4S' STEP 'PT2S'] ORDER BY DESC(?n) LIMIT 1",
        "A(x,1)@1 A(y,1)@1 A(y,2)@2 A(x,2)@3 A(x,3)@3", "", "n=2,s=y@-2-2 n=3,s=x@0-4 n=2,s=x@2-6", id="top-k of each window",
    ),
    pytest.param("SELECT ?s { ?s :A ?a } GROUP BY ?s WINDOW [ROWS 9] ORDER BY DESC(COUNT(*)) LIMIT 1", "A(x,1)@1 A(x,2)@2 A(y,1)@2 A(y,2)@3", "", "s=x@1 s=x@1-2 s=y@2-3", id="LIMIT is per instant with ROWS too"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("query", "feed", "facts", "expected"), ORDERED)
def test_order(run: Runner, query: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, query, feed, facts) == expected.split()


SUB_SELECTS = [
    pytest.param("{ SELECT ?s { ?s :A ?a } }", "A(x,1)@1 A(x,2)@1", "", "s=x@1 s=x@1", id="rows stay apart"),
    pytest.param("{ SELECT DISTINCT ?s { ?s :A ?a } }", "A(x,1)@1 A(x,2)@1", "", "s=x@1", id="DISTINCT"),
    pytest.param("{ SELECT ?s { ?s :A ?a } } { ?s :B ?a }", "A(x,1)@1 B(x,2)@2", "", "a=2,s=x@1-2", id="what is not projected is another variable"),
    pytest.param("{ SELECT ?a { ?s :A ?a } ORDER BY DESC(?a) LIMIT 1 }", "A(1)@1 A(3)@1 A(5)@2", "", "a=3@1", id="LIMIT: the first instant decides"),
    pytest.param("{ SELECT ?a { ?s :A ?a } ORDER BY DESC(?a) OFFSET 1 LIMIT 1 }", "A(1)@1 A(3)@1 A(5)@2", "", "a=1@1", id="OFFSET"),
    pytest.param("{ SELECT ?x { VALUES ?x { 1 2 } } ORDER BY DESC(?x) LIMIT 1 } { ?s :A ?a }", "X@1 A@5", "", "a=o,s=s,x=2@5", id="timeless rows stay timeless"),
    pytest.param("{ SELECT ?s (MAX(?a) AS ?m) { ?s :A ?a } GROUP BY ?s } FILTER(?m > 1)", "A(x,1)@1 A(x,2)@2", "", "m=2,s=x@1-2", id="aggregates inside"),
    pytest.param("{ SELECT ?s (COUNT(DISTINCT *) AS ?n) { ?s :A ?a } GROUP BY ?s } UNION { ?s :B ?b }", "A(1)@1 A(2)@1", "", "n=2,s=s@1", id="COUNT DISTINCT * sees what is not projected"),
    pytest.param("{ ?s :A ?a } SEQ { SELECT ?s { ?s :B ?b } }", "A(x,1)@1 B(x,2)@2 B(y,1)@3", "", "a=1,s=x@1-2", id="as an operand"),
    pytest.param("{ ?s :A ?a } FILTER EXISTS { SELECT ?s { ?s :B ?a } }", "B(x,2)@1 A(x,1)@2", "", "a=1,s=x@2", id="in EXISTS only what is projected is substituted"),
    pytest.param("{ ?s :A ?a } MINUS { SELECT ?s { ?s :B ?b } }", "A(x,1)@1 B(x,2)@2 A(x,1)@3 A(y,1)@3", "", "a=1,s=x@1 a=1,s=y@3", id="in MINUS"),
    pytest.param("{ SELECT ?a { ?s :A ?a MINUS { ?s :B ?b } } } SEQ { ?t :C ?c }", "A(x,1)@1 A(y,2)@1 B(x,2)@1 C(z,3)@2", "", "a=2,c=3,t=z@1-2", id="MINUS over what it hides"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "facts", "expected"), SUB_SELECTS)
def test_sub_select(run: Runner, pattern: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, f"SELECT * WHERE {{ {pattern} }}", feed, facts) == sorted(expected.split())


EXISTS = [
    pytest.param("?s :A ?a FILTER(EXISTS { ?s :B ?b } || ?a = 1)", "A(1)@1 A(2)@1 A(2)@2 B@2 A(2)@3", "", "a=1,s=s@1 a=2,s=s@2 a=2,s=s@3", id="in a disjunction"),
    pytest.param("?s :A ?a BIND(EXISTS { ?s :B ?b } AS ?e)", "A(1)@1 B@2 A(2)@3", "", "a=1,e=false,s=s@1 a=2,e=true,s=s@3", id="in BIND"),
    pytest.param("?s :A ?a BIND(IF(NOT EXISTS { ?s :B ?a }, 0, 1) AS ?e)", "A(1)@1 B(2)@2 A(2)@3", "", "a=1,e=0,s=s@1 a=2,e=1,s=s@3", id="in IF"),
    pytest.param("?s :A ?a OPTIONAL { ?s :B ?b FILTER(EXISTS { ?s :C ?b }) }", "A(1)@1 B(5)@1 C(5)@2 A(1)@3", "", "a=1,s=s@1 a=1,b=5,s=s@1-3", id="in the filter of an OPTIONAL it sees the join"),
    pytest.param("?s :A ?a FILTER EXISTS { ?s :B ?b FILTER(?b > ?a) }", "A(1)@1 B(1)@1 B(2)@2 A(1)@3", "", "a=1,s=s@3", id="substitution reaches inner filters"),
    pytest.param("?s :A ?a FILTER EXISTS { ?s :B ?b FILTER NOT EXISTS { ?s :C ?b } }", "B(1)@1 C(1)@3 A(1)@4 B(2)@5 C(2)@5 A(t,1)@6", "", "a=1,s=s@4", id="nested: each is decided at its own end"),
    pytest.param("?s :A ?a FILTER EXISTS { ?s :p+ ?a }", "p(s,b)@1 p(b,c)@2 A(c)@3 A(d)@4", "", "a=c,s=s@3", id="of a path"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "facts", "expected"), EXISTS)
def test_exists(run: Runner, pattern: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, f"SELECT * WHERE {{ {pattern} }}", feed, facts) == sorted(expected.split())


FORMS = [
    pytest.param("ASK { ?s :A ?a }", "X@1 A(1)@2-4 A(2)@3 A(3)@5", "", "_:ask=true@3", id="ASK: the first solution"),
    pytest.param("ASK { ?s :A ?a }", "A(1)@2-3 A(2)@1-3", "", "_:ask=true@1-3", id="ASK: of one instant the least start"),
    pytest.param("ASK { ?s :A ?a }", "X@1 X@4", "", "_:ask=false@4", id="ASK: false at the last instant"),
    pytest.param("ASK { ?s :A ?a }", "X@3", "A", "_:ask=true@3", id="ASK: a timeless one stands at t0"),
    pytest.param("ASK { ?s :A ?a } GROUP BY ?s HAVING (COUNT(*) > 1)", "A(1)@1 A(2)@2", "", "_:ask=true@1-2", id="ASK of groups"),
    pytest.param("ASK { { ?s :A ?a } WITHOUT { ?s :B ?b } FOR 'PT5S'^^xsd:duration }", "A(1)@1 X@2", "", "_:ask=true@1-6", id="ASK: a timer after the end"),
    pytest.param("DESCRIBE ?s { ?s :A ?a }", "A(x,1)@1 A(y,1)@2", "K(x,1) K(x,2) K(z,3)", "K(x,1)+K(x,2)@1", id="DESCRIBE what the background says"),
    pytest.param("DESCRIBE :x :z { ?s :A ?a }", "A(y,1)@2-3", "K(x,1) K(z,3)", "K(x,1)+K(z,3)@2-3", id="DESCRIBE names"),
    pytest.param("DESCRIBE :x", "A(y,1)@2", "g/K(x,1)", "K(x,1)@2", id="DESCRIBE without WHERE stands at t0"),
    pytest.param("CONSTRUCT { ?s :N ?a } WHERE { ?s :A ?a } ORDER BY DESC(?a) LIMIT 1", "A(1)@1 A(2)@1 A(3)@2", "", "N(s,2)@1", id="CONSTRUCT with LIMIT"),
    pytest.param("CONSTRUCT WHERE { ?s :A ?a }", "A(1)@1", "", "A(s,1)@1", id="CONSTRUCT in short"),
    pytest.param("CONSTRUCT { ?s :N 1 } WHERE { ?s :A ?a }", "A(x,1)@1 A(x,2)@1", "", "N(x,1)@1", id="CONSTRUCT gives equal triples once"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("query", "feed", "facts", "expected"), FORMS)
def test_form(run: Runner, query: str, feed: str, facts: str, expected: str) -> None:
    assert answers(run, query, feed, facts) == sorted(expected.split())


W2 = "FROM NAMED WINDOW :w ON <default> [RANGE PT2S STEP PT1S]"
RSP = [
    pytest.param(f"REGISTER RSTREAM <urn:o> AS SELECT ?a {W2} {{ WINDOW :w {{ ?s :A ?a }} }}", "A(1)@1 A(2)@2", "", "a=1@-1-1 a=1@0-2 a=2@0-2 a=2@1-3", id="RSTREAM: all, at each step"),
    pytest.param(f"REGISTER ISTREAM <urn:o> AS SELECT ?a {W2} {{ WINDOW :w {{ ?s :A ?a }} }}", "A(1)@1 A(2)@2", "", "a=1@-1-1 a=2@0-2", id="ISTREAM: what is new"),
    pytest.param(f"REGISTER DSTREAM <urn:o> AS SELECT ?a {W2} {{ WINDOW :w {{ ?s :A ?a }} }}", "A(1)@1 A(2)@2", "", "a=1@1-3 a=2@2-4", id="DSTREAM: what is gone"),
    pytest.param(f"SELECT (COUNT(*) AS ?n) {W2} {{ WINDOW :w {{ ?s :A ?a }} }}", "A(1)@1 A(2)@2", "", "n=1@-1-1 n=2@0-2 n=1@1-3 n=0@2-4", id="once more when all is empty"),
    pytest.param(
        "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON <default> [RANGE PT4S STEP PT3S] { WINDOW :w { ?s :A ?a } }", "A@5", "", "n=1@2-6 n=0@5-9", id="empty after the only occurrence"
    ),
    pytest.param(f"SELECT ?a {W2} {{ WINDOW :w {{ ?s :A ?a }} }}", "A(1)@1 A(1)@2", "", "a=1@-1-1 a=1@0-2 a=1@1-3", id="plain SPARQL: a triple is there once"),
    pytest.param(f"SELECT ?a ?k {W2} {{ WINDOW :w {{ ?s :A ?a }} ?s :K ?k }}", "A(1)@1 K(2)@1", "K(5)", "a=1,k=5@-1-1 a=1,k=5@0-2", id="outside of windows stands the background"),
    pytest.param(f"SELECT ?a {W2} {{ WINDOW :w {{ ?s :A ?a OPTIONAL {{ ?s :B ?b }} FILTER(!BOUND(?b)) }} }}", "A(1)@1 B@2", "", "a=1@-1-1", id="negation over the content"),
    pytest.param(
        f"SELECT ?a ?b {W2} FROM NAMED WINDOW :v ON <default> [RANGE PT4S STEP PT2S] {{ WINDOW :w {{ ?s :A ?a }} WINDOW :v {{ ?s :B ?b }} }}",
        "B(1)@1 A(1)@2", "", "a=1,b=1@-2-2 a=1,b=1@-1-3", id="each window as of its own last step",
    ),
    pytest.param(f"SELECT ?a {W2} {{ WINDOW :w {{ ?s :A ?a }} }} ORDER BY DESC(?a) LIMIT 1", "A(1)@1 A(2)@2", "", "a=1@-1-1 a=2@0-2 a=2@1-3", id="LIMIT is of each report"),
    pytest.param(
        f"SELECT ?a ?z {W2} {{ WINDOW :w {{ ?s :A ?a FILTER(STR(?a) != '2') }} }}", "A(1)@1 A(2)@1 A(12)@2", "", "a=1@-1-1 a=1@0-2 a=12@0-2 a=12@1-3", id="questions, and what is never bound",
    ),
    pytest.param(
        f"SELECT ?f ?a {W2} {{ WINDOW :w {{ ?s :A ?a ; :B ?b ; :C ?c . ?t :A ?d ; :B ?e ; :C ?f }} }}", "A(1)@1 B(2)@1 C(3)@1 A(4)@2", "", "a=1,f=3@-1-1 a=1,f=3@0-2 a=1,f=3@0-2 a=4,f=3@0-2 a=4,f=3@0-2", id="many variables",
    ),
]  # fmt: skip


@both
@pytest.mark.parametrize(("query", "feed", "facts", "expected"), RSP)
def test_named_windows(run: Runner, query: str, feed: str, facts: str, expected: str) -> None:
    assert sorted(answers(run, query, feed, facts)) == sorted(expected.split())


ABC = "A(1)@1 A(2)@2 A(3)@3 B(1)@4 B(2)@5 C(1)@6"
CHAIN = "{ ?s :A ?a } SEQ { ?s :B ?b } SEQ { ?s :C ?c }"
POLICIES = [
    pytest.param(CHAIN, "unrestricted", ABC, "@1-6 @1-6 @2-6 @2-6 @3-6 @3-6", id="unrestricted"),
    pytest.param(CHAIN, "recent", ABC, "@3-6", id="recent"),
    pytest.param(CHAIN, "chronological", ABC, "@1-6", id="chronological"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "recent", "A(1)@1 A(2)@4 B@3-5", "", id="recent does not fall back"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "recent", "A(1)@1 B(1)@2 B(2)@3", "@1-2 @1-3", id="recent uses a goal again"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "recent", "A(x,1)@1 A(y,1)@2 B(x,1)@3", "@1-3", id="recent is per join key"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "recent", "A(1)@1-3 A(2)@2-3 B@4", "@2-4", id="recent: of one end the later start"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "chronological", "A(1)@1 A(2)@2 B(1)@3 B(2)@4 B(3)@5", "@1-3 @2-4", id="chronological consumes"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "chronological", "A(1)@1 B(1)@3 B(2)@3", "@1-3", id="consumption takes effect at once"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "policy", "feed", "expected"), POLICIES)
def test_policy(run: Runner, pattern: str, policy: str, feed: str, expected: str) -> None:
    assert answers(run, f"SELECT ?none WHERE {{ {pattern} }}", feed, "", Settings(policy)) == sorted(expected.split())
