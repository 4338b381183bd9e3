"""Rows that differ in one place alone stand on different chains of the kernel's hash tables: else each row would be
compared with all others.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.engine import Engine
from engine.kernel.state import layout as c
from tests.engine.network.books import check_books
from tests.engine.runtime.test_engine import Log

MANY = 300
LONGEST = 8
"""Of so many rows that are dealt out by chance over as many chains, hardly ever more come to one."""
NAMES = "ABCDEF"
PARTS = " . ".join(f"?s :{name} ?{name.lower()}" for name in NAMES)


def longest(hashes: NDArray[np.int64]) -> int:
    """The longest of 512 chains."""
    return int(np.bincount(hashes & 511).max())


@pytest.mark.parametrize("varying", NAMES)
def test_solutions_that_differ_in_one_variable(varying: str) -> None:
    log = Log(Engine())
    log.register("q", f"SELECT * WHERE {{ {{ {PARTS} }} UNION {{ {PARTS} }} }}")
    log.send(" ".join(f"{name}(0)@1" for name in NAMES if name != varying))
    assert len(log.send(" ".join(f"{varying}({k})@2" for k in range(MANY)))) == MANY
    net = log.engine.registry.members[0].network.net
    assert net.at[c.SEEN_N] >= MANY
    assert longest(net.seen[: net.at[c.SEEN_N], c.SEEN_HASH]) <= LONGEST * net.at[c.SEEN_N] // MANY
    check_books(log.engine)


def test_solutions_that_differ_in_their_start() -> None:
    log = Log(Engine())
    log.register("q", "SELECT ?s WHERE { { { ?s :A ?x } UNION { ?s :C ?x } } SEQ { ?s :B ?y } }")
    log.send(" ".join(f"A(1)@{k / 1000}" for k in range(MANY)))
    assert len(log.send("B(1)@9")) == MANY
    net = log.engine.registry.members[0].network.net
    assert net.at[c.SEEN_N] >= MANY
    assert longest(net.seen[: net.at[c.SEEN_N], c.SEEN_HASH]) <= LONGEST


@pytest.mark.parametrize(("text", "feed"), [("{?s :A ?x} SEQ {?s :B ?y}", "A(s{},1)@1"), ("{?s :A ?x . ?t :A ?x} SEQ {?t :B ?x}", "A(s,{})@1")])
def test_goals_of_different_keys(text: str, feed: str) -> None:
    log = Log(Engine())
    log.register("q", f"SELECT * WHERE {{ {text} }}")
    log.send(" ".join(feed.format(k) for k in range(MANY)))
    net = log.engine.registry.members[0].network.net
    stores = np.flatnonzero(net.stores[:, c.COUNT] >= MANY).tolist()
    assert stores
    for store in stores:
        goals, goal = [], net.stores[store, c.HEAD]
        while goal != c.NONE:
            goals.append(goal)
            goal = net.rows["queue"][goal]
        assert longest(net.rows["hash"][goals]) <= LONGEST
    check_books(log.engine)


def test_goals_of_one_key_in_different_stores_are_apart() -> None:
    """All stores share one table."""
    log = Log(Engine())
    for k in range(MANY // 10):
        log.register(f"q{k}", f"SELECT * WHERE {{ {{?s :A ?x}} SEQ {{?s :B{k} ?y}} }}")
    log.engine.registry.members[0].network.arrays.spread_heads()
    log.send("A(1)@1")
    net = log.engine.registry.members[0].network.net
    heads = [net.stores[store, c.HEAD] for store in np.flatnonzero(net.stores[:, c.COUNT]).tolist()]
    assert len(heads) == MANY // 10
    assert longest(net.rows["hash"][heads]) <= 4


def test_questions_that_differ_in_one_argument() -> None:
    log = Log(Engine())
    log.register("q", "SELECT * WHERE { { ?s :A ?x } SEQ { ?s :B ?y } FILTER(REGEX(STR(?x + ?y), 'z')) }")
    log.send(" ".join(f"A({k})@1" for k in range(MANY)))
    log.send("B(1)@2")
    net = log.engine.registry.members[0].network.net
    assert net.at[c.ASKED] >= MANY
    assert longest(net.questions[: net.at[c.ASKED], c.ASK_HASH]) <= LONGEST
