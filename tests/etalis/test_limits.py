"""Small programs that would grow without bound are refused, with the place, before they cost anything."""

import pytest

from engine.engine import Engine
from engine.messages import Events, Register
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.statics import datalog, goals
from epsparql.etalis.streams import read_stream
from epsparql.etalis.translator import query_text
from epsparql.ntriples import parse_term
from pipeline.registrations.query_cache import check_registration
from tests.soak import is_full
from tests.support.run_both import block
from verification.definitions.model import Occurrence


def nested(depth: int) -> str:
    goal = "X < 1"
    for k in range(depth):
        goal = f"(({goal} , X < {k}) ; X > {k})" if k % 2 else f"(({goal} ; X < {k}) , X > {k})"
    return goal


BEYOND = [
    pytest.param("a(X) <- (((b(X) ntimes 100) ntimes 100) ntimes 10).", "more than 1,000 patterns", id="patterns that repeat each other"),
    pytest.param(
        "c0(X) :- X > 0. " + "".join(f"c{k + 1}(X) :- c{k}(X), c{k}(X). " for k in range(30)) + "a(X) <- b(X) where c30(X).",
        "unfolded to more than 10,000 goals",
        id="conditions that call each other twice",
    ),
    pytest.param(
        "".join(f"f({k}). " for k in range(300)) + "r(A) :- f(A), f(B), f(C), f(D), A > B, B > C, C > D, D > 400. a(X) <- b(X) where r(X).",
        "more than {goals.MOST_STEPS:,} steps",
        id="a join without end",
    ),
    pytest.param("a(X) <- b(X) where (" + " ; ".join(f"X > {k}" for k in range(300)) + ").", "more than 200 operators", id="alternatives"),
    pytest.param("a(X) <- " + " seq ".join(f"b{k}(X)" for k in range(300)) + ".", "more than 200 operators", id="a long chain"),
    pytest.param("n(0). n(Y) :- n(X), Y is X + 1. a(X) <- b(X) where n(X).", "beyond {datalog.MOST_FACTS:,} facts", id="numbers without end"),
]


@pytest.mark.parametrize(("program", "message"), BEYOND)
def test_growth_is_refused(program: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make soak` reaches the limits of steps and facts, which takes seconds; here they are lower."""
    if not is_full():
        monkeypatch.setattr(goals, "MOST_STEPS", 40_000)
        monkeypatch.setattr(datalog, "MOST_FACTS", 2_000)
    with pytest.raises(EleRefused, match=message.format(goals=goals, datalog=datalog)) as refused:
        check_registration(query_text(program)[0])
    assert refused.value.span is not None


JOINED = [
    pytest.param("d(X, Y) <- a(K, X) seq b(K, Y) seq c(K, _).", id="a sequence"),
    pytest.param("d(X, Y) <- NOT(c(K, _)).[a(K, X), b(K, Y)].", id="absence"),
    pytest.param("d(X, Y) <- (a(K, X) seq b(K, Y)).5 where X < Y.", id="a filter"),
    pytest.param("d(K, X) <- a(K, X). d(K, Y) <- (d(K, X) seq a(K, Y)).5 where X < Y.", id="recursion"),
]


@pytest.mark.parametrize("program", JOINED)
def test_an_event_asks_the_host_nothing(program: str) -> None:
    """A question takes twenty times as long as a join.

    A few are there once a program: its constants (docs/decisions/0060-a-program-is-one-query.md).
    """
    engine, n = Engine(), 120
    text, policy = query_text(f"print_trigger(d/2). {program}")
    sent = " ".join(f"event({'abc'[k % 3]}({k // 3 % 4}, {k}), {k + 1})." for k in range(n))
    occurrences = [
        Occurrence(tuple(map(parse_term, triple)), event.start, event.end)  # type: ignore[arg-type]
        for event in read_stream(sent)
        for triple in event.triples()
    ]
    engine.feed(block([(Register(0, "p", text, policy), ())]))
    outcome = engine.feed(block([(Events(1, "default", len(occurrences), n * 1_000_000), tuple(occurrences))]))
    assert outcome.solutions.num_rows > 20
    assert engine.own.answers <= 8


WITHIN = [
    pytest.param(f"a(X) <- b(X) where {nested(40)}.", id="conditions in conditions"),
    pytest.param("a(X) <- " + " seq ".join(f"b{k}(X)" for k in range(150)) + ".", id="a chain"),
    pytest.param("".join(f"a{k}(X) <- b{k}(X) seq c{k}(X). " for k in range(200)), id="many rules"),
    pytest.param("".join(f"f({k}). " for k in range(3_000)) + "a(X) <- b(X) where \\+ (f(Y), Y > X).", id="many facts"),
]


@pytest.mark.parametrize("program", WITHIN)
def test_what_is_large_is_taken(program: str) -> None:
    check_registration(query_text(program)[0])
