"""These tests hold type inference against the engine's evaluation.

Parts reported as never true or always an error are so for any bindings of the variables.
"""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions.evaluator import ExpressionError, evaluate, truth
from engine.expressions.nondeterministic import Identity, Naming
from epsparql import algebra as a
from epsparql import parse, render
from epsparql.iris import Names
from epsparql.lint.diagnostics import why_error, why_never_true
from epsparql.lint.type_inference import Kinds
from epsparql.parser import ast as s
from epsparql.parser.grammar import parse_document
from epsparql.parser.keywords import BUILT_INS as BUILT_INS
from epsparql.terms import RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, TripleTerm, Variable
from epsparql.translate.expressions import _ARITIES, _ONE
from tests.soak import examples, is_full

_LITERALS = [
    *(Literal(lexical, XSD + datatype) for lexical, datatype in (
        ("1", "integer"), ("0", "integer"), ("one", "integer"), ("2.5", "decimal"), ("NaN", "double"), ("1e0", "float"), ("1", "int"), ("true", "boolean"),
        ("false", "boolean"), ("yes", "boolean"), ("PT1S", "duration"), ("P1M", "duration"), ("PT1S", "dayTimeDuration"), ("2026-01-01T00:00:00Z", "dateTime"),
        ("2026-01-01", "date"), ("some day", "date"), ("10:00:00", "time"), ("a", "string"),
    )),
    Literal("a"), Literal(""), Literal("a", RDF_LANG_STRING, "en"), Literal("", RDF_LANG_STRING, "en"), Literal("a", "http://e/type"),
    Literal("a", RDF_LANG_STRING),
]  # fmt: skip
_TRIPLE = TripleTerm(Iri("http://e/a"), Iri("http://e/p"), Literal("1", XSD + "integer"))
_TERMS: list[Term] = [*_LITERALS, Literal("a", RDF_DIR_LANG_STRING, "ar", "rtl"), Iri("http://e/a"), Iri("a"), _TRIPLE]
_NAMES = tuple(map(Variable, "xyz"))
_IDENTITY = Identity(Naming("query", 2), "site", ())
_CASTS = [f"<{XSD}{name}>" for name in ("integer", "decimal", "double", "float", "boolean", "string", "dateTime", "date")]
_FUNCTIONS = {
    1: ["STR", "LANG", "DATATYPE", "IRI", "BNODE", "ABS", "CEIL", "FLOOR", "ROUND", "UCASE", "LCASE", "STRLEN", "ENCODE_FOR_URI", "MD5", "YEAR", "MONTH",
        "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ", "ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "ISTRIPLE", "SUBJECT", "PREDICATE", "OBJECT",
        "LANGDIR", "HASLANG", "HASLANGDIR", *_CASTS],
    2: ["CONCAT", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "LANGMATCHES", "REGEX", "SUBSTR", "STRLANG", "STRDT", "SAMETERM"],
    3: ["REPLACE", "SUBSTR", "TRIPLE", "STRLANGDIR"],
}  # fmt: skip

_leaves: st.SearchStrategy[a.Expression] = st.one_of(
    st.sampled_from(_TERMS).map(a.Constant),
    st.sampled_from(_TERMS).map(a.Constant),
    st.sampled_from(_NAMES).map(a.Var),
    st.sampled_from(_NAMES).map(a.Bound),
    st.sampled_from(a.TimeFunction).map(a.Time),
)


def _larger(inner: st.SearchStrategy[a.Expression]) -> st.SearchStrategy[a.Expression]:
    calls = [st.builds(a.Call, st.sampled_from(names), st.tuples(*[inner] * count)) for count, names in _FUNCTIONS.items()]
    return st.one_of(
        st.builds(a.Compare, st.sampled_from(a.Comparison), inner, inner),
        st.builds(a.Compare, st.sampled_from(a.Comparison), inner, inner),
        st.builds(a.Arithmetic, st.sampled_from(a.Operator), inner, inner),
        st.builds(a.Or, inner, inner),
        st.builds(a.And, inner, inner),
        st.builds(a.Not, inner),
        st.builds(a.Negate, inner),
        st.builds(a.In, inner, st.lists(inner, max_size=2).map(tuple)),
        st.builds(a.If, inner, inner, inner),
        st.builds(a.Coalesce, st.lists(inner, max_size=2).map(tuple)),
        *calls,
    )


expressions = st.recursive(_leaves, _larger, max_leaves=5)
bindings = st.fixed_dictionaries({name: st.one_of(st.none(), st.sampled_from([*_TERMS, BlankNode("b")])) for name in _NAMES})
times = st.sampled_from([(None, None), (0, 0), (1_000_000, 5_000_000)])


def written(expression: a.Expression) -> s.Expression:
    document = parse_document(render(a.Select(a.Filter(expression, a.Bgp(())), (), False)))
    [element] = document.query.body.where.elements
    assert isinstance(element, s.FilterElement)
    return element.condition


@settings(max_examples=examples(500))
@given(expressions, st.lists(bindings, min_size=1, max_size=4), times)
def test_no_verdict_is_wrong(expression: a.Expression, rows: list[dict[Variable, Term | None]], interval: tuple[int | None, int | None]) -> None:
    condition = written(expression)
    kinds = Kinds(Names(""), {})
    never, error = why_never_true(kinds, condition), why_error(kinds, condition)
    for row in rows:
        if never is not None:
            assert truth(expression, row.get, *interval, _IDENTITY) is not True, never
        if error is not None:
            assert value_of(expression, row, interval) is None, error


def value_of(expression: a.Expression, row: dict[Variable, Term | None], interval: tuple[int | None, int | None]) -> Term | None:
    try:
        return evaluate(expression, row.get, *interval, _IDENTITY)
    except ExpressionError:
        return None


# ---------------------------------------------------------------- each form with each kind of operand
_OF_EACH_KIND = (
    "<http://e/a>", "BNODE()", "1", '"a"', '"a"@en', '"a"@en--ltr', "true", "false", '"2026-01-01T00:00:00Z"^^xsd:dateTime', '"2026-01-01"^^xsd:date',
    '"PT1S"^^xsd:duration', '"a"^^<http://e/type>', "<<( <http://e/a> <http://e/p> 1 )>>", "?x",
)  # fmt: skip
_INFIX_FORMS = [f"{{0}} {operator} {{1}}" for operator in ("=", "!=", "<", ">=", "+", "-", "*", "&&", "||")]
_OTHERS = ("<http://e/a>", "1", '"a"', "<<( <http://e/a> <http://e/p> 1 )>>")
_FORMS = [
    *_INFIX_FORMS,
    "{0} IN ({1}, 2)", "{0} NOT IN ({1})", "! {0}", "- {0}", "+ {0}", "{0}", "IF({0}, {1}, 1)", "COALESCE({0}, {1})", "xsd:integer({0})",
    *(f"{name}({', '.join(f'{{{min(k, 1)}}}' for k in range(count))})" for name in BUILT_INS if name != "BOUND" for count in {*_ARITIES.get(name, _ONE)} if count <= 4
      and (name, count) not in (("REGEX", 3), ("REPLACE", 4))),
    'REGEX({0}, {1}, "i")', 'REPLACE({0}, {1}, {1}, "i")',
]  # fmt: skip


@pytest.mark.parametrize("form", _FORMS)
def test_each_form_with_each_kind_of_operand(form: str) -> None:
    """`make soak` tries all pairs, other runs each third one."""
    others = _OF_EACH_KIND if form in _INFIX_FORMS else _OTHERS
    operands = product(_OF_EACH_KIND, others) if "{1}" in form else product(_OF_EACH_KIND)
    for condition in dict.fromkeys(form.format(*each) for each in [*operands][:: 1 if is_full() else 3]):
        query = parse(f"PREFIX xsd: <{XSD}> SELECT (({condition}) AS ?y) {{ OPTIONAL {{ ?s ?p ?x }} FILTER({condition}) }}")
        assert isinstance(query.query, a.Select)
        assert isinstance(query.query.pattern, a.Extend)
        value, never = query.query.pattern.expression, [warning.message for warning in query.warnings if warning.code == "never-true"]
        error = [warning.message for warning in query.warnings if warning.code == "always-error"]
        rows: list[dict[Variable, Term | None]] = [{}, {Variable("x"): Iri("http://e/b")}, {Variable("x"): Literal("2", XSD + "integer")}]
        for row in rows:
            assert not never or truth(value, row.get, 0, 0, _IDENTITY) is not True, (condition, never)
            assert not error or value_of(value, row, (0, 0)) is None, (condition, error)
