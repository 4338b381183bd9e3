"""A query over what windows hold is solved again and again, each time as if it were the first."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import epsparql
from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.engine import Engine
from engine.errors import SolverStopped
from engine.expressions.nondeterministic import NAMELESS
from engine.kernel.state import layout as c
from engine.network.window_subquery import WindowSolver
from epsparql import algebra as a
from epsparql.algebra import DEFAULT_STREAM
from tests.engine.network.books import check_books
from tests.engine.network.test_planning import changed
from tests.engine.runtime.test_engine import Log
from tests.support.feeds import PREFIXES, SECOND, parse_feed

Ints = NDArray[np.int64]


def solver_of(text: str, known: FactIndex | None = None) -> WindowSolver:
    query = epsparql.parse(PREFIXES + text).query
    assert isinstance(query, a.Select)
    index = FactIndex(Engine().registry.terms) if known is None else known
    return WindowSolver(index.terms, query, index, "unrestricted", NAMELESS)


def contents(terms: TermTable, **windows: str) -> Mapping[str, Ints]:
    """Each window has rows of s, p, o and no graph."""
    rows = {name: [[terms.intern(str(term)) for term in o.triple] + [0] for o in parse_feed(feed)] for name, feed in windows.items()}
    return {name: np.array(held, np.int64).reshape(-1, 4) for name, held in rows.items()}


def solved(solver: WindowSolver, feed: str, now: int = 7) -> list[list[str]]:
    """The solutions' terms, without their ranks."""
    terms = solver._host.arrays.terms
    return sorted(
        [terms.text(term) if term else "" for term in row[1:]]
        for row in solver.solve_contents(contents(terms, **{DEFAULT_STREAM: feed}), now * SECOND).tolist()
    )


def integers(rows: Sequence[Sequence[int | None]]) -> list[list[str]]:
    return sorted(["" if n is None else f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in row] for row in rows)


SOLVED = [
    pytest.param("SELECT ?x ?y WHERE { ?s :A ?x . ?s :B ?y }", [("A(1)@1 A(2)@1 B(3)@1", [[1, 3], [2, 3]]), ("A(4)@1", []), ("A(2)@1 B(3)@1", [[2, 3]])], id="a join"),
    pytest.param("SELECT ?x ?z WHERE { ?s :A ?x }", [("A(1)@1", [[1, None]]), ("", []), ("A(2)@1", [[2, None]])], id="a variable that is never bound"),
    pytest.param("SELECT ?x WHERE { ?s :A ?x MINUS { ?s :B ?x } }", [("A(1)@1 A(2)@1 B(1)@1", [[2]]), ("A(1)@1 B(2)@1", [[1]])], id="what is decided at the close"),
    pytest.param("SELECT ?x ?y WHERE { ?s :A ?x OPTIONAL { ?s :B ?y } }", [("A(1)@1", [[1, None]]), ("A(1)@1 B(2)@1", [[1, 2]])], id="OPTIONAL"),
    pytest.param("SELECT (COUNT(*) AS ?n) WHERE { ?s :A ?x }", [("A(1)@1 A(2)@1", [[2]]), ("A(3)@1", [[1]]), ("A(1)@1 A(2)@1", [[2]])], id="a collector"),
    pytest.param("SELECT ?x WHERE { ?s :A ?x } ORDER BY ?x LIMIT 1", [("A(2)@1 A(1)@1", [[1]]), ("A(5)@1 A(7)@1", [[5]])], id="LIMIT"),
    pytest.param("SELECT ?x WHERE { ?s :A ?x FILTER(REGEX(STR(?x), '^1')) }", [("A(1)@1 A(2)@1", [[1]]), ("A(12)@1 A(1)@1", [[1], [12]])], id="questions"),
    pytest.param("SELECT ?x ?y WHERE { VALUES ?x { 1 2 } ?s :A ?y }", [("A(5)@1", [[1, 5], [2, 5]])] * 2, id="what is timeless"),
    pytest.param("SELECT ?a ?f WHERE { ?s :A ?a ; :B ?b ; :C ?c ; :D ?d ; :E ?f }", [("A(1)@1 B(2)@1 C(3)@1 D(4)@1 E(5)@1", [[1, 5]])] * 2, id="many variables"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "steps"), SOLVED)
def test_each_time_is_as_the_first(text: str, steps: Sequence[tuple[str, Sequence[Sequence[int | None]]]]) -> None:
    solver = solver_of(text)
    for now, (feed, rows) in enumerate(steps):
        assert solved(solver, feed, now) == integers(rows)
        assert not solver._host.failures


def test_what_a_window_of_another_name_holds_is_not_looked_at() -> None:
    solver = solver_of("SELECT ?x WHERE { ?s :A ?x }")
    terms = solver._host.arrays.terms
    assert solver.solve_contents(contents(terms, other="A(1)@1"), 1).tolist() == []
    held = contents(terms, **{DEFAULT_STREAM: "A(1)@1", "other": "A(2)@1"})
    assert [terms.text(row[1]) for row in solver.solve_contents(held, 1).tolist()] == integers([[1]])[0]


def test_ranks_come_with_the_order() -> None:
    solver = solver_of("SELECT ?x WHERE { ?s :A ?x } ORDER BY DESC(?x)")
    terms = solver._host.arrays.terms
    for _ in range(2):
        rows = solver.solve_contents(contents(terms, **{DEFAULT_STREAM: "A(1)@1 A(3)@1 A(2)@1"}), SECOND)
        assert [[terms.text(row[1])] for row in rows[np.argsort(rows[:, 0])].tolist()] == [integers([[n]])[0] for n in (3, 2, 1)]


def test_the_background_is_there_each_time() -> None:
    known = changed(FactIndex(Engine().registry.terms), [("", "s K k", "add")])
    solver = solver_of("SELECT ?x ?k WHERE { ?s :A ?x . ?s :K ?k }", known)
    for _ in range(2):
        assert [row[1] for row in solved(solver, "A(1)@1")] == ["<http://example.org/k>"]


WINDOW = "SELECT ?x ?y FROM NAMED WINDOW :w ON <default> [RANGE PT4S STEP PT1S] { WINDOW :w { ?s :A ?x . ?t :B ?y FILTER(?x + ?y > 9) } }"


def test_a_query_whose_window_multiplies_is_stopped_and_says_so() -> None:
    """It would take solutions for all that are not."""
    solver = solver_of("SELECT ?x ?y WHERE { ?s :A ?x . ?t :B ?y }")
    solver._clean["at"][[c.MOST_MADE, c.MOST_NOW]], solver._clean["at"][c.MOST_EACH] = 100, 0
    assert solved(solver, "A(1)@1 B(9)@1") == integers([[1, 9]])
    many = " ".join(f"A({k})@1 B({k})@1" for k in range(40))
    with pytest.raises(SolverStopped, match="took more than 100 steps at one instant"):
        solved(solver, many)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("engine.kernel.state.arrays.MOST_AT_ONCE", 100)
        patched.setattr("engine.kernel.state.arrays.MOST_EACH", 0)
        log = Log(Engine())
        log.register("other", "SELECT ?x WHERE { ?s :A ?x FILTER(?x = 1) }")
        log.register("windows", WINDOW)
        log.send("A(1)@1 B(9)@1")
        assert [row[0] for row in log.send("Z@2")] == ["windows"]
        log.send(many.replace("@1", "@2"))
        log.send("A(1)@5")
        check_books(log.engine)
    assert log.failed.keys() == {"windows"}
    assert "took more than 100 steps at one instant" in log.failed["windows"]
    assert [row[0] for row in log.send("A(1)@6 B(9)@6 Z@9")] == ["other"]
