"""Queries that read the past, and queries that are paused: they find what they would have found with the others,
whatever is cut and restored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from engine.engine import Engine
from engine.messages import Block, CatchUp, Drop, Entry, Events, Facts, Finish, Outcome, Pause, Register, Resume
from engine.partitioning import PartitionShare
from epsparql.terms import Iri, Literal
from epsparql.trees import replace_fields
from pipeline.runners.merge import Merger
from tests.engine.runtime.test_partitioning import Partition
from tests.reference.evaluator import Occurrence
from tests.soak import is_full
from tests.support.run_both import block

pytestmark = pytest.mark.slow

S, D = "http://e/s", "http://e/d"
SEQ = "SELECT ?a ?b WHERE { { ?x <http://e/p> ?a } SEQ { ?x <http://e/q> ?b } WITHIN 0.00002 }"
NEVER = "SELECT ?a WHERE { ?x <http://e/p> ?a MINUS { ?x <http://e/q> ?b } }"
OPTIONAL = "SELECT ?a ?b WHERE { { ?x <http://e/p> ?a } OPTIONAL { ?x <http://e/q> ?b } }"
COUNT = "SELECT ?x (COUNT(?a) AS ?n) WHERE { ?x <http://e/p> ?a } GROUP BY ?x WINDOW [RANGE 'PT0.000005S']"
STEPS = "SELECT ?x (COUNT(?a) AS ?n) WHERE { ?x <http://e/p> ?a } GROUP BY ?x WINDOW [RANGE 'PT0.000006S' STEP 'PT0.000003S']"
TIMER = "SELECT ?a WHERE { { ?x <http://e/p> ?a } WITHOUT { ?x <http://e/q> ?b } FOR 'PT0.000003S' }"
PATH = "SELECT ?x ?y WHERE { ?x <http://e/next>+ ?y }"
MIXED = "SELECT ?a ?k WHERE { ?x <http://e/p> ?a . ?x <http://e/kind> ?k }"
QUERIES = [SEQ, NEVER, OPTIONAL, COUNT, STEPS, TIMER, PATH, MIXED]
RULE = "CONSTRUCT { ?x <http://e/p> ?b } INTO STREAM <http://e/d> WHERE { { ?x <http://e/p> ?a } SEQ { ?x <http://e/q> ?b } }"
OVER = "SELECT ?x ?c FROM STREAM <http://e/d> WHERE { { ?x <http://e/p> ?a } SEQ { ?x <http://e/p> ?c } }"
BOTH = "SELECT ?x ?c FROM STREAM <default> FROM STREAM <http://e/d> WHERE { ?x <http://e/q> ?a . ?x <http://e/p> ?c }"
CLOSURE = "CONSTRUCT { ?x <http://e/next> ?z } WHERE { ?x <http://e/next> ?y . ?y <http://e/next> ?z }"

Found = tuple[str, int, int, tuple[str | None, ...]]


@dataclass(slots=True)
class CatchUpLog:
    """A log that is written entry by entry."""

    parts: list[tuple[Entry, tuple[Occurrence, ...]]] = field(default_factory=list)

    def add(self, entry: Entry, *occurrences: Occurrence) -> int:
        self.parts.append((replace_fields(entry, offset=len(self.parts)), occurrences))
        return len(self.parts) - 1

    def feed(self, random: Random, first: int, after: int, delay: int = 0) -> None:
        """Occurrences that end from `first` on, one to an entry, of a few things that follow each other."""
        for end in range(first, after):
            x, y = (Iri(f"http://e/{random.choice('ab')}") for _ in range(2))
            predicate = random.choice(["p", "q", "next"])
            value = y if predicate == "next" else Literal(str(random.randrange(3)))
            start = end - random.randrange(3)
            self.add(Events(0, "default", 1, end - delay), Occurrence((x, Iri(f"http://e/{predicate}"), value), start, end))

    def read(self, first: int, after: int) -> Iterable[Block]:
        for at in range(first, after, 7):
            yield block(self.parts[at : min(at + 7, after)])

    def catch_up(self, registered: int, begin: int, random: Random, most: int = 9) -> None:
        """Pieces of the log from `begin` on, other entries between them, until nothing is left."""
        at, end = begin, 1000 + len(self.parts)
        while at < (offset := len(self.parts)):
            at = min(at + random.randrange(2, most), offset)
            self.add(CatchUp(0, registered, at))
            if at == offset:
                return
            if random.random() < 0.3:
                self.feed(random, end, end + 1)
                end += 1

    def run(self, random: Random | None = None) -> list[Outcome]:
        """Return the outcomes of the log, fed to an engine in blocks of random length; at random the engine is saved
        and restored.
        """
        engine, outcomes, at = Engine(past=self.read), list[Outcome](), 0
        while at < len(self.parts):
            n = len(self.parts) if random is None else random.randrange(1, 12)
            if random is not None and random.random() < 0.3:
                engine = Engine.restore(engine.snapshot())
                engine.look_back_by(self.read)
            outcomes.append(engine.feed(block(self.parts[at : at + n])))
            at += n
        assert not [change for outcome in outcomes for change in outcome.changes if change.state == "failed"], outcomes
        return outcomes

    def run_shared(self, random: Random, partitions: int) -> list[Outcome]:
        """Return the merged outcomes of so many engines, fed and restored as by `run`."""
        engines, merger = [Partition(PartitionShare(number, partitions), self.read) for number in range(partitions)], Merger()
        outcomes, at = list[Outcome](), 0
        while at < len(self.parts):
            n = random.randrange(1, 12)
            if random.random() < 0.3:
                for engine in engines:
                    engine.restored()
            outcomes.append(merger.merged(at, [each.engine.feed(block(self.parts[at : at + n])) for each in engines]))
            at += n
        return outcomes


def found(outcomes: Sequence[Outcome], name: str = "q") -> list[Found]:
    """A query's solutions, in the order from which their ids come."""
    rows = []
    for outcome in outcomes:
        entries = outcome.solutions.column("entry").to_pylist()
        assert entries == sorted(entries)
        for row in outcome.solutions.to_pylist():
            if row["query"] == name:
                rows.append((row["query"], row["start"].timestamp(), row["end"].timestamp(), tuple(row["values"])))
    return rows


def without_history(log: CatchUpLog) -> CatchUpLog:
    """The same log with the query `q` registered where it begins to read, and nothing that has anything to do with
    the past.
    """
    moved = [entry for entry, _ in log.parts if isinstance(entry, Register) and entry.reads_from is not None]
    plain, numbers = CatchUpLog(), dict[int, int]()
    for entry, occurrences in log.parts:
        for register in moved:
            if register.reads_from == entry.offset:
                numbers[register.offset] = plain.add(replace_fields(register, reads_from=None, holds=()))
        if isinstance(entry, Register) and entry not in moved:
            numbers[entry.offset] = plain.add(replace_fields(entry, waits_for=None))
        elif isinstance(entry, Drop):
            plain.add(replace_fields(entry, registered=numbers[entry.registered]))
        elif not isinstance(entry, Pause | Resume | CatchUp | Register):
            plain.add(entry, *occurrences)
    return plain


def check(log: CatchUpLog, random: Random, names: Sequence[str] = ("q",)) -> None:
    expected = without_history(log).run()
    once, cut, shared = log.run(), log.run(random), log.run_shared(random, 2)
    for name in names:
        assert found(expected, name), "a test that finds nothing shows nothing"
        assert found(once, name) == found(expected, name)
        assert found(cut, name) == found(expected, name)
        assert found(shared, name) == found(expected, name)


KIND = Facts(0, "", '<http://e/a> <http://e/kind> "k" .\n')


@pytest.mark.parametrize("seed", range(2 if is_full() else 1))
@pytest.mark.parametrize("text", QUERIES)
def test_a_query_that_reads_from_the_beginning_finds_what_it_would_have_found(text: str, seed: int) -> None:
    random, log = Random(seed), CatchUpLog()
    log.add(KIND)
    log.feed(random, 10, 40, delay=2)
    log.add(Register(0, "other", SEQ))
    log.feed(random, 40, 60, delay=2)
    registered = log.add(Register(0, "q", text, reads_from=0))
    log.feed(random, 60, 70, delay=2)
    log.catch_up(registered, 0, random)
    log.feed(random, 2000, 2010, delay=2)
    log.add(Finish(0, "default"))
    check(log, random, ["q", "other"])


@pytest.mark.parametrize("text", [SEQ, COUNT, MIXED])
def test_an_offset_is_as_good_a_beginning(text: str) -> None:
    random, log = Random(3), CatchUpLog()
    log.add(KIND)
    log.feed(random, 10, 50)
    registered = log.add(Register(0, "q", text, reads_from=20))
    log.catch_up(registered, 20, random)
    log.feed(random, 2000, 2010)
    check(log, random)


@pytest.mark.parametrize("seed", range(2 if is_full() else 1))
@pytest.mark.parametrize("text", QUERIES)
def test_a_paused_query_finds_what_it_would_have_found(text: str, seed: int) -> None:
    random, log = Random(seed), CatchUpLog()
    log.add(KIND)
    log.add(Register(0, "other", SEQ))
    registered = log.add(Register(0, "q", text))
    log.add(Register(0, "third", OPTIONAL))
    log.feed(random, 10, 40, delay=2)
    at = log.add(Pause(0, registered, "q"))
    log.feed(random, 40, 60, delay=2)
    log.add(CatchUp(0, registered, at + 5))  # is for nothing while it is paused
    log.add(Resume(0, registered, "q"))
    log.catch_up(registered, at, random)
    log.feed(random, 2000, 2010, delay=2)
    log.add(Finish(0, "default"))
    check(log, random, ["q", "other", "third"])


def test_a_paused_query_reads_nothing() -> None:
    random, log = Random(1), CatchUpLog()
    registered = log.add(Register(0, "q", SEQ))
    log.feed(random, 10, 40)
    before = found(log.run())
    log.add(Pause(0, registered, "q"))
    log.feed(random, 40, 80)
    assert found(log.run(random)) == before


@pytest.mark.parametrize("over", [OVER, BOTH])
def test_a_query_over_a_derived_stream_derives_it_anew(over: str) -> None:
    random, log = Random(5), CatchUpLog()
    log.add(Register(0, "rule", RULE))
    log.feed(random, 10, 40)
    registered = log.add(Register(0, "q", over, reads_from=0))
    log.feed(random, 40, 60)
    log.catch_up(registered, 0, random)
    log.feed(random, 2000, 2020)
    expected = without_history(log)
    first = next(k for k, (entry, _) in enumerate(expected.parts) if isinstance(entry, Register) and entry.name == "q")
    assert first == 0
    check(log, random, ["q", "rule"])


def test_what_a_query_finds_does_not_depend_on_when_it_catches_up() -> None:
    """The rule begins to read in the middle: before the query's registration it is as if it had been there, from then
    on it is what it is.
    """
    results = []
    for piece in (3, 50):
        random, log = Random(6), CatchUpLog()
        log.feed(random, 10, 30)
        log.add(Register(0, "rule", RULE))
        log.feed(random, 30, 50)
        registered = log.add(Register(0, "q", OVER, reads_from=0))
        log.feed(random, 50, 60)
        at = len(log.parts)
        pieces = [*range(0, at, piece), at]
        for upto in pieces:
            log.add(CatchUp(0, registered, upto))
        log.add(CatchUp(0, registered, len(log.parts)))
        log.feed(random, 2000, 2020)
        results.append([found(log.run(Random(k))) for k in range(2)])
    assert results[0] == results[1]
    assert results[0][0] == results[0][1]


@pytest.mark.parametrize("over", [OVER, BOTH])
def test_a_paused_rule_holds_back_those_that_read_what_it_writes(over: str) -> None:
    random, log = Random(7), CatchUpLog()
    rule = log.add(Register(0, "rule", RULE))
    reader = log.add(Register(0, "q", over))
    log.add(Register(0, "other", SEQ))
    log.feed(random, 10, 40)
    stood = found(log.run())
    at = log.add(Pause(0, rule, "rule", (reader,)))
    log.feed(random, 40, 60)
    assert found(log.run()) == stood
    log.add(Register(0, "new", over, waits_for=rule))
    log.feed(random, 60, 70)
    log.add(Resume(0, rule, "rule"))
    log.catch_up(rule, at, random)
    log.feed(random, 2000, 2030)
    check(log, random, ["q", "rule", "other", "new"])


def test_a_rule_over_the_past_gives_those_that_read_it_what_comes_from_its_registration_on() -> None:
    random, log = Random(8), CatchUpLog()
    reader = log.add(Register(0, "reader", OVER))
    log.feed(random, 10, 40)
    rule = log.add(Register(0, "q", RULE, reads_from=0, holds=(reader,)))
    log.feed(random, 40, 60)
    log.catch_up(rule, 0, random)
    log.feed(random, 2000, 2020)
    check(log, random)
    outcomes = log.run(random)
    assert found(outcomes, "reader")
    first = min(row[1] for row in found(outcomes, "reader"))
    assert first * 1_000_000 < 1000, "what the rule derives while it is behind is waited for"


def test_settings_that_a_rule_rests_on_promise_nothing_for_what_came_before_it() -> None:
    """It reads instants, so it keeps a goal until the next one. An event that lasts came before, and needs an earlier goal."""
    log, x, p = CatchUpLog(), Iri("http://e/x"), Iri("http://e/p")
    for start, end in ((1, 1), (4, 4), (2, 6)):
        log.add(Events(0, "default", 1, end), Occurrence((x, p, Literal(str(end))), start, end))
    pattern = "{ ?x <http://e/p> ?a } SEQ { ?x <http://e/p> ?c } WITHOUT { ?x <http://e/p> ?b }"
    rule = f"CONSTRUCT {{ ?x <http://e/d> ?c }} INTO STREAM <http://e/derived> WHERE {{ {pattern} }}"
    log.add(Register(0, "rule", rule, instants=True))
    registered = log.add(Register(0, "q", "SELECT ?c FROM STREAM <http://e/derived> WHERE { ?x <http://e/d> ?c }", reads_from=0))
    log.add(Events(0, "default", 1, 100), Occurrence((x, Iri("http://e/q"), x), 100, 100))
    log.catch_up(registered, 0, Random(0))
    assert [row[3] for row in found(log.run())] == [('"4"',), ('"6"',)]


def test_rules_that_feed_each_other_pause_together() -> None:
    random, log = Random(9), CatchUpLog()
    rule = log.add(Register(0, "rule", CLOSURE))
    reader = log.add(Register(0, "q", PATH.replace("+", "")))
    log.feed(random, 10, 30)
    at = log.add(Pause(0, rule, "rule", (reader,)))
    log.feed(random, 30, 50)
    log.add(Resume(0, rule, "rule"))
    log.catch_up(rule, at, random)
    log.feed(random, 2000, 2010)
    check(log, random, ["q", "rule"])


def test_dropping_a_paused_rule_lets_the_others_go_on() -> None:
    random, log = Random(10), CatchUpLog()
    rule = log.add(Register(0, "rule", RULE))
    reader = log.add(Register(0, "q", BOTH))
    log.feed(random, 10, 40)
    at = log.add(Pause(0, rule, "rule", (reader,)))
    log.add(Drop(0, rule, "rule"))
    log.feed(random, 40, 60)
    log.catch_up(rule, at, random)
    log.feed(random, 2000, 2010)
    check(log, random)


def test_a_paused_query_finds_what_a_rule_derived_before_it_was_dropped() -> None:
    random, log = Random(14), CatchUpLog()
    rule = log.add(Register(0, "rule", RULE))
    registered = log.add(Register(0, "q", OVER))
    log.feed(random, 10, 20)
    at = log.add(Pause(0, registered, "q"))
    log.feed(random, 20, 60)
    log.add(Drop(0, rule, "rule"))
    log.add(Resume(0, registered, "q"))
    log.catch_up(registered, at, random)
    log.feed(random, 2000, 2010)
    check(log, random)


def test_a_limit_that_is_reached_in_the_past_completes_the_query() -> None:
    random, log = Random(11), CatchUpLog()
    log.feed(random, 10, 40)
    registered = log.add(Register(0, "q", "SELECT ?a WHERE { ?x <http://e/p> ?a } LIMIT 2", reads_from=0))
    log.catch_up(registered, 0, random)
    outcomes = log.run(random)
    assert len(found(outcomes)) == 2
    assert [(change.registered, change.state) for outcome in outcomes for change in outcome.changes] == [(registered, "completed")]


def test_dropped_while_it_is_behind() -> None:
    random, log = Random(12), CatchUpLog()
    log.add(Register(0, "other", SEQ))
    log.feed(random, 10, 40)
    registered = log.add(Register(0, "q", SEQ, reads_from=0))
    log.add(CatchUp(0, registered, 20))
    log.add(Drop(0, registered, "q"))
    log.add(CatchUp(0, registered, len(log.parts)))
    log.feed(random, 2000, 2010)
    log.run(random)
    check(log, random, ["other"])


FORWARD = "CONSTRUCT { ?x <http://e/p> ?b } INTO STREAM <http://e/f> FROM STREAM <http://e/d> WHERE { ?x <http://e/p> ?b }"
FURTHER = OVER.replace("<http://e/d>", "<http://e/f>")


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("ran_before", [False, True])
def test_a_rule_that_comes_while_a_query_is_behind_feeds_it_by_way_of_others(ran_before: bool, past: bool) -> None:
    """The second rule joins the query to the first one, which nothing joined to it where the query stands."""
    random, log = Random(15), CatchUpLog()
    if ran_before:
        log.add(Register(0, "rule", RULE))
    log.feed(random, 10, 30)
    registered = log.add(Register(0, "q", FURTHER, reads_from=0 if past else None))
    log.feed(random, 30, 40)
    at = 0 if past else log.add(Pause(0, registered, "q"))
    if not ran_before:
        log.add(Register(0, "rule", RULE))
    log.feed(random, 40, 60)
    log.add(Register(0, "forward", FORWARD))
    log.feed(random, 60, 80)
    if not past:
        log.add(Resume(0, registered, "q"))
    log.catch_up(registered, at, random)
    log.feed(random, 2000, 2020)
    check(log, random, ["q", "rule", "forward"])


def test_a_rule_joins_a_paused_query_to_others_again_once_the_first_that_did_was_dropped() -> None:
    random, log = Random(16), CatchUpLog()
    log.add(Register(0, "rule", RULE))
    registered = log.add(Register(0, "q", FURTHER))
    log.feed(random, 10, 20)
    at = log.add(Pause(0, registered, "q"))
    first = log.add(Register(0, "forward", FORWARD))
    log.feed(random, 20, 40)
    log.add(Drop(0, first, "forward"))
    log.add(Register(0, "more", RULE.replace("?x <http://e/p> ?b }", "?x <http://e/p> ?a }", 1)))
    log.feed(random, 40, 60)
    log.add(Register(0, "forward", FORWARD))
    log.feed(random, 60, 80)
    log.add(Resume(0, registered, "q"))
    log.catch_up(registered, at, random)
    log.feed(random, 2000, 2020)
    check(log, random, ["q", "rule", "forward"])


def test_what_waits_for_a_rule_over_the_past_is_fed_by_rules_that_come_meanwhile_although_it_is_dropped() -> None:
    random, log = Random(17), CatchUpLog()
    log.add(Register(0, "rule", RULE))
    log.feed(random, 10, 40)
    past = log.add(Register(0, "past", RULE.replace("http://e/d", "http://e/f").replace("http://e/q", "http://e/never"), reads_from=0))
    log.add(Register(0, "q", FURTHER, waits_for=past))
    log.feed(random, 40, 50)
    log.add(Register(0, "forward", FORWARD))
    log.feed(random, 50, 60)
    log.add(CatchUp(0, past, 20))
    log.add(Drop(0, past, "past"))
    log.feed(random, 60, 80)
    log.catch_up(past, 20, random)
    log.feed(random, 2000, 2020)
    check(log, random, ["q", "rule", "forward"])
