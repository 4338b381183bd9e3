"""Faults with their exact place: in each row the first `|` stands where the fault is, and is no part of the query.

tests/golden/errors.txt has a text of most kinds, with its whole message.
"""

import pickle

import pytest

from epsparql import QueryError, parse
from epsparql.errors import InvalidLiteral, ScopeFault, SyntaxFault, UnknownPrefix, Warning_
from tests.epsparql.builders import PROLOGUE

SYNTAX = [
    ("SELECT * WHERE { |SEQ {?s :p ?o} }", "SEQ has no group in braces directly on its left", "{ ... } SEQ { ... }"),
    ("SELECT DISTINCT |{ ?s :p ?o }", "unexpected '{'", "variables, '*' or (expression AS ?variable) after DISTINCT"),
    ("SELECT ?s |WERE { ?s :p ?o }", "was WHERE meant?", "WHERE"),
    ("SELECT (?o AS |1) { ?s :p ?o }", "unexpected 1", "a variable after AS"),
    ("SELECT ?s { {?s :p ?o} SEQ |?a :p ?b }", "unexpected ?a", "a group in braces after SEQ"),
    ("SELECT ?s { {?s :p ?o} union |:a :p ?b }", "unexpected :a", "a group in braces after union"),
    ("SELECT ?s { ?s :p ?o OPTIONAL {?s :q ?o} |SEQ {?s :r ?o} }", "SEQ has no group in braces", "{ ... } SEQ { ... }"),
    ("SELECT ?s { ?s |_:p ?o }", "unexpected _:p", "a predicate"),
    ("SELECT ?s { ?s :p ?o, |}", "unexpected '}'", "an object"),
    ("SELECT ?s { ?s :p [ :q ?r |}", "unexpected '}'", "']'"),
    ("SELECT ?s { ?s :p ( 1 2 |}", "unexpected '}'", "')'"),
    ("DESCRIBE |{}", "unexpected '{'", "variables, IRIs or '*' after DESCRIBE"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN |]", "unexpected ']'", "WHILE, GAP, UNTIL or WITHIN"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN |CLOSED]", "unexpected CLOSED", "WHILE, GAP, UNTIL or WITHIN"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [SESSION PT1S |GAP PT1S]", "unexpected GAP", "EACH or CLOSED"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN GAP |5]", "unexpected 5", "a duration"),
    ("SELECT (COUNT(*) AS ?n) {?s :p ?o} WINDOW [RUN WHILE (|SAMPLE(?o) > 1)]", "SAMPLE stands in WHILE", "COUNT, SUM"),
    ("SELECT (COUNT(*) AS ?n) {?s :p ?o} WINDOW [RUN WHILE (|SUM(DISTINCT ?o) > 1)]", "SUM(DISTINCT ...) stands in WHILE", "COUNT, SUM"),
    ("SELECT * { {?s :p ?o} |SEK {?s :p ?o} }", "unexpected SEK; was SEQ meant?", "an operator such as SEQ"),
    ("SELECT ?s FROM STREAM |{}", "unexpected '{'", "the IRI of a stream after STREAM"),
    ("CONSTRUCT |WHRE {}", "was WHERE meant?", "a template in braces"),
    ("CONSTRUCT { ?s :p ?o } WHERE|", "ends too early", "a pattern in braces after WHERE"),
    ("PREFIX e: |e SELECT * {}", "unexpected e", "an IRI in '<' and '>'"),
    ("SELECT ?s { ?s :p ?o FILTER (?o = 3 |= 4) }", "cannot follow each other", "'&&', '||'"),
    ("SELECT ?s { ?s :p ?o FILTER NOT |(?o) }", "unexpected '('", "EXISTS after NOT"),
    ("SELECT ?s { ?s :p ?o FILTER (|SUBSTR(?o)) }", "SUBSTR has 1 argument", "2 or 3 arguments"),
    ("SELECT ?s { ?s :p ?o FILTER BOUND(|(?o)) }", "unexpected '('", "a variable"),
    ("SELECT ?s { ?s :p ?o FILTER regex(?o |\"a\") }", 'unexpected "a"', "',' or ')'"),
    ("SELECT ?s { ?s :p ?o BIND(?o|) }", "unexpected ')'", "an operator or AS"),
    ("SELECT ?s { {?s :p ?o} WITHIN |}", "unexpected '}'", 'a duration such as "PT10S"^^xsd:duration'),
    ("SELECT ?s { ?s :p ?o FILTER(?o |<> 1) }", "<> is no operator of an expression", "!="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |== 1) }", "== is no operator of an expression", "="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |!== 1) }", "!== is no operator of an expression", "!="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |=> 1) }", "=> is no operator of an expression", ">="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |=< 1) }", "=< is no operator of an expression", "<="),
    ("SELECT ?s { ?s :p ?o FILTER(?o > 1 |AND ?o < 3) }", "AND is no operator of an expression", "&&"),
    ("SELECT ?s { ?s :p ?o FILTER(?o > 1 |or ?o < 3) }", "or is no operator of an expression", "||"),
    ("SELECT ?s { {?s :p ?o} |THEN {?s :q ?o} }", "unexpected THEN", "{ ... } SEQ { ... }"),
    ("SELECT ?s { {?s :p ?o} |FOLLOWED BY {?s :q ?o} }", "unexpected FOLLOWED", "{ ... } SEQ { ... }"),
    ("SELECT ?s { {?s :p ?o} |-> {?s :q ?o} }", "unexpected '-'", "{ ... } SEQ { ... }"),
    ("SELECT ?s { {?s :p ?o} |OR {?s :q ?o} }", "unexpected OR", "{ ... } UNION { ... }"),
    ("SELECT ?s { ?s :p ?o FILTER(?o |LIKE 'a%') }", "unexpected LIKE", "REGEX(?x, ...)"),
    ("SELECT ?s { ?s :p ?o FILTER(?o |between 1 and 2) }", "unexpected between", "?x >= ... && ?x <= ..."),
    ("SELECT * FROM STREAM <http://e/s> |[RANGE 10m STEP 1m] { ?s :p ?o }", "unexpected '['", "FROM NAMED WINDOW"),
    ("SELECT * FROM NAMED |STREAM <http://e/s> { ?s :p ?o }", "unexpected STREAM", "FROM STREAM <stream>"),
    ("SELECT |ISTREAM ?s { ?s :p ?o }", "unexpected ISTREAM", "REGISTER ISTREAM"),
    ("REGISTER |QUERY q AS SELECT * { ?s :p ?o }", "unexpected QUERY", "PUT /queries/{name}"),
    ("SELECT * { |EVERY {?s :p ?o} SEQ {?s :q ?o} }", "unexpected EVERY", "every match is found"),
    ("SELECT ?s { ?s :p ?o FILTER(NOT |?o) }", "unexpected ?o", "'!' negates a condition, as in FILTER(!(...))"),
    ("SELECT ?s { ?s :p ?o |NOT EXISTS { ?s :q ?o } }", "NOT EXISTS is a condition, which stands in a FILTER", "FILTER NOT EXISTS { ... }"),
    ("SELECT ?s { ?s :p ?o . |EXISTS { ?s :q ?o } }", "EXISTS is a condition, which stands in a FILTER", "FILTER EXISTS { ... }"),
    ("SELECT ?s { {?s :p ?o} WITHIN |10 MINUTES }", "10 MINUTES is no duration", "PT10M"),
    ("SELECT ?s { {?s :p ?o} WITHIN |1h30m FILTER(?o > 1) }", "1h30m is no duration", "PT1H30M"),
    ("SELECT ?s { {?s :p ?o} WITHOUT {} FOR |6 hours }", "6 hours is no duration", "PT6H"),
    ("SELECT ?s { {?s :p ?o} WITHIN 10 |MINIS {} }", "unexpected MINIS; was MINUS meant?", "MINUS"),
    ("SELECT |COUNT(*) {}", "an expression of SELECT stands in brackets", "(COUNT(...) AS ?variable)"),
    ("SELECT ?s |avg(?o) {}", "an expression of SELECT stands in brackets", "(avg(...) AS ?variable)"),
    ("ASK { ?s :p ?o } |SEQ { ?s :q ?o }", "SEQ stands after the pattern's last brace", "the whole pattern in braces, or WHERE before it"),
    ("SELECT ?s { ?s :p ?o } |OPTIONAL { ?s :q ?o }", "OPTIONAL stands after the pattern's last brace", "WHERE before it"),
    ("SELECT ?s { { SELECT ?s { ?s :p ?o } |UNION { ?s :q ?o } } }", "UNION stands after the pattern's last brace", "the whole pattern in braces"),
    ("SELECT ?s WHERE { ?s :p ?o } FILTER(?o > 1) |SEQ { ?s :q ?o }", "SEQ has no group in braces directly on its left", "{ ... } SEQ { ... }"),
    ("SELECT ?s |AS ?t {}", "an expression of SELECT stands in brackets", "(expression AS ?variable)"),
    ("SELECT ?s { ?s :p |http://e/a. }", "http://e/a is an IRI without '<' and '>'", "<http://e/a>"),
    ("SELECT ?s { |http://e/a :p ?o }", "http://e/a is an IRI without '<' and '>'", "<http://e/a>"),
    ("SELECT ?s { ?s :p |\ud800 }", "half of a surrogate pair", "text in Unicode"),
    ("SELECT ?s { ?s :p '|\\ud800' }", "no Unicode character", "a code point"),
]  # fmt: skip
LITERALS = [
    ("{} WITHIN |1e-99999999999999999999", "out of range", "a number of seconds"),
    ('{} WITHIN |"PT1S"^^xsd:time', "no xsd:duration", "xsd:duration"),
    ('?s :p |"2026-01-01"^^xsd:dateTime', "no xsd:dateTime", "2026-01-01T00:00:00Z"),
]
SCOPE = [
    ("SELECT ?s { {?s :p ?o} OPTIONAL {?s :q ?r} BIND (1 AS |?r) }", "?r cannot be assigned"),
    ("SELECT ?s { BIND (1 AS ?r) BIND (2 AS |?r) }", "?r cannot be assigned"),
    ("SELECT (1 AS ?x) (2 AS |?x) { ?s :p ?o }", "?x cannot be assigned"),
    ("SELECT ?x (2 AS |?x) { ?s :p ?o }", "?x cannot be assigned"),
]
PREFIXES = [
    ("SELECT ?s { ?s |XSD:p ?o }", "the prefix XSD: is not declared", "xsd:, the nearest prefix declared"),
]


def fault_of(marked: str, prologue: str = PROLOGUE + "\n") -> tuple[QueryError, tuple[int, int]]:
    """The fault of the query, and the place marked in it by the first `|`."""
    before, _, after = marked.partition("|")
    with pytest.raises(QueryError) as caught:
        parse(prologue + before + after)
    return caught.value, (2, len(before) + 1)


def check(marked: str, kind: type[QueryError], message: str, expected: str = "") -> None:
    fault, place = fault_of(marked)
    assert type(fault) is kind
    assert (fault.line, fault.column) == place
    assert message in fault.message
    assert expected in fault.expected


@pytest.mark.parametrize(("marked", "message", "expected"), SYNTAX)
def test_syntax_fault(marked: str, message: str, expected: str) -> None:
    check(marked, SyntaxFault, message, expected)


@pytest.mark.parametrize(("marked", "message", "expected"), LITERALS)
def test_invalid_literal(marked: str, message: str, expected: str) -> None:
    check(f"SELECT * {{ {marked} }}", InvalidLiteral, message, expected)


@pytest.mark.parametrize(("marked", "message"), SCOPE)
def test_scope_fault(marked: str, message: str) -> None:
    check(marked, ScopeFault, message)


@pytest.mark.parametrize(("marked", "message", "expected"), PREFIXES)
def test_unknown_prefix(marked: str, message: str, expected: str) -> None:
    check(marked, UnknownPrefix, message, expected)


def test_unknown_prefix_without_any_prefix() -> None:
    fault, place = fault_of("SELECT * { ?s |ex:p ?o }", "\n")
    assert (fault.line, fault.column) == place
    assert fault.expected == "a line PREFIX ex: <...> before the query"


def test_the_place_counts_code_points_as_written() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT * {\n  # \u00e9\n  '\U0001f600\\u00e9' <p> 1 ; }\n}")
    assert (caught.value.line, caught.value.column) == (4, 1)
    with pytest.raises(QueryError) as caught:
        parse("SELECT * { '\U0001f600\\u00e9' }")
    assert (caught.value.line, caught.value.column) == (1, 22)


def test_a_fault_says_all_in_one_line_and_pickles() -> None:
    fault, _ = fault_of("SELECT ?s { {?s :p ?o} SEQ |}")
    assert str(fault) == "line 2, column 28: unexpected '}'; expected a group in braces after SEQ"
    again = pickle.loads(pickle.dumps(fault))
    assert type(again) is SyntaxFault
    assert str(again) == str(fault)


def test_the_span_covers_the_culprit() -> None:
    fault, _ = fault_of('SELECT * { ?s ?p |"P1H"^^xsd:duration }')
    assert fault.text[fault.span.start : fault.span.end] == '"P1H"^^xsd:duration'


AMONG_OTHERS = {"limit-ends"}  # whatever else is wrong with a LIMIT
WARNINGS = [
    pytest.param("SELECT ?x |?y { ?s :p ?x }", "never-bound", "?y is selected", id="selected, never bound"),
    pytest.param("CONSTRUCT { |?s :p ?y } WHERE { ?s :p ?x }", "never-bound", "?y stands in the template", id="in the template, never bound"),
    pytest.param("DESCRIBE |?y WHERE { ?s :p ?x }", "never-bound", "?y is described", id="described, never bound"),
    pytest.param("SELECT ?x { ?s :p ?x } ORDER BY |?y LIMIT 1", "never-bound", "it orders nothing", id="ordered by, never bound"),
    pytest.param('SELECT * { ?s :p |"x"^^xsd:integer }', "ill-typed", "no xsd:integer", id="integer"),
    pytest.param('SELECT * { ?s :p |"1f"^^xsd:double }', "ill-typed", "no xsd:double", id="double"),
    pytest.param('SELECT * { ?s :p |"TRUE"^^xsd:boolean }', "ill-typed", "no xsd:boolean", id="boolean"),
    pytest.param("SELECT * { ?s :p ?x FILTER(?x > 1 && |getDURATION() < 5) }", "never-true", '"PT5S"^^xsd:duration', id="never true"),
    pytest.param("SELECT * { ?s :p ?x FILTER(|getDURATION() < 0.5) }", "never-true", '"PT0.5S"^^xsd:duration', id="never true, with half a second"),
    pytest.param("SELECT (|getENDTIME() + 1 AS ?n) { ?s :p ?x }", "always-error", "?n is never bound", id="always an error"),
    pytest.param("SELECT ?s { ?s :p ?x } LIMIT |2", "limit-ends", "after 2 solutions", id="LIMIT"),
    pytest.param(
        "SELECT ?s (MAX(?x) AS ?n) { ?s :p ?x } GROUP BY ?s WINDOW [SESSION PT1S] ORDER BY ?n LIMIT |2",
        "ranks-changed",
        "each instant",
        id="ranks of runs",
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } |WINDOW [RUN WHILE (?x > 1)]",
        "unbounded-run",
        "keeps its last one for ever: add GAP",
        id="a run without end",
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } |WINDOW [RUN UNTIL {?s :q ?x} CLOSED]",
        "unbounded-run",
        "keeps its last one for ever: add GAP",
        id="until",
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } WINDOW [RUN GAP PT1S WHILE (|PREV(getENDTIME()) > 1)]",
        "never-true",
        "WHILE",
        id="WHILE that is never true",
    ),
    pytest.param("SELECT * { ?s :p ?x FILTER(?s = :a && |'-1.5' <= ?x) }", "quoted-number", "write -1.5", id="a number in quotes on the left"),
]


@pytest.mark.parametrize(("marked", "code", "message"), WARNINGS)
def test_warning(marked: str, code: str, message: str) -> None:
    before, _, after = marked.partition("|")
    (warning,) = [warning for warning in parse(PROLOGUE + before + after).warnings if warning.code not in AMONG_OTHERS or warning.code == code]
    assert isinstance(warning, Warning_)
    assert warning.code == code
    assert message in warning.message
    assert warning.span is not None
    assert warning.span.start == len(PROLOGUE + before)


OUT_OF_SCOPE = [
    pytest.param("{?s :p ?x} SEQ {?s :q ?y FILTER(?y > ?x)}", ["?x"], id="the other operand"),
    pytest.param("?s :p ?x { ?s :q ?y BIND(?x + 1 AS ?n) FILTER(?z) }", ["?x", "?z"], id="the outer group"),
    pytest.param("{?s :p ?x} SEQ {?s :q ?y} FILTER(?y > ?x)", [], id="in the outer group"),
    pytest.param(
        '?s :p ?x OPTIONAL {?s :q ?y FILTER(?y > ?x && getDURATION() < "PT1H"^^xsd:duration)}',
        [],
        id="the condition of an optional join sees both sides",
    ),
    pytest.param("{?s :p ?x FILTER(?y > ?x)} OPTIONALSEQ {?s :q ?y}", [], id="the left condition of OPTIONALSEQ"),
    pytest.param("{?s :p ?x} EQUALSOPTIONAL {?s :q ?y FILTER(?y > ?x)}", [], id="the right condition of EQUALSOPTIONAL"),
    pytest.param("BIND(?x AS ?y) ?s :p ?x", ["?x"], id="bound later"),
    pytest.param("?s :p ?x {SELECT ?s {?s :q ?y FILTER(?x = ?y)}}", ["?x"], id="a sub-SELECT"),
    pytest.param("{SELECT ?s {?s :q ?y}} FILTER(?y = 1)", ["?y"], id="not projected"),
    pytest.param("GRAPH ?g {?s :p ?x} VALUES ?y {1} FILTER(?g != ?y && ?x = 1)", [], id="GRAPH and VALUES"),
    pytest.param("?s :p [:q (?x ?y)] FILTER(?x = ?y)", [], id="nested nodes"),
    pytest.param("?s :p ?x MINUS {?s :q ?y} FILTER(?y)", ["?y"], id="MINUS binds nothing"),
    pytest.param("?s :p ?x FILTER NOT EXISTS {?s :q ?y FILTER(?y > ?x)}", [], id="EXISTS sees the outer solution"),
    pytest.param("?s :p ?x FILTER(!BOUND(?y) || COALESCE(?z, 1) = 1)", [], id="asked for"),
]


@pytest.mark.parametrize(("text", "variables"), OUT_OF_SCOPE)
def test_out_of_scope(text: str, variables: list[str]) -> None:
    warnings = parse(f"{PROLOGUE}SELECT * {{ {text} }}").warnings
    assert [warning.code for warning in warnings] == ["out-of-scope"] * len(variables)
    assert [warning.message.split(" ")[0] for warning in warnings] == variables


OVER_UNBOUND = [
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y}", "SUM(?y)", "?y", id="OPTIONAL"),
    pytest.param("{?s :p ?x} UNION {?s :q ?y}", "AVG(?x)", "?x", id="UNION"),
    pytest.param("{?s :p ?y} OPTIONALSEQ {?s :q ?x}", "GROUP_CONCAT(?y)", "?y", id="OPTIONALSEQ"),
    pytest.param("{?s :p ?x} EQUALSOPTIONAL {?s :q ?y}", "SUM(?x * ?y)", "?y", id="EQUALSOPTIONAL, in an expression"),
    pytest.param("?s :p ?x VALUES (?x ?y) {(1 2) (2 UNDEF)}", "SUM(?y)", "?y", id="UNDEF"),
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y} BIND(?y - ?x AS ?z)", "AVG(?z)", "?z", id="a BIND of what may be unbound"),
    pytest.param("{SELECT ?s ?y {?s :p ?x OPTIONAL {?s :q ?y}}}", "SUM(?y)", "?y", id="a sub-SELECT"),
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y} FILTER(?x > 1 || ?y > 1)", "SUM(?y)", "?y", id="a FILTER that lets it pass"),
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y} FILTER(?x > 1 && BOUND(?y))", "SUM(?y)", "", id="BOUND"),
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y} FILTER(?y > 1)", "SUM(?y)", "", id="a FILTER that leaves it out"),
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y}", "SUM(COALESCE(?y, 0))", "", id="COALESCE"),
    pytest.param("?s :p ?x OPTIONAL {?s :q ?y}", "MAX(?y)", "", id="what leaves errors out"),
    pytest.param("{?s :p ?x} UNION {?s :q ?x}", "SUM(?x)", "", id="both branches bind it"),
    pytest.param("{?s :p ?a} SEQ {?s :p ?b} BIND(getDURATION() AS ?d)", "AVG(?d)", "", id="BIND"),
    pytest.param("{SELECT ?s (COUNT(?y) AS ?n) {?s :p ?x OPTIONAL {?s :q ?y}} GROUP BY ?s}", "SUM(?n)", "", id="COUNT always has a value"),
    pytest.param("GRAPH ?y {?s :p ?x} ?s :q [:r ?z]", "GROUP_CONCAT(?y)", "", id="GRAPH"),
]


@pytest.mark.parametrize(("pattern", "aggregate", "variable"), OVER_UNBOUND)
def test_aggregates_over_what_may_be_unbound(pattern: str, aggregate: str, variable: str) -> None:
    text = f"{PROLOGUE}SELECT ?s ({aggregate} AS ?n_) {{ {pattern} }} GROUP BY ?s WINDOW [ROWS 9]"
    found = [warning for warning in parse(text).warnings if warning.code == "aggregate-over-unbound"]
    assert [text[w.span.start : w.span.end] for w in found if w.span] == ([variable] if variable else [])
    assert all(w.span and w.span.start > text.index(aggregate) and f"FILTER(BOUND({variable}))" in w.message for w in found)


LENGTHS = [
    pytest.param('?y * 2 < "PT1H"^^xsd:duration', "", id="a product that may be one"),
    pytest.param("getDURATION() * 2 < 5", "never-true", id="a product of a duration is one"),
    pytest.param('getDURATION() / getDURATION() < "PT1H"^^xsd:duration', "never-true", id="a quotient of durations is a number"),
    pytest.param("getDURATION() / getDURATION() < 5", "", id="a quotient of durations"),
    pytest.param('getDURATION() + "PT1S"^^xsd:duration > "PT1H"^^xsd:duration', "", id="a sum of durations"),
    pytest.param("getDURATION() + 1 > 5", "never-true", id="a sum with a number"),
    pytest.param('2 / getDURATION() > "PT1H"^^xsd:duration', "never-true", id="a number by a duration"),
]


@pytest.mark.parametrize(("condition", "code"), LENGTHS)
def test_kinds_of_durations(condition: str, code: str) -> None:
    text = f"{PROLOGUE}SELECT * {{ ?s :p ?y FILTER({condition}) }}"
    assert "".join(warning.code for warning in parse(text).warnings) == code


def test_no_warning() -> None:
    text = 'SELECT ?s ?n { {?s :p "1.5e3"^^xsd:double} SEQ {?s :q " 7 "^^xsd:integer} SEQ {?s :p "-INF"^^xsd:float} BIND(1 AS ?n) }'
    assert parse(PROLOGUE + text).warnings == ()
