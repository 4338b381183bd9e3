"""Faults with their exact place: in each row the first `|` stands where the fault is, and is no part of the query."""

import pickle

import pytest

from epsparql import QueryError, parse
from epsparql.errors import InvalidLiteral, ScopeFault, SyntaxFault, UnknownPrefix, Unsupported, Warning_
from tests.epsparql.builders import PROLOGUE

SYNTAX = [
    ("|", "ends too early", "SELECT, CONSTRUCT, ASK or DESCRIBE"),
    ("SELECT * WHERE { |SEQ {?s :p ?o} }", "SEQ has no group in braces directly on its left", "{ ... } SEQ { ... }"),
    ("SELECT |WHERE FROM", "unexpected WHERE", "variables, '*' or (expression AS ?variable) after SELECT"),
    ("SELECT DISTINCT |{ ?s :p ?o }", "unexpected {", "variables, '*' or (expression AS ?variable) after DISTINCT"),
    ("SELECT ?s |, ?o { ?s :p ?o }", "unexpected ,", "another variable, FROM, WHERE or a pattern in braces"),
    ("|SELCT ?s { ?s :p ?o }", "unexpected SELCT; was SELECT meant?", "SELECT, CONSTRUCT, ASK or DESCRIBE"),
    ("SELECT ?s |WERE { ?s :p ?o }", "was WHERE meant?", "WHERE"),
    ("SELECT ?s WHERE |?s :p ?o", "unexpected ?s", "a pattern in braces after WHERE"),
    ("SELECT (?o + 1|) { ?s :p ?o }", "unexpected )", "an operator or AS"),
    ("SELECT (?o AS |1) { ?s :p ?o }", "unexpected 1", "a variable after AS"),
    ("SELECT ?s { {?s :p ?o} SEQ |}", "unexpected }", "a group in braces after SEQ"),
    ("SELECT ?s { {?s :p ?o} SEQ |?a :p ?b }", "unexpected ?a", "a group in braces after SEQ"),
    ("SELECT ?s { {?s :p ?o} union |:a :p ?b }", "unexpected :a", "a group in braces after union"),
    ("SELECT ?s { {?s :p ?o} OPTIONAL |SEQ {?s :r ?o} }", "SEQ has no group in braces", "a group in braces after OPTIONAL"),
    ("SELECT ?s { ?s :p ?o OPTIONAL {?s :q ?o} |SEQ {?s :r ?o} }", "SEQ has no group in braces", "{ ... } SEQ { ... }"),
    ("SELECT ?s { ?s :p ?o |WITHIN 5 }", "WITHIN has no group in braces directly on its left", "{ ... } WITHIN 10"),
    ("SELECT ?s { {?s :p ?o} |MEET {?s :r ?o} }", "was MEETS meant?", "an operator such as SEQ"),
    ("SELECT ?s { ?s :p ?o |?s :q ?o }", "unexpected ?s", "',', ';', '.'"),
    ("SELECT ?s { ?s :p |}", "unexpected }", "an object"),
    ("SELECT ?s { ?s |}", "unexpected }", "a predicate"),
    ("SELECT ?s { ?s |\"p\" ?o }", 'unexpected "p"', "a predicate"),
    ("SELECT ?s { ?s |_:p ?o }", "unexpected _:p", "a predicate"),
    ("SELECT ?s { ?s :p ?o . |. }", "unexpected .", "a triple pattern"),
    ("SELECT ?s { ?s :p ?o, |}", "unexpected }", "an object"),
    ("SELECT ?s { ?s :p [ :q ?r |}", "unexpected }", "']'"),
    ("SELECT ?s { ?s :p ( 1 2 |}", "unexpected }", "')'"),
    ("SELECT ?s { ?s :p |\"abc }", "a string that does not end", "an object"),
    ("SELECT ?s { ?s :p |\"a\\qc\" }", "a bad escape", "an object"),
    ("SELECT ?s { ?s |<http://a b> ?o }", "an IRI that does not end", "a predicate"),
    ("SELECT ?s { ?s :p ?o |", "ends too early", "'}'"),
    ("SELECT ?s { ?s :p ?o } |}", "unexpected }", "the end of the query"),
    ("SELECT ?s { ?s :p ?o } |INTO STREAM <x>", "INTO STREAM and INTO BACKGROUND are allowed only in a CONSTRUCT", ""),
    ("SELECT ?s { ?s :p ?o } |FROM <g>", "FROM comes too late", ""),
    ("SELECT ?s { ?s :p ?o . |SELECT ?o {} }", "a SELECT inside a group stands alone in braces of its own", ""),
    ("SELECT ?s { ?s :p/|?q ?o }", "unexpected ?q", "the next part of the path, which is no variable"),
    ("ASK |?s {}", "unexpected ?s", "a pattern in braces"),
    ("DESCRIBE |{}", "unexpected {", "variables, IRIs or '*' after DESCRIBE"),
    ("SELECT ?s { GRAPH |{} }", "unexpected {", "a variable or an IRI after GRAPH"),
    ("SELECT ?s { VALUES ?s { |?x } }", "unexpected ?x", "UNDEF"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [|LAST 5]", "unexpected LAST", "RANGE, ROWS, SESSION or RUN"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN |]", "unexpected ]", "WHILE, GAP, UNTIL or WITHIN"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN |CLOSED]", "unexpected CLOSED", "WHILE, GAP, UNTIL or WITHIN"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN GAP PT1S WHILE (true) |GAP PT2S]", "GAP stands twice in one RUN", "at most once"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [SESSION PT1S |GAP PT1S]", "unexpected GAP", "EACH or CLOSED"),
    ("SELECT (COUNT(*) AS ?n) {} WINDOW [RUN GAP |5]", "unexpected 5", "a duration"),
    ("SELECT (COUNT(*) AS ?n) {?s :p ?o} WINDOW [RUN WHILE (EXISTS |{?s :q ?o})]", "EXISTS stands in WHILE", "UNTIL"),
    ("SELECT (COUNT(*) AS ?n) {?s :p ?o} WINDOW [RUN WHILE (|SAMPLE(?o) > 1)]", "SAMPLE stands in WHILE", "COUNT, SUM"),
    ("SELECT (COUNT(*) AS ?n) {?s :p ?o} WINDOW [RUN WHILE (|SUM(DISTINCT ?o) > 1)]", "SUM(DISTINCT ...) stands in WHILE", "COUNT, SUM"),
    ("SELECT (COUNT(*) AS ?n) {?s :p ?o} WINDOW [RUN WHILE (PREV(|PREV(?o)) > 1)]", "PREV is a value of the element before", "another PREV"),
    ("SELECT ?s {?s :p ?o FILTER(|PREV(?o) > 1)}", "PREV is a value of the element before", "WHILE"),
    ("SELECT ?s {?s :p ?o} GROUP BY ?s HAVING (|PREV(?o) > 1)", "PREV is a value of the element before", "WHILE"),
    ("SELECT ?s {?s :p ?o} |WINDOW [SESSION PT1S]", "neither an aggregate nor GROUP BY", "an aggregate"),
    ("SELECT * { {?s :p ?o} |SEK {?s :p ?o} }", "unexpected SEK; was SEQ meant?", "an operator such as SEQ"),
    ("SELECT (COUNT(*) AS ?n) {} GROUP |?s", "unexpected ?s", "BY after GROUP"),
    ("SELECT ?s {} LIMIT |-1", "unexpected -1", "an integer without a sign after LIMIT"),
    ("REGISTER |STREAM <o> AS SELECT * {}", "unexpected STREAM", "RSTREAM, ISTREAM or DSTREAM after REGISTER"),
    ("SELECT ?s FROM NAMED WINDOW :w ON <s> [RANGE PT1S|] {}", "unexpected ]", "STEP"),
    ("SELECT ?s FROM |STREEM <x> {}", "was STREAM meant?", "STREAM, NAMED or the IRI of a graph"),
    ("SELECT ?s FROM STREAM |{}", "unexpected {", "the IRI of a stream after STREAM"),
    ("SELECT ?s FROM STREAM |<> {}", "a stream's name is not empty", "the IRI of a stream"),
    ("CONSTRUCT |WHRE {}", "was WHERE meant?", "a template in braces"),
    ("CONSTRUCT { ?s :p ?o } INTO |<x> WHERE {}", "unexpected <x>", "STREAM or BACKGROUND"),
    ("CONSTRUCT { ?s :p ?o } WHERE|", "ends too early", "a pattern in braces after WHERE"),
    ("CONSTRUCT { ?s :p ?o |FILTER(1) } WHERE {}", "unexpected FILTER", "'}'"),
    ("PREFIX |<http://e/> SELECT * {}", "unexpected <http://e/>", "a prefix such as ex: after PREFIX"),
    ("PREFIX e: |e SELECT * {}", "unexpected e", "an IRI in '<' and '>'"),
    ("|@prefix e: <e> .", "unexpected @prefix", "PREFIX"),
    ("SELECT ?s { ?s :p ?o FILTER |?o }", "unexpected ?o", "a condition in brackets or a function call after FILTER"),
    ("SELECT ?s { ?s :p ?o FILTER (?o > |) }", "unexpected )", "an expression"),
    ("SELECT ?s { ?s :p ?o FILTER (?o > 3 |}", "unexpected }", "an operator or ')'"),
    ("SELECT ?s { ?s :p ?o FILTER (?o = 3 |= 4) }", "cannot follow each other", "'&&', '||'"),
    ("SELECT ?s { ?s :p ?o FILTER (?o |& 1) }", "unexpected &", "an operator or ')'"),
    ("SELECT ?s { ?s :p ?o FILTER (?o IN |3) }", "unexpected 3", "'(' after IN"),
    ("SELECT ?s { ?s :p ?o FILTER NOT |(?o) }", "unexpected (", "EXISTS after NOT"),
    ("SELECT ?s { ?s :p ?o FILTER (?s|<?o&&?o>?s) }", "reads as an IRI", "an operator"),
    ("SELECT ?s { ?s :p ?o FILTER (|STRLENN(?o)) }", "no function STRLENN", "STRLEN(...)"),
    ("SELECT ?s { ?s :p ?o FILTER (|xyzzy(?o)) }", "no function xyzzy", "a function of SPARQL"),
    ("SELECT ?s { ?s :p ?o FILTER (|STRLEN(?o, 1)) }", "STRLEN has 2 arguments", "one argument"),
    ("SELECT ?s { ?s :p ?o FILTER (|IF(?o)) }", "IF has 1 argument", "3 arguments"),
    ("SELECT ?s { ?s :p ?o FILTER (|SUBSTR(?o)) }", "SUBSTR has 1 argument", "2 or 3 arguments"),
    ("SELECT ?s { ?s :p ?o FILTER (|getDURATION(?o) > 1) }", "getDURATION has 1 argument", "no argument"),
    ("SELECT ?s { ?s :p ?o FILTER (getDURATION |> 1) }", "unexpected >", "'(' after getDURATION"),
    ("SELECT ?s { ?s :p ?o FILTER BOUND(|3) }", "unexpected 3", "a variable"),
    ("SELECT ?s { ?s :p ?o FILTER BOUND(|(?o)) }", "unexpected (", "a variable"),
    ("SELECT ?s { ?s :p ?o FILTER (- |-?o = 1) }", "an expression has one sign", "brackets"),
    ("SELECT ?s { ?s :p ?o FILTER regex(?o |\"a\") }", 'unexpected "a"', "',' or ')'"),
    ("SELECT ?s { ?s :p ?o |FLITER (?o > 3) }", "was FILTER meant?", "FILTER"),
    ("SELECT ?s { ?s :p ?o BIND |?o AS ?x }", "unexpected ?o", "'(' after BIND"),
    ("SELECT ?s { ?s :p ?o BIND(?o|) }", "unexpected )", "an operator or AS"),
    ("SELECT ?s { {?s :p ?o} WITHIN |}", "unexpected }", 'a duration such as "PT10S"^^xsd:duration'),
    ("SELECT ?s { {?s :p ?o} WITHIN |?x }", "unexpected ?x", "a number of seconds after WITHIN"),
    ("SELECT ?s { {?s :p ?o} |WITHOUT {?s :q ?o} }", "WITHOUT does not follow a SEQ", "FOR and a duration"),
    ("SELECT ?s { {} SEQ {} WITHOUT {} |WITHOUT {} }", "WITHOUT does not follow a SEQ", "UNION"),
    ("SELECT ?s { {} SEQ {} UNION {} |WITHOUT {} }", "WITHOUT does not follow a SEQ", "only WITHIN between"),
    ("SELECT ?s { {{} SEQ {}} |WITHOUT {} }", "WITHOUT does not follow a SEQ", "only WITHIN between"),
    ("SELECT ?s { ?s :p ?o FILTER(?o |<> 1) }", "<> is no operator of an expression", "!="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |== 1) }", "== is no operator of an expression", "="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |!== 1) }", "!== is no operator of an expression", "!="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |=> 1) }", "=> is no operator of an expression", ">="),
    ("SELECT ?s { ?s :p ?o FILTER(?o |=< 1) }", "=< is no operator of an expression", "<="),
    ("SELECT ?s { ?s :p ?o FILTER(?o > 1 |AND ?o < 3) }", "AND is no operator of an expression", "&&"),
    ("SELECT ?s { ?s :p ?o FILTER(?o > 1 |or ?o < 3) }", "or is no operator of an expression", "||"),
    ("SELECT ?s { {?s :p ?o} |THEN {?s :q ?o} }", "unexpected THEN", "{ ... } SEQ { ... }"),
    ("SELECT ?s { {?s :p ?o} |FOLLOWED BY {?s :q ?o} }", "unexpected FOLLOWED", "{ ... } SEQ { ... }"),
    ("SELECT ?s { {?s :p ?o} |-> {?s :q ?o} }", "unexpected -", "{ ... } SEQ { ... }"),
    ("SELECT ?s { {?s :p ?o} |OR {?s :q ?o} }", "unexpected OR", "{ ... } UNION { ... }"),
    ("SELECT ?s { ?s :p ?o FILTER(?o |LIKE 'a%') }", "unexpected LIKE", "REGEX(?x, ...)"),
    ("SELECT ?s { ?s :p ?o FILTER(?o |between 1 and 2) }", "unexpected between", "?x >= ... && ?x <= ..."),
    ("SELECT * FROM STREAM <http://e/s> |[RANGE 10m STEP 1m] { ?s :p ?o }", "unexpected [", "FROM NAMED WINDOW"),
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
    ("SELECT ?s { ?s :p ?o |\u00a0 }", "unexpected character U+00A0", "'}'"),
    ("SELECT ?s { ?s :p |\ud800 }", "half of a surrogate pair", "text in Unicode"),
    ("SELECT ?s { ?s :p '|\\ud800' }", "no Unicode character", "a code point"),
]  # fmt: skip
LITERALS = [
    ('?s :p |"P1H"^^xsd:duration', '"P1H" is no xsd:duration', "PT1H"),
    ('?s :p ?o FILTER(getDURATION() < |"P1H"^^xsd:duration)', '"P1H" is no xsd:duration', "PT1H"),
    ('{} WITHIN |"P1H"^^xsd:duration', '"P1H" is no duration', "PT1H"),
    ('{} WITHIN |"10 seconds"', '"10 seconds" is no duration', "PT10S"),
    ("{} WITHIN |P1H", '"P1H" is no duration', "PT1H"),
    ("{} WITHIN |P1M", "the duration has months or years", "days, hours"),
    ("{} WITHIN |P1Y", "the duration has months or years", "days, hours"),
    ("{} WITHIN |-5", "the duration is not positive", "longer than zero"),
    ('{} WITHIN |"-PT5S"', "the duration is not positive", "longer than zero"),
    ("{} WITHOUT {} FOR |0", "the duration is not positive", "longer than zero"),
    ("{SELECT (COUNT(*) AS ?n) {} WINDOW [SESSION |PT0S]}", "the duration is not positive", "longer than zero"),
    ("{SELECT (COUNT(*) AS ?n) {} WINDOW [RUN WITHIN 0 GAP |PT0S]}", "the duration is not positive", "longer than zero"),
    ("{} WITHIN |0.0000001", "finer than a microsecond", "six digits"),
    ("{} WITHIN |1e-99999999999999999999", "out of range", "a number of seconds"),
    ("{} WITHIN |1e99", "too long", "days"),
    ("{} WITHIN |P99999999999D", "too long", "days"),
    ("{} WITHIN |PT0.0000001S", "finer than a microsecond", "days, hours"),
    ('{} WITHIN |"PT1S"^^xsd:time', "no xsd:duration", "xsd:duration"),
    ('?s :p |"2026-01-01 00:00:00"^^xsd:dateTime', "no xsd:dateTime", "2026-01-01T00:00:00Z"),
    ('?s :p |"2026-01-01"^^xsd:dateTime', "no xsd:dateTime", "2026-01-01T00:00:00Z"),
    ('?s :p |"2026-02-30T00:00:00Z"^^xsd:dateTime', "no xsd:dateTime", "a form such as"),
    ('?s :p [ :q ("x" |"P1H"^^xsd:duration) ]', '"P1H" is no xsd:duration', "PT1H"),
]
UNSUPPORTED = [
    ("SELECT ?s { {?s :p ?o} |SEQOPTIONAL {?s :q ?o} }", "SEQOPTIONAL is refused"),
    ("SELECT ?s { ?s :p ?o |SEQOPTIONAL { ?s :q ?o } }", "SEQOPTIONAL is refused"),
    ("SELECT ?s { ?s :p ?o . |SEQOPTIONAL ?s :q ?o }", "SEQOPTIONAL is refused"),
    ("SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON <s> [RANGE PT1S STEP PT1S] { WINDOW :w {?s :p ?o} } |WINDOW [SESSION PT1S]", "named windows"),
    ("|INSERT DATA { :a :b :c }", "INSERT is SPARQL Update"),
    ("SELECT (FIRST(|DISTINCT ?s) AS ?n) { ?s :p ?o }", "DISTINCT has no meaning in FIRST and LAST"),
    ("SELECT ?s { |SERVICE <x> { ?s :p ?o } }", "SERVICE is refused"),
    ("SELECT ?s { OPTIONAL { |SERVICE SILENT ?x { ?s :p ?o } } }", "SERVICE is refused"),
    ("SELECT (:f(|DISTINCT ?s) AS ?n) { ?s :p ?o }", "DISTINCT stands in SPARQL's own aggregates only"),
]
SCOPE = [
    ("SELECT ?s { ?s :p ?o BIND (?o+1 AS |?s) }", "?s cannot be assigned"),
    ("SELECT ?s { {?s :p ?o} OPTIONAL {?s :q ?r} BIND (1 AS |?r) }", "?r cannot be assigned"),
    ("SELECT ?s { BIND (1 AS ?r) BIND (2 AS |?r) }", "?r cannot be assigned"),
    ("SELECT ?s (1 AS |?s) { ?s :p ?o }", "?s cannot be assigned"),
    ("SELECT (1 AS ?x) (2 AS |?x) { ?s :p ?o }", "?x cannot be assigned"),
    ("SELECT ?x (2 AS |?x) { ?s :p ?o }", "?x cannot be assigned"),
    ("SELECT ?s { _:a :p ?o . {|_:a :q ?o} }", "the blank node _:a"),
    ("SELECT ?s { _:a :p ?o OPTIONAL {?s :q |_:a} }", "the blank node _:a"),
    ("SELECT ?s { _:a :p ?o FILTER EXISTS {?s :q |_:a} }", "the blank node _:a"),
    ("SELECT ?s { _:a :p ?o BIND(1 AS ?n) |_:a :q ?o }", "the blank node _:a"),
]
PREFIXES = [
    ("SELECT ?s { ?s |ex:p ?o }", "the prefix ex: is not declared", "(:, xsd:)"),
    ("SELECT ?s { ?s |XSD:p ?o }", "the prefix XSD: is not declared", "xsd:, the nearest prefix declared"),
    ("SELECT ?s { ?s |xds:p ?o }", "the prefix xds: is not declared", "xsd:, the nearest prefix declared"),
    ("SELECT ?s { ?s |rdfs:label ?o }", "the prefix rdfs: is not declared", "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>"),
    ("SELECT ?s FROM STREAM |ex:s { ?s ?p ?o }", "the prefix ex: is not declared", ""),
    ("SELECT ?s { ?s ?p ?o FILTER(|ex:f(?o)) }", "the prefix ex: is not declared", ""),
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


@pytest.mark.parametrize(("marked", "message"), UNSUPPORTED)
def test_unsupported(marked: str, message: str) -> None:
    check(marked, Unsupported, message)


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
    assert str(fault) == "line 2, column 28: unexpected }; expected a group in braces after SEQ"
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
    pytest.param("CONSTRUCT { |1 :p ?s } WHERE { ?s :p ?x }", "literal-subject", "a literal is no subject", id="literal subject"),
    pytest.param("SELECT * { {} SEQ {} |UNION {} }", "mixed-operators", "mixes SEQ and UNION", id="mixed operators"),
    pytest.param('SELECT * { ?s :p |"x"^^xsd:integer }', "ill-typed", "no xsd:integer", id="integer"),
    pytest.param('SELECT * { ?s :p |"1,5"^^xsd:decimal }', "ill-typed", "no xsd:decimal", id="decimal"),
    pytest.param('SELECT * { ?s :p |"1f"^^xsd:double }', "ill-typed", "no xsd:double", id="double"),
    pytest.param('SELECT * { ?s :p |"TRUE"^^xsd:boolean }', "ill-typed", "no xsd:boolean", id="boolean"),
    pytest.param("SELECT * { ?s :p ?x FILTER(?x > 1 && |getDURATION() < 5) }", "never-true", '"PT5S"^^xsd:duration', id="never true"),
    pytest.param("SELECT * { ?s :p ?x FILTER(|getDURATION() < 0.5) }", "never-true", '"PT0.5S"^^xsd:duration', id="never true, with half a second"),
    pytest.param("SELECT (|getENDTIME() + 1 AS ?n) { ?s :p ?x }", "always-error", "?n is never bound", id="always an error"),
    pytest.param("SELECT * { ?s :p ?x |OPTIONAL { ?s :q ?y } }", "unbounded-optional", "getDURATION()", id="unbounded OPTIONAL"),
    pytest.param("SELECT (|SUM(?x) AS ?n) { ?s :p ?x }", "unbounded-aggregate", "WINDOW", id="unbounded aggregate"),
    pytest.param("|SELECT DISTINCT ?s { ?s :p ?x }", "distinct-per-interval", "at different times", id="DISTINCT"),
    pytest.param("SELECT ?s { ?s :p ?x } ORDER BY |?x", "order-per-instant", "one instant", id="ORDER BY"),
    pytest.param("SELECT ?s { ?s :p ?x } LIMIT |2", "limit-ends", "after 2 solutions", id="LIMIT"),
    pytest.param("SELECT ?s { { SELECT ?s { ?s :p ?x } ORDER BY |?x } }", "order-unused", "sub-SELECT", id="ORDER BY in a sub-SELECT"),
    pytest.param(
        "SELECT ?s (MAX(?x) AS ?n) { ?s :p ?x } GROUP BY ?s WINDOW [SESSION PT1S] ORDER BY ?n LIMIT |2",
        "ranks-changed",
        "each instant",
        id="ranks of runs",
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } |WINDOW [RUN WHILE (?x > 1)]",
        "unbounded-run",
        "keeps its last one for ever: GAP",
        id="a run without end",
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } |WINDOW [RUN WHILE (?x > 1) CLOSED]",
        "unbounded-run",
        "only when another begins",
        id="a last run that waits",
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } |WINDOW [RUN UNTIL {?s :q ?x} CLOSED]", "unbounded-run", "keeps its last one for ever: GAP", id="until"
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } WINDOW [RUN GAP PT1S WHILE (|?z > 1)]", "out-of-scope", "?z is used where", id="WHILE without a value"
    ),
    pytest.param(
        "SELECT (MAX(?x) AS ?n) { ?s :p ?x } WINDOW [RUN GAP PT1S WHILE (|PREV(getENDTIME()) > 1)]",
        "never-true",
        "WHILE",
        id="WHILE that is never true",
    ),
    pytest.param("SELECT * { ?s :p ?x FILTER(|?x > '20') }", "quoted-number", "write 20", id="a number in quotes"),
    pytest.param("SELECT * { ?s :p ?x FILTER(?s = :a && |'-1.5' <= ?x) }", "quoted-number", "write -1.5", id="a number in quotes on the left"),
    pytest.param(
        "SELECT ?s (MAX(?x) AS ?n) { ?s :p ?x } GROUP BY ?s WINDOW [ROWS 9] ORDER BY ?n LIMIT |2", "ranks-changed", "STEP", id="ranks of what changed"
    ),
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
