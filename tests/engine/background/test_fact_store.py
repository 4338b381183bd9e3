"""The background by predicate: what follows is what the rules give one by one, after any changes, and patterns match
what the definition says.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.background import fact_store
from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.messages import ADD, CHANGES, DROP
from engine.triples import relation as rows_module
from engine.triples.hash_index import Lookup, Table, hashes
from engine.triples.quads import Quad, name_of
from engine.triples.relation import addition, distinct, grown, with_room, without
from epsparql import algebra as a
from epsparql.terms import BlankNode, Iri, Literal, Variable
from tests.engine.background.test_rdfs_closure import QUADS, quads, term
from tests.soak import examples
from verification.definitions import rdfs
from verification.definitions.model import Fact, match_triple

PLAIN = st.sampled_from([term(text) for text in ("C", "D", "E", "p", "q", "r", "_:b")])
PREDICATES = st.sampled_from([term(text) for text in ("p", "q", "r", "type", "domain", "range", "class<", "prop<")])
GRAPHS = st.sampled_from([None, Iri("g"), Iri("h"), BlankNode("k")])
FACTS = st.tuples(PLAIN, PREDICATES, st.one_of(PLAIN, st.just(Literal("l"))), GRAPHS)
"""Of a schema that leaves RDFS's own words alone."""


@settings(max_examples=examples(200))
@given(st.one_of(st.lists(QUADS, max_size=7), st.lists(FACTS, max_size=8)))
def test_what_follows(known: list[Quad]) -> None:
    agrees(FactIndex.from_quads(known, TermTable()), known)


def closure(known: list[Quad]) -> set[Quad]:
    """Return what the reference evaluator says holds."""
    found = rdfs.closed([Fact((s, p, o), graph) for s, p, o, graph in known])
    return {(*fact.triple, fact.graph) for fact in found}  # type: ignore[misc]  # only a graph is None, or an IRI


def agrees(found: FactIndex, known: list[Quad]) -> None:
    everything = list(found)
    assert len(set(everything)) == len(everything)
    assert set(everything) == closure(known)
    assert set(found.quads) == set(known)


STEPS = st.lists(st.tuples(st.sampled_from(CHANGES), GRAPHS, st.lists(FACTS, max_size=4)), max_size=5)


@settings(max_examples=examples(100))
@given(STEPS, st.sampled_from((0, rows_module.LEAST_ROOM)))
def test_a_version_after_the_other_is_as_the_last_alone(steps: list[tuple[str, Iri | BlankNode | None, list[Quad]]], room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "LEAST_ROOM", room)
        versions_agree(steps)


def versions_agree(steps: list[tuple[str, Iri | BlankNode | None, list[Quad]]]) -> None:
    terms, known = TermTable(spare=0), list[Quad]()
    found = FactIndex(terms)
    for change, graph, facts in steps:
        known = known if change == ADD else [quad for quad in known if quad[3] != graph]
        known = known if change == DROP else [*known, *((s, p, o, graph) for s, p, o, _ in facts)]
        numbers = terms.intern_all([str(part) for quad in facts for part in quad[:3]]).reshape(-1, 3)
        found = found.with_change(name_of(graph), numbers, change)
        list(found)  # what it remembers goes on to the next
        terms.collect()
        agrees(found, list(dict.fromkeys(known)))
    alone = FactIndex.given_as(found.numbers, terms)
    assert set(alone) == set(found)
    for node in {part for quad in known for part in quad[:3]}:
        assert set(alone.schema.classes.get(node)) == set(found.schema.classes.get(node))


PARTS = st.sampled_from([Variable("x"), Variable("y"), term("C"), term("p")])
VERBS = st.sampled_from([Variable("x"), Variable("z"), *(term(text) for text in ("p", "q", "type", "class<", "prop<"))])
PLACES = st.builds(a.Place, st.sampled_from([None, Variable("g")]), st.sampled_from([None, None, ("g",), ("", "h")]))


@settings(max_examples=examples(200))
@given(st.lists(FACTS, max_size=8), PARTS, VERBS, PARTS, PLACES)
def test_patterns(known: list[Quad], s: Variable, p: Variable, o: Variable, place: a.Place) -> None:
    """Under GRAPH a triple counts once for each graph that it lies in, elsewhere once."""
    terms, pattern = TermTable(), a.TriplePattern(s, p, o)
    rows = FactIndex.from_quads(known, terms).matching(pattern, place).tolist()
    found = [tuple(terms.term(number) for number in row) for row in rows]
    assert len(set(found)) == len(found)
    there = [quad for quad in closure(known) if match_triple(pattern, quad[:3]) is not None]
    if place.among is not None:
        there = [quad for quad in there if name_of(quad[3]) in place.among]
    elif place.graph is not None:
        there = [quad for quad in there if quad[3] is not None]
    assert set(found) == {quad if place.graph is not None else (*quad[:3], None) for quad in there}


def test_what_has_not_changed_is_the_same_array() -> None:
    terms = TermTable()
    found = FactIndex.from_quads(quads("x p y, x q y, C class< D, x type C"), terms)
    pattern, place = a.TriplePattern(Variable("s"), term("p"), Variable("o")), a.Place()
    rows = found.matching(pattern, place)
    numbers = terms.intern_all(["<x>", "<q>", "<z>"]).reshape(1, 3)
    later = found.with_change("", numbers, ADD)
    assert later.matching(pattern, place) is rows
    assert later.schema is found.schema
    assert later.with_change("", numbers, ADD).given[int(numbers[0, 1])] is later.given[int(numbers[0, 1])]
    lookup = Lookup(rows, (0, 2), 1)
    assert later.table(lookup) is later.table(Lookup(rows, (0, 2), 1))


def test_what_is_remembered_of_patterns_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries with other constants may come and go for months over one background."""
    monkeypatch.setattr(fact_store, "MOST_ASKED", 4)
    found, sizes = FactIndex.from_quads(quads("x p y, x q y, C class< D, x type C"), TermTable()), list[int]()
    for n in range(20):
        assert len(found.matching(a.TriplePattern(Variable("s"), term("p"), term(f"z{n}")), a.Place())) == 0
        assert len(found.matching(a.TriplePattern(term("x"), term("type"), Variable("o")), a.Place())) == 2
        sizes.append(len(found._found))
    assert max(sizes) < 12


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60))
def test_sets_of_rows(rows: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    one, other = (np.array(part, np.int64).reshape(-1, 2) for part in (rows, others))
    assert [tuple(row) for row in distinct(one).tolist()] == list(dict.fromkeys(rows))
    assert sorted(tuple(row) for row in without(distinct(one), other).tolist()) == sorted(set(rows) - set(others))


def test_a_table_has_each_row_in_the_chain_of_its_key() -> None:
    rows = np.random.default_rng(1).integers(-(1 << 40), 1 << 40, (1000, 3))
    table = Table.from_rows(rows, 2)
    assert found_in(table) == sorted(rows.tolist())


def found_in(table: Table) -> list[list[int]]:
    """Return the rows that a version of a table has, chain by chain; each row must be in the chain of its key."""
    heads, cells, found = table.chains.heads, table.chains.cells, []
    for bucket, head in enumerate(heads.tolist()):
        while head != c.NONE:
            row = cells[head, c.L_KEY :]
            assert hashes(row[None, : table.keys]).tolist()[0] & (len(heads) - 1) == bucket
            if head < table.n:
                found.append(row.tolist())
            head = int(cells[head, c.L_OLDER])
    return sorted(found)


def test_a_table_with_more_rows_shares_them_with_the_version_before() -> None:
    rows = np.random.default_rng(1).integers(0, 50, (1000, 3))
    first = Table.from_rows(rows[:600], 1)
    second = first.with_more(rows[600:610])
    third, beside = second.with_more(rows[610:]), second.with_more(rows[990:])
    assert second.chains is first.chains
    assert third.chains is not first.chains, "there was no room"
    for table, expected in ((first, rows[:600]), (second, rows[:610]), (third, rows), (beside, np.concatenate([rows[:610], rows[990:]]))):
        assert found_in(table) == sorted(expected.tolist())
    assert first.with_more(rows[:1]).chains is not first.chains, "another version has gone on from there"


def test_rows_grow_in_room_that_versions_share() -> None:
    rows = np.arange(6000).reshape(-1, 3)
    first = with_room(rows[:1200])
    second, third = grown(first, rows[1200:1201]), grown(grown(first, rows[1200:1201]), rows[1300:1400])
    beside = grown(first, rows[1900:])
    assert second.tolist() == rows[:1201].tolist()
    assert third.tolist() == [*rows[:1201].tolist(), *rows[1300:1400].tolist()]
    assert beside.tolist() == [*rows[:1200].tolist(), *rows[1900:].tolist()]
    more = addition(first, second)
    assert more is not None
    assert more.tolist() == rows[1200:1201].tolist()
    assert addition(second, first) is None
    assert addition(first, beside) is None or addition(first, beside).tolist() == rows[1900:].tolist()  # type: ignore[union-attr]


def test_a_triple_more_is_appended_to_what_there_is() -> None:
    """However many there are: rows that are found, and their table, are those of before, with one behind them."""
    terms = TermTable()
    found = FactIndex.from_quads(quads(", ".join(f"x{k} p y{k}" for k in range(1500)) + ", p prop< q"), terms)
    place = a.Place()
    for verb in ("p", "q"):
        found.table(Lookup(found.matching(a.TriplePattern(Variable("s"), term(verb), Variable("o")), place), (0, 2), 1))
    later = found
    for k in range(3):
        later = later.with_change("g", terms.intern_all(["<x1>", "<p>", f"<z{k}>"]).reshape(1, 3), ADD)
        for verb in ("p", "q"):
            pattern = a.TriplePattern(Variable("s"), term(verb), Variable("o"))
            rows, before = later.matching(pattern, place), found.matching(pattern, place)
            assert len(rows) == 1501 + k
            assert addition(before, rows) is not None or (verb, k) == ("q", 0)
            table, old = later.table(Lookup(rows, (0, 2), 1)), found.table(Lookup(before, (0, 2), 1))
            assert (table.n, old.n) == (1501 + k, 1500)
            assert table.chains is old.chains
        assert set(later) == set(FactIndex.from_quads(later.quads, TermTable()))
