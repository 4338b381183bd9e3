"""Conditions that rest on themselves and get their inputs from events, as lists that events bring."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.messages import Events, Finish, Register
from epsparql.etalis.parser.program import read_program
from epsparql.etalis.streams import read_stream
from epsparql.etalis.translator import query_text
from epsparql.ntriples import parse_term
from epsparql.terms import Iri, Literal
from epsparql.trees import replace_fields
from tests.etalis.programs import run_program
from tests.etalis.statics.resolution import Prover
from tests.etalis.statics.test_lists import ROADS, on, shown
from tests.soak import examples
from tests.support.run_both import block
from verification.definitions.model import Occurrence

SUM = "total([], 0). total([X|T], S) :- total(T, R), S is R + X. "
JOIN = "joined([], L, L) :- true. joined([X|T], L, [X|R]) :- joined(T, L, R). "
ITEM = "item(X, [Y|_]) :- X = Y. item(X, [_|T]) :- item(X, T). "
TURN = "turned(L, R) :- onto(L, [], R). onto([], A, A) :- true. onto([X|T], A, R) :- onto(T, [X|A], R). "
TAKE = "taken(X, [X|T], T) :- true. taken(X, [Y|T], [Y|R]) :- taken(X, T, R). ordered([], []). ordered(L, [X|R]) :- taken(X, L, T), ordered(T, R). "
FIRST = "up([], _, []) :- true. up([X|T], N, [X|R]) :- X > N, up(T, X, R). up([X|T], N, R) :- X =< N, up(T, N, R). "
EVEN = "even([]). even([_|T]) :- odd(T). odd([_|T]) :- even(T). "
PROGRAMS = [
    pytest.param(f"{SUM} d(S) <- a(L) where total(L, S).", "event(a([1,2,3]),1). event(a([]),2). event(a(x),3). event(a([x]),4).", [on([6], 1), on([0], 2)], id="a value"),
    pytest.param("len([], 0). len([_|T], N + 1) :- len(T, N). d(N) <- a(L) where len(L, N).", "event(a([x,y]),1).", [on([2], 1)], id="arithmetic in the head"),
    pytest.param(f"{ITEM} d(X) <- a(L) where (item(X, L), X > 1).", "event(a([1,2,3]),1).", [on([2], 1), on([3], 1)], id="several answers"),
    pytest.param(f"{ITEM} {SUM} ok(L, N) :- total(L, N), item(3, L). d(N) <- a(L) where ok(L, N).", "event(a([1,2,3]),1). event(a([1]),2).", [on([6], 1)], id="through another condition"),
    pytest.param(f"{TURN} d(R) <- a(L) where turned(L, R).", "event(a([1,2,3]),1).", [on([[3, 2, 1]], 1)], id="an accumulator"),
    pytest.param(f"{TAKE} d(R) <- a(L) where ordered(L, R).", "event(a([1,2]),1). event(a([1,1]),2).", [on([[1, 2]], 1), on([[2, 1]], 1), on([[1, 1]], 2)], id="orders"),
    pytest.param(f"{EVEN} d(L) <- a(L) where even(L).", "event(a([1,2]),1). event(a([1]),2).", [on([[1, 2]], 1)], id="two that call each other"),
    pytest.param(f"{SUM} d(S, T) <- (a(L) seq b(M)) within 3 where (total(L, S), total([S|M], T), T > 5).", "event(a([1]),1). event(b([2]),2). event(b([5]),3). event(b([9]),9).", [on([1, 6], 3, 1)],
                 id="over two events, and an answer in a call"),
    pytest.param(f"{SUM} d <- NOT((c(L) where (total(L, S), S > 2))).[a, b].", "event(a,1). event(c([1,1]),2). event(b,3). event(a,4). event(c([3]),5). event(b,6).", [on([], 3, 1)], id="in what is absent"),
    pytest.param(f"{SUM} d(N) <- aggregate(max(S), (a(L) where total(L, S)), N).", "event(a([1,4]),1). event(a([3]),2).", [on([5], 1), on([5], 2, 1)], id="in an aggregate"),
    pytest.param(f"{SUM} rows([[1,2],[3]]). all(S) :- rows(R), item(L, R), total(L, S). {ITEM} d(S) <- a where all(S).", "event(a,1).", [on([3], 1), on([3], 1)][:1], id="over facts"),
    pytest.param(f"{ROADS} way([_]) :- true. way([X,Y|T]) :- link(X, Y), way([Y|T]). d(L) <- a(L) where way(L).", "event(a([a,b,d]),1). event(a([a,d]),2). event(a([e]),3).",
                 [on([["a", "b", "d"]], 1), on([["e"]], 3)], id="a way of links"),
    *(pytest.param(f"set_etalis_flag(event_consumption_policy, {policy}). {SUM} d(S) <- a(L) seq b where total(L, S).", "event(a([1]),1). event(a([2]),2). event(b,3). event(b,4).",
                   rows, id=f"under {policy}") for policy, rows in (("recent", [on([2], 3, 2), on([2], 4, 2)]), ("chronological", [on([1], 3, 1), on([2], 4, 2)]))),
]  # fmt: skip


@pytest.mark.parametrize(("program", "stream", "wanted"), PROGRAMS)
def test_programs(tmp_path: Path, program: str, stream: str, wanted: list[Any]) -> None:
    assert sorted(run_program(tmp_path, program, stream)) == sorted(wanted)


REFUSED = [
    (f"{SUM} d(L) <- a(L) where \\+ total(L, 3).", "the recursive condition total/2 stands inside of another goal"),
    (f"{ITEM} d(N) <- a(L) where findall(X, item(X, L), N).", "the recursive condition item/2 stands inside of another goal"),
    (f"{SUM} d(S) <- a(L) where (total(L, S) ; S = 0).", "the recursive condition total/2 stands inside of another goal"),
    ("s(0). s(X) :- X > 0, Y is X - 1, s(Y). d(X) <- a(X) where s(X).", "the condition s/1 is recursive"),
    (f"{ITEM} far(X, X) :- true. far(X, Y) :- item(X, [1]), far(X, Y). d(Y) <- a(X) where far(X, Y).", "the condition far/2 is recursive"),
    (f"{SUM} d(S) <- a(L) where total(L + 1, S).", "arithmetic in an argument of total/2"),
    (f"{ITEM} d(S) <- a(S) where item(_, _).", "is not bound"),
    (f"{SUM} d(S) <- a(L) where total(L, S). e <- total(_, _).", "total/2 is static and an event"),
]


@pytest.mark.parametrize(("program", "reason"), REFUSED)
def test_refusals(program: str, reason: str) -> None:
    with pytest.raises(epsparql.QueryError, match=reason) as refused:
        epsparql.parse(query_text(program)[0])
    assert refused.value.code == "ele-refused"


# ---------------------------------------------------------------- the log
def run_entries(program: str, stream: str, cut: int | None = None) -> list[tuple[int, str]]:
    """Feed each instant as an entry, and return each solution with the entry that it came with."""
    text, policy = query_text(program)
    by_end: dict[int, list[Occurrence]] = {}
    for event in read_stream(stream):
        for triple in event.triples():
            s, p, o = map(parse_term, triple)
            assert isinstance(s, Iri)
            assert isinstance(p, Iri)
            assert isinstance(o, Iri | Literal)
            by_end.setdefault(event.end, []).append(Occurrence((s, p, o), event.start, event.end))
    log: list[Any] = [(Register(0, "p", text, policy), ())]
    log += [(Events(0, "default", len(part), end), tuple(part)) for end, part in sorted(by_end.items())]
    log += [(Finish(0, "default"), ())]
    engine, found = Engine(), list[tuple[int, str]]()
    for offset, (entry, part) in enumerate(log):
        outcome = engine.feed(block([(replace_fields(entry, offset=offset), part)]))
        assert outcome.changes == () or offset == len(log) - 1
        found += [(offset, str(row["values"])) for row in outcome.solutions.to_pylist()]
        if offset == cut:
            engine = Engine.restore(engine.snapshot())
    return found


def test_an_answer_comes_with_the_last_event() -> None:
    found = run_entries(f"{SUM} print_trigger(d/1). d(S) <- a(L) seq b where total(L, S).", "event(a([1,2]),1). event(b,2). event(c,3).")
    assert [offset for offset, _ in found] == [2]


# ---------------------------------------------------------------- random conditions
CALLS = (
    ("total(L, {v})", "n"), ("joined(L, [0], {v})", "l"), ("joined(L, L, {v})", "l"), ("item({v}, L)", "n"), ("turned(L, {v})", "l"), ("ordered(L, {v})", "l"),
    ("up(L, 0, {v})", "l"), ("taken({v}, L, _)", "n"), ("even(L), {v} is 7", "n"), ("joined({v}, _, L)", "l"), ("joined({v}, [2], L)", "l"),
)  # fmt: skip
RULES = SUM + JOIN + ITEM + TURN + TAKE + FIRST + EVEN


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str]:
    """Return goals about the list L0, and the variable that they end with: each call has a list that is bound before it."""
    lists, goals, value = ["L0"], [], "L0"
    for k in range(draw(st.integers(1, 3))):
        (text, kind), value = draw(st.sampled_from(CALLS)), f"V{k}"
        goals.append(text.format(v=value).replace("L", draw(st.sampled_from(lists))))
        if kind == "l":
            lists.append(value)
        elif draw(st.booleans()):
            goals.append(f"{value} > 0")
    return ", ".join(goals), value


@settings(max_examples=examples(150, 10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=conditions(), sent=st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=3), cut=st.none() | st.integers(0, 4))
def test_conditions_and_naive_evaluator(drawn: tuple[str, str], sent: list[list[int]], cut: int | None) -> None:
    """Answers are those of resolution from left to right, also when the engine is restored."""
    goals, value = drawn
    stream = " ".join(f"event(a({json.dumps(each)}), {k})." for k, each in enumerate(sent, 1))
    program = f"{RULES} print_trigger(d/1). d({value}) <- a(L0) where ({goals})."
    prover, wanted = Prover(read_program(f"{RULES} r(L0, {value}) :- {goals}.")), set[tuple[int, str]]()
    for k, each in enumerate(sent, 1):
        (rule,) = prover.rules["r", 2]
        wanted |= {(k, json.dumps(shown(answer[value]))) for answer in prover.answers(rule.head, {"L0": tuple(each)})}
    found = run_entries(program, stream, cut)
    assert len(found) == len(set(found))
    assert {(offset, read_value(text)) for offset, text in found} == wanted


def read_value(values: str) -> str:
    """Return the second of a row's values, a number or a list of numbers, as JSON."""
    return json.dumps(json.loads(values.split('"')[1].replace("'", '"')))
