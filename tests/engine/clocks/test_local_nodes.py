"""The absence of triples about a local node is certain with its entry (semantics.md section 5): a blank node of a
message, and the node of an ETALIS event.
"""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from engine.messages import Entry, Register
from epsparql.algebra import DEFAULT_STREAM
from epsparql.etalis.parser.vocabulary import event_node, iri_of, number_literal
from epsparql.terms import RDF, BlankNode, Iri, Term
from tests.engine.semantics.test_equivalence import RANDOM
from tests.reference.evaluator import Fact, Occurrence, Settings, Triple
from tests.soak import examples
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND, Body, parse_facts
from tests.support.run_both import block, blocks, entries, results, run, run_oracle

NODES: dict[str, Term] = {"_": BlankNode("m" + 32 * "0" + "x"), "other": BlankNode("m" + 32 * "1" + "x"), "key": BlankNode("k" + 32 * "0"), "iri": Iri(EXAMPLE + "n")}  # fmt: skip
NAMES = {"a": Iri(RDF + "type"), "ref": Iri(EXAMPLE + "ref"), "p": Iri(EXAMPLE + "p"), "q": Iri(EXAMPLE + "q"), **{str(k): Iri(f"urn:ele:arg{k}") for k in (1, 2, 3)}}  # fmt: skip
ATOM = "#!etalis unrestricted\nf(X) <- b(X)."


def body(text: str) -> Body:
    """Return an entry: `_:a=b _:1=7 @3` are triples of one node at one instant; `b(7)@3` is an event of ETALIS."""
    *parts, time = text.split()
    at = round(float(time[1:]) * SECOND)
    triples = list[tuple[Term, Term, Term]]()
    for part in parts:
        if "(" in part:
            name, number = part[0], number_literal(Decimal(part[2:-1]))
            node = event_node(name, [number], at, at)
            triples += [(node, NAMES["a"], iri_of(name)), (node, NAMES["1"], number)]
        else:
            subject, _, rest = part.partition(":")
            predicate, _, value = rest.partition("=")
            triples.append((NODES[subject], NAMES[predicate], number_literal(Decimal(value)) if value.isdigit() else NODES.get(value, iri_of(value))))
    return Body(DEFAULT_STREAM, tuple(Occurrence(triple, at, at) for triple in triples))


Log = list[tuple[Entry, tuple[Occurrence, ...]]]
NEXT, ONE = "NEXT", number_literal(Decimal(1))
NEEDS = "{ ?n :p ?x } OPTIONAL { ?n :q ?y }"
TYPED = "{ ?n :p ?x } OPTIONAL { ?n a :C }"
RANGE = "http://www.w3.org/2000/01/rdf-schema#range"
ROWS = [
    pytest.param(ATOM, "b(1) @1 | b(2) @2", [0, 1], id="an event of ETALIS"),
    pytest.param(ATOM, "b(1) @1 | b(2) @1 | b(3) @1", [0, 1, 2], id="several entries at one instant"),
    pytest.param(ATOM, "b(1) b(2) @1", [0, 0], id="several events of one entry"),
    pytest.param(ATOM, "_:a=b _:1=7 @1 | b(2) @2", [0, 1], id="a blank node"),
    pytest.param(ATOM, "_:a=b _:1=7 _:2=8 @1 | b(2) @2", [1], id="a blank node with another argument"),
    pytest.param(ATOM, "_:a=b _:1=7 _:1=8 @1 | b(2) @2", [1], id="a blank node with two values"),
    pytest.param(ATOM, "iri:a=b iri:1=7 @1 | b(2) @2", [1, 1], id="an IRI waits for the instant"),
    pytest.param(ATOM, "iri:a=b iri:1=7 @1 | iri:2=8 @1 | b(2) @2", [2], id="what a later entry says of an IRI counts"),
    pytest.param(ATOM, "key:a=b key:1=7 @1 | key:2=8 @1 | b(2) @2", [2], id="and of a row of a mapping with a key"),
    pytest.param("#!etalis unrestricted\ne(X) <- a(X) seq b(X).", "a(1) @1 | b(1) @2", [1], id="seq"),
    pytest.param("#!etalis recent\ne(X) <- a(X) seq b(X).", "a(1) @1 | b(1) @2", [1], id="seq under recent"),
    pytest.param("#!etalis chronological\ne(X) <- a(X) seq b(X).", "a(1) @1 | b(1) @2", [1], id="seq under chronological"),
    pytest.param("#!etalis unrestricted\ne(X) <- (a(X) seq b(X)) cnot c.\nf(X) <- e(X) seq a(X).", "a(1) @1 | b(1) @2 | a(1) @3", [1, 2], id="rules over the events of others"),
    pytest.param(NEEDS, "_:p=1 @1 | other:p=2 other:q=3 @2", [0, 1], id="OPTIONAL"),
    pytest.param(NEEDS, "_:p=1 _:q=2 @1 | iri:p=1 @1 | iri:q=4 @1 | other:p=1 @2", [0, 3, 3], id="OPTIONAL of an IRI"),
    pytest.param("{ ?n :p ?x } MINUS { ?n :q ?y }", "_:p=1 @1 | other:p=2 other:q=3 @2", [0], id="MINUS"),
    pytest.param("?n :p ?x FILTER NOT EXISTS { ?n :q ?y }", "_:p=1 @1 | other:p=2 other:q=3 @2", [0], id="NOT EXISTS"),
    pytest.param("{ ?n :p ?x } OPTIONAL { ?z :q ?x }", "_:p=1 @1 | other:p=2 @2", [1, NEXT], id="what others lack is not certain"),
    pytest.param("{ ?z :ref ?n } OPTIONAL { ?n :q ?x }", "_:ref=other @1 | iri:p=2 @2", [1], id="nor what a node lacks that is an object"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "feed", "expected"), ROWS)
def test_the_entry_of_each_solution(query: str, feed: str, expected: list[int | str]) -> None:
    """Entries count from 0; NEXT is the end of the stream."""
    text = query if query.startswith("#!") else f"{PREFIXES}SELECT * {{ {query} }}"
    assert emitted_at({"q": text}, feed) == expected


def declare_local(log: Log) -> Log:
    """Register the queries where the subjects of their stream are local."""
    return [(replace(entry, local=(DEFAULT_STREAM,)) if isinstance(entry, Register) else entry, events) for entry, events in log]


def emitted_at(queries: dict[str, str], feed: str, facts: str = "", *, local: bool = False) -> list[int | str]:
    log = entries(queries, (), bodies := [body(text) for text in feed.split(" | ")], parse_facts(facts))
    log = declare_local(log) if local else log
    first = len(log) - 1 - len(bodies)
    found = [entry - first for name, entry, *_ in run([block([each]) for each in log]).emitted if name == "q"]
    return [NEXT if entry == len(bodies) else entry for entry in found]


LOCAL = [
    pytest.param(ATOM, "iri:a=b iri:1=7 @1 | b(2) @2", [0, 1], id="an IRI"),
    pytest.param(ATOM, "key:a=b key:1=7 @1 | b(2) @2", [0, 1], id="a row of a mapping with a key"),
    pytest.param(NEEDS, "iri:p=1 @1 | _:p=2 other:p=3 other:q=4 @2", [0, 1, 1], id="OPTIONAL"),
    pytest.param("{ ?n :p ?x } MINUS { ?n :q ?y }", "iri:p=1 @1 | other:p=2 other:q=3 @2", [0], id="MINUS"),
    pytest.param("{ ?z :ref ?n } OPTIONAL { ?n :q ?x }", "_:ref=iri @1 | iri:p=2 @2", [1], id="no node that is an object"),
    pytest.param("{ ?n :ref ?m . ?m :p ?x } OPTIONAL { ?m :q ?y }", "iri:p=1 @1 | _:ref=iri @2 | other:p=1 @3", [1], id="of two nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "feed", "expected"), LOCAL)
def test_subjects_of_a_local_stream(query: str, feed: str, expected: list[int | str]) -> None:
    text = query if query.startswith("#!") else f"{PREFIXES}SELECT * {{ {query} }}"
    assert emitted_at({"q": text}, feed, local=True) == expected


def test_the_background_may_describe_a_subject_of_a_local_stream() -> None:
    """A subject that the background brought may be described by a later entry."""
    pattern, feed = "{ ?n :p ?x . ?m :ref ?z } OPTIONAL { ?n :q ?y }", "other:ref=iri @1 | iri:q=4 @1 | _:p=2 @2"
    text = f"{PREFIXES}SELECT * {{ {pattern} }}"
    assert emitted_at({"q": text}, feed, "p(n,1)", local=True) == [2, 2]
    assert emitted_at({"q": text}, "iri:p=1 @1 | other:ref=iri @1 | iri:1=1 @2", local=True) == [1]


def test_a_rule_that_may_describe_nodes_lets_their_absence_wait() -> None:
    """A rule with nodes of its own does not."""
    describes = f"{PREFIXES}CONSTRUCT {{ ?n :q 1 }} WHERE {{ ?n :ref ?m }}"
    makes = f"{PREFIXES}CONSTRUCT {{ [] :q 1 }} WHERE {{ ?n :ref ?m }}"
    needs, feed = f"{PREFIXES}SELECT * {{ {NEEDS} }}", "_:p=1 @1 | _:ref=other @1 | other:p=2 @2"
    assert emitted_at({"q": needs, "rule": makes}, feed) == [0, 2]
    assert emitted_at({"q": needs, "rule": describes}, feed) == [2, NEXT]


@pytest.mark.parametrize(("facts", "expected"), [("", [0, 2]), ("range(ref,C)", [2, 2])])
def test_entailment_may_describe_the_node_of_an_event(facts: str, expected: list[int]) -> None:
    """A triple of a later entry may say the type of its object by a schema."""
    schema = [Fact((f.triple[0], Iri(RANGE), f.triple[2])) for f in parse_facts(facts)]
    node = event_node("b", [ONE], SECOND, SECOND)
    triples: list[tuple[int, Triple]] = [(1, (node, NAMES["p"], ONE)), (1, (NODES["iri"], NAMES["ref"], node)), (2, (NODES["_"], NAMES["p"], ONE))]
    bodies = [Body(DEFAULT_STREAM, (Occurrence(triple, at * SECOND, at * SECOND),)) for at, triple in triples]
    log = entries({"q": f"{PREFIXES}SELECT * {{ {TYPED} }}"}, (), bodies, schema)
    first = len(log) - 1 - len(bodies)
    assert [entry - first for _, entry, *_ in run([block([each]) for each in log]).emitted] == expected


TRIPLES = st.sampled_from(
    [f"{node}:{rest}" for node in ("_", "other", "iri") for rest in ("a=b", "a=b", "1=1", "1=1", "1=2", "2=1", "p=1", "q=1", "ref=iri")]
    + ["b(1)", "b(2)", "a(1)"]
)
ATOMIC = "{ ?n a <urn:ele:b> } EQUALS { ?n <urn:ele:arg1> ?x } EQUALSOPTIONAL { ?n <urn:ele:arg1> ?o FILTER(STR(?o) != STR(?x)) } EQUALSOPTIONAL { ?n <urn:ele:arg2> ?y }"
ALONE = f"{{ SELECT DISTINCT ?x {{ {{ {ATOMIC} }} FILTER(!BOUND(?o) && !BOUND(?y)) }} }}"
QUERIES = st.sampled_from(
    [
        f"{PREFIXES}SELECT * {{ {body} }}"
        for body in (
            ALONE,
            f"{ALONE} SEQ {{ ?m :q ?y }}",
            f"{{ ?m :p ?y }} SEQ {ALONE}",
            NEEDS,
            "{ ?n :p ?x } EQUALSOPTIONAL { ?n :q ?y . ?n <urn:ele:arg1> ?z } MINUS { ?n <urn:ele:arg2> ?z }",
            "{ ?n :p ?x FILTER NOT EXISTS { ?n :q ?y } } SEQ { ?n ?p ?o MINUS { ?n :ref ?z } }",
        )
    ]
)


@settings(RANDOM, max_examples=examples(200))
@given(
    query=QUERIES,
    policy=st.sampled_from(("unrestricted", "recent")),
    local=st.booleans(),
    sent=st.lists(st.tuples(st.lists(TRIPLES, min_size=1, max_size=6), st.integers(1, 3)), max_size=6),
    data=st.data(),
)
def test_decisions_are_those_of_the_definition(query: str, policy: str, local: bool, sent: list[tuple[list[str], int]], data: st.DataObject) -> None:
    """Each message describes its blank nodes alone; an IRI returns if the stream's subjects are not local.

    The order of arrival within the delay does not matter, nor do restores.
    """
    occurrences = list[Occurrence]()
    for number, (parts, at) in enumerate(sent):
        for o in body(f"{' '.join(parts)} @{at}").occurrences:
            subject = o.triple[0]
            own = subject
            if isinstance(subject, BlankNode):
                own = BlankNode(f"m{number:032x}{subject.label[-1]}{'o' if subject == NODES['other'] else ''}")
            elif local and subject == NODES["iri"]:
                own = Iri(f"{EXAMPLE}n{number}")
            occurrences.append(Occurrence((own, *o.triple[1:]), o.start, o.end))
    how = {"q": Settings(policy)}
    note(f"{policy} {local} {query}\n{sent}")
    messages: dict[object, list[Occurrence]] = {}
    for o in dict.fromkeys(occurrences):
        returns = isinstance(o.triple[0], Iri) and not local and not o.triple[0].value.startswith("urn:ele:")
        messages.setdefault(o if returns else o.triple[0], []).append(o)
    order = data.draw(st.permutations(list(messages.values())))
    bodies = [Body(DEFAULT_STREAM, tuple(each)) for each in order]
    log = entries({"q": query}, (DEFAULT_STREAM,), bodies, (), 2 * SECOND, how)
    log = declare_local(log) if local else log
    cuts = data.draw(st.sets(st.integers(1, len(log))))
    whole = run([block(log)])
    assert results({"q": query}, whole.emitted) == run_oracle({"q": query}, {DEFAULT_STREAM: occurrences}, (), how)
    assert run(blocks(log, cuts), restore_before=cuts) == whole
