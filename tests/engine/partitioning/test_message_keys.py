"""Queries over messages of several triples, dealt out by the key of a message: the same solutions, in the same order,
as one engine finds.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from numpy.typing import NDArray

import epsparql
from engine.engine import Engine
from engine.messages import DropStream, Entry, Events, Facts, MessageKey, Register, SetStream
from engine.partitioning import NoKey, NoSingleKey, PartitionShare, find_message_keys, keys_of, number_bodies, partition_of, propose_message_key
from engine.partitioning.hash_partitioner import Part
from engine.partitioning.one_key import OneKey
from engine.runtime.query_registry import Registry
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import Variable
from epsparql.trees import replace_fields
from tests.engine.runtime.test_partitioning import FEW, Log, inserted, shared_out, whole
from tests.engine.semantics.test_equivalence import accepted
from tests.reference.evaluator import Occurrence
from tests.support.feeds import Body, parse_facts
from tests.support.ntriples import parse_term
from tests.support.run_both import block, blocks, entries

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
KEY = MessageKey(f"{EX}by", (f"{EX}result",))
DECLARED = {DEFAULT_STREAM: KEY}
DECLARE = SetStream(0, DEFAULT_STREAM, key=KEY.predicate, parts=KEY.parts)

Triples = list[tuple[str, str, str]]


def term(text: str) -> str:
    return text if text[0] in '"_' else f"<{EX}{text}>"


def occurrences(triples: Triples, at: int) -> tuple[Occurrence, ...]:
    parsed = [tuple(parse_term(term(part)) for part in triple) for triple in triples]
    return tuple(Occurrence(triple, at, at) for triple in dict.fromkeys(parsed))  # type: ignore[arg-type]


@st.composite
def messages(draw: st.DrawFn) -> list[Body]:
    """Bodies of observations and of what the sensors say of themselves. A node that comes again keeps its key."""
    found = list[Body]()
    for at in sorted(draw(st.lists(st.integers(1, 12), min_size=1, max_size=8))):
        triples: Triples = []
        for _ in range(draw(st.integers(1, 3))):
            sensor, number = draw(st.sampled_from(("s1", "s2", "s3"))), draw(st.integers(0, 2))
            value = f'"{draw(st.integers(1, 3))}"'
            match draw(st.sampled_from(("plain", "plain", "nested", "blank", "sensor"))):
                case "plain":
                    triples += [(f"o{sensor}{number}", "by", sensor), (f"o{sensor}{number}", "p", value)]
                case "nested":
                    node = f"n{sensor}{number}"
                    triples += [(node, "by", sensor), (node, "result", f"r{node}"), (f"r{node}", "q", value)]
                case "blank":
                    node = f"_:b{len(found)}{len(triples)}"
                    triples += [(node, "by", sensor), (node, "p", value)]
                case _:
                    triples.append((sensor, "k", value))
        found.append(Body(DEFAULT_STREAM, occurrences(triples, at * 1_000_000)))
    return found


STARS = st.sampled_from((
    "?o :by ?s ; :p ?v .", "?m :by ?s ; :p ?w .", "?n :by ?s ; :result ?r . ?r :q ?v .", "?s :k ?v .", "?s :k ?w .", "?o :p ?v .", "?r :q ?w .",
    "?o :by ?s .", "?o :by ?t ; :p ?w .", "?o :by :s1 ; :p ?v .", "?n :result ?r .",
))  # fmt: skip


def _join(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def build(form: str) -> st.SearchStrategy[str]:
        return st.tuples(parts, parts, parts).map(lambda found: form.format(*found))

    return st.sampled_from((
        "{{ {0} }} SEQ {{ {1} }}", "{{ {0} }} SEQ {{ {1} }} WITHIN 4", "{0} OPTIONAL {{ {1} }}", "{{ {0} }} UNION {{ {1} }}", "{0} {1}",
        "{0} FILTER NOT EXISTS {{ {1} }}", "{{ {0} }} WITHOUT {{ {1} }} FOR 2", "{{ {0} }} SEQ {{ {1} }} WITHOUT {{ {2} }}", "{{ {0} }} AND {{ {1} }}",
        "{0} MINUS {{ {1} }}", "{{ SELECT ?s ?o {{ {0} }} }} {1}", "{0} {{ SELECT ?o (COUNT(*) AS ?c) {{ {1} }} GROUP BY ?o }}",
    )).flatmap(build)  # fmt: skip


QUERIES = st.tuples(
    st.sampled_from(
        ("SELECT * {{ {} }}", "SELECT ?s ?v {{ {} }}", "SELECT DISTINCT ?s ?v {{ {} }}", "SELECT ?s (COUNT(*) AS ?n) {{ {} }} GROUP BY ?s")
    ),
    st.recursive(STARS, _join, max_leaves=4),
).map(lambda found: PREFIX + found[0].format(found[1]))


def has_message_key(text: str, policy: str = "unrestricted") -> bool:
    try:
        return keys_of(epsparql.parse(text).query, policy, declared=DECLARED)[0].part is Part.MESSAGE
    except NoKey:
        return False


def valid(text: str) -> bool:
    try:
        return accepted({"q": text})
    except epsparql.QueryError:
        return False


def log_of(queries: dict[str, str], bodies: Sequence[Body], extra: Sequence[tuple[int, Entry]] = (), *, policy: str = "unrestricted") -> Log:
    log = inserted(entries(queries, {DEFAULT_STREAM: ()}, bodies, []), [(0, DECLARE), *extra])
    return [(replace_fields(entry, policy=policy) if isinstance(entry, Register) else entry, rows) for entry, rows in log]


@FEW
@given(
    text=QUERIES,
    bodies=messages(),
    facts=st.sampled_from(("", "", "k(s1,7) k(s2,8)", "p(os10,5)")),
    at=st.integers(2, 8),
    policy=st.sampled_from(("unrestricted", "unrestricted", "recent")),
    cuts=st.tuples(st.frozensets(st.integers(0, 14)), st.frozensets(st.integers(0, 3), max_size=2)),
    partitions=st.sampled_from((1, 2, 3)),
)
def test_a_query_with_a_message_key(
    text: str, bodies: list[Body], facts: str, at: int, policy: str, cuts: tuple[frozenset[int], frozenset[int]], partitions: int
) -> None:
    """The log is cut before some entries, and the engines are saved and restored before some blocks."""
    assume(valid(text) and has_message_key(text, policy))
    note(text)
    triples = "".join(f"{' '.join(map(str, fact.triple))} .\n" for fact in parse_facts(facts))
    log = log_of({"q": text}, bodies, [(min(at, len(bodies) + 1), Facts(0, "", triples))] if triples else (), policy=policy)
    for entry, rows in log:
        note(f"{entry} {[' '.join(map(str, row.triple)) for row in rows]}")
    found, changes, _ = shared_out(blocks(log, cuts[0]), partitions, cuts[1])
    assert (found, changes) == whole(blocks(log, cuts[0]))


# ---------------------------------------------------------------- by hand
PAIRS = PREFIX + "SELECT ?s ?v ?w { { ?o :by ?s ; :p ?v } SEQ { ?m :by ?s ; :p ?w } }"
NESTED = PREFIX + "SELECT ?s ?v ?w { { ?o :by ?s ; :result [ :q ?v ] } SEQ { ?m :by ?s ; :result [ :q ?w ] } }"
BODIES = [
    Body(DEFAULT_STREAM, occurrences([(f"o{at}", "by", f"s{at % 3}"), (f"o{at}", "p", f'"{at}"'), (f"s{at % 3}", "k", f'"{at}"')], at * 1_000_000))
    for at in range(1, 13)
]


@pytest.mark.parametrize(("text", "key"), [
    (PAIRS, "?s"),
    (NESTED, "?s"),
    (PREFIX + "SELECT * { ?n :by ?s ; :result ?r . ?r :q ?v }", "?s"),
    (PREFIX + "SELECT ?s ?k { ?o :by ?s ; :p ?v . ?s :k ?k }", "?s"),
    (PREFIX + "SELECT * { ?o :p ?v . ?o :result ?r . ?r :q ?w }", "?o"),
    (PREFIX + "SELECT ?s { ?o :by ?s OPTIONAL { ?o :p ?v } }", "?s"),
    (PREFIX + "SELECT * { { ?o :by ?s } { { ?o :p ?v } SEQ { ?o :q ?w } } }", "?s"),
])  # fmt: skip
def test_a_message_key_is_found(text: str, key: str) -> None:
    found = keys_of(epsparql.parse(text).query, declared=DECLARED)[0]
    assert (found.part, str(found.variable)) == (Part.MESSAGE, key)


@pytest.mark.parametrize(("text", "why"), [
    (PREFIX + "SELECT * { { ?o :by ?s ; :p ?v } SEQ { ?m :by ?t ; :p ?w } }", "nothing says that"),
    (PREFIX + "SELECT * { { ?o :by ?s } SEQ { ?m :p ?w } }", "nothing says that"),
    (PREFIX + "SELECT * { { ?o :by ?s } UNION { ?m :p ?v } }", "nothing says that"),
    (PREFIX + "SELECT ?v { ?o :by ?s ; :p ?v } ORDER BY ?v", "ORDER BY"),
    (PREFIX + "SELECT DISTINCT ?v { { ?o :by ?s ; :p ?v } SEQ { ?m :by ?s } }", "DISTINCT compares"),
])  # fmt: skip
def test_a_query_that_cannot_be_keyed_says_why(text: str, why: str) -> None:
    with pytest.raises(NoKey, match=why):
        keys_of(epsparql.parse(text).query, declared=DECLARED)


@pytest.mark.parametrize(("text", "found"), [
    (PAIRS, MessageKey(f"{EX}by")),
    (NESTED, MessageKey(f"{EX}by", (f"{EX}result",))),
    (PREFIX + "SELECT * { { ?o :p ?v } SEQ { ?m :p ?w } }", None),
    (PREFIX + "CONSTRUCT { ?o :p ?s } INTO BACKGROUND :g { ?o :by ?s ; :p ?v }", None),
])  # fmt: skip
def test_a_key_is_proposed(text: str, found: MessageKey | None) -> None:
    proposed = propose_message_key(epsparql.parse(text).query)
    assert (None if proposed is None else proposed[0]) == found


def test_sets_of_one_key_are_joined_if_they_share_a_node() -> None:
    a, b, c, d = map(Variable, "abcd")
    apart = OneKey(frozenset({frozenset({a, b})})).joined(OneKey(frozenset({frozenset({c, d})})))
    assert apart.sets == {frozenset({a, b}), frozenset({c, d})}
    assert apart.joined(OneKey(frozenset({frozenset({b, c})}))).sets == {frozenset({a, b, c, d})}


def test_each_partition_reads_its_own_messages_alone() -> None:
    log = blocks(log_of({"q": PAIRS}, BODIES), ())
    engines = [Engine(Registry(PartitionShare(number, 2))) for number in range(2)]
    for engine in engines:
        engine.feed(log[0])
    for at in range(1, 13):
        owner = partition_of(term(f"s{at % 3}"), 2)
        known = []
        for engine in engines:
            before = len(engine.registry.terms)
            engine.registry.terms.intern(term(f"o{at}"))
            known.append(len(engine.registry.terms) == before)
        assert known == [number == owner for number in range(2)]


@pytest.mark.parametrize("change", [
    SetStream(0, DEFAULT_STREAM), SetStream(0, DEFAULT_STREAM, key=f"{EX}p"), DropStream(0, DEFAULT_STREAM),
    Facts(0, "", f"<{EX}o1> <{EX}p> \"9\" .\n"),
    Facts(0, "", f"<{EX}of> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <{EX}by> .\n"),
])  # fmt: skip
def test_a_query_moves_to_one_partition_when_its_key_is_one_no_longer(change: Entry) -> None:
    log = blocks(log_of({"q": PAIRS}, BODIES, [(7, change)]), (3, 9))
    found, changes, begins = shared_out(log, 2)
    assert len(begins) == 1
    assert (found, changes) == whole(log)
    assert found


def test_queries_of_one_stream_have_keys_of_their_own() -> None:
    log = blocks(log_of({"q": PAIRS, "by value": PREFIX + "SELECT * { { ?o :p ?v } SEQ { ?m :p ?v } }"}, BODIES), (5,))
    found, changes, begins = shared_out(log, 2)
    assert (found, changes) == whole(log)
    assert found
    assert not begins


def test_a_rule_that_feeds_itself_is_not_dealt_out_by_messages() -> None:
    rule = PREFIX + "CONSTRUCT { ?m :p ?v } INTO STREAM <default> { { ?o :by ?s ; :p ?v } SEQ { ?m :by ?s } WITHIN 2 }"
    log = blocks(log_of({"rule": rule, "q": PAIRS}, BODIES), (5,))
    found, changes, _ = shared_out(log, 3)
    assert (found, changes) == whole(log)


# ---------------------------------------------------------------- the keys of rows
def rows_of(bodies: Sequence[Triples]) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    events = [Events(k, "s", len(body), None) for k, body in enumerate(bodies)]
    return block([(event, occurrences(body, 1)) for event, body in zip(events, bodies, strict=True)]).rows, number_bodies(events)


def test_the_nodes_of_a_message_have_its_key() -> None:
    one: Triples = [
        ("o1", "by", "s1"),
        ("o1", "result", "r1"),
        ("r1", "result", "r2"),
        ("r2", "q", '"1"'),
        ("s1", "k", '"1"'),
        ("o2", "by", "s2"),
        ("x", "p", "o1"),
    ]
    other: Triples = [("o1", "by", "s3"), ("o1", "p", '"1"'), ("r2", "p", '"1"')]
    rows, entry = rows_of([one, other])
    found = find_message_keys(rows, entry, KEY, strict=True)
    keys = [found.texts[k].as_py() for k in found.of_row]
    assert keys == [term(key) for key in ("s1", "s1", "s1", "s1", "s1", "s2", "x", "s3", "s3", "r2")]


@pytest.mark.parametrize(("body", "why"), [
    ([("o1", "by", "s1"), ("o1", "by", "s2")], "has the keys"),
    ([("o1", "result", "r1"), ("o1", "p", '"1"')], "has no key"),
    ([("o1", "by", "s1"), ("o1", "result", '"5"')], "is a literal"),
    ([("o1", "by", "s1"), ("s1", "by", "s2")], "is the key of a message"),
    ([("o1", "by", "s1"), ("o2", "by", "s2"), ("o1", "result", "r"), ("o2", "result", "r")], "has the keys"),
    ([(f"n{k}", "result", f"n{k + 1}") for k in Random(1).sample(range(30), 30)] + [("n0", "by", "s")], None),
])  # fmt: skip
def test_a_message_has_one_key(body: Triples, why: str | None) -> None:
    rows, entry = rows_of([body])
    if why is None:
        found = find_message_keys(rows, entry, KEY, strict=True)
        assert {found.texts[k].as_py() for k in found.of_row} == {term("s")}
        return
    with pytest.raises(NoSingleKey, match=why):
        find_message_keys(rows, entry, KEY, strict=True)
    assert len(find_message_keys(rows, entry, KEY).of_row) == rows.num_rows
