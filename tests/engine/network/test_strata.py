"""Negative parts decide in strata, and rules that may feed themselves inside an instant have a bound."""

from collections.abc import Mapping, Sequence

import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import Facts
from engine.network.stratification import Cycle, Wire, find_affected, find_negative_cycle, find_strata, list_onwards
from tests.engine.runtime.test_engine import Log
from tests.support.feeds import EXAMPLE
from verification.definitions.rdfs import RDFS

P, N = c.JOIN, c.MINUS


def wires(*pairs: str) -> list[Wire]:
    """`1>2`, or `1>>2` over a strict edge."""
    ends = [(pair.replace(">>", ">").split(">"), ">>" in pair) for pair in pairs]
    return [Wire(int(source), int(target), strict) for (source, target), strict in ends]


STRATA = [
    pytest.param({1: P, 2: P}, wires("1>2"), {}, {1: 0, 2: 0}, id="nothing is negative"),
    pytest.param({1: P, 2: N, 3: P, 4: N, 5: P}, wires("1>2", "2>3", "3>4", "4>5"), {}, {1: 0, 2: 0, 3: 1, 4: 1, 5: 2}, id="each negative part is one more"),
    pytest.param({1: N, 2: N, 3: N, 4: N}, wires("4>3", "3>2", "2>1"), {}, {4: 0, 3: 1, 2: 2, 1: 3}, id="numbered against their order"),
    pytest.param({1: N, 2: N, 3: P, 4: P}, wires("1>2", "2>4", "3>4", "1>4"), {}, {1: 0, 2: 1, 3: 0, 4: 2}, id="the latest source counts"),
    pytest.param({1: N, 2: P}, wires("1>>2"), {}, {1: 0, 2: 0}, id="a strict edge is for later instants"),
    pytest.param({1: N, 2: P}, wires("1>2", "2>>1"), {}, {1: 0, 2: 1}, id="a strict step breaks a cycle"),
    pytest.param({1: P, 2: P, 3: P}, wires("1>2", "2>3", "3>1"), {}, {1: 0, 2: 0, 3: 0}, id="a positive cycle"),
    pytest.param({1: P, 2: N, 3: P}, wires("9>1", "1>2", "2>3"), {9: 3}, {1: 3, 2: 3, 3: 4}, id="after what is settled"),
    pytest.param({1: P, 2: P}, wires("8>1", "9>1", "1>2"), {8: 1, 9: 4}, {1: 4, 2: 4}, id="after all that is settled"),
    pytest.param({1: N, 2: P}, wires("9>2", "1>2"), {9: 0}, {1: 0, 2: 1}, id="settled before"),
    pytest.param(dict.fromkeys(range(30), c.COLLECT), wires(*(f"{k + 1}>{k}" for k in range(29))), {}, {k: 29 - k for k in range(30)}, id="many"),
]  # fmt: skip


@pytest.mark.parametrize(("kinds", "given", "settled", "expected"), STRATA)
def test_strata(kinds: Mapping[int, int], given: Sequence[Wire], settled: Mapping[int, int], expected: Mapping[int, int]) -> None:
    assert find_strata(kinds, given, settled) == expected


CYCLES = [
    pytest.param({1: N}, wires("1>1"), [1], id="one that feeds itself"),
    pytest.param({1: P, 2: N, 3: P}, wires("1>2", "2>3", "3>1"), [2, 3, 1], id="from the negative part on"),
    pytest.param({1: N, 2: P, 3: P, 4: N}, wires("1>2", "2>3", "3>1", "3>4", "4>3"), [4, 3], id="the shortest"),
    pytest.param({1: N, 2: P, 3: P}, wires("1>2", "2>3", "3>1", "2>1"), [1, 2], id="the shortest way back"),
    pytest.param({1: P, 2: P, 3: N, 4: P}, wires("1>2", "2>1", "2>3", "3>4", "4>3"), [3, 4], id="not a positive one beside it"),
]


@pytest.mark.parametrize(("kinds", "given", "cycle"), CYCLES)
def test_cycles(kinds: Mapping[int, int], given: Sequence[Wire], cycle: list[int]) -> None:
    with pytest.raises(Cycle) as raised:
        find_strata(kinds, given, {})
    assert raised.value.nodes == cycle == find_negative_cycle(kinds, list_onwards(given))


def test_strict_wires_lead_nowhere_inside_an_instant() -> None:
    assert list_onwards(wires("1>2", "1>3", "2>>3")) == {1: [2, 3]}


# ---------------------------------------------------------------- rules that feed themselves
RULES = [
    pytest.param({"r": "CONSTRUCT { ?s :C ?x } WHERE { ?s :A ?x }"}, [], id="nobody reads it"),
    pytest.param({"r": "CONSTRUCT { ?s :A ?y } WHERE { ?s :A ?x BIND(?x + 1 AS ?y) }"}, ["r"], id="it reads what it writes"),
    pytest.param({"r": "CONSTRUCT { ?s :C ?y } WHERE { { ?s :C ?x } SEQ { ?s :A ?y } }"}, [], id="it looks back at what it wrote"),
    pytest.param({"r": "CONSTRUCT { ?s :C ?y } WHERE { { ?s :A ?y } SEQ { ?s :C ?x } }"}, ["r"], id="it ends with what it writes"),
    pytest.param({"r": "CONSTRUCT { ?s :C ?x } WHERE { ?s ?p ?x }"}, ["r"], id="it reads anything"),
    pytest.param({"r": "CONSTRUCT { ?s ?p ?x } WHERE { ?s :A ?x . ?s :P ?p }"}, ["r"], id="it writes anything"),
    pytest.param({"r": "CONSTRUCT { ?s :C ?x } INTO STREAM <e> WHERE { ?s ?p ?x }"}, [], id="into another stream"),
    pytest.param(
        {"a": "CONSTRUCT { ?s :B ?x } WHERE { ?s :A ?x }", "b": "CONSTRUCT { ?s :A ?x } WHERE { ?s :B ?x }", "c": "CONSTRUCT { ?s :D ?x } WHERE { ?s :B ?x }"},
        ["a", "b"], id="two feed each other, and a third",
    ),
    pytest.param(
        {"a": "CONSTRUCT { ?s :B ?x } WHERE { ?s :A ?x }", "b": "CONSTRUCT { ?s :C ?x . ?s :D ?x } WHERE { ?s :B ?x }", "c": "CONSTRUCT { ?s :A ?x } WHERE { ?s :D ?x }"},
        ["a", "b", "c"], id="a circle of three, by the second triple of one",
    ),
    pytest.param(
        {"a": "CONSTRUCT { ?s :B ?x } INTO STREAM <e> WHERE { ?s :A ?x }", "b": "CONSTRUCT { ?s :A ?x } FROM STREAM <e> WHERE { ?s :B ?x }"},
        ["a", "b"], id="over two streams",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "bounded"), RULES)
def test_rules_that_may_feed_themselves_are_bounded(rules: Mapping[str, str], bounded: list[str]) -> None:
    log = Log(Engine())
    for name, text in rules.items():
        log.register(name, text)
    assert bounded_of(log) == bounded


def bounded_of(log: Log) -> list[str]:
    """The queries that have a bound; it is the one that they were registered with."""
    found = list[str]()
    for member in log.engine.registry.members:
        for planned in member.network.planned.values():
            bound = member.network.net.queries[planned.number, c.Q_BOUND]
            assert bound in (1000, c.FOREVER)
            found += [planned.source.name] if bound == 1000 else []
    return sorted(found)


@pytest.mark.parametrize("first", [True, False])
def test_a_rule_that_feeds_itself_by_what_its_triples_entail_is_bounded(first: bool) -> None:
    schema = Facts(0, "", f"<{EXAMPLE}C> <{RDFS}subPropertyOf> <{EXAMPLE}A> .\n")
    log = Log(Engine())
    if first:
        log.put(schema)
    log.register("r", "CONSTRUCT { ?s :C ?x } WHERE { ?s :A ?x }")
    log.register("other", "CONSTRUCT { ?s :D ?x } WHERE { ?s :A ?x }")
    if not first:
        assert bounded_of(log) == []
        log.send("Z@1")
        log.put(schema)
        log.send("Z@2")
    assert bounded_of(log) == ["r"]


def test_who_is_affected_by_a_query_reads_the_stream_that_it_writes() -> None:
    """And each once; a query that writes nothing concerns no other."""
    log = Log(Engine())
    texts = {
        "reads": "SELECT * WHERE { ?s :A ?x }",
        "beside": "CONSTRUCT { ?s :D ?x } INTO STREAM <d> WHERE { ?s :C ?x }",
        "rule": "CONSTRUCT { ?s :B ?x } WHERE { ?s :A ?x }",
        "other": "CONSTRUCT { ?s :C ?x } WHERE { ?s :B ?x }",
    }
    for name, text in texts.items():
        log.register(name, text)
    slots = log.engine.registry.members[0].network.slots
    affected = {each.source.name: [other.source.name for other in find_affected(slots, each)] for each in slots.planned.values()}
    all_but = {name: [name, *(other for other in texts if other != name)] for name in ("rule", "other")}
    assert affected == {"reads": ["reads"], "beside": ["beside"], **all_but}


def test_a_network_has_the_strata_of_one_that_is_made_anew() -> None:
    """A rule that comes later moves the strata of those that read it."""
    texts = {
        "last": "SELECT * WHERE { { ?s :E ?x } MINUS { ?s :B ?x } }",
        "rule": "CONSTRUCT { ?s :E ?x } WHERE { { ?s :D ?x } OPTIONAL { ?s :C ?y } }",
        "start": "CONSTRUCT { ?s :D ?x } WHERE { { ?s :A ?x } MINUS { ?s :B ?x } }",
    }
    found = []
    for order in (list(texts), list(reversed(texts))):
        log = Log(Engine())
        for name in order:
            log.register(name, texts[name])
        (network,) = [member.network for member in log.engine.registry.members]
        found.append({p.source.name: network.net.nodes[p.at.node : p.after.node, c.STRATUM].tolist() for p in network.planned.values()})
        assert sorted(row[0] for row in [*log.send("A(1)@1"), *log.send("Z@2")]) == ["last", "rule", "start"]
    assert found[0] == found[1]
    assert [max(found[0][name]) for name in ("start", "rule", "last")] == [1, 2, 3]
