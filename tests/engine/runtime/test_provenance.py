"""Whatever the engine gives can be derived again, from occurrences that were there; and nothing else can."""

from dataclasses import replace
from random import Random

import pytest

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.messages import Events, Facts, Finish, Register, int64s
from engine.provenance import Members, Occurrence, Proof, StepBudget, Target, TooMuch, Used, World, justified
from engine.provenance.justify import windows_of
from engine.rewrite import rewrite_query
from engine.triples.quads import triples_of
from epsparql import algebra as a
from epsparql import parse
from tests.engine.runtime.test_catch_up import CatchUpLog
from tests.soak import is_full

BACKGROUND = (
    "<http://e/a> <http://e/kind> <http://e/K> .\n"
    "<http://e/K> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://e/L> .\n"
    "<http://e/p> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <http://e/any> .\n"
    "<http://e/q> <http://www.w3.org/2000/01/rdf-schema#domain> <http://e/K> .\n"
)
PREFIX = "PREFIX : <http://e/> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
QUERIES = [
    "SELECT ?a ?b { { ?x :p ?a } SEQ { ?x :q ?b } }",
    "SELECT ?a ?b { { ?x :p ?a } EQUALS { ?y :q ?b } }",
    "SELECT ?a ?b { { ?x :p ?a } OVERLAPS { ?y :q ?b } }",
    "SELECT ?x ?y { { ?x :p ?a } DURING { ?y :q ?b } WITHIN 'PT0.000002S'^^xsd:duration }",
    "SELECT ?x ?a ?b { { ?x :p ?a } OPTIONAL { ?x :q ?b FILTER(getDURATION() < 'PT0.000004S'^^xsd:duration) } }",
    "SELECT ?a ?b { { ?x :p ?a } OPTIONALSEQ { ?x :q ?b } }",
    "SELECT ?a ?b { { ?x :p ?a } EQUALSOPTIONAL { ?x :q ?b } }",
    "SELECT ?a { ?x :p ?a MINUS { ?x :q ?b } }",
    "SELECT * { { SELECT ?a { ?x :p ?a MINUS { ?x :q ?b } } } SEQ { ?y :p ?c } }",
    "SELECT ?a { ?x :p ?a FILTER(EXISTS { ?x :q ?b } || ?a = '0') }",
    "SELECT ?a { ?x :p ?a FILTER NOT EXISTS { ?x :q ?a } }",
    "SELECT ?a ?b { { ?x :p ?a } SEQ { ?x :p ?b } WITHOUT { ?x :q ?c } }",
    "SELECT ?a ?b { { ?x :p ?a } AND { ?x :q ?b } WITHOUT { ?x :p ?c } }",
    "SELECT ?a { { ?x :p ?a } WITHOUT { ?x :q ?b } FOR 'PT0.000003S'^^xsd:duration }",
    "SELECT ?y { :a :next+ ?y }",
    "SELECT ?x ?y { ?x (:next|^:p)* ?y . ?x :q ?c }",
    "SELECT ?x ?y { ?x !(:p|:q) ?y }",
    "SELECT ?x { ?x :any ?a . ?b rdf:type :L . :a :kind ?k }",
    "SELECT ?a ?c { ?x :p ?a BIND(CONCAT(?a, '!') AS ?c) }",
    "SELECT ?x ?n { ?x :p ?v { SELECT ?x (COUNT(?a) AS ?n) { ?x :p ?a } GROUP BY ?x } }",
    "SELECT ?x (COUNT(?a) AS ?n) { ?x :p ?a } GROUP BY ?x WINDOW [ROWS 3]",
    "SELECT ?x (COUNT(*) AS ?n) { { ?x :p ?a } SEQ { ?x :q ?b } SEQ { ?x :p ?c } WITHIN 'PT0.000009S'^^xsd:duration } GROUP BY ?x",
    "SELECT ?x (COUNT(?a) AS ?n) { ?x :p ?a } GROUP BY ?x HAVING(COUNT(?a) > 1) WINDOW [RANGE 'PT0.000006S'^^xsd:duration STEP 'PT0.000003S'^^xsd:duration]",
    "SELECT ?x (COUNT(*) AS ?n) (FIRST(?a) AS ?f) (LAST(?a) AS ?l) { ?x :p ?a } GROUP BY ?x WINDOW [RUN GAP 'PT0.000002S'^^xsd:duration]",
    "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?a } GROUP BY ?x WINDOW [SESSION 'PT0.000002S'^^xsd:duration CLOSED]",
    "SELECT ?x (SUM(xsd:integer(?a)) AS ?n) { ?x :p ?a } GROUP BY ?x WINDOW [RUN WHILE (?a != PREV(?a) && COUNT(*) <= 3)]",
    "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?a } GROUP BY ?x WINDOW [RUN WITHIN 'PT0.000004S'^^xsd:duration UNTIL { ?x :q ?b }]",
    "SELECT ?a ?v { ?x :p ?a VALUES (?a ?v) { ('1' 'one') ('2' UNDEF) } }",
    "CONSTRUCT { ?x :both ?a . ?x :both ?b . [] :of ?x } INTO STREAM <out> { { ?x :p ?a } SEQ { ?x :q ?b } WITHIN 'PT0.00001S'^^xsd:duration }",
    "REGISTER RSTREAM <out> AS SELECT ?x ?a FROM NAMED WINDOW :w ON <default> [RANGE PT0.000006S STEP PT0.000003S] { WINDOW :w { ?x :p ?a } }",
]


def answered(text: str, log: CatchUpLog) -> list[Target]:
    """The solutions of a query over the whole log."""
    registered = log.add(Register(0, "q", text))
    shifted = CatchUpLog(
        [(replace(entry, offset=k), rows) for k, (entry, rows) in enumerate([log.parts[0], log.parts[registered], *log.parts[1:registered]])]
    )
    targets = []
    rule = isinstance(parse(text).query, a.Construct)
    for outcome in shifted.run():
        solutions = outcome.solutions
        for values, start, end in zip(solutions.column("values").to_pylist(), *(int64s(solutions.column(k)).tolist() for k in (3, 4)), strict=True):
            triples = tuple(triples_of("\n".join(values))) if rule else ()
            targets.append(Target(tuple(values), triples, start, end))
    return targets


def world_of(text: str, log: CatchUpLog, target: Target) -> World:
    seen = [
        Occurrence(o.triple, entry.stream, o.start, o.end, None, entry.offset)
        for entry, rows in log.parts if isinstance(entry, Events) for o in rows if o.end <= target.end
    ]  # fmt: skip
    facts = [(*triple, None) for triple in triples_of(BACKGROUND)]
    return World(seen, facts, FactIndex.from_quads(facts, TermTable()), windows_of(parse(text).query, target.end), StepBudget(2_000_000))


def check(proof: Proof, log: CatchUpLog) -> None:
    """Check that all occurrences and facts of a proof were there, and that RDFS leads from them to the matched triples."""
    there = {(o.triple, o.start, o.end) for _, rows in log.parts for o in rows}
    given = set(triples_of(BACKGROUND))
    for step in proof.steps:
        match step:
            case Used(_, triple, occurrence, inferences):
                if isinstance(occurrence, Occurrence):
                    assert (occurrence.triple, occurrence.start, occurrence.end) in there
                known = given | {occurrence.triple} if isinstance(occurrence, Occurrence) else set(given)
                for inference in inferences:
                    assert set(inference.premises) <= known, inference
                    known.add(inference.conclusion)
                assert triple in known
            case Members(count, shown):
                assert count >= len(shown)
                for member in shown:
                    check(member, log)


@pytest.mark.parametrize("text", QUERIES)
def test_every_solution_is_derived_again(text: str) -> None:
    random, log = Random(4), CatchUpLog()
    log.add(Facts(0, "", BACKGROUND))
    for end in range(10, 40):  # two that end together
        log.feed(random, end, end + 1)
        log.feed(random, end, end + 1)
    log.add(Finish(0, "default"))
    targets = answered(PREFIX + text, log)
    assert targets, "a test without solutions shows nothing"
    for target in random.sample(targets, min(len(targets), 40 if is_full() else 10)):
        query = rewrite_query(parse(PREFIX + text).query)
        proof = justified(query, target, world_of(PREFIX + text, log, target))
        assert proof is not None, target
        check(proof, log)
        other = replace(target, start=target.start - 1)
        if other not in targets and not query.sources.windows and isinstance(query, a.Select):
            assert justified(query, other, world_of(PREFIX + text, log, target)) is None


def test_the_search_is_bounded() -> None:
    random, log = Random(4), CatchUpLog()
    log.feed(random, 10, 60)
    text = PREFIX + "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
    world = world_of(text, log, Target((), (), 0, 100))
    world.budget.left = 10_000
    with pytest.raises(TooMuch):
        justified(rewrite_query(parse(text).query), Target((None,) * 9, (), 0, 1), world)
