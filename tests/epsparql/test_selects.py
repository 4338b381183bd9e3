"""GROUP BY, aggregates, modifiers, VALUES, GRAPH, sub-SELECT and the four query forms: text and the algebra it means
(SPARQL 1.1, 18.2.4).
"""

import pytest

from epsparql import QueryError, parse
from epsparql import algebra as a
from epsparql.algebra import (
    PLAIN,
    Aggregate,
    AggregateFunction,
    Ask,
    Bgp,
    Compare,
    Comparison,
    Construct,
    Describe,
    Extend,
    Filter,
    Graph,
    Group,
    GroupWindow,
    Join,
    LeftJoin,
    Minus,
    Modifiers,
    Once,
    OrderKey,
    Pattern,
    RangeWindow,
    RowsWindow,
    RunReport,
    RunWindow,
    Select,
    SubSelect,
    Union,
    Values,
    Var,
)
from epsparql.terms import XSD, Iri, Literal, Variable
from tests.epsparql.builders import NAMESPACE, PROLOGUE, bgp, constant, integer

S, X, Y, Z, N, M, G = (Variable(name) for name in "sxyznmg")
A, B = bgp("?s a ?x"), bgp("?s b ?y")
AGG0, AGG1, KEY0, KEY1 = (Variable(name) for name in ("_:agg#0", "_:agg#1", "_:key#0", "_:key#1"))
PREV0, RUN0 = Variable("_:prev#0"), Variable("_:run#0")
ALL = Aggregate(AggregateFunction.COUNT, None)
SUM = Aggregate(AggregateFunction.SUM, Var(X))
STR = a.Call("STR", (Var(X),))
ONE = constant("1")
MINUTE = 60_000_000


def query_of(text: str) -> a.Query:
    return parse(PROLOGUE + text).query


def counted(keys: tuple[Variable, ...] = (), pattern: Pattern = A, window: GroupWindow | None = None) -> Pattern:
    """COUNT(*) AS ?n over `pattern`."""
    return Extend(Group(pattern, keys, ((AGG0, ALL),), window), N, Var(AGG0))


# ---------------------------------------------------------------- aggregates and groups
AGGREGATES = [
    pytest.param("COUNT(*)", ALL, id="count of solutions"),
    pytest.param("count(distinct *)", Aggregate(AggregateFunction.COUNT, None, True), id="count of distinct solutions"),
    pytest.param("COUNT(?x)", Aggregate(AggregateFunction.COUNT, Var(X)), id="count of values"),
    pytest.param("SUM(DISTINCT ?x)", Aggregate(AggregateFunction.SUM, Var(X), True), id="distinct"),
    pytest.param("MIN(?x + 1)", Aggregate(AggregateFunction.MIN, a.Arithmetic(a.Operator.ADD, Var(X), ONE)), id="of an expression"),
    pytest.param("MAX((?x))", Aggregate(AggregateFunction.MAX, Var(X)), id="brackets"),
    pytest.param("AVG(?x)", Aggregate(AggregateFunction.AVG, Var(X)), id="average"),
    pytest.param("SAMPLE(EXISTS { ?s :b ?y })", Aggregate(AggregateFunction.SAMPLE, a.Exists(B)), id="of a pattern"),
    pytest.param("GROUP_CONCAT(?x)", Aggregate(AggregateFunction.GROUP_CONCAT, Var(X)), id="joined by a blank"),
    pytest.param("GROUP_CONCAT(?x ; SEPARATOR = '')", Aggregate(AggregateFunction.GROUP_CONCAT, Var(X), False, ""), id="joined by nothing"),
    pytest.param('Group_Concat(distinct ?x; separator=", ")', Aggregate(AggregateFunction.GROUP_CONCAT, Var(X), True, ", "), id="separator"),
]


@pytest.mark.parametrize(("text", "aggregate"), AGGREGATES)
def test_aggregate(text: str, aggregate: Aggregate) -> None:
    pattern = Extend(Group(A, (), ((AGG0, aggregate),)), N, Var(AGG0))
    assert query_of(f"SELECT ({text} AS ?n) {{ ?s :a ?x }}") == Select(pattern, (N,), False)


GROUPS = [
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY ?s", counted((S,)), (N,), id="a key that is not selected"),
    pytest.param("SELECT ?s { ?s :a ?x } GROUP BY ?s ?x", Group(A, (S, X), ()), (S,), id="keys alone"),
    pytest.param("SELECT ?s { ?s :a ?x } GROUP BY ?s ?s", Group(A, (S,), ()), (S,), id="a key given twice"),
    pytest.param("SELECT ?s { ?s :a ?x } GROUP BY (?s)", Group(A, (S,), ()), (S,), id="a variable in brackets"),
    pytest.param("SELECT ?y { ?s :a ?x } GROUP BY (STR(?x) AS ?y)", Group(Extend(A, Y, STR), (Y,), ()), (Y,), id="a key with a name"),
    pytest.param(
        "SELECT (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY STR(?x) (?x + 1)",
        counted((KEY0, KEY1), Extend(Extend(A, KEY0, STR), KEY1, a.Arithmetic(a.Operator.ADD, Var(X), ONE))),
        (N,),
        id="keys without a name",
    ),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY :f(?x)", counted((KEY0,), Extend(A, KEY0, a.Call("<http://e/f>", (Var(X),)))), (N,), id="call"),
    pytest.param(
        "SELECT (SUM(?x) + SUM(?x) AS ?n) (COUNT(*) AS ?m) { ?s :a ?x }",
        Extend(Extend(Group(A, (), ((AGG0, SUM), (AGG1, ALL))), N, a.Arithmetic(a.Operator.ADD, Var(AGG0), Var(AGG0))), M, Var(AGG1)),
        (N, M),
        id="equal aggregates are one",
    ),
    pytest.param(
        "SELECT ?s { ?s :a ?x } GROUP BY ?s HAVING (SUM(?x) > 1) (?s != 1)",
        Filter(
            a.And(Compare(Comparison.GREATER, Var(AGG0), ONE), Compare(Comparison.UNEQUAL, Var(S), ONE)), Group(A, (S,), ((AGG0, SUM),))
        ),
        (S,),
        id="having",
    ),
    pytest.param("SELECT (1 AS ?n) { ?s :a ?x } HAVING (true)", Extend(Filter(a.Constant(Literal("true", XSD + "boolean")), Group(A, (), ())), N, ONE), (N,), id="having makes one group"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :a ?x } WINDOW [RANGE PT1M]", counted(window=RangeWindow(MINUTE)), (N,), id="range"),
    pytest.param(
        'SELECT (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY ?s window [range "PT2M"^^xsd:duration step "PT1M"]',
        counted((S,), window=RangeWindow(2 * MINUTE, MINUTE)),
        (N,),
        id="range and step",
    ),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :a ?x } WINDOW [ROWS 100]", counted(window=RowsWindow(100)), (N,), id="rows"),
    pytest.param("SELECT (COUNT(*) AS ?n) { ?s :a ?x } WINDOW [SESSION PT1M]", counted(window=RunWindow(gap=MINUTE)), (N,), id="session"),
    pytest.param(
        "SELECT (COUNT(*) AS ?n) { ?s :a ?x } WINDOW [RUN WITHIN 60 UNTIL {?s :a ?x} WHILE (?x > PREV(?x) && SUM(?x) > PREV(?x)) GAP PT1M closed]",
        counted(
            window=RunWindow(
                a.And(Compare(Comparison.GREATER, Var(X), Var(PREV0)), Compare(Comparison.GREATER, Var(RUN0), Var(PREV0))),
                ((PREV0, Var(X)),), ((RUN0, SUM),), MINUTE, A, MINUTE, RunReport.CLOSED,
            )
        ),
        (N,),
        id="run",
    ),
    pytest.param("SELECT ?s { ?s :a ?x } GROUP BY ?s WINDOW [ROWS 1]", Group(A, (S,), (), RowsWindow(1)), (S,), id="a window of keys alone"),
    pytest.param(
        "SELECT (COUNT(*) AS ?n) (?n + 1 AS ?m) { ?s :a ?x }",
        Extend(counted(), M, a.Arithmetic(a.Operator.ADD, Var(N), ONE)),
        (N, M),
        id="an expression of what SELECT has assigned",
    ),
    pytest.param(
        "SELECT (COUNT(*) AS ?x) { ?s :a ?x }",
        Extend(Group(A, (), ((AGG0, ALL),)), X, Var(AGG0)),
        (X,),
        id="a variable that grouping hides can be assigned",
    ),
    pytest.param(
        "SELECT ?s (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY ?s VALUES ?s { 1 }",
        Extend(Join(Group(A, (S,), ((AGG0, ALL),)), Values((S,), ((integer("1"),),))), N, Var(AGG0)),
        (S, N),
        id="VALUES joins the groups",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pattern", "projection"), GROUPS)
def test_group(text: str, pattern: Pattern, projection: tuple[Variable, ...]) -> None:
    assert query_of(text) == Select(pattern, projection, False)


def test_hidden_variables_are_numbered_through_the_query() -> None:
    inner = Extend(Group(Extend(A, KEY1, STR), (KEY1,), ((AGG1, SUM),)), M, Var(AGG1))
    outer = Group(Extend(SubSelect(inner, (M,)), KEY0, a.Negate(Var(M))), (KEY0,), ((AGG0, ALL),))
    text = "SELECT (COUNT(*) AS ?n) { { SELECT (SUM(?x) AS ?m) { ?s :a ?x } GROUP BY STR(?x) } } GROUP BY (- ?m)"
    assert query_of(text) == Select(Extend(outer, N, Var(AGG0)), (N,), False)


# ---------------------------------------------------------------- modifiers
MODIFIERS = [
    pytest.param("", PLAIN, id="none"),
    pytest.param("LIMIT 5", Modifiers((), 0, 5), id="limit"),
    pytest.param("LIMIT 0", Modifiers((), 0, 0), id="limit zero"),
    pytest.param("OFFSET 3", Modifiers((), 3, None), id="offset"),
    pytest.param("OFFSET 3 LIMIT 5", Modifiers((), 3, 5), id="offset and limit"),
    pytest.param("limit 007 offset 0", Modifiers((), 0, 7), id="limit and offset"),
    pytest.param("LIMIT5OFFSET3", Modifiers((), 3, 5), id="no blanks are needed"),
    pytest.param("LIMIT 4611686018427387904", Modifiers((), 0, 2**62), id="the greatest limit"),
    pytest.param("ORDER BY ?x", Modifiers((OrderKey(Var(X)),)), id="order"),
    pytest.param(
        "ORDER BY DESC(?x) asc(?s) STR(?x) :f() (?s + 1) LIMIT 1",
        Modifiers(
            (
                OrderKey(Var(X), True),
                OrderKey(Var(S)),
                OrderKey(STR),
                OrderKey(a.Call("<http://e/f>", ())),
                OrderKey(a.Arithmetic(a.Operator.ADD, Var(S), ONE)),
            ),
            0,
            1,
        ),
        id="all comparators",
    ),
    pytest.param("once per ?s within5", Modifiers(once=Once((S,), 5_000_000)), id="once within"),
    pytest.param("ONCE PER (?s ?x) UNTIL {?s :a ?x} LIMIT 1", Modifiers((), 0, 1, Once((S, X), None, A)), id="once until"),
    pytest.param("ORDER BY getENDTIME()", Modifiers((OrderKey(a.Time(a.TimeFunction.END)),)), id="by time"),
]


@pytest.mark.parametrize(("text", "modifiers"), MODIFIERS)
def test_modifiers(text: str, modifiers: Modifiers) -> None:
    """The modifiers are those of a SELECT, of a sub-SELECT, and of the other forms, where they are a sub-SELECT of
    all variables.
    """
    assert query_of(f"SELECT ?s {{ ?s :a ?x }} {text}") == Select(A, (S,), False, modifiers=modifiers)
    assert query_of(f"SELECT * {{ {{ SELECT ?s {{ ?s :a ?x }} {text} }} }}").pattern == SubSelect(A, (S,), False, modifiers)
    rows = A if modifiers == PLAIN else SubSelect(A, (S, X), False, modifiers)
    assert query_of(f"CONSTRUCT {{ ?s :a ?x }} WHERE {{ ?s :a ?x }} {text}") == Construct(A.triples, rows)
    assert query_of(f"CONSTRUCT WHERE {{ ?s :a ?x }} {text}") == Construct(A.triples, rows)
    assert query_of(f"DESCRIBE ?s {{ ?s :a ?x }} {text}") == Describe((S,), rows)


def test_ask_has_no_order() -> None:
    assert query_of("ASK { ?s :a ?x } ORDER BY ?s") == Ask(A)
    assert query_of("ASK { ?s :a ?x } ORDER BY ?s OFFSET 2") == Ask(SubSelect(A, (S, X), False, Modifiers((), 2)))


def test_an_aggregate_in_order_by() -> None:
    query = query_of("SELECT ?s { ?s :a ?x } GROUP BY ?s ORDER BY COUNT(*)")
    assert query == Select(Group(A, (S,), ((AGG0, ALL),)), (S,), False, modifiers=Modifiers((OrderKey(Var(AGG0)),)))


def test_order_by_what_is_not_selected_and_by_what_select_assigns() -> None:
    query = query_of("SELECT (STR(?x) AS ?y) { ?s :a ?x } ORDER BY ?y ?s")
    assert query == Select(Extend(A, Y, STR), (Y,), False, modifiers=Modifiers((OrderKey(Var(Y)), OrderKey(Var(S)))))


SAMPLE = Aggregate(AggregateFunction.SAMPLE, Var(X))
SAMPLED = [
    pytest.param("SELECT ?s { ?s :a ?x } GROUP BY ?s HAVING (?s != ?x)", Filter(Compare(Comparison.UNEQUAL, Var(S), Var(AGG0)), Group(A, (S,), ((AGG0, SAMPLE),))), "|?x)", id="HAVING"),
    pytest.param(
        "SELECT ?s { ?s :a ?x } GROUP BY ?s HAVING (BOUND(?s) && BOUND(?x))",
        Filter(
            a.And(a.Bound(S), Compare(Comparison.GREATER, Var(AGG0), constant("0"))),
            Group(A, (S,), ((AGG0, Aggregate(AggregateFunction.COUNT, Var(X))),)),
        ),
        "|?x))",
        id="BOUND asks whether there is a value to sample",
    ),
    pytest.param("ASK { ?s :a ?x } HAVING (?x)", Filter(Var(AGG0), Group(A, (), ((AGG0, SAMPLE),))), "|?x)", id="HAVING without keys"),
    pytest.param(
        "SELECT (COUNT(*) AS ?n) { ?s :a ?x } HAVING (?n > 1)",
        Extend(
            Filter(
                Compare(Comparison.GREATER, Var(AGG1), ONE), Group(A, (), ((AGG0, ALL), (AGG1, Aggregate(AggregateFunction.SAMPLE, Var(N)))))
            ),
            N,
            Var(AGG0),
        ),
        "|?n >",
        id="what SELECT assigns has no value yet in HAVING",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pattern", "place"), SAMPLED)
def test_a_variable_that_is_no_key_is_sampled(text: str, pattern: Pattern, place: str) -> None:
    """SPARQL 1.1, 18.2.4.1; and a warning says so."""
    found = parse(PROLOGUE + text)
    assert found.query.pattern == pattern
    spans = [doubt.span for doubt in found.warnings if doubt.code in ("sampled", "out-of-scope")]
    assert [span.start for span in spans if span] == [len(PROLOGUE) + text.index(place[1:])]


def test_order_by_a_variable_that_is_no_key() -> None:
    found = parse(PROLOGUE + "SELECT ?s (STR(?s) AS ?y) { ?s :a ?x } GROUP BY ?s ORDER BY ?x ?s ?y")
    order = tuple(OrderKey(Var(variable)) for variable in (AGG0, S, Y))
    pattern = Extend(Group(A, (S,), ((AGG0, SAMPLE),)), Y, a.Call("STR", (Var(S),)))
    assert found.query == Select(pattern, (S, Y), False, modifiers=Modifiers(order))
    assert [doubt.code for doubt in found.warnings].count("sampled") == 1


# ---------------------------------------------------------------- elements of a group
ONE_TERM, TWO = integer("1"), integer("2")
ELEMENTS = [
    pytest.param("VALUES ?x { 1 }", Values((X,), ((ONE_TERM,),)), id="VALUES of one variable"),
    pytest.param(
        "VALUES ?x { 1 :a 'b'@en UNDEF 1 true }",
        Values((X,), tuple((term,) for term in (ONE_TERM, Iri("http://e/a"), Literal("b", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en"), None, ONE_TERM, Literal("true", XSD + "boolean")))),
        id="all terms, and equal rows",
    ),
    pytest.param("VALUES ?x {}", Values((X,), ()), id="no rows"),
    pytest.param("VALUES (?x ?y) { (1 2) (UNDEF 1) }", Values((X, Y), ((ONE_TERM, TWO), (None, ONE_TERM))), id="VALUES of two variables"),
    pytest.param("VALUES () { () ( ) }", Values((), ((), ())), id="no variables"),
    pytest.param("VALUES ( ) {}", Values((), ()), id="nothing at all"),
    pytest.param("?s :a ?x VALUES ?x { 1 } ?s :b ?y", Join(Join(A, Values((X,), ((ONE_TERM,),))), B), id="VALUES parts triples"),
    pytest.param("GRAPH ?g { ?s :a ?x }", Graph(G, A), id="GRAPH with a variable"),
    pytest.param("GRAPH :g { ?s :a ?x }", Graph(Iri(NAMESPACE + "g"), A), id="GRAPH with a name"),
    pytest.param("GRAPH ?g {}", Graph(G, Bgp(())), id="GRAPH of the empty group"),
    pytest.param("?s :a ?x GRAPH ?g { ?s :b ?y FILTER(true) }", Join(A, Graph(G, Filter(a.Constant(Literal("true", XSD + "boolean")), B))), id="GRAPH has its filter"),
    pytest.param("{ SELECT ?s { ?s :a ?x } }", SubSelect(A, (S,)), id="sub-SELECT"),
    pytest.param("SELECT ?s { ?s :a ?x }", SubSelect(A, (S,)), id="a sub-SELECT is all of a group"),
    pytest.param("{ SELECT DISTINCT * { ?s :a ?x . [] :a _:c } }", SubSelect(bgp("?s a ?x", "_:b0 a _:c"), (S, X), True), id="SELECT * leaves out hidden variables"),
    pytest.param("{ SELECT REDUCED ?s { ?s :a ?x } }", SubSelect(A, (S,)), id="REDUCED"),
    pytest.param("?s :b ?y { SELECT ?s WHERE { ?s :a ?x } }", Join(B, SubSelect(A, (S,))), id="a sub-SELECT after triples"),
    pytest.param("{ SELECT ?s { ?s :a ?x } VALUES ?s { 1 } }", SubSelect(Join(A, Values((S,), ((ONE_TERM,),))), (S,)), id="VALUES of a sub-SELECT"),
    pytest.param("{ SELECT (?x AS ?y) { ?s :a ?x } }", SubSelect(Extend(A, Y, Var(X)), (Y,)), id="expressions of a sub-SELECT"),
    pytest.param("{ SELECT ?s { ?s :a ?x } } UNION { ?s :b ?y }", Union(SubSelect(A, (S,)), B), id="a sub-SELECT in a chain"),
    pytest.param("?s :b ?y OPTIONAL { SELECT ?s { ?s :a ?x } }", LeftJoin(B, SubSelect(A, (S,))), id="an optional sub-SELECT"),
    pytest.param("?s :b ?y MINUS { SELECT ?s { ?s :a ?x } }", Minus(B, SubSelect(A, (S,))), id="MINUS a sub-SELECT"),
    pytest.param("{ SELECT ?s WHERE { ?s :a ?x } SEQ { ?s :b ?y } }", SubSelect(a.SeqJoin(A, B), (S,)), id="a chain without braces in a sub-SELECT"),
    pytest.param("{ SELECT ?s { ?s :a ?x } } BIND(?s AS ?x)", Extend(SubSelect(A, (S,)), X, Var(S)), id="what a sub-SELECT does not select is not in scope"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pattern"), ELEMENTS)
def test_element(text: str, pattern: Pattern) -> None:
    assert query_of(f"SELECT * {{ {text} }}").pattern == pattern


STAR = [
    pytest.param("GRAPH ?g { ?s :a ?x }", (G, S, X), id="GRAPH"),
    pytest.param("VALUES (?x ?y) { (1 2) }", (X, Y), id="VALUES"),
    pytest.param("{ SELECT ?x { ?s :a ?x } } ?y :p* ?s", (X, Y, S), id="sub-SELECT and path"),
    pytest.param("{ SELECT (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY ?s }", (N,), id="groups"),
]


@pytest.mark.parametrize(("text", "projection"), STAR)
def test_select_star(text: str, projection: tuple[Variable, ...]) -> None:
    query = query_of(f"SELECT * {{ {text} }}")
    assert isinstance(query, Select)
    assert query.projection == projection


def test_values_after_the_query() -> None:
    values = Values((X, Y), ((ONE_TERM, None),))
    text = "VALUES (?x ?y) { (1 UNDEF) }"
    assert query_of(f"SELECT * {{ ?s :a ?x }} LIMIT 1 {text}") == Select(Join(A, values), (S, X, Y), False, modifiers=Modifiers((), 0, 1))
    assert query_of(f"SELECT (STR(?x) AS ?z) {{}} {text}") == Select(Extend(values, Z, STR), (Z,), False)
    assert query_of(f"ASK {{ ?s :a ?x }} {text}") == Ask(Join(A, values))
    assert query_of(f"CONSTRUCT WHERE {{ ?s :a ?x }} {text}") == Construct(A.triples, Join(A, values))
    assert query_of(f"DESCRIBE ?x {text}") == Describe((X,), values)


# ---------------------------------------------------------------- forms
def test_ask() -> None:
    assert query_of("ASK { ?s :a ?x }") == query_of("ask where { ?s :a ?x }") == Ask(A)
    assert query_of("ASK { ?s :a ?x } HAVING (COUNT(*) > 1)") == Ask(
        Filter(Compare(Comparison.GREATER, Var(AGG0), ONE), Group(A, (), ((AGG0, ALL),)))
    )


def test_describe() -> None:
    iri = Iri(NAMESPACE + "i")
    assert query_of("DESCRIBE :i") == query_of("DESCRIBE :i {}") == Describe((iri,), Bgp(()))
    assert query_of("DESCRIBE ?x :i ?s ?x { ?s :a ?x }") == Describe((X, iri, S), A)
    assert query_of("DESCRIBE * WHERE { ?s :a ?x . [] :a ?x }") == Describe((S, X), bgp("?s a ?x", "_:b0 a ?x"))
    assert query_of("DESCRIBE * FROM STREAM <in>") == Describe((), Bgp(()), ("in",))


def test_construct_of_groups() -> None:
    query = query_of("CONSTRUCT { ?s :b ?s } { ?s :a ?x } GROUP BY ?s HAVING (SUM(?x) > 1) LIMIT 1")
    groups = Filter(Compare(Comparison.GREATER, Var(AGG0), ONE), Group(A, (S,), ((AGG0, SUM),)))
    assert query == Construct(bgp("?s b ?s").triples, SubSelect(groups, (S,), False, Modifiers((), 0, 1)))


def test_iri_resolves_against_the_last_base() -> None:
    query = parse("BASE <http://e/> BASE <x/y> SELECT (IRI('z') AS ?x) (URI(?x) AS ?y) {}").query
    base = a.Constant(Iri("http://e/x/y"))
    inner = Extend(Bgp(()), X, a.Call("IRI", (a.Constant(Literal("z")), base)))
    assert query.pattern == Extend(inner, Y, a.Call("IRI", (Var(X), base)))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (LAST( distinct ?o) AS ?n) { ?s ?p ?o } WINDOW [ROWS 2]",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING (FIRST(DISTINCT ?o) > 1)",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s ORDER BY LAST(DISTINCT ?o) LIMIT 1",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s WINDOW [RUN WHILE (?o > FIRST(DISTINCT ?o))]",
    ],
)
def test_distinct_is_refused_in_first_and_last_wherever_they_stand(text: str) -> None:
    with pytest.raises(QueryError, match="DISTINCT has no meaning in FIRST and LAST"):
        parse(text)
