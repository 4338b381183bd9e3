"""These tests change a background under OWL.

After any changes it entails what the tables of the profile give from scratch.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex
from engine.background.reasoning.owl_rl import derived_triples, triple_index
from engine.background.reasoning.owl_rl.closure import Closure
from engine.dictionary.term_dictionary import TermTable
from engine.errors import EntailmentLimit
from engine.expressions.literals import parse_term
from engine.messages import ADD, DROP, OWL_RL, REPLACE
from engine.triples.quads import Triple
from epsparql.terms import Term
from tests.engine.background.test_owl import ntriples
from tests.reference.reasoning import owl_closure
from tests.soak import examples


def triple(text: str) -> Triple:
    s, p, o = (parse_term(part) for part in ntriples(text).removesuffix(" .\n").split(" "))
    return s, p, o


AXIOMS = """
p a owl:TransitiveProperty
q a owl:TransitiveProperty . p a owl:SymmetricProperty
p a owl:FunctionalProperty
q a owl:InverseFunctionalProperty
p owl:inverseOf q
q owl:inverseOf r . p owl:equivalentProperty r
C owl:equivalentClass D . D rdfs:subClassOf E
C rdfs:subClassOf D . E rdfs:subClassOf C
p rdfs:subPropertyOf q . q rdfs:subPropertyOf r
r rdfs:subPropertyOf p . p rdfs:domain C . q rdfs:range D
R owl:onProperty p . R owl:someValuesFrom C
R owl:onProperty q . R owl:someValuesFrom owl:Thing . R rdfs:subClassOf C
R owl:onProperty p . R owl:someValuesFrom E . Q owl:onProperty q . Q owl:someValuesFrom E
Q owl:onProperty p . Q owl:allValuesFrom D . C rdfs:subClassOf Q
Q owl:onProperty q . Q owl:allValuesFrom D . R owl:onProperty p . R owl:allValuesFrom C
R owl:onProperty p . R owl:hasValue y . R rdfs:subClassOf D
Q owl:onProperty q . Q owl:hasValue y . C rdfs:subClassOf Q
R owl:onProperty p . R owl:maxCardinality "1" . C rdfs:subClassOf R
Q owl:onProperty q . Q owl:maxQualifiedCardinality "1" . Q owl:onClass D . C rdfs:subClassOf Q
Q owl:onProperty q . Q owl:maxQualifiedCardinality "1" . Q owl:onClass owl:Thing . Q owl:sameAs C
C owl:intersectionOf _:k . _:k rdf:first D . _:k rdf:rest _:l . _:l rdf:first E . _:l rdf:rest rdf:nil
E owl:unionOf _:k . _:k rdf:first C . _:k rdf:rest _:l . _:l rdf:first D
D owl:oneOf _:m . _:m rdf:first x . _:m rdf:rest _:m
r owl:propertyChainAxiom _:n . _:n rdf:first p . _:n rdf:rest _:o . _:o rdf:first q
D owl:hasKey _:n . _:n rdf:first p . _:n rdf:rest _:o . _:o rdf:first q
E owl:hasKey _:o . _:o rdf:first r
C owl:sameAs D
p owl:sameAs q
R owl:sameAs Q
s rdfs:subPropertyOf owl:sameAs
K rdfs:subClassOf owl:TransitiveProperty . r a K
""".strip().split("\n")
ODD = (
    "s rdfs:subPropertyOf rdf:type",
    "rdf:type owl:sameAs s",
    "R owl:onProperty rdf:type . R owl:hasValue C",
    'R owl:onProperty rdf:type . R owl:maxCardinality "1"',
    "rdf:type a owl:FunctionalProperty",
    "rdfs:range a owl:SymmetricProperty",
    "rdfs:domain owl:inverseOf s",
)
"""About RDFS's own words."""


def named(names: str, place: int) -> st.SearchStrategy[Term]:
    return st.sampled_from([triple(f"{name} {name} {name}")[place] for name in names.split()])


def chosen(*texts: str) -> st.SearchStrategy[list[Triple]]:
    """Some of the statements of one of these."""
    whole = st.sampled_from([[triple(each) for each in text.split(" . ")] for text in texts])
    return whole | whole | whole.flatmap(lambda triples: st.lists(st.sampled_from(triples), min_size=1))


NODES = named("x y z w", 0)
LITERAL = triple('x p "l"')[2]
DATA = st.one_of(
    st.tuples(NODES, named("p q r s", 1), NODES),
    st.tuples(NODES, named("p q r s", 1), st.one_of(NODES, named("C", 2), st.just(LITERAL))),
    st.tuples(NODES, named("a", 1), named("C D E R Q", 2)),
    st.tuples(NODES, named("owl:sameAs", 1), NODES),
)
STATED = st.one_of(*[chosen(*AXIOMS)] * 6, DATA.map(lambda each: [each]))
TRIPLES = st.builds(
    lambda stated, data: [*dict.fromkeys(each for part in [*stated, data] for each in part)], st.lists(STATED, max_size=3), st.lists(DATA, max_size=5)
)
STEPS = st.lists(st.tuples(st.sampled_from((ADD, ADD, REPLACE, REPLACE, DROP)), st.sampled_from(("", "g", "h")), TRIPLES), min_size=1, max_size=5)


def in_numbers(triples: list[Triple], terms: TermTable) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return terms.intern_all([str(part) for each in triples for part in each]).reshape(-1, 3)


def follows(steps: list[tuple[str, str, list[Triple]]]) -> None:
    terms = TermTable(spare=0)
    found, stands = FactIndex(terms, OWL_RL), dict[str, list[Triple]]()
    for change, graph, triples in steps:
        before = stands.get(graph, []) if change == ADD else []
        stands[graph] = [] if change == DROP else [*before, *triples]
        found = found.with_change(graph, in_numbers(triples, terms), change)
        terms.collect()
        known = {each for graph in stands.values() for each in graph}
        assert {quad[:3] for quad in found} == owl_closure.closed(known)
        assert {quad[:3] for quad in found.quads} == known


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_after_changes_it_is_as_from_scratch(steps: list[tuple[str, str, list[Triple]]]) -> None:
    follows(steps)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, chosen(*ODD))
def test_statements_about_the_words_of_rdfs(steps: list[tuple[str, str, list[Triple]]], odd: list[Triple]) -> None:
    follows([*steps[:2], (ADD, "", odd), *steps[2:3]])


@pytest.mark.parametrize("odd", ODD)
def test_a_rule_about_a_word_of_rdfs_sees_all_of_its_triples(odd: str) -> None:
    """The triples come before the rule, and after it."""
    data = [triple(each) for each in ("y a E", "y a R", "q rdfs:range C", "q rdfs:range D", "q rdfs:domain E", "x q z")]
    about = [triple(each) for each in odd.split(" . ")]
    for order in ([about, data], [data, about]):
        follows([(ADD, graph, triples) for graph, triples in zip(("", "g"), order, strict=True)])
    follows([(ADD, "", data), *((ADD, "g", [each]) for each in reversed(about)), (DROP, "g", []), (ADD, "g", about)])


EXPLOSIONS = [
    pytest.param(["p a owl:TransitiveProperty", *(f"n{k} p n{k + 1}" for k in range(1000))], "2,000 triples beyond RDFS; the last one is of the predicate", id="chain"),
    pytest.param([f"n{k} owl:sameAs n{k + 1}" for k in range(1000)], "2,000 triples beyond RDFS; the last one is of the predicate", id="clique"),
    pytest.param(
        ["C owl:hasKey _:k . _:k rdf:first p . _:k rdf:rest _:l . _:l rdf:first q", *(f"n{k} a C . n{k} p g{k % 30} . n{k} q h{k // 30}" for k in range(900))], "30,000 steps",
        id="pairs that come to nothing",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "told"), EXPLOSIONS)
def test_what_grows_beyond_the_limit_ends_with_it(texts: list[str], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_triples, "MOST", 2_000)
    monkeypatch.setattr(triple_index, "WORK", 30_000)
    terms = TermTable()
    rows = in_numbers([triple(part) for text in texts for part in text.split(" . ")], terms)
    closure = Closure(terms)
    given_ = {int(p): np.column_stack([rows[rows[:, 1] == p][:, [0, 2]], np.zeros((rows[:, 1] == p).sum(), np.int64)]) for p in np.unique(rows[:, 1])}
    few = {p: part[:3] for p, part in given_.items()}
    with pytest.raises(EntailmentLimit, match=told) as caught:
        closure.close_again(given_)
    with pytest.raises(EntailmentLimit) as again:
        closure.close_again(given_)
    assert again.value is caught.value, "more of the same is not tried"
    closure.close_again(few)
    alone = Closure(terms)
    alone.close_again(few)
    assert {p: {*map(tuple, part.tolist())} for p, part in closure.base.items()} == {
        p: {*map(tuple, part.tolist())} for p, part in alone.base.items()
    }


def test_beyond_the_limit_rdfs_holds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_triples, "MOST", 2_000)
    terms = TermTable()
    found = FactIndex(terms, OWL_RL).with_change(
        "", in_numbers([triple("C rdfs:subClassOf D"), triple("x a C"), triple("p owl:inverseOf q"), triple("x p y")], terms), ADD
    )
    assert triple("y q x") in {quad[:3] for quad in found}
    chain = in_numbers([triple("p a owl:TransitiveProperty"), *(triple(f"n{k} p n{k + 1}") for k in range(2000))], terms)
    beyond = found.with_change("long", chain, ADD)
    assert beyond.overflow is not None
    assert triple("x a D") in {quad[:3] for quad in beyond}
    assert triple("y q x") not in {quad[:3] for quad in beyond}
    back = beyond.with_change("long", in_numbers([], terms), DROP)
    assert back.overflow is None
    assert {*back} == {*found}


def test_an_older_version_can_go_on_too() -> None:
    """A change that is refused leaves the version before it."""
    terms = TermTable()
    first = FactIndex(terms, OWL_RL).with_change("", in_numbers([triple("p a owl:TransitiveProperty"), triple("x p y")], terms), ADD)
    refused = first.with_change("", in_numbers([triple("y p z"), triple("z owl:sameAs w")], terms), ADD)
    assert triple("x p w") in {quad[:3] for quad in refused}
    taken = first.with_change("", in_numbers([triple("y p w")], terms), ADD)
    assert {quad[:3] for quad in taken} == owl_closure.closed({triple("p a owl:TransitiveProperty"), triple("x p y"), triple("y p w")})
    assert triple("x p w") in {quad[:3] for quad in refused}
