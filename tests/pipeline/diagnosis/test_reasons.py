"""A diagnosis names the first step that lets nothing through, and what would have passed: a row for each kind of
reason.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

import epsparql
from engine.messages import OCCURRENCES, Register
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.diagnosis.diagnosis import MOST_DEEP, Question, diagnose
from pipeline.diagnosis.evaluation.probing import Setting
from pipeline.diagnosis.evaluation.sample import Sample
from pipeline.diagnosis.model import FOUND, NOTHING, Diagnosis
from tests.support.feeds import PREFIXES, parse_feed, select


def sample_of(**feeds: str) -> Sample:
    """Events in shorthand, by stream."""
    return Sample.from_batches({name: [(0, _batch(feed))] for name, feed in feeds.items()})


def _batch(feed: str) -> pa.RecordBatch:
    rows = [
        {"s": str(o.triple[0]), "p": str(o.triple[1]), "o": str(o.triple[2]), "g": None if o.graph is None else str(o.graph)}
        | {"start": o.start + EPOCH, "end": o.end + EPOCH, "late": False}
        for o in parse_feed(feed)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES)


EPOCH = 1_767_225_600_000_000  # 2026-01-01


def ask(query: str, feed: str, other: str = "", facts: str = "", policy: str = UNRESTRICTED) -> Diagnosis:
    text = query if "SELECT" in query else select(query)
    setting = Setting([("", facts)] if facts else [], policy=policy)
    return diagnose(Question("q", epsparql.parse(text), setting, sample_of(default=feed), lambda: sample_of(other=other)))


REASONS = [
    pytest.param("A SEQ B", "A@1 C@2", "", "predicate-never-seen", ["<http://example.org/B>", "C> (once)"], id="predicate"),
    pytest.param("{ ?s :temperature ?t }", "temperatur(x,1)@1 temperatur(x,1)@2", "", "predicate-never-seen", ["the nearest is <http://example.org/temperatur>, seen 2 times"], id="misspelt predicate"),
    pytest.param("{ ?s :temp ?t }", "Temp(x,1)@1", "", "predicate-never-seen", ["upper and lower case"], id="case"),
    pytest.param("{ ?s :temp ?t }", "A@1", "temp@1", "other-stream", ["<other> has carried it once"], id="other stream"),
    pytest.param("{ ?s :A :x }", "A(s,X)@1 A(s,y)@2", "", "object-never-seen", ["the nearest is <http://example.org/X>", "upper and lower case"], id="object"),
    pytest.param('{ ?s :A "x" }', "A(s,x)@1", "", "object-never-seen", ["one is a text, the other an IRI"], id="IRI for text"),
    pytest.param('{ ?s :A "x"@en }', 'A(s,"x")@1', "", "object-never-seen", ["language tag"], id="language"),
    pytest.param('{ ?s :A "7" }', "A(s,7)@1", "", "object-never-seen", ["one is a text, the other a number"], id="number for text"),
    pytest.param("{ :y :A ?a }", "A(x,1)@1", "", "subject-never-seen", ["the subject <http://example.org/y> was never seen"], id="subject"),
    pytest.param("{ :y :A ?a }", "A(x,1)@1 B(y,1)@1", "", "subject-never-seen", ["together with the rest"], id="predicate of another subject"),
    pytest.param("GRAPH :h { ?s :A ?a }", "g/A@1", "", "graph-never-seen", ["<http://example.org/h>", "<http://example.org/g>"], id="graph"),
    pytest.param("GRAPH ?g { ?s :A ?a }", "A@1", "", "graph-never-seen", ["in no named graph"], id="no graph"),
    pytest.param("{ ?s :A ?a FILTER(?a > 30) }", 'A(x,"35")@1', "", "other-datatype", ['?a was compared with a number once and was a text each time: "35"'], id="text for number"),
    pytest.param("{ ?s :A ?a FILTER(?a > 30) }", "A(x,29)@1 A(x,7)@2", "", "filter-false", ["the closest value of ?a was 29"], id="closest value"),
    pytest.param("{ ?s :A ?a FILTER(?a = 30 || ?a = 31) }", "A(x,29)@1", "", "filter-false", ["the closest value of ?a was 29"], id="alternatives"),
    pytest.param("{ ?s :A ?a FILTER(?a IN (:b, :c)) }", "A(x,B)@1", "", "filter-false", ["the nearest value of ?a was <http://example.org/B>"], id="IN"),
    pytest.param("{ ?s :A ?a FILTER(?z > 3) }", "A(x,29)@1", "", "never-bound", ["?z is unbound"], id="unbound"),
    pytest.param("{ ?s :A ?a FILTER(?a > 3 && ?a < 2) }", "A(x,1)@1 A(x,5)@2", "", "filter-false", ["no solution satisfies all conditions together"], id="together"),
    pytest.param("{ ?s :A ?a FILTER EXISTS { ?s :B ?b } }", "A(x,1)@1 B(y,1)@1", "", "exists-never", ["EXISTS { ?s :B ?b . } is false"], id="EXISTS"),
    pytest.param("{ ?s :A ?a FILTER NOT EXISTS { ?q :B ?b } }", "A(x,1)@1 B(y,1)@1", "", "blocked", ["NOT EXISTS { ?q :B ?b . } is false"], id="NOT EXISTS"),
    pytest.param("{ ?s :A ?a } SEQ { ?s :B ?b }", "A(x,1)@1 B(y,1)@2", "", "key-never-met", ["?s never has one value", "<http://example.org/x>", "<http://example.org/y>"], id="key"),
    pytest.param("{ ?s :A ?a . ?a :B ?b }", 'A(x,y)@1 B("y",1)@1', "", "key-never-met", ["one is an IRI, the other a text"], id="kinds of keys"),
    pytest.param("A SEQ B", "A@3 B@2", "", "wrong-order", ["is always before", "1 s apart"], id="order"),
    pytest.param("A SEQ B", "A@3 B@3", "", "same-instant", ["at the same instant"], id="same instant"),
    pytest.param("A SEQ B", "A@1-3 B@2-4", "", "overlaps", ["overlap"], id="overlap"),
    pytest.param("A EQUALS B", "A@3 B@4", "", "never-equal", ["differ by 1 s"], id="EQUALS"),
    pytest.param("A DURING B", "A@3-9 B@4-8", "", "never-related", ["DURING never holds"], id="relation"),
    pytest.param("A SEQ B WITHIN PT1H", "A@0 B@4800 A@9000", "", "too-far-apart", ["WITHIN is 1 h", "1 h 20 min"], id="window"),
    pytest.param("{ A SEQ B } FILTER(getDURATION() < 'PT1H'^^xsd:duration)", "A@0 B@4800", "", "too-far-apart", ["1 h 20 min"], id="getDURATION"),
    pytest.param("A SEQ B WITHOUT C", "A@1 C@2 B@3", "", "blocked", ["{ ?s :C ?c . }", "2026-01-01T00:00:02Z"], id="WITHOUT"),
    pytest.param("A WITHOUT C FOR PT5S", "A@1 C@2", "", "blocked", ["{ ?s :C ?c . }"], id="WITHOUT FOR"),
    pytest.param("A MINUS { ?s :B ?b }", "A@1 B@1", "", "blocked", ["{ ?s :B ?b . }"], id="MINUS"),
    pytest.param("{ ?s :A ?a } UNION { ?s :B ?b }", "C@1", "", "predicate-never-seen", ["<http://example.org/A>"], id="UNION"),
    pytest.param("A OPTIONALSEQ { ?s :B ?b FILTER(?b > 3) }", "A@1 B(s,1)@2", "", "filter-false", ["closest value of ?b was 1"], id="OPTIONALSEQ"),
    pytest.param("{ ?s :A/:B ?b }", "A(x,y)@1 C(y,z)@2", "", "predicate-never-seen", ["<http://example.org/B>"], id="path"),
    pytest.param("{ ?s :B+ ?b }", "A(x,y)@1", "", "predicate-never-seen", ["<http://example.org/B>"], id="repeated path"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "feed", "other", "code", "said"), REASONS)
def test_reason(query: str, feed: str, other: str, code: str, said: Sequence[str]) -> None:
    found = ask(query, feed, other)
    assert found.state == NOTHING
    assert found.reason is not None
    assert found.reason.code == code, found.reason
    for part in said:
        assert part in str(found.reason)


GROUPED = select("?s :A ?a", "SELECT ?s (COUNT(*) AS ?n)") + " GROUP BY ?s HAVING (COUNT(*) > 3)"


@pytest.mark.parametrize(
    ("query", "feed", "code", "said"),
    [
        pytest.param(GROUPED, "A(x,1)@1 A(x,2)@2", "filter-false", "COUNT(*) > 3 is false 2 times: the closest value of COUNT(*) was 2", id="HAVING"),
        pytest.param(f"{PREFIXES}SELECT * {{ ?s :A ?a }} OFFSET 5", "A(x,1)@1", "skipped", "OFFSET 5 leaves none of 1 solutions", id="OFFSET"),
        pytest.param(f"{PREFIXES}SELECT * FROM STREAM <y> {{ ?s :A ?a }}", "A(x,1)@1", "stream-empty", "the stream <y> has no events", id="stream"),
    ],
)
def test_reason_of_a_whole_query(query: str, feed: str, code: str, said: str) -> None:
    found = ask(query, feed)
    assert found.reason is not None
    assert found.reason.code == code
    assert said in found.reason.message


def test_a_decimal_comma_is_named() -> None:
    row = {"s": "<http://e/a>", "p": "<http://e/t>", "o": '"35,5"', "g": None, "start": EPOCH, "end": EPOCH, "late": False}
    sample = Sample.from_batches({"default": [(0, pa.RecordBatch.from_pylist([row], schema=OCCURRENCES))]})
    found = diagnose(Question("q", epsparql.parse("SELECT * { ?s <http://e/t> ?t FILTER(?t > 30) }"), Setting(), sample))
    assert found.reason is not None
    assert found.reason.code == "other-datatype"
    assert "decimal comma" in found.reason.remedy


def test_what_is_found_has_no_reason() -> None:
    found = ask("A SEQ B", "A@1 B@2")
    assert (found.state, found.reason) == (FOUND, None)
    assert [(step.operator, step.out) for step in found.steps] == [("pattern", 1), ("pattern", 1), ("SEQ", 1)]


def test_steps_have_places_and_counts() -> None:
    found = ask(f"{PREFIXES}SELECT * {{ {{ ?s :A ?a FILTER(?a > 3) }} SEQ {{ ?s :B ?b }} WITHIN PT5S }}", "A(s,1)@1 A(s,2)@2 B(s,2)@3")
    assert [(step.operator, step.line, step.column, step.inputs, step.out) for step in found.steps] == [
        ("pattern", 3, 14, (), 2), ("FILTER", 3, 23, (2,), 0), ("pattern", 3, 46, (), 1), ("SEQ", 3, 40, (0, 1), 0), ("WITHIN", 3, 57, (0,), 0),
    ]  # fmt: skip
    assert found.reason is not None
    assert (found.reason.line, found.reason.column) == (3, 23)


def test_a_class_of_the_background_is_near() -> None:
    """The events have a subclass, and no background says so."""
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rows = [{"s": "<http://e/a>", "p": kind, "o": "<http://e/TemperatureSensor>", "g": None, "start": EPOCH, "end": EPOCH, "late": False}]
    sample = Sample.from_batches({"default": [(0, pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES))]})
    query = epsparql.parse("SELECT * { ?s a <http://e/Sensor> }")
    found = diagnose(Question("q", query, Setting(), sample))
    assert found.reason is not None
    assert found.reason.code == "class-never-seen"
    assert "<http://e/TemperatureSensor>" in found.reason.message
    assert "background" in found.reason.remedy
    fact = "<http://e/TemperatureSensor> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://e/Sensor> .\n"
    assert diagnose(Question("q", query, Setting([("", fact)]), sample)).state == FOUND


def test_the_policy_uses_events_up() -> None:
    found = ask("{ ?s :A ?a } SEQ { ?s :B ?b } FILTER(?a = 1)", "A(s,1)@1 A(s,2)@2 B@3", policy="recent")
    assert found.reason is not None
    assert found.reason.code == "policy"


def test_a_long_sample_is_examined_in_time() -> None:
    """Every pair of the first step would be billions of solutions."""
    count = 131_072
    terms = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), ["<http://example.org/s>"])
    predicates = pa.DictionaryArray.from_arrays(
        pa.array([k % 2 for k in range(count)], pa.int32()), ["<http://example.org/A>", "<http://example.org/B>"]
    )
    none = pa.nulls(count, OCCURRENCES.field("g").type)
    times = pa.array([EPOCH + 1_000_000 * k for k in range(count)], OCCURRENCES.field("end").type)
    rows = pa.RecordBatch.from_arrays([terms, predicates, terms, none, times, times, pa.array([False] * count)], schema=OCCURRENCES)
    sample = Sample.from_batches({"default": [(0, rows)]})
    began = time.process_time()
    found = diagnose(Question("q", epsparql.parse(select("A SEQ B WITHIN PT0.5S")), Setting(), sample))
    assert time.process_time() - began < 2
    assert found.reason is not None
    assert found.reason.code == "too-far-apart"
    assert "1 s" in found.reason.message


def test_a_claim_over_a_part_of_the_events_says_so() -> None:
    feed = "\n".join(f"A(x,{k})@{k}" for k in range(1, 4_001))
    found = ask("{ ?s :A ?a FILTER(?a > 5000) }", feed)
    assert found.reason is not None
    assert re.search(r"is false more than ([\d,]+) times: the closest value of \?a, of the first \1, was \d", found.reason.message)
    sample = replace(sample_of(default="A@1"), bounded=True)
    missing = diagnose(Question("q", epsparql.parse(select("{ ?s :temp ?t }")), Setting(), sample)).reason
    assert missing is not None
    assert "was never seen in the last 1 events of the stream <default>" in missing.message


RULES = [
    (
        ["CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> WHERE { ?s :temp ?t FILTER(?t > 30) }"],
        "SELECT * FROM STREAM <hot> WHERE { ?s :hot ?t }",
        "no event of the stream <hot>: the rule 'rule 0' writes it, and finds nothing at its line 1, column 95: ?t > 30 is false 2 times: the closest value of ?t",
        "rule-silent",
    ),
    (
        ["CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> WHERE { ?s :tempp ?t }"],
        "SELECT * FROM STREAM <default> FROM STREAM <hot> WHERE { ?s :temp ?t } SEQ { ?s :hot ?u }",
        "the predicate <http://example.org/tempp> was never seen",
        "rule-silent",
    ),
    (
        [
            "CONSTRUCT { ?s :alarm ?t } INTO STREAM <alarm> FROM STREAM <hot> WHERE { ?s :hot ?t }",
            "CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> WHERE { ?s :temp ?t FILTER(?t > 30) }",
        ],
        "SELECT * FROM STREAM <alarm> WHERE { ?s :alarm ?t }",
        "no event of the stream <alarm>: the rule 'rule 0' writes it, and finds nothing at its line 1, column 105: "
        "no event of the stream <hot>: the rule 'rule 1' writes it, and finds nothing",
        "rule-silent",
    ),
    (
        [
            "CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> WHERE { ?s :temp ?t FILTER(?t > 30) }",
            "CONSTRUCT { ?s ?p ?t } INTO STREAM <hot> WHERE { ?s ?p ?t FILTER(?t > 40) }",
        ],
        "SELECT * FROM STREAM <hot> WHERE { ?s :hot ?t }",
        "the rule 'rule 0' writes it (as 1 more rule does), and finds nothing",
        "rule-silent",
    ),
    (
        ["CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> FROM STREAM <hot> WHERE { ?s :hot ?t }"],
        "SELECT * FROM STREAM <hot> WHERE { ?s :hot ?t }",
        "the rule 'rule 0' writes it, and finds nothing",
        "rule-silent",
    ),
    (
        ["CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> WHERE { ?s :temp ?t }"],
        "SELECT * FROM STREAM <hot> WHERE { ?s :hot ?t FILTER(?t > 30) }",
        "the closest value of ?t was 29",
        "filter-false",
    ),
    (
        ["CONSTRUCT { ?s :hot ?t } INTO STREAM <hot> WHERE { ?s :temp ?t FILTER(?t > 30) }"],
        "SELECT * FROM STREAM <default> FROM STREAM <hot> WHERE { ?s :tempo ?t }",
        "the nearest is <http://example.org/temp>",
        "predicate-never-seen",
    ),
]


@pytest.mark.parametrize(("rules", "query", "words", "code"), RULES)
def test_a_silent_rule_is_the_reason(rules: list[str], query: str, words: str, code: str) -> None:
    prefix = "PREFIX : <http://example.org/> "
    entries = [Register(number, f"rule {number}", prefix + text) for number, text in enumerate(rules)]
    found = diagnose(Question("q", epsparql.parse(prefix + query), Setting(rules=entries), sample_of(default="temp(x,29)@1 temp(x,20)@2")))
    assert found.reason is not None
    assert words in found.reason.message
    assert found.reason.code == code


def test_a_chain_of_rules_is_followed_for_some_steps() -> None:
    texts = [f"CONSTRUCT {{ ?s <x:{k}> ?t }} INTO STREAM <s{k}> FROM STREAM <s{k + 1}> WHERE {{ ?s <x:{k + 1}> ?t }}" for k in range(6)]
    entries = [Register(number, f"rule {number}", text) for number, text in enumerate(texts)]
    found = diagnose(
        Question("q", epsparql.parse("SELECT * FROM STREAM <s0> WHERE { ?s <x:0> ?t }"), Setting(rules=entries), sample_of(default="A@1"))
    )
    assert found.reason is not None
    assert found.reason.message.count("the rule 'rule ") == MOST_DEEP
