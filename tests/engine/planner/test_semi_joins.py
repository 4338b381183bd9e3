"""A background that is narrowed, or cut, for a query gives the solutions of the whole one."""

from collections import Counter

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import epsparql
from engine.background import semi_joins
from engine.background.fact_store import FactIndex, numbers_of
from engine.dictionary.term_dictionary import TermTable
from engine.errors import Refusal
from engine.messages import ADD
from engine.runtime import one_shot_query
from epsparql import algebra as a
from tests.soak import examples

Rows = Counter[tuple[str | None, ...]]
NODES, PREDICATES = ("u", "v", "w", "x"), ("p", "q", "r")
ENDS = st.sampled_from(["?a", "?b", "?c", ":u", ":v"])
LINKS = st.sampled_from([":p", ":q", ":r", "?k", ":p+", ":q*", ":p?", "^:q/:r*", "(:p|:r)+", "!:p"])
TRIPLES = st.builds("{} {} {} .".format, ENDS, LINKS, ENDS)
OPERATORS = (
    "{0} {1}", "{0} {1} {2}", "{{ {0} }} {{ {1} }}", "{{ {0} }} UNION {{ {1} }}", "{0} OPTIONAL {{ {1} }}", "{0} OPTIONAL {{ {1} OPTIONAL {{ {2} }} }}",
    "{0} OPTIONAL {{ {1} FILTER(?a != ?b) }}", "{0} MINUS {{ {1} }}", "{0} FILTER EXISTS {{ {1} }}", "{0} FILTER NOT EXISTS {{ {1} }}",
    "{0} FILTER(?a = :u || EXISTS {{ {1} }})", "GRAPH ?g {{ {0} }}", "GRAPH :g1 {{ {0} }} {1}", "GRAPH ?g {{ {0} OPTIONAL {{ {1} }} }}",
    "{0} VALUES ?a {{ :u :w }}", "{0} VALUES (?a ?b) {{ (:u UNDEF) (:v :w) }}", "{0} BIND(:u AS ?d) ?d :p ?c .", "{0} BIND(EXISTS {{ {1} }} AS ?e)",
    "{{ SELECT ?a ?b {{ {0} }} }} {1}", "{{ SELECT DISTINCT ?a {{ {0} }} }} {1}", "{{ SELECT ?a (COUNT(*) AS ?n) {{ {0} }} GROUP BY ?a }} {1}",
    "{{ SELECT ?a {{ {0} }} ORDER BY ?a LIMIT 1 }} {1}", "{0} FILTER(?a IN (:u, :v))", "{0} FILTER(?b = :v)",
)  # fmt: skip


def groups() -> st.SearchStrategy[str]:
    return st.recursive(
        TRIPLES, lambda inner: st.builds(lambda form, *parts: form.format(*parts), st.sampled_from(OPERATORS), inner, inner, inner), max_leaves=6
    )


FACTS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(NODES), st.sampled_from(["", "g1", "g2"])), max_size=14
)


def read_facts(facts: list[tuple[str, str, str, str]]) -> FactIndex:
    terms = TermTable()
    known = FactIndex(terms)
    for graph in ("", "g1", "g2"):
        text = "".join(f"<x:{s}> <x:{p}> <x:{o}> .\n" for s, p, o, g in facts if g == graph)
        known = known.with_change(graph and f"x:{graph}", numbers_of(text, terms), ADD)
    return known


def solve(text: str, known: FactIndex) -> Rows:
    query = epsparql.parse(f"PREFIX : <x:> {text}").query
    assert isinstance(query, a.Select)
    return Counter(tuple(row) for part in one_shot_query.solve_select(query, known, 0) for row in part.to_pylist())


@given(groups(), FACTS, st.sampled_from(["", "DISTINCT "]))
@settings(max_examples=examples(200))
def test_they_leave_what_solutions_need(group: str, facts: list[tuple[str, str, str, str]], distinct: str) -> None:
    known, text = read_facts(facts), f"SELECT {distinct}?a ?b ?c {{ {group} }}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_shot_query, "narrow_background", lambda known, pattern: known)
        try:
            whole = solve(text, known)
        except (Refusal, epsparql.QueryError):  # EXISTS over an optional variable, BIND of a variable in scope
            reject()
    assert solve(text, known) == whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(semi_joins, "LEAST_CUT", 1)
        patch.setattr(semi_joins, "GROWTH", 2)
        assert solve(f"{text} LIMIT 1000000", known) == whole
        assert solve(f"{text} LIMIT 2", known) <= whole
