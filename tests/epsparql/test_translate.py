"""Text and the algebra it means: one row per rule of semantics.md section 3."""

import pytest

from epsparql import algebra as a
from epsparql import parse
from epsparql.algebra import (
    And,
    Arithmetic,
    Bgp,
    Bound,
    Call,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    Construct,
    EqJoin,
    EqLeftJoin,
    Exists,
    Extend,
    Filter,
    If,
    In,
    Join,
    JoinWithout,
    LeftJoin,
    Minus,
    Negate,
    Not,
    Operator,
    Or,
    Pattern,
    Relation,
    RelationJoin,
    Select,
    SeqJoin,
    SeqRightJoin,
    SeqWithout,
    Time,
    TimeFunction,
    TriplePattern,
    Union,
    Var,
    Within,
    WithoutFor,
)  # fmt: skip
from epsparql.terms import RDF, RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, Variable
from tests.epsparql.builders import NAMESPACE, PROLOGUE, bgp, constant, term

A, B, C, D = bgp("?s a ?x"), bgp("?s b ?y"), bgp("?s c ?z"), bgp("?s d ?w")
TEXTS = {"A": "{ ?s :a ?x }", "B": "{ ?s :b ?y }", "C": "{ ?s :c ?z }", "D": "{ ?s :d ?w }"}
S, X, Y, Z = (Var(Variable(name)) for name in "sxyz")
ONE, TWO = constant("1"), constant("2")
TRUE = Constant(Literal("true", XSD + "boolean"))
POSITIVE = Compare(Comparison.GREATER, X, constant("0"))
SECOND = 1_000_000


def pattern_of(text: str) -> Pattern:
    """The pattern of a group's content, in which a lone capital stands for its group."""
    words = " ".join(TEXTS.get(word, word) for word in text.split(" "))
    return parse(f"{PROLOGUE}SELECT * WHERE {{ {words} }}").query.pattern


PATTERNS = [
    pytest.param("", Bgp(()), id="empty group"),
    pytest.param("?s :a ?x", A, id="one triple"),
    pytest.param("?s :a ?x .", A, id="final dot"),
    pytest.param("?s :a ?x . ?s :b ?y", bgp("?s a ?x", "?s b ?y"), id="triples of one group are one pattern"),
    pytest.param("?s :a ?x ; :b ?y ;; .", bgp("?s a ?x", "?s b ?y"), id="semicolons"),
    pytest.param("?s :a ?x , ?y", bgp("?s a ?x", "?s a ?y"), id="comma"),
    pytest.param("$s ?p 1", bgp("?s ?p 1"), id="dollar variable"),
    pytest.param("?s a :c", Bgp((TriplePattern(Variable("s"), Iri(RDF + "type"), Iri(NAMESPACE + "c")),)), id="a"),
    pytest.param("{ { ?s :a ?x } }", A, id="a group of a group is that group"),
    pytest.param("A B", Join(A, B), id="juxtaposed groups"),
    pytest.param("?s :a ?x B ?s :c ?z", Join(Join(A, B), C), id="triples around a group"),
    pytest.param("{} A", A, id="the empty group is neutral on the left"),
    pytest.param("A {}", A, id="the empty group is neutral on the right"),
    pytest.param("A AND B", Join(A, B, unrestricted=False), id="AND"),
    pytest.param("{} AND A", A, id="AND with the empty group"),
    pytest.param("A UNION B", Union(A, B), id="UNION"),
    pytest.param("{} UNION A", Union(Bgp(()), A), id="UNION keeps the empty group"),
    pytest.param("A UNION B UNION C", Union(Union(A, B), C), id="UNION to the left"),
    pytest.param("A SEQ B", SeqJoin(A, B), id="SEQ"),
    pytest.param("A seq B", SeqJoin(A, B), id="keywords in any case"),
    pytest.param("A SEQ B SEQ C", SeqJoin(SeqJoin(A, B), C), id="SEQ to the left"),
    pytest.param("A SEQ { B SEQ C }", SeqJoin(A, SeqJoin(B, C)), id="braces"),
    pytest.param("A SEQ B UNION C EQUALS D", EqJoin(Union(SeqJoin(A, B), C), D), id="one precedence"),
    pytest.param("A SEQ B C", Join(SeqJoin(A, B), C), id="a chain is one element"),
    pytest.param("A EQUALS B", EqJoin(A, B), id="EQUALS"),
    *(pytest.param(f"A {r.value} B", RelationJoin(r, A, B), id=r.value) for r in Relation),
    pytest.param("A WITHIN 10", Within(A, 10 * SECOND), id="WITHIN seconds"),
    pytest.param("A WITHIN 0.5", Within(A, SECOND // 2), id="WITHIN half a second"),
    pytest.param("A WITHIN 1e1", Within(A, 10 * SECOND), id="WITHIN a double"),
    pytest.param("A WITHIN 0", Within(A, 0), id="WITHIN zero"),
    pytest.param('A WITHIN "PT10S"^^xsd:duration', Within(A, 10 * SECOND), id="WITHIN typed"),
    pytest.param('A WITHIN "PT10S"^^xsd:dayTimeDuration', Within(A, 10 * SECOND), id="WITHIN dayTimeDuration"),
    pytest.param("A WITHIN 'PT10S'", Within(A, 10 * SECOND), id="WITHIN a string"),
    pytest.param("A WITHIN PT0.5S", Within(A, SECOND // 2), id="WITHIN bare"),
    pytest.param("A WITHIN P1DT2H3M4S", Within(A, (93_784) * SECOND), id="WITHIN all parts"),
    pytest.param("A WITHIN 10 SEQ B", SeqJoin(Within(A, 10 * SECOND), B), id="the chain goes on after WITHIN"),
    pytest.param("A SEQ B WITHIN 10", Within(SeqJoin(A, B), 10 * SECOND), id="WITHIN applies to the chain on its left"),
    pytest.param("A SEQ B WITHOUT C", SeqWithout(A, B, C), id="WITHOUT"),
    pytest.param("A SEQ B SEQ C WITHOUT D", SeqWithout(SeqJoin(A, B), C, D), id="WITHOUT is about the last SEQ"),
    pytest.param("A SEQ B WITHOUT C SEQ D", SeqJoin(SeqWithout(A, B, C), D), id="the chain goes on after WITHOUT"),
    pytest.param("A SEQ B WITHIN 10 WITHOUT C", SeqWithout(A, B, C, 10 * SECOND), id="WITHIN between"),
    pytest.param("A SEQ B WITHIN 10 WITHIN 5 WITHOUT C", SeqWithout(A, B, C, 5 * SECOND), id="the least WITHIN between"),
    pytest.param("A SEQ B WITHOUT C WITHIN 10", Within(SeqWithout(A, B, C), 10 * SECOND), id="WITHIN after WITHOUT"),
    pytest.param("A AND B WITHOUT C", JoinWithout(A, B, C), id="AND and WITHOUT"),
    pytest.param("A SEQ B AND C WITHIN 9 WITHOUT D", JoinWithout(SeqJoin(A, B), C, D, 9 * SECOND), id="WITHOUT is about the last operator"),
    pytest.param("A AND B SEQ C WITHOUT D", SeqWithout(Join(A, B, unrestricted=False), C, D), id="WITHOUT after AND and SEQ"),
    pytest.param('A WITHOUT B FOR "PT6H"^^xsd:duration', WithoutFor(A, B, 21_600 * SECOND), id="WITHOUT FOR"),
    pytest.param("A SEQ B WITHOUT C FOR 1", WithoutFor(SeqJoin(A, B), C, SECOND), id="WITHOUT FOR after SEQ"),
    pytest.param("A SEQ B WITHOUT C WITHOUT D FOR 1", WithoutFor(SeqWithout(A, B, C), D, SECOND), id="both kinds"),
    pytest.param("?s :a ?x OPTIONAL B", LeftJoin(A, B), id="OPTIONAL"),
    pytest.param("OPTIONAL B", LeftJoin(Bgp(()), B), id="OPTIONAL first"),
    pytest.param("?s :a ?x OPTIONAL { ?s :b ?y FILTER(?x > 0) }", LeftJoin(A, B, POSITIVE), id="OPTIONAL's filter is the join's"),
    pytest.param("?s :a ?x OPTIONAL { { ?s :b ?y FILTER(?x > 0) } }", LeftJoin(A, Filter(POSITIVE, B)), id="a nested filter is its group's"),
    pytest.param(
        "?s :a ?x OPTIONAL { FILTER(?x > 0) ?s :b ?y FILTER BOUND(?y) }", LeftJoin(A, B, And(POSITIVE, Bound(Variable("y")))), id="two filters"
    ),
    pytest.param("?s :a ?x OPTIONAL { A SEQ B FILTER(?x > 0) }", LeftJoin(A, SeqJoin(A, B), POSITIVE), id="OPTIONAL of a chain"),
    pytest.param("?s :a ?x MINUS { ?s :b ?y FILTER(?x > 0) }", Minus(A, Filter(POSITIVE, B)), id="MINUS keeps its filter"),
    pytest.param("A OPTIONALSEQ B", SeqRightJoin(A, B), id="OPTIONALSEQ"),
    pytest.param("{ ?s :a ?x FILTER(?x > 0) } OPTIONALSEQ B", SeqRightJoin(A, B, POSITIVE), id="OPTIONALSEQ: left filter is the join's"),
    pytest.param("A OPTIONALSEQ { ?s :b ?y FILTER(?x > 0) }", SeqRightJoin(A, Filter(POSITIVE, B)), id="OPTIONALSEQ: right filter stays"),
    pytest.param("A SEQ { ?s :b ?y FILTER(?x > 0) } OPTIONALSEQ C", SeqRightJoin(SeqJoin(A, Filter(POSITIVE, B)), C), id="OPTIONALSEQ after a chain"),
    pytest.param(
        "{ ?s :a ?x FILTER(?x > 0) } WITHIN 1 OPTIONALSEQ B", SeqRightJoin(Within(Filter(POSITIVE, A), SECOND), B), id="OPTIONALSEQ after WITHIN"
    ),
    pytest.param("{ ?s :a ?x FILTER(?x > 0) } SEQ B", SeqJoin(Filter(POSITIVE, A), B), id="SEQ: left filter stays"),
    pytest.param("A EQUALSOPTIONAL B", EqLeftJoin(A, B), id="EQUALSOPTIONAL"),
    pytest.param("A EQUALOPTIONAL B", EqLeftJoin(A, B), id="EQUALOPTIONAL"),
    pytest.param("A EQUALSOPTIONAL { ?s :b ?y FILTER(?x > 0) }", EqLeftJoin(A, B, POSITIVE), id="EQUALSOPTIONAL: right filter is the join's"),
    pytest.param("{ ?s :a ?x FILTER(?x > 0) } EQUALSOPTIONAL B", EqLeftJoin(Filter(POSITIVE, A), B), id="EQUALSOPTIONAL: left filter stays"),
    pytest.param("?s :a ?x FILTER(?x > 0) ?s :b ?y", Filter(POSITIVE, bgp("?s a ?x", "?s b ?y")), id="a filter does not part triples"),
    pytest.param("FILTER(?x > 0) B", Filter(POSITIVE, B), id="a filter applies to its whole group"),
    pytest.param("?s :a ?x BIND(1 AS ?n) ?s :b ?y", Join(Extend(A, Variable("n"), ONE), B), id="BIND parts triples"),
    pytest.param("?s :a ?x BIND(1 AS ?n) FILTER(?x > 0)", Filter(POSITIVE, Extend(A, Variable("n"), ONE)), id="BIND and FILTER"),
    pytest.param("?s :a _:l . _:l :b ?y", bgp("?s a _:l", "_:l b ?y"), id="blank node label"),
    pytest.param("_:l :a ?x FILTER(?x > 0) _:l :b ?y", Filter(POSITIVE, bgp("_:l a ?x", "_:l b ?y")), id="a label on both sides of FILTER"),
    pytest.param("?s :a []", bgp("?s a _:b0"), id="anonymous"),
    pytest.param("?s :a [] , _:b0", bgp("?s a _:b1", "?s a _:b0"), id="a fresh label is not one of the text's"),
    pytest.param("[ :a ?x ] :b ?y", bgp("_:b0 a ?x", "_:b0 b ?y"), id="blank node properties as subject"),
    pytest.param("[ :a ?x ; :b ?y ]", bgp("_:b0 a ?x", "_:b0 b ?y"), id="blank node properties alone"),
    pytest.param("?s :a [ :b [ :c ?z ] ]", bgp("?s a _:b0", "_:b0 b _:b1", "_:b1 c ?z"), id="nested blank node properties"),
]


@pytest.mark.parametrize(("text", "pattern"), PATTERNS)
def test_pattern(text: str, pattern: Pattern) -> None:
    assert pattern_of(text) == pattern


def test_collection() -> None:
    first, rest, nil = Iri(RDF + "first"), Iri(RDF + "rest"), Iri(RDF + "nil")
    one, two = Variable("_:b0"), Variable("_:b1")
    assert pattern_of("?s :a (1 ?x), ()") == Bgp(
        (
            TriplePattern(Variable("s"), Iri(NAMESPACE + "a"), one),
            TriplePattern(one, first, term("1")),
            TriplePattern(one, rest, two),
            TriplePattern(two, first, Variable("x")),
            TriplePattern(two, rest, nil),
            TriplePattern(Variable("s"), Iri(NAMESPACE + "a"), nil),
        )
    )


TERMS = [
    pytest.param("<http://e/x>", Iri("http://e/x"), id="iri"),
    pytest.param(":a\\~b%41.c", Iri("http://e/a~b%41.c"), id="escapes of a local name"),
    pytest.param(":", Iri("http://e/"), id="empty local name"),
    pytest.param(":é", Iri("http://e/é"), id="letters beyond ASCII"),
    pytest.param('"a\\n\\"b\\\\"', Literal('a\n"b\\'), id="escapes of a string"),
    pytest.param("'it'", Literal("it"), id="single quotes"),
    pytest.param('"""a"b\n""c"""', Literal('a"b\n""c'), id="long string"),
    pytest.param("'''a'b'''", Literal("a'b"), id="long string in single quotes"),
    pytest.param('"a"@EN-gb', Literal("a", RDF_LANG_STRING, "en-gb"), id="language tags in small letters, as RDF's value space has them"),
    pytest.param('"a"^^xsd:string', Literal("a"), id="xsd:string is plain"),
    pytest.param('"x"^^:t', Literal("x", "http://e/t"), id="a datatype of one's own"),
    pytest.param("+5", Literal("+5", XSD + "integer"), id="signed integer as written"),
    pytest.param("-.5", Literal("-.5", XSD + "decimal"), id="decimal"),
    pytest.param("1.e5", Literal("1.e5", XSD + "double"), id="double"),
    pytest.param("true", Literal("true", XSD + "boolean"), id="boolean"),
    pytest.param('"\\u00e9\\U0001F600"', Literal("é\U0001f600"), id="code points"),
    pytest.param('"\\\\u00e9"', Literal("\\u00e9"), id="an escaped backslash is no code point"),
    pytest.param("<http://e/\\u00e9>", Iri("http://e/é"), id="code point in an IRI"),
]


@pytest.mark.parametrize(("text", "expected"), TERMS)
def test_term(text: str, expected: Term) -> None:
    pattern = parse(f"{PROLOGUE}SELECT * WHERE {{ ?s ?p {text} }}").query.pattern
    assert isinstance(pattern, Bgp)
    assert pattern.triples[0].object == expected


EXPRESSIONS = [
    pytest.param("?x", X, id="variable"),
    pytest.param("?x || ?y && ?z", Or(X, And(Y, Z)), id="and before or"),
    pytest.param("(?x || ?y) && ?z", And(Or(X, Y), Z), id="brackets"),
    pytest.param("?x || ?y || ?z", Or(Or(X, Y), Z), id="or to the left"),
    pytest.param("?x = 1 && ?y != 2", And(Compare(Comparison.EQUAL, X, ONE), Compare(Comparison.UNEQUAL, Y, TWO)), id="comparisons before and"),
    pytest.param("?x <= 1", Compare(Comparison.LESS_OR_EQUAL, X, ONE), id="less or equal"),
    pytest.param("?x<?y", Compare(Comparison.LESS, X, Y), id="less without blanks"),
    pytest.param(
        "?x + 1 * 2", Arithmetic(Operator.ADD, X, Arithmetic(Operator.MULTIPLY, ONE, TWO)), id="times before plus"
    ),
    pytest.param("?x - 1 - 2", Arithmetic(Operator.SUBTRACT, Arithmetic(Operator.SUBTRACT, X, ONE), TWO), id="minus to the left"),
    pytest.param("?x -1", Arithmetic(Operator.SUBTRACT, X, ONE), id="a sign after an operand is an operator"),
    pytest.param("?x+1", Arithmetic(Operator.ADD, X, ONE), id="no blanks"),
    pytest.param("?x / -1", Arithmetic(Operator.DIVIDE, X, Constant(Literal("-1", XSD + "integer"))), id="a negative number"),
    pytest.param("true-1", Arithmetic(Operator.SUBTRACT, TRUE, ONE), id="a keyword ends before a minus"),
    pytest.param("?x = true", Compare(Comparison.EQUAL, X, TRUE), id="a keyword"),
    pytest.param("- ?x", Negate(X), id="unary minus"),
    pytest.param("+ ?x", Negate(Negate(X)), id="unary plus is the identity on numbers"),
    pytest.param("! ?x = 1", Compare(Comparison.EQUAL, Not(X), ONE), id="not binds strongest"),
    pytest.param("!(!?x)", Not(Not(X)), id="not not"),
    pytest.param("- -1 = +(?x)", Compare(Comparison.EQUAL, Negate(Constant(Literal("-1", XSD + "integer"))), Negate(Negate(X))), id="a sign before a signed number"),
    pytest.param("?x IN (1, ?y)", In(X, (ONE, Y)), id="IN"),
    pytest.param("?x NOT IN ()", Not(In(X, ())), id="NOT IN"),
    pytest.param("?x not in (1) && ?y", And(Not(In(X, (ONE,))), Y), id="IN before and"),
    pytest.param("BOUND(?x)", Bound(Variable("x")), id="BOUND"),
    pytest.param("if(?x, 1, 2)", If(X, ONE, TWO), id="IF"),
    pytest.param("COALESCE(?x, 1)", Coalesce((X, ONE)), id="COALESCE"),
    pytest.param("str(?x)", Call("STR", (X,)), id="a built-in by its name in capitals"),
    pytest.param("URI(?x)", Call("IRI", (X,)), id="URI is IRI"),
    pytest.param("NOW()", Call("NOW", ()), id="no argument"),
    pytest.param("REGEX(?x, 'a', 'i')", Call("REGEX", (X, Constant(Literal("a")), Constant(Literal("i")))), id="REGEX"),
    pytest.param("xsd:integer(?x)", Call(f"<{XSD}integer>", (X,)), id="cast"),
    pytest.param(":f()", Call("<http://e/f>", ()), id="extension function"),
    pytest.param("getDURATION()", Time(TimeFunction.DURATION), id="getDURATION"),
    pytest.param("GETstarttime()", Time(TimeFunction.START), id="getSTARTTIME"),
    pytest.param("getENDTIME()", Time(TimeFunction.END), id="getENDTIME"),
    pytest.param("EXISTS { ?s :a ?x }", Exists(A), id="EXISTS"),
    pytest.param("NOT EXISTS { ?s :a ?x FILTER(?x > 0) }", Not(Exists(Filter(POSITIVE, A))), id="NOT EXISTS"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expression"), EXPRESSIONS)
def test_expression(text: str, expression: a.Expression) -> None:
    assert pattern_of(f"?s :d ?w FILTER({text})") == Filter(expression, D)


def test_a_prefix_may_begin_like_a_keyword() -> None:
    """The longest token counts."""
    query = parse("PREFIX true.x: <http://t/> PREFIX a-1: <http://a/> SELECT * { ?s ?d ?w FILTER(?w = true.x:y && ?w != a-1:b) }").query
    assert isinstance(query.pattern, Filter)
    x, y = Compare(Comparison.EQUAL, Var(Variable("w")), Constant(Iri("http://t/y"))), Constant(Iri("http://a/b"))
    assert query.pattern.condition == a.And(x, Compare(Comparison.UNEQUAL, Var(Variable("w")), y))


def test_a_filter_needs_no_brackets_around_a_call() -> None:
    assert pattern_of("?s :d ?w FILTER BOUND(?x) FILTER :f(?x) FILTER NOT EXISTS A") == Filter(
        And(And(Bound(Variable("x")), Call("<http://e/f>", (X,))), Not(Exists(A))), D
    )


def test_select_star_reports_what_is_visible() -> None:
    query = parse(
        f"{PROLOGUE}SELECT * {{ ?b :p ?a . [] :p _:x . OPTIONAL {{ ?c :p ?a }} MINUS {{ ?d :p ?a }} FILTER EXISTS {{ ?e :p ?a }}"
        " {?f :p ?a} WITHOUT {?g :p ?a} FOR 1 }"
    ).query
    assert isinstance(query, Select)
    assert [variable.name for variable in query.projection] == ["b", "a", "c", "f"]


def test_select_expressions_extend_the_pattern() -> None:
    query = parse(f"{PROLOGUE}SELECT DISTINCT ?x (?x + 1 AS ?n) (getENDTIME() AS ?t) {{ ?s :a ?x }}").query
    inner = Extend(A, Variable("n"), Arithmetic(Operator.ADD, X, ONE))
    projection = (Variable("x"), Variable("n"), Variable("t"))
    assert query == Select(Extend(inner, Variable("t"), Time(TimeFunction.END)), projection, True)


def test_reduced_is_select() -> None:
    assert parse("SELECT REDUCED ?x {}").query == Select(Bgp(()), (Variable("x"),), False)


@pytest.mark.parametrize("where", ["WHERE {A}", "{A}", "WHERE { {A} }"])
def test_where(where: str) -> None:
    assert parse(f"{PROLOGUE}SELECT ?s {where.replace('{A}', TEXTS['A'])}").query.pattern == A


def test_braces_may_be_left_out_after_where() -> None:
    text = f"{PROLOGUE}SELECT ?s WHERE {TEXTS['A']} SEQ {TEXTS['B']} FILTER(?x > 0)"
    assert parse(text).query.pattern == Filter(POSITIVE, SeqJoin(A, B))


def test_what_may_follow_a_chain_without_braces() -> None:
    text = f"{PROLOGUE}SELECT ?s WHERE {TEXTS['A']} WITHIN 10 OPTIONAL {TEXTS['B']} BIND(1 AS ?n) MINUS {TEXTS['C']}"
    assert parse(text).query.pattern == Minus(Extend(LeftJoin(Within(A, 10 * SECOND), B), Variable("n"), ONE), C)


STREAMS = [
    pytest.param("", ("default",), id="none"),
    pytest.param("FROM STREAM <weather>", ("weather",), id="as written, not resolved against BASE"),
    pytest.param("FROM STREAM :w", ("ns/w",), id="a prefixed name is expanded, its prefix as written"),
    pytest.param("FROM STREAM default", ("default",), id="default"),
    pytest.param("FROM STREAM <b> FROM STREAM <a> FROM STREAM <b>", ("b", "a"), id="each once"),
]


@pytest.mark.parametrize(("clause", "streams"), STREAMS)
def test_streams(clause: str, streams: tuple[str, ...]) -> None:
    assert parse(f"BASE <http://base/> PREFIX : <ns/> SELECT * {clause} {{}}").query.streams == streams


def test_construct() -> None:
    query = parse(f"{PROLOGUE}CONSTRUCT {{ ?s :b [ :c ?x ], _:l . }} INTO STREAM <out> FROM STREAM <in> WHERE {{ ?s :a ?x . _:l :b _:b0 }}").query
    s, x, fresh, label = Variable("s"), Variable("x"), BlankNode("b1"), BlankNode("l")
    b, c = Iri(NAMESPACE + "b"), Iri(NAMESPACE + "c")
    template = (TriplePattern(s, b, fresh), TriplePattern(fresh, c, x), TriplePattern(s, b, label))
    assert query == Construct(template, bgp("?s a ?x", "_:l b _:b0"), ("in",), "out")


def test_construct_where() -> None:
    assert parse(f"{PROLOGUE}CONSTRUCT INTO STREAM <out> WHERE {{ ?s :a ?x }}").query == Construct(A.triples, A, into="out")
    assert parse(f"{PROLOGUE}CONSTRUCT {{}} WHERE {{ ?s :a ?x }}").query == Construct((), A)


def test_comments_and_marks() -> None:
    text = "\ufeff# first\nSELECT * # ?x\r\n{ ?s <http://e/a#b> 'a # b' # last\n}# end"
    assert parse(text).query.pattern == Bgp((TriplePattern(Variable("s"), Iri("http://e/a#b"), Literal("a # b")),))
