"""Small programs that would grow without bound are refused, with the place, before they cost anything."""

import pytest

from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.translator import query_text
from pipeline.registrations.query_cache import check_registration


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
        "more than 2,000,000 steps",
        id="a join without end",
    ),
    pytest.param("a(X) <- b(X) where (" + " ; ".join(f"X > {k}" for k in range(300)) + ").", "more than 200 operators", id="alternatives"),
    pytest.param("a(X) <- " + " seq ".join(f"b{k}(X)" for k in range(300)) + ".", "more than 200 operators", id="a long chain"),
    pytest.param("n(0). n(Y) :- n(X), Y is X + 1. a(X) <- b(X) where n(X).", "beyond 100,000 facts", id="numbers without end"),
]


@pytest.mark.parametrize(("program", "message"), BEYOND)
def test_growth_is_refused(program: str, message: str) -> None:
    with pytest.raises(EleRefused, match=message) as refused:
        check_registration(query_text(program)[0])
    assert refused.value.span is not None


WITHIN = [
    pytest.param(f"a(X) <- b(X) where {nested(40)}.", id="conditions in conditions"),
    pytest.param("a(X) <- " + " seq ".join(f"b{k}(X)" for k in range(150)) + ".", id="a chain"),
    pytest.param("".join(f"a{k}(X) <- b{k}(X) seq c{k}(X). " for k in range(200)), id="many rules"),
    pytest.param("".join(f"f({k}). " for k in range(3_000)) + "a(X) <- b(X) where \\+ (f(Y), Y > X).", id="many facts"),
]


@pytest.mark.parametrize("program", WITHIN)
def test_what_is_large_is_taken(program: str) -> None:
    check_registration(query_text(program)[0])
