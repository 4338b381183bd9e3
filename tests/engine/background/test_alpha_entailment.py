"""These tests check the kernel's tables of what occurrences are taken as.

The tables follow wants and schema step by step, and hold nothing twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import epsparql
from engine.alpha.free_rows import by_predicate
from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import INVERSE, RDFS, SUBPROPERTY, schema_stating
from engine.background.reasoning.stream_entailment import Entailment
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.network.network import Network
from engine.network.placed_query import RegisteredQuery
from engine.rewrite import rewrite_query
from engine.triples.quads import Quad
from epsparql.terms import RDF, Iri
from tests.soak import examples
from tests.support.feeds import EXAMPLE

PROLOGUE = f"PREFIX : <{EXAMPLE}> "
TYPE = Iri(RDF + "type")


def iri(name: str) -> Iri:
    return Iri(EXAMPLE + name)


def below(*pairs: str) -> list[Quad]:
    """ "BA" says that B is a subclass of A."""
    return [(iri(pair[0]), Iri(RDFS + "subClassOf"), iri(pair[1]), None) for pair in pairs]


def network_of(bodies: dict[int, str], facts: Iterable[Quad]) -> Network:
    network = Network(TermTable())
    known = FactIndex.from_quads(facts, network.arrays.terms)
    for registered, body in bodies.items():
        network.host.add_query(RegisteredQuery(registered, f"q{registered}", parsed(body), registered), known)
    return network


def parsed(body: str) -> epsparql.algebra.StreamQuery:
    query = rewrite_query(epsparql.parse(f"{PROLOGUE}SELECT * {{ {body} }}").query, "all")
    assert isinstance(query, epsparql.algebra.Select)
    return query


@dataclass(frozen=True)
class Tables:
    """The lists of a network in texts: (predicate, object), None for whatever object, to what is wanted as what."""

    lists: dict[tuple[str, str | None], frozenset[tuple[str, ...]]]
    distinct: int
    postings: int


def tables_of(network: Network) -> Tables:
    net, wants = network.net, {number: want for want, number in network.slots.scans.scans.wants.items()}

    def text(number: int) -> str:
        return str(number) if number < 0 else network.arrays.terms.text(number)

    def listed(number: int) -> frozenset[tuple[str, ...]]:
        first, n = net.lists[number].tolist()
        postings = net.postings[first : first + n].tolist()
        return frozenset((str(resource), *map(text, (*wants[want], *taken_as))) for want, resource, *taken_as in postings)

    posted = net.posted[net.posted[:, c.POSTED_P] != c.NONE]
    found: dict[tuple[str, str | None], frozenset[tuple[str, ...]]] = {
        (text(p), text(o)): listed(number) for p, o, number in posted.tolist() if number
    }
    used = {number for _, _, number in posted.tolist() if number}
    for predicate, row in enumerate(by_predicate(net).tolist()):
        assert row[c.ALPHA_KEYED] == sum(p == predicate and number != 0 for p, _, number in posted.tolist())
        if row[c.ALPHA_LIST]:
            found[text(predicate), None] = listed(row[c.ALPHA_LIST])
            used.add(row[c.ALPHA_LIST])
    assert len(posted) * 2 <= len(net.posted)
    return Tables(found, len(used), int(net.lists[list(used), c.LIST_N].sum()))


def test_queries_for_a_class_share_what_its_subclasses_are_taken_as() -> None:
    subclasses: list[Quad] = [(iri(f"c{k}"), Iri(RDFS + "subClassOf"), iri("A"), None) for k in range(500)]
    network = network_of({0: "?s a :A", 1: "?t a :A . ?t :p ?o", 2: "?s :r :x"}, subclasses)
    tables = tables_of(network)
    assert len(tables.lists) == 502
    assert (tables.distinct, tables.postings) == (3, 3), "one for A itself, one for all of its subclasses, one for what is no class"
    assert (
        network.slots.scans.scans.counts[
            network.slots.scans.scans.wants[network.arrays.terms.intern(str(TYPE)), network.arrays.terms.intern(str(iri("A")))]
        ]
        == 2
    )
    network.drop_query(0)
    assert len(tables_of(network).lists) == 502
    network.drop_query(1)
    assert len(tables_of(network).lists) == 1
    assert len(network.net.posted) < 500, "what nobody wants has no place"


def test_what_concerns_nobody_has_no_list() -> None:
    network = network_of({0: "?s a :A", 1: "?s :p ?o"}, below("BA", "DC"))
    types = [o for (p, o) in tables_of(network).lists if p == str(TYPE)]
    assert sorted(types, key=str) == [str(iri("A")), str(iri("B"))]


def test_occurrences_of_any_predicate_are_found_by_their_object() -> None:
    network = network_of({0: "?s ?p :A"}, ())
    assert set(tables_of(network).lists) == {("", str(iri("A")))}


BODIES = st.sampled_from(("?s a :A", "?s a :B", "?s a ?c", "?s ?p ?o", "?s ?p :A", "?s :p :A", "?s :p ?o", "GRAPH ?g { }", ":A ?p ?o"))
NODES = st.sampled_from([*(iri(name) for name in "ABCpq"), TYPE])
FACTS = st.frozensets(
    st.tuples(
        NODES, st.sampled_from([Iri(RDFS + name) for name in ("subClassOf", "subClassOf", "subPropertyOf", "domain", "range")]), NODES, st.none()
    ),
    max_size=5,
)
STEPS = st.lists(st.one_of(FACTS, BODIES, st.integers(0, 5)), min_size=1, max_size=6)
"""Another background, one more query, or one of those that there are goes."""


@settings(max_examples=examples(100))
@given(STEPS)
def test_step_by_step_is_as_all_at_once(steps: list[frozenset[Quad] | str | int]) -> None:
    network, stated, bodies = Network(TermTable()), frozenset[Quad](), dict[int, str]()
    known = FactIndex(network.arrays.terms)
    for number, step in enumerate(steps):
        match step:
            case str() as body:
                bodies[number] = body
                network.host.add_query(RegisteredQuery(number, f"q{number}", parsed(body), number), known)
            case int():
                if bodies:
                    gone = list(bodies)[step % len(bodies)]
                    network.drop_query(gone)
                    del bodies[gone]
            case facts:
                stated, known = facts, FactIndex.from_quads(facts, network.arrays.terms)
                network.host.set_background(known)
        found, expected = tables_of(network), tables_of(network_of(bodies, stated))
        assert found == expected


def test_what_types_entail_is_entailed_by_what_types() -> None:
    """Another domain of rdf:type concerns each property that has a domain."""
    known: list[Quad] = [(iri("p"), Iri(RDFS + "domain"), iri("A"), None)]
    more: list[Quad] = [*known, (TYPE, Iri(RDFS + "domain"), iri("B"), None)]
    network = network_of({0: "?s a :B"}, known)
    network.host.set_background(FactIndex.from_quads(more, network.arrays.terms))
    assert tables_of(network) == tables_of(network_of({0: "?s a :B"}, more))


def test_another_subproperty_concerns_the_objects_that_are_wanted_of_its_superproperty() -> None:
    subproperty: list[Quad] = [(iri("q"), Iri(RDFS + "subPropertyOf"), iri("p"), None)]
    network = network_of({0: "?s :p :A", 1: "?s :r ?o"}, [])
    for known in (subproperty, []):
        network.host.set_background(FactIndex.from_quads(known, network.arrays.terms))
        assert tables_of(network) == tables_of(network_of({0: "?s :p :A", 1: "?s :r ?o"}, known))
    assert (str(iri("q")), str(iri("A"))) in tables_of(network_of({0: "?s :p :A"}, subproperty)).lists


def test_a_class_at_the_bottom_changes_its_own_list_alone() -> None:
    network = network_of({0: "?s a :A", 1: "?s a ?c"}, below("BA", "CB"))
    before = network.net.posted.copy()
    network.host.set_background(FactIndex.from_quads(below("BA", "CB", "DC"), network.arrays.terms))
    changed = np.flatnonzero((network.net.posted[: len(before)] != before).any(axis=1))
    assert [network.arrays.terms.text(o) for o in network.net.posted[changed, c.POSTED_O].tolist()] == [str(iri("D"))]


def test_a_property_types_by_way_of_two_inverses() -> None:
    """So its triples are of the superclasses of their objects as well."""
    schema = schema_stating([(iri("p"), INVERSE, iri("q")), (iri("q"), INVERSE, iri("r")), (iri("r"), SUBPROPERTY, TYPE)])
    assert Entailment(schema).typing == (TYPE, iri("p"), iri("r"))
