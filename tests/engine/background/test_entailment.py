"""Streams under a background's schema: the engine against the reference evaluator, which closes both by the rules one
at a time.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.background.reasoning.rdfs_schema import RDFS
from engine.messages import ADD, DROP, Entry, Events, Facts, Register
from epsparql.terms import RDF, XSD, Iri, Literal, Term
from tests.reference.evaluator import Fact, Occurrence
from tests.soak import examples
from tests.support.background_timelines import CHANGES, NAMES, SCHEMAS, TYPE, Step, iri, text_of, told
from tests.support.feeds import EXAMPLE, SECOND
from tests.support.run_both import blocks, results, run, run_engine, run_oracle
from verification.definitions.rdfs import SUBCLASS

PROLOGUE = f"PREFIX : <{EXAMPLE}> PREFIX rdf: <{RDF}> PREFIX rdfs: <{RDFS}> PREFIX xsd: <{XSD}> "
GRAPHS = st.sampled_from((None, None, Iri(EXAMPLE + "g")))
OBJECTS: st.SearchStrategy[Term] = st.sampled_from([Iri(EXAMPLE + "x"), Iri(EXAMPLE + "y"), Iri(EXAMPLE + "A"), Literal("1")])
STATEMENTS = st.one_of(
    st.tuples(st.sampled_from([Iri(EXAMPLE + "x"), Iri(EXAMPLE + "y")]), st.sampled_from([Iri(EXAMPLE + name) for name in "pqr"]), OBJECTS),
    st.tuples(OBJECTS.filter(lambda term: isinstance(term, Iri)), st.just(TYPE), NAMES),
)
FEEDS = st.lists(
    st.builds(lambda triple, end, graph: Occurrence(triple, end * SECOND, end * SECOND, graph), STATEMENTS, st.integers(1, 2), GRAPHS),
    max_size=4,
    unique=True,
)
BODIES = st.sampled_from((
    "?s a ?c", "?s a :A", "?s :p ?o", "?s ?v ?o", "?s a :B . ?s :q ?o", "{ ?s a :A } SEQ { ?s :p ?o }", "?x ?p ?x", "?s :p+ ?o",
    "?s (:p|rdf:type)* ?o", "GRAPH ?g { ?s a ?c }", "?s :r ?o FILTER NOT EXISTS { ?o a :C }", "?s a ?s", ":x a ?c", "?s ?p :A", "?s !(:p) ?o",
    "{ SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c }", "?s ?p ?o OPTIONAL { ?o a ?c }", "GRAPH ?g { }", ":A ?p ?o", "?s ?p 1 . ?s a ?c",
))  # fmt: skip


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schema=SCHEMAS, feed=FEEDS, body=BODIES)
def test_a_stream_entails_what_the_schema_says(schema: list[Fact], feed: list[Occurrence], body: str) -> None:
    queries = {"q": f"{PROLOGUE}SELECT * {{ {body} }}"}
    assert run_engine(queries, {"default": feed}, schema) == run_oracle(queries, {"default": feed}, schema)


# ---------------------------------------------------------------- a schema that changes
IN_GRAPH = (
    "?s a ?c", "?s a :A", "?s a :B", "?s :p ?o", "?s ?v ?o", "?s a :B . ?s :q ?o", "?s ?p :A", "?s :p :A", "?x ?p ?x", ":x a ?c", "?s :p+ ?o",
)  # fmt: skip
"""What is asked of the graph that all occurrences lie in, and no fact: so a solution rests on what occurrences
entail, each at its own end.
"""


STEPS = st.lists(
    st.builds(Step, st.integers(0, 2), st.lists(STATEMENTS, min_size=1, max_size=2).map(tuple), st.one_of(st.none(), CHANGES), late=st.integers(0, 2)),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    schema=SCHEMAS, steps=STEPS, bodies=st.lists(st.sampled_from(IN_GRAPH), min_size=1, max_size=2, unique=True), delay=st.integers(0, 2),
    seq=st.booleans(), cuts=st.sets(st.integers(0, 12), max_size=3), restored=st.sets(st.integers(1, 4), max_size=2),
)  # fmt: skip
def test_what_occurrences_entail_follows_the_background(
    schema: list[Fact], steps: list[Step], bodies: list[str], delay: int, seq: bool, cuts: set[int], restored: set[int]
) -> None:
    groups = [f"GRAPH :g {{ {body} }}" for body in bodies]
    texts = [" SEQ ".join(f"{{ {group} }}" for group in groups)] if seq else groups
    queries = {f"q{k}": f"{PROLOGUE}SELECT * {{ {text} }}" for k, text in enumerate(texts)}
    story = told(queries, schema, steps, delay)
    ran = run(blocks(story.log, cuts), restore_before=restored)
    assert results(queries, ran.emitted) == run_oracle(queries, {"default": story.entailed})


def test_the_instant_that_has_begun_entails_what_it_did() -> None:
    a, b, x, y = map(iri, "ABxy")
    steps = [
        Step(0, ((x, TYPE, b),), (ADD, [Fact((b, SUBCLASS, a))])),
        Step(0, ((y, TYPE, b),), None),
        Step(1, ((y, TYPE, b),), (DROP, [])),
        Step(0, ((x, TYPE, b),), None),
        Step(1, ((x, TYPE, b),), None),
    ]
    queries = {"q": f"{PROLOGUE}SELECT * {{ GRAPH :g {{ ?s a :A }} }}"}
    story = told(queries, [], steps, 0)
    for cuts in ((), range(10)):
        emitted = run(blocks(story.log, cuts), restore_before=range(1, 10)).emitted
        assert sorted((end // SECOND, values) for _, _, _, end, values in emitted) == [(2, (str(x),)), (2, (str(y),))]


def test_an_instant_that_nothing_has_come_of_entails_what_it_did() -> None:
    """The watermark has reached it before the change, and its occurrence comes within the delay after the change."""
    a, b, x, y = map(iri, "ABxy")
    steps = [Step(1, ((x, TYPE, b),), (ADD, [Fact((b, SUBCLASS, a))])), Step(0, ((y, TYPE, b),), None, late=1)]
    queries = {"q": f"{PROLOGUE}SELECT * {{ GRAPH :g {{ ?s a :A }} }}"}
    story = told(queries, [], steps, 1)
    for cuts in ((), range(6)):
        emitted = run(blocks(story.log, cuts), restore_before=range(1, 6)).emitted
        assert [(end // SECOND, values) for _, _, _, end, values in emitted] == [(2, (str(x),))]
        assert results(queries, emitted) == run_oracle(queries, {"default": story.entailed})


@pytest.mark.parametrize(("known_after", "found"), [(1, [(5, (f"<{EXAMPLE}x>",))]), (6, [])])
def test_what_a_rule_derives_entails_at_its_own_instant(known_after: int, found: list[tuple[int, tuple[str]]]) -> None:
    """A timer's instant lies between two that bring something: the change that came before it counts, the one that
    came after does not.
    """
    x, y, p, r, one = iri("x"), iri("y"), iri("p"), iri("r"), Literal("1")
    rule = "CONSTRUCT { ?s a :B } INTO STREAM <urn:d> { { ?s :p ?a } WITHOUT { ?s :q ?b } FOR 'PT4S'^^xsd:duration }"
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [
        (Register(0, "rule", f"{PROLOGUE}{rule}"), ()),
        (Register(1, "q", f"{PROLOGUE}SELECT ?s FROM STREAM <urn:d> {{ ?s a :A }}"), ()),
    ]
    for end, triple in ((1, (x, p, one)), (6, (y, r, one)), (9, (y, r, one))):
        log.append((Events(len(log), "default", 1, end * SECOND), (Occurrence(triple, end * SECOND, end * SECOND),)))
        if end == known_after:
            log.append((Facts(len(log), "", text_of([Fact((iri("B"), SUBCLASS, iri("A")))])), ()))
    emitted = run(blocks(log, range(len(log)))).emitted
    assert [(end // SECOND, values) for query, _, _, end, values in emitted if query == "q"] == found
