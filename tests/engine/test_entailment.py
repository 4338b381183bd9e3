"""Streams under a background's schema: the engine against the reference evaluator, which closes both by the rules one at a time."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.planning.entailment import Premise, premises
from engine.schema import RDFS, schema_of
from epsparql.terms import RDF, Iri, Literal, Term
from tests.feeds import EXAMPLE, SECOND
from tests.oracle import Fact, Occurrence
from tests.running import run_engine, run_oracle

TYPE = Iri(RDF + "type")
PROLOGUE = f"PREFIX : <{EXAMPLE}> PREFIX rdf: <{RDF}> PREFIX rdfs: <{RDFS}> "
NAMES = st.sampled_from([Iri(EXAMPLE + name) for name in "ABCDpqr"])
RELATIONS = st.sampled_from([Iri(RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range")])
SCHEMAS = st.lists(st.builds(lambda s, p, o: Fact((s, p, o)), NAMES, RELATIONS, NAMES), max_size=5)
"""Cycles, diamonds, several parents, classes that are properties: anything but statements about rdf:type."""
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
    "{ SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c }", "?s ?p ?o OPTIONAL { ?o a ?c }",
))  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schema=SCHEMAS, feed=FEEDS, body=BODIES)
def test_a_stream_entails_what_the_schema_says(schema: list[Fact], feed: list[Occurrence], body: str) -> None:
    queries = {"q": f"{PROLOGUE}SELECT * {{ {body} }}"}
    assert run_engine(queries, {"default": feed}, schema) == run_oracle(queries, {"default": feed}, schema)


def test_what_is_scanned_for_a_class() -> None:
    a, b, p, q = (Iri(EXAMPLE + name) for name in "ABpq")
    schema = schema_of([(b, Iri(RDFS + "subClassOf"), a, None), (p, Iri(RDFS + "domain"), b, None), (q, Iri(RDFS + "range"), a, None)])
    assert set(premises(schema, (None, TYPE, a))) == {
        Premise(None, TYPE, a),
        Premise(None, TYPE, b, as_object=a),
        Premise(None, p, None, as_predicate=TYPE, as_object=a),
        Premise(None, q, None, swapped=True, as_predicate=TYPE, as_object=a),
    }
    assert premises(schema, (None, Iri(EXAMPLE + "r"), None)) == [Premise(None, Iri(EXAMPLE + "r"), None)], (
        "what the schema does not speak of costs nothing"
    )
