"""Rows with more results than one step of the kernel makes: it goes on where it stopped, and each pair meets once."""

import pytest

from engine.kernel.state.layout import CHUNK
from tests.engine.semantics.test_operators import agree

N = 2 * CHUNK + 10
EARLY = " ".join(f"A(s,{k})@{k + 1}" for k in range(N))
TOGETHER = " ".join(f"A(s,{k})@1" for k in range(N))

POSITIVE = [
    pytest.param("{ ?s :A ?x } SEQ { ?s :B ?y }", f"{EARLY} B@{N + 5}", N, id="SEQ"),
    pytest.param("{ { ?s :A ?x } SEQ { ?s :B ?y } } SEQ { ?s :C ?z }", f"{EARLY} B@{N + 5} C@{N + 6}", N, id="SEQ SEQ"),
    pytest.param("{ { ?s :A ?x } SEQ { ?s :B ?y } FILTER(?x < 200) }", f"{EARLY} B@{N + 5}", 200, id="filter"),
    pytest.param("{ { ?s :A ?x } SEQ { ?s :B ?y } FILTER(STR(?x) != '7') }", f"{EARLY} B@{N + 5}", N - 1, id="filter of the host's"),
    pytest.param("{ ?s :A ?x } AND { ?s :B ?y }", f"{TOGETHER} B(1)@1 B(2)@1", 2 * N, id="AND at one instant"),
    pytest.param("{ ?s :A ?x } EQUALS { ?s :B ?y }", f"{TOGETHER} B(1)@1 B(2)@1", 2 * N, id="EQUALS"),
    pytest.param("{ { ?s :A ?x } SEQ { ?s :B ?y } } WITHIN 100", f"{EARLY} B@{N + 5}", 96, id="window"),
]
ABSENT = [
    pytest.param("{ { ?s :B ?y } OPTIONAL { ?s :A ?x } }", f"{EARLY} B@{N + 5}", N, id="OPTIONAL"),
    pytest.param(
        "{ { ?s :B ?y } OPTIONAL { ?s :A ?x FILTER(?x < ?y) } }", f"{EARLY} B(200)@{N + 5} B(0)@{N + 6}", 201, id="OPTIONAL with a condition"
    ),
    pytest.param("{ { ?s :B ?y } OPTIONAL { ?s :A ?x FILTER(STR(?x) < STR(?y)) } }", f"{EARLY} B(9)@{N + 5}", 255, id="condition of the host's"),
    pytest.param("{ ?s :A ?x } OPTIONALSEQ { ?s :B ?y }", f"{EARLY} B@{N + 5}", N, id="OPTIONALSEQ"),
    pytest.param("{ { ?s :A ?x } SEQ { ?s :B ?y } WITHOUT { ?s :C ?z } }", f"{EARLY} C@5.5 B@{N + 5}", N - 5, id="WITHOUT, by the right side"),
    pytest.param("{ { ?s :A ?x } SEQ { ?s :B ?y } WITHOUT { ?s :C ?x } }", f"{EARLY} C(7)@{N + 1} B@{N + 5}", N - 1, id="WITHOUT, by the pair"),
    pytest.param("{ { ?s :B ?y } FILTER EXISTS { ?s :A ?x FILTER(STR(?x) = '3') } }", f"{EARLY} B@{N + 5}", 1, id="EXISTS that asks of many"),
]


@pytest.mark.parametrize(("pattern", "feed", "count"), [*POSITIVE, *ABSENT])
def test_more_results_than_a_step_makes(pattern: str, feed: str, count: int) -> None:
    assert agree({"q": f"SELECT * {{ {pattern} }}"}, feed) == {"q": count}


FACTS = " ".join(f"A(s,{k})" for k in range(N))
TIMELESS = [
    pytest.param("{ ?s :A ?x } SEQ { ?s :B ?y }", "B@2", N, id="timeless goals"),
    pytest.param("{ ?s :A ?x } SEQ { ?s :B ?y }", "A(s,0)@1 B@2", N + 1, id="timeless and timed goals"),
    pytest.param("{ { ?s :B ?y } OPTIONAL { ?s :A ?x } }", "B@2", N, id="OPTIONAL"),
    pytest.param("{ { ?s :B ?y } SEQ { ?s :A ?x } WITHOUT { ?s :C ?z } }", "B@2", N, id="WITHOUT"),
    pytest.param("{ { ?s :A ?x } AND { ?s :B ?y } WITHOUT { ?s :C ?z } }", "B@2", N, id="AND ... WITHOUT"),
]


@pytest.mark.parametrize(("pattern", "feed", "count"), TIMELESS)
def test_more_timeless_goals_than_a_step_meets(pattern: str, feed: str, count: int) -> None:
    assert agree({"q": f"SELECT * {{ {pattern} }}"}, feed, FACTS) == {"q": count}


def test_what_arrives_while_a_row_goes_on_meets_it_once() -> None:
    """The rule's triples are goals of the very side that its row is going through, at the same instant."""
    rule = f"CONSTRUCT {{ ?s :A ?z }} {{ {{ ?s :A ?x }} AND {{ ?s :B ?y }} FILTER(?x < {N}) BIND(?x + {N} AS ?z) }}"
    count = agree({"r": rule, "q": "SELECT * { { ?s :A ?x } AND { ?s :B ?y } }"}, f"{TOGETHER} B(1)@1")
    assert count == {"r": N, "q": 2 * N}


@pytest.mark.parametrize("n", [3, 16, 17, 18, 40])
def test_two_derivations_are_one_solution_however_many_there_are(n: int) -> None:
    """Few solutions of an instant are compared with each other, more have a table; both ways of B give the same
    interval.
    """
    starts = " ".join(f"A({k})@{k + 1}" for k in range(n))
    query = "SELECT * { { { ?s :A ?x } SEQ { ?s :B ?y } } SEQ { ?s :C ?z } }"
    assert agree({"q": query, "r": query}, f"{starts} B(1)@50 B(1)@51 C@60 C(2)@60") == {"q": 2 * n, "r": 2 * n}
