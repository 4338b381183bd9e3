"""Static rules in an engine: they come and go as facts do, at one instant for every query, and survive a snapshot."""

import pyarrow as pa
import pytest

from engine.background.static_rules import maintenance
from engine.engine import Engine
from engine.messages import ADD, DROP, OCCURRENCES, RDFS, REPLACE, Block, CatchUp, Drop, Entry, Events, Facts, Pause, Register, Resume, StateChange
from engine.partitioning import PartitionShare
from engine.runtime.query_registry import Registry
from engine.validation import validate
from epsparql.terms import XSD

PREFIX = "PREFIX : <http://e/> "
NOTHING = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
RISK = PREFIX + "CONSTRUCT { ?road :closedBy ?event } INTO BACKGROUND :risk WHERE { ?event :blocks ?part . ?part :partOf+ ?road }"


class RuleLog:
    """Feeds an engine entry by entry, and collects what comes out."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self.solutions: list[list[str]] = []
        self.changes: list[StateChange] = []

    @property
    def at(self) -> int:
        return self.engine.position

    def feed(self, entry: Entry, rows: pa.RecordBatch = NOTHING) -> int:
        outcome = self.engine.feed(Block((entry,), rows))
        self.solutions += outcome.solutions.column("values").to_pylist()
        self.changes += outcome.changes
        return entry.offset

    def facts(self, text: str, graph: str = "", change: str = ADD) -> None:
        self.feed(Facts(self.at, graph, text, change))

    def register(self, text: str) -> int:
        return self.feed(Register(self.at, f"q{self.at}", text))

    def event(self, second: int, subject: str = "s", predicate: str = "p", object_: str = "o") -> None:
        row = {name: f"<http://e/{text}>" for name, text in zip("spo", (subject, predicate, object_), strict=True)}
        at = second * 1_000_000
        rows = pa.RecordBatch.from_pylist([row | {"start": at, "end": at, "late": False}], schema=OCCURRENCES)
        self.feed(Events(self.at, "default", 1, at), rows)


class RuleHistory(RuleLog):
    """Keeps what was fed, for queries that read it again."""

    def __init__(self) -> None:
        self.fed: list[Block] = []
        super().__init__(Engine(past=lambda lo, hi: (block for block in self.fed if lo <= block.first < hi)))

    def feed(self, entry: Entry, rows: pa.RecordBatch = NOTHING) -> int:
        self.fed.append(Block((entry,), rows))
        return super().feed(entry, rows)


def triples(*texts: str) -> str:
    return "".join(" ".join(f"<http://e/{part}>" for part in text.split()) + " .\n" for text in texts)


def derived(log: RuleLog, graph: str) -> set[str]:
    terms = log.engine.registry.terms
    return {" ".join(terms.text(n)[len("<http://e/") : -1] for n in row) for row in log.engine.registry.known.derived(f"http://e/{graph}").tolist()}


def test_a_rule_takes_effect_from_the_next_instant_and_so_does_its_end() -> None:
    log = RuleLog()
    log.facts(triples("e6a partOf e6", "crash blocks e6a"))
    log.register(PREFIX + "SELECT ?s ?event WHERE { ?s :p ?road . ?road :closedBy ?event }")
    log.event(1, "a", "p", "e6")
    rule = log.register(RISK)
    log.event(2, "b", "p", "e6")
    log.feed(Drop(log.at, rule, f"q{rule}"))
    log.event(3, "c", "p", "e6")
    log.event(4, "d", "p", "e6")
    assert [[s[10:-1], e[10:-1]] for s, e in log.solutions] == [["b", "crash"]]
    assert not log.changes


def test_a_paused_query_catches_up_through_the_rules_of_its_time() -> None:
    log = RuleHistory()
    log.facts(triples("e6a partOf e6", "crash blocks e6a"))
    query = log.register(PREFIX + "SELECT ?s WHERE { ?s :p ?road . ?road :closedBy ?event }")
    log.event(1, "a", "p", "e6")
    log.feed(Pause(log.at, query, f"q{query}"))
    rule = log.register(RISK)
    log.event(2, "b", "p", "e6")
    log.feed(Drop(log.at, rule, f"q{rule}"))
    log.event(3, "c", "p", "e6")
    log.event(4, "d", "p", "e6")
    log.feed(Resume(log.at, query, f"q{query}"))
    log.feed(CatchUp(log.at, query, log.at))
    assert [row[0][10:-1] for row in log.solutions] == ["b"]


def test_facts_come_and_go_through_a_recursive_rule() -> None:
    log = RuleLog()
    log.register(PREFIX + "CONSTRUCT { ?x :above ?y } INTO BACKGROUND :g WHERE { { ?x :on ?y } UNION { ?x :above ?z . ?z :on ?y } }")
    log.facts(triples("a on b", "b on c", "c on a"), "http://e/ring")
    log.facts(triples("c on d"), "http://e/tail")
    assert derived(log, "g") == {f"{x} above {y}" for x in "abc" for y in "abcd"}
    log.facts("", "http://e/ring", DROP)  # counting would keep what the ring supports by itself
    assert derived(log, "g") == {"c above d"}
    log.facts(triples("d on e"), "http://e/tail", REPLACE)
    assert derived(log, "g") == {"d above e"}


def test_negation_arithmetic_and_optional_parts() -> None:
    log = RuleLog()
    log.facts(triples("a next b", "b next c", "a type hot"))
    log.facts("".join(f'<http://e/{s}> <http://e/value> "{v}"^^<{XSD}integer> .\n' for s, v in (("a", 3), ("b", 5))))
    log.register(PREFIX + "CONSTRUCT { ?x :last true } INTO BACKGROUND :g WHERE { ?y :next ?x FILTER NOT EXISTS { ?x :next ?z } }")
    log.register(
        PREFIX
        + "CONSTRUCT { ?x :rise ?d } INTO BACKGROUND :g2 WHERE { ?x :next ?y . ?x :value ?v . ?y :value ?w BIND(?w - ?v AS ?d) FILTER(?d > 1) }"
    )
    log.register(PREFIX + "CONSTRUCT { ?x :kind ?t . ?x :seen :yes } INTO BACKGROUND :g3 WHERE { ?x :next ?y OPTIONAL { ?x :type ?t } }")
    log.register(PREFIX + "CONSTRUCT { ?x :free :yes } INTO BACKGROUND :g4 WHERE { ?x :next ?y MINUS { ?x :rise ?d } }")
    text = log.engine.registry.terms.text
    found = {(text(s)[10:-1], text(o)) for g in ("g", "g2") for s, _, o in log.engine.registry.known.derived(f"http://e/{g}").tolist()}
    assert found == {("c", f'"true"^^<{XSD}boolean>'), ("a", f'"2"^^<{XSD}integer>')}
    assert derived(log, "g3") == {"a kind hot", "a seen yes", "b seen yes"}
    assert derived(log, "g4") == {"b free yes"}


def test_what_a_rule_derives_entails_and_what_is_entailed_feeds_rules() -> None:
    log = RuleLog()
    schema = "<http://e/above> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <http://e/near> .\n"
    schema += "<http://e/near> <http://www.w3.org/2000/01/rdf-schema#range> <http://e/Place> .\n"
    log.facts(triples("a on b"))
    log.register(PREFIX + "CONSTRUCT { ?x :above ?y } INTO BACKGROUND :g WHERE { ?x :on ?y }")
    log.register(PREFIX + "CONSTRUCT { ?x :isPlace ?x } INTO BACKGROUND :h WHERE { ?x a :Place }")
    assert derived(log, "h") == set()
    log.facts(schema, "http://e/schema")
    assert derived(log, "h") == {"b isPlace b"}
    log.facts("", "http://e/schema", DROP)
    assert derived(log, "h") == set()


def test_a_given_triple_that_is_derived_too_needs_no_rule() -> None:
    log = RuleLog()
    log.facts(triples("a q b"), "http://e/g")
    rule = log.register(PREFIX + "CONSTRUCT { ?x :q ?y } INTO BACKGROUND :g WHERE { ?x :p ?y }")
    log.facts(triples("a p b"), "http://e/more")
    q = log.engine.registry.terms.intern("<http://e/q>")
    assert len(log.engine.registry.known.match_rows(q)) == 1
    log.facts("", "http://e/g", DROP)
    assert len(log.engine.registry.known.match_rows(q)) == 1
    log.feed(Drop(log.at, rule, f"q{rule}"))
    assert len(log.engine.registry.known.match_rows(q)) == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CONSTRUCT { ?x :n ?y } INTO BACKGROUND :g WHERE { ?x :p ?y FILTER NOT EXISTS { ?x :n ?y } }", "depend on their own negation"),
        ("CONSTRUCT { ?x :n ?m } INTO BACKGROUND :g WHERE { { ?x :v ?n } UNION { ?x :n ?n } BIND(?n + 1 AS ?m) }", "derive more than 500 triples"),
    ],
)
def test_a_rule_that_cannot_stand_fails_and_the_others_go_on(text: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "MOST_GROWN", 500)
    log = RuleLog()
    log.register(PREFIX + "CONSTRUCT { ?x :r ?y } INTO BACKGROUND :g WHERE { ?x :p ?y }")
    log.facts(triples("a p b") + f'<http://e/a> <http://e/v> "1"^^<{XSD}integer> .\n')
    log.register(PREFIX + text)
    assert [change.state for change in log.changes] == ["failed"]
    assert reason in log.changes[0].reason
    assert derived(log, "g") == {"a r b"}
    log.facts(triples("c p d"))
    assert derived(log, "g") == {"a r b", "c r d"}


@pytest.mark.parametrize(
    "where",
    ["{ ?x :p ?v . ?x :n ?n BIND(CONCAT(?v, STR(?n)) AS ?w) }", "{ SELECT ?x ?n (GROUP_CONCAT(?v) AS ?w) { ?x :p ?v . ?x :n ?n } GROUP BY ?x ?n }"],
)
def test_long_texts_that_rules_compute_are_work(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred triples and one text of a thousand characters would become a hundred texts."""
    monkeypatch.setattr(validate, "MOST_WORK", 100_000)
    facts = f'<http://e/a> <http://e/p> "{"x" * 1_000}" .\n' + "".join(f'<http://e/a> <http://e/n> "{k}" .\n' for k in range(100))
    known = validate.background_of(facts, RDFS)
    found = validate.background_with(known, [(1, "r", f"{PREFIX}CONSTRUCT {{ ?x :long ?w }} INTO BACKGROUND :g WHERE {where}", "all")])
    assert "2 for each computed character" in str(found.overflow)
    few = validate.background_of("".join(line + "\n" for line in facts.splitlines()[:40]), RDFS)
    assert validate.background_with(few, [(1, "r", f"{PREFIX}CONSTRUCT {{ ?x :long ?w }} INTO BACKGROUND :g WHERE {where}", "all")]).overflow is None


def test_a_log_beyond_the_limit_is_read_without_rules_until_enough_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "MOST_DERIVED", 4)
    log = RuleLog()
    log.register(PREFIX + "CONSTRUCT { ?x :r ?y } INTO BACKGROUND :g WHERE { ?x :p ?y }")
    log.facts(triples("a p b", "a p c"))
    log.facts(triples("b p c", "b p d", "b p e"), "http://e/more")
    assert "derive more than 4 triples" in str(log.engine.registry.known.overflow)
    assert derived(log, "g") == set()
    log.facts("", "http://e/more", DROP)
    assert derived(log, "g") == {"a r b", "a r c"}
    assert log.engine.registry.known.overflow is None


def test_a_snapshot_and_every_partition_have_what_rules_derive() -> None:
    entries = RuleLog()
    entries.facts(triples("e6a partOf e6", "crash blocks e6a"))
    entries.register(RISK)
    restored = RuleLog(Engine.restore(entries.engine.snapshot()))
    for log in (entries, restored):
        assert derived(log, "risk") == {"e6 closedBy crash"}
        log.facts(triples("e6b partOf e6", "flood blocks e6b"))
        assert derived(log, "risk") == {"e6 closedBy crash", "e6 closedBy flood"}
    found: list[list[str]] = []
    for partition in range(2):
        log = RuleLog(Engine(Registry(PartitionShare(partition, 2))))
        log.facts(triples("e6a partOf e6", "crash blocks e6a"))
        log.register(PREFIX + "SELECT ?s ?event WHERE { ?s :p ?road . ?road :closedBy ?event }")
        log.register(RISK)
        for second in range(1, 9):
            log.event(second, f"s{second}", "p", "e6")
        found += [[s[10:-1], e[10:-1]] for s, e in log.solutions]
    assert sorted(found) == [[f"s{k}", "crash"] for k in range(1, 9)]
