"""EQUALSOPTIONAL that asks for pairs with nothing between them: it makes no other pairs, whatever comes and whatever
the background becomes.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.messages import DROP, Events, Facts, Register
from engine.physical_plan.join_trees import Linear, Pairing
from tests.engine.background.test_background_update import agree, change
from tests.soak import examples
from tests.support.feeds import PREFIXES, SECOND, parse_feed
from tests.support.run_both import block

A, B, Z = "?s :A ?a", "?t :B ?b", "?u :Z ?z"


def pairs(left: str, right: str, absent: str, conditions: str = "") -> str:
    """Return the query of left and right solutions with nothing absent between them."""
    both = f"{{ {{ {left} }} SEQ {{ {right} }} }} EQUALSOPTIONAL {{ {{ {left} }} SEQ {{ {absent} }} SEQ {{ {right} }} }}"
    return f"{PREFIXES}SELECT * WHERE {{ {both} FILTER(!BOUND(?z){conditions}) }}"


SHORT = " && getDURATION() < 'PT4S'^^xsd:duration"
BY_HAND = [
    pytest.param(pairs(A, B, Z), "A@1 Z@2 A@3 B@4 Z@5 B@6", "", id="points"),
    pytest.param(pairs(A, B, Z), "A@1-2 A@1-4 Z@3 B@5", "", id="of two that start together the first counts"),
    pytest.param(pairs(A, B, Z), "A@1 Z@3 B@2-5 B@4-5", "", id="of two that end together the later one counts"),
    pytest.param(pairs(A, B, Z), "A@1 B@2-5 B@4-5", "", id="both are one solution"),
    pytest.param(pairs(A, B, Z, SHORT), "A@1 B@4 B@6 A@7 Z@8-9 B@9 B@10", "", id="a window"),
    pytest.param(pairs(A, "?s :B ?b", "?s :Z ?z"), "A(s1,1)@1 Z(s2,1)@2 B(s1,1)@3 Z(s1,1)@4 B(s1,2)@5", "", id="what is absent agrees"),
    pytest.param(pairs(A, B, "?s :Z ?z"), "A(s1,1)@1 Z(s2,1)@2 B(s1,1)@3 Z(s1,1)@4 B(s1,2)@5", "", id="it agrees with the left side alone"),
    pytest.param(pairs(A, B, Z), "A@1 Z@2 A@3 B@4 B@6", "2 add Z(s,1)", id="what is absent always holds from then on"),
    pytest.param(pairs(A, B, Z), "A@1 Z@2 A@3 B@4 B@6", "1 add Z(s,1)|3 drop", id="and no longer"),
    pytest.param(pairs(A, B, Z), "A@1 Z@2 A@3 B@4 B@6", "2 add A(s,7)|4 drop", id="the left side always holds"),
    pytest.param(pairs(A, B, Z), "A@1 Z@2 A@3 B@4 B@6", "2 add B(s,7)", id="the right side always holds"),
    pytest.param(pairs(A, B, Z, SHORT), "A@1 Z@2 A@3 B@4 A@5 B@6", "3 add A(s,7) B(s,8)", id="both do"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "feed", "changes"), BY_HAND)
def test_pairs_are_those_of_the_reference_evaluator(query: str, feed: str, changes: str) -> None:
    found = [change(text) for text in changes.split("|") if text]
    agree(query, parse_feed(feed), found)
    agree(query, parse_feed(feed), found, frozenset(range(1, 12)))


LEFTS = [A, f"{A} . ?s :C ?c", f"{{ {A} }} SEQ {{ ?s :C ?c }}", f"{A} FILTER(?a > 1)"]
RIGHTS = [B, "?s :B ?b", "?s :A ?y", f"{B} . ?t :C ?d"]
ABSENT = [Z, "?s :Z ?z", "?t :Z ?z", "?u :Z ?z . ?u :A ?q", "?s :Z ?z FILTER(?z > 1)"]
OCCURRENCE = st.tuples(st.sampled_from("ABCZ"), st.integers(1, 2), st.integers(1, 2), st.integers(1, 9), st.integers(0, 3))
CHANGE = st.tuples(st.integers(0, 6), st.sampled_from(["add", "add", "drop"]), st.sampled_from("ABCZ"), st.integers(1, 2), st.integers(1, 2))


@settings(deadline=None, max_examples=examples(1_000, 25))
@given(
    st.builds(
        pairs, st.sampled_from(LEFTS), st.sampled_from(RIGHTS), st.sampled_from(ABSENT), st.sampled_from(["", SHORT, " && ?a < ?b", " && ?a > 1"])
    ),
    st.lists(OCCURRENCE, min_size=3, max_size=12),
    st.lists(CHANGE, max_size=3),
    st.frozensets(st.integers(1, 9), max_size=3),
)
def test_random_pairs(
    query: str, events: Sequence[tuple[str, int, int, int, int]], facts: Sequence[tuple[int, str, str, int, int]], cuts: frozenset[int]
) -> None:
    feed = parse_feed(" ".join(f"{name}(s{subject},{value})@{start}-{start + length}" for name, subject, value, start, length in events))
    instants = len({event[3] + event[4] for event in events})
    changes = [
        change(f"{min(at, instants)} {kind} {name}(s{s},{value})" if kind != DROP else f"{min(at, instants)} drop")
        for at, kind, name, s, value in sorted(facts)
    ]
    agree(query, feed, changes, cuts)


def test_the_plan_changes_with_the_background_once() -> None:
    """The plan of the nearest pairs keeps all that the plan as written needs."""
    engine = Engine()
    engine.feed(block([(Register(0, "q", pairs(A, B, Z, SHORT)), ())]))
    member = engine.registry.members[0]

    def shape() -> object:
        return member.network.planned[0].shape

    def send(text: str, at: int) -> int:
        entry = Events(engine.position, "default", 1, at * SECOND)
        return len(engine.feed(block([(entry, tuple(parse_feed(f"{text}@{at}")))])).solutions)

    assert shape() is Pairing.NEAREST
    assert [send("A(s,1)", 1), send("Z(s,1)", 2), send("A(s,2)", 3), send("B(s,1)", 4)] == [0, 0, 0, 0]
    engine.feed(block([(Facts(engine.position, "", "<http://example.org/s> <http://example.org/B> <http://example.org/o> .\n"), ())]))
    assert send("Z(s,2)", 5) == 1, "the pair of the instant before"
    assert shape() is Linear.WRITTEN
    engine.feed(block([(Facts(engine.position, "", "", DROP), ())]))
    assert send("A(s,3)", 6) + send("B(s,2)", 7) + send("B(s,3)", 8) == 1
    assert shape() is Linear.WRITTEN
