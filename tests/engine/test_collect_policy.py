"""The collector of the consumption policies: instants in parts, what it keeps, and what it says of itself."""

import json
from collections.abc import Sequence

import pytest

from engine.collect.policy import Absent, PolicyCollector
from engine.collect.rows import Rows, rows_of
from engine.kernel import columns as c
from engine.terms import TermTable
from epsparql.terms import Variable

S, A, B = map(Variable, "sab")
ABSENT = Variable("_:absent")
Row = tuple[int, int, str, str, str]
"""Start, end, and the texts of ?s, ?a (`absent`: one of what may not lie between) and ?b, empty for unbound."""
ALWAYS = (c.BIG, -c.BIG)


class Case:
    """A collector of SEQ over ?s, with terms of its own."""

    def __init__(self, policy: str, relation: int = c.SEQ, span: int = c.FOREVER, certain: bool = True, without: bool = False) -> None:
        lasting = (relation != c.FINISHES, relation == c.PAR)
        shared = frozenset({S})
        absent = Absent(ABSENT, shared, shared, span) if without else None
        self.collector = PolicyCollector(policy, relation, (A, B, S, ABSENT), shared, shared if certain else frozenset(), lasting, span, absent)
        self.terms = TermTable()

    def at(self, now: int, left: Sequence[Row] = (), right: Sequence[Row] = ()) -> list[tuple[int, int, str]]:
        found = self.collector.decide(now, self._rows(left), self._rows(right), None, self.terms)
        texts = (" ".join(self.terms.texts[k] or "-" for k in cells[:3]) for cells in found.cells.tolist())
        return sorted(zip(found.start.tolist(), found.end.tolist(), texts, strict=True))

    def _rows(self, rows: Sequence[Row]) -> Rows:
        texts = (("", b, s, a) if a == "absent" else (a, b, s, "") for _, _, s, a, b in rows)
        cells = [[self.terms.intern(text) if text else c.UNBOUND for text in row] for row in texts]
        return rows_of([row[0] for row in rows], [row[1] for row in rows], cells, 4)

    def kept(self) -> int:
        return sum(len(part) for side in (self.collector.lefts, self.collector.rights) for part in side.state())


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_an_instant_may_come_in_parts(policy: str) -> None:
    case = Case(policy)
    assert case.at(1, [(1, 1, "s", "1", "")]) == []
    assert case.at(2, [], [(2, 2, "s", "", "5")]) == [(1, 2, "1 5 s")]
    assert case.at(2, [(2, 2, "s", "2", "")]) == []
    assert case.at(2, [], [(2, 2, "s", "", "6")]) == [(1, 2, "1 6 s")]
    assert case.at(3, [], [(3, 3, "s", "", "7")]) == [(2, 3, "2 7 s")]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_goals_are_a_set(policy: str) -> None:
    case = Case(policy)
    case.at(1, [(1, 1, "s", "1", ""), (1, 1, "s", "1", "")])
    assert case.at(2, [], [(2, 2, "s", "", "5"), (2, 2, "s", "", "5")]) == [(1, 2, "1 5 s")]
    assert case.at(2, [], [(2, 2, "s", "", "5")]) == []


def test_recent_keeps_one_goal_of_each_key() -> None:
    case = Case("recent")
    for now in range(100):
        case.at(now, [(now, now, f"s{now % 3}", str(now), "")])
    case.at(100)
    assert case.kept() == 3


def test_recent_forgets_what_a_window_has_left() -> None:
    case = Case("recent", c.PAR, span=5)
    for now in range(100):
        case.at(now, [(now, now, f"s{now}", "1", "")], [(now, now, f"t{now}", "", "1")])
    assert case.kept() == 2 * 6


def test_chronological_keeps_what_is_not_consumed() -> None:
    case = Case("chronological", span=5)
    for now in range(10):
        case.at(now, [(now, now, "s", str(now), "")])
    for now in range(10, 14):
        assert case.at(now, [], [(now, now, "s", "", "b")]) == [(now - 10, now, f"{now - 10} b s")]
    case.at(14)
    assert case.kept() == 6


def test_chronological_serves_each_right_goal_once() -> None:
    case = Case("chronological", c.PAR)
    assert case.at(3, [], [(1, 3, "s", "", "1"), (1, 3, "s", "", "2")]) == []
    assert case.at(4, [(2, 4, "s", "8", ""), (1, 4, "s", "9", "")]) == [(1, 4, "9 1 s"), (1, 4, "9 2 s")]
    assert case.at(5, [(2, 5, "s", "7", "")]) == []


def test_what_may_be_unbound_is_compared_where_it_is_bound() -> None:
    case = Case("recent", certain=False)
    case.at(1, [(1, 1, "", "1", ""), (1, 1, "s", "2", "")])
    case.at(2, [(2, 2, "", "3", "")])
    assert case.at(3, [], [(3, 3, "s", "", "b")]) == [(1, 3, "2 b s"), (2, 3, "3 b s")]
    assert case.at(4, [], [(4, 4, "", "", "b")]) == [(1, 4, "2 b s"), (2, 4, "3 b -")]


def test_timeless_goals_meet_all() -> None:
    case = Case("chronological")
    assert case.at(1, [(*ALWAYS, "s", "0", ""), (1, 1, "s", "1", "")], [(*ALWAYS, "s", "", "9")]) == [(1, 1, "1 9 s"), (*ALWAYS, "0 9 s")]
    assert case.at(2, [], [(2, 2, "s", "", "5")]) == [(1, 2, "1 5 s"), (2, 2, "0 5 s")]
    assert case.at(3, [], [(3, 3, "s", "", "6")]) == [(3, 3, "0 6 s")]
    assert case.at(4, [], [(*ALWAYS, "s", "", "8")]) == [(*ALWAYS, "0 8 s")]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_what_lies_between_two_goals(policy: str) -> None:
    case = Case(policy, without=True)
    case.at(1, [(*ALWAYS, "s", "0", ""), (0, 1, "s", "1", "")], [(0, 1, "s", "absent", "")])
    assert case.at(3, [], [(3, 3, "s", "absent", ""), (2, 3, "s", "", "5")]) == [(0, 3, "1 5 s")], "after a timeless goal anything comes between"
    assert case.at(4, [(4, 4, "s", "2", "")], [(4, 4, "s", "", "6")]) == []
    assert case.at(5, [], [(5, 5, "s", "", "7")]) == [(4, 5, "2 7 s")]
    assert case.at(6, [(6, 6, "s", "3", "")], [(*ALWAYS, "s", "absent", "")]) == []
    assert case.at(7, [], [(7, 7, "s", "", "8")]) == [], "a timeless one always lies between"


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_state_goes_through_json(policy: str) -> None:
    case = Case(policy, c.PAR, span=50)
    case.at(1, [(*ALWAYS, "s", "0", ""), (0, 1, "s", "1", ""), (0, 1, "s", "2", "")], [(*ALWAYS, "s", "", "4"), (0, 1, "s", "", "3")])
    case.at(3, [(0, 3, "s", "5", "")], [(0, 3, "s", "", "6"), (2, 3, "s", "", "7")])
    other = Case(policy, c.PAR, span=50)
    other.terms = case.terms
    other.collector.restore(json.loads(json.dumps(case.collector.state())))
    for now, left, right in (
        (3, (1, 3, "s", "8", ""), (0, 3, "s", "", "9")),
        (9, (2, 9, "s", "1", ""), (0, 9, "s", "", "1")),
        (60, (59, 60, "s", "2", ""), (59, 60, "s", "", "2")),
    ):
        assert other.at(now, [left], [right]) == case.at(now, [left], [right]) != []
        assert other.kept() == case.kept()


def test_it_is_called_for_rows_alone() -> None:
    case = Case("recent")
    assert (case.collector.done, case.collector.due()) == (False, c.FOREVER)
