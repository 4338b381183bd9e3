"""These tests check the grammar of the ETALIS Language for Events: faults with their places, and that prediction
changes nothing.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyparsing import ParseBaseException

from epsparql.errors import Span
from epsparql.etalis.parser import grammar
from epsparql.etalis.parser.grammar import parse_clauses, read_one_term
from epsparql.etalis.parser.program import read_program
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.parser.terminals import ProgramText
from epsparql.parser.elements import MAX_DEPTH

CONFORMANCE = Path(__file__).parents[4] / "shared" / "conformance"
CLOSES = "an operator, or a dot that closes the clause"

FAULTS = [  # the text with the place in « », what is wrong there, and what is expected
    pytest.param("a <- b seq «.»", "unexpected the end of the clause", "an event", id="no event"),
    pytest.param("a <- b seq c«»", "unexpected the end of the text", CLOSES, id="no dot"),
    pytest.param("a <- b «c».", "unexpected 'c'", CLOSES, id="no operator"),
    pytest.param("a(X) «)».", "unexpected ')'", CLOSES, id="a parenthesis too many"),
    pytest.param("a(b «c»).", "unexpected 'c'", ",", id="no comma between arguments"),
    pytest.param("«a»(b, .", "this parenthesis is not closed", ")", id="no argument"),
    pytest.param("a <- «(»b seq c.", "this parenthesis is not closed", ")", id="an open parenthesis"),
    pytest.param("a <- (b seq c«]».", "unexpected ']'", ")", id="another bracket"),
    pytest.param("a(X, X + «.»", "unexpected the end of the clause", "a term", id="no operand"),
    pytest.param("a([b, c | «d»]).", "the tail of a list is no list", "a variable, or a list", id="a tail that is no list"),
    pytest.param("a([b | C «,» D]).", "unexpected ','", "]", id="two tails"),
    pytest.param("a([b | «]»).", "unexpected ']'", "a term", id="no tail"),
    pytest.param("a <- b within «X».", "'within' without a number", "a number", id="no amount"),
    pytest.param("a <- b within «5parsec».", "'parsec' is no unit of time", "ms, s, sec, min, h, hour or day", id="an unknown unit"),
    pytest.param(
        "a <- b where X < 3 «Seq» c.",
        "the event operator 'Seq' stands inside a condition",
        "parentheses around the pattern before where",
        id="inside",
    ),
    pytest.param("a(X) <- b(X) where X < 3 «=» 4.", "unexpected '='", CLOSES, id="two comparisons"),
    pytest.param("a(2 ** 3 «**» 4).", "unexpected '**'", ",", id="two powers"),
    pytest.param("a <- (b where (X < 3 «<» 4)).", "unexpected '<'", ")", id="two comparisons in parentheses"),
    pytest.param("a <- b where X = «\\+» c.", "unexpected '\\+'", "a term", id="a negation as an operand"),
    pytest.param("a <- NOT(c)«(»b).", "unexpected '('", "[", id="no interval of NOT"),
    pytest.param("«5» <- b.", "a clause begins with an atom", "a name, with or without arguments", id="a number as head"),
    pytest.param("a <- b do «assert»(c).", "actions are not run; subscribe to the events instead: assert", "a rule without 'do'", id="an action"),
    pytest.param("a do nl «:-» b.", "unexpected ':-'", "<-", id="actions before a static rule"),
    pytest.param("db(a(X) :- b(X)«.»", "unexpected the end of the clause", ")", id="an open clause"),
    pytest.param("db(a«,» b).", "unexpected ','", ")", id="two clauses in one"),
    pytest.param("«rdf:type» : b <- c.", "this is no label", "a name, maybe with ([property(name, number)])", id="an IRI as label"),
    pytest.param("a ) b. c(«'»x).", "this quote is not closed", "a closing '", id="a quote, before other faults"),
    pytest.param("a. «/*» b.", "this comment is not closed", "*/", id="an open comment"),
    pytest.param("a «@» b.", "unexpected character '@'", "a clause of the ETALIS Language for Events", id="no token"),
    pytest.param(
        "a(" + "(" * (MAX_DEPTH - 1) + "«(»b" + ")" * MAX_DEPTH + ").",
        f"more than {MAX_DEPTH} brackets are open",
        "rules for parts of the pattern",
        id="depth",
    ),
    pytest.param(
        "a :- b" + ", b" * 199 + ", «b».", "more than 200 operators in a row", "static rules for parts of the condition", id="goals in one another"
    ),
    pytest.param("a <- b" + " seq b" * 200 + " «seq» b.", "more than 200 operators in a row", "rules for parts of the pattern", id="a long pattern"),
]


@pytest.mark.parametrize(("marked", "message", "expected"), FAULTS)
def test_a_fault_is_where_parsing_stops(marked: str, message: str, expected: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    with pytest.raises(EleRefused) as refused:
        read_program(marked.replace("«", "").replace("»", ""))
    assert (refused.value.message, refused.value.span, refused.value.expected) == (message, Span(start, end), expected)


TREES = [
    pytest.param("a <- b or c within 5 seq d.", "a <- ((b or c) within 5) seq d.", id="events to the left"),
    pytest.param("a <- b seq c or d and e.", "a <- (b seq c) or (d and e).", id="strengths of events"),
    pytest.param("a <- b 'SEQ' c PAR d.", "a <- (b seq c) par d.", id="operators in any case"),
    pytest.param("a :- b, c ; d -> e, f.", "a :- (b, c) ; (d -> (e, f)).", id="connectives"),
    pytest.param("a(1 - 2 - X * 3 ^ 4 ^ 5).", "a((1 - 2) - (X * (3 ^ (4 ^ 5)))).", id="arithmetic"),
    pytest.param("a(- X ** 2, -3 + 4).", "a(-(X ** 2), (-3) + 4).", id="signs"),
    pytest.param("a :- \\+ b = c, d.", "a :- (\\+ (b = c)), d.", id="negation"),
    pytest.param("db(a(X) :- b(X)).", "a(X) :- b(X).", id="a static rule in db"),
    pytest.param("static(a <- b seq c).", "a <- b seq c.", id="an event rule in static"),
    pytest.param("a :- b seq c.", "a <- b seq c.", id="an event rule with the arrow of static rules"),
    pytest.param("a(X): b <- c.", "a(X) : b <- c.", id="a label"),
    pytest.param("a :- b([c|[d, E|F]]).", "a :- b([c, d, E|F]).", id="a list with a list as its tail"),
    pytest.param("a(b, 'c', X, 5s, -3, \"d\", [e, 1]).", "a((b), ('c'), (X), (5s), (-3), (\"d\"), [(e), (1)]).", id="arguments of one token"),
]


@pytest.mark.parametrize(("text", "same"), TREES)
def test_operators_bind_as_the_language_says(text: str, same: str) -> None:
    assert shape(text) == shape(same)


def shape(text: str) -> list[str]:
    """Return the clauses without their places."""
    return [re.sub(r"Span\(start=\d+, end=\d+\)", "", repr(clause)) for clause in parse_clauses(text)[0]]


def damaged() -> Iterator[str]:
    """Yield programs, and each with one of its words or signs left out."""
    for k, file in enumerate(sorted(CONFORMANCE.glob("e*/*/program.event"))[::9]):
        text = file.read_text()
        yield text
        places = [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]
        for start, end in places[k % 7 :: 23]:
            yield text[:start] + text[end:]


def parse_once(text: str, *, predicts: bool) -> str:
    try:
        return repr(grammar.program.parse_string(ProgramText.from_text(text, explains=not predicts))[0])
    except ParseBaseException:
        return "refused"
    except EleRefused as fault:
        return str(fault)


def test_prediction_changes_no_tree_and_no_refusal() -> None:
    found = [(parse_once(text, predicts=True), parse_once(text, predicts=False)) for text in damaged()]
    assert all(predicted == plain for predicted, plain in found)
    assert 20 < sum(predicted == "refused" for predicted, _ in found) < len(found) - 20


def test_one_term_is_read() -> None:
    assert repr(read_one_term("f(a)")) == repr(read_one_term("f(a)/* a comment */"))
    for text, message in (("% nothing", "unexpected the end of the text"), ("a b", "unexpected 'b'")):
        with pytest.raises(EleRefused, match=message):
            read_one_term(text)
