"""Filters on strings are decided for many terms as the host decides them for one."""

import numpy as np
import pytest

from engine.dictionary.term_dictionary import TermTable
from engine.expressions.nondeterministic import NAMELESS
from engine.kernel.state import layout as c
from engine.network.host_calls import answer_question
from engine.physical_plan.plan import Inquiry
from engine.physical_plan.string_tests import decide_strings
from epsparql import algebra as a
from epsparql.terms import RDF, Iri, Literal, Variable

TERMS = [
    '"abc"', '""', '"a\\"b"', '"a\\nb"', '"n"', '"\\\\"', '"abc"@en', '"abc"@ar--rtl', '"ab"^^<http://www.w3.org/2001/XMLSchema#token>',
    '"12"^^<http://www.w3.org/2001/XMLSchema#integer>', "<abc>", "_:abc", '<<( <a> <b> "abc" )>>', '"äbc"', '"\U0001f600b"', '"xa"', '"ax"',
]  # fmt: skip
PARTS = ["a", "", "b", "n", "abc", '"', "\\", "äb", "\U0001f600", "a\nb", "en", ">"]
V = Variable("v")


@pytest.mark.parametrize("function", ["CONTAINS", "STRSTARTS", "STRENDS"])
def test_many_terms_are_decided_as_one(function: str) -> None:
    terms = TermTable()
    numbers = np.array([c.UNBOUND, *terms.intern_all(TERMS).tolist()])
    decided = 0
    for part in PARTS:
        inquiry = Inquiry((V,), False, a.Call(function, (a.Var(V), a.Constant(Literal(part)))))
        verdicts = decide_strings(inquiry, numbers, terms)
        for number, verdict in zip(numbers.tolist(), [] if verdicts is None else verdicts.tolist(), strict=verdicts is not None):
            decided += verdict != c.OPEN_QUESTION
            assert verdict in (c.OPEN_QUESTION, answer_question(inquiry, [number], terms, NAMELESS, 0)), (part, terms.text(number))
    assert decided >= 50


PATTERNS = [
    ("^a", ""),
    ("b$", ""),
    ("a.c", ""),
    ("ABC", "i"),
    ("^Ä", "i"),
    ("^$", ""),
    ("", ""),
    ("\\^", ""),
    ("b|n", "m"),
    ("a b c", "x"),
    ("a.", "q"),
    ("[^a]", "s"),
]


def test_many_terms_are_matched_as_one() -> None:
    terms = TermTable()
    numbers = np.array([c.UNBOUND, *terms.intern_all([*TERMS, '"a."', f'"{"a" * 100_000}"']).tolist()])
    for pattern, flags in [*PATTERNS, ("a{1000}{100}", ""), ("(a)\\1", ""), ("[", ""), ("a", "y")]:
        inquiry = Inquiry((V,), False, a.Call("REGEX", (a.Var(V), a.Constant(Literal(pattern)), a.Constant(Literal(flags)))))
        verdicts = decide_strings(inquiry, numbers, terms)
        assert (verdicts is not None) >= ((pattern, flags) in PATTERNS), pattern
        for number, verdict in zip(numbers.tolist(), [] if verdicts is None else verdicts.tolist(), strict=verdicts is not None):
            assert verdict in (c.OPEN_QUESTION, answer_question(inquiry, [number], terms, NAMELESS, 0)), (pattern, terms.text(number))


@pytest.mark.parametrize("part", [Literal("a", RDF + "langString", "en"), Iri("x:a")])
def test_other_filters_are_the_hosts(part: Literal | Iri) -> None:
    inquiry = Inquiry((V,), False, a.Call("CONTAINS", (a.Var(V), a.Constant(part))))
    assert decide_strings(inquiry, np.array([0]), TermTable()) is None
