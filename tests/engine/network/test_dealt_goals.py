"""Limits at their exact value: what the kernel is told of quotas, and how much of everything a query may have before
it is stopped.
"""

from collections.abc import Sequence

import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import Register
from engine.network.network import Network
from engine.state_size import Quota, Usage, goal_bytes
from tests.engine.runtime.test_engine import Log
from tests.engine.runtime.test_quotas import bounded
from tests.support.feeds import PREFIXES, SECOND

PAIRS = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }"
CHAIN = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} }"
OTHER = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :D ?z} }"


def limited(log: Log, name: str, text: str, goals: int = 0, state_bytes: int = 0, derivations: int = 1000) -> int:
    offset = log.engine.position
    log.put(Register(0, name, PREFIXES + text, max_goals=goals, max_state_bytes=state_bytes, max_derivations=derivations))
    return offset


def network_of(log: Log) -> Network:
    (member,) = log.engine.registry.members
    return member.network


def limits(log: Log) -> dict[str, tuple[int, int]]:
    """How many goals each query, and the share, keeps, and when the kernel looks into it."""
    network = network_of(log)
    places = [(planned.source.name, planned.number) for planned in network.planned.values()]
    places += [("share", number) for number in network.host.shares.numbered]
    return {name: (int(row[c.Q_GOALS]), int(row[c.Q_LIMIT])) for name, number in places for row in [network.net.queries[number]]}


ALONE = [
    pytest.param(0, 0, c.FOREVER, id="no quota"),
    pytest.param(7, 0, 7, id="goals"),
    pytest.param(0, 7 * goal_bytes(3), 7, id="bytes"),
    pytest.param(0, 8 * goal_bytes(3) - 1, 7, id="bytes, not quite enough for one more"),
    pytest.param(5, 7 * goal_bytes(3), 5, id="both, fewer goals"),
    pytest.param(9, 7 * goal_bytes(3), 7, id="both, fewer bytes"),
]


@pytest.mark.parametrize(("goals", "state_bytes", "limit"), ALONE)
def test_the_kernel_looks_into_a_query_at_its_quota(goals: int, state_bytes: int, limit: int) -> None:
    log = Log(Engine())
    query = limited(log, "q", PAIRS, goals, state_bytes)
    assert limits(log) == {"q": (0, limit)}
    log.send("A(1)@1 A(2)@2")
    assert limits(log) == {"q": (2, limit)}
    network_of(log).quotas.set_quota(query, *network_of(log).quotas.get_quota(query))
    assert limits(log) == {"q": (2, limit)}
    assert network_of(log).quotas.get_quota(query) == (Quota(goals, state_bytes), 0)
    network_of(log).quotas.set_quota(query, Quota(goals, state_bytes), held=goal_bytes(3))
    assert limits(log) == {"q": (2, limit if not state_bytes else min(limit, state_bytes // goal_bytes(3) - 1))}
    assert network_of(log).quotas.get_quota(query + 99) == (Quota(), 0)


def test_what_is_left_is_dealt_to_those_that_share_in_equal_parts() -> None:
    log = Log(Engine())
    limited(log, "wide", CHAIN, 10)
    limited(log, "idle", "SELECT * WHERE { ?s :Z ?x }", 3)
    assert limits(log)["wide"] == (0, 10)
    limited(log, "narrow", OTHER, 4)
    assert limits(log) == {"wide": (0, 5), "idle": (0, 3), "narrow": (0, 2), "share": (0, 2)}
    log.send("A(1)@1 A(2)@2")
    assert limits(log) == {"wide": (0, 5), "idle": (0, 3), "narrow": (0, 2), "share": (2, 2)}
    log.send("A(3)@3")
    assert limits(log) == {"wide": (0, 3), "idle": (0, 3), "narrow": (0, 0), "share": (3, 3)}
    log.send("A(4)@4")
    assert limits(log) == {"wide": (0, 3), "idle": (0, 3), "narrow": (0, 0), "share": (4, 4)}
    assert not log.failed
    log.send("A(5)@5")
    assert log.failed.keys() == {"narrow"}
    assert "stores 5 partial matches, more than the limit of 4" in log.failed["narrow"]
    assert limits(log) == {"wide": (0, 2), "idle": (0, 3), "share": (5, 7)}
    log.send("A(6)@6 A(7)@7 A(8)@8 A(9)@9 A(10)@10")
    assert log.failed.keys() == {"narrow"}
    log.send("A(11)@11")
    assert log.failed.keys() == {"narrow", "wide"}
    assert limits(log) == {"idle": (0, 3)}


def test_usage_is_as_of_an_instant_that_no_event_of_the_partition_reached() -> None:
    log = Log(Engine())
    query = limited(log, "q", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} WITHIN 5 }")
    other = limited(log, "other", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :D ?z} WITHIN 5 }")
    log.send("A(1)@1 A(2)@4")
    network = network_of(log)
    for registered in (query, other):
        assert network.quotas.measure_usage(registered, -c.BIG) == Usage(2, 2 * goal_bytes(4))
        assert network.quotas.measure_usage(registered, 6 * SECOND) == Usage(2, 2 * goal_bytes(4))
    assert network.quotas.measure_usage(query, 7 * SECOND) == Usage(1, goal_bytes(4))
    assert network.quotas.measure_usage(other, 99 * SECOND) == Usage(0, 0)
    assert network.net.at[c.NOW] == 4 * SECOND


# ---------------------------------------------------------------- collectors
TOTALS = "SELECT ?x (COUNT(*) AS ?n) WHERE { ?s :A ?x } GROUP BY ?x"
TWICE = f"SELECT (MAX(?n) AS ?m) WHERE {{ {{ {TOTALS} }} }} GROUP BY ?x"
BESIDE = "SELECT ?x (COUNT(*) AS ?n) WHERE { {?s :A ?x} SEQ {?s :B ?y} } GROUP BY ?x"


@pytest.mark.parametrize("text", [TOTALS, TWICE, BESIDE])
def test_what_collectors_hold_counts_to_the_byte(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.engine.WEIGHED_EVERY", 1)
    feeds = ["A(1)@1 A(2)@2", "B(1)@3 B(2)@4", "Z@5"]
    alone = Log(Engine())
    query = limited(alone, "q", text)
    assert not network_of(alone).quotas.weighs_collectors
    for feed in feeds:
        alone.send(feed)
    whole = alone.engine.registry.usage(query).state_bytes
    assert whole > 0
    for less in (0, 1):
        log = Log(Engine())
        limited(log, "other", TOTALS.replace(":A", ":C"))
        query = limited(log, "q", text, state_bytes=whole - less)
        assert network_of(log).quotas.weighs_collectors
        for feed in feeds:
            log.send(feed)
        assert log.failed == ({} if not less else log.failed)
        assert ("q" in log.failed) == bool(less)
        if less:
            assert f"keeps {whole} bytes of state, more than the limit of {whole - 1}" in log.failed["q"]
        else:
            planned = network_of(log).planned[query]
            held = network_of(log).collectors.measure_query(query)
            assert network_of(log).quotas.get_quota(query) == (Quota(0, whole), held)
            allowed = (whole - held) // goal_bytes(len(planned.columns))
            assert network_of(log).net.queries[planned.number, c.Q_LIMIT] == allowed


def test_only_queries_with_a_limit_of_bytes_are_weighed() -> None:
    log = Log(Engine())
    query = limited(log, "q", TOTALS, goals=5)
    log.send("A(1)@1")
    network = network_of(log)
    assert not network.quotas.weighs_collectors
    assert list(network.quotas.weigh_collectors()) == []
    assert network.quotas.get_quota(query) == (Quota(5, 0), 0), "not weighed"


# ---------------------------------------------------------------- at one instant
DERIVING = "CONSTRUCT { ?s :N ?m } WHERE { ?s :N ?n FILTER(?n < 5) BIND(?n + 1 AS ?m) }"


@pytest.mark.parametrize("most", [5, 4])
def test_a_rule_may_derive_as_many_triples_as_its_bound(most: int) -> None:
    log = Log(Engine())
    limited(log, "rule", DERIVING, derivations=most)
    found = log.send("N(0)@1")
    assert ("rule" in log.failed) == (most < 5)
    if most < 5:
        assert f"derived more than {most} triples at one instant" in log.failed["rule"]
    else:
        assert len(found) == 5
        assert len(log.send("N(0)@2")) == 5, "each instant counts by itself"


def made(log: Log) -> int:
    (planned, *_) = network_of(log).planned.values()
    return int(network_of(log).net.queries[planned.number, c.Q_MADE])


STEPS = [
    pytest.param(PAIRS, ["A(1)@1 A(2)@1", "B(1)@2 B(2)@2 B(3)@2"], id="pairs"),
    pytest.param("SELECT * WHERE { { ?s :A ?x } OPTIONAL { ?s :B ?y } }", ["A(1)@1 A(2)@1 B(1)@1"], id="what waits for the close"),
]


@pytest.mark.parametrize(("text", "feeds"), STEPS)
def test_a_query_may_take_as_many_steps_as_the_bound(text: str, feeds: Sequence[str]) -> None:
    steps = 0
    for less in (None, 0, 1):
        log = Log(Engine())
        limited(log, "q", text)
        for feed in feeds[:-1]:
            log.send(feed)
        log.send("Z@1")
        if less is not None:
            bounded(log, steps - less)
        log.send(feeds[-1])
        if less is None:
            steps = made(log)
            assert steps > 2
        assert ("q" in log.failed) == bool(less)
        if less:
            assert f"took more than {steps - 1:,} steps at one instant" in log.failed["q"]


def test_a_quota_comes_back_with_a_snapshot() -> None:
    log = Log(Engine())
    limited(log, "wide", CHAIN, 10)
    limited(log, "narrow", OTHER, 4)
    log.send("A(1)@1 A(2)@2 A(3)@3")
    restored = Log(Engine.restore(log.engine.snapshot()))
    restored.marks = dict(log.marks)
    found = limits(restored)
    assert {name: goals for name, (goals, _) in found.items()} == {"wide": 0, "narrow": 0, "share": 3}
    assert found["narrow"][1] == 0
    assert found["share"][1] <= 3, "the kernel may look into it sooner"
    for each in (log, restored):
        each.send("A(4)@4")
        assert not each.failed
        each.send("A(5)@5")
        assert each.failed.keys() == {"narrow"}
