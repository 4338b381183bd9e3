"""The background changes under queries: their programs follow, and what they keep is what it would be if the
background had always been so.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import Entry, Events, Facts, Finish
from epsparql.algebra import DEFAULT_STREAM
from tests.engine.background.test_background_update import (
    ANOTHER_WAY,
    CASES,
    CROSSED,
    MOVED,
    NOTHING_NEW,
    WALKED,
    change,
    copied,
    log_of,
    of_shorthand,
    registered,
)
from tests.engine.network.books import check_books
from tests.engine.runtime.test_engine import Log
from tests.engine.runtime.test_quotas import bounded
from tests.soak import is_full
from tests.support import query_strategies
from tests.support.feeds import EXAMPLE, parse_feed
from tests.support.run_both import blocks, in_order


def rows() -> list[tuple[str, str, str]]:
    """Pattern, feed and changes of the tables of a background that changes."""
    found = [(pattern, feed, changes) for pattern, feed, changes, _ in (case.values for case in CASES)]
    found += [(pattern, "Z@3 p(s,1)@4 p(s,2)@5", changes) for pattern, changes in (case.values for case in MOVED + CROSSED)]
    found += [(pattern, "q(a,b)@3 p(s,1)@4 p(s,2)@5", changes) for pattern, changes in (case.values for case in ANOTHER_WAY + NOTHING_NEW)]
    found += [("?x :at ?p . ?x :road+ ?y", feed, changes) for feed, changes in (case.values for case in WALKED)]
    return [(str(pattern), str(feed), str(changes)) for pattern, feed, changes in found]


def test_the_books_agree_after_each_change() -> None:
    """Changes hold from the next instant on.

    `make soak` has all rows, other runs each third one; their solutions are those of test_background_update.py.
    """
    for k, (pattern, feed, changes) in enumerate(rows()[:: 1 if is_full() else 3]):
        query = f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {pattern} }}"
        log = log_of(query, in_order({DEFAULT_STREAM: parse_feed(feed)}), [change(text) for text in changes.split("|")])
        with copied(k % 2):
            engine = Engine()
            for (entry, _), part in zip(log, blocks(log, range(1, len(log))), strict=True):
                engine.feed(part)
                if isinstance(entry, Events | Finish):
                    check_books(engine)


def kept(parts: Sequence[Entry | str]) -> list[list[str]]:
    """The goals that the joins of a query keep in the end, by side, in any order."""
    log, engine = of_shorthand(parts), Engine()
    for part in blocks(log, range(1, len(log))):
        engine.feed(part)
        check_books(engine)
    (network,) = [member.network for member in engine.registry.members]
    (planned,) = network.planned.values()
    found = []
    for store in range(c.SIDES * planned.at.node, c.SIDES * planned.after.node):
        for goals in network.arrays.read_goals(store, store + 1).values():
            rows = np.concatenate([goals.timed, goals.timeless]).tolist()
            found.append(sorted(f"{row[c.START]} {row[c.END]} {[engine.registry.terms.text(term) for term in row[c.VAR :] if term]}" for row in rows))
    return found


A, B, C, K, L = "?s :A ?a", "?s :B ?b", "?s :C ?c", "?s :K ?k", "?s :L ?l"
STAYS = [
    pytest.param(f"{A} . {K} . {C}", "A@1 C@2", "add K(k)", id="comes"),
    pytest.param(f"{A} . {K} . {C}", "A@1 A(2)@2", "add K(k) K(l)|replace K(l)", id="one of two goes"),
    pytest.param(f"{A} . {K} . {C}", "A@1 A(2)@2", "add K(k)|drop", id="goes"),
    pytest.param(f"{A} . {B} . {K} . {C}", "A@1 B@2 A(2)@3", "add K(k)|add K(l)|replace K(k)", id="among four"),
    pytest.param(f"{A} . {K} . {L} . {C}", "A@1 A(2)@2", "add K(k) L(l)|replace L(l)|add K(x) L(y)", id="two of four"),
    pytest.param(f"{A} . {K} . ?k :L ?l . {C}", "A@1 A(2)@2", "add K(k) L(k,l) L(x,l)|add K(x)|replace K(x) L(x,l)", id="one after the other"),
    pytest.param(f"{{ {A} . {K} . {C} }} UNION {{ {B} . {L} . {C} }}", "A@1 B@2", "add K(k) L(l)|replace L(l)", id="in one part of a UNION"),
    pytest.param(f"{{ {A} . {K} . {C} FILTER(?k != :l) }} SEQ {{ {B} }}", "A@1 A(2)@2", "add K(k) K(l)|replace K(l) K(m)", id="with a filter"),
    pytest.param(f"GRAPH :g {{ {A} . {K} . {C} }}", "g/A@1 A(2)@2 g/A(3)@2", "add g/K(k)|add h/K(l)", id="in a graph"),
    pytest.param(f"{K} . {L} . {C}", "X@1 X@2", "add K(k) L(l)|add K(m)|replace K(m) L(l)", id="what is timeless"),
]  # fmt: skip


@pytest.mark.parametrize("few", [0, 1, 1000])
@pytest.mark.parametrize(("pattern", "feed", "changes"), STAYS)
def test_what_a_join_keeps_is_as_if_the_background_had_always_been_so(pattern: str, feed: str, changes: str, few: int) -> None:
    """The goals, their intervals and their terms."""
    query, events, parts = registered("q", pattern), feed.split(), changes.split("|")
    with copied(few):
        changed = kept([query, "Z@0", *events, *parts, "Z@9"])
        between = kept([query, "Z@0", events[0], *parts, *events[1:], "Z@9"])
        always = kept([*parts, query, "Z@0", *events, "Z@9"])
    assert changed == between == always


@pytest.mark.parametrize(("n", "most"), [pytest.param(20, 1, id="before the first triple"), pytest.param(0, c.CHUNK, id="after some triples")])
def test_a_query_that_is_stopped_amid_the_background_gives_its_rows_back(n: int, most: int) -> None:
    """Its OPTIONAL finds so many goals of the stream, and then more triples of the background than one step takes."""
    facts = "".join(f"<{EXAMPLE}s> <{EXAMPLE}K> <{EXAMPLE}k{k}> .\n" for k in range(2 * c.CHUNK))
    with copied(0):
        log = Log(Engine())
        log.put(Facts(0, "", facts))
        log.register("costly", "SELECT * WHERE { { ?s :A ?a } OPTIONAL { ?s :K ?k FILTER(?k != :z) } }")
        log.send(" ".join([*(f"K(s,x{k})@1" for k in range(n)), "A(s,1)@2"]))
        bounded(log, most)
        log.send("Z@3")
    assert log.failed.keys() == {"costly"}
    check_books(log.engine)
