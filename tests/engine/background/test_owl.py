"""OWL 2 RL: what the background entails under it, and what streams do by rules with one premise of theirs."""

import pytest

from engine.background.reasoning.rdfs_schema import INVERSE, SAME, VOCABULARY, entailed
from engine.engine import Engine
from engine.messages import REPLACE, Entail, Facts
from engine.provenance.inference import Given
from tests.engine.runtime.test_engine import Log
from tests.support.feeds import EXAMPLE, parse_feed

OWL = "http://www.w3.org/2002/07/owl#"


def ntriples(text: str) -> str:
    """`s p o . ` with names of the example, of `owl:`, `rdfs:` or `a`."""
    spaces = {
        "owl": OWL,
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    }

    def named(word: str) -> str:
        prefix, _, name = word.partition(":")
        if word == "a":
            return "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
        return word if word[0] in '"_' else f"<{spaces[prefix]}{name}>" if prefix in spaces else f"<{EXAMPLE}{word}>"

    lines = [line.split() for line in text.strip().split(" . ")]
    return "".join(f"{named(s)} {named(p)} {named(o)} .\n" for s, p, o in lines)


@pytest.fixture
def log() -> Log:
    found = Log(Engine())
    found.put(Entail(0, "owl-rl"))
    return found


BACKGROUND = [
    pytest.param("near a owl:SymmetricProperty . s near t", "t near s", id="symmetric"),
    pytest.param("has owl:inverseOf in . s has t", "t in s", id="inverse"),
    pytest.param("in a owl:TransitiveProperty . s in t . t in u", "s in u", id="transitive"),
    pytest.param("K owl:equivalentClass L . s a L", "s a K", id="equivalent classes"),
    pytest.param("p owl:equivalentProperty q . s q t", "s p t", id="equivalent properties"),
    pytest.param("s owl:sameAs t . t p u", "s p u", id="the same"),
    pytest.param("K owl:onProperty p . K owl:hasValue v . s a K", "s p v", id="a value of a class"),
    pytest.param("K owl:onProperty p . K owl:hasValue v . s p v", "s a K", id="a class by a value"),
    pytest.param("K owl:onProperty p . K owl:someValuesFrom L . s p t . t a L", "s a K", id="some values"),
    pytest.param("K owl:onProperty p . K owl:allValuesFrom L . s a K . s p t", "t a L", id="all values"),
    pytest.param(
        "g owl:propertyChainAxiom _:1 . _:1 rdf:first p . _:1 rdf:rest _:2 . _:2 rdf:first q . _:2 rdf:rest rdf:nil . s p t . t q u",
        "s g u",
        id="a chain",
    ),
    pytest.param("K owl:hasKey _:1 . _:1 rdf:first p . _:1 rdf:rest rdf:nil . s a K . t a K . s p v . t p v . s q u", "t q u", id="a key"),
    pytest.param("K owl:oneOf _:1 . _:1 rdf:first s . _:1 rdf:rest _:1", "s a K", id="an enumeration, which runs in a circle"),
    pytest.param('K owl:maxCardinality "1" . K owl:onProperty p . s a K . s p t . s p u', "t owl:sameAs u", id="at most one"),
    pytest.param(
        'K owl:maxQualifiedCardinality "1" . K owl:onProperty p . K owl:onClass L . s a K . s p t . s p u . t a L . u a L',
        "u owl:sameAs t",
        id="at most one of a class",
    ),
    pytest.param("p a owl:FunctionalProperty . s p t . s p u", "t owl:sameAs u", id="functional"),
]


@pytest.mark.parametrize(("facts", "entailed"), BACKGROUND)
def test_what_the_background_entails(log: Log, facts: str, entailed: str) -> None:
    wanted = ntriples(entailed).strip().removesuffix(".")
    log.put(Facts(0, "", ntriples(facts)))
    log.register("asked", f"SELECT * WHERE {{ ?s :A ?a . {wanted} }}")
    assert len(log.send("A@1")) == 1
    plain = Log(Engine())
    plain.put(Facts(0, "", ntriples(facts)))
    plain.register("asked", f"SELECT * WHERE {{ ?s :A ?a . {wanted} }}")
    assert plain.send("A@1") == [], "not without OWL"


STREAMS = [
    pytest.param("near a owl:SymmetricProperty", "?x :near :s", "near(t)@1", id="symmetric"),
    pytest.param("has owl:inverseOf in", "?x :in :s", "has(t)@1", id="inverse"),
    pytest.param("has owl:inverseOf in", "?x :has :s", "in(t)@1", id="inverse the other way"),
    pytest.param("sub rdfs:subPropertyOf has . has owl:inverseOf in . in rdfs:subPropertyOf at", "?x :at :s", "sub(t)@1", id="inverse of what is above, and above it"),
    pytest.param("has owl:inverseOf in . in rdfs:domain K", ":t a :K", "has(t)@1", id="the domain of an inverse"),
    pytest.param("K owl:equivalentClass L . p rdfs:domain L", "?x a :K", "p(t)@1", id="equivalent classes"),
    pytest.param("p owl:equivalentProperty q", "?x :q ?y", "p(t)@1", id="equivalent properties"),
    pytest.param("K owl:onProperty p . K owl:someValuesFrom owl:Thing", "?x a :K", "p(t)@1", id="some values of any kind"),
    pytest.param("K owl:onProperty p . K owl:someValuesFrom L . p rdfs:range M . M rdfs:subClassOf L", "?x a :K", "p(t)@1", id="some values by the range"),
    pytest.param("K owl:onProperty p . K owl:hasValue v . C rdfs:subClassOf K . q rdfs:domain C", "?x :p :v", "q(t)@1", id="the value of a class above"),
    pytest.param("K owl:onProperty p . K owl:hasValue v . q rdfs:subPropertyOf p . K rdfs:subClassOf L", "?x a :L", "q(v)@1", id="a class by a value below"),
    pytest.param('K owl:onProperty p . K owl:hasValue "1" . q rdfs:domain K', '?x :p "1"', "q(t)@1", id="a literal value"),
    pytest.param("K owl:onProperty near . K owl:hasValue s . near a owl:SymmetricProperty", ":t a :K", "near(s,t)@1", id="the subject is a value"),
    pytest.param(
        "K owl:onProperty in . K owl:hasValue v . M owl:onProperty at . M owl:hasValue s . near a owl:SymmetricProperty . near rdfs:subPropertyOf at . "
        "M rdfs:subClassOf K . in owl:inverseOf has", ":v :has :t", "near(s,t)@1", id="a value by the subject, and turned round",
    ),
    pytest.param("K owl:onProperty p . K owl:hasValue v . is owl:inverseOf a . C rdfs:subClassOf K", ":t :p :v", "is(C,t)@1", id="typed by its subject"),
    pytest.param("U owl:unionOf _:1 . _:1 rdf:first K . _:1 rdf:rest rdf:nil . p rdfs:domain K", "?x a :U", "p(t)@1", id="a union"),
    pytest.param("I owl:intersectionOf _:1 . _:1 rdf:first K . _:1 rdf:rest rdf:nil . p rdfs:domain I", "?x a :K", "p(t)@1", id="an intersection"),
    pytest.param("same rdfs:subPropertyOf owl:sameAs", ":t owl:sameAs :s", "same(s,t)@1", id="the same the other way"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "pattern", "feed"), STREAMS)
def test_what_streams_entail(log: Log, facts: str, pattern: str, feed: str) -> None:
    query = f"PREFIX owl: <{OWL}> SELECT * WHERE {{ {pattern} }}"
    log.register("before", query)
    log.put(Facts(0, "", ntriples(facts)))
    log.register("after", query)
    log.engine = Engine.restore(log.engine.snapshot())
    assert sorted(row[0] for row in log.send(feed)) == ["after", "before"]


@pytest.mark.parametrize(("facts", "pattern", "feed"), STREAMS)
def test_why_a_stream_entails_it(log: Log, facts: str, pattern: str, feed: str) -> None:
    log.put(Facts(0, "", ntriples(facts)))
    known, (occurrence,) = log.engine.registry.known, parse_feed(feed)
    premises = [quad[:3] for quad in known.premises]
    given = Given(premises, owl=True)
    conclusions = entailed(occurrence.triple, known.schema)
    assert conclusions
    for triple in conclusions:
        steps = given.explained(triple, occurrence.triple)
        assert steps, triple
        there = {*premises, occurrence.triple, (SAME, VOCABULARY[INVERSE], SAME)}
        for step in steps:
            assert set(step.premises) <= there, step
            there.add(step.conclusion)
        assert triple in there


def test_a_regime_can_change_while_queries_run() -> None:
    log = Log(Engine())
    log.put(Facts(0, "", ntriples("near a owl:SymmetricProperty")))
    log.register("near", "SELECT * WHERE { ?x :near :s }")
    assert log.send("near(t)@1") == []
    log.put(Entail(0, "owl-rl"))
    assert len(log.send("near(t)@2")) == 1
    log.put(Entail(0, "rdfs"))
    assert log.send("near(t)@3") == []


def test_literals_and_blank_nodes_come_through_unchanged(log: Log) -> None:
    log.put(
        Facts(
            0,
            "",
            '_:b <urn:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n<urn:p> <http://www.w3.org/2002/07/owl#equivalentProperty> <urn:q> .\n',
        )
    )
    log.register("asked", "SELECT ?v WHERE { ?s :A ?a . ?b <urn:q> ?v }")
    known = {(str(s), str(o)) for s, p, o, _ in log.engine.registry.known if str(p) == "<urn:q>" and str(s).startswith("_:")}
    assert known == {("_:b", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>')}
    assert len(log.send("A@1")) == 1


def test_a_property_that_has_a_literal_has_no_inverse_triple(log: Log) -> None:
    log.put(Facts(0, "", ntriples("has owl:inverseOf in")))
    log.register("asked", "SELECT * WHERE { ?x :in ?y }")
    assert log.send('has("5")@1') == []


def test_a_literal_is_typed_by_no_way(log: Log) -> None:
    """The consequences of a resource's type do not follow for a literal, even where they are about something else."""
    log.put(Facts(0, "", ntriples("p rdfs:range K . K owl:onProperty has . K owl:hasValue v . has owl:inverseOf in")))
    log.register("asked", "SELECT * WHERE { :v :in ?x }")
    log.register("typed", "SELECT * WHERE { ?x a :K }")
    assert log.send('p("5")@1') == []
    assert len(log.send("p(t)@2")) == 2


def test_a_value_goes_with_its_restriction_at_the_next_instant(log: Log) -> None:
    log.put(Facts(0, "", ntriples("K owl:onProperty p . K owl:hasValue v . p rdfs:range L")))
    log.register("asked", "SELECT * WHERE { ?x a :K . ?x :q ?y }")
    assert len(log.send("p(v)@1 q(1)@1")) == 1
    log.put(Facts(0, "", ntriples("K owl:onProperty q . K owl:hasValue v . p rdfs:range L"), REPLACE))
    assert len(log.send("q(2)@2")) == 1, "of what has come before"
    assert log.send("p(b,v)@2 q(b,2)@3") == []
    log.engine = Engine.restore(log.engine.snapshot())
    assert len(log.send("q(c,v)@4")) == 1
