"""These tests check the doubts and faults that are reported before a query runs.

In a table's texts `|` begins and ends the place of a doubt or a fault, and is no part of the query.
"""

import pytest
from hypothesis import given

from engine.engine import Engine
from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.messages import Register
from engine.network.stratification import Cycle
from engine.validation.state_warnings import MOST
from engine.validation.validate import check
from epsparql import parse
from epsparql.errors import CyclicNegation, SyntaxFault, Unsupported, Warning_
from epsparql.terms import XSD
from tests.support import query_strategies

PROLOGUE = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "
ONE_HOUR = '"PT1H"^^xsd:duration'
HOUR = f"FILTER(getDURATION() < {ONE_HOUR})"
EARLIER, LATER = "?x :p ?y BIND(getENDTIME() AS ?e)", f"?x :q ?z BIND(getENDTIME() AS ?e2) FILTER(?e - ?e2 < {ONE_HOUR})"


def split(marked: str) -> tuple[str, list[str]]:
    pieces = (PROLOGUE + marked).split("|")
    return "".join(pieces), pieces[1::2]


def said(text: str, code: str, policy: str = "unrestricted") -> list[Warning_]:
    return [doubt for doubt in check(parse(text), name="q", policies={"q": policy}) if doubt.code == code]


def stretch(text: str, doubt: Warning_) -> str:
    assert doubt.span is not None
    return text[doubt.span.start : doubt.span.end]


# ---------------------------------------------------------------- what is kept for ever
KEPT = [
    pytest.param("{?x :p ?y} |SEQ| {?x :q ?z}", "SEQ keeps the solutions on its left for ever: WITHIN after it", id="SEQ"),
    pytest.param("{?x :p ?y} |and| {?x :q ?z}", "AND keeps the solutions on both sides for ever", id="AND"),
    pytest.param("{?x :p ?y} |MEETS| {?x :q ?z}", "MEETS keeps the solutions on its left", id="MEETS"),
    pytest.param("{?x :p ?y} |PAR| {?x :q ?z}", "PAR keeps the solutions on both sides", id="PAR"),
    pytest.param("|?x :p ?y . ?y :q ?z|", "what these triple patterns match is kept for ever", id="triples"),
    pytest.param("{?x :p ?y} |SEQ| {?x :q ?z} FILTER(getDURATION() < 'P1M'^^xsd:duration)", "SEQ keeps", id="a month is no bound"),
    pytest.param("?x :p ?y |{ ?y :q ?z }|", "the solutions of this and what stands before it in the group are kept for ever", id="a group beside triples"),
    pytest.param("VALUES ?x { 1 } {?x :p ?y} |?y :r ?z|", "the solutions of this and what stands before it", id="VALUES before two parts"),
    pytest.param("|?x :p+ ?y|", "the steps of this path are kept for ever", id="a path"),
    pytest.param("|?x (:q/:r)? ?y|", "the steps of this path", id="a path with a sequence"),
    pytest.param("{?x :p ?y} |OPTIONALSEQ| {?x :q ?z}", "directly in the left group bounds that", id="OPTIONALSEQ"),
    pytest.param(f"?x :p ?y |OPTIONAL| {{?x :q ?z {HOUR.replace('PT1H', 'P1M')}}}", "OPTIONAL keeps the solutions of its group for ever", id="OPTIONAL of a month"),
    pytest.param(f"?x :p ?y |MINUS| {{?x :q ?z {HOUR}}}", "nothing bounds that; WITHOUT ... FOR", id="MINUS"),
    pytest.param("?x :p ?y FILTER |NOT EXISTS| {?x :q ?z}", "NOT EXISTS keeps the solutions of its group for ever, and only a FILTER in it on the time between both", id="NOT EXISTS"),
    pytest.param("?x :p ?y BIND(|EXISTS| {?x :q ?z} AS ?e)", "FILTER(BOUND(...))", id="EXISTS in BIND"),
    pytest.param(f"?x :p ?y OPTIONAL {{ ?x :q ?z {HOUR} FILTER(?z = 1 && |exists| {{?x :q ?z}}) }}", "EXISTS keeps", id="EXISTS in an optional join"),
    pytest.param("{?x :p ?y} SEQ {?x :q ?z} |WITHOUT| {?x :r ?w}", "SEQ ... WITHOUT keeps the solutions on its left and of what is absent", id="WITHOUT"),
    pytest.param("{?x :p ?y} AND {?x :q ?z} |WITHOUT| {?x :r ?w}", "AND ... WITHOUT keeps the solutions on both sides and of what is absent", id="AND ... WITHOUT"),
    pytest.param("{VALUES ?x {1}} SEQ {?x :q ?z} WITHIN 5 |WITHOUT| {?x :r ?w}", "may be timeless", id="WITHOUT after a timeless left side"),
    pytest.param("{ |?x :p ?y . ?y :r ?k| } WITHOUT { ?x :q ?z } FOR 10", "what these", id="WITHOUT ... FOR bounds nothing on its left"),
    pytest.param("{ SELECT ?x { ?x :p ?y } GROUP BY |?x| }", "GROUP BY without a WINDOW keeps every group for ever", id="GROUP BY"),
    pytest.param(f"{{ SELECT ?x {{ |?x :p ?y ; :q ?z| }} LIMIT 2 }} {HOUR}", "what these", id="a bound outside of a sub-SELECT that decides alone"),
    pytest.param("GRAPH :g { |?x :p ?y ; :q ?z| }", "what these", id="in GRAPH"),
    pytest.param("# SEQ\n{?x :p 'SEQ'} SEQ {?x :q ?z} WITHIN 5 |SEQ| {?x :r ?w}", "SEQ", id="the second SEQ, not the words in a comment or a string"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "message"), KEPT)
def test_what_is_kept_for_ever(marked: str, message: str) -> None:
    text, (place,) = split(f"SELECT * {{ {marked} }}")
    (doubt,) = said(text, "unbounded-state")
    assert stretch(text, doubt) == place
    assert message in doubt.message


BOUNDED = [
    "?x :p ?y",
    "{?x :p ?y} SEQ {?x :q ?z} WITHIN 5",
    f"{{?x :p ?y}} SEQ {{?x :q ?z . ?z :r ?w}} {{?w :r ?x}} ?x :p+ ?y {HOUR}",
    f"{{ SELECT ?x {{ ?x :p ?y ; :q ?z }} }} {HOUR}",
    f"{{ SELECT DISTINCT ?x {{ ?x :p ?y ; :q ?z }} }} {HOUR}",
    f"{{?x :p ?y}} EQUALSOPTIONAL {{?x :q ?z . ?z :r ?w}} {HOUR}",
    f"{{?x :p ?y}} OVERLAPS {{?x :q ?z {HOUR}}}",
    "{?z :p ?y} EQUALS {?x :q ?w}",
    "{?z :p ?y} FINISHES {?x :q ?w}",
    "{?x :p ?y} EQUALSOPTIONAL {?x :q ?z}",
    f"{{?x :p ?y {HOUR}}} OPTIONALSEQ {{?x :q ?z}}",
    f"?x :p ?y OPTIONAL {{?x :q ?z . ?z :r ?w {HOUR}}}",
    f"{EARLIER} OPTIONAL {{ {LATER} }}",
    f"{EARLIER} FILTER NOT EXISTS {{ {LATER} }}",
    f"{EARLIER} FILTER(?y = 1 || EXISTS {{ {LATER} }})",
    f"{EARLIER} BIND(EXISTS {{ {LATER} }} AS ?found)",
    f"{{ {EARLIER} }} SEQ {{ {LATER.partition('FILTER')[0]} }} WITHOUT {{ ?x :r ?w }} FILTER(?e2 - ?e < {ONE_HOUR})",
    "?x :p ?y MINUS {?w :q ?z}",
    "?x :p ?y MINUS { VALUES ?x { 1 } }",
    "{?x :p ?y} SEQ {?x :q ?z} WITHIN 5 WITHOUT {?x :r ?w}",
    "{?x :p ?y} AND {?x :q ?z} WITHIN 5 WITHOUT {?x :r ?w . ?w :q ?x}",
    "{?x :p ?y} WITHOUT {?x :r ?w . ?w :q ?x} FOR 10",
    "VALUES ?x { 1 2 } ?x :p ?y BIND(1 AS ?n) VALUES ?z { 3 }",
    "{ BIND(1 AS ?x) } { ?x :p ?y }",
    "?x ^:p?|!:q ?y",
    "GRAPH ?g { ?x :p ?y }",
    "{ SELECT ?x { ?x :p ?y } GROUP BY ?x WINDOW [RANGE PT1H] }",
    "{?x :p ?y} UNION {?z :q ?w}",
]


@pytest.mark.parametrize("pattern", BOUNDED)
def test_what_is_bounded(pattern: str) -> None:
    assert not check(parse(f"{PROLOGUE}SELECT * {{ {pattern} }}"))


def test_what_named_windows_hold_is_bounded() -> None:
    text = "SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT1H STEP PT1M] { WINDOW :w { ?a :p ?b . ?c :q ?d MINUS {?a :q ?e} } }"
    assert not check(parse(PROLOGUE + text))


def test_an_optional_is_doubted_once() -> None:
    parsed = parse(PROLOGUE + "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z } }")
    assert [doubt.code for doubt in (*parsed.warnings, *check(parsed))] == ["unbounded-state"]


def test_of_many_doubts_the_first_are_spelled_out() -> None:
    text = PROLOGUE + "SELECT * { " + " ".join(f"{{?x :p ?y{k}}} SEQ" for k in range(MOST + 3)) + " {?x :q ?z} }"
    doubts = check(parse(text))
    assert [doubt.message == "and 3 more from here on" for doubt in doubts] == [False] * MOST + [True]
    assert {stretch(text, doubt) for doubt in doubts} == {"SEQ"}
    assert len({doubt.span for doubt in doubts}) == MOST + 1


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("recent", "on the left the last one for each value of what both share: WITHIN after it"),
        ("chronological", "SEQ keeps the solutions on its left until a right one consumes them"),
    ],
)
def test_what_a_policy_keeps(policy: str, message: str) -> None:
    text, (place,) = split("SELECT * { {?x :p ?y} |SEQ| {?x :q ?z} }")
    (doubt,) = said(text, "unbounded-state", policy)
    assert stretch(text, doubt) == place
    assert message in doubt.message


def test_recent_keeps_one_where_nothing_is_shared() -> None:
    assert not said(PROLOGUE + "SELECT * { {?x :p ?y} SEQ {?w :q ?z} }", "unbounded-state", "recent")


# ---------------------------------------------------------------- parts that share no variable
CROSSED = [
    pytest.param(
        "{?x :p ?y} |SEQ| {?z :q ?w}", "the sides of SEQ share no variable: every solution on the left is joined with every later one", id="SEQ"
    ),
    pytest.param("{?x :p ?y} |DURING| {?z :q ?w}", "begins before it and ends after it", id="DURING"),
    pytest.param("{?x :p ?y} |AND| {?z :q ?w}", "the sides of AND share no variable", id="AND"),
    pytest.param("{?x :p ?y} SEQ {?x :q ?z} |?v :r ?w|", "the parts of this group share no variable", id="triples beside a chain"),
    pytest.param("?x :p ?y . |?v :r ?w| . ?y :q ?x", "this triple pattern shares no variable with the others", id="a triple"),
    pytest.param("GRAPH :g { ?x :p ?y . |?v :r ?w| }", "this triple pattern", id="in one graph"),
]


@pytest.mark.parametrize(("marked", "message"), CROSSED)
def test_cross_joins(marked: str, message: str) -> None:
    text, (place,) = split(f"SELECT * {{ {marked} }}")
    (doubt,) = said(text, "cross-join")
    assert stretch(text, doubt) == place
    assert message in doubt.message


NOT_CROSSED = [
    "{?x :p ?y} SEQ {?z :q ?w} WITHIN 5",
    "{?x :p ?y} EQUALS {?z :q ?w}",
    "?x :p ?y VALUES ?z { 1 }",
    "GRAPH ?g { ?x :p ?y . ?v :r ?w }",
    "?x :p ?y . ?v :r ?w . ?x :q ?v",
    "_:a :p ?y . _:a :r ?w",
]


@pytest.mark.parametrize("pattern", NOT_CROSSED)
def test_no_cross_join(pattern: str) -> None:
    assert not said(f"{PROLOGUE}SELECT * {{ {pattern} }}", "cross-join")


# ---------------------------------------------------------------- by the plan
STORING = frozenset({c.JOIN, c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL, c.MINUS, c.EXISTS, c.NOTEXISTS, c.WITHOUT})


@given(query_strategies.queries())
def test_what_is_said_to_be_kept_is_kept(query: str) -> None:
    """Some node of the plan keeps goals for ever if there is a doubt."""
    parsed = parse(query)
    try:
        planned = Engine().registry.place_query(Register(0, "q", query), parsed.query)
    except (Refusal, Cycle):
        return
    lives = ((row[c.KIND], row[c.LIFE_LEFT], row[c.LIFE_RIGHT], row[c.LIFE_BLOCKER]) for row in planned.net.nodes.tolist())
    if any("GROUP BY" not in doubt.message for doubt in check(parsed)):
        assert any(kind in STORING and max(of_goals) >= c.FOREVER for kind, *of_goals in lives)


# ---------------------------------------------------------------- what is refused
REFUSED = [
    pytest.param(
        "SELECT ?x { ?x :p ?z FILTER(|xsd:integers|(?z) > 0.5) }", "XMLSchema#integers> is not known", "one of xsd:integer, xsd:", id="a cast"
    ),
    pytest.param("SELECT (SUM(?z + |:f|(?z)) AS ?n) { ?x :p ?z } GROUP BY (STR(?x) AS ?k)", "<http://e/f>", "or a built-in", id="a function"),
    pytest.param("SELECT (SUM(?z) AS ?n) { ?x :p ?z } |WINDOW [RANGE P1000D STEP PT1S]|", "100,000 steps", "a longer STEP", id="steps"),
    pytest.param(
        "SELECT * { ?x :p ?t # EXISTS\n FILTER EXISTS {?x :q ?u} FILTER |EXISTS| { ?x :q ?b FILTER(getENDTIME() > ?t) } }",
        "inside EXISTS",
        "in the group of the EXISTS itself",
        id="the EXISTS that is to blame",
    ),
    *(
        pytest.param(f"SELECT * {{ ?x :p ?t FILTER {inside} }}", "a variable of the group outside", "in the group of the EXISTS itself", id=name)
        for inside, name in (
            ("|EXISTS| { { { ?x :q ?u } OPTIONAL { ?u :r ?t } } { ?x :r ?v } }", "an OPTIONAL inside a join"),
            ("|EXISTS| { { ?z :q ?u } SEQ { { ?z :r ?v } MINUS { ?z :q ?t } } }", "MINUS in an operand"),
            ("EXISTS { { ?z :q ?u FILTER |NOT EXISTS| { ?z :r ?t } } SEQ { ?z :r ?v } }", "NOT EXISTS in an operand"),
            ("|EXISTS| { { ?z :q ?u } SEQ { ?z :r ?v } WITHOUT { ?z :q ?t } }", "WITHOUT"),
            ("|EXISTS| { { ?z :q ?u } WITHOUT { ?z :q ?t } FOR 5 }", "WITHOUT ... FOR"),
            ("|EXISTS| { SELECT ?t { ?z :q ?t } LIMIT 1 }", "LIMIT"),
            ("|EXISTS| { { ?z :q ?u } { { ?z :q ?v FILTER(?v > ?t) } UNION { ?z :r ?v } } }", "a nested UNION"),
            ("|EXISTS| { ?z :q ?v FILTER(getENDTIME() > ?t) }", "a time beside an outer variable"),
        )
    ),
    *(
        pytest.param(text, message, expected, id=text)
        for text, message, expected in (
            ("CONSTRUCT { ?s |<rel>| 1 } WHERE { ?s ?p ?o }", "<rel> is relative", "BASE"),
            ("CONSTRUCT { ?s :p '1'^^|<http://e/50%>| } WHERE { ?s ?p ?o }", "<http://e/50%> is not valid", "RFC 3987"),
            ("CONSTRUCT { ?s :p ?x } WHERE { ?s ?p ?o BIND(|<http://e:x/>| AS ?x) }", "is not valid", "RFC 3987"),
            ("CONSTRUCT { ?s :p ?x } WHERE { ?s ?p ?o } VALUES ?x { |<a>| }", "<a> is relative", "BASE"),
            ("CONSTRUCT { ?s :p ?x } WHERE { |<a>| :q* ?x . ?s ?p ?o }", "<a> is relative", "BASE"),
            ("CONSTRUCT { ?s :p ?o } INTO BACKGROUND |<g>| WHERE { ?s ?p ?o }", "<g> is relative", "BASE"),
            ("CONSTRUCT { ?s :p <<( :a :p 'x'|@en-a| )>> } WHERE { ?s ?p ?o }", "en-a is no language tag", "RFC 5646"),
        )
    ),
]


@pytest.mark.parametrize(("marked", "message", "expected"), REFUSED)
def test_refusals(marked: str, message: str, expected: str) -> None:
    text, (place,) = split(marked)
    with pytest.raises((Unsupported, SyntaxFault)) as caught:
        check(parse(text))
    fault = caught.value
    assert text[fault.span.start : fault.span.end] == place
    assert message in fault.message
    assert expected in fault.expected


def test_a_rule_that_negates_itself_is_refused_at_its_keyword() -> None:
    text, (place,) = split("# CONSTRUCT\n |CONSTRUCT| {?a :p ?c} WHERE { ?a :p ?b MINUS {?a :p ?b} }")
    with pytest.raises(CyclicNegation) as caught:
        check(parse(text))
    assert text[caught.value.span.start : caught.value.span.end] == place


def test_a_refusal_of_no_part_of_the_text_is_placed_at_its_start() -> None:
    with pytest.raises(Unsupported) as caught:
        check(parse("SELECT * { ?s ?p ?o }"), name="q", policies={"q": "best"})
    assert isinstance(caught.value.__cause__, Refusal)
    assert caught.value.span.start == 0
