"""Lists, findall and -> in static rules and in conditions: programs with their events, random rules against a naive
evaluator, and what is refused.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import epsparql
from epsparql.etalis.parser.program import read_program
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.translator import query_text
from pipeline.registrations.query_cache import check_registration
from tests.etalis.programs import Reported, run_program
from tests.etalis.statics.resolution import Bindings, Compound, Prover, Value
from tests.soak import examples

AT = "1970-01-01T00:00:{:02}Z"
ROADS = "link(a,b). link(b,d). link(a,c). link(c,e). link(e,d). "
ROUTES = f"{ROADS} route(X, Y, [X,Y]) :- link(X, Y). route(X, Z, [X|P]) :- link(X, Y), route(Y, Z, P), \\+ member(X, P). "
HOPS = "hop([X,Y|P], X, Y) :- route(X, _, [X,Y|P]). hop([X|P], U, V) :- route(X, _, [X|P]), hop(P, U, V). "
SHORTEST = "shortest(X, Y, P) :- route(X, Y, _), findall([N,R], (route(X, Y, R), length(R, N)), L), sort(L, [[_,P]|_]). "
AROUND = """around(A, P) <- at(A, X) seq closed(U, V)
    where (findall([N,R], (link(U, V), route(X, d, R), \\+ hop(R, U, V), length(R, N)), L), sort(L, [[_,P]|_])). """


def on(args: list[object], end: int, start: int | None = None) -> Reported:
    return Reported("d", json.dumps(args), AT.format(end if start is None else start), AT.format(end))


PROGRAMS = [
    pytest.param(f"{ROUTES} d(P) <- a where route(a, d, P).", "event(a,1).", [on([["a", "b", "d"]], 1), on([["a", "c", "e", "d"]], 1)], id="path lists in a recursive rule"),
    pytest.param(f"{ROUTES} link(d,a). d(P) <- a where route(a, a, P).", "event(a,1).", [], id="no node twice on a circle"),
    pytest.param(f"{ROUTES} {SHORTEST} d(P) <- a(X, Y) where shortest(X, Y, P).", "event(a(a,d),1). event(a(c,d),2). event(a(d,a),3).",
                 [on([["a", "b", "d"]], 1), on([["c", "e", "d"]], 2)], id="the shortest path"),
    pytest.param(f"{ROUTES} {HOPS} {AROUND} print_trigger(d/2). d(A, P) <- around(A, P).", "event(at(7,a),1). event(closed(b,d),2).",
                 [on([7, ["a", "c", "e", "d"]], 2, 1)], id="another route when a link closes"),
    pytest.param("p(a,1). p(a,3). p(b,4). d(X, S, N) <- a(X) where (findall(V, p(X, V), L), sum_list(L, S), length(L, N)).", "event(a(a),1). event(a(b),2). event(a(c),3).",
                 [on(["a", 4, 2], 1), on(["b", 4, 1], 2), on(["c", 0, 0], 3)], id="findall of an event's key, also of none"),
    pytest.param("p(a,1). p(b,1). d(L, M) <- a where (findall(V, p(_, V), L), sort(L, M)).", "event(a,1).", [on([[1, 1], [1]], 1)], id="each answer counts once"),
    pytest.param("p(3). p(10). p(b). p(a). d(L) <- a where findall(X, p(X), L).", "event(a,1).", [on([[3, 10, "a", "b"]], 1)], id="in the standard order"),
    pytest.param("d(X, Y) <- a(L) where L = [X|Y].", "event(a([1,2,3]),1). event(a([]),2). event(a(x),3). event(a([4]),4).", [on([1, [2, 3]], 1), on([4, []], 4)],
                 id="the tail of an event's list"),
    pytest.param("d([0|L]) <- a(L).", "event(a([1]),1). event(a(x),2).", [on([[0, 1]], 1)], id="a list before a tail"),
    pytest.param("d(L) <- a(L) where member(2, L).", "event(a([1,2]),1). event(a([1]),2). event(a(2),3).", [on([[1, 2]], 1)], id="member of an event's list"),
    pytest.param("d(L) <- a(L) where \\+ memberchk(2, L).", "event(a([1,2]),1). event(a([1]),2). event(a(2),3).", [on([[1]], 2), on([2], 3)], id="no member"),
    pytest.param("d(M, N, S, A) <- a(L) where (max_list(L, M), min_list(L, N), sum_list(L, S), append(L, [9], A)).", "event(a([2,1.5]),1). event(a([]),2). event(a([x]),3).",
                 [on([2, 1.5, 3.5, [2, 1.5, 9]], 1)], id="functions of a list"),
    pytest.param("d(R, A, B, C) <- a(L) where (reverse(L, R), last(L, A), nth0(0, L, B), nth1(2, L, C)).", "event(a([f(1),\"x\",'Y z']),1). event(a([1]),2).",
                 [on([["Y z", {"string": "x"}, {"functor": "f", "args": [1]}], "Y z", {"functor": "f", "args": [1]}, {"string": "x"}], 1)], id="items of a list"),
    pytest.param("d(X, C) <- a(X) where (X > 2 -> C = high ; X > 1 -> C = middle ; C = low).", "event(a(3),1). event(a(2),2). event(a(x),3).",
                 [on([3, "high"], 1), on([2, "middle"], 2), on(["x", "low"], 3)], id="if, else if, else"),
    pytest.param("p(a,5). d(X, V) <- a(X) where (p(X, W) -> V = W ; V = 0).", "event(a(a),1). event(a(b),2).", [on(["a", 5], 1), on(["b", 0], 2)], id="a default"),
    pytest.param("p(1). q(2). d(X) <- a(X) where \\+ (p(X) -> true ; q(X)).", "event(a(1),1). event(a(2),2). event(a(3),3).", [on([3], 3)], id="-> inside a negation"),
    pytest.param("p(a,1). p(a,2). n(X, N) :- findall(V, p(X, V), L), length(L, N). d(X) <- a(X) where \\+ (n(X, N), N > 1).", "event(a(a),1). event(a(b),2).", [on(["b"], 2)],
                 id="findall in a condition inside a negation"),
    pytest.param("p(datime(2026,1,2,3,4,5,6)). h(H, C) :- p(datime(_,_,_,H,_,_,C)). d(H, C) <- a where h(H, C).", "event(a,1).", [on([3, 6], 1)], id="an instant is taken apart in a static rule"),
    pytest.param("p(f(1,[2,3])). q(X, Y) :- p(f(X, [_|Y])). d(X, Y) <- a where q(X, Y).", "event(a,1).", [on([1, [3]], 1)], id="a fact's struct is taken apart"),
    pytest.param("p([datime(2026,1,2,3,4,5),2]). q(X) :- p(L), member(X, L). d(H) <- a(T) where (q(T), [T] = [datime(_,_,_,H,_,_)|_], member(T, [T])).",
                 "event(a(datime(2026,1,2,3,4,5)),1). event(a(datime(2026,1,2,3,4,6)),2).", [on([3], 1)], id="an instant as an item of a list"),
    pytest.param("p([1]). p(2). d(L) <- a where findall([0|T], p(T), L).", "event(a,1).", [on([[[0, 1]]], 1)], id="findall leaves out a list before what is no list"),
    pytest.param("length(rd1, 40). d(N) <- a(X) where length(X, N).", "event(a(rd1),1). event(a([1]),2).", [on([40], 1)], id="the program's own length"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "stream", "wanted"), PROGRAMS)
def test_programs(tmp_path: Path, program: str, stream: str, wanted: list[Reported]) -> None:
    found = run_program(tmp_path, program, stream)
    assert sorted(found) == sorted(wanted)


REFUSED = [
    ("d(X) <- a(L) where member(X, L).", "variable X in member is not bound"),
    ("p(1). d(L) <- a(X) where findall(Y, (p(Y), Y > X), L).", "variable X in findall is not bound by facts"),
    ("p(1). d(L) <- a(X) where findall([X, Y], p(Y), L).", "variable X in findall is not bound by facts"),
    ("prefix(t, 'http://t/'). d(L) <- a(X) where findall(Y, t:by(X, Y), L).", "findall reads the background"),
    ("d(L) <- a(X) where findall(Y, p(Y), L).", "p/1 in findall is not known"),
    ("p(1). r(L) :- findall(X, r(X), L). d <- a where r(_).", "depends on its own negation"),
    ("p(1). r(X) :- p(X), (r(X) -> fail ; true). d <- a where r(_).", "depends on its own negation"),
    ("p(1,2). d(Y) <- a(X) where (p(X, Y) -> true ; Y = 0).", "variable Y is not bound"),
    ("p(1). r([1|L]) :- r(L). r([]). d <- a where r(_).", "grows beyond"),
    ("p(1). r([L,L]) :- r(L). r([]). d <- a where r(_).", "grows beyond"),
    ("p([1|2]).", "the tail of a list is no list"),
    ("d(X) <- a([X|_]).", "lists there have a fixed length"),
    ("p(X) :- q(f(X)). q(f(1)). r(f(X)) :- p(X). d <- a.", "function term f/1"),
    ("p(1). d(L) <- a where setof(X, p(X), L).", "no declarative goal"),
    ("p(1). d(X) <- a(X) where p(X + 1).", "arithmetic in an argument of p/1"),
]


@pytest.mark.parametrize(("program", "reason"), REFUSED)
def test_refusals(program: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsparql.etalis.statics.datalog.MOST_FACTS", 500)
    with pytest.raises(epsparql.QueryError, match=f"(?s){reason}") as refused:
        epsparql.parse(query_text(program)[0])
    assert refused.value.code == "ele-refused"
    assert refused.value.expected


# ---------------------------------------------------------------- random rules
NODES = "abcd"
CONDITIONS = ("member(a, P)", "cost(X, _)", "(cost(X, N{k}), N{k} > 1)", "link(X, c)", "\\+ link(_, X)", "P = [_, _]")
GOALS = (
    "link(X, T{k})",
    "path(X, T{k}, _)",
    "(link(X, T{k}), cost(T{k}, U{k}))",
    "(path(X, U{k}, T{k}), \\+ member(b, T{k}))",
    "(cost(U{k}, T{k}) ; link(U{k}, T{k}))",
)
TEMPLATES = ("T{k}", "f(T{k})", "[T{k}, 1]", "T{k}-X")
FUNCTIONS = ("length", "sum_list", "min_list", "max_list", "sort", "msort", "reverse", "last")


@st.composite
def bodies(draw: st.DrawFn, static: bool) -> tuple[str, str]:
    """Return goals after `path(X, _, P)`, and the variable that they end with."""
    lists, goals, value = ["P"], [], "P"
    for k in range(draw(st.integers(1, 3))):
        one, kind = draw(st.sampled_from(lists)), draw(st.integers(0, 6 if static else 5))
        value = f"V{k}"
        match kind:
            case 0 | 1:
                inner = draw(st.sampled_from(GOALS))
                template = draw(st.sampled_from(TEMPLATES if static or "X" in inner else TEMPLATES[:-1]))  # facts bind what is listed
                goals.append(f"findall({template}, {inner}, {value})".format(k=k))
                lists.append(value)
            case 2:
                goals.append(f"{draw(st.sampled_from(FUNCTIONS))}({one}, {value})")
            case 3:
                goals.append(f"{one} = [_|{value}]")
                lists.append(value)
            case 4:
                condition = draw(st.sampled_from(CONDITIONS)).format(k=k)
                goals.append(f"({condition} -> {value} = {one} ; length({one}, M{k}), {value} is M{k} + 1)")
            case 5:
                goals.append(f"append({one}, [z|{draw(st.sampled_from(lists))}], {value})")
                lists.append(value)
            case _:
                goals.append(f"member({value}, {one})")
    return ", ".join(goals), value


@st.composite
def facts(draw: st.DrawFn) -> str:
    """Return links without circles, costs, and paths in a recursive rule."""
    pairs = [(x, y) for x in NODES for y in NODES if x < y]
    links = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=6, unique=True))
    costs = draw(st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 3)), min_size=1, max_size=4, unique=True))
    limit = draw(st.sampled_from(("", ", \\+ member(c, P)", ", length(P, N), N < 3", ", (P = [_,d] -> true ; Y = b)")))
    rules = f"path(X, Y, [X,Y]) :- link(X, Y). path(X, Z, [X|P]) :- link(X, Y), path(Y, Z, P){limit}."
    return " ".join((*(f"link({x},{y})." for x, y in links), *(f"cost({x},{n})." for x, n in costs), rules))


def shown(value: Value) -> Any:
    match value:
        case tuple():
            return [shown(item) for item in value]
        case Compound(name, args):
            return {"functor": name, "args": [shown(part) for part in args]}
    return value


def wanted(program: str, given: Bindings) -> list[str]:
    """Return the arguments X and V of the answers that the naive evaluator has for the rule `r(X, P, V)`."""
    parsed = read_program(program)
    (rule,) = (rule for rule in parsed.static if rule.head.name == "r")
    found = Prover(parsed).answers(rule.head, given)
    return sorted({json.dumps([shown(answer["X"]), shown(answer["V"])]) for answer in found})


@settings(max_examples=examples(120, 20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(known=facts(), body=bodies(static=True))
def test_relations_and_naive_evaluator(tmp_path: Path, known: str, body: tuple[str, str]) -> None:
    goals, value = body
    rule = f"r(X, P, {value}) :- path(X, _, P), {goals}."
    found = run_program(tmp_path, f"{known} {rule} d(X, V) <- go where r(X, _, V).", "event(go,1).")
    expected = wanted(f"{known} {rule.replace(value, 'V')}", {})
    assert sorted(line.args for line in found) == expected


@settings(max_examples=examples(120, 20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(known=facts(), body=bodies(static=False), node=st.sampled_from(NODES), whole=st.lists(st.sampled_from(NODES), max_size=3))
def test_conditions_and_naive_evaluator(tmp_path: Path, known: str, body: tuple[str, str], node: str, whole: list[str]) -> None:
    """The same goals as a condition, over a node and a list that an event has."""
    goals, value = body
    sent = f"event(go({node}, [{','.join(whole)}]), 1)."
    found = run_program(tmp_path, f"{known} d(X, {value}) <- go(X, P) where ({goals}).", sent)
    rule = f"r(X, P, {value}) :- {goals}.".replace(value, "V")
    assert sorted(line.args for line in found) == wanted(f"{known} {rule}", {"X": node, "P": tuple(whole)})


GROWTH = [
    pytest.param("p(1). p(2). r([]). r([X|L]) :- r(L), p(X). a(X) <- b(X) where r(X).", "r/1 grows beyond 500 facts", id="lists without end"),
    pytest.param(
        "r([]). r([L]) :- r(L). a(X) <- b(X) where r(X).", "a list or struct grows beyond 100 brackets in one another", id="a list in a list"
    ),
    pytest.param("r([]). r([L,L]) :- r(L). a(X) <- b(X) where r(X).", "a list or struct grows beyond 65,536 characters", id="a list that doubles"),
]


@pytest.mark.parametrize(("program", "message"), GROWTH)
def test_growth_is_refused(program: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsparql.etalis.statics.datalog.MOST_FACTS", 500)
    with pytest.raises(EleRefused, match=message) as refused:
        check_registration(query_text(program)[0])
    assert refused.value.span is not None
