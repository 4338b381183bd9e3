"""Queries come and go while others run: what they take of a network's tables they give back, and no other is touched."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsparql
from engine.alpha.free_rows import Ranges
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import CERTAIN, REVISED, Drop, Entry, Events, Register
from engine.network.network import Network
from epsparql.algebra import Select
from tests.engine.network.books import ranges_around
from tests.reference.evaluator import Occurrence
from tests.support.feeds import PREFIXES, parse_feed
from tests.support.run_both import block

SEQ = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} FILTER(?x < ?y) }"
TEXTS = [
    SEQ,
    "SELECT * WHERE { {?s :A ?x} OPTIONAL {?s :B ?y FILTER(?y > 3)} }",
    'SELECT * WHERE { {?s :A ?x} WITHOUT {?s :B ?y} FOR "PT3S"^^xsd:duration }',
    "SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :A ?x } GROUP BY ?s",
    'SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :A ?x } GROUP BY ?s WINDOW [RUN WHILE (?x >= AVG(?x)) UNTIL { ?s :B ?y } WITHIN "PT3S" CLOSED]',
    "SELECT ?s (SUM(?x) AS ?n) WHERE { ?s :A ?x } GROUP BY ?s WINDOW [RUN WHILE (?x != PREV(?x))]",
    "SELECT * WHERE { ?s ?p ?x . ?s :B ?y }",
    "CONSTRUCT { ?s :C ?x } WHERE { ?s :A ?x }",
    "SELECT * WHERE { VALUES ?x { 1 2 } ?s :A ?x }",
    'SELECT * WHERE { ?s :A ?x FILTER(REGEX(STR(?x), "1")) }',
]


class RegistrationLog:
    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()

    def put(self, entry: Entry, occurrences: Sequence[Occurrence] = ()) -> list[tuple[str, int, int, list[str | None]]]:
        outcome = self.engine.feed(block([(dataclasses.replace(entry, offset=self.engine.position), tuple(occurrences))]))
        assert not [change.reason for change in outcome.changes]
        rows = outcome.solutions.to_pylist()
        return [(row["query"], row["start"].timestamp(), row["end"].timestamp(), row["values"]) for row in rows]

    def register(self, name: str, text: str) -> int:
        self.put(Register(0, name, PREFIXES + text, max_derivations=1000))
        return self.engine.position - 1

    def drop(self, registered: int) -> None:
        self.put(Drop(0, registered, ""))

    def send(self, feed: str) -> list[tuple[str, int, int, list[str | None]]]:
        occurrences = parse_feed(feed)
        return self.put(Events(0, "default", len(occurrences), max(o.end for o in occurrences)), occurrences)


NOT_A_QUERYS = ("numbers", "kinds", "feed", "questions", "question_heads")
"""Arrays that do not grow with queries; the memo has a limit of its own."""


def held(network: Network) -> dict[str, int]:
    """Rows of each table, and of the pool of goals."""
    net = network.net
    tables = {name: len(getattr(net, name)) for name in net._fields if name not in NOT_A_QUERYS}
    return tables | {
        "in use": int(net.at[c.USED] - net.at[c.FREE]),
        "inquiries": len(network.slots.inquiries),
        "collecting": len(network.collectors.placed),
    }


@pytest.mark.parametrize("cycles", [3, pytest.param(1_250, marks=pytest.mark.soak)])
def test_tables_stay_as_large_as_they_were(cycles: int) -> None:
    log = RegistrationLog()
    log.register("stays", 'SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} FILTER(getDURATION() < "PT3S"^^xsd:duration) }')
    sizes = []
    for k in range(cycles):
        for j, text in enumerate(TEXTS):
            at = 20 * k + 2 * j
            goes = log.register("goes", text)
            log.send(f"A({j})@{at} B(9)@{at}.5")
            log.drop(goes)
        log.send(f"A(1)@{20 * k + 19}")
        sizes.append(held(log.engine.registry.members[0].network))
        log.engine.registry.members[0].network.arrays.forget_answers()  # a collection of terms does; until then, each answer is remembered
    assert sizes[-1] == sizes[0]


@pytest.mark.parametrize("text", TEXTS)
def test_a_query_in_the_rows_of_another_is_as_one_alone(text: str) -> None:
    """Within one instant: what the first had met, asked, or left waiting is not the second's."""
    log, alone = RegistrationLog(), RegistrationLog()
    log.register("other", "SELECT * WHERE { ?s :Z ?x }")
    goes = log.register("goes", text)
    log.send("A(1)@1 B(5)@2")
    log.drop(goes)
    for part in (log, alone):
        part.register("comes", text)
    assert log.engine.registry.members[0].network.planned.keys() == {0, log.engine.position - 1}
    for feed in ("A(1)@2", "A(1)@2 B(6)@2", "A(2)@3", "B(7)@4", "A(10)@9"):
        assert log.send(feed) == alone.send(feed)


def test_others_go_on_as_if_nothing_had_been() -> None:
    disturbed, calm = RegistrationLog(), RegistrationLog()
    for part in (disturbed, calm):
        for k, text in enumerate(TEXTS):
            part.register(f"q{k}", text)
    for k, feed in enumerate(["A(1)@1", "B(5)@2 A(2)@2", "A(3)@3", "B(12)@4", "A(1)@9 B(5)@9", "A(1)@20"]):
        came = [disturbed.register(f"zz{j}", text) for j, text in enumerate(TEXTS)]
        assert [row for row in disturbed.send(feed) if not row[0].startswith("zz")] == calm.send(feed), feed
        for registered in came[k % 2 :: 2]:
            disturbed.drop(registered)


def test_queries_come_to_a_restored_network_as_to_the_first_one() -> None:
    log = RegistrationLog()
    came = [log.register(f"q{k}", text) for k, text in enumerate(TEXTS)]
    log.send("A(1)@1 B(5)@2")
    for registered in came[1::3]:
        log.drop(registered)
    restored = RegistrationLog(Engine.restore(log.engine.snapshot()))
    for part in (log, restored):
        for k, text in enumerate(TEXTS):
            part.register(f"z{k}", text)
    for feed in ("A(2)@3", "B(7)@4", "A(10)@9"):
        assert log.send(feed) == restored.send(feed)


def test_a_wide_query_that_is_gone_leaves_no_width_in_what_is_restored() -> None:
    log = RegistrationLog()
    log.register("narrow", SEQ)
    wide = log.register("wide", "SELECT * WHERE { ?s :A ?a . ?s :B ?b . ?t :A ?c . ?t :B ?d . ?u :A ?e . ?u :B ?f }")
    log.send("A(1)@1")
    log.drop(wide)
    assert len(RegistrationLog(Engine.restore(log.engine.snapshot())).send("B(5)@2")) == 1


def test_a_refused_rule_leaves_no_trace() -> None:
    log = RegistrationLog()
    log.register("reads", "SELECT * WHERE { {?s :A ?x} MINUS {?s :D ?y} }")
    network = log.engine.registry.members[0].network
    before = {name: ranges.end for name, ranges in network.arrays.used.items()}
    rule = "CONSTRUCT { ?s :D ?x } WHERE { {?s :A ?x} MINUS {?s :D ?y} }"
    outcome = log.engine.feed(block([(Register(log.engine.position, "rule", PREFIXES + rule), ())]))
    assert "recursion through a negative part" in outcome.changes[0].reason
    assert {name: ranges.end for name, ranges in network.arrays.used.items()} == before
    assert [row[:3] for row in log.send("A(1)@1 B(5)@2")] == [("reads", 1, 1)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5))))
def test_ranges_are_a_function_of_what_is_in_use(steps: list[tuple[bool, int]]) -> None:
    ranges, used = Ranges(), list[tuple[int, int]]()
    for takes, n in steps:
        if takes or not used:
            first = ranges.take(n)
            assert all(first + n <= other or other + m <= first for other, m in used if n and m)
            used.append((first, n))
        else:
            ranges.give(*used.pop(n % len(used)))
        assert ranges == ranges_around(used)


def test_registering_takes_no_longer_when_many_are_there() -> None:
    """The written rows are counted, and no clock is read: a network's arrays stay the same objects while there is room."""
    log = RegistrationLog()
    for k in range(70):
        log.register(f"q{k}", f"SELECT * WHERE {{ {{?s :p{k} ?x}} SEQ {{?s :p{k + 1} ?y}} }}")
    network = log.engine.registry.members[0].network
    before = network.net
    log.register("one more", "SELECT * WHERE { {?s :p0 ?x} SEQ {?s :p1 ?y} }")
    same = [
        name for name in ("nodes", "edges", "slots", "alpha_at", "stores", "queries", "reads") if getattr(before, name) is getattr(network.net, name)
    ]
    assert same == ["nodes", "edges", "slots", "alpha_at", "stores", "queries", "reads"]


def test_graphs_are_numbered_once_a_query_asks_for_them() -> None:
    log = RegistrationLog()
    log.register("plain", "SELECT * WHERE { ?s :A ?x }")
    log.send("g/A(1)@1")
    without = len(log.engine.registry.terms)
    log.send("h/A(1)@2")
    assert len(log.engine.registry.terms) == without
    asking = log.register("asking", "SELECT ?g WHERE { { GRAPH ?g { ?s :A ?x } } SEQ { GRAPH ?g { ?s :B ?y } } }")
    named = {name: f"<http://example.org/{name}>" for name in "gh"}
    assert not [row for row in log.send("g/A(1)@3 g/A(1)@4 h/A(1)@4 A(1)@4") if row[0] == "asking"]
    assert [row[1:] for row in log.send("h/B(2)@5 g/B(2)@5 B(2)@5") if row[0] == "asking"] == [
        (3, 5, [named["g"]]), (4, 5, [named["g"]]), (4, 5, [named["h"]]),
    ]  # fmt: skip
    log.drop(asking)
    log.send("k/A(1)@6")
    with_graphs = len(log.engine.registry.terms)
    log.send("l/A(1)@7")
    assert len(log.engine.registry.terms) == with_graphs


@pytest.mark.parametrize(("reads_from", "after"), [(None, 7), (3, 2), (0, -1)])
def test_a_query_reads_from_the_entry_that_it_names_on(reads_from: int | None, after: int) -> None:
    entry = Register(7, "q", PREFIXES + SEQ, reads_from=reads_from)
    query = epsparql.parse(entry.text).query
    assert isinstance(query, Select)
    assert Engine().registry.place_query(entry, query).planned[7].source.reads_after == after


@pytest.mark.parametrize("revised", [["there"], ["back"], ["there", "back"]])
def test_revised_rules_may_not_feed_each_other(revised: list[str]) -> None:
    engine, reasons = Engine(), list[str]()
    for name, into, source in (("there", "a", "b"), ("back", "b", "a")):
        text = f"CONSTRUCT {{ ?s :A ?x }} INTO STREAM <{into}> FROM STREAM <{source}> WHERE {{ ?s :A ?x }}"
        entry = Register(engine.position, name, PREFIXES + text, emit=REVISED if name in revised else CERTAIN)
        outcome = engine.feed(block([(entry, ())]))
        reasons = [change.reason for change in outcome.changes]
    assert len(reasons) == 1
    assert "a revised rule that feeds itself through other rules" in reasons[0]
