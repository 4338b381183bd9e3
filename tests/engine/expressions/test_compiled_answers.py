"""Compiled answers to the kernel's questions are those of the host, or none (docs/decisions/0099-compiled-answers.md)."""

import hashlib
from collections.abc import Sequence
from ctypes import CFUNCTYPE, c_int64

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.dictionary.answers_layout import NO_ANSWER
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.etalis import CANONICAL, KEY
from engine.expressions.nondeterministic import NAMELESS, Naming
from engine.kernel.state.layout import BIG
from engine.native.openssl import find_openssl
from engine.network.host_calls import answer_question
from engine.physical_plan import recipes
from engine.physical_plan.plan import Inquiry
from engine.physical_plan.recipes import Recipes
from epsparql import algebra as a
from epsparql.etalis.parser.vocabulary import OWN
from epsparql.terms import XSD, Iri, Literal, Term, Variable
from tests.soak import examples

V = tuple(Variable(name) for name in "uvw")
_LEXICAL = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.integers(-20, 20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15).map(lambda d: f"{d:f}"),
    st.sampled_from(["0", "-0", "+7", "007", "1.50", "-0.0", ".5", "5.", "", "x", "1e3", "99999999999999999", "0.00000000000000001"]),
)
_TYPES = st.sampled_from(["integer", "decimal", "int", "byte", "unsignedByte", "double", "string"])
_NUMERALS = st.builds(lambda text, kind: Literal(text, XSD + kind), _LEXICAL, _TYPES)
_TERMS: st.SearchStrategy[Term | None] = st.one_of(
    _NUMERALS, st.sampled_from([None, Iri("urn:x"), Literal("é\n", XSD + "string"), Literal("a", language="en")])
)
_CONSTANTS = st.one_of(st.integers(-5, 10**18).map(str), st.decimals(places=3, min_value=-9, max_value=9).map(str)).map(
    lambda text: a.Constant(Literal(text, XSD + ("decimal" if "." in text else "integer")))
)
_EXPRESSIONS: st.SearchStrategy[a.Expression] = st.recursive(
    st.one_of(st.sampled_from(V).map(a.Var), _CONSTANTS),
    lambda inner: st.one_of(
        st.builds(a.Arithmetic, st.sampled_from(a.Operator), inner, inner),
        st.builds(a.Negate, inner),
        st.builds(lambda one: a.Call(CANONICAL, (one,)), inner),
    ),
    max_leaves=6,
)


class AnsweredTwice:
    """Answers questions in both ways over a term table."""

    def __init__(self) -> None:
        self.terms = TermTable()
        self.terms.intern_all([f"<urn:{k}:{'x' * 100}>" for k in range(300)])  # there is room for more
        self.recipes = Recipes(self.terms.address)
        function, self.context = self.recipes.call
        self.function = CFUNCTYPE(c_int64, c_int64, c_int64, c_int64)(function)

    def both(self, inquiry: Inquiry, arguments: Sequence[int], naming: Naming = NAMELESS) -> tuple[str | None, str]:
        """Return the compiled answer, None if it is left open, and the host's, "" for an error."""
        self.recipes.put(0, [inquiry], naming)
        given = np.array(arguments, np.int64)
        found = self.function(self.context, 0, given.ctypes.data)
        expected = answer_question(inquiry, arguments, self.terms, naming, 0)
        return None if found == NO_ANSWER else self.terms.text(found), self.terms.text(expected) if expected else ""

    def numbers(self, terms: Sequence[Term | None]) -> list[int]:
        return [0 if term is None else self.terms.intern(str(term)) for term in terms]


@settings(max_examples=examples(300), deadline=None)
@given(expression=_EXPRESSIONS, terms=st.tuples(_TERMS, _TERMS, _TERMS))
@example(a.Arithmetic(a.Operator.DIVIDE, a.Var(V[0]), a.Var(V[1])), (Literal("1", XSD + "integer"), Literal("3", XSD + "integer"), None))
@example(a.Arithmetic(a.Operator.DIVIDE, a.Var(V[0]), a.Var(V[1])), (Literal("0", XSD + "integer"), Literal("-3.5", XSD + "decimal"), None))
@example(
    a.Arithmetic(a.Operator.ADD, a.Var(V[0]), a.Constant(Literal(f"1.{'0' * 30}1", XSD + "decimal"))), (Literal("1", XSD + "integer"), None, None)
)  # more digits than a decimal context keeps
def test_arithmetic_is_the_hosts_or_left_to_it(expression: a.Expression, terms: tuple[Term | None, ...]) -> None:
    asked = AnsweredTwice()
    compiled, host = asked.both(Inquiry(V, False, expression=expression), asked.numbers(terms))
    assert compiled is None or compiled == host


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        (a.Operator.ADD, "1", "2", f'"3"^^<{XSD}integer>'),
        (a.Operator.SUBTRACT, "1.5", "2", f'"-0.5"^^<{XSD}decimal>'),
        (a.Operator.MULTIPLY, "2.5", "4", f'"10.0"^^<{XSD}decimal>'),
        (a.Operator.DIVIDE, "2", "3", f'"0.{"6" * 33}7"^^<{XSD}decimal>'),
        (a.Operator.ADD, "99999999999999999", "9", None),  # beyond a word's safe part
        (a.Operator.DIVIDE, "2", "0", None),
    ],
)
def test_usual_numbers_are_answered(operator: a.Operator, left: str, right: str, expected: str | None) -> None:
    asked = AnsweredTwice()
    terms = [Literal(text, XSD + ("decimal" if "." in text else "integer")) for text in (left, right)]
    inquiry = Inquiry(V[:2], False, expression=a.Arithmetic(operator, a.Var(V[0]), a.Var(V[1])))
    compiled, host = asked.both(inquiry, asked.numbers(terms))
    assert compiled == expected
    assert expected is None or host == expected


@settings(max_examples=examples(100), deadline=None)
@given(st.text(st.sampled_from('azAZ@[`{09"\\\n\x1f\u00c4\u03a3'), max_size=6), st.sampled_from([None, "en"]), st.sampled_from(["LCASE", "UCASE"]))
def test_letters_are_the_hosts_or_left_to_it(text: str, language: str | None, function: str) -> None:
    asked = AnsweredTwice()
    literal = Literal(text) if language is None else Literal.from_tag(text, language)
    compiled, host = asked.both(Inquiry(V[:1], False, expression=a.Call(function, (a.Var(V[0]),))), asked.numbers([literal]))
    assert compiled == (host if text.isascii() and str(Literal(text)) == f'"{text}"' else None)


@settings(max_examples=examples(100), deadline=None)
@given(
    terms=st.tuples(_TERMS, _TERMS, _TERMS),
    start=st.integers(-(10**15), 10**16),
    length=st.integers(0, 10**9),
    label=st.text(max_size=20),
    form=st.sampled_from([1, 2]),
)
def test_names_of_blank_nodes_are_the_hosts(terms: tuple[Term | None, ...], start: int, length: int, label: str, form: int) -> None:
    asked = AnsweredTwice()
    inquiry = Inquiry(V, True, fresh=label.encode("utf-8", "replace").decode())
    compiled, host = asked.both(inquiry, [*asked.numbers(terms), start, start + length], Naming("ré", form))
    assert compiled == host
    assert len(host) == len("_:c") + {1: 96, 2: 128}[form] // 4


@settings(max_examples=examples(50), deadline=None)
@given(terms=st.tuples(_TERMS, _TERMS, _TERMS))
def test_keys_of_events_are_the_hosts(terms: tuple[Term | None, ...]) -> None:
    asked = AnsweredTwice()
    parts = (a.Var(V[0]), a.Constant(Literal("p/3", XSD + "string")), a.Var(V[2]))
    compiled, host = asked.both(Inquiry(V, False, expression=a.Call(KEY, parts)), asked.numbers(terms))
    assert (compiled or "") == host


def test_a_key_of_long_constants_is_left_to_the_host() -> None:
    asked = AnsweredTwice()
    for length, is_left in ((900, False), (1_100, True)):
        parts = (a.Var(V[0]), a.Constant(Literal("p" * length, XSD + "string")))
        compiled, host = asked.both(Inquiry(V, False, expression=a.Call(KEY, parts)), asked.numbers((Iri("urn:x"), None, None)))
        assert compiled == (None if is_left else host)


@settings(max_examples=examples(200), deadline=None)
@given(
    start=st.integers(-(10**17), 3 * 10**17),
    length=st.sampled_from([0, 1, 500_000, 10**6, 86_399_999_999]),
    function=st.sampled_from(list(a.TimeFunction)),
)
@example(start=-62_167_219_200_000_000, length=0, function=a.TimeFunction.START)  # the first instant of the year 0
@example(start=253_402_300_799_999_999, length=1, function=a.TimeFunction.END)  # the first of the year 10000
@example(start=951_782_400_000_000, length=0, function=a.TimeFunction.START)  # a leap day
def test_instants_are_the_hosts(start: int, length: int, function: a.TimeFunction) -> None:
    compiled, host = AnsweredTwice().both(Inquiry((), True, expression=a.Time(function)), [start, start + length])
    years = host[1:].split("-")[0]
    is_usual = function is not a.TimeFunction.DURATION and len(years) == 4
    assert compiled == (host if is_usual else None)


@pytest.mark.parametrize("found", [find_openssl(), ()], ids=["by OpenSSL", "where Python is linked otherwise"])
@pytest.mark.parametrize("n", [0, 1, 54, 55, 56, 63, 64, 119, 120, 1000, 7000])
def test_a_digest_of_any_length(n: int, found: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "find_openssl", lambda: found)
    asked = AnsweredTwice()
    text = "<" + "x" * n + ">"
    compiled, _ = asked.both(Inquiry(V[:1], False, expression=a.Call(KEY, (a.Var(V[0]),))), [asked.terms.intern(text)])
    assert compiled == f"<{OWN}{hashlib.sha256(text.encode()).hexdigest()[:32]}>"


def test_what_is_too_long_or_timeless_is_left_to_the_host() -> None:
    asked = AnsweredTwice()
    long = asked.terms.intern(str(Iri("urn:" + "x" * 9000)))
    compiled, host = asked.both(Inquiry(V[:1], False, expression=a.Call(KEY, (a.Var(V[0]),))), [long])
    assert compiled is None
    assert host
    for inquiry in (Inquiry((), True, fresh="p"), Inquiry((), True, expression=a.Time(a.TimeFunction.END))):
        assert asked.both(inquiry, [BIG, -BIG])[0] is None


def test_without_room_for_its_text_an_answer_is_left_to_the_host() -> None:
    terms = TermTable()
    one = terms.intern(str(Literal("1", XSD + "integer")))
    made, answers = Recipes(terms.address), list[int]()
    inquiry = Inquiry(V[:1], False, expression=a.Arithmetic(a.Operator.ADD, a.Var(V[0]), a.Constant(Literal("7", XSD + "integer"))))
    made.put(0, [inquiry], NAMELESS)
    function, context = made.call
    while len(answers) < 500 and NO_ANSWER not in answers:
        answers.append(CFUNCTYPE(c_int64, c_int64, c_int64, c_int64)(function)(context, 0, np.array([one], np.int64).ctypes.data))
        one = answers[-1]
    assert 0 < answers.index(NO_ANSWER) < 100
    assert len({terms.text(number) for number in answers[:-1]}) == len(answers) - 1


def test_small_integers_have_other_numbers_once_theirs_are_free() -> None:
    asked = AnsweredTwice()
    inquiry = Inquiry(V[:2], False, expression=a.Arithmetic(a.Operator.ADD, a.Var(V[0]), a.Var(V[1])))
    for turn in range(3):
        given = asked.numbers([Literal(str(1 + turn), XSD + "integer"), Literal("41", XSD + "integer")])
        assert asked.both(inquiry, given) == (f'"{42 + turn}"^^<{XSD}integer>',) * 2
        asked.terms.spare = 0
        asked.terms.collect()  # nothing holds them
        asked.terms.intern_all([f"<urn:{turn}:{k}>" for k in range(5 + turn)])
