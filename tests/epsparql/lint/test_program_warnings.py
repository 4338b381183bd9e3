"""Doubts about programs, each with its code and its place: what can never match, what contradicts itself, and slips."""

from pathlib import Path

import pytest

import epsparql
from epsparql.etalis.translator import query_text
from epsparql.solutions.policies import UNRESTRICTED
from tests.etalis.programs import run_program

QUIET = ("no-policy", "no-trigger", "unbounded-state")


def find_doubts(program: str, codes: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """Return code, place as `line:column`, and message of the doubts; those that nearly every program has are left out."""
    text, _ = query_text(program, UNRESTRICTED)
    found = [each for each in epsparql.parse(text).warnings if (each.code in codes if codes else each.code not in QUIET)]
    return [(each.code, ":".join(map(str, each.span.place(text))) if each.span else "", each.message) for each in found]


NEVER = "nothing matches here"
IMPOSSIBLE = [
    pytest.param("e <- (a seq b).0.", "1:16", f"{NEVER}: a result lasts at least 0.000001 s, and the window is 0 s: make the window longer", id="a seq at one instant"),
    pytest.param("e <- (5 seq a seq 30).10.", "1:23", f"{NEVER}: a result lasts at least 25 s, and the window is 10 s: make the window longer", id="instants too far apart"),
    pytest.param("e <- 9 seq a seq 5.", "1:14", f"{NEVER}: what stands on the left of seq never ends before what stands on its right begins", id="instants in the wrong order"),
    pytest.param("e <- 9 seq 5.", "1:8", f"{NEVER}: what stands on the left of seq never ends before what stands on its right begins", id="two instants"),
    pytest.param("e <- a and (b par 7).", "1:15", f"{NEVER}: the sides of par never share more than a point", id="an instant is a point"),
    pytest.param("e <- 5 ntimes 2.", "1:8", f"{NEVER}: an instant comes once", id="an instant comes once"),
    pytest.param("e <- (a during b) within 0.", "1:26", f"{NEVER}: a result lasts at least 0.000002 s, and the window is 0 s: make the window longer", id="during at one instant"),
    pytest.param(
        "exceptionAlarm(alarm(X), 10) <- a(X).\nw : e(X) <- alarm(X) and b(X).\nevent_rule_property(w, event_rule_window, 5).", "2:5",
        f"{NEVER}, unless alarm/1 is also sent: a result lasts at least 10 s, and the window is 5 s: make the window longer", id="the window of a label, and an alarm",
    ),
    pytest.param("e(N) <- aggregate(count, (9 seq a seq 5), N).", "1:35", f"{NEVER}: what stands on the left of seq never ends before what stands on its right begins", id="inside of an aggregate"),
    pytest.param("e <- a or (b meets 4) or ((7 meets b) seq c).0.", "1:46", f"{NEVER}: a result lasts at least 0.000001 s, and the window is 0 s: make the window longer", id="an alternative"),
]  # fmt: skip
POSSIBLE = [
    "e <- (a seq b).1. f <- a and b within 0. g <- (a equals b).0. h <- (5 seq a seq 30).25.",
    "exceptionAlarm(alarm(X), 10) <- a(X). e(X) <- (alarm(X) and b(X)).10. f(X) <- (a(X) or alarm(X)).5.",
    "prefix(tr, 'http://e/'). e(X) <- (tr:p(X) seq a).0.",
    "e(X) <- (e(X) seq a(X)).1. e(X) <- b(X).",
    "e(X) <- (a(X) seq b(X) star_times).0. f(X, N) <- (a(X) seq aggregate(count, b(_), N)).0.",
    "e(N) <- aggregate(count, (a seq b), N) within 1. f(N) <- aggregate(count, (a(X) where X > 1), N).",
    "e <- (a meets b).0. f <- (a starts b).1ms. g <- NOT(c).[5, 9].",
    "exceptionAlarmAbsoluteDatime(late, 20) <- a. e <- (late and b).1.",
]


@pytest.mark.parametrize(("program", "place", "message"), IMPOSSIBLE)
def test_what_nothing_can_match_is_told_at_its_operator(program: str, place: str, message: str) -> None:
    assert find_doubts(program) == [("never-matches", place, message)]


@pytest.mark.parametrize("program", POSSIBLE)
def test_what_may_match_is_not_doubted(program: str) -> None:
    assert find_doubts(program) == []


@pytest.mark.parametrize(
    ("program", "place", "parts"),
    [
        ("e(X) <- a(X) where X > 5, X < 3.", "1:27", "X > 5 and X < 3 contradict each other"),
        ("e(X) <- (a(X) where X >= 5) seq (b(X) where X =< 4.5).", "1:45", "X >= 5 and X =< 4.5 contradict each other"),
        ("e(X) <- a(X) where Y is 4, X > Y, Y =:= 5.", "1:35", "Y is 4 and Y =:= 5 contradict each other"),
        ("e(X) <- a(X) where (X > 5 ; X > 7), X < 3.", "1:37", "X > 5 ; X > 7 and X < 3 contradict each other"),
        ("e(X) <- b(X) or\n  (a(X) where X < Y, Y < X, Y is 2).", "2:22", "X < Y and Y < X contradict each other"),
        ("e(X) <- a(X) where X + 1 > -2, X + 1 < -3.", "1:32", "X + 1 > -2 and X + 1 < -3 contradict each other"),
    ],
)
def test_conditions_that_contradict_each_other(program: str, place: str, parts: str) -> None:
    assert find_doubts(program) == [("never-true", place, f"these conditions are never all true: {parts}")]


@pytest.mark.parametrize(
    "program",
    [
        "e(X) <- (a(X) where X > 5) or (b(X) where X < 3).",
        "e(X) <- ((a(X) where X > 5) seq b(X)) cnot (c(X) where X < 3).",
        "e(X) <- a(X) where \\+ (X > 5), \\+ (X =< 5).",
        "e(X) <- a(X) where (X > 5 ; X < 3), X > 2.",
        "e(X) <- (a(X) where X > 5) fnot (b(X) where X < 3).",
    ],
)
def test_conditions_that_may_be_true(program: str) -> None:
    assert find_doubts(program) == []


def test_no_number_passes_a_negated_comparison(tmp_path: Path) -> None:
    (line,) = run_program(tmp_path, "e(X) <- a(X) where \\+ (X > 5), \\+ (X =< 5).", "event(a(x), 1). event(a(7), 2).")
    assert line.args == '["x"]', "so the third program above is not doubted"


@pytest.mark.parametrize(
    ("program", "doubt"),
    [
        ("e(Share) <- price(Share, Price) where Prise > 3, Prise is 4, Price < 3.", None),
        (
            "e(Share) <- price(Share) seq sold(Shrae, 1).",
            ("near-variable", "1:35", "Shrae stands only here, so it equals nothing else; was Share meant?"),
        ),
        ("e(Share) <- price(Share) seq sold(_Shrae, 1).", None),
        (
            "rise(X, Y) <- price(X) seq price(Y).\nprint_trigger(rise/3).",
            ("near-event", "2:19", "no rule derives rise/3, so it is reported only if it is sent; was rise/2 meant?"),
        ),
        (
            "steep(X) <- rise(X) seq rise(X, _).\nrise(X, Y) <- price(X) seq price(Y).",
            ("near-event", "1:13", "no rule derives rise/1; was rise/2 meant?"),
        ),
        ("alarms(X) <- a(X).\ne(X) <- alarm(X) seq b(X).", ("near-event", "2:9", "no rule derives alarm/1; was alarms/1 meant?")),
        ("price(X) <- price(X, _).\ne(X) <- price(X).", None),
    ],
)
def test_names_that_are_probably_slips(program: str, doubt: tuple[str, str, str] | None) -> None:
    assert [each for each in find_doubts(program) if each[0].startswith("near-")] == ([] if doubt is None else [doubt])
