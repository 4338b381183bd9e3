"""The program of the first operands of a program's rules, which `notify_at` registers, and the text of patterns."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

import epsparql
from epsparql.errors import Span
from epsparql.etalis.first_operands import count_operands, write_first_operands
from epsparql.etalis.parser.program import Program, read_program
from epsparql.etalis.parser.syntax import EleRefused, Term
from epsparql.etalis.translator import query_text
from epsparql.etalis.writer import write_pattern
from tests.etalis.naive import Event
from tests.etalis.programs import run_program
from tests.etalis.strategies import streams, written
from tests.etalis.test_conformance import CASES, EXAMPLES
from tests.etalis.test_equivalence import programs
from tests.soak import examples

DEAL = "deal(S, X, Y) <- (offer(S, X, 'big lot') seq bid(S, Y)) cnot withdrawn(S) where X =< Y."
TABLE = [
    pytest.param(DEAL, 1, ["'deal~1'(S, X) <- offer(S, X, 'big lot')."], id="one of two"),
    pytest.param("e(X) <- a(X) seq b(Y) seq c where X > 1, Y > X.", 2, ["'e~2'(X, Y) <- ((a(X) seq b(Y)) where (X > 1, Y > X))."], id="conditions that they decide"),
    pytest.param("e(X) <- a(X) seq b(Y) seq c where X > 1, (Y > X ; t1(5)).", 1, ["'e~1'(X) <- (a(X) where (X > 1))."], id="others go"),
    pytest.param("e <- (a seq b seq c) within 5min.", 2, ["'e~2' <- ((a seq b) within 5min)."], id="the longest duration"),
    pytest.param("w: e <- a seq b. event_rule_property(w, window, 1.5).", 1, ["'e~1' <- (a within 1.5)."], id="a rule's window"),
    pytest.param("e(X) <- a(X) and (b(Y) seq c(Z)).", 2, ["'e~2'(X, Y) <- (a(X) and b(Y))."], id="into the right operand"),
    pytest.param("e(X) <- (a(X) ntimes 3) seq b.", 2, ["'e~2'(X) <- (a(X) seq a(X))."], id="ntimes"),
    pytest.param("e(X) <- (a(X) seq b) or c(X) or (d(X, Y) seq f).", 1, ["'e~1'(X) <- a(X).", "'e~1'(X, Y) <- d(X, Y)."], id="alternatives"),
    pytest.param("e(X) <- NOT(c(Z)).[a(X), b(Y)] seq d. f <- a(_).", 2, ["'e~2'(X, Y) <- NOT(c(Z)).[a(X), b(Y)]."], id="what is absent in between"),
    pytest.param("e(X) <- (s(X) <- a(X) and b(X)) seq c.", 1, ["'e~1'(X) <- (s(X) <- (a(X) and b(X)))."], id="a rule inside"),
    pytest.param("e(V) <- a(X) seq aggregate(sum(Y * (2 + 1)), b(Y), V) seq c.", 1, ["'e~1'(X, V) <- (a(X) seq aggregate(sum(Y * (2 + 1)), b(Y), V))."], id="an aggregate"),
    pytest.param("exceptionAlarm(e, 5) <- a seq b seq c.", 1, ["'e~1' <- a."], id="an alarm's pattern"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "n", "rules"), TABLE)
def test_first_operands(program: str, n: int, rules: list[str]) -> None:
    text = write_first_operands(f"#!etalis recent\n{program}", n)
    assert text is not None
    assert [line for line in text.splitlines() if "~" in line and not line.startswith("print_trigger")] == rules
    epsparql.parse(text)


@pytest.mark.parametrize(("program", "n"), [("e <- a seq b.", 2), ("e <- a.", 1), ("e <- a during (b seq c).", 2), ("e <- a seq b.", 0)])
def test_operands_that_are_no_part_by_themselves(program: str, n: int) -> None:
    assert write_first_operands(f"#!etalis recent\n{program}", n) is None


def test_its_own_triggers_and_what_it_writes_go(tmp_path: Path) -> None:
    program = f"print_trigger(deal/3). into_stream('urn:t:out').\nprefix(t, 'http://t/').\n{DEAL}"
    text = write_first_operands(query_text(program)[0], 1)
    assert text is not None
    assert ("into_stream" in text, "deal/3" in text, "prefix(t" in text) == (False, False, True)
    stream = "event(offer(acme, 3, 'big lot'), 1). event(offer(acme, 4, small), 2). event(bid(acme, 5), 3)."
    found = run_program(tmp_path, text.partition("\n")[2], stream)
    assert [(each.event, each.args, each.end) for each in found] == [("deal~1", '["acme", 3]', "1970-01-01T00:00:01Z")]


# ---------------------------------------------------------------- any program
def without_places(term: Any) -> Any:
    if isinstance(term, tuple):
        return tuple(map(without_places, term))
    if not dataclasses.is_dataclass(term):
        return term
    values = {each.name: getattr(term, each.name) for each in dataclasses.fields(term)}
    return (type(term).__name__, *(without_places(value) for value in values.values() if not isinstance(value, Span)))


def bodies(program: Program) -> list[Term]:
    return [rule.body for rule in program.rules]


def read_shared(directory: Path) -> str:
    return (directory / "program.event").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("directory", [*CASES, *EXAMPLES], ids=lambda path: path.name)
def test_written_patterns_are_read_again(directory: Path) -> None:
    program = read_program(read_shared(directory))
    for body in bodies(program):
        (again,) = bodies(read_program(f"{prefixes_of(program)} e <- {write_pattern(body)}."))
        assert without_names(without_places(again)) == without_names(without_places(body))


def prefixes_of(program: Program) -> str:
    return " ".join(f"prefix({name}, '{iri}')." for name, iri in program.prefixes.items())


def without_names(tree: Any) -> Any:
    """Return a tree in which variables that are written as `_` have no number."""
    if isinstance(tree, tuple):
        return ("VariableTerm", "_") if tree[:1] == ("VariableTerm",) and tree[1][1:].isdigit() else tuple(map(without_names, tree))
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("directory", [*CASES, *EXAMPLES], ids=lambda path: path.name)
def test_programs_have_programs_of_their_first_operands(directory: Path) -> None:
    text, _ = query_text(read_shared(directory))
    counts = [count_operands(body) for body in bodies(read_program(read_shared(directory)))]
    for n in range(1, max(counts)):
        first = write_first_operands(text, n)
        if first is not None:
            epsparql.parse(first)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(program=programs(), events=streams())
def test_each_event_follows_events_of_the_first_operands(tmp_path: Path, program: str, events: list[Event]) -> None:
    """A rule's event that ends later has one of its first operands, with the same X, which ends no later."""
    try:
        text, _ = query_text(program)
        epsparql.parse(text)
        first = write_first_operands(text, 1)
    except EleRefused:
        assume(False)
    assume(first is not None)
    assert first is not None
    found = run_program(tmp_path, first.partition("\n")[2], written(events))
    whole = run_program(tmp_path, program, written(events))
    chained = [rule for rule in read_program(program).rules if rule.head.name == "e" and count_operands(rule.body) > 1]
    for event in whole if chained else ():
        if event.event == "e":
            assert any(each.event == "e~1" and each.end <= event.end and each.start >= event.start for each in found)
