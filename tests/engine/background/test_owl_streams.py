"""Streams under a background in OWL 2 RL: the engine against the reference evaluator, which applies the profile's
rules one at a time.
"""

from collections.abc import Iterable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.messages import DROP, Entail, Entry, Events, Facts, Finish, Register
from epsparql.terms import RDF, Iri, Literal, Term
from tests.engine.background.test_entailment import IN_GRAPH, PROLOGUE
from tests.reference.evaluator import Fact, Occurrence
from tests.reference.reasoning import owl_streams as owl
from tests.soak import examples
from tests.support.background_timelines import GRAPH, TYPE, iri, text_of
from tests.support.feeds import SECOND
from tests.support.run_both import blocks, results, run, run_oracle
from verification.definitions.model import Triple
from verification.definitions.rdfs import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY

NIL = Iri(RDF + "nil")
CLASSES = st.sampled_from([iri(name) for name in "ABCD"])
PROPERTIES = st.sampled_from([*(iri(name) for name in "pqr"), *(iri(name) for name in "pqr"), TYPE])
VALUES: st.SearchStrategy[Term] = st.sampled_from([iri("x"), iri("y"), iri("A"), Literal("1")])


def collection(relation: Iri, of: Term, parts: Sequence[Term]) -> list[Triple]:
    """A class by a list of classes, whose nodes are named after it."""
    nodes = [iri(f"list{relation.value[-12]}{of.value[-1:]}{k}") for k in range(len(parts))] if isinstance(of, Iri) else []
    firsts: list[Triple] = [(node, owl.FIRST, part) for node, part in zip(nodes, parts, strict=True)]
    rests: list[Triple] = [(node, owl.REST, rest) for node, rest in zip(nodes, [*nodes[1:], NIL], strict=True)]
    return [(of, relation, nodes[0]), *firsts, *rests]


AXIOMS: st.SearchStrategy[list[Triple]] = st.one_of(
    st.builds(lambda r, s, o: [(s, r, o)], st.sampled_from((SUBCLASS, SUBCLASS, owl.SAME_CLASS)), CLASSES, CLASSES),
    st.builds(lambda r, s, o: [(s, r, o)], st.sampled_from((SUBPROPERTY, owl.SAME_PROPERTY, owl.INVERSE, owl.INVERSE)), PROPERTIES, PROPERTIES),
    st.builds(lambda r, s, o: [(s, r, o)], st.sampled_from((DOMAIN, RANGE)), PROPERTIES, CLASSES),
    st.builds(lambda p: [(p, TYPE, owl.SYMMETRIC)], PROPERTIES),
    *[st.builds(lambda k, p, v: [(k, owl.ON, p), (k, owl.VALUE, v)], CLASSES, PROPERTIES, VALUES)] * 3,
    st.builds(lambda k, p, of: [(k, owl.ON, p), (k, owl.SOME, of)], CLASSES, PROPERTIES, st.one_of(st.just(owl.THING), CLASSES)),
    st.builds(collection, st.sampled_from((owl.INTERSECTION, owl.UNION)), CLASSES, st.lists(CLASSES, min_size=2, max_size=2)),
)
SCHEMAS = st.lists(AXIOMS, max_size=5).map(lambda axioms: [*dict.fromkeys(Fact(triple) for axiom in axioms for triple in axiom)])
"""Cycles, several parents, classes that are values, inverses of rdf:type and values of it."""
STATEMENTS: st.SearchStrategy[Triple] = st.one_of(
    st.tuples(st.sampled_from([iri("x"), iri("y"), iri("A")]), st.sampled_from([iri(name) for name in "pqr"]), VALUES),
    st.tuples(st.sampled_from([iri("x"), iri("y")]), st.just(TYPE), CLASSES),
)
BODIES = st.sampled_from((*IN_GRAPH, "?s :q ?o", "?s ?p :x", ":x ?p ?o", "?s ?p 1", "?s :p :y", "{ ?s a :A } SEQ { ?s :q ?o }", "?s a :C . ?s :p ?o"))


def told(queries: dict[str, str], schemas: Iterable[Sequence[Fact]], triples: Sequence[Triple]) -> list[tuple[Entry, tuple[Occurrence, ...]]]:
    """A log in which each schema in its turn takes the place of the one before, and all triples are sent under each,
    at an instant of its own.
    """
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Entail(0, "owl-rl"), ())]
    for now, schema in enumerate(schemas, 1):
        log.append((Facts(len(log), "", "", DROP), ()))
        log.append((Facts(len(log), "", text_of(schema)), ()))
        if now == 1:
            log += [(Register(len(log) + k, name, text), ()) for k, (name, text) in enumerate(queries.items())]
        log.append((Events(len(log), "default", len(triples), now * SECOND), at(now, triples)))
    return [*log, (Finish(len(log), "default"), ())]


def at(now: int, triples: Sequence[Triple]) -> tuple[Occurrence, ...]:
    return tuple(Occurrence(triple, now * SECOND, now * SECOND, GRAPH) for triple in triples)


def agree(bodies: Iterable[str], schemas: Sequence[Sequence[Fact]], triples: Sequence[Triple], restored: Iterable[int] = ()) -> None:
    queries = {f"q{k}": f"{PROLOGUE}SELECT * {{ GRAPH :g {{ {body} }} }}" for k, body in enumerate(bodies)}
    log = told(queries, schemas, triples)
    ran = run(blocks(log, range(len(log))), restore_before=restored)
    entailed = [o for now, schema in enumerate(schemas, 1) for o in owl.entailed(at(now, triples), schema)]
    assert results(queries, ran.emitted) == run_oracle(queries, {"default": entailed})


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    bodies=st.lists(BODIES, min_size=1, max_size=3, unique=True), schemas=st.lists(SCHEMAS, min_size=1, max_size=2),
    triples=st.lists(STATEMENTS, min_size=1, max_size=3, unique=True), restored=st.sets(st.integers(1, 9), max_size=2),
)  # fmt: skip
def test_a_stream_entails_what_the_rules_say(bodies: list[str], schemas: list[list[Fact]], triples: list[Triple], restored: set[int]) -> None:
    agree(bodies, schemas, triples, restored)
