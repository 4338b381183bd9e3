"""These tests check that the common parts of queries are carried out once.

Nobody can tell: not by solutions, failures or the reported state.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.messages import Drop, Entry, Events, Facts, Register, StateChange
from engine.network.network import Network
from tests.engine.runtime.test_registration import RegistrationLog
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND, parse_feed
from tests.support.run_both import block

PREFIX = "{?s :A ?x} SEQ {?s :B ?y}"
RENAMED = "{?b :A ?a} SEQ {?b :B ?c}"


def text(pattern: str) -> str:
    return f"SELECT * WHERE {{ {pattern} }}"


def shares_of(log: RegistrationLog) -> list[int]:
    """How many read each share."""
    return sorted(len(share.readings) for member in log.engine.registry.members for share in member.network.host.shares.numbered.values())


EQUAL = [
    pytest.param(f"{PREFIX} SEQ {{?s :C ?z}}", f"{RENAMED} SEQ {{?b :D ?z}}", [2], id="a prefix, whatever its variables are called"),
    pytest.param(f"{PREFIX} WITHIN 3", f"{RENAMED} WITHIN 3", [2], id="whole queries of one window"),
    pytest.param(f"{PREFIX} WITHIN 3", f"{PREFIX} WITHIN 4", [], id="not of different windows"),
    pytest.param(f"{{{PREFIX} FILTER(?x < ?y)}} SEQ {{?s :C ?z}}", f"{{{RENAMED} FILTER(?a < ?c)}} SEQ {{?b :D ?z}}", [2], id="with a condition"),
    pytest.param(f"{{{PREFIX} FILTER(?x < ?y)}} SEQ {{?s :C ?z}}", f"{{{RENAMED} FILTER(?a > ?c)}} SEQ {{?b :D ?z}}", [], id="not with another"),
    pytest.param("{?s :A ?x} SEQ {?s :B ?x}", "{?s :A ?x} SEQ {?s :B ?y}", [], id="not with other keys"),
    pytest.param("?s :A ?x . ?s :B ?y . ?s :C ?z", "?t :A ?x . ?t :B ?y . ?t :D ?z", [2], id="triple patterns of a group"),
    pytest.param(
        f"{PREFIX} WITHOUT {{?s :C ?z}}", f"{{{RENAMED}}} SEQ {{?b :C ?z}} WITHOUT {{ {PREFIX} SEQ {{?s :D ?x}} }}", [2], id="inside a negative part"
    ),
    pytest.param(f"{{{PREFIX}}} UNION {{{RENAMED}}}", "?s :Z ?x", [2], id="twice in one query"),
    pytest.param(
        *[f"{{?s :A ?x}} SEQ {{ {{{PREFIX}}} AND {{?s :C ?z}} }} WITHIN 3"] * 2, [2], id="whole queries, of which one part waits for another"
    ),
    pytest.param("{?s :A ?x} SEQ {?s :B ?y ; :C ?z}", "{?s :D ?x} SEQ {?s :B ?y ; :C ?z}", [], id="not a part that waits for another"),
    pytest.param("{?s :A ?x} MEETS {?s :B ?y}", "{?s :A ?x} SEQ {?s :B ?y}", [], id="not of another relation"),
]


@pytest.mark.parametrize(("one", "other", "readers"), EQUAL)
def test_equal_subpatterns_are_shared(one: str, other: str, readers: list[int]) -> None:
    log = RegistrationLog()
    log.register("one", text(one))
    log.register("other", text(other))
    assert shares_of(log) == readers


def test_an_engine_that_shares_nothing_carries_out_each_query() -> None:
    log = RegistrationLog()
    log.engine.registry.shares = False
    log.register("one", text(PREFIX))
    log.register("other", text(RENAMED))
    assert shares_of(log) == []
    assert [row[0] for row in log.send("A(1)@1 B(2)@2")] == ["one", "other"]


def test_goals_are_kept_once_and_counted_for_each_as_if_it_were_alone() -> None:
    log, alone = RegistrationLog(), RegistrationLog()
    queries = [log.register(f"q{k}", text(f"{PREFIX} SEQ {{?s :C{k} ?z}}")) for k in range(3)]
    one = alone.register("q0", text(f"{PREFIX} SEQ {{?s :C0 ?z}}"))
    for part in (log, alone):
        part.send(" ".join(f"A(1)@{k} B(2)@{k}" for k in range(1, 5)))
    for query in queries:
        assert log.engine.registry.usage(query) == alone.engine.registry.usage(one)
        assert log.engine.registry.progress(query) == alone.engine.registry.progress(one)
    in_common = [each for each in log.engine.registry.progress(queries[0]) if each.keeps][1].sides[0].goals
    assert log.engine.goals == 3 * alone.engine.goals - 2 * in_common


def test_who_goes_leaves_the_others_what_they_have() -> None:
    log = RegistrationLog()
    log.register("stays", text("?s :Z ?x"))
    queries = [log.register(f"q{k}", text(f"{PREFIX} SEQ {{?s :C ?z}}")) for k in range(3)]
    log.send("A(1)@1 B(2)@2")
    for query in queries[:2]:
        log.drop(query)
    assert shares_of(log) == [1]
    assert [row[0] for row in log.send("C(3)@3")] == ["q2"]
    log.drop(queries[2])
    assert shares_of(log) == []
    assert log.engine.goals == 0


def test_who_comes_later_sees_nothing_from_before_and_shares_when_that_is_gone() -> None:
    log = RegistrationLog()
    log.register("early", text(f"{PREFIX} WITHIN 4"))
    assert log.send("A(1)@1") == []
    log.register("late", text(f"{RENAMED} WITHIN 4"))
    assert [row[0] for row in log.send("B(2)@2")] == ["early"]
    assert shares_of(log) == []
    log.send("A(2)@8")
    log.send("A(3)@12")
    log.send("A(4)@12")
    assert shares_of(log) == [2]
    assert [row[0] for row in log.send("B(2)@13")] == ["early", "early", "late", "late"]


# ---------------------------------------------------------------- nobody can tell
QUERIES = [
    text(f"{PREFIX} SEQ {{?s :C ?z}} WITHIN 4"),
    text(f"{RENAMED} SEQ {{?b :C ?z}} WITHIN 4"),
    text(f"{{{PREFIX} WITHIN 4}} SEQ {{?s :A ?z}}"),
    text(f"{PREFIX} SEQ {{?s :C ?z}}"),
    text(f"{RENAMED}"),
    text(f"{{{RENAMED}}} OPTIONAL {{?b :C ?z FILTER(getDURATION() < 'PT3S'^^xsd:duration)}}"),
    text(f"{{{PREFIX}}} UNION {{{RENAMED}}}"),
    text("?s :A ?x . ?s :B ?y . ?s :C ?z FILTER(getDURATION() = 'PT1S'^^xsd:duration)"),
    text("?s :A ?x . ?s :B ?y . ?s :D ?z FILTER(getDURATION() < 'PT3S'^^xsd:duration)"),
    text("{?s :A ?x} SEQ {?s :B ?y FILTER(?y > 1)} SEQ {?s :C ?z} FILTER(REGEX(STR(?z), '1') || ?x < ?y)"),
    f"CONSTRUCT {{ ?s :C ?x }} WHERE {{ {PREFIX} WITHIN 3 }}",
    f"SELECT ?s (COUNT(*) AS ?n) WHERE {{ {PREFIX} WITHIN 3 }} GROUP BY ?s",
]
ACTS = st.one_of(
    st.tuples(st.just("register"), st.integers(0, len(QUERIES) - 1), st.sampled_from([0, 0, 2, 5])),
    st.tuples(st.just("register"), st.integers(0, len(QUERIES) - 1), st.sampled_from([0, 0, 2, 5])),
    st.tuples(st.just("send"), st.text("ABCD", min_size=1, max_size=4), st.integers(0, 2)),
    st.tuples(st.just("send"), st.text("ABCD", min_size=1, max_size=4), st.integers(0, 2)),
    st.tuples(st.just("drop"), st.integers(0, 9), st.none()),
    st.tuples(st.just("restore"), st.none(), st.none()),
    st.tuples(st.just("fact"), st.sampled_from("AABD"), st.booleans()),
)


class Played:
    """An engine that is told to do what a list of acts says; `max_delay` lets occurrences wait for time."""

    def __init__(self, *, shares: bool, delay: int) -> None:
        self.engine, self.shares, self.delay, self.now, self.queries = Engine(), shares, delay, 1, list[int]()
        self.engine.registry.shares = shares
        self.found: list[object] = []
        self.changes: list[StateChange] = []
        self.most = 0

    def put(self, entry: Entry, feed: str = "") -> None:
        outcome = self.engine.feed(block([(replace(entry, offset=self.engine.position), tuple(parse_feed(feed)))]))
        self.found += outcome.solutions.to_pylist()
        self.changes += outcome.changes
        self.most = max(
            [self.most, *(len(share.readings) for member in self.engine.registry.members for share in member.network.host.shares.numbered.values())]
        )

    def do(self, act: Sequence[object]) -> None:
        match act:
            case ("register", int(which), int(quota)):
                self.queries.append(self.engine.position)
                self.put(Register(0, f"q{self.engine.position}", PREFIXES + QUERIES[which], max_derivations=100, max_goals=quota))
            case ("send", str(names), int(step)):
                self.now += step
                feed = " ".join(f"{name}(s{k % 2},{(k + self.now) % 3})@{self.now}" for k, name in enumerate(names))
                self.put(Events(0, "default", len(names), (self.now - self.delay) * SECOND), feed)
            case ("drop", int(which), _) if self.queries:
                self.put(Drop(0, self.queries.pop(which % len(self.queries)), ""))
            case ("restore", _, _):
                self.engine = Engine.restore(self.engine.snapshot())
                self.engine.registry.shares = self.shares
            case ("fact", str(name), bool(there)):
                self.put(Facts(0, EXAMPLE + "g", f"<{EXAMPLE}s0> <{EXAMPLE}{name}> <{EXAMPLE}s1> .\n" if there else ""))
            case _:
                pass

    def ended(self) -> list[tuple[str, str, int]]:
        """Queries that failed, with the entries: of one entry, which comes first may differ, and by how much it is
        beyond its quota.
        """
        return sorted((change.name, change.state, change.entry) for change in self.changes)

    def usages(self) -> list[object]:
        return [self.engine.registry.usage(registered) for registered in self.queries if registered in self.engine.registry.registered]


@settings(deadline=None)
@given(st.lists(ACTS, min_size=4, max_size=24), st.sampled_from([0, 0, 2]))
def test_queries_that_share_are_as_queries_that_do_not(acts: list[Sequence[object]], delay: int) -> None:
    sharing, alone = Played(shares=True, delay=delay), Played(shares=False, delay=delay)
    for act in [("register", 0, 0), ("register", 1, 0), *acts, ("send", "ABCD", 9), ("send", "ABC", 1), ("send", "ABC", 1)]:
        for played in (sharing, alone):
            played.do(act)
        assert sharing.found == alone.found, act
        assert sharing.ended() == alone.ended(), act
        assert sharing.usages() == alone.usages(), act
    assert sharing.most >= 2
    assert not alone.most
    assert sharing.engine.goals <= alone.engine.goals


def test_a_quota_stops_its_query_and_not_those_that_share_with_it() -> None:
    """At the very entry at which it would stop alone."""
    log = Played(shares=True, delay=0)
    log.do(("register", 3, 6))
    log.do(("register", 3, 0))
    alone = Played(shares=False, delay=0)
    alone.do(("register", 3, 6))
    alone.do(("register", 3, 0))
    for _ in range(6):
        for played in (log, alone):
            played.do(("send", "AAB", 1))
    assert [(change.state, change.entry) for change in log.changes] == [(change.state, change.entry) for change in alone.changes]
    assert [change.name for change in log.changes] == ["q0"]
    assert [len(share.readings) for member in log.engine.registry.members for share in member.network.host.shares.numbered.values()] == [1]


def test_networks_without_company_have_no_shares() -> None:
    assert Network(Engine().registry.terms).host.shares.numbered == {}


def test_where_all_queries_have_failed_the_instant_that_has_begun_is_kept() -> None:
    log = Played(shares=True, delay=0)
    acts = [
        ("register", 0, 2),
        ("register", 0, 2),
        ("send", "DA", 0),
        ("send", "DBAC", 0),
        ("send", "B", 2),
        ("restore", None, None),
        ("restore", None, None),  # into a network that never had a query
        ("send", "A", 1),
    ]
    for act in acts:
        log.do(act)
    assert [change.state for change in log.changes] == ["failed", "failed"]
    assert not log.engine.registry.registered
