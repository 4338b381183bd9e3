"""Aggregates over a chain of SEQs give what they give where each match is made."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.explain import explain
from engine.messages import Block, Entry, Facts
from epsparql import parse
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import XSD, Iri, Literal
from tests.engine.runtime.test_partitioning import inserted, shared_out, whole
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND
from tests.support.run_both import block, blocks, entries, in_order, results, run, run_oracle

NAMES, VARIABLES = "abcd", "vwxyz"
PLAIN: list[Literal | Iri] = [Literal(str(k), XSD + "integer") for k in (1, 2, 3, -7)]
DECIMALS: list[Literal | Iri] = [Literal(text, XSD + "decimal") for text in ("0.5", "1.0", "2.25", "-0.125", "123456789.123456789")]
DOUBLES: list[Literal | Iri] = [Literal(text, XSD + "double") for text in ("0.1", "1.0E0", "-2.5E0", "3.0E-5", "7.0E9", "0.0E0", "-0.0E0")]
ODD: list[Literal | Iri] = [Literal("x"), Literal("NaN", XSD + "double"), Literal("1.0E300", XSD + "double"), Literal("1.0E-300", XSD + "double"),
       Literal("PT1S", XSD + "dayTimeDuration"), Literal("9" * 30, XSD + "integer"), Literal("4611686018427387903", XSD + "integer"), Iri(EXAMPLE + "o")]  # fmt: skip
VALUES: list[list[Literal | Iri]] = [
    PLAIN,
    PLAIN[:2],
    PLAIN + DECIMALS,
    DOUBLES,
    PLAIN + DOUBLES,
    PLAIN * 3 + DECIMALS + DOUBLES,
    PLAIN * 4 + DOUBLES + ODD,
]


@dataclass(frozen=True)
class ChainCase:
    """A query over a chain with events."""

    text: str
    events: tuple[Occurrence, ...]

    def __repr__(self) -> str:
        written = " ".join(f"{o.triple[0]} {o.triple[1]} {o.triple[2]} @{o.start / SECOND:g}-{o.end / SECOND:g}" for o in self.events)
        return f"{self.text.removeprefix(PREFIXES)}\n{written}".replace(EXAMPLE, ":")


@st.composite
def operands(draw: st.DrawFn, steps: int, keyed: bool) -> list[str]:
    found = []
    for variable in VARIABLES[:steps]:
        subject = "?s" if keyed else draw(st.sampled_from([":s", "[]"]))
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
        groups = [f"{{ {subject} :{name} ?{variable} }}" for name in names]
        kind = draw(st.integers(0, 9))
        if kind == 0:
            groups = [f"{{ {subject} :{names[0]} ?{variable} FILTER(?{variable} > 1) }}"]
        elif kind == 1:
            groups = [f"{{ {subject} :{names[0]} ?{variable} ; :{draw(st.sampled_from(NAMES))} ?_{variable} }}"]
        found.append(groups[0] if len(groups) == 1 else f"{{ {' UNION '.join(groups)} }}")
    return found


@st.composite
def chains(draw: st.DrawFn, steps: int, keyed: bool) -> str:
    """Draw a chain of SEQs; a third has WITHOUT in some gaps, with the key of the chain or without."""
    first, *others = draw(operands(steps, keyed))
    text, gaps = first, draw(st.integers(0, 2)) == 0
    for k, operand in enumerate(others):
        text += f" SEQ {operand}"
        if gaps and draw(st.booleans()):
            name = draw(st.sampled_from(NAMES))
            text += draw(
                st.sampled_from([f" WITHOUT {{ ?s :{name} ?n{k} }}", f" WITHOUT {{ ?u{k} :{name} ?n{k} }}", f" WITHOUT {{ :t :{name} [] }}"])
            )
    return text


@st.composite
def aggregates(draw: st.DrawFn, steps: int) -> list[str]:
    names = draw(st.lists(st.sampled_from(["COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX", "MIN", "MAX"]), min_size=1, max_size=4))
    arguments = st.sampled_from([f"?{v}" for v in VARIABLES[:steps]] + [f"?{VARIABLES[0]} * 2"])
    return [name if name == "COUNT(*)" else f"{name}({draw(arguments)})" for name in names]


@st.composite
def cases(draw: st.DrawFn) -> ChainCase:
    steps, keyed = draw(st.sampled_from([2, 2, 3, 3, 3, 4, 4, 5])), draw(st.booleans())
    chain = draw(chains(steps, keyed))
    within = draw(st.sampled_from(["WITHIN 1", "WITHIN 4", "WITHIN 9", 'FILTER(getDURATION() < "PT3S"^^xsd:duration)']))
    grouped = keyed and draw(st.booleans())
    shown = [f"({text} AS ?r{k})" for k, text in enumerate(draw(aggregates(steps)))]
    window = draw(st.sampled_from(["", "", ' WINDOW [RANGE "PT2S"]', ' WINDOW [RANGE "PT5S"]', ' WINDOW [RANGE "PT3S" STEP "PT1S"]']))
    having = draw(st.sampled_from(["", "", " HAVING(COUNT(*) > 2)"]))
    text = f"{PREFIXES}SELECT {'?s ' if grouped else ''}{' '.join(shown)} WHERE {{ {chain} {within} }}{' GROUP BY ?s' if grouped else ''}{having}{window}"
    values, lasting = draw(st.sampled_from(VALUES)), draw(st.booleans())
    events = []
    for _ in range(draw(st.integers(8, 36))):
        end = draw(st.integers(1, 24)) * SECOND // 2 + 10 * SECOND
        length = draw(st.sampled_from([0, 0, 0, 1, 2, 3])) * SECOND // 2 if lasting else 0
        subject, value = Iri(EXAMPLE + draw(st.sampled_from("st"))), draw(st.sampled_from(values))
        events.append(Occurrence((subject, Iri(EXAMPLE + draw(st.sampled_from(NAMES))), value), end - length, end, None))
    return ChainCase(text, tuple(dict.fromkeys(events)))


def compare_ways(case: ChainCase, data: st.DataObject, extra: Sequence[tuple[int, Entry]] = ()) -> list[Block]:
    """Compare the ways with each other, as the events arrive, and return the log."""
    arrival = data.draw(query_strategies.arrivals({DEFAULT_STREAM: list(case.events)}))
    log = inserted(entries({"q": case.text}, [DEFAULT_STREAM], arrival.bodies, (), query_strategies.MAX_DELAY), extra)
    parts = blocks(log, arrival.cuts)
    assert run(parts, restore_before=arrival.restores) == run(parts, unplanned={"sums"})
    return parts


@pytest.mark.slow
@settings(max_examples=examples(5_000))
@given(case=cases(), data=st.data())
def test_sums_over_chains_are_those_of_their_matches(case: ChainCase, data: st.DataObject) -> None:
    found = run(compare_ways(case, data))
    queries = {"q": case.text}
    assert results(queries, found.emitted) == run_oracle(queries, {DEFAULT_STREAM: case.events})


@settings(max_examples=examples(500))
@given(case=cases(), data=st.data(), partitions=st.integers(2, 3))
def test_partitions_give_the_same(case: ChainCase, data: st.DataObject, partitions: int) -> None:
    parts = compare_ways(case, data)
    assert shared_out(parts, partitions, data.draw(st.frozensets(st.integers(1, 4))))[:2] == whole(parts)


@settings(max_examples=examples(1_000))
@given(case=cases(), data=st.data(), at=st.integers(2, 30), name=st.sampled_from(NAMES + "z"))
def test_the_background_may_match_an_operand(case: ChainCase, data: st.DataObject, at: int, name: str) -> None:
    """The query makes its matches from then on, and the log tells it those of the past."""
    facts = f'<{EXAMPLE}s> <{EXAMPLE}{name}> "1"^^<{XSD}integer> .\n'
    compare_ways(case, data, [(min(at, 3 + len(case.events)), Facts(0, "", facts))])


# ---------------------------------------------------------------- which way
A, B, C = ("{{ ?s :{} ?{} }}".format(*pair) for pair in ("av", "bw", "cx"))
SUMMED = [
    pytest.param(f"{A} SEQ {B} WITHIN 10", "COUNT(*)", id="two operands"),
    pytest.param(f"{A} SEQ {B} SEQ {C} WITHIN 10 FILTER(getDURATION() < 'PT3S'^^xsd:duration)", "AVG(?w * 2)", id="a bound on the duration"),
    pytest.param(f"{A} SEQ {{ {B} UNION {C} }} WITHIN 10", "COUNT(?w)", id="UNION"),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "MIN(DISTINCT ?w)", id="MIN"),
    pytest.param(f"{A} SEQ {B} WITHIN 10 WITHOUT {C}", "COUNT(*)", id="WITHOUT with the key"),
    pytest.param(f"{A} SEQ {B} WITHOUT {{ ?q :c ?z }} SEQ {C} WITHIN 10", "MAX(?v)", id="WITHOUT without a key"),
]
MATCHED = [
    pytest.param(f"{A} SEQ {B}", "COUNT(*)", "", "no WITHIN bounds the chain", id="no WITHIN"),
    pytest.param(
        " SEQ ".join([A, B, C, A.replace("v", "t"), B.replace("w", "u"), C.replace("x", "r")]) + " WITHIN 9",
        "COUNT(*)",
        "",
        "more than 5 operands",
        id="six",
    ),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "SAMPLE(?v)", "", "the aggregate SAMPLE needs them", id="another aggregate"),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "COUNT(DISTINCT ?v)", "", "COUNT has DISTINCT", id="DISTINCT"),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "SUM(?v + ?w)", "", "SUM is not about one operand", id="two operands"),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "COUNT(getDURATION())", "", "COUNT is about the match as a whole", id="duration"),
    pytest.param(f"{A} SEQ {B} SEQ {{ ?v :c ?x }} WITHIN 10", "COUNT(*)", "", "share ?s, which operand 3 does not always bind", id="other keys"),
    pytest.param(f"{A} SEQ {{ {B} OPTIONAL {C} }} WITHIN 10", "COUNT(*)", "", "operand 2 is more than triple patterns", id="OPTIONAL"),
    pytest.param(f"{A} SEQ {B} WITHOUT {{ ?s :c ?w }} WITHIN 10", "COUNT(*)", "", "WITHOUT shares other variables", id="WITHOUT ?w"),
    pytest.param(f"{A} SEQ {B} WITHOUT {{ {C} SEQ {C} }} WITHIN 10", "COUNT(*)", "", "WITHOUT is more than triple patterns", id="WITHOUT SEQ"),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "COUNT(*)", "GROUP BY ?v", "GROUP BY has ?v", id="another group"),
    pytest.param(f"{A} SEQ {B} WITHIN 10", "COUNT(*)", "GROUP BY ?s WINDOW [ROWS 3]", "WINDOW [ROWS n] counts them", id="WINDOW"),
]


def group_step(pattern: str, aggregate: str, rest: str = "GROUP BY ?s") -> str:
    text = f"{PREFIXES}SELECT ({aggregate} AS ?r) WHERE {{ {pattern} }} {rest}"
    return next(step.detail for step in explain(parse(text).query).plan if step.operator == "GROUP")


@pytest.mark.parametrize(("pattern", "aggregate"), SUMMED)
def test_no_matches_are_made(pattern: str, aggregate: str) -> None:
    assert "whose matches are not made" in group_step(pattern, aggregate)


@pytest.mark.parametrize(("pattern", "aggregate", "rest", "reason"), MATCHED)
def test_the_condition_that_asks_for_matches(pattern: str, aggregate: str, rest: str, reason: str) -> None:
    assert reason in group_step(pattern, aggregate, rest)


# ---------------------------------------------------------------- bounds
def test_more_matches_than_one_could_make() -> None:
    """Five operands with 400 events each: 400 ** 4 matches at the last instant."""
    text = (
        PREFIXES
        + "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?t) WHERE { "
        + " SEQ ".join(f"{{ [] :{n} ?{v} }}" for n, v in zip("abcda", VARIABLES, strict=True))
        + " WITHIN 60 }"
    )
    events = [Occurrence((Iri(EXAMPLE + "s"), Iri(EXAMPLE + n), Literal(str(k), XSD + "integer")), (k + 400 * j) * 1_000, (k + 400 * j) * 1_000, None)
              for j, n in enumerate("abcd") for k in range(400)]  # fmt: skip
    last = Occurrence((Iri(EXAMPLE + "s"), Iri(EXAMPLE + "a"), Literal("0", XSD + "integer")), 9 * SECOND, 9 * SECOND, None)
    found = run([block(entries({"q": text}, [DEFAULT_STREAM], in_order({DEFAULT_STREAM: [*events, last]}), ()))]).emitted
    assert [value.split('"')[1] for value in found[-1][-1] if value] == [str(400**4), str(sum(range(400)) * 400**3)]
