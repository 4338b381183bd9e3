"""The consumption policies (semantics.md section 9): answers derived by hand, and the engine against the reference
evaluator.
"""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.messages import Drop, Register
from engine.validation.validate import check
from epsparql.algebra import DEFAULT_STREAM
from epsparql.trees import replace_fields
from tests.reference.evaluator import Fact, Occurrence, Settings
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import PREFIXES, Body, occurrence, parse_facts, parse_feed, show, shown
from tests.support.run_both import Runner, block, blocks, entries, in_order, results, run, run_engine, run_oracle, without

RECENT, LONGEST, CHRONOLOGICAL = Settings("recent"), Settings("recent-longest"), Settings("chronological")
BY_A, BY_V = Settings("recent-by ?a"), Settings("recent-by ?v")
both = pytest.mark.parametrize("run_", [run_oracle, run_engine])

# ---------------------------------------------------------------- by hand
A, B, C = (f"{{ ?s :{name} ?{name.lower()} }}" for name in "ABC")
FIVE = "'PT5S'^^xsd:duration"
PAPER = "A(1)@1 A(2)@2 A(3)@3 B(4)@4 B(5)@5 C(6)@6"
TABLE = [
    pytest.param(f"{A} SEQ {B} SEQ {C}", PAPER, "a=3,b=5,c=6,s=s@3-6", "a=1,b=4,c=6,s=s@1-6", id="the example of section 9"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1 B(1)@2 B(2)@3", "a=1,b=1,s=s@1-2 a=1,b=2,s=s@1-3", "a=1,b=1,s=s@1-2", id="used again or consumed"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1 A(2)@4 B(1)@3-5", "", "a=1,b=1,s=s@1-5", id="recent does not fall back"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1-6 A(2)@3-5 A(3)@2-4 B(1)@8", "a=1,b=1,s=s@1-8", "a=3,b=1,s=s@2-8", id="the latest is the one that ended last"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1 A(2)@5 B(1)@3-5", "a=1,b=1,s=s@1-5", "a=1,b=1,s=s@1-5", id="replacement takes effect after the instant"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1 A(2)@2 B(1)@3 B(2)@3", "a=2,b=1,s=s@2-3 a=2,b=2,s=s@2-3", "a=1,b=1,s=s@1-3 a=2,b=2,s=s@2-3", id="what one right goal of an instant takes is gone for the next one"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1-3 A(2)@2-3 B(1)@4", "a=2,b=1,s=s@2-4", "a=1,b=1,s=s@1-4", id="of one end: the later start, the earlier start"),
    pytest.param(f"{A} SEQ {B}", "A(10)@1 A(9)@1 B(1)@4", "a=9,b=1,s=s@1-4", "a=10,b=1,s=s@1-4", id="of one interval: by N-Triples text"),
    pytest.param(f"{A} SEQ {B}", "A(x,1)@1 A(y,1)@2 B(x,1)@3 B(y,1)@4", "a=1,b=1,s=x@1-3 a=1,b=1,s=y@2-4", "a=1,b=1,s=x@1-3 a=1,b=1,s=y@2-4", id="per join key"),
    pytest.param(f"{A} SEQ {{ ?t :B ?b }}", "A(x,1)@1 A(y,1)@2 B(z,1)@3", "a=1,b=1,s=y,t=z@2-3", "a=1,b=1,s=x,t=z@1-3", id="without a join key"),
    pytest.param(
        "{ { ?s :A ?a } OPTIONAL { ?a :K ?k } } SEQ { ?s :B ?k }", "A(1)@1 K(2,8)@2 A(2)@2 A(3)@3 B(8)@4 B(9)@5",
        "a=2,k=8,s=s@2-4 a=3,k=8,s=s@3-4 a=3,k=9,s=s@3-5", "a=1,k=8,s=s@1-4 a=3,k=9,s=s@3-5", id="unbound variables are a key of their own",
    ),
    pytest.param(f"{A} SEQ {{ SELECT ?a {{ ?t :B ?b }} }}", "A(1)@1 A(2)@2 B(1)@3", "a=1,s=s@1-3 a=2,s=s@2-3", "a=1,s=s@1-3", id="what a sub-SELECT projects is a key, bound or not"),
    pytest.param(f"{A} MEETS {B}", "A(1)@1-3 A(2)@2-3 B(1)@3-4", "a=2,b=1,s=s@2-4", "a=1,b=1,s=s@1-4", id="MEETS"),
    pytest.param(f"{A} MEETS {B}", "A(1)@1-3 A(2)@4 B(1)@3-5", "", "a=1,b=1,s=s@1-5", id="MEETS: the latest one does not meet"),
    pytest.param(f"{A} MEETS {B}", "A(1)@1-3 A(2)@2-3 B(1)@3", "a=1,b=1,s=s@1-3 a=2,b=1,s=s@2-3", "a=1,b=1,s=s@1-3", id="MEETS: all of the instant are tried"),
    pytest.param(f"{A} DURING {B}", "A(1)@2 A(2)@3 B(1)@1-4", "a=2,b=1,s=s@1-4", "a=1,b=1,s=s@1-4", id="DURING"),
    pytest.param(f"{A} STARTS {B}", "A(1)@1-2 A(2)@1-3 B(1)@1-4", "a=2,b=1,s=s@1-4", "a=1,b=1,s=s@1-4", id="STARTS"),
    pytest.param(f"{A} OVERLAPS {B}", "A(1)@1-3 A(2)@1-4 B(1)@2-5", "a=2,b=1,s=s@1-5", "a=1,b=1,s=s@1-5", id="OVERLAPS"),
    pytest.param(f"{A} FINISHES {B}", "A(1)@2-3 A(2)@1-3 B(1)@0-3", "a=1,b=1,s=s@0-3 a=2,b=1,s=s@0-3", "a=2,b=1,s=s@0-3", id="FINISHES: of the instant alone"),
    pytest.param(f"{A} PAR {B}", "B(1)@1-3 A(1)@2-4 A(2)@2-5", "a=1,b=1,s=s@1-4 a=2,b=1,s=s@1-5", "a=1,b=1,s=s@1-4", id="PAR: a right goal waits for left ones"),
    pytest.param(f"{A} MEETS {B}", "A(1)@1-3 A(2)@2-3 B(2)@3-4 B(1)@3-4", "a=2,b=1,s=s@2-4 a=2,b=2,s=s@2-4", "a=1,b=1,s=s@1-4 a=2,b=2,s=s@2-4", id="MEETS: in the order of the terms"),
    pytest.param(
        f"{A} PAR {B}", "B(1)@1-3 B(2)@0-3 A(2)@2-4 A(1)@2-4 B(3)@1-4", "a=1,b=1,s=s@1-4 a=1,b=2,s=s@0-4 a=1,b=3,s=s@1-4 a=2,b=1,s=s@1-4 a=2,b=2,s=s@0-4 a=2,b=3,s=s@1-4",
        "a=1,b=2,s=s@0-4 a=2,b=1,s=s@1-4", id="PAR: right goals that have waited go before new ones",
    ),
    pytest.param(f"{A} PAR {B}", "A(1)@0-3 A(2)@0-4 B(1)@2-5 B(2)@3-6", "a=2,b=1,s=s@0-5 a=2,b=2,s=s@0-6", "a=1,b=1,s=s@0-5 a=2,b=2,s=s@0-6", id="PAR: a left goal waits for right ones"),
    pytest.param(f"{A} {B}", "A(1)@1 A(2)@2 B(1)@3", *2 * ["a=1,b=1,s=s@1-3 a=2,b=1,s=s@2-3"], id="what stands beside each other is unrestricted"),
    pytest.param(f"{A} EQUALS {B}", "A(1)@1 A(2)@1 B(1)@1", *2 * ["a=1,b=1,s=s@1 a=2,b=1,s=s@1"], id="EQUALS is unrestricted"),
    pytest.param(f"{A} OPTIONALSEQ {B}", "A(1)@1 A(2)@2 B(1)@3", *2 * ["a=1,b=1,s=s@1-3 a=2,b=1,s=s@2-3"], id="OPTIONALSEQ is unrestricted"),
    pytest.param(f"{A} SEQ {B} WITHIN 2", "A(1)@1 A(2)@2 B(1)@4", "a=2,b=1,s=s@2-4", "", id="WITHIN decides after the choice"),
    pytest.param(f"{A} SEQ {B} WITHIN 2", "A(1)@3 A(2)@0-4 B(1)@5", "", "a=1,b=1,s=s@3-5", id="a left goal that lasts too long replaces all the same"),
    pytest.param(f"{A} SEQ {B} WITHIN 2", "A(1)@1 A(2)@5 B(1)@6 B(2)@7", "a=2,b=1,s=s@5-6 a=2,b=2,s=s@5-7", "a=2,b=2,s=s@5-7", id="a left goal of long ago is taken all the same"),
    pytest.param(f"{A} SEQ {B} FILTER(?a = 1)", "A(1)@1 A(2)@2 B(1)@3", "", "a=1,b=1,s=s@1-3", id="FILTER of the left goal decides after the choice"),
    pytest.param(f"{A} SEQ {B} FILTER(?b = 2)", "A(1)@1 A(2)@2 B(1)@3 B(2)@4", "a=2,b=2,s=s@2-4", "a=2,b=2,s=s@2-4", id="FILTER of the right goal decides after the choice"),
    pytest.param(f"{A} SEQ {{ ?s :B ?b FILTER(?b = 2) }}", "A(1)@1 B(1)@3 B(2)@4", *2 * ["a=1,b=2,s=s@1-4"], id="a FILTER inside decides before it"),
    pytest.param(f"{A} SEQ {B} FILTER(getDURATION() < {FIVE})", "A(1)@1 A(2)@5 B(1)@6", "a=2,b=1,s=s@5-6", "", id="FILTER of the duration decides after the choice"),
    pytest.param(f"{A} SEQ {B} WITHOUT {C}", "A(1)@1 A(2)@3 C(1)@2 B(1)@4 B(2)@5", "a=2,b=1,s=s@3-4 a=2,b=2,s=s@3-5", "a=2,b=2,s=s@3-5", id="WITHOUT decides after the choice"),
    pytest.param(f"{A} SEQ {B} WITHOUT {C}", "A(1)@1 A(2)@2 C(1)@2-3 B(1)@4 B(2)@5", "a=2,b=1,s=s@2-4 a=2,b=2,s=s@2-5", "a=2,b=2,s=s@2-5", id="WITHOUT is strict after the left goal"),
    pytest.param(f"{A} SEQ {B} WITHOUT {C}", "A(1)@1 C(1)@3-4 B(1)@4", *2 * ["a=1,b=1,s=s@1-4"], id="WITHOUT is strict before the right goal"),
    pytest.param(f"{A} SEQ {B} WITHOUT {{ ?s :C ?a }}", "A(1)@1 A(2)@2 C(1)@3 B(1)@4 B(2)@5", "a=2,b=1,s=s@2-4 a=2,b=2,s=s@2-5", "a=2,b=2,s=s@2-5", id="WITHOUT of what is compatible"),
    pytest.param(f"{A} SEQ {B} WITHIN 2 WITHOUT {C}", "A(1)@1 A(2)@4 C(1)@5 B(1)@5 B(2)@6", "a=2,b=1,s=s@4-5", "", id="WITHIN and WITHOUT"),
    pytest.param("{ :s :A 1 } SEQ { :s :B 1 } WITHOUT { :s :C 1 }", "A(1)@1-2 A(1)@1-3 B(1)@4 B(1)@5", "@1-4 @1-5", "@1-4 @1-5", id="one solution of two pairs"),
]  # fmt: skip


def answers(run_: Runner, pattern: str, feed: str, facts: str, chosen: Settings) -> list[str]:
    query = f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"
    return shown(run_({"q": query}, {DEFAULT_STREAM: parse_feed(feed)}, parse_facts(facts), {"q": chosen})["q"])


@both
@pytest.mark.parametrize(("pattern", "feed", "recent", "chronological"), TABLE)
def test_policies(run_: Runner, pattern: str, feed: str, recent: str, chronological: str) -> None:
    assert answers(run_, pattern, feed, "", RECENT) == sorted(recent.split())
    assert answers(run_, pattern, feed, "", CHRONOLOGICAL) == sorted(chronological.split())


AND = [
    pytest.param(f"{A} AND {B}", "A(1)@1 A(2)@2 B(3)@3 B(4)@4", "a=2,b=3,s=s@2-3 a=2,b=4,s=s@2-4", "a=1,b=3,s=s@1-3 a=2,b=4,s=s@2-4", id="used again or consumed"),
    pytest.param(f"{A} AND {B}", "B(3)@1 B(4)@2 A(1)@3 A(2)@4", "a=1,b=4,s=s@2-3 a=2,b=4,s=s@2-4", "a=1,b=3,s=s@1-3 a=2,b=4,s=s@2-4", id="neither operand is the first"),
    pytest.param(f"{A} AND {B}", "A(1)@1 B(1)@2 A(2)@3 B(2)@4", "a=1,b=1,s=s@1-2 a=2,b=1,s=s@2-3 a=2,b=2,s=s@3-4", "a=1,b=1,s=s@1-2 a=2,b=2,s=s@3-4", id="recent replaces on both sides"),
    pytest.param(f"{A} AND {B}", "A(1)@1 B(1)@1", *2 * ["a=1,b=1,s=s@1"], id="of one instant"),
    pytest.param(f"{A} AND {B}", "A(1)@1 A(2)@2 B(1)@2 B(2)@2", "a=1,b=1,s=s@1-2 a=1,b=2,s=s@1-2 a=2,b=1,s=s@2 a=2,b=2,s=s@2", "a=1,b=1,s=s@1-2 a=2,b=2,s=s@2", id="those of an instant and the latest before it"),
    pytest.param(f"{A} AND {B}", "B(1)@1 B(2)@2 A(1)@2 A(2)@2 A(3)@2", "a=1,b=1,s=s@1-2 a=1,b=2,s=s@2 a=2,b=1,s=s@1-2 a=2,b=2,s=s@2 a=3,b=1,s=s@1-2 a=3,b=2,s=s@2", "a=1,b=1,s=s@1-2 a=2,b=2,s=s@2", id="left ones come first"),
    pytest.param(f"{A} AND {B}", "A(1)@1-3 A(2)@2-3 B(1)@4 B(2)@5", "a=2,b=1,s=s@2-4 a=2,b=2,s=s@2-5", "a=1,b=1,s=s@1-4 a=2,b=2,s=s@2-5", id="of one end: the later start, the earlier start"),
    pytest.param(f"{A} AND {B}", "B(1)@1-3 B(2)@2-3 A(1)@4 A(2)@5", "a=1,b=2,s=s@2-4 a=2,b=2,s=s@2-5", "a=1,b=1,s=s@1-4 a=2,b=2,s=s@2-5", id="so on the right"),
    pytest.param(f"{A} AND {B}", "A(x,1)@1 A(y,1)@2 B(x,1)@3 B(y,1)@4", *2 * ["a=1,b=1,s=x@1-3 a=1,b=1,s=y@2-4"], id="per join key"),
    pytest.param(
        "{ { ?s :A ?a } OPTIONAL { ?a :K ?k } } AND { ?s :B ?k }", "A(1)@1 K(2,8)@2 A(2)@2 A(3)@3 B(8)@4 B(9)@5",
        "a=2,k=8,s=s@2-4 a=3,k=8,s=s@3-4 a=3,k=9,s=s@3-5", "a=1,k=8,s=s@1-4 a=3,k=9,s=s@3-5", id="unbound variables are a key of their own",
    ),
    pytest.param(f"{A} AND {B} WITHIN 2", "A(1)@1 B(1)@4 A(2)@5 B(2)@6", "a=2,b=1,s=s@4-5 a=2,b=2,s=s@5-6", "a=2,b=2,s=s@5-6", id="WITHIN decides after the choice"),
    pytest.param(f"{A} AND {B} FILTER(?b = 1)", "A(1)@1 B(1)@2 B(2)@3 A(2)@4", "a=1,b=1,s=s@1-2", "a=1,b=1,s=s@1-2", id="FILTER decides after the choice, on either side"),
    pytest.param(f"{A} AND {B} WITHOUT {C}", "B(1)@1 C(1)@2 A(1)@3 A(2)@4 B(2)@5", "a=2,b=2,s=s@4-5", "a=2,b=2,s=s@4-5", id="WITHOUT decides after the choice"),
    pytest.param(f"{A} AND {B} SEQ {C}", PAPER, "a=3,b=5,c=6,s=s@3-6", "a=1,b=4,c=6,s=s@1-6", id="before a SEQ"),
    pytest.param(f"{A} AND {B} AND {C}", PAPER, "a=3,b=5,c=6,s=s@3-6", "a=1,b=4,c=6,s=s@1-6", id="twice"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "recent", "chronological"), AND)
def test_and_has_no_sides(run_: Runner, pattern: str, feed: str, recent: str, chronological: str) -> None:
    assert answers(run_, pattern, feed, "", RECENT) == sorted(recent.split())
    assert answers(run_, pattern, feed, "", CHRONOLOGICAL) == sorted(chronological.split())


LATEST = [
    pytest.param(f"{A} SEQ {B}", "A(1)@1-30 A(2)@15-30 B(1)@35-50 A(3)@40-60 A(4)@40-55 B(2)@70-80", "a=2,b=1,s=s@15-50 a=3,b=2,s=s@40-80", "a=1,b=1,s=s@1-50 a=3,b=2,s=s@40-80", "a=2,b=1,s=s@15-50 a=3,b=2,s=s@40-80", id="the longer, the shorter, the greater value"),
    pytest.param(f"{A} SEQ {B}", "A(3)@1-5 A(1)@2-5 A(2)@3-5 B(1)@6", "a=2,b=1,s=s@3-6", "a=3,b=1,s=s@1-6", "a=3,b=1,s=s@1-6", id="of three"),
    pytest.param(f"{A} SEQ {B}", "A(10)@1 A(9)@1 B(1)@4", "a=9,b=1,s=s@1-4", "a=9,b=1,s=s@1-4", "a=10,b=1,s=s@1-4", id="by value and not by text"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1-3 A(1.0)@2-3 B(1)@4", "a=1.0,b=1,s=s@2-4", "a=1,b=1,s=s@1-4", "a=1.0,b=1,s=s@2-4", id="of equal values the later start"),
    pytest.param(f"{A} SEQ {B}", "A(5)@1 A(1)@2 B(1)@3", *3 * ["a=1,b=1,s=s@2-3"], id="what ends later is the latest"),
    pytest.param("{ { ?s :B ?b } OPTIONAL { ?b :A ?a } } SEQ { ?s :C ?c }", "A(1,7)@1 B(1)@5 B(2)@2-5 C(1)@6", "b=2,c=1,s=s@2-6", "a=7,b=1,c=1,s=s@1-6", "a=7,b=1,c=1,s=s@1-6", id="an OPTIONAL binds it"),
    pytest.param("{ { ?s :B ?b } UNION { ?s :A ?a } } SEQ { ?s :C ?c }", "A(1)@1-5 B(1)@2-5 C(1)@6", "b=1,c=1,s=s@2-6", "a=1,c=1,s=s@1-6", "a=1,c=1,s=s@1-6", id="unbound is the least"),
    pytest.param(f"{B} SEQ {C}", "B(2)@1-5 B(1)@2-5 C(1)@6", "b=1,c=1,s=s@2-6", "b=2,c=1,s=s@1-6", "b=1,c=1,s=s@2-6", id="where no operand binds it: as recent"),
    pytest.param("{ SELECT ?b ?c { { ?s :A ?a ; :B ?b } SEQ { ?t :C ?c } } }", "A(x,10)@5 B(x,1)@5 A(y,9)@5 B(y,2)@5 C(1)@6", "b=2,c=1@5-6", "b=2,c=1@5-6", "b=1,c=1@5-6", id="inside a sub-SELECT that hides it"),
    pytest.param("{ SELECT ?b ?c { { ?s :B ?b } SEQ { ?s :C ?c . ?s :A ?a } } }", "B(1)@4-5 B(2)@5 C(1)@6 A(1)@6", "b=2,c=1@5-6", "b=1,c=1@4-6", "b=2,c=1@5-6", id="a variable of the right operand does not choose"),
    pytest.param(f"{A} PAR {B}", "A(2)@1-5 A(1)@2-5 B(1)@3-7", "a=1,b=1,s=s@2-7", "a=2,b=1,s=s@1-7", "a=2,b=1,s=s@1-7", id="PAR"),
    pytest.param(f"{A} AND {B}", "A(2)@1-5 A(1)@2-5 B(1)@6", "a=1,b=1,s=s@2-6", "a=2,b=1,s=s@1-6", "a=2,b=1,s=s@1-6", id="AND: the left operand's"),
    pytest.param(f"{B} AND {A}", "A(2)@1-5 A(1)@2-5 B(1)@6", "a=1,b=1,s=s@2-6", "a=2,b=1,s=s@1-6", "a=2,b=1,s=s@1-6", id="AND: the right operand's"),
    pytest.param(f"{A} SEQ {B} WITHOUT {C}", "A(2)@1-5 A(1)@2-5 B(1)@7", "a=1,b=1,s=s@2-7", "a=2,b=1,s=s@1-7", "a=2,b=1,s=s@1-7", id="SEQ WITHOUT"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "recent", "longest", "by"), LATEST)
def test_the_latest_of_one_end(run_: Runner, pattern: str, feed: str, recent: str, longest: str, by: str) -> None:
    for chosen, expected in ((RECENT, recent), (LONGEST, longest), (BY_A, by)):
        assert answers(run_, pattern, feed, "", chosen) == sorted(expected.split())


TIMELESS = [
    pytest.param(f"{A} SEQ {B}", "A(1)@1 A(2)@2 B(3)@3", "A(8) A(9)", "a=2,b=3,s=s@2-3", "a=1,b=3,s=s@1-3", "a=8,b=3,s=s@3 a=9,b=3,s=s@3", id="left ones"),
    pytest.param(f"{A} SEQ {B}", "A(1)@1 A(2)@2", "B(8) B(9)", "", "", "a=1,b=8,s=s@1 a=1,b=9,s=s@1 a=2,b=8,s=s@2 a=2,b=9,s=s@2", id="right ones"),
    pytest.param(f"{A} SEQ {B}", "X@7", "A(1) A(2) B(8)", "", "", "a=1,b=8,s=s@7 a=2,b=8,s=s@7", id="on both sides"),
    pytest.param(f"{A} SEQ {B} WITHOUT {C}", "A(1)@1 B(3)@3", "C", "", "", "", id="a timeless one blocks"),
    pytest.param(f"{A} SEQ {B} WITHOUT {C}", "A(2)@1 C(1)@2 B(3)@3", "A(1) B(4)", "", "", "a=1,b=4,s=s@1 a=2,b=4,s=s@1", id="what follows a timeless left goal blocks"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("pattern", "feed", "facts", "recent", "chronological", "always"), TIMELESS)
def test_timeless_goals_are_unrestricted(
    run_: Runner, pattern: str, feed: str, facts: str, recent: str, chronological: str, always: str
) -> None:  # fmt: skip
    for chosen, expected in ((RECENT, recent), (CHRONOLOGICAL, chronological)):
        assert answers(run_, pattern, feed, facts, chosen) == sorted((expected + " " + always).split())


def test_a_rule_under_a_policy_may_feed_its_left_goals() -> None:
    """SEQ is strict, so a counter goes on from its latest or its oldest value."""
    count = PREFIXES + "CONSTRUCT { ?s :N ?m } WHERE { { ?s :N ?n } SEQ { ?s :A ?a } BIND(?n + 1 AS ?m) }"
    feed = {DEFAULT_STREAM: parse_feed("N(0)@0 A(1)@1 A(2)@2 N(7)@3 A(3)@4")}
    found = {policy: shown(run_engine({"count": count}, feed, (), {"count": Settings(policy)})["count"]) for policy in ("recent", "chronological")}
    assert found == {"recent": ["N(s,1)@0-1", "N(s,2)@0-2", "N(s,8)@3-4"], "chronological": ["N(s,1)@0-1", "N(s,2)@0-2", "N(s,3)@0-4"]}
    for policy, rows in found.items():
        assert shown(run_oracle({"count": count}, feed, (), {"count": Settings(policy)})["count"]) == rows


def test_a_policy_is_a_negative_part_of_a_cycle() -> None:
    rule = PREFIXES + "CONSTRUCT { ?s :A ?a } WHERE { { ?s :A ?a } PAR { ?s :B ?b } }"
    query = epsparql.parse(rule)
    check(query)
    with pytest.raises(epsparql.QueryError) as caught:
        check(query, name="r", policies={"r": "recent"})
    assert caught.value.code == "cyclic-negation"


WHEN = [
    pytest.param("A(1)@1 B(1)@2 C(1)@3", f"{A} SEQ {B}", 0, id="SEQ: with its last event"),
    pytest.param("A(1)@1 B(1)@3 C(1)@4", f"{A} SEQ {B} WITHOUT {C}", 0, id="WITHOUT too"),
    pytest.param("A(1)@1-2 B(1)@2-3 C(1)@4", f"{A} MEETS {B}", 1, id="a relation: with the next instant"),
    pytest.param("A(1)@1 B(1)@2 C(1)@4", f"{A} AND {B}", 1, id="AND: with the next instant"),
]


@pytest.mark.parametrize(("feed", "pattern", "later"), WHEN)
def test_under_a_policy_a_solution_comes(feed: str, pattern: str, later: int) -> None:
    """Without a policy it comes with its last event."""
    found = {}
    for policy in ("unrestricted", "recent", "chronological"):
        log = entries({"q": f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"}, (), readings(feed), (), settings={"q": Settings(policy)})
        ((_, found[policy], *_),) = run([block(log)]).emitted
    assert found["recent"] == found["chronological"] == found["unrestricted"] + later


@settings(max_examples=examples(100))
@given(
    lefts=st.lists(st.integers(0, 9), max_size=6, unique=True),
    rights=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), max_size=6),
    cuts=st.sets(st.integers(3, 12), max_size=3),
)
def test_entries_of_one_instant_consume_in_the_order_of_the_log(lefts: list[int], rights: list[list[int]], cuts: set[int]) -> None:
    """Left goals that an entry's right goals take are gone for those of the next one, whatever their terms."""
    first = [Body(DEFAULT_STREAM, (occurrence(f"A(s,{n})@{k}"),)) for k, n in enumerate(lefts)]
    then = [Body(DEFAULT_STREAM, tuple(occurrence(f"B(s,{n})@20") for n in body)) for body in rights]
    log = entries({"q": f"{PREFIXES}SELECT ?a ?b WHERE {{ {A} SEQ {B} }}"}, (), [*first, *then], (), settings={"q": CHRONOLOGICAL})
    met, served = set[int](), list[tuple[int, int]]()
    for entry, body in enumerate(rights, 2 + len(lefts)):
        served += [(entry, n) for n in sorted(body) if n not in met]
        met |= set(body)
    expected = [(entry, left, right) for left, (entry, right) in zip(lefts, served, strict=False)]
    emitted = run(blocks(log, cuts), restore_before=cuts).emitted
    found = [(entry, *(int(value.split('"')[1]) for value in values)) for _, entry, _, _, values in emitted]  # type: ignore[union-attr]  # all are bound
    assert sorted(found) == sorted(expected)


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Refusal, match="'best' is no policy"):
        Engine().registry.place_query(Register(0, "q", "", "best"), epsparql.parse("SELECT * { ?s ?p ?o }").query)


# ---------------------------------------------------------------- what is kept
def kept(policy: str, pattern: str, bodies: list[Body]) -> int:
    """Goals that the engine holds when all has come but the streams go on."""
    engine = Engine()
    engine.feed(block(entries({"q": f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"}, (), bodies, (), settings={"q": Settings(policy)})))
    (member,) = engine.registry.members
    return int(member.network.net.stores[:, c.COUNT].sum())


def readings(feed: str) -> list[Body]:
    return in_order({DEFAULT_STREAM: parse_feed(feed)})


KEPT = [
    pytest.param("recent", f"{A} SEQ {B}", " ".join(f"A(s{k % 3},{k})@{k}" for k in range(100)) + " B(s,1)@100", 3, id="recent: one goal of each key"),
    pytest.param("recent", f"{A} SEQ {B}", " ".join(f"A({k})@5" for k in range(100)) + " B(1)@6", 1, id="recent: one of an instant"),
    pytest.param(
        "recent", f"{A} PAR {B} WITHIN 5", " ".join(f"A(s{k},1)@{k} B(t{k},1)@{k}" for k in range(100)), 2 * 6, id="recent: none that a window has left",
    ),
    pytest.param(
        "chronological", f"{A} SEQ {B} WITHIN 5", " ".join(f"A({k})@{k}" for k in range(10)) + " B(1)@11 B(2)@12 B(3)@12 B(4)@13", 6, id="chronological: what is not consumed",
    ),
    pytest.param("chronological", f"{A} PAR {B}", "B(1)@1-3 B(2)@1-3 A(1)@2-4 A(2)@5", 2, id="chronological: right goals until they are served"),
    pytest.param("chronological", f"{A} SEQ {B}", " ".join(f"A({k})@{k}" for k in range(0, 400, 2)) + " " + " ".join(f"B({k})@{k}" for k in range(1, 401, 2)) + " B(0)@500", 0, id="chronological: goals go one by one"),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "pattern", "feed", "goals"), KEPT)
def test_what_is_kept(policy: str, pattern: str, feed: str, goals: int) -> None:
    assert kept(policy, pattern, [*readings(feed), *readings("X@1000")]) == goals


@pytest.mark.parametrize("chosen", [RECENT, CHRONOLOGICAL])
def test_a_crowd_of_one_instant_is_in_order(chosen: Settings) -> None:
    """Goals that end together, each longer than the one before, and two of each length."""
    feed = " ".join(f"A({k % 2},{k})@{200 - k // 2}-300" for k in range(160)) + " " + " ".join(f"B({k % 2},{k})@{400 + k}" for k in range(160))
    pairs = {f"a={k},b={159 - k - 1 + 2 * (k % 2)},s={k % 2}@{200 - k // 2}-{559 - k - 1 + 2 * (k % 2)}" for k in range(160)}
    expected = pairs if chosen is CHRONOLOGICAL else {f"a={k % 2},b={k},s={k % 2}@200-{400 + k}" for k in range(160)}
    assert set(answers(run_engine, f"{A} SEQ {B}", feed, "", chosen)) == expected


# ---------------------------------------------------------------- by chance
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
RELATIONS = ("SEQ", "SEQ", "AND", "AND", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR")
SHAPES = (
    *(f"G {relation} G" for relation in RELATIONS), "G SEQ G SEQ G", "G PAR G SEQ G", "{ G OPTIONAL G } SEQ G", "G SEQ { G OPTIONAL G }", "{ G UNION G } SEQ { G UNION G }",
    "{ G UNION G } AND { G UNION G }", "G AND G AND G", "G AND G SEQ G", "G SEQ { G AND G }", "{ G OPTIONAL G } AND { G OPTIONAL G }", "G AND G WITHIN D", "G AND G FILTER(C)",
    "G AND G WITHOUT G", "G AND G WITHIN D WITHOUT G", "{ V } AND G", "G AND { V }", "GRAPH N { G AND G }", "{ P } AND G", "G AND { S }", "G FILTER EXISTS { G AND G }",
    "G SEQ G WITHIN D", "G PAR G WITHIN D", "G SEQ G FILTER(C)", "{ G SEQ G } { G SEQ G }", "G SEQ G WITHOUT G", "G SEQ G WITHIN D WITHOUT G", "G SEQ G WITHOUT G FILTER(C)",
    "{ G OPTIONAL G } SEQ G WITHOUT G", "G SEQ G WITHOUT { G OPTIONAL G }", "{ G SEQ G WITHOUT G } SEQ G", "G OPTIONAL { G SEQ G }", "G FILTER EXISTS { G SEQ G }", "{ G WITHOUT G FOR T } SEQ G",
    "{ V } SEQ G", "G SEQ { V }", "GRAPH N { G SEQ G }", "GRAPH N { G SEQ G WITHOUT G }", "{ GRAPH N G } SEQ G", "{ P } SEQ G", "{ S } SEQ G", "G SEQ { S }",
)  # fmt: skip


def policies() -> st.SearchStrategy[Settings]:
    return st.sampled_from((RECENT, LONGEST, BY_V, CHRONOLOGICAL))


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The shapes over groups that often match, some of them over any groups."""
    groups = draw(st.sampled_from((query_strategies.shared(), query_strategies.shared(), query_strategies.basic())))
    body = draw(query_strategies.shaped(draw(st.sampled_from(SHAPES)), groups))
    head = draw(st.sampled_from(("*", "*", "?s ?v")))
    anonymous = body.replace("_:@", "[]")
    return f"{query_strategies.PROLOGUE}SELECT {head} WHERE {anonymous}"


def accepted(query: str, chosen: Settings) -> bool:
    try:
        check(epsparql.parse(query), name="q", policies={"q": chosen.policy})
    except epsparql.QueryError as fault:
        if fault.code != "unsupported":
            raise
        return False
    return True


def is_split(bodies: Sequence[Body]) -> bool:
    """Return whether occurrences of one instant are released by several entries, whose order then says who consumes."""
    latest, released, waiting = 0, set[int](), set[int]()
    for body in bodies:
        ends = {o.end for o in body.occurrences}
        if ends & released:
            return True
        latest, waiting = max(latest, *ends), waiting | ends
        released |= {end for end in waiting if end <= latest - query_strategies.MAX_DELAY}
    return False


@settings(max_examples=examples(100), suppress_health_check=SLOW)
@given(query=queries(), chosen=policies(), fed=query_strategies.feeds(14), background=query_strategies.facts(), data=st.data())
def test_arrivals(query: str, chosen: Settings, fed: list[Occurrence], background: list[Fact], data: st.DataObject) -> None:
    """The engine gives what the reference evaluator gives, for any order within the delay, cut and restored anywhere."""
    assume(accepted(query, chosen))
    note(f"{chosen.policy}: {query}\n{show(fed)}\nbackground: {show(background)}")
    streams, how = {DEFAULT_STREAM: fed}, {"q": chosen}
    arrival = data.draw(query_strategies.arrivals(streams))
    log = entries({"q": query}, streams, arrival.bodies, background, query_strategies.MAX_DELAY, how)
    whole = run([block(log)])
    if chosen is not CHRONOLOGICAL or not is_split(arrival.bodies):
        assert results({"q": query}, whole.emitted) == run_oracle({"q": query}, streams, background, how)
    assert run(blocks(log, arrival.cuts), restore_before=arrival.restores) == whole


@settings(max_examples=examples(30), suppress_health_check=SLOW)
@given(
    rule=query_strategies.rules(),
    query=queries(),
    chosen=st.fixed_dictionaries(dict.fromkeys(("rule", "q"), st.one_of(st.just(Settings()), policies()))),
    fed=st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.feeds(6), query_strategies.OTHER: query_strategies.feeds(2)}),
)
def test_rules(rule: str, query: str, chosen: dict[str, Settings], fed: dict[str, list[Occurrence]]) -> None:
    """Policies are each query's own."""
    texts = {"rule": rule, "q": query}
    assume(accepted(query, chosen["q"]))
    note(f"{chosen}\n{rule}\n{query}\n{ {name: show(stream) for name, stream in fed.items()} }")
    ran = run_engine(texts, fed, (), chosen)
    assert ran == run_oracle(without(texts, texts.keys() - ran.keys()), fed, (), chosen)


@settings(max_examples=examples(30), suppress_health_check=SLOW)
@given(first=queries(), second=queries(), chosen=st.tuples(policies(), policies()), fed=query_strategies.feeds(14), data=st.data())
def test_two_queries(first: str, second: str, chosen: tuple[Settings, Settings], fed: list[Occurrence], data: st.DataObject) -> None:
    """Rows that the host orders for one query are ordered for the other at the same instant.

    One query is dropped without a trace in the other.
    """
    texts, how = {"q": first, "r": second}, dict(zip("qr", chosen, strict=True))
    assume(all(accepted(texts[name], how[name]) for name in texts))
    note(f"{how}\n{first}\n{second}\n{show(fed)}")
    bodies = in_order({DEFAULT_STREAM: fed})
    assert run_engine(texts, {DEFAULT_STREAM: fed}, (), how) == run_oracle(texts, {DEFAULT_STREAM: fed}, (), how)
    log = entries(texts, {DEFAULT_STREAM: fed}, bodies, (), settings=how)
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == "r")
    at = data.draw(st.integers(registered + 1, len(log)))
    cut = [(replace_fields(entry, offset=k), rows) for k, (entry, rows) in enumerate([*log[:at], (Drop(at, registered, "r"), ()), *log[at:]])]
    alone = run_engine({"q": first}, {DEFAULT_STREAM: fed}, (), how)
    assert results({"q": first}, [s for s in run([block(cut)]).emitted if s[0] == "q"]) == alone
