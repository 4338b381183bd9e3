"""These tests hold the search for contradictions against the engine's evaluation: no value passes conditions that are
said to contradict each other.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions.evaluator import truth
from epsparql import algebra as a
from epsparql import parse
from epsparql.iris import Names
from epsparql.lint.contradictions import MOST_CONDITIONS, find_contradiction
from epsparql.terms import RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, TripleTerm, Variable
from tests.epsparql.lint.test_type_inference import written
from tests.soak import examples

_LITERALS = [
    Literal(lexical, XSD + datatype)
    for datatype, lexicals in {
        "integer": ("0", "1", "-1", "01", "2", "16777216", "16777217", "9007199254740993", "one"),
        "decimal": ("1.0", "0.1", "0.10000000000000000001", "16777217.5"),
        "double": ("1e0", "1.5e0", "0.1e0", "16777217e0", "9007199254740992e0", "NaN", "INF", "-0.0e0"),
        "float": ("1", "0.1", "16777216", "16777218", "NaN", "-INF"),
        "int": ("1", "2"),
        "boolean": ("true", "false", "1", "yes"),
        "string": ("", "a", "b", "1"),
        "dateTime": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z", "2025-12-31T24:00:00Z"),
        "date": ("2026-01-01", "2026-01-02", "2026-01-01Z", "2026-01-01+14:00"),
        "time": ("10:00:00",),
        "duration": ("PT0S", "P1D", "PT24H", "P30D", "P31D", "P1M", "P400Y", "P146097D", "-PT1S"),
        "dayTimeDuration": ("PT24H",),
    }.items()
    for lexical in lexicals
]
_TAGGED = [Literal("a", RDF_LANG_STRING, "en"), Literal("a", RDF_LANG_STRING, "EN"), Literal("a", RDF_DIR_LANG_STRING, "en", "ltr")]
_OTHERS: list[Term] = [*_TAGGED, Literal("a", "http://e/type"), Iri("http://e/a"), Iri("http://e/b")]
_TRIPLE = TripleTerm(Iri("http://e/a"), Iri("http://e/p"), Literal("1", XSD + "integer"))
_CONSTANTS: list[Term] = [*(literal for literal in _LITERALS if literal.lexical not in ("one", "yes", "P1M")), *_OTHERS]
_VALUES: list[Term | None] = [*_LITERALS, *_OTHERS, _TRIPLE, BlankNode("b"), None]
_X, _Y = Variable("x"), Variable("y")
_DATATYPES = [Iri(XSD + name) for name in ("integer", "double", "string", "dateTime", "int", "boolean")]

_constants = st.sampled_from(_CONSTANTS).map(a.Constant)
_numbers = st.sampled_from([literal for literal in _LITERALS if literal.datatype[len(XSD) :] in ("integer", "decimal", "double", "float")]).map(
    a.Constant
)
_sides = st.sampled_from(
    [a.Var(_X), a.Var(_X), a.Var(_X), a.Var(_Y), a.Call("STR", (a.Var(_X),)), a.Arithmetic(a.Operator.ADD, a.Var(_X), a.Var(_X))]
)
_operators = st.sampled_from(a.Comparison)
_compared = st.one_of(_numbers, _constants)
_leaves: st.SearchStrategy[a.Expression] = st.one_of(
    st.builds(a.Compare, _operators, _sides, _compared),
    st.builds(a.Compare, _operators, _compared, _sides),
    st.builds(a.Compare, _operators, st.just(a.Var(_X)), st.just(a.Var(_Y))),
    st.builds(a.In, _sides, st.lists(_compared, max_size=3).map(tuple)),
    st.builds(lambda constant: a.Call("SAMETERM", (a.Var(_X), constant)), _constants),
    st.builds(lambda name: a.Call(name, (a.Var(_X),)), st.sampled_from(["ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "ISTRIPLE"])),
    st.builds(lambda op, iri: a.Compare(op, a.Call("DATATYPE", (a.Var(_X),)), a.Constant(iri)), _operators, st.sampled_from(_DATATYPES)),
    st.sampled_from([a.Bound(_X), a.Var(_X)]),
)
_conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(st.builds(a.And, inner, inner), st.builds(a.And, inner, inner), st.builds(a.Or, inner, inner), st.builds(a.Not, inner)),
    max_leaves=5,
)
_ROWS = [{_X: x, _Y: y} for x in _VALUES for y in (x, Literal("1", XSD + "integer"), Literal("0.1", XSD + "float"), None)]


@settings(max_examples=examples(1000))
@given(st.lists(_conditions, min_size=1, max_size=2))
def test_no_value_passes_a_contradiction(conditions: list[a.Expression]) -> None:
    reason = find_contradiction(Names(""), [written(condition) for condition in conditions], "")
    if reason is not None:
        for row in _ROWS:
            assert not all(truth(condition, row.get, None, None) for condition in conditions), (row, reason)


FOUND = [
    ("?a > 5 && ?a < 3", "?a > 5 and ?a < 3 contradict each other"),
    ("?a > 5) FILTER(3 > ?a", "?a > 5 and 3 > ?a contradict each other"),
    ("?a = 1 && ?a = 2", "?a = 1 and ?a = 2 contradict each other"),
    ("?a = 0.5 && ?a != 5e-1", "?a = 0.5 and ?a != 5e-1 contradict each other"),
    ("?a > 0.1 && ?a <= 0.1", "?a > 0.1 and ?a <= 0.1 contradict each other"),
    ("?a >= 3 && ?a <= 3 && ?a != 3", "?a != 3 contradicts the conditions before it"),
    ("!(?a > 5) && ?a > 7", "!(?a > 5) and ?a > 7 contradict each other"),
    ("!(?a < 5 || ?a > 9) && ?a IN (1, 4, 10)", "!(?a < 5 || ?a > 9) and ?a IN (1, 4, 10) contradict each other"),
    ("(?a < 1 || ?a > 5) && ?a = 3", "?a < 1 || ?a > 5 and ?a = 3 contradict each other"),
    ("!(?a = 1 || ?a != 1)", "!(?a = 1 || ?a != 1) contradicts itself"),
    ("?a NOT IN (1, 2) && ?a = 2", "?a NOT IN (1, 2) and ?a = 2 contradict each other"),
    ("?a IN ('x', 'y') && ?a != 'x' && ?a != 'y'", "?a != 'y' contradicts the conditions before it"),
    ("?a = <x> && ?a = <y>", "?a = <x> and ?a = <y> contradict each other"),
    ("?a = 'x' && ?a = 'x'@en", "?a = 'x' and ?a = 'x'@en contradict each other"),
    ("?a = true && ?a = false", "?a = true and ?a = false contradict each other"),
    ("sameTerm(?a, :x) && ?a = :y", "sameTerm(?a, :x) and ?a = :y contradict each other"),
    ("isIRI(?a) && isLiteral(?a)", "isIRI(?a) and isLiteral(?a) contradict each other"),
    ("isIRI(?a) && ?a > 5", "isIRI(?a) and ?a > 5 contradict each other"),
    ("!isNumeric(?a) && ?a > 5", "!isNumeric(?a) and ?a > 5 contradict each other"),
    ("datatype(?a) = xsd:string && ?a > 5", "datatype(?a) = xsd:string and ?a > 5 contradict each other"),
    ("datatype(?a) = xsd:string && datatype(?a) = xsd:integer", "datatype(?a) = xsd:string and datatype(?a) = xsd:integer contradict each other"),
    ("!bound(?a) && ?a = 1", "!bound(?a) and ?a = 1 contradict each other"),
    ("str(?a) = 'x' && str(?a) = 'y'", "str(?a) = 'x' and str(?a) = 'y' contradict each other"),
    ("regex(?a, 'x') && !regex(?a, 'x')", "regex(?a, 'x') and !regex(?a, 'x') contradict each other"),
    ("?a < ?b && ?b < ?a", "?a < ?b and ?b < ?a contradict each other"),
    ('?a < "PT5M"^^xsd:duration && ?a > "PT1H"^^xsd:duration', None),
    ('?a = "P1D"^^xsd:duration && ?a != "PT24H"^^xsd:duration', None),
    ('?a > "2026-01-02T00:00:00Z"^^xsd:dateTime && ?a < xsd:dateTime("2026-01-02T00:30:00+01:00")', None),
    ('getENDTIME() < "2025-01-01T00:00:00Z"^^xsd:dateTime && getENDTIME() > "2026-01-01T00:00:00Z"^^xsd:dateTime', None),
]  # fmt: skip


def _warnings(condition: str) -> list[str]:
    query = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> SELECT * {{ ?a :p ?b FILTER({condition}) }}"
    return [warning.message.partition(": ")[2] for warning in parse(query).warnings if warning.code == "never-true"]


@pytest.mark.parametrize(("condition", "said"), FOUND)
def test_contradictions_are_found(condition: str, said: str | None) -> None:
    found = _warnings(condition)
    assert len(found) == 1
    assert said in (None, found[0])


@pytest.mark.parametrize("condition", [
    "?a > 3 && ?a < 5", "?a >= 3 && ?a <= 3", "?a > 5 || ?a < 3", "?a > 5 && ?b < 3", "!(?a > 5) && ?a < 5", "?a != 1 && ?a != 2", "?a NOT IN (1, 2) && ?a > 1",
    "?a = 0.1 && ?a != 1e-1", "?a = 16777217 && ?a = 16777216", "?a > 5 && RAND() < 0.5 && RAND() > 0.5", "isNumeric(?a) && ?a > 5", "isLiteral(?a) && ?a != :x",
    "?a != 5 && isIRI(?a)", "datatype(?a) = xsd:int && ?a > 5", "!(?a = 5) && !(?a < 5) && !(?a > 5)", "?a <= ?b && ?b <= ?a && ?a != ?b", "!bound(?c) || ?c > 5",
    "coalesce(?c, 1) = 1 && !bound(?c)", '?a = "P1D"^^xsd:duration && ?a <= "P1D"^^xsd:duration', '?a != "P30D"^^xsd:duration && ?a >= "P30D"^^xsd:duration',
])  # fmt: skip
def test_satisfiable_conditions_are_not_doubted(condition: str) -> None:
    assert _warnings(condition) == []


@pytest.mark.parametrize(("group", "said"), [
    ("?a :p ?b FILTER(?b > 5) FILTER(?b < 3)", "these FILTERs are never all true: ?b > 5 and ?b < 3 contradict each other"),
    ("?a :p ?b FILTER(?b != 1) FILTER(?b > 5 && ?b < 3)", "this FILTER is never true: ?b > 5 and ?b < 3 contradict each other"),
    ("?a :p ?b FILTER(?b > 5) { ?a :q ?b FILTER(?b < 3) }", None),
    ("?a :p ?b OPTIONAL { ?a :q ?c FILTER(?c > 5 && ?c < 3 && getDURATION() < 'PT1H'^^xsd:duration) }", "this FILTER is never true: ?c > 5 and ?c < 3 contradict each other"),
])  # fmt: skip
def test_the_filters_of_one_group_are_read_together(group: str, said: str | None) -> None:
    query = parse(f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> SELECT * {{ {group} }}")
    assert [warning.message for warning in query.warnings if warning.code == "never-true"] == ([] if said is None else [said])


def test_having_is_read_too() -> None:
    query = parse("PREFIX : <http://e/> SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?a HAVING (COUNT(*) > 5) (COUNT(*) < 3) WINDOW [RANGE PT1H]")
    assert [warning.message for warning in query.warnings if warning.code == "never-true"] == [
        "these HAVING conditions are never all true: COUNT(*) > 5 and COUNT(*) < 3 contradict each other"
    ]


def test_conditions_beyond_the_limit_let_everything_pass() -> None:
    listed = f"?a NOT IN ({', '.join(map(str, range(MOST_CONDITIONS + 1)))})"
    assert _warnings(f"{listed} && ?b > 5 && ?b < 3") == []
    assert len(_warnings(f"?b > 5 && ?b < 3 && {listed}")) == 1
