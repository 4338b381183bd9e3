"""Hypothesis strategies: every query that parse can give, and nothing else."""

from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import Any

from hypothesis import strategies as st

from epsparql import algebra as a
from epsparql.check import visible_variables
from epsparql.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, TermOrVariable, Variable

_HIDDEN = Variable("_:hidden")
_NEW = Variable("new")

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
iris = st.builds(Iri, st.text("abé/#:.-_~%1?&=", max_size=8).map("http://e/".__add__))
variables = st.sampled_from(["x", "y", "z", "é1", "_"]).map(Variable)
numbers = st.sampled_from(
    [("1", "integer"), ("+2", "integer"), ("-3", "integer"), ("0.5", "decimal"), ("-.5", "decimal"), ("1.", "decimal"), ("1e3", "double"),
     ("-1.E-3", "double"), ("INF", "double"), ("true", "boolean"), ("1", "boolean"), ("one", "integer"), ("PT1S", "duration"),
     ("2026-01-01T00:00:00Z", "dateTime")]
).map(lambda pair: Literal(pair[0], XSD + pair[1]))  # fmt: skip
literals = st.one_of(
    numbers,
    st.builds(Literal, text),
    st.builds(Literal, text, st.just(RDF_LANG_STRING), st.sampled_from(["en", "de-at-1996"])),
    st.builds(Literal, text, iris.map(lambda iri: iri.value)),
)
constants: st.SearchStrategy[TermOrVariable] = st.one_of(iris, literals)
nodes: st.SearchStrategy[TermOrVariable] = st.one_of(variables, constants, st.just(_HIDDEN))
verbs: st.SearchStrategy[TermOrVariable] = st.one_of(variables, iris)
triples = st.builds(a.TriplePattern, nodes, verbs, nodes)
micros = st.one_of(st.integers(1, 10**9), st.integers(1, 10**6).map((10**6).__mul__), st.just(2**62))

groups = st.builds(a.Bgp, st.lists(triples, max_size=3).map(tuple))


def _joins(inner: st.SearchStrategy[a.Pattern], conditions: st.SearchStrategy[a.Expression]) -> st.SearchStrategy[a.Pattern]:
    full = inner.filter(lambda pattern: pattern != a.Bgp(()))
    optional = st.one_of(st.none(), conditions)
    return st.one_of(
        st.builds(a.Join, full, full),
        st.builds(a.Union, inner, inner),
        st.builds(a.SeqJoin, inner, inner),
        st.builds(a.EqJoin, inner, inner),
        st.builds(a.RelationJoin, st.sampled_from(a.Relation), inner, inner),
        st.builds(a.LeftJoin, inner, inner, optional),
        st.builds(a.SeqRightJoin, inner, inner, optional),
        st.builds(a.EqLeftJoin, inner, inner, optional),
        st.builds(a.Minus, inner, inner),
        st.builds(a.SeqWithout, inner, inner, inner, st.one_of(st.none(), micros)),
        st.builds(a.WithoutFor, inner, inner, micros),
        st.builds(a.Within, inner, st.one_of(st.just(0), micros)),
        st.builds(a.Filter, conditions, inner),
        st.builds(a.Extend, inner, st.just(_NEW), conditions),
    )


def _calls(inner: st.SearchStrategy[a.Expression]) -> st.SearchStrategy[a.Expression]:
    many = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(a.Or, inner, inner),
        st.builds(a.And, inner, inner),
        st.builds(a.Not, inner),
        st.builds(a.Negate, inner),
        st.builds(a.Compare, st.sampled_from(a.Comparison), inner, inner),
        st.builds(a.Arithmetic, st.sampled_from(a.Operator), inner, inner),
        st.builds(a.In, inner, many),
        st.builds(a.If, inner, inner, inner),
        st.builds(a.Coalesce, many),
        st.builds(a.Call, st.just("CONCAT"), many),
        st.builds(a.Call, st.just("STRLEN"), st.tuples(inner)),
        st.builds(a.Call, iris.map(str), many),
    )


_leaves: st.SearchStrategy[a.Expression] = st.one_of(
    st.builds(a.Var, variables),
    st.builds(a.Constant, constants),
    st.builds(a.Bound, variables),
    st.builds(a.Time, st.sampled_from(a.TimeFunction)),
    st.builds(a.Exists, groups),
    st.builds(a.Not, st.builds(a.Exists, groups)),
)
expressions = st.recursive(_leaves, _calls, max_leaves=6)
patterns: st.SearchStrategy[a.Pattern] = st.recursive(groups, lambda inner: _joins(inner, expressions), max_leaves=8)
deep_expressions = st.recursive(st.one_of(_leaves, st.builds(a.Exists, patterns)), _calls, max_leaves=4)
streams = st.lists(st.sampled_from(["default", "http://e/s", "a", "../b"]), min_size=1, unique=True).map(tuple)


def _apart(node: Any, fresh: "count[int]") -> Any:
    """Each basic graph pattern gets a blank node of its own, each BIND a new variable: SPARQL forbids to share them."""
    if isinstance(node, tuple):
        return tuple(_apart(part, fresh) for part in node)
    if isinstance(node, a.Bgp):
        label = Variable(f"_:b{next(fresh)}")
        return a.Bgp(tuple(_relabelled(triple, label) for triple in node.triples))
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = replace(node, **{field.name: _apart(getattr(node, field.name), fresh) for field in fields(node)})
    return replace(changed, variable=Variable(f"new{next(fresh)}")) if isinstance(changed, a.Extend) else changed


def _relabelled(triple: a.TriplePattern, node: TermOrVariable) -> a.TriplePattern:
    return a.TriplePattern(*(node if term == _HIDDEN else term for term in (triple.subject, triple.predicate, triple.object)))


@st.composite
def selects(draw: st.DrawFn) -> a.Select:
    pattern = _apart(draw(st.one_of(patterns, st.builds(a.Filter, deep_expressions, patterns))), count())
    visible = [variable for variable in visible_variables(pattern) if not variable.hidden]
    projection = draw(st.lists(st.sampled_from([*visible, Variable("unbound")]), unique=True)) or visible
    return a.Select(pattern, tuple(projection), draw(st.booleans()), draw(streams))


@st.composite
def constructs(draw: st.DrawFn) -> a.Construct:
    pattern = _apart(draw(patterns), count())
    template = tuple(_relabelled(triple, BlankNode("t")) for triple in draw(st.lists(triples, max_size=3)))
    return a.Construct(template, pattern, draw(streams), draw(st.sampled_from(["default", "http://e/out"])))


queries: st.SearchStrategy[a.Query] = st.one_of(selects(), constructs())
