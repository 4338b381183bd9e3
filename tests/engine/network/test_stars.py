"""Stars: patterns about one local node are matched in the entry that describes it, and keep nothing beyond it
(semantics.md section 5).
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.messages import Entry, Register
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import BlankNode, Iri, Term
from tests.engine.semantics.test_equivalence import RANDOM
from tests.reference.evaluator import Fact, Occurrence, Settings
from tests.soak import examples
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND, Body, parse_facts
from tests.support.run_both import block, blocks, entries, results, run, run_oracle

Log = list[tuple[Entry, tuple[Occurrence, ...]]]


@dataclass(frozen=True)
class Said:
    """Describes a node in a body: a blank node of its own (`_`, `b`), or an IRI; the interval is in seconds."""

    node: str
    predicate: str
    value: str
    start: int = 1
    end: int = 1


def body(number: int, rows: list[Said], *, local: bool = False) -> Body:
    """Return a body of these rows. If subjects are `local`, no other body has its IRIs."""

    def node(name: str) -> Term:
        if name in "_b":
            return BlankNode(f"m{number:032x}{'x' if name == '_' else name}")
        return Iri(f"{EXAMPLE}{name}{number if local else ''}")

    triples = [((node(row.node), Iri(EXAMPLE + row.predicate), Iri(EXAMPLE + row.value)), row) for row in rows]
    return Body(DEFAULT_STREAM, tuple(dict.fromkeys(Occurrence(triple, row.start * SECOND, row.end * SECOND) for triple, row in triples)))


def parse_body(number: int, text: str) -> Body:
    """Return a body from a text: `_ p 1, _ q 2 @3-4` has two triples of one node on an interval."""
    rows = []
    for part in text.split("; "):
        triples, _, interval = part.partition(" @")
        start, _, end = interval.partition("-")
        for triple in triples.split(", "):
            node, predicate, value = triple.split()
            rows.append(Said(node, predicate, value, int(start), int(end or start)))
    return body(number, rows)


def declare_local(log: Log) -> Log:
    """Register the queries where the subjects of their stream are local."""
    return [(replace(entry, local=(DEFAULT_STREAM,)) if isinstance(entry, Register) else entry, events) for entry, events in log]


GROUP, OPTIONAL = "?n :p ?x . ?n :q ?y", "{ ?n :p ?x } OPTIONAL { ?n :q ?y }"
WHOLE = "_ p 1, _ q 2 @1"
KEPT = [
    pytest.param(GROUP, WHOLE, 0, 0, id="a group"),
    pytest.param(GROUP, "_ p 1, _ q 2, _ p 3, _ r 4 @1-2", 0, 0, id="whatever else the entry says of the node"),
    pytest.param(GROUP, "_ p 1 @1", 0, 0, id="a node without partners"),
    pytest.param("{ ?n :p ?x } EQUALS { ?n :q ?y }", WHOLE, 0, 0, id="EQUALS"),
    pytest.param("{ ?n :p ?x } AND { ?n :q ?y ; :r ?z FILTER(?y != ?z) }", f"{WHOLE}; _ r 3 @1", 0, 0, id="AND of groups with conditions"),
    pytest.param(OPTIONAL, WHOLE, 0, 0, id="OPTIONAL"),
    pytest.param("{ ?n :p ?x } EQUALSOPTIONAL { ?n :q ?y FILTER(?y != ?x) }", WHOLE, 0, 0, id="EQUALSOPTIONAL"),
    pytest.param("{ ?n :p ?x } MINUS { ?n :q ?y }", WHOLE, 0, 0, id="MINUS"),
    pytest.param("{ ?n :p ?x FILTER NOT EXISTS { ?n :q ?y } }", WHOLE, 0, 0, id="NOT EXISTS"),
    pytest.param("{ ?n :p ?x } OPTIONAL { ?n :q ?y . ?n :r ?z }", WHOLE, 0, 0, id="a group that is absent"),
    pytest.param(GROUP, "iri p 1, iri q 2 @1", 2, 0, id="an IRI"),
    pytest.param(OPTIONAL, "iri p 1, iri q 2 @1", 1, 0, id="OPTIONAL of an IRI"),
    pytest.param(GROUP, "_ p 1 @1; _ q 2 @2", 2, 2, id="a node on several intervals"),
    pytest.param(GROUP, "_ p 1 @1; b p 1 @1; _ q 2 @1", 2, 2, id="a node whose rows stand apart"),
    pytest.param("?n :p ?x . ?m :q ?y", WHOLE, 2, 2, id="several nodes"),
    pytest.param("?n :p ?x . ?n :q ?y . ?m :r ?x", WHOLE, 1, 1, id="a star as a part: its solution is kept"),
    pytest.param("{ ?n :p ?x } SEQ { ?n :q ?y }", WHOLE, 1, 1, id="SEQ"),
]  # fmt: skip


def run_engine(log: Log) -> tuple[Engine, int]:
    """Return the engine after its last body, and the number of solutions."""
    engine = Engine()
    return engine, sum(engine.feed(block([each])).solutions.num_rows for each in log[:-1])


@pytest.mark.parametrize(("pattern", "feed", "kept", "local"), KEPT)
def test_what_is_kept(pattern: str, feed: str, kept: int, local: int) -> None:
    """`local` is what is kept where all subjects of the stream are."""
    log = entries({"q": f"{PREFIXES}SELECT * {{ {pattern} }}"}, (), [parse_body(0, feed)], ())
    assert [run_engine(each)[0].goals for each in (log, declare_local(log))] == [kept, local]


RANGE = Fact((Iri(EXAMPLE + "ref"), Iri("http://www.w3.org/2000/01/rdf-schema#range"), Iri(EXAMPLE + "C")))
BACKGROUNDS = [
    pytest.param(GROUP, [], 0, id="none"),
    pytest.param(GROUP, parse_facts("q(n,1)"), 3, id="a triple that matches, which is kept, too"),
    pytest.param("?n :p ?x . ?n a :C", [], 0, id="a type"),
    pytest.param("?n :p ?x . ?n a :C", [RANGE], 1, id="a type that triples of other nodes entail"),
]


@pytest.mark.parametrize(("pattern", "facts", "kept"), BACKGROUNDS)
def test_the_background_may_describe_the_node(pattern: str, facts: list[Fact], kept: int) -> None:
    log = entries({"q": f"{PREFIXES}SELECT ?x {{ {pattern} }}"}, (), [parse_body(0, WHOLE)], facts)
    assert run_engine(log)[0].goals == kept


def test_a_rule_that_may_describe_nodes_lets_them_be_kept() -> None:
    rules = {"rule": f"{PREFIXES}CONSTRUCT {{ ?n :q 1 }} WHERE {{ ?n :ref ?m }}", "q": f"{PREFIXES}SELECT * {{ {GROUP} }}"}
    assert run_engine(entries(rules, (), [parse_body(0, WHOLE)], ()))[0].goals == 2


def test_stars_of_queries_that_share_a_part_keep_nothing() -> None:
    queries = {name: f"{PREFIXES}SELECT * {{ {GROUP} . ?n :{name} ?z }}" for name in ("r", "s", "t")}
    engine, found = run_engine(entries(queries, (), [parse_body(0, f"{WHOLE}; _ r 3, _ s 4 @1"), parse_body(1, WHOLE)], ()))
    assert (engine.goals, found) == (0, 2)
    assert any(member.network.host.shares.numbered for member in engine.registry.members)


def test_more_solutions_of_a_star_than_a_step_makes() -> None:
    rows = [Said("_", predicate, str(k)) for k in range(200) for predicate in "pq"]
    engine, found = run_engine(entries({"q": f"{PREFIXES}SELECT * {{ {GROUP} }}"}, (), [body(0, rows)], ()))
    assert (engine.goals, found) == (0, 200 * 200)


def test_absent_parts_that_wait_for_others_are_waited_for() -> None:
    """MINUS waits where what it takes away does, though that describes the node."""
    query = {"q": f"{PREFIXES}SELECT * {{ {{ ?n :p ?x }} MINUS {{ ?n :q ?y FILTER NOT EXISTS {{ ?m :r ?y }} }} }}"}
    bodies = [parse_body(0, WHOLE), parse_body(1, "_ p 3 @2")]
    assert [each[4] for each in run([block([each]) for each in entries(query, (), bodies, ())]).emitted] != []
    occurrences = {DEFAULT_STREAM: [o for each in bodies for o in each.occurrences]}
    assert results(query, run([block(entries(query, (), bodies, ()))]).emitted) == run_oracle(query, occurrences, ())


PATTERNS = st.sampled_from(
    [
        GROUP,
        OPTIONAL,
        "?n :p ?x . ?n :q ?y . ?n :r ?z",
        "?n :p ?x . ?n :q ?x",
        "?n :p ?x . ?n :q ?y . ?y :r ?z",
        "?n ?p ?x . ?n :q ?y FILTER(?x != ?y)",
        "{ ?n :p ?x } EQUALS { ?n :q ?y } EQUALSOPTIONAL { ?n :p ?o FILTER(?o != ?x) } EQUALSOPTIONAL { ?n :r ?z }",
        "{ { ?n :p ?x } OPTIONAL { ?n :q ?y } } AND { ?n :r ?z }",
        "{ ?n :p ?x ; :q ?y } MINUS { ?n :r ?y }",
        "{ ?n :p ?x } MINUS { ?n :q ?y FILTER NOT EXISTS { ?m :r ?y } }",
        "?n :p ?x FILTER NOT EXISTS { ?n :q ?y } FILTER NOT EXISTS { ?m :r ?x }",
        "?n :p ?x FILTER NOT EXISTS { ?m :r ?x } FILTER NOT EXISTS { ?n :q ?y }",
        "{ ?n :p ?x } OPTIONAL { ?n :q ?y FILTER EXISTS { ?n :r ?z } } ",
        "{ { ?n :p ?x } OPTIONAL { ?n :q ?y FILTER NOT EXISTS { ?m :r ?y } } } AND { ?n :q ?z }",
        "{ ?n :p ?x ; :q ?y } SEQ { ?m :r ?y ; :q ?z }",
        "{ ?m :r ?y } SEQ { { ?n :p ?x } OPTIONAL { ?n :q ?y } }",
        "{ ?n :p ?x ; :q ?y } UNION { ?n :r ?x ; :q ?y }",
        "{ ?n :p ?x } AND { ?n :q ?y } AND { ?m :r ?x }",
    ]
)
ROWS = st.builds(Said, st.sampled_from(["_", "_", "b", "iri", "1"]), st.sampled_from("pqr"), st.sampled_from("12"))
TIMES = st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2), (2, 3), (3, 3)])
BODIES = st.lists(
    st.one_of(
        st.tuples(st.lists(ROWS, min_size=1, max_size=6), TIMES).map(
            lambda each: [replace(row, start=each[1][0], end=each[1][1]) for row in each[0]]
        ),
        st.lists(st.tuples(ROWS, TIMES).map(lambda each: replace(each[0], start=each[1][0], end=each[1][1])), min_size=1, max_size=5),
    ),
    max_size=5,
)


@settings(RANDOM, max_examples=examples(300))
@given(
    patterns=st.lists(PATTERNS, min_size=1, max_size=2),
    policy=st.sampled_from(("unrestricted", "recent")),
    local=st.booleans(),
    sent=BODIES,
    data=st.data(),
)
def test_stars_are_those_of_the_definition(patterns: list[str], policy: str, local: bool, sent: list[list[Said]], data: st.DataObject) -> None:
    """Neither the rows' order in a body, nor the bodies' within the delay, nor blocks, restores and shares matter."""
    queries = {f"q{k}": f"{PREFIXES}SELECT * {{ {pattern} }}" for k, pattern in enumerate(patterns)}
    note(f"{policy} {local} {patterns}\n{sent}")
    bodies = [body(number, rows, local=local) for number, rows in enumerate(sent)]
    arrived = data.draw(st.permutations(bodies))
    how = dict.fromkeys(queries, Settings(policy))
    log = entries(queries, (DEFAULT_STREAM,), arrived, (), 3 * SECOND, how)
    log = declare_local(log) if local else log
    cuts = data.draw(st.sets(st.integers(1, len(log))))
    whole = run([block(log)])
    occurrences = {DEFAULT_STREAM: list(dict.fromkeys(o for each in bodies for o in each.occurrences))}
    assert results(queries, whole.emitted) == run_oracle(queries, occurrences, (), how)
    assert run(blocks(log, cuts), restore_before=cuts) == whole
