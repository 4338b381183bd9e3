"""A query with PARAMETERS gives what its texts give in which each parameter is replaced, one query for each instance."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.messages import END_OF_TIME, Block, ChangeInstances, Drop, Entry, Events, Finish, Register, Tick
from engine.validation.validate import check
from epsparql import algebra
from epsparql.renderer.queries import render
from epsparql.terms import XSD, Iri, Literal, Term, Variable
from tests.engine.runtime.test_partitioning import inserted, shared_out, whole
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.run_both import block, blocks, past_of
from verification.definitions.queries import substitute

E = "http://example.org/"
Terms = dict[str, Term]
Log = list[tuple[Entry, tuple[Occurrence, ...]]]
Found = Counter[tuple[int, int, int, str, tuple[str | None, ...]]]


@dataclass(frozen=True)
class InstanceChange:
    """Adds, changes or removes (None) instances, by id."""

    instances: dict[str, Terms | None]


@dataclass(frozen=True)
class Sent:
    stream: str
    occurrences: tuple[Occurrence, ...]


Step = InstanceChange | Sent


def logs(text: str, steps: Sequence[Step], max_delay: int) -> tuple[Log, Log]:
    """The log of the query with its changes, and that of the queries of its instances; both have an entry for each of the other's."""
    query = epsparql.parse(text).query
    assert isinstance(query, algebra.Select)
    shared: Log = [(Register(0, "q", text), ())]
    apart: Log = [(Register(0, "q", "SELECT ?none WHERE { ?none <http://example.org/never> ?none }"), ())]
    standing: dict[str, tuple[Terms, Register]] = {}
    latest: dict[str, int] = {}
    for step in steps:
        if isinstance(step, Sent):
            latest[step.stream] = max(latest.get(step.stream, -END_OF_TIME), *(o.end for o in step.occurrences))
            entry = Events(len(shared), step.stream, len(step.occurrences), latest[step.stream] - max_delay)
            shared.append((entry, step.occurrences))
            apart.append((entry, step.occurrences))
            continue
        dropped = [(Drop(len(shared) + k, known.offset, known.name), ()) for k, (_, known) in enumerate(_gone(step, standing))]
        apart += dropped
        shared += [(Tick(entry.offset, None, None), ()) for entry, _ in dropped]
        offset = len(shared)
        come = {name: terms for name, terms in step.instances.items() if terms is not None and (name not in standing or standing[name][0] != terms)}
        for k, (name, terms) in enumerate(come.items()):  # all of a change are registered before the next event
            register = Register(offset + k, name, render(substitute(query, {Variable(each): term for each, term in terms.items()})))
            apart.append((register, ()))
            standing[name] = terms, register
        for name in [name for name, terms in step.instances.items() if terms is None]:
            standing.pop(name, None)
        changes = {name: terms and [str(terms[v.name]) for v in query.parameters] for name, terms in step.instances.items()}
        shared += [(Tick(offset + k, None, None), ()) for k in range(len(come) - 1)]
        last = ChangeInstances(len(shared), 0, "q", json.dumps(changes))
        shared.append((last, ()))
        if not come:
            apart.append((Tick(last.offset, None, None), ()))
    for name in query.streams:
        shared.append((Finish(len(shared), name), ()))
        apart.append((Finish(len(apart), name), ()))
    assert len(shared) == len(apart)
    return shared, apart


def _gone(step: InstanceChange, standing: Mapping[str, tuple[Terms, Register]]) -> list[tuple[Terms, Register]]:
    return [standing[name] for name, terms in step.instances.items() if name in standing and standing[name][0] != terms]


def emitted(log: Sequence[Block], restores: frozenset[int] = frozenset()) -> Iterator[tuple[str, int, int, int, tuple[str | None, ...]]]:
    engine = Engine(past=partial(past_of, log))
    for number, part in enumerate(log):
        if number in restores:
            engine = Engine.restore(engine.snapshot())
            engine.look_back_by(partial(past_of, log))
        outcome = engine.feed(part)
        assert not outcome.changes, outcome.changes
        for row in outcome.solutions.to_pylist():
            start, end = (int(row[name].timestamp() * 1_000_000) for name in ("start", "end"))
            yield row["query"], row["entry"], start, end, tuple(row["values"])


def found_shared(log: Log, cuts: frozenset[int], restores: frozenset[int]) -> tuple[Found, list[tuple[int, int, int, str]]]:
    found, order = Found(), list[tuple[int, int, int, str]]()
    for _, entry, start, end, (instance, *values) in emitted(blocks(log, cuts), restores):
        assert instance is not None
        found[entry, start, end, json.loads(instance), tuple(values)] += 1
        order.append((entry, end, start, instance))
    return found, order


def found_apart(log: Log) -> Found:
    return Found((entry, start, end, name, values) for name, entry, start, end, values in emitted([block(log)]))


# ---------------------------------------------------------------- random queries, instances and events
LEAVES = [
    "?room :p ?v", "?room :p ?v . FILTER (?v > ?limit)", "?room :q ?w . FILTER (?limit >= ?w)", "?s :p ?room", "?room :q ?w . ?room :p ?v",
    "?s :p ?w . FILTER (?w < ?limit)", "?s ?p ?room", "?room :p ?limit", "?x :q ?w . FILTER (?w = ?limit)", "?s :q ?w . VALUES ?w { 1 2 3 }",
]  # fmt: skip
OUTER = [
    "",
    "",
    "",
    "",
    "FILTER (?v > ?limit)",
    "FILTER (?v + 1 >= ?limit && ?v != 3)",
    "FILTER (?w <= ?limit || ?v = ?limit)",
    "BIND (?v - ?limit AS ?over)",
]
JOINED = ["SEQ", "AND", "EQUALS", "OVERLAPS", "DURING", "UNION"]
SHOWN = ["*", "?user ?v", "?room ?limit (?v + ?limit AS ?sum)", "DISTINCT ?room"]
ONCE = ["", "", "", "ONCE PER ?room WITHIN PT3S", "ONCE PER (?v ?user) WITHIN PT2S"]

leaf = st.sampled_from(LEAVES).map(lambda text: "{ " + text + " }")
chain = st.one_of(
    leaf,
    st.tuples(leaf, st.sampled_from(JOINED), leaf).map(" ".join),
    st.tuples(leaf, st.sampled_from(JOINED), leaf, st.sampled_from(["WITHIN PT4S", "SEQ { ?s :q ?z }", "AND { ?room :p ?v }"])).map(" ".join),
)
texts = st.tuples(st.sampled_from(SHOWN), chain, st.sampled_from(OUTER), st.sampled_from(ONCE)).map(
    lambda parts: (
        f"PREFIX : <{E}> SELECT {parts[0]} FROM STREAM <s> FROM STREAM <t> PARAMETERS (?user ?room ?limit) WHERE {{ {parts[1]} {parts[2]} }} {parts[3]}"
    )
)
rooms = st.sampled_from([Iri(E + name) for name in ("r0", "r1")])
numbers = st.integers(0, 4).map(lambda n: Literal(str(n), XSD + "integer"))
limits = st.one_of(numbers, numbers, numbers, st.sampled_from([Literal("2.5", XSD + "decimal"), Literal("2"), Literal("true", XSD + "boolean")]))
given_terms: st.SearchStrategy[Terms] = st.fixed_dictionaries(
    {"user": st.sampled_from([Literal("ann"), Iri(E + "bob")]), "room": rooms, "limit": limits}
)
changes = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), given_terms, given_terms), min_size=1).map(InstanceChange)


@st.composite
def occurrences(draw: st.DrawFn, around: int) -> Occurrence:
    end = max(around + draw(st.sampled_from([0, 0, 0, 1, -1])), 0)
    start = max(end - draw(st.sampled_from([0, 0, 0, 1, 2])), 0)
    triple = (draw(rooms), Iri(E + draw(st.sampled_from("ppq"))), draw(st.one_of(numbers, numbers, numbers, rooms)))
    return Occurrence(triple, start * 1_000_000, end * 1_000_000, None)


@st.composite
def timely_steps(draw: st.DrawFn) -> tuple[list[Step], int]:
    """Steps whose events are in time for a delay of so many µs. The first ones add instances, so that most have solutions."""
    max_delay = draw(st.sampled_from([0, 2, 10])) * 1_000_000
    steps: list[Step] = [InstanceChange({name: draw(given_terms) for name in "ab"})]
    latest = {"s": -END_OF_TIME, "t": -END_OF_TIME}
    for k in range(draw(st.integers(3, 14))):
        if draw(st.integers(0, 3)) == 0:
            steps.append(draw(changes))
            continue
        stream, events = draw(st.sampled_from("sst")), draw(st.lists(occurrences(k // 2), min_size=1, max_size=4))
        timely = tuple(sorted((o for o in events if o.end >= latest[stream] - max_delay), key=lambda o: o.end))
        if timely:
            latest[stream] = max(latest[stream], timely[-1].end)
            steps.append(Sent(stream, timely))
    return steps, max_delay


@settings(max_examples=examples(400), deadline=None)
@given(texts, timely_steps(), st.frozensets(st.integers(0, 30), max_size=6), st.frozensets(st.integers(0, 6), max_size=3))
def test_instances_give_what_their_texts_give(text: str, timely: tuple[list[Step], int], cuts: frozenset[int], restores: frozenset[int]) -> None:
    try:
        check(epsparql.parse(text))
    except epsparql.QueryError:
        return  # another test tells what is refused
    shared, apart = logs(text, *timely)
    found, order = found_shared(shared, cuts, restores)
    assert found == found_apart(apart)
    assert order == sorted(order)


KEYLESS = f"PREFIX : <{E}> SELECT * FROM STREAM <s> WHERE {{ {{ ?a :p ?x }} SEQ {{ ?b :q ?y }} }}"
"""Events of the stream cannot be dealt out where this query is: the others move to its partition."""


@settings(max_examples=examples(1000), deadline=None)
@given(
    texts, timely_steps(), st.frozensets(st.integers(0, 30), max_size=6), st.frozensets(st.integers(0, 6), max_size=2), st.integers(2, 4),
    st.none() | st.integers(1, 20),
)  # fmt: skip
def test_partitions_give_what_one_engine_gives(
    text: str, timely: tuple[list[Step], int], cuts: frozenset[int], restores: frozenset[int], partitions: int, move: int | None
) -> None:
    try:
        check(epsparql.parse(text))
    except epsparql.QueryError:
        return
    log = logs(text, *timely)[0]
    moving = log if move is None else inserted(log, [(min(move, len(log) - 2), Register(0, "keyless", KEYLESS))])
    cut = blocks(moving, cuts)
    assert shared_out(cut, partitions, restores)[:2] == whole(cut)
