"""SPARQL's rules of scope, and the places of what breaks them: in each row the first `|` stands where the fault is,
and is no part of the query.
"""

import pytest

from epsparql import QueryError, parse
from epsparql.errors import InvalidLiteral, ScopeFault, SyntaxFault, Unsupported
from tests.epsparql.builders import PROLOGUE

WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT1H STEP PT10M]"
FAULTS: list[tuple[type[QueryError], str, str]] = [
    # BIND and AS: a variable that is new (18.2.4.4, 19.8 notes 12 and 13)
    (ScopeFault, "SELECT * { VALUES ?x { 1 } BIND(2 AS |?x) }", "?x cannot be assigned"),
    (ScopeFault, "SELECT * { GRAPH ?g { ?s :p ?o } BIND(2 AS |?g) }", "?g cannot be assigned"),
    (ScopeFault, "SELECT * { ?s :p* ?o BIND(2 AS |?o) }", "?o cannot be assigned"),
    (ScopeFault, "SELECT * { {SELECT ?s { ?s :p ?o }} BIND(2 AS |?s) }", "?s cannot be assigned"),
    (ScopeFault, "SELECT (1 AS |?x) {} VALUES ?x { 1 }", "?x cannot be assigned"),
    (ScopeFault, "SELECT * { { SELECT (1 AS |?s) { ?s :p ?o } } }", "?s cannot be assigned"),
    (ScopeFault, "SELECT ?s { ?s :p ?o } GROUP BY |(1 AS ?s)", "?s cannot be assigned"),
    (ScopeFault, "SELECT ?n { ?s :p ?o } GROUP BY (1 AS ?n) |(2 AS ?n)", "?n cannot be assigned"),
    (ScopeFault, "SELECT ?n (COUNT(*) AS |?n) { ?s :p ?o } GROUP BY (1 AS ?n)", "?n cannot be assigned"),
    # groups: outside of aggregates, only keys have a value
    (ScopeFault, "SELECT |?o { ?s :p ?o } GROUP BY ?s", "?o has no single value"),
    (ScopeFault, "SELECT (COUNT(*) AS ?n) |?s { ?s :p ?o }", "?s has no single value"),
    (ScopeFault, "SELECT (|?o + 1 AS ?n) { ?s :p ?o } GROUP BY ?s", "?o has no single value"),
    (ScopeFault, "SELECT (SUM(?o) + IF(?s = 1, 2, |?o) AS ?n) { ?s :p ?o } GROUP BY ?s", "?o has no single value"),
    (ScopeFault, "SELECT (STR(|?o) AS ?n) { ?s :p ?o } GROUP BY STR(?o)", "?o has no single value"),
    (ScopeFault, "SELECT |?s { ?s :p ?o } ORDER BY COUNT(?o)", "?s has no single value"),
    (SyntaxFault, "|SELECT * { ?s :p ?o } GROUP BY ?s", "SELECT * has no meaning"),
    (SyntaxFault, "SELECT ?s { { |SELECT * { ?s :p ?o } HAVING (COUNT(*) > 1) } }", "SELECT * has no meaning"),
    # aggregates: where solutions are grouped already
    (SyntaxFault, "SELECT * { ?s :p ?o FILTER(|COUNT(?o) > 1) }", "the aggregate COUNT"),
    (SyntaxFault, "SELECT * { ?s :p ?o BIND(|SUM(?o) AS ?n) }", "the aggregate SUM"),
    (SyntaxFault, "SELECT ?s { ?s :p ?o } GROUP BY ?s |MAX(?o)", "the aggregate MAX"),
    (SyntaxFault, "SELECT (AVG(1 + |MIN(?o)) AS ?n) { ?s :p ?o }", "the aggregate MIN"),
    (SyntaxFault, "SELECT (COUNT(*) AS ?n) { ?s :p ?o } HAVING EXISTS { ?s :q ?r FILTER(|SAMPLE(?r)) }", "the aggregate SAMPLE"),
    (Unsupported, "SELECT (:f(|DISTINCT ?s) AS ?n) { ?s :p ?o }", "no extension aggregates"),
    # VALUES
    (ScopeFault, "SELECT * { VALUES (?x ?y |?x) {} }", "?x stands twice"),
    (SyntaxFault, "SELECT * { VALUES (?x ?y) { (1 2) |(1) } }", "the row has 1 value for 2 variables"),
    (SyntaxFault, "SELECT * { VALUES (?x) { |(1 2) } }", "the row has 2 values for 1 variable"),
    (SyntaxFault, "SELECT * { VALUES () { |(1) } }", "the row has 1 value for 0 variables"),
    (SyntaxFault, "ASK {} VALUES ?x { |?y }", "unexpected ?y"),
    (SyntaxFault, "ASK {} VALUES ?x { |_:b }", "unexpected _:b"),
    (InvalidLiteral, 'ASK {} VALUES ?x { |"P1H"^^xsd:duration }', '"P1H" is no xsd:duration'),
    # blank node labels belong to one basic graph pattern
    (ScopeFault, "ASK { _:a :p ?o GRAPH ?g { ?s :q |_:a } }", "the blank node _:a"),
    (ScopeFault, "ASK { _:a :p ?o VALUES ?x { 1 } |_:a :q ?o }", "the blank node _:a"),
    (ScopeFault, "ASK { _:a :p* ?o OPTIONAL { |_:a :q* ?o } }", "the blank node _:a"),
    (ScopeFault, "ASK { { SELECT * { _:a :p ?o } } |_:a :q ?o }", "the blank node _:a"),
    (ScopeFault, "SELECT (EXISTS { _:a :p ?o } AS ?x) { |_:a :q ?o }", "the blank node _:a"),
    # templates
    (SyntaxFault, "CONSTRUCT { ?s |:p/:q ?o } WHERE { ?s ?p ?o }", "a property path stands in a template"),
    (SyntaxFault, "CONSTRUCT { ?s :p ([ |^:q ?o ]) } WHERE { ?s ?p ?o }", "a property path stands in a template"),
    (SyntaxFault, "CONSTRUCT WHERE { ?s |:p* ?o }", "a property path stands in a template"),
    (SyntaxFault, "CONSTRUCT WHERE { ?s :p ?o |FILTER(?o) }", "FILTER stands in a template"),
    (SyntaxFault, "CONSTRUCT WHERE { |GRAPH ?g { ?s :p ?o } }", "unexpected GRAPH"),
    # modifiers and windows
    (SyntaxFault, "SELECT ?s { ?s :p ?o } |WINDOW [ROWS 5]", "WINDOW says what an aggregate sees"),
    (InvalidLiteral, "SELECT ?s { ?s :p ?o } GROUP BY ?s WINDOW [ROWS |0]", "a window of no rows"),
    (InvalidLiteral, "SELECT ?s { ?s :p ?o } GROUP BY ?s WINDOW [RANGE |P1H]", '"P1H" is no duration'),
    (InvalidLiteral, "SELECT ?s { ?s :p ?o } GROUP BY ?s WINDOW [RANGE PT1H STEP |PT0S]", "the duration is not positive"),
    (SyntaxFault, "SELECT ?s { ?s :p ?o } GROUP BY ?s WINDOW [RANGE |10]", "unexpected 10"),
    (SyntaxFault, "SELECT ?s { ?s :p ?o } LIMIT 5 |LIMIT 6", "LIMIT comes too late or twice"),
    (SyntaxFault, "SELECT ?s { ?s :p ?o } ORDER BY ?s |GROUP BY ?s", "GROUP comes too late or twice"),
    (SyntaxFault, "SELECT ?s { ?s :p ?o } LIMIT |-1", "unexpected -1"),
    (InvalidLiteral, "SELECT ?s { ?s :p ?o } LIMIT |4611686018427387905", "the number is too large"),
    (InvalidLiteral, f"SELECT ?s {{ ?s :p ?o }} OFFSET |{'9' * 5_000}", "the number is too large"),
    # named windows
    (ScopeFault, f"SELECT * {WINDOW} {{ WINDOW |:v {{ ?s :p ?o }} }}", "there is no window <http://e/v>"),
    (ScopeFault, "SELECT * { WINDOW |:v { ?s :p ?o } }", "there is no window <http://e/v>"),
    (ScopeFault, f"SELECT * {WINDOW} FROM NAMED WINDOW |:w ON :t [RANGE PT1H STEP PT10M] {{}}", "there are two windows <http://e/w>"),
    (Unsupported, f"SELECT * {WINDOW} {{ WINDOW |?w {{ ?s :p ?o }} }}", "a window is named by its IRI"),
    (Unsupported, f"SELECT (COUNT(*) AS ?n) {WINDOW} {{ WINDOW :w {{ ?s :p ?o }} }} |WINDOW [ROWS 5]", "has no WINDOW clause of its own"),
    (SyntaxFault, f"SELECT * {WINDOW} |FROM STREAM <s> {{}}", "do not go together"),
    (SyntaxFault, "SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT1H|] {}", "unexpected ']'"),
    (SyntaxFault, "SELECT * FROM NAMED WINDOW :w ON |<> [RANGE PT1H STEP PT1M] {}", "a stream's name is not empty"),
    (SyntaxFault, "|REGISTER RSTREAM <out> AS SELECT * {}", "the query has none"),
    (SyntaxFault, f"REGISTER RSTREAM <out> AS CONSTRUCT {{}} INTO STREAM |<in> {WINDOW} {{}}", "REGISTER already names the stream"),
    # SERVICE, and what a sub-SELECT has not
    (Unsupported, "SELECT * { |SERVICE SILENT ?x { ?s :p ?o } }", "SERVICE is refused"),
    (SyntaxFault, "SELECT * { SERVICE <x> { ?s :p |} }", "unexpected '}'"),
    (SyntaxFault, "SELECT * { { SELECT * |FROM :g {} } }", "unexpected FROM"),
    (SyntaxFault, "SELECT * { {} |SELECT * {} }", "a SELECT inside a group stands alone"),
    (SyntaxFault, "SELECT * { { SELECT * {} |?s :p ?o } }", "unexpected ?s"),
]


@pytest.mark.parametrize(("kind", "marked", "message"), FAULTS)
def test_fault(kind: type[QueryError], marked: str, message: str) -> None:
    before, _, after = marked.partition("|")
    with pytest.raises(QueryError) as caught:
        parse(PROLOGUE + before + after)
    assert type(caught.value) is kind
    assert message in caught.value.message
    assert caught.value.span.start == len(PROLOGUE + before)


LEGAL = [
    pytest.param("SELECT * { ?s :p ?o { BIND(1 AS ?o) } }", id="BIND in a group of its own"),
    pytest.param("SELECT * { { SELECT ?s { ?s :p ?o } } BIND(1 AS ?o) }", id="what a sub-SELECT hides is free"),
    pytest.param("SELECT * { ?s :p ?o MINUS { ?s :q ?r } BIND(1 AS ?r) }", id="what MINUS holds is free"),
    pytest.param("SELECT * { ?s :p ?o FILTER EXISTS { ?s :q ?r } BIND(1 AS ?r) }", id="what EXISTS holds is free"),
    pytest.param(
        "SELECT (SUM(?o) AS ?n) ?s { ?s :p ?o } GROUP BY ?s HAVING (EXISTS { ?s :q ?r })", id="a pattern in HAVING has variables of its own"
    ),
    pytest.param("SELECT (?s AS ?o) { ?s :p ?o } GROUP BY ?s", id="what grouping hides is free"),
    pytest.param("SELECT (1 AS ?x) (?x AS ?y) ?x {}", id="what SELECT assigned is known after it"),
    pytest.param("SELECT * { _:a :p ?o FILTER(?o > 1) _:a :q ?r . ?s :p* _:a }", id="a FILTER does not part triples"),
    pytest.param("SELECT * { _:a :p ?o FILTER EXISTS { _:b :p ?o FILTER(?o) _:b :q ?r } _:a :q ?r }", id="nor does the pattern in it"),
    pytest.param("CONSTRUCT { _:a :p ?o } WHERE { _:a :q ?o }", id="labels of a template are its own"),
    pytest.param("SELECT * { SELECT * { SELECT * {} } }", id="sub-SELECT in sub-SELECT"),
]


@pytest.mark.parametrize("text", LEGAL)
def test_legal(text: str) -> None:
    parse(PROLOGUE + text)


DEEP = [
    pytest.param("SELECT * { " + "{?s ?p ?o} " * 200 + "|" + "{?s ?p ?o} " * 100 + "}", id="300 groups side by side"),
    pytest.param("SELECT * { {}" + " SEQ {}" * 200 + " |SEQ {}" + " SEQ {}" * 99 + "}", id="300 operators of a chain"),
    pytest.param("SELECT * { " + "OPTIONAL {} " * 200 + "|OPTIONAL {} }", id="201 OPTIONALs"),
    pytest.param("SELECT * { " + "FILTER(?s > 1) " * 200 + "|FILTER(?s > 2) }", id="201 FILTERs"),
    pytest.param("SELECT * { " + "".join(f"{'|' * (i == 200)}BIND(1 AS ?x{i}) " for i in range(300)) + "}", id="300 BINDs"),
    pytest.param("SELECT * { {} FILTER(?a > 1) FILTER(|?o = 1" + " || ?o = 2" * 300 + ") }", id="300 comparisons"),
    pytest.param("SELECT * |{ ?s :p" + "|:p" * 300 + " ?o }", id="300 alternatives"),
    pytest.param("SELECT * |{ " + "?s :p* ?o . " * 300 + "}", id="300 paths of one group"),
    pytest.param("SELECT (|SUM(1" + "+1" * 300 + ") AS ?n) {}", id="300 sums in an aggregate"),
    pytest.param("SELECT " + "".join(f"{'|' * (i == 200)}(1 AS ?x{i}) " for i in range(300)) + "{}", id="300 expressions of SELECT"),
    pytest.param("SELECT ?s |{} GROUP BY ?s HAVING " + "(SUM(?o) > 1) " * 300, id="300 conditions"),
]


@pytest.mark.parametrize("marked", DEEP)
def test_depth(marked: str) -> None:
    """200 operators above one another are enough for each consumer's recursion."""
    before, _, after = marked.partition("|")
    with pytest.raises(QueryError, match="more than 200 operators deep") as caught:
        parse(PROLOGUE + before + after)
    assert caught.value.span.start == len(PROLOGUE + before)


WIDE = [
    pytest.param("SELECT * { ?s :p" + "/:p" * 1_999 + " ?o }", id="a sequence"),
    pytest.param("SELECT * { ?s !(:p" + "|:p" * 2_000 + ") ?o }", id="a negated set"),
    pytest.param("SELECT * { VALUES ?x {" + " 1" * 5_000 + " } }", id="rows"),
    pytest.param("SELECT (1 AS ?x) {} GROUP BY" + " ?s" * 2_000, id="keys"),
    pytest.param("SELECT * {} ORDER BY" + " ?s" * 2_000, id="comparators"),
    pytest.param("SELECT *" + " FROM :g" * 1_000 + " {}", id="graphs"),
    pytest.param("SELECT * " + "{ SELECT * " * 99 + "{}" + "}" * 99, id="99 sub-SELECTs"),
    pytest.param("SELECT * { ?s " + "(" * 98 + ":p" + "*)" * 98 + " ?o }", id="98 brackets of a path"),
]


@pytest.mark.parametrize("text", WIDE)
def test_lists_may_be_long(text: str) -> None:
    parse(PROLOGUE + text)
